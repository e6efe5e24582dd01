"""Message passing laid out for its kernels: what all trials share, and the arrays of one trial."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource, RewardStream
from rumormill.engine.compiled.base import empty_output, finished, law_of, rounds_for
from rumormill.engine.compiled.hearing import build_hearing, messages_sent
from rumormill.engine.compiled.means import MEANS, MeanLayout
from rumormill.engine.compiled.tables import confidence_levels, least_samples, powers_table, radius_scales
from rumormill.engine.result import Trial
from rumormill.errors import InputError
from rumormill.graphs import Network
from rumormill.kernels.block import play_block
from rumormill.kernels.state import Calendar, Hearing, Memory, Output, Ring, Rows, Rules, State
from rumormill.kernels.stored import move_pool
from rumormill.policies import RobustPolicy
from rumormill.text import memory as in_memory

# Bytes of samples that one trial may have to store before it is refused.
STORE_LIMIT = 4 << 30
POWERS_TABULATED = 1 << 21
TOP = 16  # best informed agents kept per arm in KMP-UCB


@dataclass(frozen=True, eq=False)
class MessagePassingLayout:
    """A policy whose agents hear samples, on a network."""

    policy: RobustPolicy
    network: Network
    mean: MeanLayout
    hearing: Hearing
    leader_of: NDArray[np.int32]
    """Whom an agent copies; -1 for agents that decide for themselves."""
    leader_distance: NDArray[np.int32]
    shares_rows: bool

    @classmethod
    def build(
        cls,
        policy: RobustPolicy,
        network: Network,
        gamma: int,
        n_arms: int,
        *,
        group_of: NDArray[np.int64] | None = None,
        leader_of: NDArray[np.int32] | None = None,
        leader_distance: NDArray[np.int32] | None = None,
        shares_rows: bool = False,
    ) -> MessagePassingLayout:
        """With groups only members of one's own are heard; followers hear only as long as they decide."""
        n_agents = network.n_agents
        leader_of = np.full(n_agents, -1, dtype=np.int32) if leader_of is None else leader_of
        distance = np.zeros(n_agents, dtype=np.int32) if leader_distance is None else leader_distance
        # A follower decides for itself only in rounds K < t <= distance.
        learners = np.flatnonzero((leader_of < 0) | (distance > n_arms)).astype(np.int32)
        hearing = build_hearing(network, gamma, learners, group_of)
        mean = MEANS[type(policy.estimator)]
        return cls(policy, network, mean, hearing, leader_of, distance, shares_rows)

    @property
    def deliveries(self) -> int:
        return len(self.hearing.sources) + len(self.hearing.learners)

    @property
    def rounds_per_block(self) -> int:
        return rounds_for(self.deliveries * self.mean.slow)

    def start(
        self, source: RewardSource, horizon: int, marks: NDArray[np.int64], keep_actions: bool
    ) -> MessagePassingTrial:
        self.policy.require_moments_below(source.tail_index)
        output = empty_output(self.network.n_agents, horizon, marks, keep_actions)
        return MessagePassingTrial(self, self._rules(source, horizon), output)

    def _rules(self, source: RewardSource, horizon: int) -> Rules:
        policy, hearing = self.policy, self.hearing
        radius = policy.radius(policy.moments or source.moments())
        levels = confidence_levels(policy.confidence, horizon, self.network.n_agents)
        heard = int((hearing.source_ptr[:, -1] - hearing.source_ptr[:, 0]).max(initial=0))
        most_samples = horizon * (1 + heard)
        if self.mean.pool_rows:
            samples = horizon * self.deliveries
            refuse_too_large(type(policy.estimator).__name__, 8 * self.mean.pool_rows * samples)
        return Rules(
            n_arms=source.n_arms,
            horizon=horizon,
            kind=self.mean.kind,
            trims=self.mean.trims,
            shares_rows=self.shares_rows,
            u=radius.moments.u,
            p=radius.moments.p,
            rho=radius.moments.rho,
            exponent=radius.exponent,
            scale=radius_scales(radius, levels),
            L=levels,
            least_n=least_samples(radius, levels, most_samples),
            powers=powers_table(radius.exponent, min(most_samples, POWERS_TABULATED) + 1),
            leader_of=self.leader_of,
            leader_distance=self.leader_distance,
            gaps=np.array(source.gaps),
        )


def refuse_too_large(estimator: str, needed: int) -> None:
    """Say so before any round is played if the samples to be kept would not fit."""
    if needed > STORE_LIMIT:
        raise InputError(
            f"{estimator} keeps every sample: {in_memory(needed)} here, at most {in_memory(STORE_LIMIT)} are "
            "allowed; take fewer rounds, a smaller gamma or the trimmed mean"
        )


class MessagePassingTrial:
    """The arrays of one trial; they grow with the samples that have to be kept."""

    def __init__(self, layout: MessagePassingLayout, rules: Rules, output: Output) -> None:
        self.layout, self.rules, self.output = layout, rules, output
        pointers = layout.hearing.source_ptr
        self.sources = pointers[:, -1] - pointers[:, 0]
        self.memory = empty_memory(layout, rules)

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        if self.rules.trims:
            self._reserve_calendar(len(draws))
        if self.layout.mean.pool_rows:
            self._reserve_pool(len(draws))
        play_block(first, draws, law_of(rewards), self.layout.hearing, self.rules, self.memory, self.output)

    def finish(self) -> Trial:
        gamma, marks = self.layout.hearing.gamma, self.output.marks
        sent = np.cumsum(messages_sent(self.layout.network, gamma, self.rules.horizon))[marks - 1]
        return finished(self.output, sent, self.rules.n_arms if self.rules.shares_rows else 0)

    def _reserve_calendar(self, rounds: int) -> None:
        """Room for the worst case; pages that are never touched cost nothing."""
        calendar = self.memory.calendar
        used = int(calendar.spare[1])
        worst = used + rounds * int(self.sources.sum() + len(self.sources))
        if worst <= len(calendar.x):
            return
        room = max(worst, 2 * used)
        grown = {}
        for name in ("after", "place", "x"):
            old = getattr(calendar, name)
            grown[name] = np.empty(room, dtype=old.dtype)
            grown[name][:used] = old[:used]
        self.memory = self.memory._replace(calendar=calendar._replace(**grown))

    def _reserve_pool(self, rounds: int) -> None:
        """Room for every list, whichever arm gets the samples of the coming rounds."""
        state = self.memory.state
        extra = 1 if self.layout.mean.prefix_sums else 0
        worst = state.n + rounds * (1 + self.sources) + extra
        room = np.diff(state.pool_start.ravel(), append=state.pool.shape[1]).reshape(worst.shape)
        if (worst <= room).all():
            return
        room = np.where(worst <= room, room, 2 * worst).astype(np.int64)
        start = (np.cumsum(room.ravel()) - room.ravel()).reshape(room.shape)
        pool = np.zeros((len(state.pool), int(room.sum())))
        if state.pool.shape[1]:
            move_pool(state.pool, state.pool_start, pool, start, state.n, extra)
        self.memory = self.memory._replace(state=state._replace(pool=pool, pool_start=start))


def empty_memory(layout: MessagePassingLayout, rules: Rules) -> Memory:
    """Before the first round."""
    hearing, n_agents = layout.hearing, layout.network.n_agents
    n_arms, n_learners = rules.n_arms, len(hearing.learners)
    slots = hearing.gamma + 1
    shape = (n_arms, n_learners)
    ring = Ring(
        arm=np.zeros((slots, n_agents), dtype=np.int32),
        x=np.zeros((slots, n_agents)),
        need=np.zeros((slots, n_agents)),
        order=np.zeros((slots, n_agents), dtype=np.int32),
        start=np.zeros((slots, n_arms + 1), dtype=np.int32),
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
    rows = Rows(
        mean=np.zeros(told),
        n=np.zeros(told),
        top=np.zeros((slots, n_arms, min(TOP, n_agents) if dense else 0), dtype=np.int32),
    )
    best = shape if rules.shares_rows else (1, 1)
    state = State(
        n=np.zeros(shape),
        total=np.zeros(shape),
        mean=np.zeros(shape),
        power=np.zeros(shape),
        known=np.full(shape, -1.0),
        groups=np.zeros(shape),
        best_mean=np.zeros(best),
        best_n=np.zeros(best),
        best_power=np.zeros(best),
        best_from=np.zeros(best, dtype=np.int32),
        pool=np.zeros((layout.mean.pool_rows, 0)),
        pool_start=np.zeros(shape, dtype=np.int64),
        changed=np.ones(n_arms, dtype=np.bool_),
        sure_x=np.full(n_arms, -1.0),
        action=np.zeros(n_learners, dtype=np.int32),
        best_index=np.zeros(n_learners),
        pulls=np.zeros((n_agents, n_arms), dtype=np.int64),
        mark=np.zeros(1, dtype=np.int64),
        scratch=np.zeros(int(1 + 8 * rules.L[-1]) + 2 if layout.mean.pool_rows else 0),
    )
    return Memory(state, ring, calendar, rows)
