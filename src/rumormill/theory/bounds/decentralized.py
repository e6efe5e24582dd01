"""Decentralized MP-UCB: the groups that share samples are the cliques of a cover.

corrected  cover (c L_T m^(1/eps) 2^(1+1/eps) gap^(-1/eps)) + ((M - cover)(gamma - 1)+ + cover + 2 M) gap
           + failures
printed    4 c m^(1/eps) cover (2 gap)^(-1/eps) ln T + (3 M + gamma cover (M - 1)) gap
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rumormill.policies import CliquePlan
from rumormill.theory.bound import Assumption
from rumormill.theory.bounds.family import Parts
from rumormill.theory.bounds.sampled import AS_PRINTED, SampledFamily
from rumormill.theory.bounds.sizes import cover_size


@dataclass(frozen=True, eq=False)
class Decentralized(SampledFamily):
    """Every agent decides for itself, from the samples of its clique or of everybody in reach."""

    plan: CliquePlan

    plan_type: ClassVar[type] = CliquePlan

    def corrected(self) -> Parts:
        if self.plan.groups is None:
            cliques, heard = cover_size(self.network, self.gamma), self.heard
            source = "found for this bound; any cover would do"
        else:
            cliques, heard = len(self.plan.groups), np.empty(self.n_agents, np.int64)
            for group in self.plan.groups:
                heard[list(group)] = len(group)
            source = "the one in use"
        text = f"{cliques} cliques cover the power graph of gamma = {self.gamma} ({source})."
        terms = {**self.shared(cliques), "failures": self.failures(heard)}
        return terms, self.rests_on(Assumption(text))

    def printed(self) -> Parts:
        if self.plan.groups is None:
            cover, source = cover_size(self.network, self.gamma), "the cover found"
        else:
            cover, source = len(self.plan.groups), "the cover in use"
        return printed_by_cover(self, cover, Assumption(f"The cover number is that of {source}."))


def printed_by_cover(family: SampledFamily, cover: int, source: Assumption) -> Parts:
    """The printed bound of Algorithm 1, whose statement has a constant C: the proof's last line has it."""
    terms = {
        "learning": cover * family.printed_learning(4.0, 2.0),
        "delay": family.gap_sum * family.gamma * cover * (family.n_agents - 1),
        "start": family.gap_sum * 3 * family.n_agents,
    }
    constant = Assumption("C = 4 c m^(1/eps), from the proof.")
    return terms, [AS_PRINTED, *family.rests_on(source, constant)]
