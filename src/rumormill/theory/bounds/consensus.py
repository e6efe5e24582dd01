"""Regret bounds of the policies that average: Consensus-UCB and DDUCB."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Bandit, Moments
from rumormill.graphs import consensus_matrix
from rumormill.policies import DDUCB, ConsensusPlan, ConsensusUCB, DelayedPlan
from rumormill.policies.baselines.dducb import ERROR
from rumormill.theory.bounds.family import Assumption, Family, Parts, exp_or_inf


@dataclass(frozen=True, eq=False)
class Consensus(Family):
    """Consensus-UCB: not logarithmic but T^(2/3), T^(2/(3 eps)) for the "moment" radius.

    corrected  (6 rho T^(2/3))^(1/q) (2/gap)^(1+1/q) gap + M (max epsilon_v + e) gap + 2 M gap + failures
               with e = sqrt(M) l / (1 - l), l the second eigenvalue; q = eps for "moment", else 1
    printed    gap (M + M e + T^(2/3) (6 v (1 + e_k) / gap^2 + M))
               with e = sqrt(M) sum |l_p| / (1 - |l_p|)
    """

    policy: ConsensusUCB
    plan: ConsensusPlan

    plan_type: ClassVar[type] = ConsensusPlan

    @cached_property
    def moments(self) -> Moments:
        return self.policy.moments or self.bandit.moments()

    @cached_property
    def eigenvalues(self) -> NDArray[np.float64]:
        """Sizes of the eigenvalues of consensus, without the one that is 1; empty for a single agent."""
        matrix = consensus_matrix(self.network, self.policy.kappa)
        sizes: NDArray[np.float64] = np.abs(np.linalg.eigvalsh(matrix)[:-1])
        return sizes

    @cached_property
    def rate(self) -> float:
        """The radius is (6 rho t^(2/3) / n_eff^rate)^(1 / (1 + rate))."""
        return self.moments.eps if self.policy.radius == "moment" else 1.0

    def corrected(self) -> Parts:
        m, rate = self.n_agents, self.rate
        level = math.log(6 * self.moments.rho) + 2 / 3 * math.log(self.horizon)
        learning = sum(
            gap * exp_or_inf(level / rate + (1 + 1 / rate) * math.log(2 / gap)) for gap in self.gaps.tolist()
        )
        # How far an agent's count may be from the average.
        second = float(self.eigenvalues.max(initial=0.0))
        count_error = math.sqrt(m) * second / (1 - second)
        terms = {
            "learning": float(learning),
            "mixing": self.gap_sum * m * (float(self.plan.epsilon.max()) + count_error),
            "start": self.gap_sum * 2 * m,
            "failures": self.gap_sum * m * self._failures(),
        }
        return terms, self._rests_on()

    def _failures(self) -> float:
        """Expected number of an agent's decisions, per arm, that rest on a failed estimate.

        |M|^p has expectation at most 2 (1 for p = 2) times its p-variation, which is sorted by powers of two.
        A radius of rate 1 over tails of order p < 2 is too small for many samples, at most M t: that factor.
        """
        eps = self.moments.eps
        factor = 1.0 if eps == 1.0 else 2.0
        t = np.arange(self.bandit.n_arms + 1, self.horizon + 1, dtype=np.float64)
        levels = np.floor(np.log2(t * self.n_agents**eps)) + 1
        # At most 1 is counted per decision, so a logarithm beyond 700 may stop there.
        small = (self.rate - eps) / 2 * np.log(6 * self.moments.rho * self.n_agents * t ** (5 / 3))
        odds = 2 / 3 * factor * levels * t ** (-2 / 3) * np.exp(np.minimum(small, 700.0))
        return float(np.minimum(1, odds).sum())

    def _rests_on(self) -> list[Assumption]:
        found = [self.moments_hold(self.moments)]
        if self.policy.radius == "logarithmic" or self.policy.zeta != 1.0:
            used = f"radius = {self.policy.radius!r} and zeta = {self.policy.zeta:g}"
            found.append(
                Assumption(f"The bound is for a polynomial radius with zeta = 1, not {used}.", holds=False)
            )
        if self.policy.epsilon is not None:
            found.append(Assumption("epsilon was given, and is taken to bound the variance of the averages."))
        if self.moments.eps <= (2 / 3 if self.policy.radius == "moment" else 1 / 5):
            text = "the bound grows at least as fast as T, so it never says anything."
            found.append(Assumption(f"eps = {self.moments.eps:g}: {text}"))
        return found

    def printed(self) -> Parts:
        m, rate = self.n_agents, self.horizon ** (2 / 3)
        spread = float(self.plan.epsilon.max()) / m
        count_error = math.sqrt(m) * float((self.eigenvalues / (1 - self.eigenvalues)).sum())
        terms = {
            "learning": rate * 6 * self.moments.rho * (1 + spread) * float((1 / self.gaps).sum()),
            "mixing": self.gap_sum * m * count_error,
            "start": self.gap_sum * m,
            "failures": self.gap_sum * m * rate,
        }
        return terms, [
            Assumption("As printed: stated for all eps, derived for eps = 1; it need not hold.", holds=False),
            Assumption(
                "The paper's epsilon^k belongs to an agent, not an arm: the largest over agents is taken, "
                "without the factor M, as the theorem has it."
            ),
        ]


@dataclass(frozen=True, eq=False)
class Delayed(Family):
    """DDUCB: the published bound, for sub-Gaussian rewards, with C the length of a stage and e = 1/22.

    16 eta (1 + e/2) sigma^2 ln(T M) / gap + (M (6 C + 1) + C + 4/(eta - 1)) gap
    """

    policy: DDUCB
    plan: DelayedPlan

    plan_type: ClassVar[type] = DelayedPlan

    def corrected(self) -> Parts:
        policy, m, stage = self.policy, self.n_agents, self.plan.stage
        needed = policy.needs_moments
        sigma = policy.scale((policy.moments or self.bandit.moments()) if needed else None)
        level = 16 * policy.eta * (1 + ERROR / 2) * sigma**2 * math.log(self.horizon * m)
        failures = 4 / (policy.eta - 1) if policy.eta > 1 else math.inf
        terms = {
            "learning": level * float((1 / self.gaps).sum()),
            "delay": self.gap_sum * (m * (6 * stage + 1) + stage),
            "failures": self.gap_sum * failures,
        }
        return terms, self._rests_on(sigma)

    def printed(self) -> Parts:
        return self.corrected()

    def _rests_on(self, sigma: float) -> list[Assumption]:
        policy = self.policy
        laws = self.bandit.arms if isinstance(self.bandit, Bandit) else ()
        scales = [law.sub_gaussian_scale for law in laws]
        # The scale of Gaussian arms and sigma from their moments are equal up to rounding.
        light = bool(scales) and all(scale is not None and scale <= sigma * (1 + 1e-9) for scale in scales)
        small = policy.eta > 1 and (policy.eta - 1) / (7 * (policy.eta + 1)) > ERROR
        found = [
            Assumption(f"The rewards are sub-Gaussian with scale sigma = {sigma:.4g}.", holds=light),
            Assumption("e = 1/22 is below (eta - 1)/(7 (eta + 1)).", holds=small),
        ]
        if not policy.own:
            return found
        text = "Own pulls are used at once, which the published argument allows as a remark."
        return [*found, Assumption(text)]
