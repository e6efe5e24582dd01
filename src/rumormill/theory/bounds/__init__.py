"""Upper bounds on regret, one class per family of policies, in a corrected and a printed form.

All are sums over the suboptimal arms. With n0 the number of samples from which an arm's radius is below half
its gap, a group that shares its samples pulls the arm at most n0 times, and then only because of delay, or
because an estimate fails. docs/theory.md has the argument, and where the printed forms, letter by letter the
paper's, go wrong.
"""

from rumormill.policies import (
    DDUCB,
    DPE2,
    HTHMUCB,
    KMPUCB,
    RMMUCB,
    AdaRUCB,
    AlphaStableTS,
    CentralizedMPUCB,
    ConsensusUCB,
    CoopSE,
    CoopUCB2,
    DecentralizedMPUCB,
    DecentralizedTS,
    Default,
    EpsilonGreedy,
    KLInfUCB,
    OriginMedianUCB,
    Policy,
    RobustDirichlet,
    RobustGossip,
    RobustUCB,
    ThompsonKMP,
)
from rumormill.theory.bounds.consensus import Consensus, Delayed
from rumormill.theory.bounds.family import Family
from rumormill.theory.bounds.message_passing import KMP, Alone, Centralized, Decentralized

__all__ = ["BOUNDS", "UNBOUNDED", "Family"]

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
    EpsilonGreedy: "with a fixed rate regret is linear, and plain means have no lemma under heavy tails",
    CoopSE: "its radius is that of the UCB policies, but no argument is written down for arms pulled in turn",
    HTHMUCB: "the published one is for random graphs drawn anew in every round, without constants",
    AdaRUCB: "the published one needs an assumption on the best arm that cannot be checked",
    DecentralizedTS: "nothing is proven for Thompson sampling under heavy tails",
    RMMUCB: "its level is fixed, so that regret may be linear in the end",
    DPE2: "the published one is for one leader and KL-UCB",
    AlphaStableTS: "the published one is for Bayes regret, of another sampler",
    RobustDirichlet: "nothing is proven for heavy tails",
    KLInfUCB: "the published one is asymptotic, for another threshold",
    Default: "nothing is proven for its Thompson draws; docs/theory.md says what holds",
    ThompsonKMP: "nothing is proven for Thompson sampling under heavy tails",
    CoopUCB2: "the published one has a constant of the network that is nowhere given in numbers",
    RobustGossip: "its argument is a sketch, without constants",
}
