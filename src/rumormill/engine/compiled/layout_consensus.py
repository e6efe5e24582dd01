"""Consensus-UCB, coop-UCB2, robust gossip and DDUCB: layouts and arrays of one trial."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource, RewardStream
from rumormill.engine.compiled.reach import links_of
from rumormill.engine.compiled.state import LayoutInputs, empty_output, finished, law_of, rounds_for
from rumormill.engine.result import Opening, Trial
from rumormill.formulas import IDS_PER_BLOCK
from rumormill.graphs import Network
from rumormill.kernels.consensus import (
    ConsensusRules,
    ConsensusState,
    DelayedRules,
    DelayedState,
    play_consensus_block,
    play_delayed_block,
    play_lossy_consensus_block,
)
from rumormill.kernels.lossy_state import LOST
from rumormill.kernels.simd.row_sums import LANES, MOST_VECTORS, RowSums

SETS = 1 << IDS_PER_BLOCK
SIZE = np.array([bits.bit_count() for bits in range(SETS)])
LARGEST = np.array([bits.bit_length() - 1 for bits in range(SETS)])


def neighbour_sums(network: Network) -> RowSums:
    """Rows 0..M-1 of the table are those of the agents, the last M their sums over neighbours.

    Between them are sums of blocks, shared by several agents. A set of agents of one block is a number, block
    * SETS + a bitmask. Its sum is that of the set without its largest id, plus that one; so these sets are
    needed too.
    """
    n_agents = network.n_agents
    receiver = np.repeat(np.arange(n_agents), network.degrees)
    origin = network.indices.astype(np.int64)
    block = origin // IDS_PER_BLOCK
    begins = np.flatnonzero(np.r_[True, (np.diff(receiver) != 0) | (np.diff(block) != 0)][: len(origin)])
    bits = np.left_shift(1, origin % IDS_PER_BLOCK)
    received = block[begins] * SETS + (np.add.reduceat(bits, begins) if len(begins) else bits)
    n_received = np.bincount(receiver[begins], minlength=n_agents)

    made = received[:0]
    sets = np.unique(received)
    while len(sets := sets[SIZE[sets % SETS] > 1]):
        made = np.union1d(made, sets)
        sets = np.unique(_without_last(sets))
    made = made[np.argsort(SIZE[made % SETS], kind="stable")]  # terms stand above their sum
    by_number = np.argsort(made)

    def row_of(sets: NDArray[np.int64]) -> NDArray[np.int64]:
        """The row of one agent, or of the sum of several."""
        rows = _last(sets)
        several = np.flatnonzero(SIZE[sets % SETS] > 1)
        rows[several] = n_agents + by_number[np.searchsorted(made, sets[several], sorter=by_number)]
        return rows

    pairs = np.column_stack([row_of(_without_last(made)), _last(made)])
    sizes = np.concatenate([np.full(len(made), 2), n_received])
    return RowSums(
        first=n_agents,
        ptr=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        ids=np.concatenate([pairs.ravel(), row_of(received)]).astype(np.int32),
    )


def empty_table(columns: int, n_agents: int, sums: RowSums) -> NDArray[np.float64]:
    """[slice of columns, row, column], in as few slices as the kernel can take."""
    slices = -(-columns // (LANES * MOST_VECTORS))
    width = -(-columns // (slices * LANES)) * LANES
    return np.zeros((slices, n_agents + len(sums.ptr) - 1, width))


def _last(sets: NDArray[np.int64]) -> NDArray[np.int64]:
    """The largest id of every set."""
    ids: NDArray[np.int64] = sets // SETS * IDS_PER_BLOCK + LARGEST[sets % SETS]
    return ids


def _without_last(sets: NDArray[np.int64]) -> NDArray[np.int64]:
    rest: NDArray[np.int64] = sets - np.left_shift(1, LARGEST[sets % SETS])
    return rest


# The cost of averaging over one link, in deliveries of one sample.
COST_PER_LINK = 2


def moments_for(policy: Any, source: RewardSource) -> Any:
    """The moments that a policy uses; None where it needs none."""
    policy.require_moments_below(source.tail_index)
    if not policy.needs_moments:
        return None
    return policy.moments or source.moments()


class ConsensusLayout:
    """A policy with a `rule(moments)` for averages, on a network."""

    def __init__(self, policy: Any, plan: Any, inputs: LayoutInputs) -> None:
        network = inputs.network
        self.policy, self.network, self.plan, self.world = policy, network, plan, inputs.world
        self.sums = neighbour_sums(network)
        self.deliveries = int(network.degrees.sum())
        self.rounds_per_block = rounds_for(COST_PER_LINK * self.deliveries)

    def start(self, opening: Opening) -> ConsensusTrial:
        return ConsensusTrial(self, opening) if self.world.plain else LossyConsensusTrial(self, opening)


class ConsensusTrial:
    """One trial of such a policy."""

    def __init__(self, layout: ConsensusLayout, opening: Opening) -> None:
        source, horizon = opening.source, opening.horizon
        network, n_arms, n_agents = layout.network, source.n_arms, layout.network.n_agents
        rule = layout.policy.rule(moments_for(layout.policy, source))
        self.layout, self.n_arms = layout, n_arms
        self.output = empty_output(n_agents, opening)
        rounds = range(1, horizon + 1)
        clip = rule.clip or (lambda t: 0.0)
        self.rules: Any = ConsensusRules(
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
        self.state: Any = ConsensusState(
            table=table,
            place=np.array(np.divmod(np.arange(2 * n_arms), table.shape[2])),
            anchor=np.zeros((n_arms, n_agents)),
            power=np.zeros((n_arms, n_agents)),
            workspace=np.zeros((6, n_agents)),
            action=np.zeros(n_agents, dtype=np.int32),
            pulls=np.zeros((n_agents, n_arms), dtype=np.int64),
            mark=np.zeros(1, dtype=np.int64),
        )

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        play_consensus_block(first, draws, law_of(rewards), self.rules, self.state, self.output)

    def finish(self) -> Trial:
        messages = np.asarray(self.output.marks * self.layout.deliveries, dtype=np.int64)
        return finished(self.output, messages, rows_sent=self.n_arms)


class LossyConsensusTrial(ConsensusTrial):
    """One trial where links fail, in both directions, and agents are absent."""

    def __init__(self, layout: ConsensusLayout, opening: Opening) -> None:
        super().__init__(layout, opening)
        self.conditions = layout.world.of_trial(layout.network, opening.source, opening.horizon, opening.seed)
        links = links_of(layout.network, 1, self.conditions)
        late, counters = np.full((1, len(links.indices)), LOST, dtype=np.int16), np.zeros(2, dtype=np.int64)
        self.links = links, late, counters

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        ups = self.conditions.up(first, first + len(draws))
        law = law_of(rewards)
        play_lossy_consensus_block(first, draws, law, ups, self.rules, self.state, self.links, self.output)

    def finish(self) -> Trial:
        return finished(self.output, self.output.messages, self.n_arms, self.output.agent_rounds)


class DelayedLayout(ConsensusLayout):
    """DDUCB on a network."""

    def start(self, opening: Opening) -> DelayedTrial:
        return DelayedTrial(self, opening)


class DelayedTrial(ConsensusTrial):
    """One trial of DDUCB."""

    def __init__(self, layout: DelayedLayout, opening: Opening) -> None:
        source, policy, network = opening.source, layout.policy, layout.network
        n_arms, n_agents = source.n_arms, network.n_agents
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
