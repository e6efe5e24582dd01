"""Robust Dirichlet sampling (Baudry, Saux and Maillard 2021): duels against the arm with most samples.

The leader ℓ has most samples (the larger mean, then the lowest arm on ties). With n samples X of another
arm k, exponential draws E_i = -ln(1 - U(THOMPSON; v, t, k, i)), i = 0 … n, and w_i = E_i / Σ E, arm k wins
its duel if

    mean_k >= mean_ℓ    or    Σ w_i X_i + w_n ( mean_ℓ + √ln(1 + n) (1/n) Σ max(mean_ℓ - X_i, 0) ) >= mean_ℓ

An agent pulls the arm with the fewest samples among those that win, the lowest on ties; the leader if none
does.

The paper has logarithmic regret for bounded laws and, with this factor √ln(1 + n) that grows without bound,
slightly more than logarithmic regret for a large class of unbounded ones with light tails (its abstract);
nothing is known for heavy tails. Non-parametric Thompson sampling (Riou and Honda 2020; Baudry and others
2023) is the same with a known bound in the place of the added sample.

What differs from the printed text: one arm is pulled in a round, not all that win; samples are shared,
every agent draws its own weights; the bonus is quoted from memory. All samples are kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rumormill.counter_rng import key_with, uniform_at
from rumormill.estimators.base import StoreAllMean, check_kind
from rumormill.policies.base import Seat
from rumormill.policies.message_passing_agent import MessagePassingAgent, OwnDraws, Samples
from rumormill.policies.message_passing_policy import FloodingPolicy


@dataclass(frozen=True, kw_only=True)
class RobustDirichlet(FloodingPolicy):
    """Random weights on the samples and on one optimistic sample more; no moments, no scale.

    Parameters
    ----------
    gamma : int | "half-diameter", default "half-diameter"
        Hop budget of messages; "half-diameter" is ⌈diameter/2⌉.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.RobustDirichlet(gamma=1).needs_moments
    False

    References
    ----------
    Baudry, Saux and Maillard (2021), "From optimality to robustness: Dirichlet sampling strategies in
    stochastic bandits".
    """

    label: ClassVar[str] = "Robust Dirichlet"
    live_refusal: ClassVar[str] = "it keeps every sample, so that memory would grow without bound"

    def agent(self, seat: Seat) -> DirichletAgent:
        return DirichletAgent(self, seat)


class StoredArm(StoreAllMean):
    """All samples of an arm, and their sum."""

    _sum = 0.0

    @property
    def parameters(self) -> dict[str, float]:
        return {}

    @property
    def values(self) -> NDArray[np.float64]:
        """The samples in order of arrival."""
        return self._samples.values

    def update(self, x: float) -> None:
        super().update(x)
        self._sum += x

    def mean(self, L: float) -> float:
        return self._sum / self.count if self.count else math.inf

    def state(self) -> dict[str, Any]:
        return {"kind": "stored", "sum": self._sum, "samples": self.values.tolist()}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "stored")
        stream = cls([float(x) for x in state["samples"]])
        stream._sum = float(state["sum"])
        return stream


class DirichletAgent(MessagePassingAgent):
    """One agent."""

    def __init__(self, policy: RobustDirichlet, seat: Seat) -> None:
        samples = Samples.of([StoredArm() for _ in range(seat.n_arms)])
        super().__init__(policy, seat, policy.hops(seat), samples)
        self.draws = OwnDraws(seat)

    def propensity(self, arm: int) -> float:
        return math.nan  # of resampled means there is no formula

    def worth(self, t: int) -> Sequence[Any]:
        rows = self.samples.estimates(t)
        means, counts = [mean for mean, _ in rows], [n for _, n in rows]
        worth: list[Any] = [(3, 0.0) if n == 0.0 else (0, mean) for mean, n in rows]
        if any(counts[arm] == 0.0 for arm in self.allowed):
            return worth
        leader = max(self.allowed, key=lambda k: (counts[k], means[k], -k))
        best = means[leader]
        worth[leader] = (1, 0.0)
        for k in self.allowed:
            if k != leader and (means[k] >= best or self.resampled(t, k, best) >= best):
                worth[k] = (2, -counts[k])
        return worth

    def resampled(self, t: int, arm: int, best: float) -> float:
        """The mean of an arm under random weights, with one sample above the leader's mean added."""
        x = self.samples.stream(arm).values
        n = len(x)
        key = np.uint64(key_with(key_with(self.draws.key, t), arm))
        weights = -np.log1p(-uniform_at(key_with(key, np.arange(n + 1, dtype=np.uint64))))
        bonus = best + math.sqrt(math.log(1.0 + n)) * float(np.maximum(best - x, 0.0).sum()) / n
        return (float(weights[:n] @ x) + float(weights[n]) * bonus) / float(weights.sum())
