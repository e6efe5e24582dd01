"""Reward laws, bandits made of them, and the replay of recorded rewards."""

from rumormill.arms.bandit import Bandit, RewardSource, RewardStream
from rumormill.arms.base import Arm
from rumormill.arms.light import Empirical, Gaussian, LogNormal, TwoPoint, two_point_pair
from rumormill.arms.moments import Moments
from rumormill.arms.power import Pareto, StudentT
from rumormill.arms.replay import Replay
from rumormill.arms.stable import AlphaStable

__all__ = [
    "AlphaStable",
    "Arm",
    "Bandit",
    "Empirical",
    "Gaussian",
    "LogNormal",
    "Moments",
    "Pareto",
    "Replay",
    "RewardSource",
    "RewardStream",
    "StudentT",
    "TwoPoint",
    "two_point_pair",
]
