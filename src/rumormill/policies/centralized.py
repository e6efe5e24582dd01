"""Centralized MP-UCB (Algorithm 2): leaders learn, followers copy the newest leader action they heard.

Round t <= K: arm t - 1. Leaders, and followers while t <= d(v, leader): the index of Algorithm 1 over all
samples received. Later a follower plays what its leader played d(v, leader) rounds ago.

Regret O(α(G_γ) K Δ^(-1/eps) ln T) for an independent set of leaders, α the independence number; for any
dominating set the same proof holds with its size, often far smaller, in place of α.

What differs from the printed text:
- the leader of v is sought in N_γ(v), not N_1(v), and is the one of largest degree(leader), not degree(v);
- the weight of a vertex is its degree in G_γ plus one: plain degree would drop isolated vertices;
- the newest action is the newest of the *leader*, not the newest of any message.

A quiet leader would leave its followers behind, so leaders always tell; followers judge by what they know.
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
    """Whom an agent follows (itself if it leads), and from how far."""

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
    """Leaders are an independent set of G_γ (the paper's choice), a dominating set, or given.

    patience: if the newest word of its leader is older than the distance to it by more than so many rounds,
    a follower decides for itself until a newer one comes; None: it copies the old one for ever. Where
    everything arrives in time, this never happens.
    """

    label: ClassVar[str] = "Centralized"
    leaders: Literal["independent", "qubo", "search", "dominating"] | Sequence[int] = "independent"
    """Who leads: an "independent" set of large weight, found by annealing a "qubo" (the paper's way, taken on
    all but large networks) or by local "search"; a "dominating" set; or these agents."""
    patience: float | None = PATIENCE
    """After how many silent rounds (beyond the distance) a follower decides for itself; None: never."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for_ever = self.patience is None or self.patience == math.inf
        if not (for_ever or (is_number(self.patience) and float(self.patience or 0) >= 0)):
            raise refused("patience", self.patience, "a number of rounds >= 0, or None for ever")
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
        """Whether leaders do not hear each other."""
        return isinstance(self.leaders, str) and self.leaders in INDEPENDENT

    def plan_key(self) -> object:
        return (type(self), self.gamma, self.leaders)

    def agent(self, seat: Seat) -> CentralizedAgent:
        part: LeaderPart = seat.require_part(LeaderPart)
        return CentralizedAgent(self, seat, part)


class CentralizedAgent(DecentralizedAgent):
    """Algorithm 2 for one agent: Algorithm 1 without the clique filter, unless a leader has been heard."""

    def __init__(self, policy: CentralizedMPUCB, seat: Seat, part: LeaderPart) -> None:
        super().__init__(policy, seat, part.gamma)
        self.leader = part.leader
        self.distance = part.distance
        self.heard: Message | None = None  # the leader's newest
        self.patience = policy.patience
        self.deaf: bool | None = None
        """Whether the leader has been silent too long, said by a driver with a clock; None: count rounds."""

    def decide(self, t: int) -> int:
        if self.heard is None or t <= self.distance or self._left_alone(t, self.heard.round):
            return super().decide(t)
        if self.start_and_quiet.quiet is not None:
            self.samples.estimates(t)  # what it would prefer itself says what is worth telling
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
        """Note what another agent decided, if it is the leader's newest."""
        if message.origin == self.leader and (self.heard is None or message.round > self.heard.round):
            self.heard = message

    def state(self) -> dict[str, Any]:
        return {**super().state(), "heard": None if self.heard is None else self.heard.plain()}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.heard = None if state["heard"] is None else Message.from_plain(state["heard"])
