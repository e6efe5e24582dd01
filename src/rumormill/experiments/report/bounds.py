"""The section of the report on the theory: what it promises, what was measured, and what that is worth."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any

from rumormill.experiments.analyse.bounds import UNCOVERED, RunBounds, bound_rows, lower_rows
from rumormill.experiments.analyse.views import axis_name
from rumormill.experiments.report.markup import picture, table

if TYPE_CHECKING:
    from rumormill.experiments.analyse.bounds import PolicyBounds

INTRO = (
    "Upper bounds hold for the expected regret of a policy in one game: one bandit on one network. The lower "
    "bound is a slope: in the long run no consistent policy stays below it; it says nothing about one round."
)
UPPER_INTRO = (
    "The ratio is the corrected bound over what was measured. The printed bound is the paper's formula "
    "letter by letter, which need not hold. Numbers in brackets refer to the notes below."
)
LOWER_INTRO = (
    "Coefficient · ln t is asymptotic, for policies consistent on the named family, and the same for any "
    "number of agents; a measured curve may be below it for any finite time. "
    "Most possible: T · M · Δmax, above which an upper bound is vacuous."
)


def bounds_section(found: RunBounds) -> str:
    """Remarks, the figure, and the tables."""
    from rumormill.experiments.figures.bounds import bounds_figure

    notes = _Notes()
    upper = _upper(found, notes)
    return (
        '<section id="bounds">\n<h2>What the theory promises</h2>\n'
        f"{''.join(f'<p>{html.escape(remark)}</p>' for remark in [INTRO, *_cautions(found)])}"
        f'<div class="pictures">{picture(bounds_figure(found), "svg", caption(found))}</div>'
        f"<h3>Upper bounds at round {found.horizon:,}</h3>"
        f"<p>{html.escape(UPPER_INTRO)}</p>{upper}"
        f"<details><summary>What the bounds rest on ({len(notes.seen)} notes)</summary>"
        f"{notes.html()}</details>"
        f"<h3>Lower bound, and the most possible</h3>"
        f"<p>{html.escape(LOWER_INTRO)}</p>{_lower(found)}\n</section>"
    )


def caption(found: RunBounds) -> str:
    """What the figure shows, and of which game."""
    return (
        f"{_whose_game(found)} Thin dotted lines: corrected upper bounds, from the round where they are "
        "below the regret of pulling the worst arm always (thin grey line). Dashed grey: the slope of the "
        "lower bound."
    )


def remarks(found: RunBounds) -> list[str]:
    """What a reader must know before believing a line: whose game it is, what is empty, what is unproven."""
    return [_whose_game(found), *_cautions(found)]


def _cautions(found: RunBounds) -> list[str]:
    every = [each for game in found.games for each in game.policies]
    return [*_vacuous_words(found, every), *_coverage_words(every)]


def _whose_game(found: RunBounds) -> str:
    if found.one_game:
        return "All trials play the same game; measured is the mean over trials."
    return (
        "Every trial has a bandit or a network of its own: bounds and measured regret are both of the first "
        "trial's game, so that like stands beside like (one trial, not a mean)."
    )


def _vacuous_words(found: RunBounds, every: list[PolicyBounds]) -> list[str]:
    empty = [each for each in every if each.at_end.vacuous]
    if not empty:
        return [
            "No bound is vacuous: all are below T · M · Δmax, the regret of pulling the worst arm always."
        ]
    verb = "is" if len(empty) == 1 else "are"
    return [
        f"{len(empty)} of {len(every)} upper bounds {verb} vacuous at round {found.horizon:,}: above "
        "T · M · Δmax, the regret of pulling the worst arm always. True, and empty: not drawn."
    ]


def _coverage_words(every: list[PolicyBounds]) -> list[str]:
    bare = dict.fromkeys(each.policy for each in every if not each.covered)
    if not bare:
        return []
    return [
        f"For {'; '.join(bare)} no lemma covers the radius or the moments in use (marked “not covered”; a "
        "factor as small as ζ = 1 is the usual reason): the line shows what the formula gives, not a promise."
    ]


def _upper(found: RunBounds, notes: _Notes) -> str:
    axes = list(found.games[0].point)
    head = [
        *(axis_name(axis) for axis in axes),
        "policy",
        "measured",
        "corrected",
        "printed",
        "ratio",
        "largest term",
        "worth",
        "assumptions",
    ]
    every = [each for game in found.games for each in game.policies]
    rows = []
    for row, each in zip(bound_rows(found), every, strict=True):
        rows.append(
            [
                *(str(row[axis]) for axis in axes),
                row["policy"],
                _number(row["measured"]),
                _number(row["corrected"]),
                _number(row["printed"]),
                _ratio(row["ratio"]),
                _largest(each),
                "vacuous" if row["vacuous"] else "informative",
                f"{'hold' if row['covered'] else 'not covered'} {notes.numbers(row['assumptions'])}",
            ]
        )
    number = {"measured", "corrected", "printed", "ratio"}
    return table(head, rows, ["number" if name in number else "" for name in head], wide=True)


def _largest(each: PolicyBounds) -> str:
    bound = each.at_end
    share = bound.terms[bound.dominant] / bound.value if math.isfinite(bound.value) else 1.0
    return f"{bound.dominant} ({100 * share:.0f} %)"


def _lower(found: RunBounds) -> str:
    axes = list(found.games[0].point)
    head = [
        *(axis_name(axis) for axis in axes),
        "coefficient of ln t",
        f"at round {found.horizon:,}",
        "most possible",
        "family, or why there is no lower bound",
    ]
    rows = [
        [
            *(str(row[axis]) for axis in axes),
            _number(row["coefficient"]),
            _number(row["at_end"]),
            _number(row["most_possible"]),
            row["family"],
        ]
        for row in lower_rows(found)
    ]
    return table(head, rows, ["number" if name in head[-4:-1] else "" for name in head], wide=True)


class _Notes:
    """Sentences that many rows share, numbered in order of appearance."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def numbers(self, text: str) -> str:
        """The numbers of a text's sentences, those that warn first."""
        sentences = [f"{part.removesuffix('.')}." for part in text.split(". ")]
        sentences.sort(key=lambda sentence: not sentence.startswith(UNCOVERED))
        found = [str(self.seen.setdefault(sentence, len(self.seen) + 1)) for sentence in sentences]
        return f"[{', '.join(found)}]"

    def html(self) -> str:
        return f"<ol>{''.join(f'<li>{html.escape(sentence)}</li>' for sentence in self.seen)}</ol>"


def _number(value: Any) -> str:
    if value is None:
        return "–"
    if not math.isfinite(value):
        return "∞"
    return f"{value:.2e}" if value >= 1e9 else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ratio(value: float) -> str:
    return f"{_number(value)}×" if math.isfinite(value) else "∞"
