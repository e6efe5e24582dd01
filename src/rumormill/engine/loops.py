"""One trial of one policy on the kernels: the arrays it works on, and what a block of rounds needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardStream
from rumormill.engine.hearing import dense_enough
from rumormill.engine.tables import confidence_levels, least_samples, powers_table
from rumormill.errors import InputError
from rumormill.estimators import Catoni, MedianOfMeans, TrimmedMean
from rumormill.policies import KMPUCB, ConsensusUCB, Problem, RobustPolicy
from rumormill.policies.base import usable_moments
from rumormill.policies.consensus import ConsensusPlan, consensus_scale

if TYPE_CHECKING:
    from rumormill.kernels.state import Hearing

# Bytes of samples that one trial may have to store before it is refused.
STORE_LIMIT = 4 << 30
POWERS_TABULATED = 1 << 21
TOP = 16  # best informed agents kept per arm in KMP-UCB


class Output(NamedTuple):
    """Where a trial writes: regret of every agent at the marks, and every action unless it has no rows."""

    marks: NDArray[np.int64]
    agent_regret: NDArray[np.float64]
    actions: NDArray[np.int64]


class MessagePassingLoop:
    """State and rules of one trial of every policy but consensus."""

    def __init__(
        self,
        policy: RobustPolicy,
        hearing: Hearing,
        leader_of: NDArray[np.int32],
        leader_distance: NDArray[np.int32],
        problem: Problem,
        output: Output,
    ) -> None:
        from rumormill.kernels.state import CATONI, MEDIAN_OF_MEANS, RUNNING, Rules

        self.hearing, self.output, self.n_agents = hearing, output, problem.n_agents
        horizon, n_arms = problem.horizon, problem.n_arms
        radius = policy.radius(problem.source)
        levels = confidence_levels(policy.confidence, horizon, problem.n_agents)
        kinds: dict[type, int] = {MedianOfMeans: MEDIAN_OF_MEANS, Catoni: CATONI}
        self.sources = self.hearing.source_ptr[:, -1] - self.hearing.source_ptr[:, 0]
        most_samples = horizon * (1 + int(self.sources.max(initial=0)))
        self.rules = Rules(
            n_arms=n_arms,
            horizon=horizon,
            kind=kinds.get(type(policy.estimator), RUNNING),
            trims=isinstance(policy.estimator, TrimmedMean),
            shares_rows=isinstance(policy, KMPUCB),
            u=radius.moments.u,
            p=radius.moments.p,
            rho=radius.moments.rho,
            exponent=radius.exponent,
            scale=radius.scales(levels),
            L=levels,
            least_n=least_samples(radius, levels, most_samples),
            powers=powers_table(radius.exponent, min(most_samples, POWERS_TABULATED) + 1),
            leader_of=leader_of,
            leader_distance=leader_distance,
            gaps=np.array(problem.source.gaps),
        )
        self.stores = self.rules.kind != RUNNING
        if self.stores:
            refuse_too_large(policy, horizon * int(self.sources.sum() + len(self.sources)))
        self._allocate()

    def _allocate(self) -> None:
        from rumormill.kernels.state import (
            CATONI,
            MEDIAN_OF_MEANS,
            RUNNING,
            Calendar,
            Ring,
            Rows,
            State,
        )

        rules, n_agents = self.rules, self.n_agents
        n_arms, n_learners = rules.n_arms, len(self.hearing.learners)
        slots = self.hearing.gamma + 1
        shape = (n_arms, n_learners)
        self.ring = Ring(
            arm=np.zeros((slots, n_agents), dtype=np.int32),
            x=np.zeros((slots, n_agents)),
            need=np.zeros((slots, n_agents)),
            order=np.zeros((slots, n_agents), dtype=np.int32),
            start=np.zeros((slots, n_arms + 1), dtype=np.int32),
        )
        self.calendar = Calendar(
            head=np.full(rules.horizon + 2 if rules.trims else 1, -1, dtype=np.int32),
            after=np.zeros(0, dtype=np.int32),
            place=np.zeros(0, dtype=np.int64),
            x=np.zeros(0),
            spare=np.array([-1, 0], dtype=np.int64),
        )
        told = (slots, n_arms, n_agents) if rules.shares_rows else (1, 1, 1)
        dense = rules.shares_rows and bool((self.hearing.dense >= 0).any())
        self.rows = Rows(
            mean=np.zeros(told),
            n=np.zeros(told),
            top=np.zeros((slots, n_arms, min(TOP, n_agents) if dense else 0), dtype=np.int32),
        )
        best = shape if rules.shares_rows else (1, 1)
        pool_rows = {RUNNING: 0, MEDIAN_OF_MEANS: 2, CATONI: 1}[rules.kind]
        self.state = State(
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
            pool=np.zeros((pool_rows, 0)),
            pool_start=np.zeros(shape, dtype=np.int64),
            changed=np.ones(n_arms, dtype=np.bool_),
            sure_x=np.full(n_arms, -1.0),
            action=np.zeros(n_learners, dtype=np.int32),
            best_index=np.zeros(n_learners),
            pulls=np.zeros((n_agents, n_arms), dtype=np.int64),
            mark=np.zeros(1, dtype=np.int64),
            scratch=np.zeros(int(1 + 8 * rules.L[-1]) + 2 if self.stores else 0),
        )

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        """Play the rounds first, first + 1, ... for which draws are given."""
        from rumormill.kernels.block import play_block

        if self.rules.trims:
            self._reserve_calendar(len(draws))
        if self.stores:
            self._reserve_pool(len(draws))
        play_block(
            first,
            draws,
            rewards.shared,
            rewards.loc,
            rewards.scale,
            self.hearing,
            self.rules,
            self.state,
            self.ring,
            self.calendar,
            self.rows,
            *self.output,
        )

    def _reserve_calendar(self, rounds: int) -> None:
        """Room for the worst case; pages that are never touched cost nothing."""
        used = int(self.calendar.spare[1])
        worst = used + rounds * int(self.sources.sum() + len(self.sources))
        if worst <= len(self.calendar.x):
            return
        room = max(worst, 2 * used)
        grown = {}
        for name in ("after", "place", "x"):
            old = getattr(self.calendar, name)
            grown[name] = np.empty(room, dtype=old.dtype)
            grown[name][:used] = old[:used]
        self.calendar = self.calendar._replace(**grown)

    def _reserve_pool(self, rounds: int) -> None:
        """Room for every list, whichever arm gets the samples of the coming rounds."""
        from rumormill.kernels.stored import move_pool

        extra = 1 if len(self.state.pool) == 2 else 0  # prefix sums begin with a zero
        worst = self.state.n + rounds * (1 + self.sources) + extra
        room = np.diff(self.state.pool_start.ravel(), append=self.state.pool.shape[1]).reshape(worst.shape)
        if (worst <= room).all():
            return
        room = np.where(worst <= room, room, 2 * worst).astype(np.int64)
        start = (np.cumsum(room.ravel()) - room.ravel()).reshape(room.shape)
        pool = np.zeros((len(self.state.pool), int(room.sum())))
        if self.state.pool.shape[1]:
            move_pool(self.state.pool, self.state.pool_start, pool, start, self.state.n, extra)
        self.state = self.state._replace(pool=pool, pool_start=start)


def refuse_too_large(policy: RobustPolicy, samples: int) -> None:
    """Say so before any round is played if the samples to be kept would not fit."""
    needed = samples * (16 if isinstance(policy.estimator, MedianOfMeans) else 8)
    if needed > STORE_LIMIT:
        raise InputError(
            f"{type(policy.estimator).__name__} keeps every sample: {needed / 2**30:.1f} GiB here, at most "
            f"{STORE_LIMIT >> 30} GiB are allowed; take fewer rounds, a smaller gamma or the trimmed mean"
        )


class ConsensusLoop:
    """State and rules of one trial of Consensus-UCB."""

    def __init__(self, policy: ConsensusUCB, plan: ConsensusPlan, problem: Problem, output: Output) -> None:
        from rumormill.kernels.consensus import ConsensusRules, ConsensusState

        self.output = output
        network, n_agents, n_arms = problem.network, problem.n_agents, problem.n_arms
        moments = usable_moments(policy.moments, problem.source)
        mask = np.zeros((0, 0), dtype=np.float32)
        if dense_enough(2 * network.n_edges, n_agents, n_agents):
            mask = np.zeros((n_agents, n_agents), dtype=np.float32)
            mask[np.repeat(np.arange(n_agents), network.degrees), network.indices] = 1.0
        self.rules = ConsensusRules(
            n_arms=n_arms,
            weight=plan.weight,
            exponent=moments.eps / moments.p,
            scale=np.array([consensus_scale(t, moments) for t in range(problem.horizon + 1)]),
            epsilon=np.array(plan.epsilon),
            gaps=np.array(problem.source.gaps),
            mask=mask,
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
        """Play the rounds first, first + 1, ... for which draws are given."""
        from rumormill.kernels.consensus import play_consensus_block

        loc, scale = rewards.loc, rewards.scale
        play_consensus_block(first, draws, rewards.shared, loc, scale, self.rules, self.state, *self.output)
