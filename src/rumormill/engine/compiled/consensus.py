"""Consensus-UCB and the rivals that average like it, laid out for their kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource, RewardStream
from rumormill.engine.compiled.base import Ground, empty_output, finished, law_of, rounds_for
from rumormill.engine.compiled.links import links_of
from rumormill.engine.compiled.sums import empty_table, heard_by_blocks
from rumormill.engine.opening import Opening
from rumormill.engine.result import Trial
from rumormill.kernels.averaging import play_averaging_block
from rumormill.kernels.consensus import ConsensusRules, ConsensusState, play_consensus_block
from rumormill.kernels.world import LOST
from rumormill.policies import ConsensusPlan

# Sums and counts of all arms cost about so many deliveries of one sample.
COST_PER_LINK = 2


def moments_for(policy: Any, source: RewardSource) -> Any:
    """The moments that a policy plays with; None where it needs none."""
    policy.require_moments_below(source.tail_index)
    if not policy.needs_moments:
        return None
    return policy.moments or source.moments()


class ConsensusLayout:
    """A policy with a `rule(moments)` for averages, on a network."""

    def __init__(self, policy: Any, plan: ConsensusPlan, ground: Ground) -> None:
        network = ground.network
        self.policy, self.network, self.plan, self.world = policy, network, plan, ground.world
        self.sums = heard_by_blocks(network)
        self.deliveries = int(network.degrees.sum())
        self.rounds_per_block = rounds_for(COST_PER_LINK * self.deliveries)

    def start(self, opening: Opening) -> ConsensusTrial:
        return ConsensusTrial(self, opening) if self.world.plain else AveragingTrial(self, opening)


class ConsensusTrial:
    """One trial of such a policy."""

    def __init__(self, layout: ConsensusLayout, opening: Opening) -> None:
        source, horizon = opening.source, opening.horizon
        network, n_arms = layout.network, source.n_arms
        n_agents = network.n_agents
        rule = layout.policy.rule(moments_for(layout.policy, source))
        self.layout, self.n_arms = layout, n_arms
        self.output = empty_output(n_agents, opening)
        rounds = range(1, horizon + 1)
        clip = rule.clip or (lambda t: 0.0)
        self.rules = ConsensusRules(
            n_arms=n_arms,
            weight=layout.plan.weight,
            exponent=rule.exponent,
            scale=np.array([0.0, *(rule.scale(t) for t in rounds)]),
            epsilon=np.array(layout.plan.epsilon),
            drift=np.array([0.0, *(rule.drift(t) for t in rounds)]),
            clips=rule.clip is not None,
            clip=np.array([0.0, *(clip(t) for t in rounds)]),
            p=rule.p,
            gaps=np.array(source.gaps),
            degrees=network.degrees,
            sums=layout.sums,
        )
        table = empty_table(2 * n_arms, n_agents, layout.sums)
        self.state = ConsensusState(
            table=table,
            place=np.array(np.divmod(np.arange(2 * n_arms), table.shape[2])),
            anchor=np.zeros((n_arms, n_agents)),
            power=np.zeros((n_arms, n_agents)),
            desk=np.zeros((6, n_agents)),
            action=np.zeros(n_agents, dtype=np.int32),
            pulls=np.zeros((n_agents, n_arms), dtype=np.int64),
            mark=np.zeros(1, dtype=np.int64),
        )

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        play_consensus_block(first, draws, law_of(rewards), self.rules, self.state, self.output)

    def finish(self) -> Trial:
        messages = np.asarray(self.output.marks * self.layout.deliveries, dtype=np.int64)
        return finished(self.output, messages, rows_sent=self.n_arms)


class AveragingTrial(ConsensusTrial):
    """One trial where links fail, in both directions, and agents are away."""

    def __init__(self, layout: ConsensusLayout, opening: Opening) -> None:
        super().__init__(layout, opening)
        self.conditions = layout.world.of_trial(layout.network, opening.source, opening.horizon, opening.seed)
        links = links_of(layout.network, 1, self.conditions)
        self.roads = (
            links,
            np.full((1, len(links.indices)), LOST, dtype=np.int16),
            np.zeros(2, dtype=np.int64),
        )

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        ups = self.conditions.up(first, first + len(draws))
        law = law_of(rewards)
        play_averaging_block(first, draws, law, ups, self.rules, self.state, self.roads, self.output)

    def finish(self) -> Trial:
        return finished(self.output, self.output.messages, self.n_arms, self.output.agent_rounds)
