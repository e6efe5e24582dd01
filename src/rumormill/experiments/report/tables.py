"""The table of a run to publish: LaTeX, CSV and Markdown, each with its caption."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rumormill.experiments.analyse.words import axis_name, band_of
from rumormill.experiments.figures.captions import full_caption
from rumormill.experiments.figures.files import made_folder
from rumormill.experiments.run.files import write_atomically
from rumormill.text import amount, number, rounded, setting

if TYPE_CHECKING:
    from rumormill.experiments.analyse.summary import Summary

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
            *(setting(row[axis]) for axis in summary.axes),
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
