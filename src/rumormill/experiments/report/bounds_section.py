"""The section of the report on the theory: what it promises, what was measured, and what that is worth."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rumormill.experiments.analyse.bounds import PERFECT, RunBounds, bound_rows, in_sentence, lower_rows
from rumormill.experiments.analyse.labels import axis_name
from rumormill.experiments.figures.theory import bounds_figure
from rumormill.experiments.report.markup import picture, table
from rumormill.text import cell, number, rounded, setting

if TYPE_CHECKING:
    from rumormill.experiments.analyse.bounds import PolicyBounds
    from rumormill.theory import Assumption

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
    notes = _NumberedSentences()
    upper = _upper(found, notes)
    return (
        '<section id="bounds">\n<h2>What the theory promises</h2>\n'
        f"{''.join(f'<p>{html.escape(remark)}</p>' for remark in [INTRO, *_cautions(found)])}"
        f'<div class="pictures">{picture(bounds_figure(found), "svg", caption(found))}</div>'
        f"<h3>Upper bounds at round {rounded(found.horizon)}</h3>"
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
    empty = sum(each.at_end.vacuous for each in every)
    bare = dict.fromkeys(each.policy for each in every if not each.at_end.covered)
    most = "T · M · Δmax, the regret of pulling the worst arm always."
    said = [f"No bound is vacuous: all are below {most}"] if every and not empty else []
    if empty:
        said.append(
            f"{empty} of {len(every)} upper bounds {'is' if empty == 1 else 'are'} vacuous at round "
            f"{rounded(found.horizon)}: above {most} True, and empty: not drawn."
        )
    if bare:
        said.append(
            f"For {'; '.join(bare)} no lemma covers the radius or the moments in use (marked “not covered”; "
            "a factor as small as ζ = 1 is the usual reason): the line shows what the formula gives, not a "
            "promise."
        )
    if found.channel != PERFECT:
        said.append(
            "The bounds count on every message arriving in time (that of Decentralized knows of loss, and of "
            f"delay at one hop); the channel of this run ({found.channel}) need not do so."
        )
    without = {each.policy: each.reason for game in found.games for each in game.others}
    return said + [f"{policy}: {reason}." for policy, reason in without.items()]


def _whose_game(found: RunBounds) -> str:
    if found.one_game:
        return "All trials play the same game; measured is the mean over trials."
    return (
        "Every trial has a bandit or a network of its own: bounds and measured regret are both of the first "
        "trial's game, so that like stands beside like (one trial, not a mean)."
    )


def _upper(found: RunBounds, notes: _NumberedSentences) -> str:
    axes = list(found.games[0].values)
    numbers = ("measured", "corrected", "printed", "ratio")
    head = [*map(axis_name, axes), "policy", *numbers, "largest term", "worth", "assumptions"]
    every = [each for game in found.games for each in game.policies]
    rows = [
        [
            *(setting(row[axis]) for axis in axes),
            row["policy"],
            *(number(row[name]) for name in numbers[:3]),
            f"{number(row['ratio'])}{'×' if math.isfinite(row['ratio']) else ''}",
            _largest(each),
            "vacuous" if row["vacuous"] else "informative",
            f"{'hold' if row['covered'] else 'not covered'} {notes.numbers(each.at_end.assumptions)}",
        ]
        for row, each in zip(bound_rows(found), every, strict=True)
    ]
    return table(head, rows, ["number" if name in numbers else "" for name in head], wide=True)


def _largest(each: PolicyBounds) -> str:
    bound = each.at_end
    share = bound.terms[bound.dominant] / bound.value if math.isfinite(bound.value) else 1.0
    return f"{bound.dominant} ({rounded(100 * share)} %)"


def _lower(found: RunBounds) -> str:
    axes = list(found.games[0].values)
    numbers = {"coefficient": "coefficient of ln t", "at_end": f"at round {rounded(found.horizon)}"}
    numbers["most_possible"] = "most possible"
    head = [*map(axis_name, axes), *numbers.values(), "family, or why there is no lower bound"]
    rows = [
        [*(setting(row[axis]) for axis in axes), *(cell(row[key]) for key in numbers), row["family"]]
        for row in lower_rows(found)
    ]
    return table(head, rows, ["number" if name in head[-4:-1] else "" for name in head], wide=True)


class _NumberedSentences:
    """Sentences that many rows share, numbered in order of appearance."""

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def numbers(self, assumptions: Iterable[Assumption]) -> str:
        """The numbers of the sentences, those that warn first."""
        sentences = [in_sentence(each) for each in sorted(assumptions, key=lambda each: each.holds)]
        found = [str(self.seen.setdefault(sentence, len(self.seen) + 1)) for sentence in sentences]
        return f"[{', '.join(found)}]"

    def html(self) -> str:
        return f"<ol>{''.join(f'<li>{html.escape(sentence)}</li>' for sentence in self.seen)}</ol>"
