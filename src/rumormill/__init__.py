"""Cooperative multi-agent bandits with heavy tails.

Agents on a network play one bandit together, pass rumours (what I pulled, what I got) a few hops, and
learn from rewards whose variance may be infinite.
"""

from rumormill import checks
from rumormill.arms import (
    AlphaStable,
    Arm,
    Bandit,
    Empirical,
    Gaussian,
    LogNormal,
    Moments,
    Pareto,
    Replay,
    StudentT,
    TwoPoint,
    two_point_pair,
)
from rumormill.engine import Result, simulate
from rumormill.errors import ContractError, DataError, InputError, RumormillError, SolverError
from rumormill.estimators import Catoni, EmpiricalMean, Estimator, MedianOfMeans, OnlineMean, TrimmedMean
from rumormill.graphs import Network
from rumormill.policies import (
    KMPUCB,
    Agent,
    CentralizedMPUCB,
    ConsensusUCB,
    DecentralizedMPUCB,
    RobustUCB,
    Seat,
)
from rumormill.protocol import Channel, Message, PerfectChannel, Relay

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "AlphaStable",
    "Arm",
    "Bandit",
    "Catoni",
    "CentralizedMPUCB",
    "Channel",
    "ConsensusUCB",
    "ContractError",
    "DataError",
    "DecentralizedMPUCB",
    "Empirical",
    "EmpiricalMean",
    "Estimator",
    "Gaussian",
    "InputError",
    "KMPUCB",
    "LogNormal",
    "MedianOfMeans",
    "Message",
    "Moments",
    "Network",
    "OnlineMean",
    "Pareto",
    "PerfectChannel",
    "Relay",
    "Replay",
    "Result",
    "RobustUCB",
    "RumormillError",
    "Seat",
    "SolverError",
    "StudentT",
    "TrimmedMean",
    "TwoPoint",
    "checks",
    "simulate",
    "two_point_pair",
]
