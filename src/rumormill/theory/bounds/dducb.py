"""DDUCB: the published bound, for sub-Gaussian rewards, with C the length of a stage and e = 1/22.

16 eta (1 + e/2) sigma^2 ln(T M) / gap + (M (6 C + 1) + C + 4/(eta - 1)) gap
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from rumormill.policies import DDUCB, DelayedPlan
from rumormill.policies.baselines.dducb import ERROR
from rumormill.theory.bounds.family import Assumption, Family, Parts


@dataclass(frozen=True, eq=False)
class Delayed(Family):
    """Agents that mix what they pulled, stage by stage."""

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
        light = self.bandit.tail_index == math.inf
        small = policy.eta > 1 and (policy.eta - 1) / (7 * (policy.eta + 1)) > ERROR
        found = [
            Assumption(f"The rewards are sub-Gaussian with scale sigma = {sigma:.4g}.", holds=light),
            Assumption("e = 1/22 is below (eta - 1)/(7 (eta + 1)).", holds=small),
        ]
        if not policy.own:
            return found
        text = "Own pulls are used at once, which the published argument allows as a remark."
        return [*found, Assumption(text)]
