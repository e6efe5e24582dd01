"""The recommendation and its baselines on the hold-out of a log, and the one gain that is stated.

Everything comes from games that begin after the first part of the log, on the same bootstrap resamples of the
rest, each as long as the log: the outcome of each way, and as their difference the gain over agents alone. An
interval is about one game: it joins the spread of single games over the block bootstrap with the difference
between the parts of the log (the same games with the parts exchanged).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.advice.problem import KEPT, TOGETHER
from rumormill.advice.replay import LogProblem, ReplayOutcome
from rumormill.advice.reward_table import RewardTable
from rumormill.advice.search import Recommendation
from rumormill.arms.base import sign_of
from rumormill.stats import Interval, winsorised_mean

Array = NDArray[np.float64]

# Chosen on the tuning half of the calibration logs, so that intervals cover what comes next (docs/advice.md).
OF_REPLAYS, BETWEEN_PARTS = 4.0, 1.0


@dataclass(frozen=True)
class Baseline:
    """Outcome of one way of choosing on the hold-out, in the user's unit."""

    name: str
    mean: float
    low: float
    high: float
    median: float
    p90: float

    def row(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"way": self.name, **{name: value for name, value in vars(self).items() if name != "name"}}


@dataclass(frozen=True)
class Gain:
    """What the recommended setting would have gained over agents alone on this log, per request."""

    value: float
    low: float
    high: float
    unit: str
    means: str
    """What the number is, as a sentence."""


def gain_of(first: LogProblem, choice: Recommendation, unit: str, rounds: int) -> Gain:
    """The gain of the recommended setting over agents alone that start from nothing."""
    start = choice.start
    assert start is not None
    means = (
        "per request, the recommended setting against agents alone without a prior, in games of "
        f"{rounds:,} rounds resampled from the part of this log that was not used to choose: what would have "
        "come on this log, not a forecast"
    )
    if start.chosen.candidate == start.cold.candidate:
        return Gain(0.0, 0.0, 0.0, unit, means)
    both = (_parts(first, each.candidate) for each in (start.chosen, start.cold))
    sign = sign_of(first.objective)
    found = _interval(*(sign * (one.paid - other.paid) for one, other in zip(*both, strict=True)))
    return Gain(found.estimate, found.low, found.high, unit, means)


def baselines_of(table: RewardTable, first: LogProblem, choice: Recommendation, cut: int) -> list[Baseline]:
    """The recommended candidate and its baselines; what is known comes from the rounds before `cut`."""
    start, known = choice.start, first.after.known if first.after else None
    assert start is not None
    assert known is not None
    found = [
        _played("recommended", first, start.chosen.candidate),
        _played("agents alone", first, start.cold.candidate),
    ]
    for each in start.ways:
        if each.candidate.fixed:
            arms = known.best_arms(each.candidate)
            always = f"{table.log.arms[arms[0]]}, " if each.candidate.network == TOGETHER else ""
            found.append(_played(f"always {always}{KEPT[each.candidate.network]}", first, each.candidate))
    if table.kind == "chosen":
        parts = [table.log.value[table.slot >= cut], table.log.value[table.slot < cut]]
        (mean, error), (other, _) = (winsorised_mean(part) for part in parts)
        reach = math.hypot(OF_REPLAYS * error, BETWEEN_PARTS * (mean - other))
        found.append(
            _baseline("what the log itself did", parts[0], Interval(mean, mean - reach, mean + reach))
        )
    return found


def _parts(first: LogProblem, candidate: Any) -> tuple[ReplayOutcome, ReplayOutcome]:
    """The candidate on the rest after the first part, and on the first part after the rest."""
    assert first.after is not None
    assert first.exchanged is not None
    return first.after.play([candidate])[0], first.exchanged.play([candidate], look=True)[0]


def _interval(here: Array, there: Array) -> Interval:
    """Mean over the games on the rest, with the spread of single games and the difference of the parts."""
    mean = float(here.mean())
    spread = float(here.std(ddof=1)) if here.size > 1 else math.inf
    reach = math.hypot(OF_REPLAYS * spread, BETWEEN_PARTS * (mean - float(there.mean())))
    return Interval(mean, mean - reach, mean + reach)


def _played(name: str, first: LogProblem, candidate: Any) -> Baseline:
    """The outcome of a candidate; median and 90th percentile in the recorded order."""
    here, there = _parts(first, candidate)
    assert first.after is not None
    values = np.take_along_axis(first.after.values, here.actions[:, :, None], axis=2).ravel()
    return _baseline(name, values, _interval(here.paid, there.paid))


def _baseline(name: str, values: Array, mean: Interval) -> Baseline:
    """A baseline with its median and 90th percentile."""
    quantiles = (float(np.quantile(values, share)) for share in (0.5, 0.9))
    return Baseline(name, mean.estimate, mean.low, mean.high, *quantiles)
