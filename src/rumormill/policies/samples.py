"""What the robust policies share: parameters, the confidence schedule, the samples of an agent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from rumormill.arms import Moments
from rumormill.estimators import Estimator, Radius, TrimmedMean
from rumormill.formulas import CONFIDENCES, Confidence, log_confidence
from rumormill.graphs import Network
from rumormill.policies.base import Policy
from rumormill.policies.seat import Seat
from rumormill.validate import is_whole, one_of, refused


def first_best(values: Sequence[float]) -> int:
    """argmax; the lowest index on ties."""
    return max(range(len(values)), key=values.__getitem__)


@dataclass(frozen=True)
class HopPart:
    """How many hops messages travel: all that some agents have to know of a plan."""

    gamma: int


@dataclass(frozen=True)
class HopPlan:
    """The hop budget on one network."""

    gamma: int

    def part(self, agent: int) -> HopPart:
        return HopPart(self.gamma)


@dataclass(frozen=True, kw_only=True)
class RobustPolicy(Policy):
    """Parameters of every policy with a robust mean.

    The radius is m^(1/p) (c L / n)^(eps/p); the same constant can be given as a plain factor `zeta`
    on it, c = zeta^(p/eps). `c="theory"` takes the constant of the estimator's concentration lemma.
    Neither given means zeta = 1. Moments not given come from the seat.
    """

    estimator: Estimator = field(default_factory=TrimmedMean)
    c: float | Literal["theory"] | None = None
    zeta: float | None = None
    confidence: Confidence = "paper"
    moments: Moments | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.estimator, Estimator):
            raise refused("estimator", self.estimator, "an estimator, for example rm.TrimmedMean()")
        one_of("confidence", self.confidence, CONFIDENCES)
        if self.moments is not None and not isinstance(self.moments, Moments):
            raise refused("moments", self.moments, "rm.Moments(eps=, u=, rho=)")
        # A trial build finds every bad constant now, before any round is played.
        self.radius(self.moments or Moments(eps=0.5, u=1.0, rho=1.0))

    def radius(self, moments: Moments) -> Radius:
        """The confidence radius for arms with these moments; those given to the policy come first."""
        zeta = 1.0 if self.c is None and self.zeta is None else self.zeta
        return Radius.build(self.estimator, self.moments or moments, c=self.c, zeta=zeta)

    def require_usable(self, moments: Moments) -> None:
        self.radius(moments)

    def plan(self, network: Network) -> HopPlan:
        return HopPlan(0)

    def plan_key(self) -> object:
        return (type(self), 0)


@dataclass(frozen=True, kw_only=True)
class MessagePassingPolicy(RobustPolicy):
    """A robust policy whose messages travel `gamma` hops."""

    gamma: int | Literal["half-diameter"] = "half-diameter"

    def __post_init__(self) -> None:
        super().__post_init__()
        named = isinstance(self.gamma, str) and self.gamma == "half-diameter"
        if not (named or (is_whole(self.gamma) and int(self.gamma) >= 0)):
            raise refused("gamma", self.gamma, 'a whole number >= 0, or "half-diameter"')

    def plan(self, network: Network) -> HopPlan:
        return HopPlan(network.resolve_gamma(self.gamma))

    def plan_key(self) -> object:
        return (type(self), self.gamma)

    def hops(self, seat: Seat) -> int:
        """How far the agent's messages travel: as planned, or as given where nothing was planned."""
        if seat.part is None and is_whole(self.gamma):
            return int(self.gamma)
        return int(seat.require_part(HopPart).gamma)


class Samples:
    """The samples of every arm that one agent has, in order of arrival, and their indices."""

    def __init__(self, policy: RobustPolicy, seat: Seat) -> None:
        self._schedule = policy.confidence
        self._n_agents = seat.require_agents() if policy.confidence == "anytime" else 1
        self.radius = policy.radius(seat.require_moments(policy.moments))
        last_L = math.inf if seat.horizon is None else self.L(seat.horizon)
        self._arms = [policy.estimator.online(self.radius.moments, last_L=last_L) for _ in range(seat.n_arms)]

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
