"""What objects show in a notebook: tables and pictures as HTML."""

from __future__ import annotations

import base64
import io
import sys
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from rumormill.text import cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Dots per inch; half of them per CSS inch, so that pictures are sharp on dense screens.
DPI = 192


def html_table(rows: Sequence[Mapping[str, Any]], title: str = "") -> str:
    """A table with one line per row; numbers stand to the right."""
    heads = list(rows[0]) if rows else []
    lines = [_line("th", heads, [False] * len(heads))] if heads else []
    for row in rows:
        values = [row[head] for head in heads]
        numbers = [isinstance(value, int | float) for value in values]
        lines.append(_line("td", [cell(value) for value in values], numbers))
    caption = f"<caption style='text-align:left'>{escape(title)}</caption>" if title else ""
    return f"<table>{caption}{''.join(lines)}</table>"


def _line(tag: str, cells: Sequence[str], right: Sequence[bool]) -> str:
    sides = ("right" if each else "left" for each in right)
    inside = (
        f"<{tag} style='text-align:{side}'>{escape(text)}</{tag}>"
        for text, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{''.join(inside)}</tr>"


def html_lines(lines: Sequence[str]) -> str:
    """Sentences, a paragraph each."""
    return "".join(f"<p>{escape(line)}</p>" for line in lines)


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this process."""
    return "ipykernel" in sys.modules


def shown_when_returned(figure: Figure) -> Figure:
    """The figure, which a notebook shows as the value of a cell, whichever backend is in use."""
    vars(figure)["_repr_png_"] = lambda: png_of(figure)
    return figure


def png_of(figure: Figure) -> bytes:
    """The figure as a PNG file."""
    data = io.BytesIO()
    figure.savefig(data, format="png", dpi=DPI, facecolor="white")
    return data.getvalue()


def html_picture(axes: Axes, about: str) -> str:
    """The figure of the axes as an image inside of the page; `about` is read where it cannot be seen."""
    figure: Any = axes.figure
    width = round(float(figure.get_size_inches()[0]) * 96)
    encoded = base64.b64encode(png_of(figure)).decode()
    return f'<img width="{width}" alt="{escape(about)}" src="data:image/png;base64,{encoded}">'
