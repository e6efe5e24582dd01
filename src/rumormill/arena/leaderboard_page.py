"""The leaderboard as one HTML file that needs nothing else, no network either."""

from __future__ import annotations

import html
from importlib import resources
from string import Template
from typing import Any

from rumormill.experiments.report.markup import safe_json
from rumormill.experiments.report.markup import template as report_part
from rumormill.text import plural


def page_html(plain: dict[str, Any], command: str) -> str:
    """The page of a leaderboard.

    Parameters:
        plain: see `score.as_plain`.
        command: how it was made.
    """
    entries = plain["entries"]
    refused = sum(len(each["not_played"]) for each in entries)
    notes = [f"Left out: {line}" for line in _by_reason(plain["left_out"])]
    if refused:
        notes.append(
            "Some entries do not play in every cell (the reasons are below): their score is that of the "
            f"cells they played. “common”: the score over the {plain['common_cells']} cells that all played."
        )
    return Template(_part("arena.html")).substitute(
        css=report_part("report.css") + _part("arena.css"),
        title=html.escape(f"{plain['suite']}: {plain['title']}" if plain["title"] else plain["suite"]),
        scale=html.escape(f"{plain['scale']} · seeds: {plain['seeds']}"),
        size=f"{plural(len(plain['cells']), 'cell')}, {plural(plain['trials'], 'trial')} each",
        notes="".join(f'<p class="notice">{html.escape(note)}</p>' for note in notes),
        command=html.escape(command),
        sha256=plain["sha256"],
        data=safe_json(plain),
        js=_part("arena.js"),
    )


def _by_reason(left_out: list[str]) -> list[str]:
    """Cells that are left out for the same reason, in one line."""
    reasons: dict[str, list[str]] = {}
    for line in left_out:
        name, _, why = line.partition(": ")
        reasons.setdefault(why, []).append(name)
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {why}"
        for why, names in reasons.items()
    ]


def _part(name: str) -> str:
    return (resources.files("rumormill.arena") / "page" / name).read_text("utf-8")
