"""Robust-UCB (Bubeck, Cesa-Bianchi and Lugosi 2013): M agents that never talk.

Index mean_k + m^(1/p) (c L_t / n)^(eps/p) over the agent's own samples: Algorithm 1 with γ = 0.
Group regret O(M K Δ^(-1/eps) ln T): the baseline that cooperation must beat.
"""

from __future__ import annotations

from dataclasses import dataclass

from rumormill.graphs import Network
from rumormill.policies.base import Agent, Problem
from rumormill.policies.decentralized import DecentralizedAgent
from rumormill.policies.samples import RobustPolicy


@dataclass(frozen=True, kw_only=True)
class RobustUCB(RobustPolicy):
    """Independent agents."""

    def reach(self, network: Network) -> int:
        return 0

    def agents(self, problem: Problem, plan: None) -> list[Agent]:
        return [DecentralizedAgent(self, problem, v, 0, None) for v in range(problem.n_agents)]
