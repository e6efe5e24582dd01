"""Robust-UCB (Bubeck, Cesa-Bianchi and Lugosi 2013): M agents that never talk.

Index mean_k + m^(1/p) (c L_t / n)^(eps/p) over the agent's own samples: Algorithm 1 with γ = 0.
Group regret O(M K Δ^(-1/eps) ln T): the baseline that cooperation must beat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from rumormill.policies.base import Seat
from rumormill.policies.decentralized import DecentralizedAgent
from rumormill.policies.message_passing_policy import RobustPolicy


@dataclass(frozen=True, kw_only=True)
class RobustUCB(RobustPolicy):
    """Independent agents."""

    label: ClassVar[str] = "Robust"

    def agent(self, seat: Seat) -> DecentralizedAgent:
        return DecentralizedAgent(self, seat, gamma=0)
