"""The median of means: average in groups, then take the median of the averages.

    k = max(1, floor(min(1 + 8 L, n/2))) groups of N = floor(n/k) consecutive samples, in order of arrival;
    the rest is unused. For even k the median is the average of the two middle ones.

Its lemma: radius (12 v)^(1/p) (16 (L + 1/8) / n)^(eps/p) with v >= E|X - mu|^p, for n >= 16 L + 2, that is
c = 16 * 12^(1/eps) with L + 1/8 in place of L.

Prefix sums give a group's sum as a difference, so a question costs O(k), not O(n); and the groups stay what
they are while k and N do, that is for k samples: O(1) a sample. Plain prefix sums would
fail on heavy tails: after one sample of 1e12 every later difference has lost twelve digits. They are kept
as pairs of floats (hi + lo, some 32 digits), so that a group's sum is good to 1e-31 or so of the largest
prefix sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rumormill.arms.base import Moments
from rumormill.estimators.base import (
    Estimator,
    OnlineMean,
    Theory,
    check_kind,
    check_level,
    check_same_kind,
    check_sample,
    theory_power,
)
from rumormill.formulas import add_to_prefix, group_count


@dataclass(frozen=True, kw_only=True)
class MedianOfMeans(Estimator):
    """The median of the means of consecutive groups.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.MedianOfMeans().theory(rm.Moments(eps=1.0, u=2.0, rho=1.5)).c
    192.0

    References
    ----------
    Bubeck, Cesa-Bianchi and Lugosi (2013), lemma 2.
    """

    def moment(self, moments: Moments) -> float:
        return moments.rho

    def theory(self, moments: Moments) -> Theory:
        return Theory(c=16.0 * theory_power(12.0, 1.0 / moments.eps, moments), shift=0.125)

    def valid(self, n: float, L: float, moments: Moments) -> bool:
        return n >= 16.0 * L + 2.0

    def of(self, samples: Sequence[float], L: float, moments: Moments) -> float:
        check_level(L)
        n = len(samples)
        if n == 0:
            return math.inf
        k = group_count(n, L)
        size = n // k
        means = sorted(math.fsum(samples[g * size : (g + 1) * size]) / size for g in range(k))
        return _median_of_sorted(means)

    def of_rows(self, samples: NDArray[np.float64], L: float, moments: Moments) -> NDArray[np.float64]:
        n = samples.shape[1]
        k = group_count(n, L)
        used = samples[:, : k * (n // k)].reshape(len(samples), k, n // k)
        median: NDArray[np.float64] = np.median(used.mean(axis=2), axis=1)
        return median

    def online(self, moments: Moments, *, last_L: float = math.inf) -> OnlineMedianOfMeans:
        return OnlineMedianOfMeans()


class OnlineMedianOfMeans(OnlineMean):
    """Median of means of a stream, by prefix sums hi + lo; memory grows by 16 bytes per sample."""

    def __init__(self) -> None:
        self._count = 0
        # Row 0 is hi, row 1 is lo; entry i is the sum of the first i samples.
        self._prefix = np.zeros((2, 64))
        self._groups, self._median = (0, 0), math.inf

    @property
    def count(self) -> int:
        return self._count

    def update(self, x: float) -> None:
        n, x = self._count, check_sample(x)
        hi, lo = float(self._prefix[0, n]), float(self._prefix[1, n])
        self._reserve(n + 1)
        self._prefix[:, n + 1] = add_to_prefix(hi, lo, x)
        self._count = n + 1

    def mean(self, L: float) -> float:
        check_level(L)
        n = self._count
        if n == 0:
            return math.inf
        k = group_count(n, L)
        size = n // k
        if (k, size) == self._groups:  # the same groups as before: a new sample is mostly in none of them yet
            return self._median
        ends = self._prefix[:, : k * size + 1 : size]
        steps = ends[:, 1:] - ends[:, :-1]
        means = (steps[0] + steps[1]) / size
        means.sort()
        self._groups, self._median = (k, size), _median_of_sorted(means)
        return self._median

    def merge(self, other: Self) -> None:
        """Append the other stream: its samples come behind the ones here, in their order."""
        check_same_kind(self, other)
        n, m = self._count, other._count
        self._reserve(n + m)
        hi, lo = self._prefix[0, n], self._prefix[1, n]
        add_hi, add_lo = other._prefix[:, 1 : m + 1]
        self._prefix[:, n + 1 : n + m + 1] = add_to_prefix(hi, lo + add_lo, add_hi)
        self._count = n + m

    def _reserve(self, n: int) -> None:
        if n >= self._prefix.shape[1]:
            wider = np.zeros((2, 2 * n))
            wider[:, : self._count + 1] = self._prefix[:, : self._count + 1]
            self._prefix = wider

    def state(self) -> dict[str, Any]:
        hi, lo = self._prefix[:, 1 : self._count + 1].tolist()
        return {"kind": "median-of-means", "hi": hi, "lo": lo}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "median-of-means")
        stream = cls()
        n = len(state["hi"])
        stream._reserve(n)
        stream._prefix[:, 1 : n + 1] = [state["hi"], state["lo"]]
        stream._count = n
        return stream


def _median_of_sorted(means: Sequence[float] | np.ndarray[Any, np.dtype[np.float64]]) -> float:
    k = len(means)
    middle = k // 2
    return float(means[middle]) if k % 2 else float(means[middle - 1] + means[middle]) / 2
