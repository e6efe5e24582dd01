"""Centralized MP-UCB (Algorithm 2): leaders learn, followers copy the newest leader action they heard.

Round t <= K: arm t - 1. Leaders, and followers while t <= d(v, leader): the index of Algorithm 1 over all
samples received. Later a follower plays what its leader played d(v, leader) rounds ago.

Regret O(α(G_γ) K Δ^(-1/eps) ln T) for an independent set of leaders, α the independence number; for any
dominating set the same proof holds with its size, often far smaller, in place of α.

What differs from the printed text:
- the leader of v is sought in N_γ(v), not N_1(v), and is the one of largest degree(leader), not degree(v);
- the weight of a vertex is its degree in G_γ plus one: plain degree would drop isolated vertices;
- the newest action is the newest of the *leader*, not the newest of any message.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from rumormill.errors import InputError
from rumormill.graphs import Assignment, Network, assign_followers, dominating_set, independent_set
from rumormill.policies.base import Agent, Problem
from rumormill.policies.decentralized import DecentralizedAgent
from rumormill.policies.samples import MessagePassingPolicy, RobustPolicy
from rumormill.protocol import Message


@dataclass(frozen=True, kw_only=True)
class CentralizedMPUCB(MessagePassingPolicy):
    """Leaders are an independent set of G_γ (the paper's choice), a dominating set, or given."""

    leaders: Literal["independent", "dominating"] | Sequence[int] = "independent"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.leaders in ("independent", "dominating"):
            return
        if isinstance(self.leaders, str) or not isinstance(self.leaders, Iterable):
            raise InputError(
                f'leaders = {self.leaders!r} is not allowed: "independent", "dominating" or a list of agents'
            )
        object.__setattr__(self, "leaders", tuple(self.leaders))

    def plan(self, network: Network) -> Assignment:
        """Who follows whom, and from how far."""
        gamma = self.reach(network)
        if self.leaders == "independent":
            chosen: Sequence[int] = independent_set(network, gamma).leaders
        elif self.leaders == "dominating":
            chosen = dominating_set(network, gamma).leaders
        else:
            chosen = self.leaders
        return assign_followers(network, gamma, chosen)

    def agents(self, problem: Problem, plan: Assignment) -> list[Agent]:
        gamma = self.reach(problem.network)
        return [
            CentralizedAgent(self, problem, v, gamma, int(plan.leader_of[v]), int(plan.distance[v]))
            for v in range(problem.n_agents)
        ]


class CentralizedAgent(DecentralizedAgent):
    """Algorithm 2 for one agent: Algorithm 1 without the clique filter, unless a leader has been heard."""

    def __init__(
        self, policy: RobustPolicy, problem: Problem, agent: int, gamma: int, leader: int, distance: int
    ) -> None:
        super().__init__(policy, problem, agent, gamma, clique=None)
        self.leader = leader
        self.distance = distance
        self.heard: Message | None = None  # the leader's newest

    def choose(self, t: int) -> int:
        if t <= self.n_arms or self.heard is None or t <= self.distance:
            return super().choose(t)
        return self.heard.arm

    def receive(self, messages: Sequence[Message]) -> None:
        for message in self.relay.accept(messages):
            self.samples.add(message.arm, message.reward)
            if message.origin == self.leader and (self.heard is None or message.round > self.heard.round):
                self.heard = message
