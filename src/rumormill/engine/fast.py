"""The compiled engine: the built-in policies on whole trials, with the reference engine's actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardStream
from rumormill.engine.hearing import build_hearing, messages_sent
from rumormill.engine.result import Trial
from rumormill.errors import InputError
from rumormill.estimators import Catoni, EmpiricalMean, MedianOfMeans, Radius, TrimmedMean
from rumormill.graphs import Network
from rumormill.policies import (
    KMPUCB,
    CentralizedMPUCB,
    ConsensusUCB,
    DecentralizedMPUCB,
    Problem,
    RobustPolicy,
    RobustUCB,
    log_confidence,
)
from rumormill.policies.consensus import ConsensusPlan, consensus_scale
from rumormill.protocol import wire_size

if TYPE_CHECKING:
    from rumormill.kernels.state import Hearing

FastPolicy = DecentralizedMPUCB | CentralizedMPUCB | KMPUCB | RobustUCB | ConsensusUCB

# Work between two looks at the clock and the keyboard: some milliseconds.
DELIVERIES_PER_BLOCK = 4_000_000
ROUNDS_PER_BLOCK = 256
# Samples that a policy may have to store, in bytes, before it is refused.
STORE_LIMIT = 4 << 30
POWERS_TABULATED = 1 << 21
TOP = 16  # best informed agents kept per arm in KMP-UCB


def why_not(policy: Any) -> str | None:
    """Why the compiled engine cannot run a policy; None if it can."""
    if type(policy) not in FastPolicy.__args__:  # a subclass may do something else
        return "it runs the built-in policies only"
    if isinstance(policy, RobustPolicy):
        estimator = policy.estimator
        if type(estimator) not in (TrimmedMean, EmpiricalMean, MedianOfMeans, Catoni):
            return f"it does not know the estimator {type(estimator).__name__}"
        if isinstance(estimator, TrimmedMean) and estimator.variant != "exact":
            return f"it does not know the variant {estimator.variant!r} of the trimmed mean"
    return None


class Prepared:
    """A policy laid out on a network: worked out once, used by every trial."""

    def __init__(self, policy: FastPolicy, network: Network, plan: Any, n_arms: int) -> None:
        self.policy, self.network, self.plan = policy, network, plan
        self.gamma = policy.reach(network)
        n_agents = network.n_agents
        self.leader_of = np.full(n_agents, -1, dtype=np.int32)
        self.leader_distance = np.zeros(n_agents, dtype=np.int32)
        if isinstance(policy, ConsensusUCB):
            return
        learners = np.arange(n_agents, dtype=np.int32)
        group_of = None
        if isinstance(policy, CentralizedMPUCB):
            follows = plan.leader_of != np.arange(n_agents)
            self.leader_of[follows] = plan.leader_of[follows]
            self.leader_distance[follows] = plan.distance[follows]
            # A follower decides for itself only in rounds K < t <= distance.
            learners = np.flatnonzero(~follows | (self.leader_distance > n_arms)).astype(np.int32)
        elif isinstance(policy, DecentralizedMPUCB) and plan is not None:
            group_of = np.empty(n_agents, dtype=np.int64)
            for number, group in enumerate(plan):
                group_of[list(group)] = number
        self.hearing: Hearing = build_hearing(network, self.gamma, learners, group_of)

    def messages(self, horizon: int, marks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Messages sent up to each mark."""
        if isinstance(self.policy, ConsensusUCB):
            edges = int(self.network.degrees.sum())
            return np.asarray(marks * edges, dtype=np.int64)
        total: NDArray[np.int64] = np.cumsum(messages_sent(self.network, self.gamma, horizon))[marks - 1]
        return total

    @property
    def sends_rows(self) -> bool:
        return isinstance(self.policy, KMPUCB | ConsensusUCB)


@dataclass
class Run:
    """One trial of one policy, advanced block by block."""

    prepared: Prepared
    problem: Problem
    marks: NDArray[np.int64]
    keep_actions: bool
    _advance: Callable[[int, NDArray[np.float64], RewardStream], None] = field(init=False)

    def __post_init__(self) -> None:
        n_agents, horizon = self.problem.n_agents, self.problem.horizon
        self.agent_regret = np.empty((len(self.marks), n_agents))
        self.actions = np.empty((horizon if self.keep_actions else 0, n_agents), dtype=np.int64)
        if isinstance(self.prepared.policy, ConsensusUCB):
            self._advance = _consensus_loop(self, self.prepared.policy, self.prepared.plan)
        else:
            self._advance = _MessagePassing(self, self.prepared.policy).advance

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        """Play the rounds first, first + 1, ... for which draws are given."""
        self._advance(first, draws, rewards)

    def finish(self) -> Trial:
        """What the trial came to."""
        messages = self.prepared.messages(self.problem.horizon, self.marks)
        rows = self.problem.n_arms if self.prepared.sends_rows else 0
        return Trial(
            self.agent_regret,
            messages,
            messages * wire_size(rows),
            self.actions if self.keep_actions else None,
        )


def rounds_per_block(prepared: Prepared) -> int:
    """How many rounds to play between two looks at the outside world."""
    if isinstance(prepared.policy, ConsensusUCB):
        deliveries = 10 * int(prepared.network.degrees.sum())
    else:
        deliveries = len(prepared.hearing.sources) + len(prepared.hearing.learners)
        if isinstance(prepared.policy.estimator, MedianOfMeans | Catoni):
            deliveries *= 16
    return max(1, min(ROUNDS_PER_BLOCK, DELIVERIES_PER_BLOCK // max(deliveries, 1)))


class _MessagePassing:
    """State and rules of every policy but consensus."""

    def __init__(self, run: Run, policy: Any) -> None:
        from rumormill.kernels.state import CATONI, MEDIAN_OF_MEANS, RUNNING, Rules

        self.run, problem = run, run.problem
        horizon, n_arms = problem.horizon, problem.n_arms
        self.hearing = run.prepared.hearing
        radius = policy.radius(problem.source)
        levels = confidence_levels(policy.confidence, horizon, problem.n_agents)
        kinds: dict[type, int] = {
            TrimmedMean: RUNNING,
            EmpiricalMean: RUNNING,
            MedianOfMeans: MEDIAN_OF_MEANS,
            Catoni: CATONI,
        }
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
            scale=np.array([radius.scale(L) for L in levels]),
            L=levels,
            least_n=least_samples(radius, levels, most_samples),
            powers=powers_table(radius.exponent, min(most_samples, POWERS_TABULATED) + 1),
            leader_of=run.prepared.leader_of,
            leader_distance=run.prepared.leader_distance,
            gaps=np.array(problem.source.gaps),
        )
        self.stores = self.rules.kind != RUNNING
        if self.stores:
            self._refuse_too_large()
        self._allocate()

    def _refuse_too_large(self) -> None:
        row_bytes = 16 if isinstance(self.run.prepared.policy.estimator, MedianOfMeans) else 8  # type: ignore[union-attr]
        needed = row_bytes * self.rules.horizon * int(self.sources.sum() + len(self.sources))
        if needed > STORE_LIMIT:
            raise InputError(
                f"{type(self.run.prepared.policy.estimator).__name__} keeps every sample: "  # type: ignore[union-attr]
                f"{needed / 2**30:.1f} GiB here, at most {STORE_LIMIT >> 30} GiB are allowed; "
                "take fewer rounds, a smaller gamma or the trimmed mean"
            )

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

        rules, n_agents = self.rules, self.run.problem.n_agents
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
        told = (slots, n_agents, n_arms) if rules.shares_rows else (1, 1, 1)
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
            self.run.marks,
            self.run.agent_regret,
            self.run.actions,
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


def _consensus_loop(
    run: Run, policy: ConsensusUCB, plan: ConsensusPlan
) -> Callable[[int, NDArray[np.float64], RewardStream], None]:
    from rumormill.kernels.consensus import ConsensusRules, ConsensusState, play_consensus_block

    problem = run.problem
    network, n_agents, n_arms = problem.network, problem.n_agents, problem.n_arms
    moments = policy.moments or problem.source.moments()
    mask = np.zeros((0, 0), dtype=np.float32)
    if 2 * network.n_edges >= 0.1 * n_agents**2 and n_agents >= 24:
        mask = np.zeros((n_agents, n_agents), dtype=np.float32)
        mask[np.repeat(np.arange(n_agents), network.degrees), network.indices] = 1.0
    rules = ConsensusRules(
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
    state = ConsensusState(
        opinion=np.zeros((2 * n_arms, n_agents)),
        heard=np.zeros((2 * n_arms, n_agents)),
        best_index=np.zeros(n_agents),
        action=np.zeros(n_agents, dtype=np.int32),
        pulls=np.zeros((n_agents, n_arms), dtype=np.int64),
        counters=np.zeros(1, dtype=np.int64),
    )

    def advance(first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        play_consensus_block(
            first,
            draws,
            rewards.shared,
            rewards.loc,
            rewards.scale,
            rules,
            state,
            run.marks,
            run.agent_regret,
            run.actions,
        )

    return advance


@lru_cache(maxsize=8)
def confidence_levels(schedule: Any, horizon: int, n_agents: int) -> NDArray[np.float64]:
    """L of rounds 0..horizon (round 0 is never played)."""
    return np.array([0.0, *(log_confidence(schedule, t, n_agents) for t in range(1, horizon + 1))])


@lru_cache(maxsize=4)
def powers_table(exponent: float, size: int) -> NDArray[np.float64]:
    """n^-exponent for n < size."""
    from rumormill.kernels.state import fill_powers

    powers = np.empty(size)
    fill_powers(powers, exponent)
    return powers


def least_samples(radius: Radius, levels: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Per round, the fewest samples with which an arm need not be pulled; more is always enough too."""
    least = np.zeros(len(levels))
    if type(radius.estimator) in (TrimmedMean, EmpiricalMean):
        return least
    n = 1
    for t, L in enumerate(levels[1:], 1):
        if not radius.usable(n, L):  # L grows, so the bound does
            low, high = n, 2 * n
            while high <= most and not radius.usable(high, L):
                low, high = high, 2 * high
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if radius.usable(middle, L) else (middle, high)
            n = high
        least[t] = n
    return least
