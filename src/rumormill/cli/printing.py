"""Tables for people, JSON for programs."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rumormill.text import cell

# Where nobody looks at a window, lines may be as long as a log takes.
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
    console.print(table)


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
    """A line of the output proper."""
    print(text)


def note(text: str) -> None:
    """A word to the user beside the output proper."""
    print(text, file=sys.stderr)


def with_band(row: Mapping[str, Any], after: str, band: str) -> dict[str, Any]:
    """The row with its interval behind the number that it belongs to."""
    shown = {}
    for key, value in row.items():
        shown[key] = value
        if key == after:
            shown["95 % band"] = band
    return shown
