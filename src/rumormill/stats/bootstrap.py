"""The bootstrap over trials: percentile bootstrap bands for curves, BCa bootstrap intervals for comparisons.

Regret varies much from trial to trial (every trial has means of its own) and is skewed, so no normal law is
assumed: a bootstrap resample draws trials with replacement. Comparisons are made within trials, on shared
rewards. BCa is the bias-corrected and accelerated bootstrap of Efron (1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RESAMPLES = 10_000
BAND_RESAMPLES = 2_000
# With fewer trials a bootstrap interval means nothing.
LEAST_TRIALS = 5
# Bootstrap means are computed in pieces of so many resamples, to bound memory.
PIECE = 1_000


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval; low and high are NaN where there are too few trials."""

    estimate: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        return not (math.isnan(self.low) or math.isnan(self.high))

    @property
    def reach(self) -> tuple[float, float]:
        """How far it goes down and up from the estimate, as error bars want it."""
        return abs(self.estimate - self.low), abs(self.high - self.estimate)


def bootstrap_band(
    values: Array, confidence: float = 0.95, resamples: int = BAND_RESAMPLES, seed: int = 0
) -> tuple[Array, Array]:
    """The percentile bootstrap band of the mean over trials, for every column of (trials, columns).

    One trial alone gives no band: both are its values.
    """
    rng = np.random.default_rng(seed)
    tail = (1 - confidence) / 2
    low, high = np.quantile(_resampled_means(values, resamples, rng), [tail, 1 - tail], axis=0)
    return low, high


def bootstrap_interval(
    groups: Sequence[Array],
    statistic: Callable[[Sequence[Array]], Array],
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """A BCa bootstrap interval of a statistic of means (Efron 1987).

    Each group is an array (trials, columns): columns of a group are resampled together (they are paired),
    groups independently. `statistic` takes the means of all groups, each (..., columns), and gives (...).
    """
    groups = [np.asarray(group, dtype=np.float64) for group in groups]
    # A share of nothing (a policy without regret) is infinite, and reported so.
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = float(statistic([group.mean(axis=0) for group in groups]))
        if min(len(group) for group in groups) < LEAST_TRIALS:
            return Interval(estimate, math.nan, math.nan)
        rng = np.random.default_rng(seed)
        drawn = statistic([_resampled_means(group, resamples, rng) for group in groups])
        tail = (1 - confidence) / 2
        levels = _corrected(drawn, estimate, groups, statistic, [tail, 1 - tail])
        # Between infinities there is nothing to interpolate.
        method: Literal["linear", "nearest"] = "linear" if np.isfinite(drawn).all() else "nearest"
        low, high = np.quantile(drawn, levels, method=method)
    return Interval(estimate, float(low), float(high))


def relative_difference(means: Sequence[Array]) -> Array:
    """How much larger the first column is than the second, as a share of the second."""
    (pair,) = means
    return np.asarray(pair[..., 0] / pair[..., 1] - 1)


def _corrected(
    drawn: Array,
    estimate: float,
    groups: Sequence[Array],
    statistic: Callable[[Sequence[Array]], Array],
    levels: Sequence[float],
) -> list[float]:
    """The levels at which quantiles are taken, moved for bias and skewness (BCa)."""
    normal = NormalDist()
    # Ties count half; no correction if all resamples are on one side of the estimate.
    below = float(np.mean(drawn < estimate) + np.mean(drawn == estimate) / 2)
    if not 0 < below < 1:
        return list(levels)
    bias = normal.inv_cdf(below)
    cubes = squares = 0.0
    for number, group in enumerate(groups):
        n = len(group)
        means: list[Array] = [g.mean(axis=0) for g in groups]
        means[number] = (group.sum(axis=0) - group) / (n - 1)
        left_out = statistic([m if i == number else m[None, :] for i, m in enumerate(means)])
        influence = (n - 1) * (left_out.mean() - left_out)
        cubes += float((influence**3).sum()) / n**3
        squares += float((influence**2).sum()) / n**2
    skew = cubes / (6 * squares**1.5) if squares > 0 else 0.0
    moved = []
    for level in levels:
        z = bias + normal.inv_cdf(level)
        moved.append(normal.cdf(bias + z / (1 - skew * z)) if skew * z < 1 else level)
    return moved


def _resampled_means(values: Array, resamples: int, rng: np.random.Generator) -> Array:
    """Bootstrap resamples: means over trials drawn with replacement, (resamples, columns)."""
    n = len(values)
    pieces = []
    for start in range(0, resamples, PIECE):
        counts = rng.multinomial(n, np.full(n, 1 / n), size=min(PIECE, resamples - start))
        pieces.append(counts @ values / n)
    return np.concatenate(pieces)
