"""Statistics without a home in the field libraries: bootstrap, exact intervals, winsorised means.

The bootstrap over trials: percentile bootstrap bands for curves, BCa bootstrap intervals for comparisons.

Regret varies much from trial to trial (every trial has means of its own) and is skewed, so no normal law is
assumed: a bootstrap resample draws trials with replacement. Comparisons are made within trials, on shared
rewards. BCa is the bias-corrected and accelerated bootstrap of Efron (1987).

Exact intervals: of medians, for comparisons within trials whatever the tails; of binomial rates.

Of n trials the ratios r_i = A_i / B_i of two regrets on the same rewards are independent draws of one law,
which may be skewed, with lost trials in it, even without a mean. What is estimated is its median:

    [r_(j), r_(n+1-j)],  j the largest with 2 P(Bin(n, 1/2) <= j-1) <= 1 - confidence

holds the median with at least that confidence, for every law and every n (each r_i lies below the median with
probability at most 1/2, and above it likewise). No resampling, no normal law. Several intervals hold together
when each has its share of what may go wrong (Bonferroni), however they depend on each other. With fewer than
1 + log2(1/(1 - confidence)) trials no such interval exists, and none is given.

The median does not see a policy that loses one trial in ten. So the ratio of the means is carried along, and
a verdict that it contradicts is not given: see experiments/analyse/claims.py.

Winsorised means: outliers cannot move them; whole tables at once.

To winsorise is to replace the outermost values on either side by the next one inside. A fixed number of
values is replaced (a multiple of ln(1/δ), Lugosi and Mendelson, "Robust multivariate mean estimation: the
optimality of trimmed mean", Annals of Statistics 2021), so the share vanishes as the sample grows, and the
mean itself is estimated.
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


def ratios(first: Array, second: Array) -> Array:
    """first / second; two that are nothing are equal, and anything is infinitely more than nothing."""
    first, second = np.asarray(first), np.asarray(second)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((first == 0) & (second == 0), 1.0, np.divide(first, second))


def ratio(first: float, second: float) -> float:
    """The same of two numbers."""
    return float(ratios(np.array(first), np.array(second)))


def change_of_means(first: Array, second: Array) -> float:
    """How much larger the first mean is than the second, as a share of the second."""
    return ratio(float(first.mean()), float(second.mean())) - 1


def order_of(n: int, confidence: float) -> int:
    """j: the j-th smallest and j-th largest of n values hold their median; 0 if n are too few for it."""
    most, tail, j = (1 - confidence) / 2, 0.0, 0
    chance = 0.5**n  # P(Bin(n, 1/2) = j)
    while j < n and tail + chance <= most * (1 + 1e-12):
        tail += chance
        j += 1
        chance *= (n - j + 1) / j
    return j


def least_trials(confidence: float) -> int:
    """The fewest trials for which there is an interval."""
    return math.ceil(1 - math.log2(1 - confidence) - 1e-9)


def exact_median(values: Array, confidence: float) -> Interval:
    """The sample median and its exact interval; NaN ends where there are too few values."""
    ordered = np.sort(values)
    return Interval(float(np.median(ordered)), *_ends(ordered, confidence))


def median_interval(samples: Sequence[Array], confidence: float) -> Interval:
    """The median of a sample of ratios, minus one; or of two independent ones, how much larger the first is.

    Two medians are each held with half of what may go wrong.
    """
    one, *others = (np.sort(sample) for sample in samples)
    if not others:
        low, high = _ends(one, confidence)
        return Interval(float(np.median(one)) - 1, low - 1, high - 1)
    (two,) = others
    each = 1 - (1 - confidence) / 2
    (low, high), (lowest, highest) = _ends(one, each), _ends(two, each)
    estimate = ratio(float(np.median(one)), float(np.median(two)))
    return Interval(estimate - 1, ratio(low, highest) - 1, ratio(high, lowest) - 1)


def _ends(values: Array, confidence: float) -> tuple[float, float]:
    j = order_of(len(values), confidence)
    return (float(values[j - 1]), float(values[-j])) if j else (math.nan, math.nan)


# --- rates ----------------------------------------------------------------------------------------------


def clopper_pearson(count: int, trials: int, confidence: float) -> tuple[float, float]:
    """The exact two-sided interval of a binomial rate (Clopper and Pearson 1934).

    Parameters:
        count: successes, 0 to trials.
        trials: number of trials, at least 1.
        confidence: between 0 and 1.

    >>> [round(end, 4) for end in clopper_pearson(0, 10, 0.95)]
    [0.0, 0.3085]
    """
    from scipy.special import betaincinv

    tail = (1 - confidence) / 2
    low = 0.0 if count == 0 else float(betaincinv(count, trials - count + 1, tail))
    high = 1.0 if count == trials else float(betaincinv(count + 1, trials - count, 1 - tail))
    return low, high


OUTERMOST = 12
MOST_SHARE = 0.05
ROUNDING = 1e-9


def winsorised_mean(values: Array) -> tuple[float, float]:
    """The mean of the winsorised values and its standard error; NaN and infinity of an empty sample.

    >>> mean, error = winsorised_mean(np.array([1.0, 2.0, 3.0] * 20 + [1e9]))
    >>> 1.9 < mean < 2.1
    True
    """
    n = len(values)
    if n == 0:
        return float("nan"), float("inf")
    moved = winsorised(values)
    spread = float(moved.std(ddof=1)) if n > 1 else float("inf")
    return float(moved.mean()), spread / np.sqrt(n)


def winsorised(values: Array) -> Array:
    """The values, the outermost 12 on either side (at most 5 %) replaced by the next one inside.

    A sample of two values (clicks) has no outliers: it stays as it is.
    """
    return np.clip(values, *winsor_limits(values[None])[:, 0])


def winsor_limits(table: Array) -> Array:
    """[low or high, row]: what every row of a table is clipped at; infinite where nothing is replaced."""
    rows, n = table.shape
    k = min(OUTERMOST, int(MOST_SHARE * n))
    limits = np.array([[-np.inf] * rows, [np.inf] * rows])
    if k > 0:
        ends = np.partition(table, [k, n - 1 - k], axis=1)
        limits = np.array([ends[:, k], ends[:, n - 1 - k]])
        for row in np.flatnonzero(limits[0] == limits[1]):
            if len(np.unique(table[row])) <= 2:
                limits[:, row] = -np.inf, np.inf
    return limits


def row_means(table: Array) -> tuple[Array, Array]:
    """Winsorised mean and standard error of every row of a table, as `winsorised_mean` has them."""
    low, high = winsor_limits(table)[:, :, None]
    moved = np.clip(table, low, high)
    return moved.mean(axis=1), moved.std(axis=1, ddof=1) / np.sqrt(table.shape[1])


def cell_means(
    values: Array, cell: NDArray[np.int64], n_cells: int
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Winsorised mean, standard error and count of every cell; NaN and infinity where a cell is empty."""
    order = np.argsort(cell, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=n_cells))
    sorted_values = values[order]
    means, errors = np.full(n_cells, np.nan), np.full(n_cells, np.inf)
    for i in range(n_cells):
        means[i], errors[i] = winsorised_mean(sorted_values[(ends[i - 1] if i else 0) : ends[i]])
    return means, errors, np.diff(ends, prepend=0)


def winsorised_cells(values: Array, cell: NDArray[np.int64], n_cells: int) -> Array:
    """The values, winsorised within every cell, in their own order."""
    order = np.argsort(cell, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=n_cells))
    made, ordered = np.empty(len(values)), values[order]
    for i in range(n_cells):
        here = slice(ends[i - 1] if i else 0, ends[i])
        ordered[here] = winsorised(ordered[here])
    made[order] = ordered
    return made


def clipped(values: Array, arm: NDArray[np.int32], n_arms: int, share: float) -> Array:
    """Values clipped at the quantiles share and 1 - share of their arm: for tests only."""
    made = np.empty(len(values))
    for k in range(n_arms):
        here = arm == k
        if here.any():
            low, high = np.quantile(values[here], [share, 1 - share])
            made[here] = np.clip(values[here], low, high)
    return made


def within_rounding_error(residuals: Array, values: Array) -> bool:
    """Whether residuals of the values are rounding errors only."""
    return float(np.abs(residuals).max()) <= ROUNDING * float(np.abs(values).max())
