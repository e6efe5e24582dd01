"""Exact intervals: of medians, for comparisons within trials whatever the tails; of binomial rates.

Of n trials the ratios r_i = A_i / B_i of two regrets on the same rewards are independent draws of one law,
which may be skewed, with lost trials in it, even without a mean. What is estimated is its median:

    [r_(j), r_(n+1-j)],  j the largest with 2 P(Bin(n, 1/2) <= j-1) <= 1 - confidence

holds the median with at least that confidence, for every law and every n (each r_i lies below the median with
probability at most 1/2, and above it likewise). No resampling, no normal law. Several intervals hold together
when each has its share of what may go wrong (Bonferroni), however they depend on each other. With fewer than
1 + log2(1/(1 - confidence)) trials no such interval exists, and none is given.

The median does not see a policy that loses one trial in ten. So the ratio of the means is carried along, and
a verdict that it contradicts is not given: see claims.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rumormill.stats.bootstrap import Interval

Array = NDArray[np.float64]


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
