"""Which family of bounds a policy belongs to: the one table for this room."""

from __future__ import annotations

from rumormill.policies import (
    KMPUCB,
    CentralizedMPUCB,
    ConsensusUCB,
    DecentralizedMPUCB,
    Policy,
    RobustUCB,
)
from rumormill.theory.bounds.alone import Alone
from rumormill.theory.bounds.centralized import Centralized
from rumormill.theory.bounds.consensus import Consensus
from rumormill.theory.bounds.decentralized import Decentralized
from rumormill.theory.bounds.family import Family
from rumormill.theory.bounds.kmp import KMP

# By the very class: a subclass may do something else, which no argument here covers.
BOUNDS: dict[type[Policy], type[Family]] = {
    DecentralizedMPUCB: Decentralized,
    CentralizedMPUCB: Centralized,
    KMPUCB: KMP,
    RobustUCB: Alone,
    ConsensusUCB: Consensus,
}
