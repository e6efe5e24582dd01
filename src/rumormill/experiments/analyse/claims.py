"""The claims of a spec, each tested on the trials of a run: an estimate, an interval and a verdict.

A comparison "A beats B" looks at regret at the horizon, at the median over trials of A/B - 1, both on the
same rewards. The interval is exact for any law of regret (stats.py); the intervals of one scope
hold together with 95 % confidence (Bonferroni). A claim holds if its whole interval says so, does not hold
if its whole interval says the opposite, and is otherwise not decided; nor is it where the mean over trials
says the opposite of the median. "At least as good" is decided by the end of the interval: it may not reach
beyond the margin.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.experiments.analyse.measured import LIMITS, Measurements, Values, in_words, is_number, symbol
from rumormill.experiments.spec import schema
from rumormill.stats import Interval, change_of_means, least_trials, median_interval, ratios
from rumormill.text import plural, rounded, setting, share, shares, times

Word = Literal["holds", "does not hold", "not decided at this size"]
HOLDS: Word = "holds"
FAILS: Word = "does not hold"
OPEN: Word = "not decided at this size"

CONFIDENCE = 0.95
# A parameter "matters" if it changes regret by more than this share, and does not if it changes it by less.
MATTERS = 0.10

# So many rows are listed even if there are too few trials for all of them.
SHORT_TABLE = 6

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Verdict:
    """One claim, tested. The numbers are relative: -0.4 is 40 % less. NaN: too few trials."""

    claim: str
    scope: str
    word: Word
    estimate: float
    """The median over trials."""
    low: float
    high: float
    mean: float
    """The same of the means over trials, without an interval."""
    trials: int
    detail: str
    values: Values = field(default_factory=dict)
    """The sweep point it is about, if it is about one."""

    @property
    def sentence(self) -> str:
        """The claim without the sweep point."""
        return self.claim.removesuffix(_where(self.values))


@dataclass(frozen=True)
class Question:
    """A claim with its data, before it is tested."""

    text: str
    samples: list[Array]
    """Ratios by trial: one sample, or two independent ones."""
    mean: float
    rule: Callable[[Interval], Word]
    detail: str
    values: Values = field(default_factory=dict)

    @classmethod
    def about(
        cls,
        text: str,
        data: Array,
        rule: Callable[[Interval], Word],
        detail: str,
        values: Values | None = None,
    ) -> Question:
        """A question on two columns of regret: how much larger the first is."""
        first, second = data.T
        mean = change_of_means(first, second)
        return cls(text, [ratios(first, second)], mean, rule, detail, values or {})


def gains_between(runs: Mapping[str, Measurements]) -> list[Verdict]:
    """The claims that compare the gain in two of these runs, which are given by name."""
    done = []
    for first in runs.values():
        gains = [claim for claim in first.spec.claims if isinstance(claim, schema.LargerGain)]
        for other in dict.fromkeys(claim.than_in for claim in gains):
            if other in runs:
                wanted = [claim for claim in gains if claim.than_in == other]
                asked = [q for claim in wanted for q in _larger_gain(first, runs[other], claim)]
                done += _tested(f"{first.name} and {other}", asked)
    return done


def own_verdicts(summary: Measurements) -> list[Verdict]:
    """The claims that one run alone can decide."""
    asked = [
        question
        for claim in summary.spec.claims
        if type(claim) in WITHIN
        for question in WITHIN[type(claim)](summary, claim)
    ]
    scopes: dict[str, list[Question]] = {}
    for question in asked:
        scopes.setdefault(summary.scope(question.values), []).append(question)
    return [verdict for scope, questions in scopes.items() for verdict in _tested(scope, questions)]


def verdict_row(verdict: Verdict) -> dict[str, str]:
    """A verdict as text."""
    return {
        "claim": verdict.claim,
        "scope": verdict.scope,
        "verdict": verdict.word,
        "difference": share(verdict.estimate),
        "confidence interval": shares(verdict.low, verdict.high),
        "in the mean": share(verdict.mean),
        "detail": verdict.detail,
    }


def too_few_for(found: Sequence[Verdict]) -> str:
    """Where none of many claims has an interval: how many trials would be needed; else nothing."""
    if len(found) <= SHORT_TABLE or any(not math.isnan(verdict.low) for verdict in found):
        return ""
    scopes = Counter(verdict.scope for verdict in found)
    needed = max(least_trials(1 - (1 - CONFIDENCE) / count) for count in scopes.values())
    played = plural(min(verdict.trials for verdict in found), "trial")
    return f"none of {plural(len(found), 'claim')} can be decided: {played} played, {needed} would be needed"


def _tested(scope: str, asked: list[Question]) -> list[Verdict]:
    done = []
    for question in asked:
        found = median_interval(question.samples, 1 - (1 - CONFIDENCE) / len(asked))
        word, detail = question.rule(found) if found.known else OPEN, question.detail
        if contradicted(word, question.rule(Interval(question.mean, question.mean, question.mean))):
            word, detail = OPEN, f"{detail}; most trials say one thing, the mean over all says the opposite"
        trials = min(len(sample) for sample in question.samples)
        numbers = (found.estimate, found.low, found.high, question.mean)
        done.append(Verdict(question.text, scope, word, *numbers, trials, detail, question.values))
    return done


def contradicted(word: Word, by_mean: Word) -> bool:
    """Whether mean and median disagree: a few lost trials can outweigh all others."""
    return {word, by_mean} == {HOLDS, FAILS}


# --- decision rules -------------------------------------------------------------------------------------


def below_zero(found: Interval) -> Word:
    """For claims that something is smaller."""
    return HOLDS if found.high < 0 else FAILS if found.low > 0 else OPEN


def above_zero(found: Interval) -> Word:
    """For claims that something is larger."""
    return HOLDS if found.low > 0 else FAILS if found.high < 0 else OPEN


def within(margin: float) -> Callable[[Interval], Word]:
    """For claims that something is not larger by more than the margin: the end of the interval decides."""

    def rule(found: Interval) -> Word:
        return HOLDS if found.high <= margin else FAILS if found.low > margin else OPEN

    return rule


def matters(found: Interval) -> Word:
    """For claims that a parameter changes regret by more than the margin."""
    if found.low > MATTERS or found.high < -MATTERS:
        return HOLDS
    return FAILS if found.low > -MATTERS and found.high < MATTERS else OPEN


def hardly_matters(found: Interval) -> Word:
    """For claims that it does not."""
    opposite: dict[Word, Word] = {HOLDS: FAILS, FAILS: HOLDS, OPEN: OPEN}
    return opposite[matters(found)]


# --- claims within a run --------------------------------------------------------------------------------


def _beats(summary: Measurements, claim: schema.Beats) -> list[Question]:
    return _less_regret(summary, claim.policy, "beats", claim.than, below_zero)


def _at_least_as_good(summary: Measurements, claim: schema.AtLeastAsGood) -> list[Question]:
    rule = within(summary.spec.verdicts.margin)
    return _less_regret(summary, claim.policy, "does at least as well as", claim.than, rule)


def _matters(summary: Measurements, claim: schema.Matters) -> list[Question]:
    return _effect(summary, claim.policy, claim.parameter, "matters", matters)


def _hardly_matters(summary: Measurements, claim: schema.HardlyMatters) -> list[Question]:
    return _effect(summary, claim.policy, claim.parameter, "hardly matters", hardly_matters)


def _less_regret(
    summary: Measurements, policy: str, verb: str, than: str, rule: Callable[[Interval], Word]
) -> list[Question]:
    """One policy has less regret than another, at every sweep point."""
    asked = []
    for values in summary.points:
        data = paired(summary, [(policy, values), (than, values)])
        lower = int((data[:, 0] < data[:, 1]).sum())
        detail = f"mean regret {_means(data)}; lower in {lower} of {len(data)} trials"
        text = f"{policy} {verb} {than}{_where(values)}"
        asked.append(Question.about(text, data, rule, detail, values))
    return asked


def _effect(
    summary: Measurements, policy: str, parameter: str, verb: str, rule: Callable[[Interval], Word]
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
        asked.append(Question.about(text, data, rule, detail))
    return asked


def _worsens(summary: Measurements, claim: schema.Worsens) -> list[Question]:
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
        asked.append(Question.about(text, ends, above_zero, detail))
    return asked


# --- claims between two runs ----------------------------------------------------------------------------


def _larger_gain(first: Measurements, second: Measurements, claim: schema.LargerGain) -> list[Question]:
    """The gain of one policy over another, mean(other) / mean(policy), is larger in the first run."""
    pair = [claim.over, claim.policy]
    if not set(pair) <= set(second.policies):
        return []
    asked = []
    for values in (each for each in first.points if each in second.points):
        here, there = (paired(run, [(policy, values) for policy in pair]) for run in (first, second))
        together = same_chance(first, second) and len(here) == len(there)
        gains = [1 + change_of_means(*data.T) for data in (here, there)]
        text = (
            f"the gain of {claim.policy} over {claim.over} is larger in {first.name} than in {second.name}"
            f"{_where(values)}"
        )
        detail = (
            f"gains {times(gains[0])} and {times(gains[1])}; trials {'paired' if together else 'independent'}"
        )
        one, other = (ratios(*data.T) for data in (here, there))
        samples = [ratios(one, other)] if together else [one, other]
        asked.append(Question(text, samples, gains[0] / gains[1] - 1, above_zero, detail))
    return asked


# A new kind of claim is a form in the spec's schema, a function and a line here.
WITHIN: dict[type, Callable[[Measurements, Any], list[Question]]] = {
    schema.Beats: _beats,
    schema.AtLeastAsGood: _at_least_as_good,
    schema.Matters: _matters,
    schema.HardlyMatters: _hardly_matters,
    schema.Worsens: _worsens,
}


# --- data -----------------------------------------------------------------------------------------------


def paired(summary: Measurements, columns: list[tuple[str, Values]]) -> Array:
    """Regret at the horizon, (trials, columns), over the trials that every column has."""
    found = [summary.of(policy, values).by_trial() for policy, values in columns]
    common = sorted(set.intersection(*(set(column) for column in found)))
    return np.array([[column[trial] for column in found] for trial in common]).reshape(
        len(common), len(found)
    )


def same_chance(first: Measurements, second: Measurements) -> bool:
    """Whether trial i of both runs has the same bandit."""
    return first.spec.seed == second.spec.seed and first.spec.arms == second.spec.arms


def _swept(summary: Measurements, parameter: str) -> list[tuple[Values, list[Any]]]:
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
