"""The trimmed mean: a sample too large for its rank counts as zero.

    mean(L) = (1/n) sum X_i 1{ |X_i|^p L <= u i },      i = rank of arrival, u >= E|X|^p

The threshold shrinks as L grows, so samples leave: sample i stays while L <= h_i = u i / |X_i|^p. A sample
that fails on arrival is out for good, but counts in n and in the ranks.

The paper prints the rule backwards (its Algorithm 3 lets samples enter as time passes, and its search keys
carry an exponent that the query does not): sample i is in once (|X_i|^p / i)^p <= u L. That reading is
kept as `TrimmedMean(variant="literal")` to show what it does. It is wrong: large samples return one after
the other, and no lemma covers it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

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
    check_sample,
    theory_power,
)
from rumormill.formulas import certain_size, leaving_level, literal_entry_level, power_of_size
from rumormill.validate import LARGEST_REWARD, one_of


@dataclass(frozen=True, kw_only=True)
class TrimmedMean(Estimator):
    """The trimmed mean; variant "literal" is the printed, wrong Algorithm 3 (with the same constant).

    Parameters
    ----------
    variant : "exact" | "literal", default "exact"
        The trimmed mean ("exact"), or the printed Algorithm 3 ("literal"), which is wrong.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.TrimmedMean().of([1.0, 0.5, 900.0], L=2.0, moments=rm.Moments(eps=0.5, u=2.0, rho=1.5))
    0.5

    References
    ----------
    Bubeck, Cesa-Bianchi and Lugosi (2013), lemma 1.
    """

    variant: Literal["exact", "literal"] = "exact"

    bounded_memory = True
    can_discount = True

    def __post_init__(self) -> None:
        one_of("variant", self.variant, ("exact", "literal"))

    @property
    def has_lemma(self) -> bool:  # type: ignore[override]
        return self.variant == "exact"

    def moment(self, moments: Moments) -> float:
        return moments.u

    def theory(self, moments: Moments) -> Theory:
        return Theory(c=theory_power(4.0, moments.p / moments.eps, moments))

    def valid(self, n: float, L: float, moments: Moments) -> bool:
        return n > 0

    def of(self, samples: Sequence[float], L: float, moments: Moments) -> float:
        check_level(L)
        u, p = moments.u, moments.p
        if self.variant == "exact":
            kept = [x for i, x in enumerate(samples, 1) if leaving_level(power_of_size(x, p), i, u) >= L]
        else:
            kept = [x for i, x in enumerate(samples, 1) if literal_entry_level(x, i, u, p) <= L]
        return math.fsum(kept) / len(samples) if len(samples) else math.inf

    def of_rows(self, samples: NDArray[np.float64], L: float, moments: Moments) -> NDArray[np.float64]:
        if self.variant != "exact":
            return super().of_rows(samples, L, moments)
        n = samples.shape[1]
        stays = np.abs(samples) ** moments.p * L <= moments.u * np.arange(1, n + 1)
        trimmed: NDArray[np.float64] = np.where(stays, samples, 0.0).sum(axis=1) / n
        return trimmed

    def lemma_covers(self, c: float, moments: Moments) -> bool:
        return self.has_lemma and c >= self.theory(moments).c * (1 - 1e-12)

    def online(self, moments: Moments, *, last_L: float = math.inf) -> OnlineTrimmed | OnlineLiteral:
        kind = OnlineTrimmed if self.variant == "exact" else OnlineLiteral
        return kind(float(moments.u), float(moments.p), last_L=last_L)


class _RankedStream(OnlineMean):
    """Ranks, a running sum, and a level L that may only grow: shared by both variants."""

    kind: ClassVar[str]

    def __init__(self, u: float, p: float, *, last_L: float = math.inf) -> None:
        check_level(last_L)
        self._u = u
        self._p = p
        self._last_L = last_L
        self._level = 0.0
        self._count = 0
        self._sum = 0.0
        self._heap: list[tuple[float, int, float]] = []  # (level, rank, sample)

    @property
    def count(self) -> int:
        return self._count

    @property
    def stored(self) -> int:
        """How many single samples are held in memory."""
        return len(self._heap)

    def merge(self, other: Self) -> None:
        """Not possible: the trimming rule depends on the rank of a sample in its stream."""
        raise InputError(
            "trimmed means cannot be merged: trimming depends on the rank of arrival, which merging "
            "changes, and trimmed samples are gone; update() one stream with the samples of both"
        )

    def _raise_level(self, L: float) -> None:
        if not self._level <= L <= self._last_L:
            raise InputError(
                f"L = {L!r} is not allowed: it may not shrink below {self._level!r}, the last one asked, "
                f"nor exceed last_L = {self._last_L!r}; start a new stream"
            )
        self._level = L

    def state(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "u": self._u,
            "p": self._p,
            "last_L": self._last_L if math.isfinite(self._last_L) else None,
            "level": self._level,
            "count": self._count,
            "sum": self._sum,
            "heap": [[level, rank, x] for level, rank, x in self._heap],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, cls.kind)
        last_L = state["last_L"]
        stream = cls(
            float(state["u"]), float(state["p"]), last_L=math.inf if last_L is None else float(last_L)
        )
        stream._level = float(state["level"])
        stream._count = int(state["count"])
        stream._sum = float(state["sum"])
        stream._heap = [(float(level), int(rank), float(x)) for level, rank, x in state["heap"]]
        return stream


class OnlineTrimmed(_RankedStream):
    """The trimmed mean of a stream: O(log n) per sample, O(L log n) samples stored when last_L is given.

    New samples wait until the next question brings its L. That question first takes out what has to leave
    (smallest h first, equal h by rank), then takes in the waiting samples in order of arrival; a sample that
    can never leave (h >= last_L) is added and forgotten. The order of the additions is part of the contract:
    the compiled engine repeats it, so that both get the same bits.

    A plain running sum loses little: with L > 0 no sample in it exceeds (u n / L)^(1/p), and 1/n times that
    is about the radius, so its rounding error is some 1e-16 sqrt(n) radii. Only a question at L near 0 takes
    in samples of any size, and the digits they cost are not regained when they leave.
    """

    kind: ClassVar[str] = "trimmed"

    # Samples without a query after which _forget_certain runs.
    _PATIENCE = 1 << 16

    def __init__(self, u: float, p: float, *, last_L: float = math.inf) -> None:
        super().__init__(u, p, last_L=last_L)
        self._pending: list[tuple[float, int, float]] = []
        self._patience = self._PATIENCE
        self._certain = 0.0  # no sample of this size, or smaller, ever leaves

    @property
    def stored(self) -> int:
        return len(self._heap) + len(self._pending)

    def update(self, x: float) -> None:
        self.extend((x,))

    def extend(self, xs: Sequence[float]) -> None:
        count, p, u, size = self._count, self._p, self._u, self._certain
        for x in xs:
            h = math.inf  # it never leaves: no power has to be computed
            if type(x) is not float or not -size <= x <= size:
                x = check_sample(x)
                size = min(certain_size(count + 1, u, p, self._last_L), LARGEST_REWARD)
                self._certain = size  # of later ranks it is larger
                h = h if abs(x) <= size else leaving_level(power_of_size(x, p), count + 1, u)
            self._count = count = count + 1
            if h >= self._level:  # else it fails on arrival, whatever the next question
                self._pending.append((h, count, x))
                if len(self._pending) >= self._patience:
                    self._forget_certain()

    def mean(self, L: float) -> float:
        self._raise_level(L)
        heap = self._heap
        while heap and heap[0][0] < L:
            self._sum -= heapq.heappop(heap)[2]
        if self._pending:
            last_L, total = self._last_L, self._sum
            for entry in self._pending:
                h, _, x = entry
                if h >= L:
                    total += x
                    if h < last_L:
                        heapq.heappush(heap, entry)
            self._sum = total
            self._pending.clear()
            self._patience = self._PATIENCE
        return self._sum / self._count if self._count else math.inf

    settle = mean

    def _forget_certain(self) -> None:
        """Bound the memory of a stream without queries: add what no future L can remove."""
        waiting = []
        for entry in self._pending:
            if entry[0] >= self._last_L:
                self._sum += entry[2]
            else:
                waiting.append(entry)
        self._pending = waiting
        self._patience = 2 * len(waiting) + self._PATIENCE

    def state(self) -> dict[str, Any]:
        # The levels of waiting samples can be infinite, which JSON has not: they are computed anew.
        return {
            **super().state(),
            "pending": [[rank, x] for _, rank, x in self._pending],
            "patience": self._patience,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        stream = super().from_state(state)
        for rank, x in state["pending"]:
            h = leaving_level(power_of_size(float(x), stream._p), int(rank), stream._u)
            stream._pending.append((h, int(rank), float(x)))
        stream._patience = int(state["patience"])
        return stream


class OnlineLiteral(_RankedStream):
    """The printed Algorithm 3: samples wait in a heap and enter as L grows. Wrong; kept for comparison."""

    kind: ClassVar[str] = "trimmed-literal"

    def update(self, x: float) -> None:
        x = check_sample(x)
        self._count += 1
        level = literal_entry_level(x, self._count, self._u, self._p)
        if level <= self._level:
            self._sum += x
        elif level <= self._last_L and math.isfinite(level):
            heapq.heappush(self._heap, (level, self._count, x))

    def mean(self, L: float) -> float:
        self._raise_level(L)
        heap = self._heap
        while heap and heap[0][0] <= L:
            self._sum += heapq.heappop(heap)[2]
        return self._sum / self._count if self._count else math.inf
