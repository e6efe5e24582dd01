"""Upper bounds on expected regret, as functions of (bandit, network, policy, horizon).

Each comes in two forms: `corrected`, which follows from the argument in docs/theory.md, and `printed`, the
paper's formula letter by letter, which need not hold. All are sums over the arms that are not best; with n0
the number of samples from which an arm's radius is below half its gap, an arm is pulled by a group that
shares its samples at most n0 times, and then only because of delay, or because an estimate fails.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rumormill.arms import RewardSource
from rumormill.errors import InputError
from rumormill.graphs import Network
from rumormill.policies import (
    KMPUCB,
    CentralizedMPUCB,
    ConsensusUCB,
    DecentralizedMPUCB,
    OwnPolicy,
    Policy,
    RobustUCB,
)
from rumormill.theory.bound import Bound, Form, check_form
from rumormill.theory.printed import printed_individual, printed_terms
from rumormill.theory.setting import (
    Setting,
    consensus_eigenvalues,
    cover_size,
    dominating_size,
    exp_or_inf,
)

Terms = tuple[dict[str, float], list[str]]


def regret_bound(
    bandit: RewardSource,
    network: Network,
    policy: Policy | OwnPolicy,
    horizon: int,
    form: Form = "corrected",
    *,
    plan: Any = None,
) -> Bound:
    """The bound on the group's expected regret. `plan` saves working out `policy.plan(network)` again."""
    check_form(form)
    setting = _setting(bandit, network, policy, horizon, plan)
    if horizon <= bandit.n_arms:
        terms, words = _first_rounds(setting, network.n_agents)
    elif form == "printed":
        terms, words = printed_terms(setting)
    else:
        terms, words = _corrected(setting)
    return Bound.of(terms, form=form, horizon=horizon, ceiling=setting.ceiling, assumptions=words)


def individual_bound(
    bandit: RewardSource,
    network: Network,
    policy: CentralizedMPUCB,
    horizon: int,
    agent: int,
    form: Form = "corrected",
    *,
    plan: Any = None,
) -> Bound:
    """The bound on one agent's expected regret under Centralized MP-UCB: leader or follower."""
    check_form(form)
    if not isinstance(policy, CentralizedMPUCB):
        raise InputError(
            f"{type(policy).__name__} has no bound for single agents: it is known for CentralizedMPUCB only"
        )
    agent = network.check_agent(agent)
    setting = _setting(bandit, network, policy, horizon, plan)
    leader = int(setting.plan.leader_of[agent])
    cell = int((setting.plan.leader_of == leader).sum())
    if horizon <= bandit.n_arms:
        terms, words = _first_rounds(setting, 1)
    elif form == "printed":
        terms, words = printed_individual(setting, cell)
    else:
        gamma = setting.gamma
        failed = setting.failures(setting.heard[[leader]])
        terms = {
            "learning": setting.learning / cell,
            "delay": setting.gap_sum * max(2 * gamma - 1, 0),
            "following": setting.gap_sum * (0 if agent == leader else gamma),
            "start": setting.gap_sum * 2,
            "failures": setting.gap_sum * failed,
        }
        words = [
            f"Agent {agent} shares samples with the {cell} agents of leader {leader}.",
            *setting.radius_words(),
        ]
    ceiling = setting.ceiling / network.n_agents
    return Bound.of(terms, form=form, horizon=horizon, ceiling=ceiling, assumptions=words)


def _setting(
    bandit: RewardSource, network: Network, policy: Policy | OwnPolicy, horizon: int, plan: Any
) -> Setting:
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        raise InputError(f"horizon = {horizon!r} is not allowed: a whole number >= 1")
    if not isinstance(policy, Policy):
        raise InputError(f"there is no bound for {policy!r}: bounds are known for the built-in policies only")
    if not (bandit.gaps > 0).any():
        raise InputError("all arms have the same mean: there is nothing to regret, and nothing to bound")
    plan = policy.plan(network) if plan is None else plan
    return Setting(bandit, network, policy, int(horizon), plan)


def _first_rounds(setting: Setting, agents: int) -> Terms:
    """In round t <= K everyone pulls arm t - 1: no theory is needed."""
    total = agents * float(setting.bandit.gaps[: setting.horizon].sum())
    return {"start": total}, [
        "The horizon ends within the first K rounds, in which the arms are fixed: exact."
    ]


def _corrected(setting: Setting) -> Terms:
    policy = setting.policy
    if isinstance(policy, ConsensusUCB):
        return _consensus(setting)
    if isinstance(policy, DecentralizedMPUCB):
        return _decentralized(setting)
    if isinstance(policy, CentralizedMPUCB):
        return _centralized(setting)
    if isinstance(policy, KMPUCB):
        return _kmp(setting)
    if isinstance(policy, RobustUCB):
        terms = _shared(setting, setting.n_agents)
        terms["failures"] = setting.gap_sum * setting.failures(setting.heard)
        return terms, ["Every agent learns alone: M times one agent.", *setting.radius_words()]
    raise InputError(f"there is no bound for {type(policy).__name__}")


def _shared(setting: Setting, groups: int) -> dict[str, float]:
    """The terms that any partition into groups sharing their samples within gamma hops has."""
    m = setting.n_agents
    return {
        "learning": groups * setting.learning,
        "delay": setting.gap_sum * (m - groups) * max(setting.gamma - 1, 0),
        "start": setting.gap_sum * (groups + 2 * m),
    }


def _decentralized(setting: Setting) -> Terms:
    if setting.plan is None:
        cliques, heard = cover_size(setting.network, setting.gamma), setting.heard
        source = "found for this bound; any cover would do"
    else:
        cliques, heard = len(setting.plan), np.empty(setting.n_agents, np.int64)
        for group in setting.plan:
            heard[list(group)] = len(group)
        source = "the one in use"
    terms = _shared(setting, cliques)
    terms["failures"] = setting.gap_sum * setting.failures(heard)
    return terms, [
        f"{cliques} cliques cover the power graph of gamma = {setting.gamma} ({source}).",
        *setting.radius_words(),
    ]


def _centralized(setting: Setting) -> Terms:
    leaders, cells = np.unique(setting.plan.leader_of, return_counts=True)
    terms = _shared(setting, len(leaders))
    terms["following"] = setting.gap_sum * (setting.n_agents - len(leaders)) * setting.gamma
    terms["failures"] = setting.gap_sum * setting.failures(setting.heard[leaders], cells)
    return terms, [
        f"{len(leaders)} leaders reach everyone within gamma = {setting.gamma} hops.",
        *setting.radius_words(),
    ]


def _kmp(setting: Setting) -> Terms:
    centres = dominating_size(setting.network, setting.gamma)
    terms = _shared(setting, centres)
    terms["delay"] += setting.gap_sum * setting.n_agents * setting.gamma
    # A failed estimate misleads everyone who hears of it.
    terms["failures"] = setting.gap_sum * setting.failures(setting.heard, setting.heard)
    return terms, [
        f"{centres} agents reach everyone within gamma = {setting.gamma} hops (found for this bound; the "
        "policy need not know them).",
        *setting.radius_words(),
    ]


def _consensus(setting: Setting) -> Terms:
    """Not logarithmic: T^(2/(3 eps)), from a polynomial radius."""
    assert isinstance(setting.policy, ConsensusUCB)
    moments = setting.policy.moments or setting.bandit.moments()
    m, horizon, eps = setting.n_agents, setting.horizon, moments.eps
    level = math.log(6 * moments.rho) + 2 / 3 * math.log(horizon)
    learning = sum(
        gap * exp_or_inf(level / eps + (1 + 1 / eps) * math.log(2 / gap)) for gap in setting.gaps.tolist()
    )
    # |M|^p has expectation at most 2 (1 for p = 2) times its p-variation, which is sorted by powers of two.
    factor = 1.0 if eps == 1.0 else 2.0
    t = np.arange(setting.bandit.n_arms + 1, horizon + 1, dtype=np.float64)
    levels = np.floor(np.log2(t * m**eps)) + 1
    failed = float(np.minimum(1, 2 / 3 * factor * levels * t ** (-2 / 3)).sum())
    terms = {
        "learning": float(learning),
        "mixing": setting.gap_sum * m * (float(setting.plan.epsilon.max()) + _count_error(setting)),
        "start": setting.gap_sum * 2 * m,
        "failures": setting.gap_sum * m * failed,
    }
    words = setting.moment_words(moments)
    if setting.policy.epsilon is not None:
        words.append("epsilon was given, and is taken to bound the variance of the averages.")
    if 2 / (3 * eps) >= 1:
        words.append("eps <= 2/3: the bound grows at least as fast as T, so it never says anything.")
    return terms, words


def _count_error(setting: Setting) -> float:
    """How far an agent's count may be from the average: sqrt(M) l / (1 - l), l the second eigenvalue."""
    assert isinstance(setting.policy, ConsensusUCB)
    second = float(consensus_eigenvalues(setting.network, setting.policy.kappa).max(initial=0.0))
    return math.sqrt(setting.n_agents) * second / (1 - second)
