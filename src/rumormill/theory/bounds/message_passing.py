"""Regret bounds of Decentralized, Centralized and KMP MP-UCB and of Robust-UCB."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rumormill.policies import CentralizedMPUCB, CliquePlan, DecentralizedMPUCB, LeaderPlan
from rumormill.protocol import Imperfect
from rumormill.theory.bounds.family import (
    AS_PRINTED,
    Assumption,
    Form,
    Parts,
    SampledFamily,
    cover_size,
    dominating_size,
    independent_size,
)


@dataclass(frozen=True, eq=False)
class Decentralized(SampledFamily):
    """Decentralized MP-UCB: the groups that share samples are the cliques of a cover.

        corrected  cover (c L_T m^(1/eps) 2^(1+1/eps) gap^(-1/eps))
                   + ((M - cover)(gamma - 1)+ + cover + 2 M) gap + failures
        printed    4 c m^(1/eps) cover (2 gap)^(-1/eps) ln T + (3 M + gamma cover (M - 1)) gap

    If a link works with probability p and agents use a fraction q_v of the received samples,
    sum_v (1 - p^gamma q_v) + cover p^gamma max q_v replaces cover. If batches are late by E in the mean and
    gamma = 1, (M E + 2 ln T + 2 sqrt(M E ln T)) gap is added.
    """

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
        """Which samples arrive does not depend on their values: loss and, at one hop, delay are covered."""
        known = self.world.messages_arrive or type(self.world.channel) is Imperfect
        one_hop = self.gamma <= 1 or not self._late()
        return known and one_hop and self.world.all_present and self.world.truthful

    def _groups(self, cliques: int) -> float:
        """Effective number of groups, if only a part of the samples arrives and is used."""
        channel = self.world.channel
        works = channel.p**self.gamma if isinstance(channel, Imperfect) else 1.0
        used = works * np.array([self.plan.keep(v) for v in range(self.n_agents)])
        return float((1.0 - used).sum() + cliques * used.max())

    def _late(self) -> float:
        """Mean delay of a batch, in rounds."""
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


@dataclass(frozen=True, eq=False)
class Centralized(SampledFamily):
    """Centralized MP-UCB: the groups that share samples are the leaders D with their followers.

        corrected  |D| (c L_T m^(1/eps) 2^(1+1/eps) gap^(-1/eps))
                   + ((M - |D|)((gamma - 1)+ + gamma) + |D| + 2 M) gap + failures
        printed    2^(1+1/eps) c m^(1/eps) alpha gap^(-1/eps) ln T + (alpha M gamma + M + alpha) gap

    For one agent in the group F of its leader:

        corrected  (c L_T m^(1/eps) 2^(1+1/eps) gap^(-1/eps)) / |F|
                   + ((2 gamma - 1)+ + gamma [follows] + 2) gap + failures
        printed    2^(1+1/eps) c m^(1/eps) gap^(-1/eps) / |F| ln T + (gamma + 3) (sum of gaps + 1)
    """

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
        text = f"{len(leaders)} leaders reach all agents within gamma = {self.gamma} hops."
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


@dataclass(frozen=True, eq=False)
class KMP(SampledFamily):
    """KMP-UCB: the groups are those around any dominating set D, which the policy need not know.

    corrected  |D| (c L_T m^(1/eps) 2^(1+1/eps) gap^(-1/eps))
               + (M gamma + (M - |D|)(gamma - 1)+ + |D| + 2 M) gap + failures, once per receiver
    printed    2 c m^(1/eps) alpha gap^(-1/eps) ln T + alpha (gamma + 2 + M) gap
    """

    def corrected(self) -> Parts:
        centres = dominating_size(self.network, self.gamma)
        terms = self.shared(centres)
        terms["delay"] += self.gap_sum * self.n_agents * self.gamma
        # A failed estimate misleads all its receivers.
        terms["failures"] = self.failures(self.heard, self.heard)
        text = (
            f"{centres} agents reach all within gamma = {self.gamma} hops (found for this bound; the "
            "policy need not know them)."
        )
        return terms, self.rests_on(Assumption(text))

    def printed(self) -> Parts:
        size, source = independent_size(self.network, self.gamma)
        terms = {
            "learning": size * self.printed_learning(2.0, 1.0),
            "delay": self.gap_sum * size * self.gamma,
            "start": self.gap_sum * size * (2 + self.n_agents),
        }
        return terms, [AS_PRINTED, *self.rests_on(source)]


@dataclass(frozen=True, eq=False)
class Alone(SampledFamily):
    """Robust-UCB: every agent is a group of its own, M times the bound of one agent.

    The paper has no bound of its own for it; printed is that of Algorithm 1 at gamma = 0.
    """

    def covers_world(self) -> bool:
        return True  # these agents receive nothing

    def corrected(self) -> Parts:
        terms = {**self.shared(self.n_agents), "failures": self.failures(self.heard)}
        return terms, self.rests_on(Assumption("Every agent learns alone: M times one agent."))

    def printed(self) -> Parts:
        text = "The paper has no bound of its own for agents that never talk: Algorithm 1 at gamma = 0."
        return printed_by_cover(self, self.n_agents, Assumption(text))
