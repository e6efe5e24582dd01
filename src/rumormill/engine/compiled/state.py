"""What the compiled engine asks of a layout, and the arrays of one trial before its first round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardStream
from rumormill.engine.compiled.estimators import MeanLayout, Room
from rumormill.engine.compiled.reach import words_of
from rumormill.engine.result import Opening, Trial
from rumormill.graphs import Network
from rumormill.kernels.state import (
    CATONI,
    Bounds,
    Calendar,
    Hearing,
    Law,
    Memory,
    Output,
    Ring,
    Rows,
    Rules,
    State,
    Streams,
)
from rumormill.protocol import World, wire_size

# Work between two looks at the clock and the keyboard: some milliseconds.
DELIVERIES_PER_BLOCK = 4_000_000
ROUNDS_PER_BLOCK = 256


@dataclass(frozen=True, eq=False)
class Ground:
    """Where a policy is laid out."""

    network: Network
    n_arms: int
    world: World
    gamma: int | None
    """How many hops messages travel; None where the policy does not flood."""


class CompiledTrial(Protocol):
    """One trial of one policy, advanced block by block."""

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        """Play the rounds first, first + 1, ... for which draws are given."""

    def finish(self) -> Trial:
        """What the trial came to."""


class Layout(Protocol):
    """A policy laid out on a network for the kernels: worked out once, used by every trial."""

    @property
    def deliveries(self) -> int:
        """Messages that reach an agent, per round."""

    @property
    def rounds_per_block(self) -> int:
        """How many rounds to play between two looks at the outside world."""

    def start(self, opening: Opening) -> CompiledTrial:
        """A trial before its first round."""


def rounds_for(cost: int) -> int:
    """Rounds per block where a round costs so many deliveries."""
    return max(1, min(ROUNDS_PER_BLOCK, DELIVERIES_PER_BLOCK // max(cost, 1)))


def law_of(rewards: RewardStream) -> Law:
    """The rewards' law as the kernels take it."""
    return Law(rewards.shared, rewards.loc, rewards.scale)


def empty_output(n_agents: int, opening: Opening) -> Output:
    """Where a trial writes."""
    marks, rows = opening.marks, opening.horizon if opening.keep_actions else 0
    return Output(
        marks,
        np.empty((len(marks), n_agents)),
        np.empty((rows, n_agents), dtype=np.int64),
        np.zeros(len(marks), dtype=np.int64),
        np.zeros(len(marks), dtype=np.int64),
    )


def finished(
    output: Output,
    messages: NDArray[np.int64],
    rows_sent: int,
    agent_rounds: NDArray[np.int64] | None = None,
) -> Trial:
    """The trial that was written, with the messages it took."""
    actions = output.actions if len(output.actions) else None
    return Trial(output.agent_regret, messages, messages * wire_size(rows_sent), actions, agent_rounds)


def empty_memory(hearing: Hearing, slots: int, mean: MeanLayout, rules: Rules, room: Room) -> Memory:
    """Before the first round."""
    n_agents = len(hearing.learner_of)
    n_arms, n_learners = rules.n_arms, len(hearing.learners)
    shape = (n_arms, n_learners)
    ring = Ring(
        arm=np.zeros((slots, n_agents), dtype=np.int32),
        x=np.zeros((slots, n_agents)),
        need=np.zeros((slots, n_agents)),
        power=np.zeros((slots, n_agents)),
        order=np.zeros((slots, n_agents), dtype=np.int32),
        start=np.zeros((slots, n_arms + 1), dtype=np.int32),
        told=np.ones((slots, n_agents), dtype=np.bool_),
    )
    calendar = Calendar(
        head=np.full(rules.horizon + 2 if rules.trims else 1, -1, dtype=np.int32),
        after=np.zeros(0, dtype=np.int32),
        place=np.zeros(0, dtype=np.int64),
        x=np.zeros(0),
        spare=np.array([-1, 0], dtype=np.int64),
    )
    told = (slots, n_arms, n_agents) if rules.shares_rows else (1, 1, 1)
    dense = rules.shares_rows and bool((hearing.dense >= 0).any())
    sparse = rules.shares_rows and bool((hearing.dense < 0).any())
    rows = Rows(
        mean=np.zeros(told),
        n=np.zeros(told),
        top=np.tile(np.arange(n_agents if dense else 0, dtype=np.int32), (slots, n_arms, 1)),
        news=np.zeros((slots, n_arms, n_agents + 1 if sparse else 0), dtype=np.int32),
        n_news=np.zeros((slots, n_arms), dtype=np.int32),
        left=np.zeros(words_of(n_learners), dtype=np.uint64),
    )
    best = shape if rules.shares_rows else (1, 1)
    most_heard = 1 + int((hearing.source_ptr[:, -1] - hearing.source_ptr[:, 0]).max(initial=0))
    state = State(
        n=np.zeros(shape),
        total=np.zeros(shape),
        mean=np.zeros(shape),
        known=np.full(shape, -1.0),
        groups=np.zeros(shape),
        best_mean=np.zeros(best),
        best_n=np.zeros(best),
        heard_n=np.zeros(best),
        heard_from=np.zeros(best, dtype=np.int32),
        heard_hop=np.zeros(best, dtype=np.int32),
        pool=np.zeros((mean.pool_rows, 0)),
        pool_start=np.zeros(shape, dtype=np.int64),
        changed=np.ones(n_arms, dtype=np.bool_),
        sure_x=np.full(n_arms, -1.0),
        action=np.zeros(n_learners, dtype=np.int32),
        bounds=Bounds(power=np.zeros(shape), inverse=np.zeros(shape), first=np.zeros(n_learners)),
        pulls=np.zeros((n_agents, n_arms), dtype=np.int64),
        mark=np.zeros(1, dtype=np.int64),
        scratch=np.zeros(int(1 + 8 * rules.L[-1]) + 2 if mean.pool_rows else 0),
        begins=np.zeros(n_learners, dtype=np.bool_),
        asks=np.ones(n_learners, dtype=np.bool_),
        sent=np.zeros(1, dtype=np.int64),
    )
    return Memory(state, ring, calendar, rows, empty_streams(shape, most_heard, rules, room))


def empty_streams(shape: tuple[int, int], most_heard: int, rules: Rules, room: Room) -> Streams:
    """Means that keep a few numbers: nothing but what the kind uses."""
    used = shape if rules.kind > CATONI else (1, 1)
    return Streams(
        upper=np.zeros(used),
        top=np.zeros((*used, room.top)),
        filled=np.zeros(used, dtype=np.int32),
        rest=np.zeros(used),
        squares=np.zeros(used),
        centre=np.zeros(used),
        pilot=np.zeros((*used, room.pilot)),
        room=np.zeros(room.pilot),
        counts=np.zeros((*used, room.bins), dtype=np.int32),
        place=np.zeros((2, *used), dtype=np.int32),
        below=np.zeros((2, *used), dtype=np.int32),
        level=np.ones(used),
        clip=np.full(used, rules.tuning.scale),
        arms=np.zeros(most_heard, dtype=np.int32),
        xs=np.zeros(most_heard),
    )
