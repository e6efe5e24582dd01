"""KL_inf-UCB (Agrawal, Juneja and Koolen 2021): the largest mean that the moments and the samples leave
possible.

For the class E|X|^p <= u and the empirical law F of n samples the index is, with g = ln t + 2 ln(1 + ln t),

    sup { E_Q X : KL(F, Q) <= g/n, E_Q |X|^p <= u } = inf over β > 0 of βu + sup { E_Q Z : KL(F, Q) <= g/n }

with Z = X - β|X|^p, which has a largest value z* = (1 - 1/p) (1/(pβ))^(1/eps) over all X. The inner sup is
that of KL-UCB for laws bounded by z*: with f(ν) = E_F ln(ν - Z) + ln E_F 1/(ν - Z), decreasing in ν >= z*,
and Q proportional to F/(ν - Z): if f(z*) <= g/n, mass 1 - exp(f(z*) - g/n) on z* and the rest with ν = z*;
else ν solves f(ν) = g/n.

The paper's index, whose regret is Σ Δ ln T / KL_inf(F_k, μ*) (1 + o(1)), the lower bound itself, for laws
of the class, uses a threshold with another term of 2 ln(1 + n) + 1 (from memory).

What differs from the printed text: the threshold; β is the best of 24 values, β = y^-eps / p with y from
10^-0.5 to 10^3.5 times u^(1/p) in equal ratios (every β gives an upper bound, so the index is too large
rather than too small); of 512 atoms neighbours are joined in pairs, which can only raise E_F Z since Z is
concave in X; computed again once n or L has grown by more than 10 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Moments
from rumormill.estimators.base import OnlineMean, check_kind, check_level, check_sample, outgrown
from rumormill.policies.base import Seat
from rumormill.policies.decentralized import DecentralizedAgent
from rumormill.policies.message_passing_agent import Samples
from rumormill.policies.message_passing_policy import FloodingPolicy
from rumormill.validate import refused

ATOMS, SLACK = 512, 0.1
REACH = np.logspace(-0.5, 3.5, 24)
# Halvings of ln(ν - z*) between ln 1e-12 and ln 1e12, in units of u^(1/p).
STEPS, LEAST = 32, math.log(1e-12)

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class KLInfUCB(FloodingPolicy):
    """The index of the lower bound, for known moments.

    Parameters
    ----------
    moments : Moments | None, default None
        Bounds on the moments; by default those of the seat.
    gamma : int | "half-diameter", default "half-diameter"
        Hop budget of messages; "half-diameter" is ⌈diameter/2⌉.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.KLInfUCB().needs_moments
    True

    References
    ----------
    Agrawal, Juneja and Koolen (2021), "Regret minimization in heavy-tailed bandits".
    """

    label: ClassVar[str] = "KL_inf-UCB"
    moments: Moments | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.moments is not None and not isinstance(self.moments, Moments):
            raise refused("moments", self.moments, "rm.Moments(eps=, u=, rho=)")

    @property
    def needs_moments(self) -> bool:
        return True

    def constants(self, moments: Moments) -> dict[str, str | int | float]:
        used = self.moments or moments
        return {"eps": used.eps, "u": used.u}

    def agent(self, seat: Seat) -> DecentralizedAgent:
        moments = seat.require_moments(self.moments)
        samples = Samples.of([OnlineKLInf(moments.p, moments.u) for _ in range(seat.n_arms)])
        return DecentralizedAgent(self, seat, self.hops(seat), samples=samples)


def bounded_sup(z: Floats, weights: Floats, most: Floats, divergence: float, unit: float) -> Floats:
    """sup { E_Q Z : KL(F, Q) <= divergence, Z <= most }, row by row of z."""

    first, mean = _at(z, weights, most + unit * math.exp(LEAST))
    spare = np.exp(np.minimum(first - divergence, 0.0))
    found = spare * mean + (1.0 - spare) * most
    rest = first > divergence
    if rest.any():
        low, high = np.full(rest.sum(), LEAST), np.full(rest.sum(), -LEAST)
        for _ in range(STEPS):
            middle = (low + high) / 2.0
            above = _at(z[rest], weights, most[rest] + unit * np.exp(middle))[0] > divergence
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        found[rest] = _at(z[rest], weights, most[rest] + unit * np.exp(high))[1]
    return found


def _at(z: Floats, weights: Floats, nu: Floats) -> tuple[Floats, Floats]:
    """f(ν) and the mean of Q, row by row."""
    away = nu[:, None] - z
    inverse = (weights / away).sum(axis=1)
    mean = (weights * z / away).sum(axis=1) / inverse
    return (weights * np.log(away)).sum(axis=1) + np.log(inverse), mean


class OnlineKLInf(OnlineMean):
    """Atoms with weights, and what was computed last."""

    def __init__(self, p: float, u: float) -> None:
        self._p, self._u = p, u
        self._count, self._sum = 0, 0.0
        self._atoms: list[tuple[float, float]] = []
        self._n, self._L, self._index = 0, 0.0, math.inf

    @property
    def count(self) -> int:
        return self._count

    def update(self, x: float) -> None:
        self._count += 1
        self._sum += check_sample(x)
        self._atoms.append((x, 1.0))
        if len(self._atoms) == ATOMS:
            ordered = sorted(self._atoms)
            pairs = zip(ordered[::2], ordered[1::2], strict=True)
            self._atoms = [((a * v + b * w) / (v + w), v + w) for (a, v), (b, w) in pairs]

    def mean(self, L: float) -> float:
        check_level(L)
        return self._sum / self._count if self._count else math.inf

    def index(self, L: float) -> float:
        check_level(L)
        n = self._count
        if n and (self._n == 0 or outgrown(n, self._n, SLACK) or outgrown(L, self._L, SLACK)):
            self._n, self._L = n, L
            self._index = max(self.mean(L), self._compute(L / 2.0))
        return self._index

    def _compute(self, log_t: float) -> float:
        p, unit = self._p, math.pow(self._u, 1.0 / self._p)
        x, counts = (np.array(each) for each in zip(*self._atoms, strict=True))
        y = unit * REACH
        beta = y ** (1.0 - p) / p
        z = x - beta[:, None] * np.abs(x) ** p
        divergence = (log_t + 2.0 * math.log(1.0 + log_t)) / self._count
        sup = bounded_sup(z, counts / self._count, (1.0 - 1.0 / p) * y, divergence, unit)
        return float((beta * self._u + sup).min())

    def state(self) -> dict[str, Any]:
        plain = {name: getattr(self, f"_{name}") for name in ("p", "u", "count", "sum", "n", "L")}
        index = self._index if self._n else None
        return {"kind": "klinf-ucb", **plain, "atoms": [list(atom) for atom in self._atoms], "index": index}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "klinf-ucb")
        stream = cls(float(state["p"]), float(state["u"]))
        stream._count, stream._sum, stream._n = int(state["count"]), float(state["sum"]), int(state["n"])
        stream._L = float(state["L"])
        stream._atoms = [(float(x), float(w)) for x, w in state["atoms"]]
        stream._index = math.inf if state["index"] is None else float(state["index"])
        return stream
