"""The summary of a run, made once: terminal, figures and page all read it from here.

Comparisons: the policies of a run with each other at every sweep point, and two runs side by side.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rumormill.errors import InputError
from rumormill.experiments.analyse.claims import (
    CONFIDENCE,
    SHORT_TABLE,
    Verdict,
    gains_between,
    own_verdicts,
    paired,
    same_chance,
    verdict_row,
)
from rumormill.experiments.analyse.measured import Measurements, StoredRun, Values, measured
from rumormill.experiments.analyse.measured import Row as Row
from rumormill.experiments.analyse.measured import Series as Series
from rumormill.experiments.analyse.tuning import BEST, Tuning, folded
from rumormill.experiments.run.manifest import best_constants
from rumormill.stats import Interval, change_of_means, least_trials, median_interval, ratios
from rumormill.text import plural, share, shares

if TYPE_CHECKING:
    from rumormill.experiments.analyse.bounds import RunBounds


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
    summary: Measurements, baseline: str | None = None, margin: float | None = None
) -> list[Pair]:
    """All pairs, or all with the baseline; baseline and margin default to those of the spec.

    All intervals hold together with 95 % confidence (Bonferroni). Differences below the margin, a share of
    regret, are reported as such.
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
    summary: Measurements, values: Values, first: str, second: str, margin: float, confidence: float
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
        words = sentence_of(first, second, found, mean, margin)
    return Pair(values, first, second, words, found.estimate, found.low, found.high, mean, trials)


def sentence_of(first: str, second: str, found: Interval, mean: float, margin: float) -> str:
    """The sentence for an interval of A/B - 1, the relative difference of regret."""
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


def too_few_to_compare(pairs: Sequence[Pair]) -> str:
    """Where none of many comparisons has an interval, a sentence instead of the table; else nothing."""
    if len(pairs) <= SHORT_TABLE or any(not math.isnan(pair.low) for pair in pairs):
        return ""
    return f"{plural(len(pairs), 'comparison')} of policies: {pairs[0].words}, {pairs[0].trials} played"


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


# --- two runs -------------------------------------------------------------------------------------------


def compare(first: Measurements, second: Measurements) -> list[Row]:
    """Regret at the last round where both runs have the same policy and sweep point.

    `change` is how much larger the second is, as a share of the first, in the median over trials. Trials are
    paired where both runs drew the same bandits from the same seed, else taken as independent. All intervals
    hold together.
    """
    same = same_chance(first, second)
    both = [
        (one, second.of(one.policy, values))
        for values in first.points
        if values in second.points
        for one in first.at(values)
        if one.policy in second.policies
    ]
    confidence = 1 - (1 - CONFIDENCE) / max(len(both), 1)
    rows = [
        {**one.values, "policy": one.policy, **_change(one, other, same, confidence)} for one, other in both
    ]
    if not rows:
        raise InputError(
            f"{first.path} and {second.path} have no policy at the same sweep point in common: "
            "compare runs of the same experiment"
        )
    return rows


def _change(first: Series, second: Series, paired: bool, confidence: float) -> Row:
    one, other = first.by_trial(), second.by_trial()
    common = sorted(one.keys() & other.keys())
    columns = [np.array(list(ends.values())) for ends in (other, one)]
    samples = columns
    if paired and common:
        samples = [ratios(*(np.array([ends[trial] for trial in common]) for ends in (other, one)))]
    found = median_interval(samples, confidence)
    return {
        "first": float(columns[1].mean()),
        "second": float(columns[0].mean()),
        "change": found.estimate,
        "low": found.low,
        "high": found.high,
        "change_of_means": change_of_means(*columns),
        "paired": paired,
    }


def differences(first: Measurements, second: Measurements) -> list[Row]:
    """Every key in which the two specs differ."""
    one, other = _flat(first.manifest.spec), _flat(second.manifest.spec)
    return [
        {"key": key, "first": one.get(key), "second": other.get(key)}
        for key in dict.fromkeys([*one, *other])
        if one.get(key) != other.get(key)
    ]


def _flat(value: Any, path: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        inner = [(f"{path}.{key}" if path else key, item) for key, item in value.items()]
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        inner = [(f"{path}[{number}]", item) for number, item in enumerate(value)]
    else:
        return {path: value}
    return {key: leaf for at, item in inner for key, leaf in _flat(item, at).items()}


@dataclass(frozen=True, eq=False, repr=False)
class Summary(Measurements):
    """The numbers of a run with its verdicts, comparisons, bounds and tuned constants."""

    bounds: RunBounds | None = None
    """What the theory promises, if it was asked for."""
    columns: dict[str, Summary] = field(default_factory=dict)
    """The run by value of a tuned constant; this one, each policy at its best constant, is among them."""
    tuning: Tuning | None = None

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """The claims of the spec that this run alone can decide."""
        return own_verdicts(self)

    @cached_property
    def pairs(self) -> list[Pair]:
        """Every policy against every other, or against the spec's baseline."""
        return compare_policies(self)

    def __repr__(self) -> str:
        points = "" if len(self.points) == 1 else f", {len(self.points)} sweep points"
        return f"Summary({self.name}: {', '.join(self.policies)}{points}; round {self.horizon:,})"

    def _repr_html_(self) -> str:
        from rumormill.plotting.rendering import html_table

        title = (
            f"{self.name}: group regret at round {self.horizon:,}, {plural(self.manifest.trials, 'trial')}"
        )
        tables = [html_table(self.rows, title)]
        if self.verdicts:
            tables.append(html_table([verdict_row(verdict) for verdict in self.verdicts], "the claims"))
        return "".join(tables)


def summarise(run: StoredRun, *, bounds: bool = False) -> Summary:
    """Take a run's table apart, once; with `bounds`, also what the theory promises for it.

    Parameters:
        run: the folder of a run, `open_run(path)`; it may be under way.
        bounds: whether to work out the bounds of the theory; not for a run with a tuned constant.
    """
    found = measured(run)
    if run.spec.tune is None:
        if not bounds:
            return _summary(found)
        from rumormill.experiments.analyse.bounds import run_bounds

        return _summary(found, bounds=run_bounds(found))
    tuning = folded(found, best_constants(run.spec, run.frame))
    columns = {name: _summary(each) for name, each in tuning.columns.items()}
    return dataclasses.replace(columns[BEST], columns=columns, tuning=tuning)


def _summary(found: Measurements, **more: Any) -> Summary:
    fields = {each.name: getattr(found, each.name) for each in dataclasses.fields(Measurements)}
    return Summary(**fields, **more)


def verdicts(summaries: Sequence[Summary]) -> list[Verdict]:
    """The claims that these runs can decide: of each run, and between runs where a claim compares two."""
    done = [
        verdict
        for summary in summaries
        for column in summary.columns.values() or [summary]
        for verdict in column.verdicts
    ]
    return done + gains_between({summary.name: summary for summary in summaries})
