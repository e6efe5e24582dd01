"""Agents that average sums and counts with their neighbours: shared by consensus and its baselines.

    s_k(t) = P (s_k(t-1) + r ∘ ζ)        n_k(t) = P (n_k(t-1) + ζ)        P = I - κ/d_max · Laplacian

Index s/n + scale(t) n_eff^-exponent with n_eff = M n² / (n + ε_v + drift(t)); the policies differ in these
terms, and in whether a reward is clipped before it is averaged.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Moments
from rumormill.errors import InputError
from rumormill.formulas import IDS_PER_BLOCK, consensus_average, consensus_index, source_clip
from rumormill.graphs import Network, consensus_weights
from rumormill.policies.base import Policy, Seat
from rumormill.policies.message_passing_agent import circle, first_best, ranked
from rumormill.protocol import Imperfect, Message, MessageValidator, World
from rumormill.validate import LARGEST_CONSTANT, LEAST_CONSTANT, between, refused


@dataclass(frozen=True)
class ConsensusPart:
    """One row of P: the weight of a neighbour, and ε_v."""

    weight: float
    epsilon: float
    draws: int | None = field(default=None, kw_only=True, repr=False)
    """Key of the agent's own counter-based draws, as that of HopPart."""


@dataclass(frozen=True, eq=False)
class ConsensusPlan:
    """The off-diagonal weight κ/d_max of P and ε_v of every agent."""

    weight: float
    epsilon: NDArray[np.float64]
    ways: dict[str, str] = field(default_factory=dict)
    """How ε_v was found, where there is one."""

    def part(self, agent: int) -> ConsensusPart:
        return ConsensusPart(self.weight, float(self.epsilon[agent]))


def link_weight(network: Network, kappa: float | None = None) -> float:
    """κ/d_max; refused on networks that are not connected."""
    if not network.connected:
        raise InputError(
            f"consensus needs a connected network, this one has {len(network.components)} parts: "
            "take one of them, or a message-passing policy"
        )
    return consensus_weights(network, kappa)[1]


def root_moment(moments: Moments) -> float:
    """ρ^(1/p), which stands for the standard deviation where there is none."""
    return float(moments.rho ** (1.0 / moments.p))


def _nothing(t: int) -> float:
    return 0.0


@dataclass(frozen=True)
class AveragingRule:
    """The terms of the index, by round; `clip` gives the level at which rewards are clipped, if any."""

    exponent: float
    scale: Callable[[int], float]
    drift: Callable[[int], float] = _nothing
    clip: Callable[[int], float] | None = None
    p: float = 2.0

    def taken(self, t: int, reward: float, n: float, n_agents: int) -> float:
        """The part of a reward that enters the average; n is the count before the pull."""
        if self.clip is None:
            return reward
        most = source_clip(n, n_agents, self.clip(t), self.p)
        return min(max(reward, -most), most)


@dataclass(frozen=True, kw_only=True)
class AveragingPolicy(Policy):
    """Base class of policies that average sums and counts; each has its own `rule`."""

    zeta: float = 1.0
    """Factor on the radius."""
    moments: Moments | None = None
    """Bounds on the moments; by default those of the seat."""

    def __post_init__(self) -> None:
        between("zeta", self.zeta, LEAST_CONSTANT, LARGEST_CONSTANT)
        if self.moments is not None and not isinstance(self.moments, Moments):
            raise refused("moments", self.moments, "rm.Moments(eps=, u=, rho=)")

    @property
    def needs_moments(self) -> bool:
        return True

    def plan(self, network: Network) -> ConsensusPlan:
        """Without ε_v: most rules do not use the spectrum."""
        return ConsensusPlan(link_weight(network), np.zeros(network.n_agents))

    def plan_key(self) -> object:
        return "averages without a spectrum"

    def require_supported(self, world: World) -> None:
        require_both_ways(self.label, world)

    @abstractmethod
    def rule(self, moments: Moments | None) -> AveragingRule:
        """The index for arms with these moments, which are given if they are needed."""

    def agent(self, seat: Seat) -> AveragingAgent:
        part: ConsensusPart = seat.require_part(ConsensusPart)
        moments = seat.require_moments(self.moments) if self.needs_moments else None
        return AveragingAgent(seat, self.rule(moments), part)


class AveragingAgent:
    """One row of P."""

    def __init__(self, seat: Seat, rule: AveragingRule, part: ConsensusPart) -> None:
        self.agent = seat.agent
        self.n_arms = seat.n_arms
        self.n_agents = seat.require_agents()
        self.rule = rule
        self.weight = part.weight
        self.epsilon = part.epsilon
        self.sums = [0.0] * seat.n_arms
        self.counts = [0.0] * seat.n_arms
        self.last: Message | None = None
        self.validator = neighbour_validator(seat)
        self.now = self.refused = 0

    def choose(self, t: int) -> int:
        self.now = t
        return t - 1 if t <= self.n_arms else first_best(self.worth(t))

    def rank(self, t: int, allowed: Sequence[int] | None = None, k: int = 1) -> list[int]:
        """At least the k best of the allowed arms (ascending; None: all), the best first."""
        self.now = t
        arms = range(self.n_arms) if allowed is None else allowed
        return circle(t - 1, self.n_arms, arms) if t <= self.n_arms else ranked(self.worth(t), arms)

    def propensity(self, arm: int) -> float:
        """1: nothing is drawn."""
        return 1.0

    def worth(self, t: int) -> Sequence[float]:
        """The index of every arm."""
        rule = self.rule
        scale, epsilon = rule.scale(t), self.epsilon + rule.drift(t)
        return [
            consensus_index(s, n, self.n_agents, epsilon, scale, rule.exponent)
            for s, n in zip(self.sums, self.counts, strict=True)
        ]

    def observe(self, t: int, arm: int, reward: float) -> None:
        self.now = max(self.now, t)
        self.sums[arm] += self.rule.taken(t, reward, self.counts[arm], self.n_agents)
        self.counts[arm] += 1.0
        rows = tuple(zip(self.sums, self.counts, strict=True))
        self.last = Message(self.agent, t, arm, reward, rows)

    def outgoing(self, t: int) -> list[Message]:
        return [self.last] if self.last is not None and self.n_agents > 1 else []

    def receive(self, messages: Sequence[Message]) -> None:
        sound = [message for message in messages if self.validator.accepts(message, self.now)]
        self.refused += len(messages) - len(sound)
        rows = newest_rows(sound)
        for arm in range(self.n_arms):
            s, n = heard_sums(rows, arm)
            self.sums[arm] = consensus_average(self.sums[arm], s, len(rows), self.weight)
            self.counts[arm] = consensus_average(self.counts[arm], n, len(rows), self.weight)

    def state(self) -> dict[str, Any]:
        """Everything needed to go on later, as plain data."""
        last = None if self.last is None else self.last.plain()
        return {"sums": list(self.sums), "counts": list(self.counts), "last": last}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state()` described."""
        self.sums = [float(s) for s in state["sums"]]
        self.counts = [float(n) for n in state["counts"]]
        self.last = None if state["last"] is None else Message.from_plain(state["last"])


def neighbour_validator(seat: Seat, *, signed_counts: bool = False) -> MessageValidator:
    """Validator that accepts messages of neighbours with a row for every arm."""
    return MessageValidator(
        n_arms=seat.n_arms,
        origins=frozenset(seat.neighbours) if seat.neighbours else None,
        n_agents=seat.n_agents,
        rows=True,
        signed_counts=signed_counts,
    )


def require_both_ways(policy: str, world: World) -> None:
    """Refuse a fault model under which averages would lose or gain mass."""
    channel = world.channel
    if isinstance(channel, Imperfect) and not channel.perfect:
        keeps = "averages are preserved only if both directions of a link fail together"
        if channel.longest_delay:
            raise InputError(f"{policy} does not support delay: {keeps}, and nothing is late; take delay=0")
        if channel.p < 1 and (not channel.symmetric or channel.per != "link"):
            raise InputError(f"{policy} does not support this loss: {keeps}; take symmetric=True, per='link'")
    if not world.truthful:
        raise InputError(
            f"{policy} does not support corruption or byzantine agents: a false message enters the averages "
            "of all agents; take a message-passing policy"
        )


def newest_rows(messages: Sequence[Message]) -> dict[int, tuple[tuple[float, float], ...]]:
    """Rows by origin; the newest, if a late message arrives together with another of its origin."""
    return {m.origin: m.rows for m in sorted(messages, key=lambda m: m.round)}


def heard_sums(rows: dict[int, tuple[tuple[float, float], ...]], arm: int) -> tuple[float, float]:
    """Sums over neighbours of both numbers of an arm, added in blocks of consecutive ids."""
    s, n = 0.0, 0.0
    for _, block in groupby(sorted(rows), key=lambda origin: origin // IDS_PER_BLOCK):
        block_s, block_n = 0.0, 0.0
        for origin in block:
            block_s += rows[origin][arm][0]
            block_n += rows[origin][arm][1]
        s += block_s
        n += block_n
    return s, n
