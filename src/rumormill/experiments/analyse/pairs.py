"""Every policy of a run against every other, or against a baseline, at every sweep point, in plain words."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rumormill.experiments.analyse.claims import CONFIDENCE, paired
from rumormill.experiments.analyse.labels import Values
from rumormill.stats.bootstrap import Interval
from rumormill.stats.intervals import change_of_means, least_trials, median_interval, ratios
from rumormill.text import plural, share, shares

if TYPE_CHECKING:
    from rumormill.experiments.analyse.summary import Row, Summary


@dataclass(frozen=True)
class Pair:
    """Two policies at a sweep point. estimate, low, high and mean: how much larger the first's regret is."""

    values: Values
    first: str
    second: str
    words: str
    estimate: float
    """The median over trials."""
    low: float
    high: float
    mean: float
    """The same of the means."""
    trials: int


def compare_policies(
    summary: Summary, baseline: str | None = None, margin: float | None = None
) -> list[Pair]:
    """All pairs, or all with the baseline; what is not said is as the spec has it.

    All intervals hold together with 95 % confidence. The margin is the share of regret that is not worth
    speaking of.
    """
    chosen = summary.spec.verdicts
    baseline = chosen.baseline if baseline is None else baseline
    margin = chosen.margin if margin is None else margin
    names = summary.policies
    pairs = (
        list(itertools.combinations(names, 2))
        if baseline is None
        else [(name, baseline) for name in names if name != baseline]
    )
    confidence = 1 - (1 - CONFIDENCE) / max(len(pairs) * len(summary.points), 1)
    return [
        _compared(summary, values, *pair, margin, confidence) for values in summary.points for pair in pairs
    ]


def _compared(
    summary: Summary, values: Values, first: str, second: str, margin: float, confidence: float
) -> Pair:
    data = paired(summary, [(first, values), (second, values)])
    trials = len(data)
    found = median_interval([ratios(*data.T)], confidence)
    mean = change_of_means(*data.T)
    if trials == 1:
        words = "one trial: no band, nothing can be said"
    elif not found.known:
        words = f"too few trials: {plural(least_trials(confidence), 'trial')} would be needed"
    else:
        words = in_plain_words(first, second, found, mean, margin)
    return Pair(values, first, second, words, found.estimate, found.low, found.high, mean, trials)


def in_plain_words(first: str, second: str, found: Interval, mean: float, margin: float) -> str:
    """What an interval of A/B - 1 says of A and B; B is as much better as A/B - 1 is above 0."""
    equal = -margin / (1 + margin) <= found.low and found.high <= margin
    if found.high < 0 or found.low > 0:
        better, worse = (first, second) if found.high < 0 else (second, first)
        by = f", by less than {margin:.0%}" if equal else ""
        if (mean > 0) == (found.high < 0) and mean != 0:
            return f"{better} is better than {worse} in most trials, and worse in the mean"
        return f"{better} is better than {worse}{by}"
    if equal:
        return f"{first} and {second} differ by less than {margin:.0%}"
    if found.high <= margin:
        return f"{first} is at least as good as {second}"
    if found.low >= -margin / (1 + margin):
        return f"{second} is at least as good as {first}"
    return "not decided at this size"


def pair_row(pair: Pair) -> Row:
    """A comparison as text."""
    return {
        **pair.values,
        "policies": f"{pair.first} / {pair.second}",
        "in words": pair.words,
        "difference": share(pair.estimate),
        "confidence interval": shares(pair.low, pair.high),
        "in the mean": share(pair.mean),
    }
