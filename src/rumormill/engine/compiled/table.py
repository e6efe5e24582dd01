"""Which policies the kernels can play, and how each is laid out: the one table for this room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rumormill.engine.compiled.base import Layout
from rumormill.engine.compiled.consensus import ConsensusLayout
from rumormill.engine.compiled.delayed import DelayedLayout
from rumormill.engine.compiled.means import MEANS
from rumormill.engine.compiled.message_passing import MessagePassingLayout
from rumormill.graphs import Network
from rumormill.policies import (
    DDUCB,
    KMPUCB,
    CentralizedMPUCB,
    CliquePlan,
    ConsensusUCB,
    CoopUCB2,
    DecentralizedMPUCB,
    HopPlan,
    LeaderPlan,
    Plan,
    Policy,
    RobustGossip,
    RobustUCB,
)
from rumormill.protocol import World


def _decentralized(policy: Any, network: Network, plan: CliquePlan, n_arms: int) -> Layout:
    group_of = None
    if plan.groups is not None:
        group_of = np.empty(network.n_agents, dtype=np.int64)
        for number, group in enumerate(plan.groups):
            group_of[list(group)] = number
    return MessagePassingLayout.build(policy, network, plan.gamma, n_arms, group_of=group_of)


def _centralized(policy: Any, network: Network, plan: LeaderPlan, n_arms: int) -> Layout:
    follows = plan.leader_of != np.arange(network.n_agents)
    leader_of = np.where(follows, plan.leader_of, -1).astype(np.int32)
    distance = np.where(follows, plan.distance, 0).astype(np.int32)
    return MessagePassingLayout.build(
        policy, network, plan.gamma, n_arms, leader_of=leader_of, leader_distance=distance
    )


def _kmp(policy: Any, network: Network, plan: HopPlan, n_arms: int) -> Layout:
    return MessagePassingLayout.build(policy, network, plan.gamma, n_arms, shares_rows=True)


def _alone(policy: Any, network: Network, plan: HopPlan, n_arms: int) -> Layout:
    return MessagePassingLayout.build(policy, network, plan.gamma, n_arms)


LAYOUTS: dict[type[Policy], Callable[[Any, Network, Any, int], Layout]] = {
    DecentralizedMPUCB: _decentralized,
    CentralizedMPUCB: _centralized,
    KMPUCB: _kmp,
    RobustUCB: _alone,
    ConsensusUCB: ConsensusLayout,
    CoopUCB2: ConsensusLayout,
    RobustGossip: ConsensusLayout,
    DDUCB: DelayedLayout,
}


def why_not(policy: Policy, world: World) -> str | None:
    """Why the compiled engine cannot run a policy; None if it can."""
    if not world.plain:
        return "the compiled engine knows the perfect channel only"
    if type(policy) not in LAYOUTS:  # a subclass may do something else
        return "the compiled engine runs the built-in policies only"
    if isinstance(policy, KMPUCB) and policy.liars(len(world.liars)):
        return "the compiled engine does not know the guard of KMP"
    if getattr(policy, "hold", 1) > 1 or getattr(policy, "discard", None) is not None:
        return "the compiled engine knows neither hold nor discard"
    estimator = getattr(policy, "estimator", None)
    if estimator is not None:
        known = MEANS.get(type(estimator))
        if known is None:
            return f"the compiled engine does not know the estimator {type(estimator).__name__}"
        if not known.knows(estimator):
            return f"the compiled engine does not know {estimator!r}"
    return None


def lay_out(policy: Policy, network: Network, plan: Plan, n_arms: int) -> Layout:
    """The layout of a policy that the kernels can play."""
    return LAYOUTS[type(policy)](policy, network, plan, n_arms)
