"""Which family of bounds a policy belongs to: the one table for this room."""

from __future__ import annotations

from rumormill.policies import (
    DDUCB,
    KMPUCB,
    CentralizedMPUCB,
    ConsensusUCB,
    CoopUCB2,
    DecentralizedMPUCB,
    OriginMedianUCB,
    Policy,
    RobustGossip,
    RobustUCB,
)
from rumormill.theory.bounds.consensus import Consensus
from rumormill.theory.bounds.dducb import Delayed
from rumormill.theory.bounds.family import Family
from rumormill.theory.bounds.message_passing import KMP, Alone, Centralized, Decentralized

# By the very class: a subclass may do something else, which no argument here covers.
BOUNDS: dict[type[Policy], type[Family]] = {
    DecentralizedMPUCB: Decentralized,
    CentralizedMPUCB: Centralized,
    KMPUCB: KMP,
    RobustUCB: Alone,
    ConsensusUCB: Consensus,
    DDUCB: Delayed,
}

# Built-in policies without one, and why.
UNBOUNDED: dict[type[Policy], str] = {
    OriginMedianUCB: "its argument needs many more groups of origins than the policy makes",
    CoopUCB2: "the published one has a constant of the network that is nowhere given in numbers",
    RobustGossip: "its argument is a sketch, without constants",
}
