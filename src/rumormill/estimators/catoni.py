"""Catoni's mean: the root of a sum in which a large sample counts by its logarithm; and Catoni's bound.

    sum psi(a (X_i - theta)) = 0,    psi(y) = sign(y) ln(1 + |y| + C_p |y|^p)

    eps = 1:  C_p = 1/2,  a = sqrt(2 L (n - 2 L) / v) / n,  radius sqrt(4 v L / n) for n >= 4 L  (c = 4);
              not defined for n <= 2 L.
    eps < 1:  C_p = (eps/p)^(p/2) ((1 - eps)/eps)^(1 - p/2),  a = (L / (n eps 2^eps C_p v))^(1/p),
              radius C v^(1/p) (L/n)^(eps/p) with C = 1.1 (2^eps C_p)^(1/p) p eps^(-eps/p)  (c = C^(p/eps)),
              as long as this radius is at most (0.1 p v)^(1/p).

Here v >= E|X - mu|^p. At L = 0, a is 0 and the root is read as its limit for a -> 0, the empirical mean.

A question goes through all samples, so T rounds of it cost T^2. With `slack` > 0 the root is kept until n or
L has grown by that share (the rule of Catoni's bound; 0.02 is a good choice): some 50 ln n questions, linear
in T. In between it is the estimate of that earlier n and L, and the lemma's radius holds with theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from rumormill.arms.base import Moments
from rumormill.estimators.base import (
    SLACK,
    Estimator,
    OwnIndexEstimator,
    StoreAllMean,
    Terms,
    Theory,
    check_kind,
    check_level,
    outgrown,
    require_moments,
    theory_power,
)
from rumormill.formulas import (
    bound_allowance,
    bound_phi,
    bound_reach,
    bound_width,
    catoni_curvature,
    catoni_defined,
    catoni_psi,
    catoni_step,
    catoni_width,
)
from rumormill.validate import between

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Catoni(Estimator):
    """Catoni's mean for a finite variance (eps = 1), and its extension to eps < 1.

    Parameters
    ----------
    slack : float, default 0.0
        Relative growth of n or L after which the root is recomputed; 0: at every call, as in the
        paper.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.Catoni().theory(rm.Moments(eps=1.0, u=2.0, rho=1.5)).c
    4.0

    References
    ----------
    Catoni (2012), "Challenging the empirical mean and empirical variance"; Bubeck, Cesa-Bianchi and Lugosi
    (2013), lemma 3.
    """

    slack: float = 0.0

    def __post_init__(self) -> None:
        between("slack", self.slack, 0, 1)

    def moment(self, moments: Moments) -> float:
        return moments.rho

    def theory(self, moments: Moments) -> Theory:
        if moments.eps == 1.0:
            return Theory(c=4.0)
        return Theory(c=theory_power(_factor(moments), moments.p / moments.eps, moments))

    def valid(self, n: float, L: float, moments: Moments) -> bool:
        if n < 1:
            return False
        if moments.eps == 1.0:
            return n >= 4.0 * L
        # Both sides of radius <= (0.1 p v)^(1/p), without their common v^(1/p).
        p = moments.p
        return _factor(moments) * math.pow(L / n, moments.eps / p) <= math.pow(0.1 * p, 1.0 / p)

    def defined(self, n: float, L: float, moments: Moments) -> bool:
        return catoni_defined(n, L, moments.eps)

    def of(self, samples: Sequence[float], L: float, moments: Moments) -> float:
        check_level(L)
        x = np.asarray(samples, dtype=np.float64)
        if not self.defined(len(x), L, moments):
            return math.inf
        return _root(x, L, moments.eps, moments.rho, float(x[len(x) // 2]))

    def online(self, moments: Moments, *, last_L: float = math.inf) -> OnlineCatoni:
        return OnlineCatoni(float(moments.eps), float(moments.rho), slack=float(self.slack))


def _factor(moments: Moments) -> float:
    """C of the eps < 1 radius C v^(1/p) (L/n)^(eps/p)."""
    eps, p = moments.eps, moments.p
    return 1.1 * math.pow(math.pow(2.0, eps) * catoni_curvature(eps), 1.0 / p) * p * math.pow(eps, -eps / p)


class OnlineCatoni(StoreAllMean):
    """Catoni's mean of a stream: keeps every sample; a question is a few Newton steps over all of them."""

    def __init__(self, eps: float, v: float, samples: Sequence[float] = (), *, slack: float = 0.0) -> None:
        super().__init__(samples)
        self._eps, self._v, self._slack = eps, v, slack
        self._last_root: float | None = None
        self._n, self._L = 0, 0.0  # for which it was worked out; 0: for none that counts any more

    @property
    def parameters(self) -> dict[str, float]:
        return {"eps": self._eps, "v": self._v, "slack": self._slack}

    def mean(self, L: float) -> float:
        check_level(L)
        x = self._samples.values
        if not catoni_defined(len(x), L, self._eps):
            self._n = 0
            return math.inf
        if self._last_root is not None and self._slack and not self._outgrown(L):
            return self._last_root
        start = float(x[len(x) // 2]) if self._last_root is None else self._last_root
        self._last_root = _root(x, L, self._eps, self._v, start)
        self._n, self._L = len(x), L
        return self._last_root

    def _outgrown(self, L: float) -> bool:
        return outgrown(self.count, self._n, self._slack) or outgrown(L, self._L, self._slack)

    def merge(self, other: Self) -> None:
        super().merge(other)
        self._n = 0

    def state(self) -> dict[str, Any]:
        return {
            "kind": "catoni",
            **self.parameters,
            "samples": self._samples.values.tolist(),
            "last_root": self._last_root,
            "n": self._n,
            "L": self._L,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "catoni")
        stream = cls(float(state["eps"]), float(state["v"]), state["samples"], slack=float(state["slack"]))
        stream._n, stream._L = int(state["n"]), float(state["L"])
        last_root = state["last_root"]
        stream._last_root = None if last_root is None else float(last_root)
        return stream


def _root(x: Floats, L: float, eps: float, v: float, start: float) -> float:
    """The theta with sum psi(a (x - theta)) = 0: Newton, kept inside a bracket that only shrinks."""
    curvature = catoni_curvature(eps)
    a = catoni_width(len(x), L, eps, v, curvature)
    if a == 0.0:
        return math.fsum(x) / len(x)
    low, high = float(x.min()), float(x.max())
    theta, steps, found = min(max(start, low), high), 0, False
    while low < high and not found:
        y = a * (x - theta)
        value, slope = catoni_psi(np.abs(y), eps, curvature)
        f, size, total = float(np.copysign(value, y).sum()), float(value.sum()), float(slope.sum())
        theta, low, high, found = catoni_step(theta, low, high, a, f, size, total, steps)
        steps += 1
    return theta


PRECISION = 1e-13
MOST_STEPS = 200


@dataclass(frozen=True, kw_only=True)
class CatoniBound(OwnIndexEstimator):
    """Upper confidence bound, the root of a one-sided sum; needs the central moment rho, stores every sample.

    The bound stands by itself, with no estimate plus radius behind it:

        index(L) = the theta with  sum phi(lambda (X_i - theta)) + n ln(1 + C_p rho lambda^p) + L = 0

        lambda = (L/(n eps C_p rho))^(1/p),   phi(y) = -ln(1 - y + C_p |y|^p) up to its maximum, then constant

    with C_p of Catoni's mean and rho >= E|X - mu|^p. By Markov's inequality P(index < mu) <= e^-L for every
    n >= 1 and every law with that moment: the tightest of the indices with a proof (for large n it lies p
    C_p^(1/p) eps^(-eps/p) rho^(1/p) (L/n)^(eps/p) above the mean). Large rewards have bounded influence on
    it, large losses a logarithmic one.

    It goes through all samples, so it is worked out again only once n or L has grown by 2 % since the last
    time; in between it is the bound of that earlier n and L. For the reference engine only. Its `mean` is
    the index less the radius of large n.

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
            self._bound = _bound_root(self._samples.values, L, self._eps, self._rho, self._bound)
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


def _bound_root(x: NDArray[np.float64], L: float, eps: float, rho: float, start: float) -> float:
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
