"""The arrays of one trial of message passing, before its first round."""

from __future__ import annotations

import numpy as np

from rumormill.engine.compiled.hearing import words_of
from rumormill.engine.compiled.means import MeanLayout, Room
from rumormill.kernels.state import (
    CATONI,
    Bounds,
    Calendar,
    Hearing,
    Memory,
    Ring,
    Rows,
    Rules,
    State,
    Streams,
)


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
