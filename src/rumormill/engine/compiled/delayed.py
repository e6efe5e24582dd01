"""DDUCB laid out for its kernel."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardStream
from rumormill.engine.compiled.base import Ground, empty_output, finished, law_of, rounds_for
from rumormill.engine.compiled.consensus import COST_PER_LINK, moments_for
from rumormill.engine.compiled.sums import empty_table, heard_by_blocks
from rumormill.engine.opening import Opening
from rumormill.engine.result import Trial
from rumormill.kernels.delayed import DelayedRules, DelayedState, play_delayed_block
from rumormill.policies import DDUCB, DelayedPlan


class DelayedLayout:
    """DDUCB on a network."""

    def __init__(self, policy: DDUCB, plan: DelayedPlan, ground: Ground) -> None:
        network = ground.network
        self.policy, self.network, self.plan = policy, network, plan
        self.sums = heard_by_blocks(network)
        self.deliveries = int(network.degrees.sum())
        self.rounds_per_block = rounds_for(COST_PER_LINK * self.deliveries)

    def start(self, opening: Opening) -> DelayedTrial:
        return DelayedTrial(self, opening)


class DelayedTrial:
    """One trial of DDUCB."""

    def __init__(self, layout: DelayedLayout, opening: Opening) -> None:
        source = opening.source
        policy, network, n_arms = layout.policy, layout.network, source.n_arms
        n_agents = network.n_agents
        self.layout, self.n_arms = layout, n_arms
        self.output = empty_output(n_agents, opening)
        self.rules = DelayedRules(
            n_arms=n_arms,
            weight=layout.plan.weight,
            forward=np.array(layout.plan.forward),
            back=np.array(layout.plan.back),
            own=bool(policy.own),
            eta=float(policy.eta),
            sigma=float(policy.scale(moments_for(policy, source))),
            gaps=np.array(source.gaps),
            degrees=network.degrees,
            sums=layout.sums,
        )
        shape = (2 * n_arms, n_agents)
        self.state = DelayedState(
            use=np.zeros(shape),
            mix=np.zeros(shape),
            before=np.zeros(shape),
            fresh=np.zeros(shape),
            done=np.zeros(shape),
            table=empty_table(2 * n_arms, n_agents, layout.sums),
            best_index=np.zeros(n_agents),
            action=np.zeros(n_agents, dtype=np.int32),
            pulls=np.zeros((n_agents, n_arms), dtype=np.int64),
            mark=np.zeros(1, dtype=np.int64),
            clock=np.zeros(2, dtype=np.int64),
        )

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        play_delayed_block(first, draws, law_of(rewards), self.rules, self.state, self.output)

    def finish(self) -> Trial:
        messages = np.asarray(self.output.marks * self.layout.deliveries, dtype=np.int64)
        return finished(self.output, messages, rows_sent=self.n_arms)
