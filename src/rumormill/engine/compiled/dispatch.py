"""Which policies the kernels support, and the layout of each: one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rumormill.engine.compiled.estimators import BELIEFS, MEANS
from rumormill.engine.compiled.layout_consensus import ConsensusLayout, DelayedLayout
from rumormill.engine.compiled.layout_lossy import LARGEST_SCALE, LONGEST_DELAY, LossyLayout, OriginGroups
from rumormill.engine.compiled.layout_messages import MessagePassingLayout
from rumormill.engine.compiled.state import Layout, LayoutInputs
from rumormill.engine.reference import NO_CONSTRAINT, Constraint
from rumormill.estimators import HuberSGD, TrimmedMean
from rumormill.kernels.origins import ALL, CAUTIOUS, TRIMMED
from rumormill.policies import (
    DDUCB,
    KMPUCB,
    CentralizedMPUCB,
    CliquePlan,
    ConsensusUCB,
    CoopUCB2,
    DecentralizedMPUCB,
    Default,
    HopPlan,
    LeaderPlan,
    OriginMedianUCB,
    Plan,
    Policy,
    Prior,
    RobustGossip,
    RobustUCB,
    ThompsonKMP,
)
from rumormill.policies.kmp import GUARD_COUNT, GUARD_SPARE
from rumormill.policies.thompson_kmp import ESTIMATOR
from rumormill.protocol import Imperfect, PerfectChannel, World

COUNTING = {"all": ALL, "trimmed": TRIMMED, "cautious": CAUTIOUS}


def _decentralized(policy: Any, plan: CliquePlan, inputs: LayoutInputs) -> Layout:
    group_of = None
    if plan.groups is not None:
        group_of = np.empty(inputs.network.n_agents, dtype=np.int64)
        for number, group in enumerate(plan.groups):
            group_of[list(group)] = number
    return _message_passing(policy, plan, inputs, group_of=group_of)


def _centralized(policy: Any, plan: LeaderPlan, inputs: LayoutInputs) -> Layout:
    follows = plan.leader_of != np.arange(inputs.network.n_agents)
    leader_of = np.where(follows, plan.leader_of, -1).astype(np.int32)
    distance = np.where(follows, plan.distance, 0).astype(np.int32)
    return _message_passing(policy, plan, inputs, leader_of=leader_of, leader_distance=distance)


def _kmp(policy: Any, plan: HopPlan, inputs: LayoutInputs) -> Layout:
    liars = policy.liars(len(inputs.world.liars))
    if liars:  # the guard has a mean of its own: the radius of the policy's mean would need a constant
        zeta = 1.0 if policy.c is None and policy.zeta is None else policy.zeta
        policy = replace(policy, estimator=TrimmedMean(), zeta=zeta)
        groups = OriginGroups(liars, GUARD_SPARE, COUNTING[GUARD_COUNT])
        return LossyLayout.build_lossy(inputs, policy, plan, shares_rows=True, origin_groups=groups)
    return _message_passing(policy, plan, inputs, shares_rows=True)


def _origin_median(policy: Any, plan: HopPlan, inputs: LayoutInputs) -> Layout:
    groups = OriginGroups(policy.f, policy.spare, COUNTING[policy.count])
    return LossyLayout.build_lossy(inputs, policy, plan, origin_groups=groups)


def _default(policy: Default, plan: HopPlan, inputs: LayoutInputs) -> Layout:
    """As any policy that floods samples and needs no moments, with beliefs in place of means."""
    floods = DecentralizedMPUCB(
        gamma=plan.gamma, clique_filter=False, start=policy.start_and_quiet.start, estimator=HuberSGD()
    )
    layout: Any = _message_passing(floods, plan, inputs)
    found: Layout = replace(layout, mean=BELIEFS)
    return found


def _thompson(policy: ThompsonKMP, plan: HopPlan, inputs: LayoutInputs) -> Layout:
    """KMP with Huber means; draws in place of indices."""
    kmp = KMPUCB(gamma=plan.gamma, estimator=ESTIMATOR, guard=0)
    layout: Any = _message_passing(kmp, plan, inputs, shares_rows=True)
    found: Layout = replace(layout, width=float(policy.width))
    return found


def selects_samples(policy: Any) -> bool:
    """Whether some samples are used late, dropped, or forgotten later."""
    return getattr(policy, "hold", 1) > 1 or bool(
        getattr(policy, "discard", 0) or getattr(policy, "forget", 0)
    )


def _message_passing(policy: Any, plan: HopPlan, inputs: LayoutInputs, **given: Any) -> Layout:
    """On a perfect channel arrivals depend on distance only; otherwise they are simulated."""
    if inputs.world.plain and not selects_samples(policy):
        given |= {"prior": inputs.prior, "constraint": inputs.constraint}
        return MessagePassingLayout.build(policy, inputs.network, plan.gamma, inputs.n_arms, **given)
    return LossyLayout.build_lossy(inputs, policy, plan, **given)


LAYOUTS: dict[type[Policy], Callable[[Any, Any, LayoutInputs], Layout]] = {
    DecentralizedMPUCB: _decentralized,
    CentralizedMPUCB: _centralized,
    KMPUCB: _kmp,
    RobustUCB: _message_passing,
    Default: _default,
    ThompsonKMP: _thompson,
    OriginMedianUCB: _origin_median,
    ConsensusUCB: ConsensusLayout,
    CoopUCB2: ConsensusLayout,
    RobustGossip: ConsensusLayout,
    DDUCB: DelayedLayout,
}

# Policies whose kernel ranks arms.
RANKS = {DecentralizedMPUCB, CentralizedMPUCB, KMPUCB, RobustUCB}


def unsupported_reason(
    policy: Policy, world: World, prior: Prior | None = None, constraint: Constraint = NO_CONSTRAINT
) -> str | None:
    """Why the compiled engine cannot run a policy; None if it can."""
    if constraint.propensities:
        return "the compiled engine records no propensities"
    ranks = constraint.allowed is not None or constraint.k > 1
    if ranks and (type(policy) not in RANKS or not world.plain):
        return "the compiled engine supports allowed and k only for message passing by index without faults"
    if type(world.channel) not in (PerfectChannel, Imperfect):
        return f"the compiled engine does not support the channel {type(world.channel).__name__}"
    if type(policy) not in LAYOUTS:  # a subclass may do something else
        return "the compiled engine runs the built-in policies only"
    estimator = getattr(policy, "estimator", None)
    copies = isinstance(policy, CentralizedMPUCB) and constraint.allowed is not None
    if copies and getattr(estimator, "slack", None):
        return "the compiled engine does not support slack with leaders and allowed"
    forgets = getattr(policy, "forget", None) is not None
    if selects_samples(policy) and ranks:
        return "the compiled engine does not support hold, discard or forget with allowed or k"
    if ranks and isinstance(policy, KMPUCB) and policy.liars(len(world.liars)):
        return "the compiled engine does not support a guard with allowed or k"
    if estimator is not None:
        known = MEANS.get(type(estimator))
        if known is None:
            return f"the compiled engine does not support the estimator {type(estimator).__name__}"
        if not known.supports(estimator):
            return f"the compiled engine does not support {estimator!r}"
        if forgets and known.pool_rows:
            return f"the compiled engine does not support forgetting with {type(estimator).__name__}"
    if forgets and isinstance(policy, KMPUCB) and policy.liars(len(world.liars)):
        return "a guard does not forget"
    if prior is not None:
        if isinstance(policy, KMPUCB) and policy.liars(len(world.liars)):
            return "a guard takes no prior"
        if not prior.complete:
            return "the compiled engine supports priors on all arms only"
        if isinstance(policy, CentralizedMPUCB) and (forgets or not world.plain):
            return "the compiled engine supports a prior with leaders without faults and forgetting only"
    return None if world.plain else unsupported_faults(policy, world)


def unsupported_faults(policy: Policy, world: World) -> str | None:
    """Why the compiled engine cannot run a policy with these faults; None if it can."""
    if LAYOUTS[type(policy)] is DelayedLayout:
        return "the compiled engine requires a fault-free channel for DDUCB"
    if (world.longest_delay or 0) > LONGEST_DELAY:
        return f"the compiled engine supports delays up to {LONGEST_DELAY} rounds only"
    if getattr(policy, "hold", 1) > 1 and (world.absences or world.churn):
        return "the compiled engine does not support hold with absent agents"
    corruption = world.corruption
    if corruption is not None and abs(corruption.scale or 0.0) > LARGEST_SCALE:
        return f"the compiled engine supports scales of corruption up to {LARGEST_SCALE:g} only"
    return None


def compile_layout(policy: Policy, plan: Plan, inputs: LayoutInputs) -> Layout:
    """The layout of a policy that the kernels support."""
    return LAYOUTS[type(policy)](policy, plan, inputs)
