"""Catoni's mean: the root of a sum in which a large sample counts by its logarithm.

    sum psi(a (X_i - theta)) = 0,    psi(y) = sign(y) ln(1 + |y| + C_p |y|^p)

    eps = 1:  C_p = 1/2,  a = sqrt(2 L (n - 2 L) / v) / n,  radius sqrt(4 v L / n) for n >= 4 L  (c = 4);
              not defined for n <= 2 L.
    eps < 1:  C_p = (eps/p)^(p/2) ((1 - eps)/eps)^(1 - p/2),  a = (L / (n eps 2^eps C_p v))^(1/p),
              radius C v^(1/p) (L/n)^(eps/p) with C = 1.1 (2^eps C_p)^(1/p) p eps^(-eps/p)  (c = C^(p/eps)),
              as long as this radius is at most (0.1 p v)^(1/p).

Here v >= E|X - mu|^p. At L = 0, a is 0 and the root is read as its limit for a -> 0, the empirical mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from rumormill.arms.moments import Moments
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

Floats = npt.NDArray[np.float64]


def curvature(eps: float) -> float:
    """C_p, the factor of |y|^p in psi; 1/2 at eps = 1, where it is also the limit."""
    p = 1.0 + eps
    return math.pow(eps / p, p / 2) * math.pow((1.0 - eps) / eps, 1.0 - p / 2)


def inverse_width(n: int, L: float, eps: float, v: float) -> float:
    """a: samples count in full within about 1/a of the root."""
    if eps == 1.0:
        return math.sqrt(2.0 * L * (n - 2.0 * L) / v) / n
    return math.pow(L / (n * eps * math.pow(2.0, eps) * curvature(eps) * v), 1.0 / (1.0 + eps))


@dataclass(frozen=True, kw_only=True)
class Catoni(Estimator):
    """Catoni's mean for a finite variance (eps = 1), and its extension to eps < 1."""

    name: ClassVar[str] = "catoni"

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
        return n >= 1 and (moments.eps < 1.0 or n > 2.0 * L)

    def of(self, samples: Sequence[float], L: float, moments: Moments) -> float:
        check_level(L)
        x = np.asarray(samples, dtype=np.float64)
        if not self.defined(len(x), L, moments):
            return math.inf
        return _root(x, inverse_width(len(x), L, moments.eps, moments.rho), moments.eps, float(np.median(x)))

    def online(self, moments: Moments, *, last_L: float = math.inf) -> OnlineCatoni:
        return OnlineCatoni(float(moments.eps), float(moments.rho))


def _factor(moments: Moments) -> float:
    """C of the eps < 1 radius C v^(1/p) (L/n)^(eps/p)."""
    eps, p = moments.eps, moments.p
    return 1.1 * math.pow(math.pow(2.0, eps) * curvature(eps), 1.0 / p) * p * math.pow(eps, -eps / p)


class OnlineCatoni(OnlineMean):
    """Catoni's mean of a stream: keeps every sample; a question is a few Newton steps over all of them."""

    def __init__(self, eps: float, v: float) -> None:
        self._eps = eps
        self._v = v
        self._count = 0
        self._samples = np.empty(64)
        self._last_root: float | None = None

    @property
    def count(self) -> int:
        return self._count

    def update(self, x: float) -> None:
        x = check_sample(x)
        self._reserve(self._count + 1)
        self._samples[self._count] = x
        self._count += 1

    def mean(self, L: float) -> float:
        check_level(L)
        n = self._count
        if n == 0 or (self._eps == 1.0 and n <= 2.0 * L):
            return math.inf
        x = self._samples[:n]
        start = float(np.median(x)) if self._last_root is None else self._last_root
        self._last_root = _root(x, inverse_width(n, L, self._eps, self._v), self._eps, start)
        return self._last_root

    def merge(self, other: Self) -> None:
        """Append the other stream."""
        check_same_kind(self, other)
        if (self._eps, self._v) != (other._eps, other._v):
            raise InputError(
                f"streams with (eps, v) = {(self._eps, self._v)} and {(other._eps, other._v)} cannot be "
                "merged: both must have the same moment bounds"
            )
        n = self._count + other._count
        self._reserve(n)
        self._samples[self._count : n] = other._samples[: other._count]
        self._count = n

    def _reserve(self, n: int) -> None:
        if n > len(self._samples):
            wider = np.empty(2 * n)
            wider[: self._count] = self._samples[: self._count]
            self._samples = wider

    def state(self) -> dict[str, Any]:
        return {
            "kind": "catoni",
            "eps": self._eps,
            "v": self._v,
            "samples": self._samples[: self._count].tolist(),
            "last_root": self._last_root,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "catoni")
        stream = cls(float(state["eps"]), float(state["v"]))
        n = len(state["samples"])
        stream._reserve(n)
        stream._samples[:n] = state["samples"]
        stream._count = n
        last_root = state["last_root"]
        stream._last_root = None if last_root is None else float(last_root)
        return stream


# Beyond this |y|, 1 + |y| + C |y|^p is C |y|^p to the last digit; below it nothing overflows.
_HUGE = 1e100

# Newton needs five or so steps; if it has not settled by then, halving the bracket will.
_NEWTON_STEPS = 50


def _psi(y: Floats, eps: float, c_p: float) -> tuple[Floats, Floats]:
    """|psi(y)| and psi'(y)."""
    size = np.abs(y)
    near = np.minimum(size, _HUGE)
    tail = c_p * (near if eps == 1.0 else np.power(near, eps))
    rise = near + tail * near
    value = np.log1p(rise)
    slope = (1.0 + (1.0 + eps) * tail) / (1.0 + rise)
    beyond = size > _HUGE
    if beyond.any():
        excess = size[beyond] / _HUGE
        value[beyond] += (1.0 + eps) * np.log(excess)
        slope[beyond] /= excess
    return value, slope


def _root(x: Floats, a: float, eps: float, start: float) -> float:
    """The theta with sum psi(a (x - theta)) = 0: Newton, kept inside a bracket that only shrinks.

    It runs until a step is lost in the rounding of the sum, so the answer does not remember `start`.
    """
    if a == 0.0:
        return math.fsum(x) / len(x)
    low, high = float(x.min()), float(x.max())
    c_p = curvature(eps)
    theta = min(max(start, low), high)
    steps = 0
    while low < high:
        y = a * (x - theta)
        value, slope = _psi(y, eps, c_p)
        f = float(np.copysign(value, y).sum())
        if f > 0:
            low = theta
        elif f < 0:
            high = theta
        else:
            break
        descent = a * float(slope.sum())
        target = theta + f / descent
        noise = 1e-16 * (abs(theta) + float(value.sum()) / descent)
        # Where the noise spans a good part of the width 1/a, the slope is no guide: only the bracket decides.
        if abs(target - theta) <= noise and a * noise < 1e-3:
            return min(max(target, low), high)
        steps += 1
        theta = target if low < target < high and steps < _NEWTON_STEPS else low / 2 + high / 2
        if theta in (low, high):
            break
    return theta
