"""Decentralized MP-UCB (Algorithm 1).

Index of arm k for agent v in round t > K, over all n samples it has (own and heard):

    mean_k + m^(1/p) (c L_t / n)^(eps/p)          L_t = 2 ln t

Regret O(χ̄(G_γ) K Δ^(-1/eps) ln T), with χ̄ the clique cover number of the graph power.

What differs from the printed text:
- CLIQUE(v, G_γ) is v's part in a *partition* of G_γ into cliques; the proof needs it, regret does not:
  `clique_filter=False` listens to everybody in reach, and the same proof holds.
- χ̄ is called the clique number there; it is the clique cover number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from rumormill.errors import InputError
from rumormill.graphs import Network, clique_cover, verify_cover
from rumormill.policies.message_passing import HopPart, HopPlan, MessagePassingPolicy, RobustPolicy
from rumormill.policies.passer import Passer
from rumormill.policies.seat import Seat
from rumormill.protocol import Message
from rumormill.validate import refused, truth

Groups = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CliquePart(HopPart):
    """Whom an agent listens to: its clique, or None for everybody in reach."""

    clique: frozenset[int] | None


@dataclass(frozen=True)
class CliquePlan(HopPlan):
    """The cliques whose members listen to each other; None when everybody in reach is heard."""

    groups: Groups | None

    @cached_property
    def _clique_of(self) -> dict[int, frozenset[int]]:
        return {v: clique for clique in map(frozenset, self.groups or ()) for v in clique}

    def part(self, agent: int) -> CliquePart:
        clique = None if self.groups is None else self._clique_of[agent]
        return CliquePart(self.gamma, clique, group=self.group(agent))


@dataclass(frozen=True, kw_only=True)
class DecentralizedMPUCB(MessagePassingPolicy):
    """Every agent decides for itself; the cover is computed, or given as a list of groups."""

    label: ClassVar[str] = "Decentralized"
    clique_filter: bool = True
    cover: Sequence[Sequence[int]] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        truth("clique_filter", self.clique_filter)
        if self.cover is not None:
            if not self.clique_filter:
                raise InputError("a cover was given with clique_filter=False: drop one of the two")
            try:
                groups = tuple(tuple(group) for group in self.cover)
            except TypeError:
                raise refused("cover", self.cover, "a list of groups") from None
            object.__setattr__(self, "cover", groups)

    def plan(self, network: Network) -> CliquePlan:
        gamma = network.resolve_gamma(self.gamma)
        return CliquePlan(gamma, self._groups(network, gamma), reach=network.neighbourhoods(gamma).sizes)

    def _groups(self, network: Network, gamma: int) -> Groups | None:
        if not self.clique_filter:
            return None
        if self.cover is None:
            return clique_cover(network, gamma).groups
        verify_cover(network, gamma, self.cover)
        return tuple(tuple(int(v) for v in group) for group in self.cover)

    def plan_key(self) -> object:
        return (type(self), self.gamma, self.clique_filter, self.cover)

    def agent(self, seat: Seat) -> DecentralizedAgent:
        clique = seat.require_part(CliquePart).clique if self.clique_filter else None
        return DecentralizedAgent(self, seat, self.hops(seat), clique)


class DecentralizedAgent(Passer):
    """Algorithm 1 for one agent."""

    def __init__(
        self, policy: RobustPolicy, seat: Seat, gamma: int, clique: frozenset[int] | None = None
    ) -> None:
        super().__init__(policy, seat, gamma)
        self.clique = clique

    def decide(self, t: int) -> int:
        return self.samples.best(t, self.samples.rows(t))

    def receive(self, messages: Sequence[Message]) -> None:
        for message in self.relay.accept(messages):
            self.take(message.origin, message.arm, message.reward)

    def take(self, origin: int, arm: int, reward: float) -> None:
        """One more sample of another agent, known to be news."""
        if self.clique is None or origin in self.clique:
            self.samples.add(arm, reward)
