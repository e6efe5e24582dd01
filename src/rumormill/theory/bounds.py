"""Upper bounds on regret, one class per family of policies, in a corrected and a printed form.

All are sums over the suboptimal arms. With n0 the number of samples from which an arm's radius is below half
its gap, a group that shares its samples pulls the arm at most n0 times, and then only because of delay, or
because an estimate fails. docs/theory.md has the argument, and where the printed forms, letter by letter the
paper's, go wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Bandit, Moments
from rumormill.graphs import consensus_matrix
from rumormill.policies import (
    DDUCB,
    DPE2,
    HTHMUCB,
    KMPUCB,
    RMMUCB,
    AdaRUCB,
    AlphaStableTS,
    CentralizedMPUCB,
    CliquePlan,
    ConsensusPlan,
    ConsensusUCB,
    CoopSE,
    CoopUCB2,
    DecentralizedMPUCB,
    DecentralizedTS,
    Default,
    DelayedPlan,
    EpsilonGreedy,
    KLInfUCB,
    LeaderPlan,
    OriginMedianUCB,
    Policy,
    RobustDirichlet,
    RobustGossip,
    RobustUCB,
    ThompsonKMP,
)
from rumormill.policies.baselines.dducb import ERROR
from rumormill.protocol import Imperfect
from rumormill.theory.family import (
    AS_PRINTED,
    Assumption,
    Family,
    Form,
    Parts,
    SampledFamily,
    cover_size,
    dominating_size,
    exp_or_inf,
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


__all__ = ["BOUNDS", "UNBOUNDED", "Family"]

# By the very class: a subclass may do something else, which no argument here covers.
BOUNDS: dict[type[Policy], type[Family]] = {
    DecentralizedMPUCB: Decentralized,
    CentralizedMPUCB: Centralized,
    KMPUCB: KMP,
    RobustUCB: Alone,
    ConsensusUCB: Consensus,
    DDUCB: Delayed,
}

# Built-in policies without one, and why.
UNBOUNDED: dict[type[Policy], str] = {
    OriginMedianUCB: "its argument needs many more groups of origins than the policy makes",
    EpsilonGreedy: "with a fixed rate regret is linear, and plain means have no lemma under heavy tails",
    CoopSE: "its radius is that of the UCB policies, but no argument is written down for arms pulled in turn",
    HTHMUCB: "the published one is for random graphs drawn anew in every round, without constants",
    AdaRUCB: "the published one needs an assumption on the best arm that cannot be checked",
    DecentralizedTS: "nothing is proven for Thompson sampling under heavy tails",
    RMMUCB: "its level is fixed, so that regret may be linear in the end",
    DPE2: "the published one is for one leader and KL-UCB",
    AlphaStableTS: "the published one is for Bayes regret, of another sampler",
    RobustDirichlet: "nothing is proven for heavy tails",
    KLInfUCB: "the published one is asymptotic, for another threshold",
    Default: "nothing is proven for its Thompson draws; docs/theory.md says what holds",
    ThompsonKMP: "nothing is proven for Thompson sampling under heavy tails",
    CoopUCB2: "the published one has a constant of the network that is nowhere given in numbers",
    RobustGossip: "its argument is a sketch, without constants",
}
