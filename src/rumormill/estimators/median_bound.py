"""The median bound: an order statistic as index. For symmetric laws; no moment, any tail.

    index(L) = X_(j), the j-th smallest of n samples, j = ceil(n/2 + sqrt(n L/2));      +inf if j > n

If X is symmetric about mu, P(X_(j) < mu) <= P(Bin(n, 1/2) >= j) <= e^-L, for any tail, even without a mean.
For skewed laws it compares medians, not means, and may prefer the wrong arm permanently.

Samples are counted in 4096 bins, even around 0 and logarithmic outside; the index is the upper edge of the
bin of X_(j), so it stays valid, at most 0.7 % of max(scale, |x|) too high. `scale` is the order of
magnitude of the spread: samples below -10^6 scale share the first bin; if X_(j) is above 10^6 scale, there is
no edge above it, and the index is +inf. O(1) amortised; mergeable.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import Any, Self

from rumormill.errors import InputError
from rumormill.estimators.base import (
    OnlineMean,
    OwnIndexEstimator,
    Terms,
    check_kind,
    check_level,
    check_same_kind,
    check_sample,
)
from rumormill.formulas import HISTOGRAM_BINS, histogram_bin, histogram_edge, upper_rank
from rumormill.validate import between


@dataclass(frozen=True, kw_only=True)
class MedianBound(OwnIndexEstimator):
    """An upper bound on the median, which is the mean of a symmetric law.

    Parameters
    ----------
    scale : float, default 1.0
        Width of the bins near zero, in the unit of rewards: the typical size of a reward.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.MedianBound(scale=0.1).symmetric_only
    True

    References
    ----------
    Conover (1999), "Practical nonparametric statistics", section 3.2: intervals of a median.
    """

    scale: float = 1.0

    has_lemma = True
    needs_moments = False
    bounded_memory = True
    symmetric_only = True

    def __post_init__(self) -> None:
        between("scale", self.scale, 1e-90, 1e90)

    def stream_for(self, terms: Terms) -> OnlineMedian:
        return OnlineMedian(float(self.scale))


class OnlineMedian(OnlineMean):
    """A histogram, and the bin of the last order statistic."""

    def __init__(self, scale: float) -> None:
        self._scale = scale
        self._count = 0
        self._counts = array("l", [0]) * (HISTOGRAM_BINS + 1)
        self._place = 0
        self._below = 0  # samples in the bins below the place

    @property
    def count(self) -> int:
        return self._count

    def update(self, x: float) -> None:
        at = histogram_bin(check_sample(x), self._scale)
        self._count += 1
        self._counts[at] += 1
        if at < self._place:
            self._below += 1

    def mean(self, L: float) -> float:
        """The upper edge of the median's bin, the j = ceil(n/2)-th smallest; at most the end of the grid."""
        check_level(L)
        if not self._count:
            return math.inf
        place = self._place_of(math.ceil(self._count / 2))
        return histogram_edge(min(place, HISTOGRAM_BINS - 1), self._scale)

    def index(self, L: float) -> float:
        check_level(L)
        j = upper_rank(self._count, L)
        return histogram_edge(self._place_of(j), self._scale) if 1 <= j <= self._count else math.inf

    def _place_of(self, j: float) -> int:
        """The bin of the j-th smallest sample."""
        while self._below >= j:
            self._place -= 1
            self._below -= self._counts[self._place]
        while self._below + self._counts[self._place] < j:
            self._below += self._counts[self._place]
            self._place += 1
        return self._place

    def merge(self, other: Self) -> None:
        """Counts add; both need one scale."""
        check_same_kind(self, other)
        if other._scale != self._scale:
            raise InputError(f"histograms of scale {self._scale!r} and {other._scale!r} cannot be merged")
        self._counts = array("l", map(sum, zip(self._counts, other._counts, strict=True)))
        self._count += other._count
        self._place = self._below = 0

    def state(self) -> dict[str, Any]:
        used = [[at, count] for at, count in enumerate(self._counts) if count]
        return {"kind": "median-bound", "scale": self._scale, "counts": used}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "median-bound")
        stream = cls(float(state["scale"]))
        for at, count in state["counts"]:
            stream._counts[int(at)] = int(count)
            stream._count += int(count)
        return stream
