"""The agents, one file per family; each reads like its pseudo-code."""

from rumormill.policies.base import Agent, OwnPolicy, Policy, Problem, Seat
from rumormill.policies.centralized import CentralizedMPUCB
from rumormill.policies.consensus import ConsensusUCB
from rumormill.policies.decentralized import DecentralizedMPUCB
from rumormill.policies.kmp import KMPUCB
from rumormill.policies.robust import RobustUCB
from rumormill.policies.samples import RobustPolicy, log_confidence

__all__ = [
    "Agent",
    "CentralizedMPUCB",
    "ConsensusUCB",
    "DecentralizedMPUCB",
    "KMPUCB",
    "OwnPolicy",
    "Policy",
    "Problem",
    "RobustPolicy",
    "RobustUCB",
    "Seat",
    "log_confidence",
]
