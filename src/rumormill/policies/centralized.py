"""Centralized MP-UCB (Algorithm 2): leaders learn, followers copy the newest action of their leader.

Round t <= K: arm t - 1. Leaders, and followers while t <= d(v, leader): the index of Algorithm 1 over all
samples received. Later a follower plays what its leader played d(v, leader) rounds ago.

Regret O(α(G_γ) K Δ^(-1/eps) ln T) for an independent set of leaders, α the independence number; for any
dominating set the same proof holds with its size, often far smaller, in place of α.

What differs from the printed text:
- the leader of v is sought in N_γ(v), not N_1(v), and is the one of largest degree(leader), not degree(v);
- the weight of a vertex is its degree in G_γ plus one: plain degree would drop isolated vertices;
- the newest action is the newest of the *leader*, not the newest of any message.

With `quiet` leaders still send every pull, since followers copy it; followers apply the rule to their own
samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.graphs import Network, assign_followers, dominating_set, independent_set
from rumormill.policies.base import Seat
from rumormill.policies.decentralized import DecentralizedAgent
from rumormill.policies.message_passing_policy import HopPart, HopPlan, MessagePassingPolicy
from rumormill.protocol import Message
from rumormill.validate import is_number, refused

# Rounds of silence: near the best both where leaders vanish and where much is lost.
PATIENCE = 32
INDEPENDENT = ("independent", "qubo", "search")


@dataclass(frozen=True)
class LeaderPart(HopPart):
    """The leader of an agent (itself if it leads), and the hops to it."""

    leader: int
    distance: int


@dataclass(frozen=True, eq=False)
class LeaderPlan(HopPlan):
    """leader_of[v] is the leader that v follows (itself for a leader), distance[v] the hops to it."""

    leader_of: NDArray[np.int64]
    distance: NDArray[np.int64]
    ways: dict[str, str]
    """How the leaders were found."""

    @property
    def leaders(self) -> NDArray[np.int64]:
        """The agents that lead, sorted."""
        return np.unique(self.leader_of)

    def part(self, agent: int) -> LeaderPart:
        leader, distance = int(self.leader_of[agent]), int(self.distance[agent])
        return LeaderPart(self.gamma, leader, distance, **self.known(agent))


@dataclass(frozen=True, kw_only=True)
class CentralizedMPUCB(MessagePassingPolicy):
    """Leaders are an independent set of G_γ (the paper's choice), a dominating set, or given; Algorithm 2.

    Parameters
    ----------
    leaders : "independent" | "qubo" | "search" | "dominating" | Sequence[int], default "independent"
        The leaders: an "independent" set of large weight, found by annealing a "qubo" (the paper's
        way, taken on all but large networks) or by local "search"; a "dominating" set; or these
        agents.
    patience : float | None, default PATIENCE
        A follower decides for itself while the newest action of its leader is older than the distance
        to it plus so many rounds; None: never.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.CentralizedMPUCB(gamma=1, leaders="dominating").plan(rm.Network.star(6)).leaders.tolist()
    [0]

    References
    ----------
    Dubey and Pentland (2020), "Cooperative multi-agent bandits with heavy tails", Algorithm 2.
    """

    label: ClassVar[str] = "Centralized"
    leaders: Literal["independent", "qubo", "search", "dominating"] | Sequence[int] = "independent"
    patience: float | None = PATIENCE

    def __post_init__(self) -> None:
        super().__post_init__()
        for_ever = self.patience is None or self.patience == math.inf
        if not (for_ever or (is_number(self.patience) and float(self.patience or 0) >= 0)):
            raise refused("patience", self.patience, "a number of rounds >= 0, or None for no limit")
        if isinstance(self.leaders, str) and self.leaders in (*INDEPENDENT, "dominating"):
            return
        if isinstance(self.leaders, str) or not isinstance(self.leaders, Iterable):
            raise refused(
                "leaders", self.leaders, '"independent", "qubo", "search", "dominating" or a list of agents'
            )
        object.__setattr__(self, "leaders", tuple(self.leaders))

    def plan(self, network: Network) -> LeaderPlan:
        gamma = network.resolve_gamma(self.gamma)
        if self.independent:
            method: Any = "auto" if self.leaders == "independent" else self.leaders
            best = independent_set(network, gamma, method=method, bounded=False)
            chosen: Sequence[Any] = best.leaders
            way = best.method
        elif self.leaders == "dominating":
            chosen, way = dominating_set(network, gamma).leaders, "dominating"
        else:
            chosen, way = self.leaders, "given"
        found = assign_followers(network, gamma, chosen)
        near = network.neighbourhoods(gamma)
        return LeaderPlan(gamma, found.leader_of, found.distance, {"leaders": way}, near=near)

    @property
    def independent(self) -> bool:
        """Whether no leader is within reach of another."""
        return isinstance(self.leaders, str) and self.leaders in INDEPENDENT

    def plan_key(self) -> object:
        return (type(self), self.gamma, self.leaders)

    def agent(self, seat: Seat) -> CentralizedAgent:
        part: LeaderPart = seat.require_part(LeaderPart)
        return CentralizedAgent(self, seat, part)


class CentralizedAgent(DecentralizedAgent):
    """Algorithm 2 for one agent: Algorithm 1 without the clique filter until the leader is known."""

    def __init__(self, policy: CentralizedMPUCB, seat: Seat, part: LeaderPart) -> None:
        super().__init__(policy, seat, part.gamma)
        self.leader = part.leader
        self.distance = part.distance
        self.heard: Message | None = None  # the leader's newest
        self.patience = policy.patience
        self.deaf: bool | None = None
        """Whether the leader has timed out, set by a driver with a clock; None: decide by rounds."""

    def decide(self, t: int) -> int:
        copied = self.copied(t)
        return super().decide(t) if copied < 0 else copied

    def order(self, t: int, k: int) -> list[int]:
        copied = self.copied(t)
        first = [copied] if copied in self.allowed else []
        if len(first) == min(k, len(self.allowed)):
            return first
        return first + [arm for arm in super().order(t, k) if arm not in first]

    def copied(self, t: int) -> int:
        """The newest action of the leader; -1 if the agent decides for itself."""
        if self.heard is None or t <= self.distance or self._left_alone(t, self.heard.round):
            return -1
        if self.start_and_quiet.quiet is not None:
            self.samples.estimates(t)  # its own best arm decides which pulls are sent
        return self.heard.arm

    def _left_alone(self, t: int, newest: int) -> bool:
        if self.deaf is not None:
            return self.deaf
        return self.patience is not None and t - newest > self.distance + self.patience

    def sends(self, t: int, arm: int) -> bool:
        return self.leader == self.agent or super().sends(t, arm)

    def use(self, message: Message) -> None:
        self.take(message.origin, message.arm, message.reward)
        self.hear(message)

    def hear(self, message: Message) -> None:
        """Store another agent's decision, if it is the leader's newest."""
        if message.origin == self.leader and (self.heard is None or message.round > self.heard.round):
            self.heard = message

    def state(self) -> dict[str, Any]:
        return {**super().state(), "heard": None if self.heard is None else self.heard.plain()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.heard = None if state["heard"] is None else Message.from_plain(state["heard"])
