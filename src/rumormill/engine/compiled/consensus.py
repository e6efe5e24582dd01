"""Consensus-UCB and the rivals that average like it, laid out for their kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource, RewardStream
from rumormill.engine.compiled.base import Ground, empty_output, finished, law_of, rounds_for
from rumormill.engine.compiled.hearing import dense_enough
from rumormill.engine.compiled.links import links_of
from rumormill.engine.result import Trial
from rumormill.graphs import Network
from rumormill.kernels.averaging import play_averaging_block
from rumormill.kernels.consensus import ConsensusRules, ConsensusState, play_consensus_block
from rumormill.kernels.world import LOST
from rumormill.policies import ConsensusPlan
from rumormill.protocol import Conditions

# A link carries sums and counts of all arms: about so many deliveries.
COST_PER_LINK = 10


def adjacency_mask(network: Network) -> NDArray[np.float32]:
    """[origin, hearer] of a dense network; empty for a sparse one."""
    n_agents = network.n_agents
    if not dense_enough(2 * network.n_edges, n_agents, n_agents):
        return np.zeros((0, 0), dtype=np.float32)
    mask = np.zeros((n_agents, n_agents), dtype=np.float32)
    mask[np.repeat(np.arange(n_agents), network.degrees), network.indices] = 1.0
    return mask


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
        self.mask = adjacency_mask(network)
        self.deliveries = int(network.degrees.sum())
        self.rounds_per_block = rounds_for(COST_PER_LINK * self.deliveries)

    def start(
        self,
        source: RewardSource,
        horizon: int,
        marks: NDArray[np.int64],
        keep_actions: bool,
        seed: np.random.SeedSequence,
    ) -> ConsensusTrial:
        if self.world.plain:
            return ConsensusTrial(self, source, horizon, marks, keep_actions)
        conditions = self.world.of_trial(self.network, source, horizon, seed)
        return AveragingTrial(self, source, horizon, marks, keep_actions, conditions)


class ConsensusTrial:
    """One trial of such a policy."""

    def __init__(
        self,
        layout: ConsensusLayout,
        source: RewardSource,
        horizon: int,
        marks: NDArray[np.int64],
        keep_actions: bool,
    ) -> None:
        network, n_arms = layout.network, source.n_arms
        n_agents = network.n_agents
        rule = layout.policy.rule(moments_for(layout.policy, source))
        self.layout, self.n_arms = layout, n_arms
        self.output = empty_output(n_agents, horizon, marks, keep_actions)
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
            mask=layout.mask,
            indptr=network.indptr,
            indices=network.indices,
        )
        self.state = ConsensusState(
            opinion=np.zeros((2 * n_arms, n_agents)),
            heard=np.zeros((2 * n_arms, n_agents)),
            best_index=np.zeros(n_agents),
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

    def __init__(
        self,
        layout: ConsensusLayout,
        source: RewardSource,
        horizon: int,
        marks: NDArray[np.int64],
        keep_actions: bool,
        conditions: Conditions,
    ) -> None:
        super().__init__(layout, source, horizon, marks, keep_actions)
        self.conditions = conditions
        links = links_of(layout.network, 1, conditions)
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
