"""What the bounds of the policies with a robust mean and a confidence radius share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Moments
from rumormill.estimators import Radius
from rumormill.formulas import log_confidence
from rumormill.policies import HopPlan, RobustPolicy
from rumormill.theory.bound import Assumption
from rumormill.theory.bounds.family import Family, Parts, exp_or_inf

AS_PRINTED = Assumption("As printed: a constant or a delay is missing, so it need not hold.", holds=False)


@dataclass(frozen=True, eq=False)
class SampledFamily(Family):
    """Policies whose agents keep samples, ranked in order of arrival, that travel gamma hops."""

    policy: RobustPolicy
    plan: HopPlan

    plan_type: ClassVar[type] = HopPlan

    @property
    def gamma(self) -> int:
        return self.plan.gamma

    @cached_property
    def heard(self) -> NDArray[np.int64]:
        """How many agents each agent has samples of, itself included."""
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
        if self.policy.manners.quiet is not None:  # pulls of a favourite that nobody is told of
            terms["untold"] = m * self.learning
        return terms

    def first_rounds(self, agents: int) -> Parts:
        if self.policy.manners.start == "round-robin":
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
        # With a shared start an agent may decide as soon as it has heard of every arm.
        first = 2 if self.policy.manners.start == "shared" else self.bandit.n_arms + 1
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
        """What the family says of itself, then the moments, the constant and the schedule."""
        quiet = []
        if self.policy.manners.quiet is not None:
            text = "Quiet talk: what is told obeys the bound, and every agent may learn once more for itself."
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
