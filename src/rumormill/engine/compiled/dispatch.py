"""Which policies the kernels can play, and how each is laid out: the one table for this room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rumormill.engine.compiled.estimators import MEANS
from rumormill.engine.compiled.layout_consensus import ConsensusLayout, DelayedLayout
from rumormill.engine.compiled.layout_lossy import LARGEST_SCALE, LONGEST_DELAY, Apart, ImperfectLayout
from rumormill.engine.compiled.layout_messages import MessagePassingLayout
from rumormill.engine.compiled.state import Ground, Layout
from rumormill.estimators import TrimmedMean
from rumormill.kernels.origins import ALL, CAUTIOUS, TRIMMED
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
    OriginMedianUCB,
    Plan,
    Policy,
    RobustGossip,
    RobustUCB,
)
from rumormill.policies.kmp import GUARD_COUNT, GUARD_SPARE
from rumormill.protocol import Imperfect, PerfectChannel, World

COUNTING = {"all": ALL, "trimmed": TRIMMED, "cautious": CAUTIOUS}


def _decentralized(policy: Any, plan: CliquePlan, ground: Ground) -> Layout:
    group_of = None
    if plan.groups is not None:
        group_of = np.empty(ground.network.n_agents, dtype=np.int64)
        for number, group in enumerate(plan.groups):
            group_of[list(group)] = number
    return _message_passing(policy, plan, ground, group_of=group_of)


def _centralized(policy: Any, plan: LeaderPlan, ground: Ground) -> Layout:
    follows = plan.leader_of != np.arange(ground.network.n_agents)
    leader_of = np.where(follows, plan.leader_of, -1).astype(np.int32)
    distance = np.where(follows, plan.distance, 0).astype(np.int32)
    return _message_passing(policy, plan, ground, leader_of=leader_of, leader_distance=distance)


def _kmp(policy: Any, plan: HopPlan, ground: Ground) -> Layout:
    liars = policy.liars(len(ground.world.liars))
    if liars:  # with a guard the mean is not the policy's own, whose radius needs a constant
        zeta = 1.0 if policy.c is None and policy.zeta is None else policy.zeta
        policy = replace(policy, estimator=TrimmedMean(), zeta=zeta)
        apart = Apart(liars, GUARD_SPARE, COUNTING[GUARD_COUNT])
        return ImperfectLayout.build_on(ground, policy, plan, shares_rows=True, apart=apart)
    return _message_passing(policy, plan, ground, shares_rows=True)


def _origin_median(policy: Any, plan: HopPlan, ground: Ground) -> Layout:
    apart = Apart(policy.f, policy.spare, COUNTING[policy.count])
    return ImperfectLayout.build_on(ground, policy, plan, apart=apart)


def _message_passing(policy: Any, plan: HopPlan, ground: Ground, **given: Any) -> Layout:
    """Where everything is heard, and used, at once, hearing is a rule of distance; else it is followed."""
    selects = getattr(policy, "hold", 1) > 1 or getattr(policy, "discard", None) is not None
    if ground.world.plain and not selects:
        return MessagePassingLayout.build(policy, ground.network, plan.gamma, ground.n_arms, **given)
    return ImperfectLayout.build_on(ground, policy, plan, **given)


LAYOUTS: dict[type[Policy], Callable[[Any, Any, Ground], Layout]] = {
    DecentralizedMPUCB: _decentralized,
    CentralizedMPUCB: _centralized,
    KMPUCB: _kmp,
    RobustUCB: _message_passing,
    OriginMedianUCB: _origin_median,
    ConsensusUCB: ConsensusLayout,
    CoopUCB2: ConsensusLayout,
    RobustGossip: ConsensusLayout,
    DDUCB: DelayedLayout,
}


def why_not(policy: Policy, world: World) -> str | None:
    """Why the compiled engine cannot run a policy; None if it can."""
    if type(world.channel) not in (PerfectChannel, Imperfect):
        return f"the compiled engine does not know the channel {type(world.channel).__name__}"
    if type(policy) not in LAYOUTS:  # a subclass may do something else
        return "the compiled engine runs the built-in policies only"
    estimator = getattr(policy, "estimator", None)
    if estimator is not None:
        known = MEANS.get(type(estimator))
        if known is None:
            return f"the compiled engine does not know the estimator {type(estimator).__name__}"
        if not known.knows(estimator):
            return f"the compiled engine does not know {estimator!r}"
    return None if world.plain else why_not_in(policy, world)


def why_not_in(policy: Policy, world: World) -> str | None:
    """Why the compiled engine cannot run a policy, though it knows it, in an imperfect world."""
    if LAYOUTS[type(policy)] is DelayedLayout:
        return "the compiled engine plays DDUCB in a perfect world only"
    if (world.longest_delay or 0) > LONGEST_DELAY:
        return f"the compiled engine knows delays up to {LONGEST_DELAY} rounds only"
    if getattr(policy, "hold", 1) > 1 and (world.absences or world.churn):
        return "the compiled engine does not hold messages back for agents that are away"
    corruption = world.corruption
    if corruption is not None and abs(corruption.scale or 0.0) > LARGEST_SCALE:
        return f"the compiled engine knows scales of corruption up to {LARGEST_SCALE:g} only"
    return None


def lay_out(policy: Policy, plan: Plan, ground: Ground) -> Layout:
    """The layout of a policy that the kernels can play."""
    return LAYOUTS[type(policy)](policy, plan, ground)
