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

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Moments
from rumormill.arms.moments import is_number
from rumormill.errors import InputError
from rumormill.graphs import Network, consensus_epsilon, consensus_weights
from rumormill.policies.base import Agent, Policy, Problem, usable_moments
from rumormill.policies.samples import first_best
from rumormill.protocol import Message


@dataclass(frozen=True)
class ConsensusPlan:
    """The off-diagonal weight κ/d_max of P and ε_v of every agent."""

    weight: float
    epsilon: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ConsensusUCB(Policy):
    """Running consensus. `epsilon` (a number, or one per agent) replaces the spectral ε_v."""

    moments: Moments | None = None
    kappa: float | None = None
    epsilon: float | Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.moments is not None and not isinstance(self.moments, Moments):
            raise InputError(f"moments = {self.moments!r} is not allowed: rm.Moments(eps=, u=, rho=)")
        if self.kappa is not None and not (is_number(self.kappa) and 0 < self.kappa <= 1):
            raise InputError(f"kappa = {self.kappa!r} is not allowed: it must lie in (0, 1]")
        if self.epsilon is not None:
            try:
                values = np.atleast_1d(np.asarray(self.epsilon, dtype=float))
            except (TypeError, ValueError):
                values = np.array([np.nan])
            if values.ndim != 1 or not (np.isfinite(values).all() and (values >= 0).all()):
                raise InputError(
                    f"epsilon = {self.epsilon!r} is not allowed: one number >= 0, or one per agent"
                )
            scalar = np.ndim(self.epsilon) == 0
            object.__setattr__(self, "epsilon", float(values[0]) if scalar else tuple(values.tolist()))

    def reach(self, network: Network) -> int:
        return min(1, network.diameter)

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

    def agents(self, problem: Problem, plan: ConsensusPlan) -> list[Agent]:
        moments = usable_moments(self.moments, problem.source)
        return [
            ConsensusAgent(problem, v, moments, plan.weight, float(plan.epsilon[v]))
            for v in range(problem.n_agents)
        ]


def consensus_scale(t: int, moments: Moments) -> float:
    """(6 ρ t^(2/3))^(1/p), the radius at n_eff = 1."""
    return math.pow(6.0 * moments.rho * math.pow(t, 2.0 / 3.0), 1.0 / moments.p)


def consensus_index(
    s: float, n: float, n_agents: int, epsilon: float, scale: float, exponent: float
) -> float:
    """s/n + scale n_eff^-exponent with n_eff = M n² / (n + ε_v) and exponent eps/p."""
    n_eff = n_agents * n * n / (n + epsilon)
    return s / n + scale * math.pow(n_eff, -exponent)


class ConsensusAgent:
    """One row of P."""

    def __init__(self, problem: Problem, agent: int, moments: Moments, weight: float, epsilon: float) -> None:
        self.agent = agent
        self.n_arms = problem.n_arms
        self.n_agents = problem.n_agents
        self.moments = moments
        self.weight = weight
        self.epsilon = epsilon
        self.sums = [0.0] * problem.n_arms
        self.counts = [0.0] * problem.n_arms
        self.last: Message | None = None

    def choose(self, t: int) -> int:
        if t <= self.n_arms:
            return t - 1
        scale, exponent = consensus_scale(t, self.moments), self.moments.eps / self.moments.p
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
        # What a neighbour did not deliver keeps the own value, so that weights still sum to one.
        own = 1.0 - self.weight * len(rows)
        for arm in range(self.n_arms):
            s, n = 0.0, 0.0
            for origin in sorted(rows):
                s += rows[origin][arm][0]
                n += rows[origin][arm][1]
            self.sums[arm] = own * self.sums[arm] + self.weight * s
            self.counts[arm] = own * self.counts[arm] + self.weight * n
