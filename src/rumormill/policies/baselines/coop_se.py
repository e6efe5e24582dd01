"""Coop-SE (Barnea, Lancewicki and Mansour 2024): successive elimination with shared samples.

With mean_k and radius r_k over all samples heard (those of the UCB policies, docs/semantics.md), the active
arms of round t are

    A_t = { k : mean_k + r_k >= max_j (mean_j - r_j) }

and an agent pulls them in turn: the next active arm after the one it pulled last, in a circle.

An arm of gap Δ leaves once all radii are below Δ/4, so that with a radius that holds the group pulls it as
often as the UCB index would, up to a constant; the paper's individual regret for rewards in [0, 1] is O(R/M
+ K² + K √ln T), R = Σ ln T / Δ, on every connected graph (its abstract; the text was not available).

What differs from the printed text: means and radii are robust; an agent decides by the samples that it has
and is not told of eliminations, since one false message could then remove the best arm; A_t is made anew in
every round at L_t, so that the horizon need not be known and an arm that was dropped by mistake returns as
L_t grows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rumormill.policies.base import Seat
from rumormill.policies.message_passing_agent import MessagePassingAgent
from rumormill.policies.message_passing_policy import MessagePassingPolicy


@dataclass(frozen=True, kw_only=True)
class CoopSE(MessagePassingPolicy):
    """Agents pull in turn all arms that may still be the best.

    Parameters
    ----------
    estimator : Estimator, default TrimmedMean()
        Robust mean; of one that brings its own index the radius is index - mean, on both sides.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.CoopSE(zeta=0.5, gamma=1).needs_moments
    True

    References
    ----------
    Barnea, Lancewicki and Mansour (2024), "Individual regret in cooperative stochastic multi-armed bandits".
    """

    label: ClassVar[str] = "Coop-SE"
    takes_prior: ClassVar[bool] = False

    def agent(self, seat: Seat) -> EliminationAgent:
        return EliminationAgent(self, seat, self.hops(seat))


class EliminationAgent(MessagePassingAgent):
    """One agent, and the arm that it pulled last."""

    last = -1

    def choose(self, t: int) -> int:
        self.last = super().choose(t)
        return self.last

    def rank(self, t: int, allowed: Sequence[int] | None = None, k: int = 1) -> list[int]:
        found = super().rank(t, allowed, k)
        self.last = found[0]
        return found

    def worth(self, t: int) -> Sequence[Any]:
        upper = self.samples.indices(t, self.samples.rows(t))
        means = [mean for mean, _ in self.samples.latest]
        lower = [2.0 * means[arm] - upper[arm] for arm in self.allowed if upper[arm] < math.inf]
        least = max(lower, default=-math.inf)
        behind = [(arm - self.last - 1) % self.n_arms for arm in range(self.n_arms)]
        return [(upper[arm] >= least, -behind[arm]) for arm in range(self.n_arms)]

    def state(self) -> dict[str, Any]:
        return {**super().state(), "last": self.last}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.last = int(state["last"])
