"""Catoni's bound: an upper bound on the mean by itself, with no estimate plus radius behind it.

    index(L) = the theta with  sum phi(lambda (X_i - theta)) + n ln(1 + C_p rho lambda^p) + L = 0

    lambda = (L/(n eps C_p rho))^(1/p),   phi(y) = -ln(1 - y + C_p |y|^p) up to its maximum, then constant

with C_p of Catoni's mean and rho >= E|X - mu|^p. By Markov's inequality P(index < mu) <= e^-L for every
n >= 1 and every law with that moment: the tightest of the indices with a proof (for large n it lies
p C_p^(1/p) eps^(-eps/p) rho^(1/p) (L/n)^(eps/p) above the mean). Large rewards have bounded influence on it,
large losses a logarithmic one.

It goes through all samples, so it is worked out again only once n or L has grown by 2 % since the last time;
in between it is the bound of that earlier n and L. For the reference engine only. Its `mean` is the index
less the radius of large n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rumormill.arms.base import Moments
from rumormill.estimators.base import OwnIndexEstimator, Terms, check_kind, check_level, require_moments
from rumormill.estimators.storage import SLACK, StoreAllMean, outgrown
from rumormill.formulas import bound_allowance, bound_phi, bound_reach, bound_width, catoni_curvature

PRECISION = 1e-13
MOST_STEPS = 200


@dataclass(frozen=True, kw_only=True)
class CatoniBound(OwnIndexEstimator):
    """Upper confidence bound, the root of a one-sided sum; needs the central moment rho, stores every sample.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.CatoniBound().brings_index, rm.CatoniBound().bounded_memory
    (True, False)

    References
    ----------
    After Bhatt et al. (2022) and Wang and Ramdas (2023); the constants are derived in docs/semantics.md.
    """

    has_lemma = True
    slack = SLACK

    def valid(self, n: float, L: float, moments: Moments) -> bool:
        return n >= 1

    def stream_for(self, terms: Terms) -> OnlineCatoniBound:
        moments = require_moments(self, terms.moments)
        return OnlineCatoniBound(float(moments.eps), float(moments.rho))


class OnlineCatoniBound(StoreAllMean):
    """The bound of a stream, and at how many samples and which L it was worked out."""

    def __init__(self, eps: float, rho: float, samples: Sequence[float] = ()) -> None:
        super().__init__(samples)
        self._eps, self._rho = eps, rho
        self._n, self._L = 0, 0.0
        self._bound = math.inf

    @property
    def parameters(self) -> dict[str, float]:
        return {"eps": self._eps, "rho": self._rho}

    def mean(self, L: float) -> float:
        index = self.index(L)
        if not math.isfinite(index):
            return math.inf
        return index - bound_reach(self._n, self._L, self._eps, self._rho, catoni_curvature(self._eps))

    def index(self, L: float) -> float:
        check_level(L)
        n = self._samples.count
        if n and (outgrown(n, self._n) or outgrown(L, self._L)):
            self._bound = _root(self._samples.values, L, self._eps, self._rho, self._bound)
            self._n, self._L = n, L
        return self._bound

    def merge(self, other: Self) -> None:
        super().merge(other)
        self._n = 0

    def state(self) -> dict[str, Any]:
        plain = {**self.parameters, "n": self._n, "L": self._L}
        bound = self._bound if math.isfinite(self._bound) else None
        samples = self._samples.values.tolist()
        return {"kind": "catoni-bound", **plain, "bound": bound, "samples": samples}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "catoni-bound")
        stream = cls(float(state["eps"]), float(state["rho"]), state["samples"])
        stream._n, stream._L = int(state["n"]), float(state["L"])
        stream._bound = math.inf if state["bound"] is None else float(state["bound"])
        return stream


def _root(x: NDArray[np.float64], L: float, eps: float, rho: float, start: float) -> float:
    """The theta where the sum is zero: Newton, kept inside a bracket that only shrinks. At L = 0 the mean."""
    curvature = catoni_curvature(eps)
    width = bound_width(len(x), L, eps, rho, curvature)
    if width == 0.0:
        return math.fsum(x) / len(x)
    allowance = bound_allowance(len(x), L, eps)

    def sums(theta: float) -> tuple[float, float]:
        value, slope = bound_phi(width * (x - theta), eps, curvature)
        return float(value.sum()) + allowance, width * float(slope.sum())

    low, beyond = float(x.min()), 1.0 / width  # at the least sample no term is negative
    high = float(x.max()) + beyond
    while sums(high)[0] > 0.0:
        low, beyond = high, 2.0 * beyond
        high = float(x.max()) + beyond
        if not math.isfinite(high):
            return math.inf
    theta = start if low < start < high else low / 2.0 + high / 2.0
    for _ in range(MOST_STEPS):
        f, slope = sums(theta)
        low, high = (theta, high) if f > 0.0 else (low, theta)
        target = theta + f / slope if slope > 0.0 else math.inf
        if abs(target - theta) <= PRECISION * (abs(theta) + 1.0 / width):
            return target
        theta = target if low < target < high else low / 2.0 + high / 2.0
    return high
