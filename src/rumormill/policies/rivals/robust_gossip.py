"""Robust gossip: coop-UCB2 whose rewards are clipped at the source.

In round t a reward x of arm a enters the agent's sum as clip(x, ±B), and the sums are averaged as in
consensus:

    B = (τ u (M n + 1) / L_t)^(1/p)                      n: the agent's count of the arm before the pull
    s/n + ζ u^(1/p) (L_t/n_eff)^(eps/p)                  n_eff = M n² / (n + √ln t),  L_t = 2 ln max(t, 2)

τ is that of the clipped mean. An average is linear in clipped rewards, so averaging can be robust: the moment
generating function of the clipped mean's lemma applies with the weights of P^j in place of 1/n, whose squares
sum to at most (n + f)/(M n²). A sketch, not a proof.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rumormill.arms import Moments
from rumormill.formulas import clipping_factor, factor_scale
from rumormill.graphs import Network
from rumormill.policies.averaging import (
    AveragingAgent,
    AveragingRule,
    ConsensusPart,
    ConsensusPlan,
    link_weight,
    require_both_ways,
)
from rumormill.policies.base import Policy
from rumormill.policies.seat import Seat
from rumormill.protocol import World
from rumormill.validate import LARGEST_CONSTANT, LEAST_CONSTANT, between, refused


@dataclass(frozen=True, kw_only=True)
class RobustGossip(Policy):
    """Running consensus for heavy tails, with messages of one hop."""

    label: ClassVar[str] = "Robust gossip"

    zeta: float = 1.0
    """A factor on the radius."""
    moments: Moments | None = None
    """Bounds on the moments, where they are not those that the seat brings."""

    def __post_init__(self) -> None:
        between("zeta", self.zeta, LEAST_CONSTANT, LARGEST_CONSTANT)
        if self.moments is not None and not isinstance(self.moments, Moments):
            raise refused("moments", self.moments, "rm.Moments(eps=, u=, rho=)")

    def plan(self, network: Network) -> ConsensusPlan:
        return ConsensusPlan(link_weight(network), np.zeros(network.n_agents))

    def require_bearable(self, world: World) -> None:
        require_both_ways(self.label, world)

    def plan_key(self) -> object:
        return "averages without a spectrum"

    def constants(self, moments: Moments) -> dict[str, str | int | float]:
        used = self.moments or moments
        return {"zeta": self.zeta, "eps": used.eps, "u": used.u, "tau": clipping_factor(used.p)}

    def rule(self, moments: Moments) -> AveragingRule:
        """The index, and where rewards are clipped."""
        zeta, p, exponent = self.zeta, moments.p, moments.eps / moments.p
        root, budget = math.pow(moments.u, 1.0 / p), clipping_factor(p) * moments.u
        return AveragingRule(
            exponent,
            scale=lambda t: factor_scale(_level(t), root, zeta, exponent),
            drift=lambda t: math.sqrt(math.log(t)),
            clip=lambda t: budget / _level(t),
            p=p,
        )

    def agent(self, seat: Seat) -> AveragingAgent:
        part: ConsensusPart = seat.require_part(ConsensusPart)
        return AveragingAgent(seat, self.rule(seat.require_moments(self.moments)), part)


def _level(t: int) -> float:
    return 2.0 * math.log(max(t, 2))
