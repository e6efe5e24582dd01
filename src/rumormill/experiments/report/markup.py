"""Tables and pictures as HTML, LaTeX, CSV and Markdown."""

from __future__ import annotations

import base64
import csv
import html
import io
import json
import re
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rumormill.experiments.analyse.measured import axis_name, band_of, value_name
from rumormill.experiments.figures.registry import full_caption
from rumormill.files import write_atomically
from rumormill.plotting.rendering import made_folder, rendered
from rumormill.text import amount, number, rounded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from rumormill.experiments.analyse.summary import Summary

# A picture of more panels is as wide as the page.
WIDE_FROM = 3
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
    wide = ' class="wide"' if len(figure.axes) > WIDE_FROM else ""
    return (
        f'<figure{wide}><img src="data:{mime};base64,{packed}" alt="{html.escape(caption)}">'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def template(name: str) -> str:
    """A part of a page, as it lies beside this file."""
    return (resources.files("rumormill.experiments.report") / "template" / name).read_text("utf-8")


def safe_json(value: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _slim(drawn: bytes) -> bytes:
    """An SVG without indentation, coordinates to a hundredth of a point, one style for a row of markers."""
    drawn = re.sub(rb"([1-9]\d*\.\d\d)\d+", rb"\1", re.sub(rb"\n\s+", b"\n", drawn))
    return re.sub(rb'<use [^>]*? style="([^"]*)"/>\n(?:<use [^>]*? style="\1"/>\n)+', _grouped, drawn)


def _grouped(row: re.Match[bytes]) -> bytes:
    style = b' style="' + row[1] + b'"'
    return b"<g" + style + b">\n" + row[0].replace(style, b"") + b"</g>\n"


Rows = Sequence[Sequence[str]]
HEAD = ("policy", "group regret", "95 % band", "median agent", "worst agent", "messages per round")
WHAT = "Mean group regret at the last round with its 95 % bootstrap band, and regret of single agents."
# Marks of LaTeX that stand for themselves in a table.
SPECIAL = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
    **{
        greek: f"${name}$"
        for greek, name in {"γ": r"\gamma", "α": r"\alpha", "ζ": r"\zeta", "ε": r"\varepsilon"}.items()
    },
}


def numbers(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """What every policy came to at every sweep point, as people read it: the head, and the rows."""
    head = [*(axis_name(axis) for axis in summary.axes), *HEAD]
    rows = [
        [
            *(value_name(row[axis]) for axis in summary.axes),
            row["policy"],
            rounded(row["regret"]),
            band_of(row),
            number(row["median_agent"]),
            number(row["worst_agent"]),
            amount(row["messages_per_round"]),
        ]
        for row in summary.rows
    ]
    return head, rows


def write_tables(summary: Summary, folder: Path) -> list[Path]:
    """The table as LaTeX, Markdown, and CSV; the last with all digits."""
    made_folder(folder)
    head, rows = numbers(summary)
    words = len(summary.axes) + 1
    caption = full_caption(summary, WHAT)
    texts = {
        "regret.tex": latex(head, rows, words, caption, f"tab:{summary.name}"),
        "regret.md": markdown(head, rows, words, caption),
        "regret.csv": comma_separated(summary),
    }
    for name, text in texts.items():
        write_atomically(folder / name, text.encode())
    return [folder / name for name in texts]


def latex(head: Sequence[str], rows: Rows, words: int, caption: str, label: str) -> str:
    """A table for the booktabs package; the first columns hold words, the others numbers."""
    columns = "l" * words + "r" * (len(head) - words)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{escaped(caption)}}}",
            rf"\label{{{label}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            _lines([head], escaped, " & ", r" \\"),
            r"\midrule",
            _lines(rows, escaped, " & ", r" \\"),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def markdown(head: Sequence[str], rows: Rows, words: int, caption: str) -> str:
    """A table for a page or an issue, its caption below."""
    rule = "|" + "|".join("---" if i < words else "---:" for i in range(len(head))) + "|"

    def line(rows: Rows) -> str:
        return _lines(rows, lambda text: text.replace("|", r"\|"), " | ", " |", "| ")

    return f"{line([head])}\n{rule}\n{line(rows)}\n\n{caption}\n"


def comma_separated(summary: Summary) -> str:
    """All digits, names as in JSON: for programs. The caption has no place in it."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(summary.rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(summary.rows)
    return text.getvalue()


def escaped(text: str) -> str:
    """Text as LaTeX wants it."""
    return "".join(SPECIAL.get(sign, sign) for sign in text)


def _lines(rows: Rows, cell: Callable[[str], str], between: str, end: str, begin: str = "") -> str:
    return "\n".join(begin + between.join(cell(each) for each in row) + end for row in rows)
