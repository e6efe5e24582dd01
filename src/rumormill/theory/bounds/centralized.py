"""Centralized MP-UCB: the groups that share samples are the leaders D with their followers.

    corrected  |D| (c L_T m^(1/eps) 2^(1+1/eps) gap^(-1/eps))
               + ((M - |D|)((gamma - 1)+ + gamma) + |D| + 2 M) gap + failures
    printed    2^(1+1/eps) c m^(1/eps) alpha gap^(-1/eps) ln T + (alpha M gamma + M + alpha) gap

and for one agent in the group F of its leader

    corrected  (c L_T m^(1/eps) 2^(1+1/eps) gap^(-1/eps)) / |F|
               + ((2 gamma - 1)+ + gamma [follows] + 2) gap + failures
    printed    2^(1+1/eps) c m^(1/eps) gap^(-1/eps) / |F| ln T + (gamma + 3) (sum of gaps + 1)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rumormill.policies import CentralizedMPUCB, LeaderPlan
from rumormill.theory.bound import Assumption, Form
from rumormill.theory.bounds.family import Parts
from rumormill.theory.bounds.sampled import AS_PRINTED, SampledFamily
from rumormill.theory.bounds.sizes import independent_size


@dataclass(frozen=True, eq=False)
class Centralized(SampledFamily):
    """Leaders learn, followers copy."""

    policy: CentralizedMPUCB
    plan: LeaderPlan

    plan_type: ClassVar[type] = LeaderPlan
    single_agents: ClassVar[bool] = True

    def corrected(self) -> Parts:
        leaders, sizes = np.unique(self.plan.leader_of, return_counts=True)
        terms = {
            **self.shared(len(leaders)),
            "following": self.gap_sum * (self.n_agents - len(leaders)) * self.gamma,
            "failures": self.failures(self.heard[leaders], sizes),
        }
        text = f"{len(leaders)} leaders reach everyone within gamma = {self.gamma} hops."
        return terms, self.rests_on(Assumption(text))

    def printed(self) -> Parts:
        if self.policy.independent:
            size, source = independent_size(self.network, self.gamma)
        else:
            size = len(self.plan.leaders)
            source = Assumption("The number of leaders stands in for the independence number.")
        terms = {
            "learning": size * self.printed_learning(2 ** (1 + 1 / self.moments.eps), 1.0),
            "delay": self.gap_sum * size * self.n_agents * self.gamma,
            "start": self.gap_sum * (self.n_agents + size),
        }
        return terms, [AS_PRINTED, *self.rests_on(source)]

    def individual(self, agent: int, form: Form) -> Parts:
        leader = int(self.plan.leader_of[agent])
        size = int((self.plan.leader_of == leader).sum())
        if form == "printed":
            return self._printed_individual(size)
        terms = {
            "learning": self.learning / size,
            "delay": self.gap_sum * max(2 * self.gamma - 1, 0),
            "following": self.gap_sum * (0 if agent == leader else self.gamma),
            "start": self.gap_sum * 2,
            "failures": self.failures(self.heard[[leader]]),
        }
        text = f"Agent {agent} shares samples with the {size} agents of leader {leader}."
        return terms, self.rests_on(Assumption(text))

    def _printed_individual(self, size: int) -> Parts:
        terms = {
            "learning": self.printed_learning(2 ** (1 + 1 / self.moments.eps), 1.0) / size,
            "delay": (self.gamma + 3) * (self.gap_sum + 1),
        }
        return terms, [AS_PRINTED, *self.rests_on(Assumption(f"The leader's group has {size} agents."))]
