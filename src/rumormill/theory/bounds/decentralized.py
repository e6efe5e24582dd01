"""Decentralized MP-UCB: the groups that share samples are the cliques of a cover.

corrected  cover (c L_T m^(1/eps) 2^(1+1/eps) gap^(-1/eps)) + ((M - cover)(gamma - 1)+ + cover + 2 M) gap
           + failures
           where a link works with probability p, and agents use a share q_v of what they hear: with
           sum_v (1 - p^gamma q_v) + cover p^gamma max q_v in place of cover; where bundles are late by E in
           the mean, gamma = 1: + (M E + 2 ln T + 2 sqrt(M E ln T)) gap
printed    4 c m^(1/eps) cover (2 gap)^(-1/eps) ln T + (3 M + gamma cover (M - 1)) gap
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rumormill.policies import CliquePlan, DecentralizedMPUCB
from rumormill.protocol import Imperfect
from rumormill.theory.bound import Assumption
from rumormill.theory.bounds.family import Parts
from rumormill.theory.bounds.sampled import AS_PRINTED, SampledFamily
from rumormill.theory.bounds.sizes import cover_size


@dataclass(frozen=True, eq=False)
class Decentralized(SampledFamily):
    """Every agent decides for itself, from the samples of its clique or of everybody in reach."""

    policy: DecentralizedMPUCB
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
        terms = {**self.shared(self._groups(cliques)), "failures": self.failures(heard)}
        if self.policy.hold > 1:  # nothing is used earlier than if it came so many hops
            terms["delay"] = self.gap_sum * (self.n_agents - 1) * (max(self.gamma, self.policy.hold) - 1)
        late = self._late()
        if late:
            each = self.n_agents * late
            level = math.log(self.horizon)
            terms["late"] = self.gap_sum * (each + 2 * level + 2 * math.sqrt(each * level))
        return terms, self.rests_on(Assumption(text))

    def covers_world(self) -> bool:
        """Which samples come does not depend on their values: loss and, at one hop, delay are bearable."""
        known = self.world.messages_arrive or type(self.world.channel) is Imperfect
        one_hop = self.gamma <= 1 or not self._late()
        return known and one_hop and self.world.all_present and self.world.truthful

    def _groups(self, cliques: int) -> float:
        """As if so many groups learnt apart, where not everything that is said is heard and used."""
        channel = self.world.channel
        works = channel.p**self.gamma if isinstance(channel, Imperfect) else 1.0
        used = works * np.array([self.plan.keep(v) for v in range(self.n_agents)])
        return float((1.0 - used).sum() + cliques * used.max())

    def _late(self) -> float:
        """By how many rounds a bundle is late in the mean."""
        channel = self.world.channel
        return channel.mean_delay if isinstance(channel, Imperfect) else 0.0

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
