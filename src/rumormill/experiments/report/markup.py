"""Tables and pictures as HTML, for the report."""

from __future__ import annotations

import base64
import html
import re
from typing import TYPE_CHECKING

from rumormill.experiments.figures.files import rendered

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORD_CLASS = {
    "holds": "holds",
    "does not hold": "fails",
    "not decided at this size": "open",
    "vacuous": "open",
}


def table(head: list[str], rows: list[list[str]], classes: list[str], *, wide: bool = False) -> str:
    """Narrow screens scroll a wide table sideways, and stack the cells of any other."""
    top = "".join(
        f'<th class="{kind}">{html.escape(name)}</th>' for name, kind in zip(head, classes, strict=True)
    )
    names = [""] * len(head) if wide else head
    body = "".join(
        f"<tr>{''.join(_cell(*each) for each in zip(names, row, classes, strict=True))}</tr>" for row in rows
    )
    return (
        f'<div class="scroll"><table class="{"wide" if wide else "stack"}"><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(name: str, text: str, kind: str) -> str:
    """A cell; without what it does not need, since a table may have thousands of rows."""
    kind = f"{kind} {WORD_CLASS.get(text, '')}".strip()
    told = (f' class="{kind}"' if kind else "") + (f' data-name="{html.escape(name)}"' if name else "")
    return f"<td{told}>{html.escape(text)}</td>"


def picture(figure: Figure, kind: str, caption: str) -> str:
    """The figure as part of the page, svg or png."""
    mime = "image/svg+xml" if kind == "svg" else "image/png"
    drawn = rendered(figure, kind, transparent=True)
    packed = base64.b64encode(_slim(drawn) if kind == "svg" else drawn).decode()
    return (
        f'<figure><img src="data:{mime};base64,{packed}" alt="{html.escape(caption)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def _slim(drawn: bytes) -> bytes:
    """An SVG without indentation, coordinates to a hundredth of a point, one style for a row of markers."""
    drawn = re.sub(rb"([1-9]\d*\.\d\d)\d+", rb"\1", re.sub(rb"\n\s+", b"\n", drawn))
    return re.sub(rb'<use [^>]*? style="([^"]*)"/>\n(?:<use [^>]*? style="\1"/>\n)+', _grouped, drawn)


def _grouped(row: re.Match[bytes]) -> bytes:
    style = b' style="' + row[1] + b'"'
    return b"<g" + style + b">\n" + row[0].replace(style, b"") + b"</g>\n"
