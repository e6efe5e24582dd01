"""Decentralized MP-UCB (Algorithm 1); and Robust-UCB, the same index without messages.

Index of arm k for agent v in round t > K, over all n samples it has (own and received):

    mean_k + m^(1/p) (c L_t / n)^(eps/p)          L_t = 2 ln t

Regret O(χ̄(G_γ) K Δ^(-1/eps) ln T), with χ̄ the clique cover number of the graph power.

What differs from the printed text:
- CLIQUE(v, G_γ) is v's part in a *partition* of G_γ into cliques; the proof needs it, regret does not:
  `clique_filter=False` uses the samples of all agents in reach, and the same proof holds.
- χ̄ is called the clique number there; it is the clique cover number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from rumormill.counter_rng import key_with, uniform_at
from rumormill.errors import InputError
from rumormill.graphs import Network, clique_cover, verify_cover
from rumormill.policies.base import Seat
from rumormill.policies.message_passing_agent import MessagePassingAgent, Samples
from rumormill.policies.message_passing_policy import (
    FloodingPolicy,
    HopPart,
    HopPlan,
    MessagePassingPolicy,
    RobustPolicy,
)
from rumormill.protocol import Message
from rumormill.protocol.message import columns
from rumormill.protocol.relay import in_order
from rumormill.validate import refused, truth, whole

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CliquePart(HopPart):
    """The agents whose samples an agent uses: its clique, or None for all in reach."""

    clique: frozenset[int] | None


@dataclass(frozen=True)
class CliquePlan(HopPlan):
    """The cliques whose members use each other's samples; None: those of all agents in reach."""

    groups: Groups | None
    even: bool = False

    @cached_property
    def _clique_of(self) -> dict[int, frozenset[int]]:
        return {v: clique for clique in map(frozenset, self.groups or ()) for v in clique}

    def part(self, agent: int) -> CliquePart:
        clique = None if self.groups is None else self._clique_of[agent]
        return CliquePart(self.gamma, clique, keep=self.keep(agent), **self.known(agent))

    def keep(self, agent: int) -> float:
        """min_w |N_γ(w)| / |N_γ(v)| with discard="RCL-LF", else 1."""
        if not self.even or self.near is None or not self.near.sizes[agent]:
            return 1.0
        return float(self.near.sizes.min() / self.near.sizes[agent])


@dataclass(frozen=True, kw_only=True)
class DecentralizedMPUCB(MessagePassingPolicy):
    """Every agent decides from the samples of its clique; Algorithm 1.

    Parameters
    ----------
    clique_filter : bool, default True
        Use samples of the own clique only (the paper), or of all agents in reach.
    cover : Sequence[Sequence[int]] | None, default None
        The cliques, as lists of agents; computed if left out.
    discard : "RCL-LF" | None, default None
        "RCL-LF": use only the fraction min_w |N_γ(w)| / |N_γ(v)| of the received samples, drawn by
        U(DISCARD; v, origin, round), from all agents in reach, so that all agents use about equally
        many.
    hold : int, default 1
        A sample of round s is used from the end of round s + hold - 1 on; 1: at once.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.DecentralizedMPUCB(gamma=1).plan(rm.Network.path(4)).groups
    ((0, 1), (2, 3))

    References
    ----------
    Dubey and Pentland (2020), "Cooperative multi-agent bandits with heavy tails", Algorithm 1.
    """

    label: ClassVar[str] = "Decentralized"
    clique_filter: bool = True
    cover: Sequence[Sequence[int]] | None = None
    discard: Literal["RCL-LF"] | None = None
    hold: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        truth("clique_filter", self.clique_filter)
        whole("hold", self.hold)
        if self.discard is not None:
            if self.discard != "RCL-LF":
                raise refused("discard", self.discard, "'RCL-LF', or None")
            if self.cover is not None:
                raise InputError("a cover was given with discard='RCL-LF': drop one of the two")
        if self.cover is not None:
            if not self.clique_filter:
                raise InputError("a cover was given with clique_filter=False: drop one of the two")
            try:
                groups = tuple(tuple(group) for group in self.cover)
            except TypeError:
                raise refused("cover", self.cover, "a list of groups") from None
            object.__setattr__(self, "cover", groups)

    @property
    def filters(self) -> bool:
        """Whether agents use the samples of their clique only."""
        return self.clique_filter and self.discard is None

    def plan(self, network: Network) -> CliquePlan:
        gamma = network.resolve_gamma(self.gamma)
        near = network.neighbourhoods(gamma)
        return CliquePlan(gamma, self._groups(network, gamma), self.discard is not None, near=near)

    def _groups(self, network: Network, gamma: int) -> Groups | None:
        if not self.filters:
            return None
        if self.cover is None:
            return clique_cover(network, gamma).groups
        verify_cover(network, gamma, self.cover)
        return tuple(tuple(int(v) for v in group) for group in self.cover)

    def plan_key(self) -> object:
        return (type(self), self.gamma, self.clique_filter, self.cover, self.discard)

    def agent(self, seat: Seat) -> DecentralizedAgent:
        clique = seat.require_part(CliquePart).clique if self.filters else None
        if self.discard is None and self.hold == 1:
            return DecentralizedAgent(self, seat, self.hops(seat), clique)
        part = seat.require_part(CliquePart) if self.discard is not None else HopPart(0)
        return HoldingAgent(
            self, seat, self.hops(seat), clique, keep=part.keep, coins=part.coins, hold=self.hold
        )


class DecentralizedAgent(MessagePassingAgent):
    """Algorithm 1 for one agent."""

    def __init__(
        self,
        policy: FloodingPolicy | RobustPolicy,
        seat: Seat,
        gamma: int,
        clique: frozenset[int] | None = None,
        samples: Samples | None = None,
    ) -> None:
        super().__init__(policy, seat, gamma, samples)
        self.clique = clique

    def worth(self, t: int) -> Sequence[Any]:
        return self.samples.worth(t, self.samples.rows(t))

    def take(self, origin: int, arm: int, reward: float) -> None:
        """Add a new sample of another agent."""
        if self.clique is None or origin in self.clique:
            self.samples.add(arm, reward)

    def use_all(self, news: Sequence[Message]) -> None:
        near = self.clique
        self.samples.add_all(*columns(news if near is None else [m for m in news if m.origin in near]))


class HoldingAgent(DecentralizedAgent):
    """Algorithm 1 for an agent that discards some received samples, and uses the rest later."""

    def __init__(
        self,
        policy: RobustPolicy,
        seat: Seat,
        gamma: int,
        clique: frozenset[int] | None,
        *,
        keep: float,
        coins: int,
        hold: int,
    ) -> None:
        super().__init__(policy, seat, gamma, clique)
        self.keep, self.coins, self.hold = keep, coins, hold
        self.held: list[Message] = []

    def receive(self, messages: Sequence[Message]) -> None:
        super().receive(messages)
        due = [m for m in self.held if m.round + self.hold - 1 <= self.now]
        self.held = [m for m in self.held if m.round + self.hold - 1 > self.now]
        for message in in_order(due):
            super().use(message)

    def use(self, message: Message) -> None:
        if uniform_at(key_with(key_with(self.coins, message.origin), message.round)) < self.keep:
            self.held.append(message)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "held": [message.plain() for message in self.held]}

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        self.held = [Message.from_plain(each) for each in state["held"]]


@dataclass(frozen=True, kw_only=True)
class RobustUCB(RobustPolicy):
    """Independent agents.

    Index mean_k + m^(1/p) (c L_t / n)^(eps/p) over the agent's own samples: Algorithm 1 with γ = 0.
    Group regret O(M K Δ^(-1/eps) ln T): the baseline that cooperation must beat.

    Examples
    --------
    >>> import rumormill as rm
    >>> policy = rm.RobustUCB(c="theory")
    >>> policy.radius(rm.Moments(eps=1.0, u=2.0, rho=1.5)).constant
    16.0

    References
    ----------
    Bubeck, Cesa-Bianchi and Lugosi (2013), "Bandits with heavy tail".
    """

    label: ClassVar[str] = "Robust"

    def agent(self, seat: Seat) -> DecentralizedAgent:
        return DecentralizedAgent(self, seat, gamma=0)
