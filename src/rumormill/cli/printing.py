"""Tables and advice for people, JSON for programs."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rumormill.text import cell, number, plural

if TYPE_CHECKING:
    from rumormill.advice.advise import Advice
    from rumormill.advice.report_text import LogAdvice

# Without a terminal, lines may be as long as in a log.
LOG_WIDTH = 160


def print_table(
    rows: Sequence[Mapping[str, Any]], *, title: str = "", styles: Mapping[str, str] = {}
) -> None:
    """Rows of equal keys as a table; numbers to the right. `styles` colours cells by their text."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    known_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    console = Console(width=None if known_width else LOG_WIDTH, highlight=False)
    table = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for name in rows[0] if rows else ():
        numbers = all(isinstance(row[name], int | float) for row in rows)
        heading = name.replace("_", " ")
        table.add_column(heading, justify="right" if numbers else "left", no_wrap=numbers, header_style="dim")
    for row in rows:
        cells = [cell(value) for value in row.values()]
        table.add_row(*(Text(text, style=styles.get(text, "")) for text in cells))
    if _least_width(rows, title) > console.width:  # words would be broken in two
        _print_records(rows, title, console.width)
    else:
        console.print(table)


def _least_width(rows: Sequence[Mapping[str, Any]], title: str) -> int:
    """The width at which no word of a table is broken: numbers, and the longest word of every column."""
    columns = []
    for name in rows[0] if rows else ():
        whole = all(isinstance(row[name], int | float) for row in rows)
        cells = [cell(row[name]) for row in rows]
        words = [word for text in cells for word in ([text] if whole else text.split())]
        columns.append(max(map(len, [*words, *name.replace("_", " ").split(), ""])))
    return max(sum(columns) + 2 * (len(columns) - 1), *map(len, [*title.split(), ""]))


def _print_records(rows: Sequence[Mapping[str, Any]], title: str, width: int) -> None:
    """A table that is too wide, row by row: the first cell, and the others below it by name."""
    for line in textwrap.wrap(title, width):
        say(line)
    for row in rows:
        (_, first), *others = row.items()
        say(cell(first))
        text = ", ".join(f"{name.replace('_', ' ')} {cell(value)}" for name, value in others if cell(value))
        for line in textwrap.wrap(text, max(width - 2, 20), break_long_words=False, break_on_hyphens=False):
            say(f"  {line}")


def print_json(value: Any) -> None:
    """Indented JSON; what is not a number becomes null."""
    # A program must get every letter back, also through a stream that cannot carry them all.
    carries_all = (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf")
    print(json.dumps(_plain(value), indent=2, ensure_ascii=not carries_all, allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def say(text: object = "") -> None:
    """A line on standard output."""
    print(text)


def note(text: str) -> None:
    """A remark on standard error."""
    print(text, file=sys.stderr)


def with_band(row: Mapping[str, Any], after: str, band: str) -> dict[str, Any]:
    """The row with its interval behind the number that it belongs to."""
    shown = {}
    for key, value in row.items():
        shown[key] = value
        if key == after:
            shown["95 % band"] = band
    return shown


GLUE = "\x00"


def print_advice(advice: LogAdvice) -> None:
    """The advice in as many columns as there are."""
    from rumormill.advice.report_text import (
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
    for text in (*advice.notes, *advice.model.why_moments):
        paragraph(text, "- ")
    say()
    paragraph(f"In {reported_on(advice)}, per request:")
    _print_baselines(advice)
    say()
    for text in recommendation(advice)[len(failing) :]:
        paragraph(text)
    what = "The setting that learns in Python" if advice.chosen.fixed else "In Python"
    paragraph(f"{what}: {advice.code}", hang=4)


def _print_baselines(advice: LogAdvice) -> None:
    unit = f" {advice.log.unit}" if advice.log.unit else ""
    for line in advice.baselines:
        paragraph(
            f"{line.name}: {number(line.mean)}{unit}, median {number(line.median)}, p90 {number(line.p90)}",
            "- ",
        )


def paragraph(text: str, mark: str = "", hang: int = 0) -> None:
    """A paragraph wrapped to the terminal, or to 80 columns without one."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    width = max(20, shutil.get_terminal_size((80, 24)).columns) if known else 80
    indent = " " * (hang or len(mark))
    # A number stays on the line of its unit, and of the sign before it.
    glued = re.sub(r"(?<=[≤=±]) | (?=[≤=±])|(?<=\d) (?=%|[a-zµ]{1,2}\b)", GLUE, text)
    filled = textwrap.fill(
        glued, width, initial_indent=mark, subsequent_indent=indent, break_on_hyphens=False
    )
    say(filled.replace(GLUE, " "))


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
