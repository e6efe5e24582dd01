"""Consensus-UCB (Landgren et al. 2016, as the paper adapts it): the baseline that averages.

Sums and counts of every arm are averaged with the neighbours each round, with P = I - κ/d_max · Laplacian:

    s_k(t) = P (s_k(t-1) + r ∘ ζ)        n_k(t) = P (n_k(t-1) + ζ)

Index s/n + (6 ρ t^(2/3) / n_eff^eps)^(1/p),  n_eff = M n² / (n + ε_v); for eps = 1 this is the paper's
√(6 ρ t^(2/3)/M · (n + ε_v)/n²). Regret O(T^(2/3)).

What differs from the printed text:
- ε^k there is indexed like an arm; it belongs to the *agent* v;
- κ = 1 gives P the eigenvalue -1 on regular bipartite graphs: the default is κ = d_max/(d_max + 1);
- the variance is infinite for eps < 1, so the radius is the polynomial one for the p-th moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Moments
from rumormill.errors import InputError
from rumormill.formulas import consensus_average, consensus_index, consensus_scale
from rumormill.graphs import Network, consensus_epsilon, consensus_weights
from rumormill.policies.base import Policy
from rumormill.policies.samples import first_best
from rumormill.policies.seat import Seat
from rumormill.protocol import Message
from rumormill.validate import LARGEST_CONSTANT, LEAST_KAPPA, between, refused


@dataclass(frozen=True)
class ConsensusPart:
    """One row of P: the weight of a neighbour, and ε_v."""

    weight: float
    epsilon: float


@dataclass(frozen=True, eq=False)
class ConsensusPlan:
    """The off-diagonal weight κ/d_max of P and ε_v of every agent."""

    weight: float
    epsilon: NDArray[np.float64]

    def part(self, agent: int) -> ConsensusPart:
        return ConsensusPart(self.weight, float(self.epsilon[agent]))


@dataclass(frozen=True, kw_only=True)
class ConsensusUCB(Policy):
    """Running consensus. `epsilon` (a number, or one per agent) replaces the spectral ε_v."""

    label: ClassVar[str] = "Consensus"
    moments: Moments | None = None
    kappa: float | None = None
    epsilon: float | Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.moments is not None and not isinstance(self.moments, Moments):
            raise refused("moments", self.moments, "rm.Moments(eps=, u=, rho=)")
        if self.kappa is not None:
            between("kappa", self.kappa, LEAST_KAPPA, 1)
        if self.epsilon is not None:
            try:
                values = np.atleast_1d(np.asarray(self.epsilon, dtype=float))
            except (TypeError, ValueError):
                values = np.array([np.nan])
            if values.ndim != 1 or not ((values >= 0).all() and (values <= LARGEST_CONSTANT).all()):
                raise refused(
                    "epsilon", self.epsilon, f"one number from 0 to {LARGEST_CONSTANT:g}, or one per agent"
                )
            scalar = np.ndim(self.epsilon) == 0
            object.__setattr__(self, "epsilon", float(values[0]) if scalar else tuple(values.tolist()))

    def plan(self, network: Network) -> ConsensusPlan:
        if not network.connected:
            raise InputError(
                f"consensus needs a connected network, this one has {len(network.components)} parts: "
                "take one of them, or a message-passing policy"
            )
        _, weight = consensus_weights(network, self.kappa)
        if self.epsilon is None:
            return ConsensusPlan(weight, consensus_epsilon(network, self.kappa))
        given = np.asarray(self.epsilon, dtype=np.float64)
        if given.ndim == 1 and len(given) != network.n_agents:
            raise InputError(f"epsilon has {len(given)} values for {network.n_agents} agents")
        return ConsensusPlan(weight, np.broadcast_to(given, network.n_agents).copy())

    def plan_key(self) -> object:
        return (type(self), self.kappa, self.epsilon)

    def agent(self, seat: Seat) -> ConsensusAgent:
        part: ConsensusPart = seat.require_part(ConsensusPart)
        return ConsensusAgent(seat, seat.require_moments(self.moments), part)


class ConsensusAgent:
    """One row of P."""

    def __init__(self, seat: Seat, moments: Moments, part: ConsensusPart) -> None:
        self.agent = seat.agent
        self.n_arms = seat.n_arms
        self.n_agents = seat.require_agents()
        self.moments = moments
        self.weight = part.weight
        self.epsilon = part.epsilon
        self.sums = [0.0] * seat.n_arms
        self.counts = [0.0] * seat.n_arms
        self.last: Message | None = None

    def choose(self, t: int) -> int:
        if t <= self.n_arms:
            return t - 1
        moments = self.moments
        scale, exponent = consensus_scale(t, moments.rho, moments.p), moments.eps / moments.p
        return first_best(
            [
                consensus_index(s, n, self.n_agents, self.epsilon, scale, exponent)
                for s, n in zip(self.sums, self.counts, strict=True)
            ]
        )

    def observe(self, t: int, arm: int, reward: float) -> None:
        self.sums[arm] += reward
        self.counts[arm] += 1.0
        rows = tuple(zip(self.sums, self.counts, strict=True))
        self.last = Message(self.agent, t, arm, reward, rows)

    def outgoing(self, t: int) -> list[Message]:
        return [self.last] if self.last is not None and self.n_agents > 1 else []

    def receive(self, messages: Sequence[Message]) -> None:
        rows = {m.origin: m.rows for m in messages}
        for arm in range(self.n_arms):
            s, n = 0.0, 0.0
            for origin in sorted(rows):
                s += rows[origin][arm][0]
                n += rows[origin][arm][1]
            self.sums[arm] = consensus_average(self.sums[arm], s, len(rows), self.weight)
            self.counts[arm] = consensus_average(self.counts[arm], n, len(rows), self.weight)
