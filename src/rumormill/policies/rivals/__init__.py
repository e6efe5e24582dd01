"""Other people's algorithms, and one that answers them, each in one file."""

from rumormill.policies.rivals.coop_ucb2 import CoopUCB2
from rumormill.policies.rivals.dducb import DDUCB
from rumormill.policies.rivals.robust_gossip import RobustGossip
from rumormill.policies.rivals.stages import DelayedPlan

__all__ = ["CoopUCB2", "DDUCB", "DelayedPlan", "RobustGossip"]
