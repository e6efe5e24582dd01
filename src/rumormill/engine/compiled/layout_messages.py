"""Message passing on a perfect channel: what all trials share, and the arrays of one trial."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Moments, RewardSource, RewardStream
from rumormill.counter_rng import THOMPSON, key_of, key_with
from rumormill.engine.compiled import layout_partitioned as partitioned
from rumormill.engine.compiled.estimators import (
    MEANS,
    NO_CONSTANTS,
    EstimatorLayout,
    confidence_levels,
    least_samples,
    powers_table,
    radius_scales,
    sketch_bytes,
)
from rumormill.engine.compiled.layout_partitioned import PartitionedTrial
from rumormill.engine.compiled.reach import build_reach, copies_sent, messages_sent, several_sources
from rumormill.engine.compiled.state import (
    CompiledTrial,
    empty_general,
    empty_memory,
    empty_output,
    features_of,
    finished,
    law_of,
    prior_arrays,
    reserve,
    rounds_for,
)
from rumormill.engine.reference import NO_CONSTRAINT, Constraint
from rumormill.engine.result import Opening, Trial
from rumormill.engine.workers import ThreadPool
from rumormill.errors import InputError
from rumormill.estimators import Terms
from rumormill.graphs import Network
from rumormill.kernels.means_stored import move_pool
from rumormill.kernels.partitioned import MOST_HOPS, MOST_ORIGINS, MOST_SAMPLES
from rumormill.kernels.rounds import block_kernel
from rumormill.kernels.state import (
    DEFAULT,
    DISCOUNT,
    RUNNING,
    WINDOW,
    EstimatorConstants,
    Features,
    GeneralState,
    Output,
    Reach,
    RewardLaw,
    Rules,
    Sources,
)
from rumormill.policies import Prior, RobustPolicy
from rumormill.seeds import Role, seed_word, stream_seed
from rumormill.text import memory as in_memory

# Bytes of samples that one trial may have to store before it is refused.
STORE_LIMIT = 4 << 30
POWERS_TABULATED = 1 << 18
# From so many sums and counts on, reading them once takes less time than bounds (2^16: as long).
MANY_COUNTS = 1 << 18


@dataclass(frozen=True, eq=False)
class MessagePassingLayout:
    """A policy whose agents exchange samples, on a network."""

    policy: RobustPolicy
    network: Network
    mean: EstimatorLayout
    gamma: int
    reach: Reach
    sources: Sources
    n_sources: NDArray[np.int64]
    """Per learner, from how many other agents it receives."""
    leader_of: NDArray[np.int32]
    """The agent whose actions an agent copies; -1 for agents that decide for themselves."""
    leader_distance: NDArray[np.int32]
    shares_rows: bool
    has_leaders: bool
    prior: Prior | None
    allowed: NDArray[np.bool_] | None = field(default=None, kw_only=True)
    k: int = field(default=1, kw_only=True)
    """How many arms agents try in a round."""
    width: float = field(default=0.0, kw_only=True)
    """Of Thompson draws about rows; 0: indices."""

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
        prior: Prior | None = None,
        constraint: Constraint = NO_CONSTRAINT,
    ) -> MessagePassingLayout:
        """With groups learners receive from their own only; followers that never decide are no learners."""
        n_agents, has_leaders = network.n_agents, leader_of is not None
        leader_of = np.full(n_agents, -1, dtype=np.int32) if leader_of is None else leader_of
        distance = np.zeros(n_agents, dtype=np.int32) if leader_distance is None else leader_distance
        # A follower decides for itself only in rounds K < t <= distance; but a prior, a shared start, quiet
        # messaging and rankings depend on its own samples.
        messaging, allowed, k = policy.start_and_quiet, constraint.allowed, constraint.k
        if k > 1 and allowed is None:
            allowed = np.ones((1, n_agents, n_arms), dtype=np.bool_)
        decides = (leader_of < 0) | (distance > n_arms)
        if messaging.start == "shared" or any(each is not None for each in (messaging.quiet, prior, allowed)):
            decides[:] = True
        learners = np.flatnonzero(decides).astype(np.int32)
        reach, sources = build_reach(network, gamma, learners, group_of)
        if shares_rows:
            reach = reach._replace(by_origin=np.ascontiguousarray(reach.words.transpose(0, 2, 1)))
        return cls(
            policy=policy,
            network=network,
            mean=MEANS[type(policy.estimator)],
            gamma=gamma,
            reach=reach,
            sources=sources,
            n_sources=sources.ptr[:, -1] - sources.ptr[:, 0],
            leader_of=leader_of,
            leader_distance=distance,
            shares_rows=shares_rows,
            has_leaders=has_leaders,
            prior=prior,
            allowed=allowed,
            k=k,
        )

    @property
    def slots(self) -> int:
        """For how many rounds samples are kept in the ring."""
        return self.gamma + 1

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        """Per agent, how many others are within the hop budget."""
        return self.network.neighbourhoods(self.gamma).sizes

    @property
    def deliveries(self) -> int:
        return self.k * (int(self.n_sources.sum()) + len(self.reach.learners))

    @property
    def rounds_per_block(self) -> int:
        return rounds_for(self.deliveries * self.mean.slow)

    @property
    def divides(self) -> bool:
        """Whether several threads can share one trial: very many agents, and few links."""
        messaging, reach = self.policy.start_and_quiet, self.reach
        plain = messaging.start == "round-robin" and messaging.quiet is None and not self.has_leaders
        plain = plain and self.allowed is None
        sparse = bool((reach.dense < 0).all())
        many = partitioned.MANY_AGENTS <= self.network.n_agents < MOST_ORIGINS
        return many and plain and sparse and self.prior is None and self.mean.kind == RUNNING

    def _in_parts(self, rules: Rules, thread_pool: ThreadPool | None) -> bool:
        worth_it = thread_pool is not None or self.network.n_agents >= partitioned.HUGE_NETWORK
        most_samples = rules.horizon * (1 + int(self.n_sources.max(initial=0)))
        return self.divides and worth_it and most_samples < MOST_SAMPLES and self.gamma < MOST_HOPS

    def start(self, opening: Opening) -> CompiledTrial:
        self.policy.require_moments_below(opening.source.tail_index)
        rules, constants = self._rules(opening.source, opening.horizon)
        output = empty_output(self.network.n_agents, opening, self.k)
        if self._in_parts(rules, opening.thread_pool):
            return PartitionedTrial(
                self.network, self.gamma, self.sources, rules, output, opening.thread_pool
            )
        return self._trial(rules, constants, output, opening)

    def _trial(
        self, rules: Rules, constants: EstimatorConstants, output: Output, opening: Opening
    ) -> CompiledTrial:
        features = features_of(rules, perfect=True)
        general = () if features.are_plain else self.general(features, rules, constants)
        trial = MessagePassingTrial(self, features, rules, general, output)
        if rules.kind == DEFAULT or rules.width > 0.0:
            fill_draw_keys(trial.memory.general.sketches.draws.keys, opening.seed)
        return trial

    def general(self, features: Features, rules: Rules, constants: EstimatorConstants) -> GeneralState:
        """What running sums on a perfect channel do not need, before the first round."""
        counts = rules.quiet >= 0.0 or self.k > 1
        copies = np.repeat(copies_sent(self.network, self.reach.gamma if counts else 0), self.k, axis=1)
        leads = (self.leader_of < 0) & self.has_leaders
        reach, sources = self.reach, self.sources
        if self.k > 1:
            reach, sources = several_sources(reach, sources, self.k)
        prior, mean = prior_arrays(self.prior, self.reach.learners, self.policy.zeta), self.mean
        return empty_general(features, mean, rules, constants, sources, leads, copies, prior, reach, self.k)

    def _rules(self, source: RewardSource, horizon: int) -> tuple[Rules, EstimatorConstants]:
        policy, reach, messaging = self.policy, self.reach, self.policy.start_and_quiet
        estimator, moments = policy.estimator, self._moments(source)
        forget, span = getattr(policy.forget, "way", 0), getattr(policy.forget, "span", None) or horizon
        levels = confidence_levels(policy.confidence, horizon, self.network.n_agents)
        levels = levels if span >= horizon else levels[np.minimum(np.arange(horizon + 1), span)]
        most_samples = horizon * (1 + int(self.n_sources.max(initial=0)))
        terms, term_of = self._terms(source, horizon, moments, float(levels[-1]))
        constants = NO_CONSTANTS._replace(**self.mean.fit(estimator, terms, term_of))
        if self.mean.pool_rows:
            samples = horizon * self.deliveries
            refuse_too_large(type(estimator).__name__, 8 * self.mean.pool_rows * samples)
        means = source.n_arms * len(reach.learners)
        refuse_too_large(type(estimator).__name__, sketch_bytes(constants) * means)
        bounds = moments or Moments(eps=1.0, u=1.0, rho=1.0)
        exponent = bounds.eps / bounds.p
        scale, least, powers = np.zeros(len(levels)), np.ones(len(levels)), 1
        if not estimator.brings_index:
            radius = policy.radius(bounds)
            known = most_samples + (0 if self.prior is None else self.prior.cap)
            scale, least = radius_scales(radius, levels), least_samples(radius, levels, known)
            powers = min(most_samples + 1, POWERS_TABULATED)
        if forget == DISCOUNT:  # counts are not whole; below 1/2 there is no mean
            least = np.full(len(levels), 0.5)
        rules = Rules(
            n_arms=source.n_arms,
            horizon=horizon,
            kind=self.mean.kind,
            trims=self.mean.trims,
            shares_rows=self.shares_rows,
            u=bounds.u,
            p=bounds.p,
            rho=bounds.rho,
            exponent=exponent,
            scale=scale,
            L=levels,
            least_n=least,
            powers=np.zeros(0) if forget == DISCOUNT else powers_table(exponent, powers),
            by_table=powers > most_samples and not self.shares_rows and means >= MANY_COUNTS,
            leader_of=self.leader_of,
            leader_distance=self.leader_distance,
            gaps=np.array(source.gaps),
            first_rounds=source.n_arms if self.prior is None else 0,
            shared_start=messaging.start == "shared" and self.prior is None,
            quiet=-1.0 if messaging.quiet is None else float(messaging.quiet),
            has_prior=self.prior is not None,
            width=self.width,
            allowed=np.zeros((0, 0, 0), dtype=np.bool_) if self.allowed is None else self.allowed,
            forget=forget,
        )
        return rules, constants

    def _moments(self, source: RewardSource) -> Moments | None:
        if not self.policy.needs_moments:
            return None
        return self.policy.moments or source.moments()

    def _terms(
        self, source: RewardSource, horizon: int, moments: Moments | None, last_L: float
    ) -> tuple[list[Terms], NDArray[np.int64]]:
        """The distinct terms of the learners' streams, and the term of each learner."""
        groups, term_of = np.unique(self.group_sizes[self.reach.learners] + 1, return_inverse=True)
        terms = [
            Terms(moments=moments, last_L=last_L, horizon=horizon, n_arms=source.n_arms, group=group)
            for group in groups.tolist()
        ]
        return terms, term_of


def fill_draw_keys(keys: NDArray[np.uint64], seed: np.random.SeedSequence) -> None:
    """The keys of the agents' own draws in a trial."""
    begin = np.full(len(keys), key_of(seed_word(stream_seed(seed, Role.CHANNEL)), THOMPSON), dtype=np.uint64)
    keys[:] = key_with(begin, np.arange(len(keys), dtype=np.uint64))


def refuse_too_large(estimator: str, needed: int) -> None:
    """Raise before the first round if the samples to be stored exceed the limit."""
    if needed > STORE_LIMIT:
        raise InputError(
            f"{estimator} keeps {in_memory(needed)} of samples here, at most {in_memory(STORE_LIMIT)} are "
            "allowed; take fewer rounds, a smaller gamma or the trimmed mean"
        )


class MessagePassingTrial:
    """The arrays of one trial; they grow with the samples that are stored."""

    def __init__(
        self, layout: MessagePassingLayout, features: Features, rules: Rules, general: Any, output: Output
    ) -> None:
        self.layout, self.features, self.rules, self.output = layout, features, rules, output
        self.lag = 0
        """Samples of so many earlier rounds may arrive late."""
        self.memory = empty_memory(layout.reach, layout.slots, rules, general, layout.k)

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        if self.rules.trims:
            self._reserve_calendar(len(draws))
        if self.layout.mean.pool_rows:
            self._reserve_pool(len(draws))
        self.play(first, draws, law_of(rewards))

    def play(self, first: int, draws: NDArray[np.float64], law: RewardLaw) -> None:
        """Play the rounds first, first + 1, ... for which draws are given."""
        play = block_kernel(self.features)
        play(first, draws, law, self.layout.reach, self.rules, self.memory, self.output)

    def finish(self) -> Trial:
        gamma, marks, horizon, k = self.layout.gamma, self.output.marks, self.rules.horizon, self.layout.k
        sent, rows = self.output.messages, self.rules.n_arms if self.rules.shares_rows else 0
        if k == 1:
            if self.rules.quiet < 0.0:
                sent = np.cumsum(messages_sent(self.layout.network, gamma, horizon))[marks - 1]
            return finished(self.output, sent, rows)
        tried = np.minimum(self.rules.allowed.sum(axis=2), k).sum(axis=1)
        pulls = np.cumsum(np.broadcast_to(tried, horizon))[marks - 1]
        arms = self.output.actions.reshape(-1, self.layout.network.n_agents, k)
        arms[..., 1:][arms[..., 1:] == arms[..., :1]] = -1  # no further arm was allowed
        return finished(self.output._replace(actions=arms), sent, rows, pulls)

    def _reserve_calendar(self, rounds: int) -> None:
        """Entries for the worst case: every delivery of the coming rounds expires."""
        used, n_sources = int(self.memory.calendar.spare[1]), self.layout.n_sources
        streams = 2 if self.rules.forget == WINDOW else self.layout.k
        worst = used + streams * (rounds + self.lag) * int(n_sources.sum() + len(n_sources))
        calendar = reserve(self.memory.calendar, worst, max(worst, 2 * used))
        self.memory = self.memory._replace(calendar=calendar)

    def _reserve_pool(self, rounds: int) -> None:
        """Entries for every list, whichever arm gets the samples of the coming rounds."""
        n, general = self.memory.state.n, self.memory.general
        extra = 1 if self.layout.mean.prefix_sums else 0
        worst = n + (rounds + self.lag) * (1 + self.layout.n_sources) + extra
        room = np.diff(general.pool_start.ravel(), append=general.pool.shape[1]).reshape(worst.shape)
        if (worst <= room).all():
            return
        room = np.where(worst <= room, room, 2 * worst).astype(np.int64)
        start = (np.cumsum(room.ravel()) - room.ravel()).reshape(room.shape)
        pool = np.zeros((len(general.pool), int(room.sum())))
        if general.pool.shape[1]:
            move_pool(general.pool, general.pool_start, pool, start, n, extra)
        self.memory = self.memory._replace(general=general._replace(pool=pool, pool_start=start))
