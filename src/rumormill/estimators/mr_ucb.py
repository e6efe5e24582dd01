"""MR-UCB (Lee and Lim 2022): minimax regret without a bound on the moment, only its order p and a scale c.

    mean = c n^(1/p - 1) sum psi(X_i / (c n^(1/p))),    psi(y) = sign(y) ln(1 + |y| + b_p |y|^p)

    index = mean + c max(ln(T group/(K n)), 0) n^(1/p - 1)

c has the unit of a reward; u^(1/p)/2 is a good one. The index depends on the horizon T, not on L, and claims
no level: it is below the mean of the arm as often as c is too small. It shrinks towards 0, so a shift of all
rewards changes it. As in Robust MOSS a learner gets the samples of `group` agents, and may have T group of
them.

The threshold moves with n for all samples: they are kept, and the mean is worked out again while n < 50 and
whenever n has grown by 2 %; the bonus is always fresh. For the reference engine only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from rumormill.arms.base import Moments
from rumormill.estimators.base import (
    SLACK,
    OwnIndexEstimator,
    StoreAllMean,
    Terms,
    check_kind,
    check_level,
    fair_share,
    outgrown,
    require_moments,
)
from rumormill.formulas import mr_bonus, mr_curvature, mr_psi, mr_width
from rumormill.validate import LARGEST_CONSTANT, LEAST_CONSTANT, between, whole

# Below this number of samples the mean is recomputed at every query.
FEW = 50


@dataclass(frozen=True, kw_only=True)
class MRUCB(OwnIndexEstimator):
    """Minimax index; needs the order of a finite moment, a scale and the horizon. Stores every sample.

    Parameters
    ----------
    c : float, default 1.0
        Scale of the rewards, about u^(1/p)/2.
    p : float | None, default None
        Order of the moment, above 1 and at most 2; by default that of the moment bounds.
    group : int | None, default None
        Number of agents whose samples a stream gets; by default the agents within reach.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.MRUCB().needs_moments, rm.MRUCB(p=1.5).needs_moments
    (True, False)

    References
    ----------
    Lee and Lim (2022), "Minimax optimal bandits for heavy tail rewards".
    """

    c: float = 1.0
    p: float | None = None
    group: int | None = None

    needs_horizon = True
    slack = SLACK

    def __post_init__(self) -> None:
        between("c", self.c, LEAST_CONSTANT, LARGEST_CONSTANT)
        if self.p is not None:
            between("p", self.p, 1.001, 2)
        if self.group is not None:
            whole("group", self.group)

    @property
    def needs_moments(self) -> bool:  # type: ignore[override]
        return self.p is None

    def stream_for(self, terms: Terms) -> OnlineMR:
        p = require_moments(self, terms.moments).p if self.p is None else float(self.p)
        return OnlineMR(p, float(self.c), fair_share(self, terms, self.group))

    def online(self, moments: Moments | None, *, last_L: float = math.inf) -> OnlineMR:
        """Outside a game the horizon is unknown: there is no bonus."""
        return self.stream_for(Terms(moments=moments, horizon=1))

    def of(self, samples: Sequence[float], L: float, moments: Moments | None) -> float:
        return self._fed(samples, L, Terms(moments=moments, horizon=1)).mean(L)


class OnlineMR(StoreAllMean):
    """The mean of a stream, and at how many samples it was worked out."""

    def __init__(self, p: float, c: float, budget: float, samples: Sequence[float] = ()) -> None:
        super().__init__(samples)
        self._p, self._c, self._budget = p, c, budget
        self._n = 0
        self._mean = math.inf

    @property
    def parameters(self) -> dict[str, float]:
        return {"p": self._p, "c": self._c}

    def mean(self, L: float) -> float:
        check_level(L)
        n = self._samples.count
        if n and (n < FEW or outgrown(n, self._n)):
            width = mr_width(n, self._p, self._c)
            y = self._samples.values / width
            influence = np.copysign(mr_psi(np.abs(y), self._p, mr_curvature(self._p)), y)
            self._mean = width * float(influence.sum()) / n
            self._n = n
        return self._mean

    def index(self, L: float) -> float:
        mean = self.mean(L)
        if not self._samples.count:
            return math.inf
        return mean + mr_bonus(self._samples.count, self._budget, self._p, self._c)

    def merge(self, other: Self) -> None:
        super().merge(other)
        self._n = 0

    def state(self) -> dict[str, Any]:
        plain = {**self.parameters, "budget": self._budget, "n": self._n}
        mean = self._mean if self._n else None
        return {"kind": "mr-ucb", **plain, "mean": mean, "samples": self._samples.values.tolist()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "mr-ucb")
        stream = cls(float(state["p"]), float(state["c"]), float(state["budget"]), state["samples"])
        stream._n = int(state["n"])
        stream._mean = math.inf if state["mean"] is None else float(state["mean"])
        return stream
