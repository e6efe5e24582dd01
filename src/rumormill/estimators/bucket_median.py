"""The median of means in bounded memory: samples are dealt into buckets, groups are made of buckets.

    sample i = 0, 1, ... goes to bucket i mod 1024; with k = max(1, floor(min(1 + 8 L, n/2))) groups (at most
    512), bucket b is in group b mod k; the median of the k group means, for even k the average of the two
    middle ones.

A stream keeps 1024 sums, whatever n. It is centred nowhere: no sample is clipped, so means far from zero cost
nothing. Its lemma is that of the median of means, whose groups have N = floor(n/k) samples: here the smallest
has at least floor(1024/k) floor(n/1024) >= (2/3)(1/2) n/k of them (for n < 1024 floor(n/k)), so c is three
times as large. Proved for k = floor(1 + 8 L) <= 512, that is L < 64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rumormill.arms.base import Moments
from rumormill.errors import InputError
from rumormill.estimators.base import (
    Estimator,
    OnlineMean,
    Theory,
    check_kind,
    check_level,
    check_sample,
    theory_power,
)
from rumormill.formulas import group_count

BUCKETS = 1024
MOST_GROUPS = BUCKETS // 2


@dataclass(frozen=True, kw_only=True)
class BucketMedian(Estimator):
    """The median of means over 1024 buckets: bounded memory, and nothing is clipped around zero.

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
