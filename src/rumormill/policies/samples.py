"""What the robust policies share: parameters, the confidence schedule, the samples of an agent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from rumormill.arms import Moments, RewardSource
from rumormill.errors import InputError
from rumormill.estimators import Estimator, Radius, TrimmedMean
from rumormill.graphs import Network
from rumormill.policies.base import Policy, Problem, usable_moments

Confidence = Literal["paper", "anytime"]


def log_confidence(schedule: Confidence, t: int, n_agents: int) -> float:
    """L_t = ln(1/δ_t): δ_t = t⁻² ("paper") or 1/(M t³) ("anytime", for which the union bound holds)."""
    if schedule == "paper":
        return 2.0 * math.log(t)
    return 3.0 * math.log(t) + math.log(n_agents)


def first_best(values: Sequence[float]) -> int:
    """argmax; the lowest index on ties."""
    return max(range(len(values)), key=values.__getitem__)


@dataclass(frozen=True, kw_only=True)
class RobustPolicy(Policy):
    """Parameters of every policy with a robust mean.

    The radius is m^(1/p) (c L / n)^(eps/p); the same constant can be given as a plain factor `zeta`
    on it, c = zeta^(p/eps). `c="theory"` takes the constant of the estimator's concentration lemma.
    Neither given means zeta = 1. Moments not given come from the bandit.
    """

    estimator: Estimator = field(default_factory=TrimmedMean)
    c: float | Literal["theory"] | None = None
    zeta: float | None = None
    confidence: Confidence = "paper"
    moments: Moments | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, Estimator):
            raise InputError(f"estimator = {self.estimator!r} is not an estimator: try rm.TrimmedMean()")
        if self.confidence not in ("paper", "anytime"):
            raise InputError(f'confidence = {self.confidence!r} is not allowed: "paper" or "anytime"')
        if self.moments is not None and not isinstance(self.moments, Moments):
            raise InputError(f"moments = {self.moments!r} is not allowed: rm.Moments(eps=, u=, rho=)")
        # A trial build finds every bad constant now, before any round is played.
        self._build_radius(self.moments or Moments(eps=0.5, u=1.0, rho=1.0))

    def radius(self, source: RewardSource) -> Radius:
        """The confidence radius for these rewards."""
        return self._build_radius(usable_moments(self.moments, source))

    def _build_radius(self, moments: Moments) -> Radius:
        zeta = 1.0 if self.c is None and self.zeta is None else self.zeta
        return Radius.build(self.estimator, moments, c=self.c, zeta=zeta)


@dataclass(frozen=True, kw_only=True)
class MessagePassingPolicy(RobustPolicy):
    """A robust policy whose messages travel `gamma` hops."""

    gamma: int | Literal["half-diameter"] = "half-diameter"

    def __post_init__(self) -> None:
        super().__post_init__()
        is_count = isinstance(self.gamma, int | np.integer) and not isinstance(self.gamma, bool)
        if not (self.gamma == "half-diameter" or (is_count and int(self.gamma) >= 0)):
            raise InputError(
                f'gamma = {self.gamma!r} is not allowed: a whole number >= 0, or "half-diameter"'
            )

    def reach(self, network: Network) -> int:
        return network.resolve_gamma(self.gamma)


class Samples:
    """The samples of every arm that one agent has, in order of arrival, and their indices."""

    def __init__(self, policy: RobustPolicy, problem: Problem) -> None:
        self._schedule = policy.confidence
        self._n_agents = problem.n_agents
        self.radius = policy.radius(problem.source)
        last_L = self.L(max(problem.horizon, 1))
        self._arms = [
            policy.estimator.online(self.radius.moments, last_L=last_L) for _ in range(problem.n_arms)
        ]

    def L(self, t: int) -> float:
        """ln(1/δ_t)."""
        return log_confidence(self._schedule, t, self._n_agents)

    def add(self, arm: int, reward: float) -> None:
        """One more sample of an arm."""
        self._arms[arm].update(reward)

    def estimates(self, t: int) -> tuple[tuple[float, float], ...]:
        """(mean, count) of every arm in round t."""
        L = self.L(t)
        return tuple((samples.mean(L), float(samples.count)) for samples in self._arms)

    def indices(self, t: int, estimates: Sequence[tuple[float, float]]) -> list[float]:
        """mean + radius of every arm in round t; +inf where an arm must be pulled."""
        L = self.L(t)
        return [self.radius.index(mean, n, L) for mean, n in estimates]
