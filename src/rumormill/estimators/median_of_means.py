"""The median of means: average in groups, then take the median of the averages; and the bucket median.

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
from rumormill.errors import InputError
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


BUCKETS = 1024
MOST_GROUPS = BUCKETS // 2


@dataclass(frozen=True, kw_only=True)
class BucketMedian(Estimator):
    """The median of means over 1024 buckets: bounded memory, and nothing is clipped around zero.

    Samples are dealt into buckets, groups are made of buckets:

        sample i = 0, 1, ... goes to bucket i mod 1024; with k = max(1, floor(min(1 + 8 L, n/2))) groups
        (at most 512), bucket b is in group b mod k; the median of the k group means, for even k the average
        of the two middle ones.

    A stream keeps 1024 sums, whatever n. It is centred nowhere: no sample is clipped, so means far from
    zero cost nothing. Its lemma is that of the median of means, whose groups have N = floor(n/k) samples:
    here the smallest has at least floor(1024/k) floor(n/1024) >= (2/3)(1/2) n/k of them (for n < 1024
    floor(n/k)), so c is three times as large. Proved for k = floor(1 + 8 L) <= 512, that is L < 64.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.BucketMedian().bounded_memory, rm.MedianOfMeans().bounded_memory
    (True, False)

    References
    ----------
    docs/semantics.md: the bucket median. Bubeck, Cesa-Bianchi and Lugosi (2013), lemma 2: its lemma.
    """

    bounded_memory = True

    def moment(self, moments: Moments) -> float:
        return moments.rho

    def theory(self, moments: Moments) -> Theory:
        return Theory(c=48.0 * theory_power(12.0, 1.0 / moments.eps, moments), shift=0.125)

    def valid(self, n: float, L: float, moments: Moments) -> bool:
        return n >= 16.0 * L + 2.0 and 1.0 + 8.0 * L <= MOST_GROUPS

    def of(self, samples: Sequence[float], L: float, moments: Moments) -> float:
        stream = self.online(moments)
        for x in samples:
            stream.update(float(x))
        return stream.mean(L)

    def online(self, moments: Moments, *, last_L: float = math.inf) -> OnlineBucketMedian:
        return OnlineBucketMedian()


class OnlineBucketMedian(OnlineMean):
    """The bucket median of a stream: a sum per bucket."""

    def __init__(self) -> None:
        self._count = 0
        self._sums = np.zeros(BUCKETS)

    @property
    def count(self) -> int:
        return self._count

    @property
    def stored(self) -> int:
        return min(self._count, BUCKETS)

    def update(self, x: float) -> None:
        self._sums[self._count % BUCKETS] += check_sample(x)
        self._count += 1

    def mean(self, L: float) -> float:
        check_level(L)
        n, used = self._count, min(self._count, BUCKETS)
        if n == 0:
            return math.inf
        k = min(group_count(n, L), MOST_GROUPS)
        group = np.arange(used) % k
        sizes = n // BUCKETS + (np.arange(used) < n % BUCKETS)
        means = np.sort(np.bincount(group, self._sums[:used]) / np.bincount(group, sizes))
        return float(means[k // 2]) if k % 2 else float(means[k // 2 - 1] + means[k // 2]) / 2

    def merge(self, other: Self) -> None:
        """Not lawful: which bucket a sample belongs to depends on its rank."""
        raise InputError("bucket medians cannot be merged: buckets go by the order of arrival")

    def state(self) -> dict[str, Any]:
        return {"kind": "bucket-median", "count": self._count, "sums": self._sums[: self.stored].tolist()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "bucket-median")
        stream = cls()
        stream._count = int(state["count"])
        stream._sums[: len(state["sums"])] = state["sums"]
        return stream
