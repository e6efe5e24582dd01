"""A regret bound, its assumptions, and the base classes of the bounds of all policy families."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Bandit, Moments, RewardSource
from rumormill.errors import InputError
from rumormill.estimators import Radius
from rumormill.formulas import log_confidence
from rumormill.graphs import Network, clique_cover, dominating_set, independent_set
from rumormill.policies import HopPlan, RobustPolicy
from rumormill.protocol import World
from rumormill.validate import one_of

Form = Literal["corrected", "printed"]
FORMS = ("corrected", "printed")


@dataclass(frozen=True)
class Assumption:
    """A sentence on what a bound assumes, and whether it holds; remarks always hold."""

    text: str
    holds: bool = True


@dataclass(frozen=True)
class Bound:
    """An upper bound on expected pseudo-regret after `horizon` rounds.

    terms add up to value; ceiling is the largest possible regret (every pull the worst arm), so that a bound
    above it is vacuous.
    """

    value: float
    terms: Mapping[str, float]
    form: Form
    horizon: int
    ceiling: float
    assumptions: tuple[Assumption, ...]

    @classmethod
    def of(
        cls,
        terms: dict[str, float],
        *,
        form: Form,
        horizon: int,
        ceiling: float,
        assumptions: Sequence[Assumption],
    ) -> Bound:
        return cls(
            value=sum(terms.values()),
            terms=MappingProxyType(dict(terms)),
            form=form,
            horizon=horizon,
            ceiling=ceiling,
            assumptions=tuple(assumptions),
        )

    @property
    def covered(self) -> bool:
        """Whether every assumption holds; else the bound is a formula without a proof."""
        return all(assumption.holds for assumption in self.assumptions)

    @property
    def vacuous(self) -> bool:
        """Whether the bound exceeds the largest possible regret."""
        return self.value > self.ceiling

    @property
    def dominant(self) -> str:
        """The name of the largest term."""
        return max(self.terms, key=self.terms.__getitem__)

    def describe(self) -> str:
        """The value and its terms in one line, with a remark if it is vacuous."""
        parts = ", ".join(f"{name} {value:.4g}" for name, value in self.terms.items())
        remark = f"; vacuous, regret cannot exceed {self.ceiling:.4g}" if self.vacuous else ""
        return f"{self.form} bound {self.value:.4g} after {self.horizon} rounds ({parts}){remark}"


def check_form(form: str) -> None:
    """Refuse a form that is neither of the two."""
    one_of("form", form, FORMS)


Parts = tuple[dict[str, float], list[Assumption]]
"""The terms of a bound by name, and what they rest on."""


@dataclass(frozen=True, eq=False)
class Family(ABC):
    """A bandit, a network and a policy of one family played for `horizon` > K rounds."""

    bandit: RewardSource
    network: Network
    policy: Any
    horizon: int
    plan: Any
    world: World = field(default_factory=World)

    plan_type: ClassVar[type]
    """What the policy's plan is."""
    single_agents: ClassVar[bool] = False
    """Whether there is a bound for single agents too."""

    @abstractmethod
    def corrected(self) -> Parts:
        """The group's bound, as the argument gives it."""

    @abstractmethod
    def printed(self) -> Parts:
        """The group's bound, as the paper prints it."""

    def individual(self, agent: int, form: Form) -> Parts:
        """The bound of one agent."""
        raise InputError(f"{type(self.policy).__name__} has no bound for single agents")

    def covers_world(self) -> bool:
        """Whether the argument holds where messages are lost or late, or agents come and go or lie."""
        return self.world.plain

    @cached_property
    def gaps(self) -> NDArray[np.float64]:
        """The gaps of the arms that are not best."""
        return self.bandit.gaps[self.bandit.gaps > 0]

    @property
    def gap_sum(self) -> float:
        return float(self.gaps.sum())

    @property
    def n_agents(self) -> int:
        return self.network.n_agents

    @property
    def ceiling(self) -> float:
        """The regret if every agent pulled the worst arm in every round."""
        return self.horizon * self.n_agents * float(self.bandit.gaps.max())

    def first_rounds(self, agents: int) -> Parts:
        """In round t <= K all agents pull arm t - 1: the regret is exact."""
        total = agents * float(self.bandit.gaps[: self.horizon].sum())
        text = "The horizon ends within the first K rounds, in which the arms are fixed: exact."
        return {"start": total}, [Assumption(text)]

    def moments_hold(self, moments: Moments) -> Assumption:
        """Whether the moment bounds in use are those of the arms."""
        if not isinstance(self.bandit, Bandit):
            return Assumption("The rewards are recorded: the moment bounds are those of the record.")
        true = self.bandit.moments(moments.eps) if moments.p < self.bandit.tail_index else None
        if true is None or true.u > moments.u * (1 + 1e-9) or true.rho > moments.rho * (1 + 1e-9):
            text = f"The moment bounds given (eps = {moments.eps:g}) do not hold for these arms."
            return Assumption(text, holds=False)
        return Assumption(
            f"Moments of order {moments.p:g} at most u = {moments.u:.4g}, rho = {moments.rho:.4g}."
        )


def exp_or_inf(x: float) -> float:
    """exp(x), +inf beyond the floats."""
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


@lru_cache(maxsize=32)
def cover_size(network: Network, gamma: int) -> int:
    """Number of cliques in a cover of the power graph; cached: bounds are evaluated at many horizons."""
    return len(clique_cover(network, gamma).groups)


@lru_cache(maxsize=32)
def dominating_size(network: Network, gamma: int) -> int:
    """Size of the dominating set found."""
    return len(dominating_set(network, gamma).leaders)


@lru_cache(maxsize=32)
def independent_size(network: Network, gamma: int) -> tuple[int, Assumption]:
    """Size of a large independent set, and whether it is proven to be the largest."""
    found = independent_set(network, gamma, weights=np.ones(network.n_agents))
    known = "proven" if found.optimal else f"the largest found; at most {found.bound:g}"
    return len(found.leaders), Assumption(f"Independence number {len(found.leaders)} ({known}).")


AS_PRINTED = Assumption("As printed: a constant or a delay is missing, so it need not hold.", holds=False)


@dataclass(frozen=True, eq=False)
class SampledFamily(Family):
    """Policies whose agents store samples that travel gamma hops."""

    policy: RobustPolicy
    plan: HopPlan

    plan_type: ClassVar[type] = HopPlan

    @property
    def gamma(self) -> int:
        return self.plan.gamma

    @cached_property
    def heard(self) -> NDArray[np.int64]:
        """Number of agents whose samples each agent has, itself included."""
        return self.network.neighbourhoods(self.gamma).sizes + 1

    @cached_property
    def radius(self) -> Radius:
        return self.policy.radius(self.policy.moments or self.bandit.moments())

    @property
    def moments(self) -> Moments:
        return self.radius.moments

    @cached_property
    def last_L(self) -> float:
        """ln(1/delta) of the last round."""
        return log_confidence(self.policy.confidence, self.horizon, self.n_agents)

    # --- terms ------------------------------------------------------------------------------------------

    def samples_needed(self, gap: float) -> float:
        """How many samples of an arm an agent can have and yet pull it, if no estimate is off.

        Either twice the radius is still the gap, c (L + shift) m^(1/eps) (2/gap)^(1 + 1/eps), or there is no
        index yet.
        """
        radius, eps = self.radius, self.moments.eps
        log_samples = (
            _log(radius.constant * (self.last_L + radius.shift))
            + math.log(radius.estimator.moment(self.moments)) / eps
            + (1 + 1 / eps) * math.log(2 / gap)
        )
        return max(exp_or_inf(log_samples), self.least_usable - 1)

    @cached_property
    def least_usable(self) -> float:
        """The least number of samples for an index in the last round: with fewer the arm is pulled."""
        return self.radius.least_usable(self.last_L)

    @cached_property
    def learning(self) -> float:
        """Regret of one agent, or one group that shares its samples, until each arm is known."""
        return float(sum(gap * self.samples_needed(gap) for gap in self.gaps.tolist()))

    def shared(self, groups: float) -> dict[str, float]:
        """The terms that any partition into groups sharing their samples within gamma hops has."""
        m = self.n_agents
        terms = {
            "learning": groups * self.learning,
            "delay": self.gap_sum * (m - groups) * max(self.gamma - 1, 0),
            "start": self.gap_sum * (groups + 2 * m),
        }
        if self.policy.start_and_quiet.quiet is not None:  # pulls of the best arm that are not sent
            terms["untold"] = m * self.learning
        return terms

    def first_rounds(self, agents: int) -> Parts:
        if self.policy.start_and_quiet.start == "round-robin":
            return super().first_rounds(agents)
        total = agents * self.horizon * float(self.bandit.gaps.max())
        text = "The horizon ends within the first K rounds of a shared start: no more than the worst arm."
        return {"start": total}, [Assumption(text)]

    def failures(self, heard: NDArray[np.int64], weight: NDArray[np.int64] | None = None) -> float:
        """Regret of the decisions that rest on an estimate outside its radius.

        An agent with samples of r agents has at most r (t - 1) of an arm in round t. Each count may fail
        with probability delta_t, for this arm and for the best: 2 r (t - 1) delta_t. With
        delta_t = 1/(M t^3) the sum over rounds is below pi^2/3; with t^-2 it grows like 2 r ln T.
        """
        weight = np.ones_like(heard) if weight is None else weight
        if self.policy.confidence == "anytime":
            return self.gap_sum * (math.pi**2 / 3 * float(weight.sum()))
        # With a shared start an agent may decide as soon as it has a sample of every arm.
        first = 2 if self.policy.start_and_quiet.start == "shared" else self.bandit.n_arms + 1
        t = np.arange(first, self.horizon + 1, dtype=np.float64)
        total = 0.0
        for r in np.unique(heard).tolist():
            total += float(weight[heard == r].sum()) * float(np.minimum(1, 2 * r * (t - 1) / t**2).sum())
        return self.gap_sum * total

    def printed_learning(self, factor: float, stretch: float) -> float:
        """factor c m^(1/eps) ln T * sum of (stretch gap)^(-1/eps)."""
        eps, radius = self.moments.eps, self.radius
        lead = math.log(factor * radius.constant) + math.log(radius.estimator.moment(self.moments)) / eps
        scale = math.log(math.log(self.horizon))
        return float(
            sum(exp_or_inf(lead + scale - math.log(stretch * gap) / eps) for gap in self.gaps.tolist())
        )

    # --- what they rest on ------------------------------------------------------------------------------

    def rests_on(self, *own: Assumption) -> list[Assumption]:
        """Assumptions of the family, then the moments, the constant and the schedule."""
        quiet = []
        if self.policy.start_and_quiet.quiet is not None:
            text = (
                "Quiet messages: what is sent obeys the bound, and every agent may learn once more by itself."
            )
            quiet = [Assumption(text)]
        return [*own, *quiet, self.moments_hold(self.moments), self._constant_covered(), self._schedule()]

    def _constant_covered(self) -> Assumption:
        radius = self.radius
        name = type(radius.estimator).__name__
        if radius.covered:
            return Assumption(f"c = {radius.constant:.4g} is covered by the lemma of {name}.")
        return Assumption(
            f"No lemma of {name} covers the radius with c = {radius.constant:.4g} at every number of "
            "samples, so that estimates may fail more often than counted here.",
            holds=False,
        )

    def _schedule(self) -> Assumption:
        if self.policy.confidence == "paper":
            return Assumption("delta_t = t^-2: failed estimates add a term that grows like ln T.")
        return Assumption("delta_t = 1/(M t^3): the union over sample counts is paid for.")


def _log(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf
