"""The agents, one file per family; each reads like its pseudo-code."""

from rumormill.policies.averaging import ConsensusPlan
from rumormill.policies.base import (
    Agent,
    NoPlan,
    OwnPolicy,
    Plan,
    Policy,
    Seat,
    as_policy,
    policy_name,
    seated,
)
from rumormill.policies.baselines import (
    DDUCB,
    DPE2,
    HTHMUCB,
    RMMUCB,
    AdaRUCB,
    AlphaStableTS,
    CoopSE,
    CoopUCB2,
    DecentralizedTS,
    DelayedPlan,
    KLInfUCB,
    RobustDirichlet,
    RobustGossip,
)
from rumormill.policies.centralized import CentralizedMPUCB, LeaderPlan
from rumormill.policies.consensus import ConsensusUCB
from rumormill.policies.decentralized import CliquePlan, DecentralizedMPUCB, RobustUCB
from rumormill.policies.default import Default, recommended
from rumormill.policies.epsilon_greedy import EpsilonGreedy
from rumormill.policies.kmp import KMPUCB
from rumormill.policies.message_passing_policy import HopPart, HopPlan, RobustPolicy
from rumormill.policies.mixed import MixedGroup
from rumormill.policies.origin_median import OriginMedianUCB
from rumormill.policies.prior import Prior
from rumormill.policies.thompson_kmp import ThompsonKMP

__all__ = [
    "KLInfUCB",
    "RobustDirichlet",
    "AlphaStableTS",
    "DPE2",
    "RMMUCB",
    "DecentralizedTS",
    "AdaRUCB",
    "HTHMUCB",
    "CoopSE",
    "Agent",
    "CentralizedMPUCB",
    "CliquePlan",
    "ConsensusPlan",
    "ConsensusUCB",
    "CoopUCB2",
    "DDUCB",
    "DecentralizedMPUCB",
    "Default",
    "DelayedPlan",
    "EpsilonGreedy",
    "HopPart",
    "HopPlan",
    "KMPUCB",
    "LeaderPlan",
    "MixedGroup",
    "NoPlan",
    "OriginMedianUCB",
    "OwnPolicy",
    "Plan",
    "Policy",
    "Prior",
    "RobustGossip",
    "RobustPolicy",
    "RobustUCB",
    "Seat",
    "ThompsonKMP",
    "as_policy",
    "policy_name",
    "recommended",
    "seated",
]
