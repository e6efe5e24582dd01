"""Advice in words and tables, as wide as the terminal, and a count while it is made."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any

from rumormill.cli.printing import note, print_table, say
from rumormill.text import number, plural

if TYPE_CHECKING:
    from rumormill.advice.advise import Advice
    from rumormill.advice.advise_log import LogAdvice

GLUE = "\x00"


def print_advice(advice: LogAdvice) -> None:
    """The advice in as many columns as there are."""
    from rumormill.advice.words import (
        alarms,
        asked,
        findings,
        group_lines,
        headline,
        recommendation,
        reported_on,
    )

    log = advice.log
    who = "no agents named" if log.agents is None else plural(log.n_agents, "agent")
    paragraph(f"{log.name}: {len(log.value):,} values, {who}, {plural(log.n_arms, 'arm')}")
    failing = alarms(advice)
    for text in failing:
        paragraph(text, "! ")
    paragraph(headline(advice))
    for line in group_lines(advice):
        paragraph(line, "  ", hang=4)
    say()
    paragraph("Is it the model's world?")
    for finding in findings(advice):
        told = f"{finding.number}, see above." if finding.alarm else finding.sentence
        paragraph(f"{asked(finding)}. {told}", "! " if finding.alarm else "- ")
    for text in (*advice.notes, *advice.evidence.why_moments):
        paragraph(text, "- ")
    say()
    paragraph(f"On {reported_on(advice)}, per request:")
    _print_lines(advice)
    say()
    for text in recommendation(advice)[len(failing) :]:
        paragraph(text)
    paragraph(f"In Python: {advice.code}", hang=4)


def _print_lines(advice: LogAdvice) -> None:
    unit = f" {advice.log.unit}" if advice.log.unit else ""
    for line in advice.lines:
        band = f"{number(line.low)} to {number(line.high)}"
        paragraph(
            f"{line.name}: {number(line.mean)}{unit} ({band}), median {number(line.median)}, "
            f"p90 {number(line.p90)}",
            "- ",
        )


def paragraph(text: str, mark: str = "", hang: int = 0) -> None:
    """A paragraph wrapped to the terminal: 80 columns where nobody says how many there are."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = max(20, shutil.get_terminal_size((80, 24)).columns) if known else 80
    indent = " " * (hang or len(mark))
    # A number stays on the line of its unit, and of the sign before it.
    glued = re.sub(r"(?<=[≤=±]) | (?=[≤=±])|(?<=\d) (?=%|[a-zµ]{1,2}\b)", GLUE, text)
    filled = textwrap.fill(
        glued, width, initial_indent=mark, subsequent_indent=indent, break_on_hyphens=False
    )
    say(filled.replace(GLUE, " "))


class Counting:
    """Says on standard error how many settings were replayed: a line that stays, or one every few seconds."""

    EVERY_S = 5.0

    def __init__(self) -> None:
        self._done, self._last, self._live = 0, time.monotonic(), sys.stderr.isatty()

    def __enter__(self) -> Counting:
        return self

    def __exit__(self, *ending: object) -> None:
        if self._live and self._done:
            sys.stderr.write("\r\x1b[K")

    def add(self, plays: int) -> None:
        self._done += plays
        words = f"{plural(self._done, 'setting')} replayed"
        if self._live:
            sys.stderr.write(f"\r\x1b[K{words}")
            sys.stderr.flush()
        elif time.monotonic() - self._last > self.EVERY_S:
            self._last = time.monotonic()
            note(words)


def print_advice_on_spec(advice: Advice) -> None:
    made = advice.network
    print_table([tail.row() for tail in advice.case.tails], title=f"Tails: {advice.case.name}")
    say()
    print_table(
        [_shown(row) for row in advice.short_rows()],
        title=(
            f"Regret and messages: {made.n_agents:,} agents, diameter {made.diameter}, "
            f"{advice.horizon:,} rounds, {len(advice.outcomes)} settings"
        ),
        styles={"recommended": "bold green", "for comparison": "yellow"},
    )
    say()
    for reason in advice.reasons:
        paragraph(reason, "- ")
    say()
    paragraph(f"Recommended: {advice.code}", hang=4)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    word = "recommended" if row["recommended"] else "on the front" if row["on_front"] else ""
    return {
        "policy": row["policy"],
        "γ": row["gamma"],
        "mean": row["estimator"],
        "ζ": row["zeta"],
        "regret": row["regret"],
        "above the best": f"{row['worse']:+.0%} (to {row['worse_high']:+.0%})",
        "messages": row["messages_per_round"],
        "": word if row["allowed"] else "for comparison",
    }
