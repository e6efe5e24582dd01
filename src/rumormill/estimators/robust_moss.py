"""Robust MOSS (Wei and Srivastava 2020): samples clipped once, on arrival, and a bonus that depends on T.

With phi(n) = max(ln(T group/(K n)), 1)/n and h(i) the smallest power of a above i, the i-th sample counts as
clip(X_i, +-u^(1/p) phi(h(i))^(-1/p)), and

    index = mean + (1 + eta) u^(1/p) phi(n)^(eps/p)              `zeta` replaces 1 + eta

It depends on the horizon T, not on L. Minimax regret u^(1/p) K^(eps/p) T^(1/p), with a = 1.1, eta = 2.2.

What differs from the printed text: a learner gets the samples of `group` agents, so that it may have T group
of them, not T; with group = 1 the bonus would vanish too early and learning could stop. In a game the group
is the number of agents within gamma hops, itself included. Sums only: O(1) memory; streams cannot be merged,
since every sample was clipped by its rank.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from rumormill.arms.base import Moments
from rumormill.estimators.base import (
    OnlineMean,
    OwnIndexEstimator,
    Terms,
    check_kind,
    check_level,
    check_sample,
    fair_share,
    require_moments,
)
from rumormill.formulas import clipped, moss_clip, moss_phi, moss_reach
from rumormill.validate import LARGEST_CONSTANT, LEAST_CONSTANT, above, between, whole


@dataclass(frozen=True, kw_only=True)
class RobustMOSS(OwnIndexEstimator):
    """Samples clipped on arrival and a bonus of MOSS; needs moments and the horizon.

    Parameters
    ----------
    a : float, default 1.1
        Base of the powers at which the clipping threshold changes, above 1.
    eta : float, default 2.2
        The factor on the radius is 1 + eta.
    zeta : float | None, default None
        Factor on the radius in place of 1 + eta.
    group : int | None, default None
        Number of agents whose samples a stream gets; by default the agents within reach.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.RobustMOSS().factor, rm.RobustMOSS(zeta=0.5).factor
    (3.2, 0.5)

    References
    ----------
    Wei and Srivastava (2020), "Minimax policy for heavy-tailed bandits".
    """

    a: float = 1.1
    eta: float = 2.2
    zeta: float | None = None
    group: int | None = None

    needs_horizon = True
    bounded_memory = True

    def __post_init__(self) -> None:
        between("a", self.a, 1.001, 100)
        above("eta", self.eta, 0, LARGEST_CONSTANT)
        if self.zeta is not None:
            between("zeta", self.zeta, LEAST_CONSTANT, LARGEST_CONSTANT)
        if self.group is not None:
            whole("group", self.group)

    @property
    def factor(self) -> float:
        """The constant on the bonus."""
        return 1.0 + self.eta if self.zeta is None else float(self.zeta)

    def budget(self, terms: Terms) -> float:
        """T group / K, the samples of an arm that a fair share would give."""
        return fair_share(self, terms, self.group)

    def stream_for(self, terms: Terms) -> OnlineMOSS:
        moments = require_moments(self, terms.moments)
        root = math.pow(moments.u, 1.0 / moments.p)
        return OnlineMOSS(self.a, self.factor, root, moments.p, self.budget(terms))

    def online(self, moments: Moments | None, *, last_L: float = math.inf) -> OnlineMOSS:
        """Outside a game the horizon is unknown: the logarithm counts as 1."""
        return self.stream_for(Terms(moments=moments, horizon=1))

    def of(self, samples: Sequence[float], L: float, moments: Moments | None) -> float:
        return self._fed(samples, L, Terms(moments=moments, horizon=1)).mean(L)


class OnlineMOSS(OnlineMean):
    """A sum of samples clipped on arrival."""

    def __init__(self, a: float, factor: float, root: float, p: float, budget: float) -> None:
        self._a, self._factor, self._root, self._p, self._budget = a, factor, root, p, budget
        self._count = 0
        self._sum = 0.0
        self._level = a
        self._clip = moss_clip(moss_phi(a, budget), root, p)

    @property
    def count(self) -> int:
        return self._count

    def update(self, x: float) -> None:
        x = check_sample(x)
        self._count += 1
        if self._level <= self._count:
            while self._level <= self._count:
                self._level *= self._a
            self._clip = moss_clip(moss_phi(self._level, self._budget), self._root, self._p)
        self._sum += clipped(x, self._clip, self._clip)

    def mean(self, L: float) -> float:
        check_level(L)
        return self._sum / self._count if self._count else math.inf

    def index(self, L: float) -> float:
        mean = self.mean(L)
        if mean == math.inf:
            return math.inf
        exponent = (self._p - 1.0) / self._p
        return mean + moss_reach(moss_phi(self._count, self._budget), self._factor * self._root, exponent)

    def state(self) -> dict[str, Any]:
        names = ("a", "factor", "root", "p", "budget", "count", "sum", "level", "clip")
        return {"kind": "robust-moss", **{name: getattr(self, f"_{name}") for name in names}}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "robust-moss")
        stream = cls(*(float(state[name]) for name in ("a", "factor", "root", "p", "budget")))
        stream._count, stream._sum = int(state["count"]), float(state["sum"])
        stream._level, stream._clip = float(state["level"]), float(state["clip"])
        return stream
