"""The paper's bounds letter by letter, for comparison. They need not hold: docs/theory.md says where not.

c and m (the paper's v or rho) are those of the policy's radius; where a statement has an unnamed constant C,
the last line of its proof is taken.
"""

from __future__ import annotations

import math

import numpy as np

from rumormill.errors import InputError
from rumormill.policies import KMPUCB, CentralizedMPUCB, ConsensusUCB, DecentralizedMPUCB, RobustUCB
from rumormill.theory.setting import Setting, consensus_eigenvalues, cover_size, exp_or_inf, independent_size

Terms = tuple[dict[str, float], list[str]]


def printed_terms(setting: Setting) -> Terms:
    """The terms of the printed group bound of the policy."""
    policy = setting.policy
    if isinstance(policy, ConsensusUCB):
        return _consensus(setting)
    if isinstance(policy, RobustUCB):
        words = "The paper has no bound of its own for agents that never talk: Algorithm 1 at gamma = 0."
        return _decentralized(setting, setting.n_agents, [words])
    if isinstance(policy, DecentralizedMPUCB):
        if setting.plan is not None:
            return _decentralized(
                setting, len(setting.plan), ["The cover number is that of the cover in use."]
            )
        size = cover_size(setting.network, setting.gamma)
        return _decentralized(setting, size, ["The cover number is that of the cover found."])
    if isinstance(policy, CentralizedMPUCB):
        if policy.leaders == "independent":
            return _centralized(setting, *independent_size(setting.network, setting.gamma))
        leaders = len(np.unique(setting.plan.leader_of))
        return _centralized(setting, leaders, "The number of leaders stands in for the independence number.")
    if isinstance(policy, KMPUCB):
        return _kmp(setting, *independent_size(setting.network, setting.gamma))
    raise InputError(f"there is no bound for {type(policy).__name__}")


def printed_individual(setting: Setting, cell: int) -> Terms:
    """2^(1+1/eps) c m^(1/eps) gap^(-1/eps) / |F[l]| ln T + (gamma + 3) (sum of gaps + 1)."""
    eps = setting.moments.eps
    return {
        "learning": _scaled(setting, 2 ** (1 + 1 / eps), 1.0) / cell,
        "delay": (setting.gamma + 3) * (setting.gap_sum + 1),
    }, _words(setting, f"The leader's group has {cell} agents.")


def _decentralized(setting: Setting, cover: int, words: list[str]) -> Terms:
    """4 c m^(1/eps) cover (2 gap)^(-1/eps) ln T + (3 M + gamma cover (M - 1)) gap."""
    m = setting.n_agents
    return {
        "learning": cover * _scaled(setting, 4.0, 2.0),
        "delay": setting.gap_sum * setting.gamma * cover * (m - 1),
        "start": setting.gap_sum * 3 * m,
    }, _words(setting, *words, "C = 4 c m^(1/eps), from the proof.")


def _centralized(setting: Setting, size: int, words: str) -> Terms:
    """2^(1+1/eps) c m^(1/eps) alpha gap^(-1/eps) ln T + (alpha M gamma + M + alpha) gap."""
    m, eps = setting.n_agents, setting.moments.eps
    return {
        "learning": size * _scaled(setting, 2 ** (1 + 1 / eps), 1.0),
        "delay": setting.gap_sum * size * m * setting.gamma,
        "start": setting.gap_sum * (m + size),
    }, _words(setting, words)


def _kmp(setting: Setting, size: int, words: str) -> Terms:
    """2 c m^(1/eps) alpha gap^(-1/eps) ln T + alpha (gamma + 2 + M) gap."""
    return {
        "learning": size * _scaled(setting, 2.0, 1.0),
        "delay": setting.gap_sum * size * setting.gamma,
        "start": setting.gap_sum * size * (2 + setting.n_agents),
    }, _words(setting, words)


def _scaled(setting: Setting, factor: float, stretch: float) -> float:
    """factor c m^(1/eps) ln T * sum of (stretch gap)^(-1/eps)."""
    eps, radius = setting.moments.eps, setting.radius
    lead = math.log(factor * radius.constant) + math.log(radius.estimator.moment(setting.moments)) / eps
    scale = math.log(math.log(setting.horizon))
    return float(
        sum(exp_or_inf(lead + scale - math.log(stretch * gap) / eps) for gap in setting.gaps.tolist())
    )


def _consensus(setting: Setting) -> Terms:
    """gap (M + M e + T^(2/3) (6 v (1 + e_k) / gap^2 + M)) with e = sqrt(M) sum |l_p| / (1 - |l_p|)."""
    assert isinstance(setting.policy, ConsensusUCB)
    moments = setting.policy.moments or setting.bandit.moments()
    m, rate = setting.n_agents, setting.horizon ** (2 / 3)
    spread = float(setting.plan.epsilon.max()) / m
    sizes = consensus_eigenvalues(setting.network, setting.policy.kappa)
    count_error = math.sqrt(m) * float((sizes / (1 - sizes)).sum())
    return {
        "learning": rate * 6 * moments.rho * (1 + spread) * float((1 / setting.gaps).sum()),
        "mixing": setting.gap_sum * m * count_error,
        "start": setting.gap_sum * m,
        "failures": setting.gap_sum * m * rate,
    }, [
        "As printed; stated for all eps, derived for eps = 1. Its epsilon^k belongs to an agent, not an arm: "
        "the largest over agents is taken, without the factor M, as the theorem has it.",
    ]


def _words(setting: Setting, *words: str) -> list[str]:
    return [
        "As printed: a constant or a delay is missing, so it need not hold.",
        *words,
        *setting.radius_words(),
    ]
