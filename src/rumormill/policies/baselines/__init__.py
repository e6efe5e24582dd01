"""Algorithms of other papers, and a robust variant of one, each in one file."""

from rumormill.policies.baselines.adar_ucb import AdaRUCB
from rumormill.policies.baselines.coop_se import CoopSE
from rumormill.policies.baselines.coop_ucb2 import CoopUCB2
from rumormill.policies.baselines.dducb import DDUCB, DelayedPlan
from rumormill.policies.baselines.ht_hmucb import HTHMUCB
from rumormill.policies.baselines.robust_gossip import RobustGossip

__all__ = ["AdaRUCB", "HTHMUCB", "CoopSE", "CoopUCB2", "DDUCB", "DelayedPlan", "RobustGossip"]
