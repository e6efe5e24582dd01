"""Reward laws, bandits made of them, and the replay of recorded rewards."""

from rumormill.arms.bandit import Bandit, Replay, RewardSource, RewardStream, VaryingSource, stream_of
from rumormill.arms.base import Arm, Moments, Objective
from rumormill.arms.laws import (
    Bernoulli,
    Empirical,
    Gaussian,
    LogNormal,
    Pareto,
    StudentT,
    TwoPoint,
    two_point_pair,
)
from rumormill.arms.stable import AlphaStable
from rumormill.arms.varying import Clusters, Piecewise, Seasonal, Trend

__all__ = [
    "AlphaStable",
    "Arm",
    "Bandit",
    "Bernoulli",
    "Clusters",
    "Empirical",
    "Gaussian",
    "LogNormal",
    "Moments",
    "Objective",
    "Pareto",
    "Piecewise",
    "Replay",
    "RewardSource",
    "RewardStream",
    "Seasonal",
    "StudentT",
    "Trend",
    "TwoPoint",
    "VaryingSource",
    "stream_of",
    "two_point_pair",
]
