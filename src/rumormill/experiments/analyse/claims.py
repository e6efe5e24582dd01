"""The claims of a spec, each tested on the trials of a run, with a number and a plain word.

A comparison "A beats B" looks at mean regret at the horizon: estimate = mean(A) / mean(B) - 1, resampled
over trials that both played on the same rewards. The interval is a bootstrap (BCa) one; the intervals of
one scope hold together with 95 % confidence (Bonferroni). A claim holds if its whole interval says so, does
not hold if its whole interval says the opposite, and is otherwise not decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.experiments.analyse.bootstrap import Interval, bootstrap_interval, relative_difference
from rumormill.experiments.analyse.words import LIMITS, Values, in_words, is_number, symbol
from rumormill.experiments.spec import schema
from rumormill.text import rounded, setting, share, times

if TYPE_CHECKING:
    from rumormill.experiments.analyse.summary import Summary

Word = Literal["holds", "does not hold", "not decided at this size"]
HOLDS: Word = "holds"
FAILS: Word = "does not hold"
OPEN: Word = "not decided at this size"

CONFIDENCE = 0.95
# A parameter "matters" if it changes regret by more than this share, and does not if it changes it by less.
MATTERS = 0.10

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """One claim, tested. estimate, low and high are relative: -0.4 is 40 % less. NaN: too few trials."""

    claim: str
    scope: str
    word: Word
    estimate: float
    low: float
    high: float
    trials: int
    detail: str


@dataclass(frozen=True)
class Question:
    """A claim put to the data, before it is tested."""

    text: str
    groups: list[Array]
    statistic: Callable[[Sequence[Array]], Array]
    judge: Callable[[Interval], Word]
    detail: str


def verdicts(summaries: Sequence[Summary]) -> list[Verdict]:
    """The claims that these runs can decide: of each run, and between runs where a claim compares two."""
    done = [verdict for summary in summaries for verdict in summary.verdicts]
    by_name = {summary.name: summary for summary in summaries}
    for first in by_name.values():
        gains = [claim for claim in first.spec.claims if isinstance(claim, schema.LargerGain)]
        for other in dict.fromkeys(claim.than_in for claim in gains):
            if other in by_name:
                wanted = [claim for claim in gains if claim.than_in == other]
                asked = [q for claim in wanted for q in _larger_gain(first, by_name[other], claim)]
                done += _tested(f"{first.name} and {other}", asked)
    return done


def own_verdicts(summary: Summary) -> list[Verdict]:
    """The claims that one run alone can decide."""
    asked = [
        question
        for claim in summary.spec.claims
        if type(claim) in WITHIN
        for question in WITHIN[type(claim)](summary, claim)
    ]
    return _tested(f"{summary.name} ({summary.manifest.scale})", asked)


def verdict_row(verdict: Verdict) -> dict[str, str]:
    """A verdict as text."""
    return {
        "claim": verdict.claim,
        "scope": verdict.scope,
        "verdict": verdict.word,
        "difference": share(verdict.estimate),
        "confidence interval": f"{share(verdict.low)} to {share(verdict.high)}",
        "detail": verdict.detail,
    }


def _tested(scope: str, asked: list[Question]) -> list[Verdict]:
    done = []
    for question in asked:
        confidence = 1 - (1 - CONFIDENCE) / len(asked)
        found = bootstrap_interval(question.groups, question.statistic, confidence)
        done.append(
            Verdict(
                question.text,
                scope,
                question.judge(found) if found.known else OPEN,
                found.estimate,
                found.low,
                found.high,
                min(len(group) for group in question.groups),
                question.detail,
            )
        )
    return done


# --- judges ---------------------------------------------------------------------------------------------


def below_zero(found: Interval) -> Word:
    """For claims that something is smaller."""
    return HOLDS if found.high < 0 else FAILS if found.low > 0 else OPEN


def above_zero(found: Interval) -> Word:
    """For claims that something is larger."""
    return HOLDS if found.low > 0 else FAILS if found.high < 0 else OPEN


def matters(found: Interval) -> Word:
    """For claims that a parameter has an effect worth speaking of."""
    if found.low > MATTERS or found.high < -MATTERS:
        return HOLDS
    return FAILS if found.low > -MATTERS and found.high < MATTERS else OPEN


def hardly_matters(found: Interval) -> Word:
    """For claims that a parameter has no such effect."""
    opposite: dict[Word, Word] = {HOLDS: FAILS, FAILS: HOLDS, OPEN: OPEN}
    return opposite[matters(found)]


# --- claims within a run --------------------------------------------------------------------------------


def _beats(summary: Summary, claim: schema.Beats) -> list[Question]:
    return _less_regret(summary, claim.policy, "beats", claim.than)


def _at_least_as_good(summary: Summary, claim: schema.AtLeastAsGood) -> list[Question]:
    return _less_regret(summary, claim.policy, "does at least as well as", claim.than)


def _matters(summary: Summary, claim: schema.Matters) -> list[Question]:
    return _effect(summary, claim.policy, claim.parameter, "matters", matters)


def _hardly_matters(summary: Summary, claim: schema.HardlyMatters) -> list[Question]:
    return _effect(summary, claim.policy, claim.parameter, "hardly matters", hardly_matters)


def _less_regret(summary: Summary, policy: str, verb: str, than: str) -> list[Question]:
    """One policy has less regret than another, at every sweep point."""
    asked = []
    for values in summary.points:
        data = paired(summary, [(policy, values), (than, values)])
        lower = int((data[:, 0] < data[:, 1]).sum())
        detail = f"mean regret {_means(data)}; lower in {lower} of {len(data)} trials"
        text = f"{policy} {verb} {than}{_where(values)}"
        asked.append(Question(text, [data], relative_difference, below_zero, detail))
    return asked


def _effect(
    summary: Summary, policy: str, parameter: str, verb: str, judge: Callable[[Interval], Word]
) -> list[Question]:
    """The largest value of a parameter against the smallest: does it change regret?"""
    sign = symbol(parameter)
    asked = []
    for others, numbers in _swept(summary, parameter):
        # Without any message (gamma = 0) all are alone: what matters is how far messages travel.
        kept = [value for value in numbers if value > 0 or parameter != "gamma"]
        if len(kept) < 2:
            continue
        low, high = kept[0], kept[-1]
        data = paired(summary, [(policy, {**others, parameter: value}) for value in (high, low)])
        if not len(data):
            continue
        detail = (
            f"{sign} = {setting(high)} against {sign} = {setting(low)}: mean regret {_means(data)}; "
            f"it matters if it changes regret by more than {MATTERS:.0%}"
        )
        text = f"{sign} {verb} for {policy}{_where(others)}"
        asked.append(Question(text, [data], relative_difference, judge, detail))
    return asked


def _worsens(summary: Summary, claim: schema.Worsens) -> list[Question]:
    """Regret is larger at one end of a sweep than at the other."""
    sign, down = symbol(claim.parameter), claim.toward == "low"
    limit = LIMITS.get((claim.parameter, claim.toward))
    asked = []
    for others, numbers in _swept(summary, claim.parameter):
        if len(numbers) < 2:
            continue
        way = numbers[::-1] if down else numbers
        data = paired(summary, [(claim.policy, {**others, claim.parameter: value}) for value in way])
        if not len(data):
            continue
        ends = data[:, [-1, 0]]
        rises = int((np.diff(data.mean(axis=0)) > 0).sum())
        goes = f"goes to {limit}" if limit else "falls" if down else "grows"
        steps = f"towards {limit}" if limit else "down" if down else "up"
        text = f"{claim.policy} gets worse as {sign} {goes}{_where(others)}"
        detail = (
            f"{sign} = {setting(way[-1])} against {sign} = {setting(way[0])}: mean regret {_means(ends)}; "
            f"the mean rises in {rises} of {len(way) - 1} steps {steps}"
        )
        asked.append(Question(text, [ends], relative_difference, above_zero, detail))
    return asked


# --- claims between two runs ----------------------------------------------------------------------------


def _larger_gain(first: Summary, second: Summary, claim: schema.LargerGain) -> list[Question]:
    """The gain of one policy over another, mean(other) / mean(policy), is larger in the first run."""
    pair = [claim.over, claim.policy]
    if not set(pair) <= set(second.policies):
        return []
    asked = []
    for values in (each for each in first.points if each in second.points):
        here, there = (paired(run, [(policy, values) for policy in pair]) for run in (first, second))
        together = same_chance(first, second) and len(here) == len(there)
        gains = [float(data[:, 0].mean() / data[:, 1].mean()) for data in (here, there)]
        text = (
            f"the gain of {claim.policy} over {claim.over} is larger in {first.name} than in {second.name}"
            f"{_where(values)}"
        )
        detail = (
            f"gains {times(gains[0])} and {times(gains[1])}; trials {'paired' if together else 'independent'}"
        )
        groups = [np.column_stack([here, there])] if together else [here, there]
        asked.append(Question(text, groups, _ratio_of_gains, above_zero, detail))
    return asked


def _ratio_of_gains(means: Sequence[Array]) -> Array:
    """(a / b) / (c / d) - 1 of the four columns a, b, c, d."""
    a, b, c, d = (means[i][..., j] for i in range(len(means)) for j in range(means[i].shape[-1]))
    return np.asarray((a / b) / (c / d) - 1)


# A new kind of claim is a form in the spec's schema, a function and a line here.
WITHIN: dict[type, Callable[[Summary, Any], list[Question]]] = {
    schema.Beats: _beats,
    schema.AtLeastAsGood: _at_least_as_good,
    schema.Matters: _matters,
    schema.HardlyMatters: _hardly_matters,
    schema.Worsens: _worsens,
}


# --- data -----------------------------------------------------------------------------------------------


def paired(summary: Summary, columns: list[tuple[str, Values]]) -> Array:
    """Regret at the horizon, (trials, columns), over the trials that every column has."""
    found = [summary.of(policy, values).by_trial() for policy, values in columns]
    common = sorted(set.intersection(*(set(column) for column in found)))
    return np.array([[column[trial] for column in found] for trial in common]).reshape(
        len(common), len(found)
    )


def same_chance(first: Summary, second: Summary) -> bool:
    """Whether trial i of both runs has the same bandit."""
    return first.spec.seed == second.spec.seed and first.spec.arms == second.spec.arms


def _swept(summary: Summary, parameter: str) -> list[tuple[Values, list[Any]]]:
    """The numbers that a parameter takes, in order, for every choice of the other parameters."""
    if parameter not in summary.axes:
        return []
    found: dict[tuple[Any, ...], tuple[Values, list[Any]]] = {}
    for values in summary.points:
        others = {name: value for name, value in values.items() if name != parameter}
        numbers = found.setdefault(tuple(others.values()), (others, []))[1]
        if is_number(values[parameter]):
            numbers.append(values[parameter])
    return [(others, sorted(numbers)) for others, numbers in found.values()]


def _where(values: Values) -> str:
    return f" at {in_words(values)}" if values else ""


def _means(data: Array) -> str:
    return " against ".join(rounded(mean) for mean in data.mean(axis=0).tolist())
