"""Algorithms of other papers, one file each; a robust variant of one stands beside it."""

from rumormill.policies.baselines.adar_ucb import AdaRUCB
from rumormill.policies.baselines.alpha_ts import AlphaStableTS
from rumormill.policies.baselines.coop_se import CoopSE
from rumormill.policies.baselines.coop_ucb2 import CoopUCB2, RobustGossip
from rumormill.policies.baselines.dducb import DDUCB, DelayedPlan
from rumormill.policies.baselines.decentralized_ts import DecentralizedTS
from rumormill.policies.baselines.dirichlet import RobustDirichlet
from rumormill.policies.baselines.dpe2 import DPE2
from rumormill.policies.baselines.ht_hmucb import HTHMUCB
from rumormill.policies.baselines.klinf_ucb import KLInfUCB
from rumormill.policies.baselines.rmm_ucb import RMMUCB

__all__ = [
    "AdaRUCB",
    "AlphaStableTS",
    "CoopSE",
    "CoopUCB2",
    "DDUCB",
    "DPE2",
    "DecentralizedTS",
    "DelayedPlan",
    "HTHMUCB",
    "KLInfUCB",
    "RMMUCB",
    "RobustDirichlet",
    "RobustGossip",
]
