"""Tables and pictures as HTML, for the report."""

from __future__ import annotations

import base64
import html
import json
from importlib import resources
from typing import TYPE_CHECKING, Any

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
    body = "".join(
        f"<tr>{''.join(_cell(*each) for each in zip(head, row, classes, strict=True))}</tr>" for row in rows
    )
    return (
        f'<div class="scroll"><table class="{"wide" if wide else "stack"}"><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(name: str, text: str, kind: str) -> str:
    kind = f"{kind} {WORD_CLASS.get(text, '')}".strip()
    return f'<td class="{kind}" data-name="{html.escape(name)}">{html.escape(text)}</td>'


def picture(figure: Figure, kind: str, caption: str) -> str:
    """The figure as part of the page, svg or png."""
    mime = "image/svg+xml" if kind == "svg" else "image/png"
    packed = base64.b64encode(rendered(figure, kind, transparent=True)).decode()
    return (
        f'<figure><img src="data:{mime};base64,{packed}" alt="{html.escape(caption)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def template(name: str) -> str:
    """A part of a page, as it lies beside this file."""
    return (resources.files("rumormill.experiments.report") / "template" / name).read_text("utf-8")


def safe_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
