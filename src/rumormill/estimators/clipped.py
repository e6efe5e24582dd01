"""The clipped mean: samples larger than (tau u n / L)^(1/p) count as that much.

    mean(L) = (1/n) sum clip(X_i, +-B),   B = (tau u n / L)^(1/p),   u >= E|X|^p

Lemma: with s > 0 and b = max{(e^s - 1 - s)/s^p, (1/p) ((1 - e^-s) p/eps)^-eps} every real y has e^clip(y,
-s, s) <= 1 + y + b |y|^p. Hence P(mean - mu > u^(1/p) (c L/n)^(eps/p)) <= e^-L for every n >= 1, and the
same for mu - mean, with tau = s^p eps b and c = p^(p/eps) b^(1/eps) / eps: between 1.5 and 2.5, where the
trimmed mean needs 16 to millions. s is the one of the least b, to four digits.

The level grows with n, the number of samples, not with their rank: old samples are taken in again. A
TopSketch does it in O(1) amortised. It keeps 128 samples, and more where L is so large, or eps so small, that
more than 128 could exceed the level: fewer than L/tau do in the mean, and enough room is left for chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rumormill.arms.base import Moments
from rumormill.estimators.base import (
    Estimator,
    OnlineMean,
    Theory,
    TopSketch,
    check_kind,
    check_level,
    check_same_kind,
    check_sample,
    theory_power,
)
from rumormill.formulas import clip_level, clip_room, clipping_curvature, clipping_factor, clipping_point

LEAST_ROOM = 128
# Without a horizon: 2 ln t is below it for t < 7e10.
LARGEST_LEVEL = 50.0


@lru_cache(maxsize=64)
def sketch_room(p: float, last_L: float) -> int:
    """How many of the largest samples to keep, if no question goes beyond last_L."""
    return max(LEAST_ROOM, clip_room(p, last_L if math.isfinite(last_L) else LARGEST_LEVEL))


@lru_cache(maxsize=64)
def clip_budget(u: float, p: float) -> float:
    """tau u."""
    return clipping_factor(p) * u


@dataclass(frozen=True, kw_only=True)
class ClippedMean(Estimator):
    """The clipped mean, with the smallest constant that holds for every law with these moments.

    Examples
    --------
    >>> import rumormill as rm
    >>> round(rm.ClippedMean().theory(rm.Moments(eps=1.0, u=2.0, rho=1.5)).c, 3)
    2.411

    References
    ----------
    After Bubeck, Cesa-Bianchi and Lugosi (2013); the lemma is derived in the module and in
    docs/semantics.md.
    """

    bounded_memory = True
    can_discount = True

    def moment(self, moments: Moments) -> float:
        return moments.u

    def theory(self, moments: Moments) -> Theory:
        p, eps = moments.p, moments.eps
        b = clipping_curvature(clipping_point(p), p)
        return Theory(c=theory_power(p, p / eps, moments) * math.pow(b, 1.0 / eps) / eps)

    def valid(self, n: float, L: float, moments: Moments) -> bool:
        return n > 0

    def lemma_covers(self, c: float, moments: Moments) -> bool:
        return c >= self.theory(moments).c * (1 - 1e-12)

    def of(self, samples: Sequence[float], L: float, moments: Moments) -> float:
        check_level(L)
        if not len(samples):
            return math.inf
        level = clip_level(len(samples), L, clip_budget(moments.u, moments.p), moments.p)
        return math.fsum(min(max(x, -level), level) for x in samples) / len(samples)

    def of_rows(self, samples: NDArray[np.float64], L: float, moments: Moments) -> NDArray[np.float64]:
        level = clip_level(samples.shape[1], L, clip_budget(moments.u, moments.p), moments.p)
        mean: NDArray[np.float64] = np.clip(samples, -level, level).mean(axis=1)
        return mean

    def online(self, moments: Moments, *, last_L: float = math.inf) -> OnlineClipped:
        budget, p = clip_budget(moments.u, moments.p), moments.p
        return OnlineClipped(budget, p, sketch_room(p, last_L))


class OnlineClipped(OnlineMean):
    """The clipped mean of a stream."""

    def __init__(self, budget: float, p: float, room: int) -> None:
        self._budget = budget
        self._p = p
        self._sketch = TopSketch(room)

    @property
    def count(self) -> int:
        return self._sketch.count

    def update(self, x: float) -> None:
        self._sketch.add(check_sample(x))

    def mean(self, L: float) -> float:
        check_level(L)
        n = self._sketch.count
        if not n:
            return math.inf
        level = clip_level(n, L, self._budget, self._p)
        return self._sketch.clipsum(level, level) / n

    def merge(self, other: Self) -> None:
        """Append the other stream: the order of arrival plays no part."""
        check_same_kind(self, other)
        self._sketch.merge(other._sketch)

    def state(self) -> dict[str, Any]:
        return {"kind": "clipped", "budget": self._budget, "p": self._p, "sketch": self._sketch.state()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "clipped")
        stream = cls(float(state["budget"]), float(state["p"]), 1)
        stream._sketch = TopSketch.from_state(state["sketch"])
        return stream
