"""Message passing laid out for its kernels: what all trials share, and the arrays of one trial."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import Moments, RewardSource, RewardStream
from rumormill.engine.compiled import layout_partitioned as crowd
from rumormill.engine.compiled.estimators import (
    MEANS,
    NO_TUNING,
    MeanLayout,
    Room,
    confidence_levels,
    least_samples,
    powers_table,
    radius_scales,
)
from rumormill.engine.compiled.layout_partitioned import CrowdTrial
from rumormill.engine.compiled.reach import build_hearing, copies_sent, messages_sent
from rumormill.engine.compiled.state import (
    CompiledTrial,
    empty_memory,
    empty_output,
    finished,
    law_of,
    rounds_for,
)
from rumormill.engine.result import Opening, Trial
from rumormill.engine.workers import Crew
from rumormill.errors import InputError
from rumormill.estimators import Terms
from rumormill.graphs import Network
from rumormill.kernels.means_stored import move_pool
from rumormill.kernels.partitioned import MOST_ORIGINS, MOST_SAMPLES
from rumormill.kernels.rounds import play_rounds
from rumormill.kernels.state import RUNNING, Hearing, Law, Output, Rules
from rumormill.policies import RobustPolicy
from rumormill.text import memory as in_memory

# Bytes of samples that one trial may have to store before it is refused.
STORE_LIMIT = 4 << 30
POWERS_TABULATED = 1 << 18


@dataclass(frozen=True, eq=False)
class MessagePassingLayout:
    """A policy whose agents hear samples, on a network."""

    policy: RobustPolicy
    network: Network
    mean: MeanLayout
    gamma: int
    hearing: Hearing
    heard: NDArray[np.int64]
    """Per learner, how many others it may hear."""
    leader_of: NDArray[np.int32]
    """Whom an agent copies; -1 for agents that decide for themselves."""
    leader_distance: NDArray[np.int32]
    shares_rows: bool
    has_leaders: bool

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
        n_agents, has_leaders = network.n_agents, leader_of is not None
        leader_of = np.full(n_agents, -1, dtype=np.int32) if leader_of is None else leader_of
        distance = np.zeros(n_agents, dtype=np.int32) if leader_distance is None else leader_distance
        # A follower decides for itself only in rounds K < t <= distance; but with a shared start or quiet
        # talk it matters what it has heard itself.
        manners = policy.start_and_quiet
        decides = (leader_of < 0) | (distance > n_arms)
        if manners.start == "shared" or manners.quiet is not None:
            decides[:] = True
        learners = np.flatnonzero(decides).astype(np.int32)
        hearing = build_hearing(network, gamma, learners, group_of)
        if shares_rows:
            hearing = hearing._replace(by_origin=np.ascontiguousarray(hearing.words.transpose(0, 2, 1)))
        heard = hearing.source_ptr[:, -1] - hearing.source_ptr[:, 0]
        mean = MEANS[type(policy.estimator)]
        return cls(
            policy, network, mean, gamma, hearing, heard, leader_of, distance, shares_rows, has_leaders
        )

    @property
    def slots(self) -> int:
        """For how many rounds what was said must be known."""
        return self.gamma + 1

    @property
    def reach(self) -> NDArray[np.int64]:
        """Per agent, how many others are within reach."""
        return self.network.neighbourhoods(self.gamma).sizes

    @property
    def deliveries(self) -> int:
        return int(self.heard.sum()) + len(self.hearing.learners)

    @property
    def rounds_per_block(self) -> int:
        return rounds_for(self.deliveries * self.mean.slow)

    @property
    def divides(self) -> bool:
        """Whether the threads of a crew can share one trial: very many agents, and few links."""
        manners, hearing = self.policy.start_and_quiet, self.hearing
        plain = manners.start == "round-robin" and manners.quiet is None and not self.has_leaders
        sparse = bool((hearing.dense < 0).all())
        many = crowd.MANY_AGENTS <= self.network.n_agents < MOST_ORIGINS
        return many and plain and sparse and self.mean.kind == RUNNING

    def _in_parts(self, rules: Rules, crew: Crew | None) -> bool:
        worth_it = crew is not None or self.network.n_agents >= crowd.HUGE_CROWD
        most_samples = rules.horizon * (1 + int(self.heard.max(initial=0)))
        return self.divides and worth_it and most_samples < MOST_SAMPLES

    def start(self, opening: Opening) -> CompiledTrial:
        self.policy.require_moments_below(opening.source.tail_index)
        rules, room = self._rules(opening.source, opening.horizon)
        output = empty_output(self.network.n_agents, opening)
        if self._in_parts(rules, opening.crew):
            return CrowdTrial(self, rules, output, opening.crew)
        return self._trial(rules, room, output, opening)

    def _trial(self, rules: Rules, room: Room, output: Output, opening: Opening) -> CompiledTrial:
        del opening  # nothing but the rewards is left to chance
        return MessagePassingTrial(self, rules, room, output)

    def _rules(self, source: RewardSource, horizon: int) -> tuple[Rules, Room]:
        policy, hearing, manners = self.policy, self.hearing, self.policy.start_and_quiet
        estimator, moments = policy.estimator, self._moments(source)
        levels = confidence_levels(policy.confidence, horizon, self.network.n_agents)
        most_samples = horizon * (1 + int(self.heard.max(initial=0)))
        terms, term_of = self._terms(source, horizon, moments, float(levels[-1]))
        given, room = self.mean.fit(estimator, terms, term_of)
        if self.mean.pool_rows:
            samples = horizon * self.deliveries
            refuse_too_large(type(estimator).__name__, 8 * self.mean.pool_rows * samples)
        refuse_too_large(type(estimator).__name__, room.bytes * source.n_arms * len(hearing.learners))
        bounds = moments or Moments(eps=1.0, u=1.0, rho=1.0)
        exponent = bounds.eps / bounds.p
        scale, least, powers = np.zeros(len(levels)), np.ones(len(levels)), 1
        if not estimator.brings_index:
            radius = policy.radius(bounds)
            scale, least = radius_scales(radius, levels), least_samples(radius, levels, most_samples)
            powers = min(most_samples + 1, POWERS_TABULATED)
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
            powers=powers_table(exponent, powers),
            leader_of=self.leader_of,
            leader_distance=self.leader_distance,
            gaps=np.array(source.gaps),
            shared_start=manners.start == "shared",
            quiet=-1.0 if manners.quiet is None else float(manners.quiet),
            always_tells=self.leads,
            copies=copies_sent(self.network, 0 if manners.quiet is None else hearing.gamma),
            tuning=NO_TUNING._replace(**given),
        )
        return rules, room

    @property
    def leads(self) -> NDArray[np.bool_]:
        """Per agent, whether somebody copies it: such agents are never quiet."""
        leads: NDArray[np.bool_] = (self.leader_of < 0) & self.has_leaders
        return leads

    def _moments(self, source: RewardSource) -> Moments | None:
        if not self.policy.estimator.needs_moments:
            return None
        return self.policy.moments or source.moments()

    def _terms(
        self, source: RewardSource, horizon: int, moments: Moments | None, last_L: float
    ) -> tuple[list[Terms], NDArray[np.int64]]:
        """What streams begin with, and which of it every learner's do."""
        groups, term_of = np.unique(self.reach[self.hearing.learners] + 1, return_inverse=True)
        terms = [
            Terms(moments=moments, last_L=last_L, horizon=horizon, n_arms=source.n_arms, group=group)
            for group in groups.tolist()
        ]
        return terms, term_of


def refuse_too_large(estimator: str, needed: int) -> None:
    """Say so before any round is played if the samples to be kept would not fit."""
    if needed > STORE_LIMIT:
        raise InputError(
            f"{estimator} keeps {in_memory(needed)} of samples here, at most {in_memory(STORE_LIMIT)} are "
            "allowed; take fewer rounds, a smaller gamma or the trimmed mean"
        )


class MessagePassingTrial:
    """The arrays of one trial; they grow with the samples that have to be kept."""

    def __init__(self, layout: MessagePassingLayout, rules: Rules, room: Room, output: Output) -> None:
        self.layout, self.rules, self.output = layout, rules, output
        self.lag = 0
        """Samples of so many earlier rounds may come late."""
        self.memory = empty_memory(layout.hearing, layout.slots, layout.mean, rules, room)

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        if self.rules.trims:
            self._reserve_calendar(len(draws))
        if self.layout.mean.pool_rows:
            self._reserve_pool(len(draws))
        self.play(first, draws, law_of(rewards))

    def play(self, first: int, draws: NDArray[np.float64], law: Law) -> None:
        """Have the rounds played."""
        play_rounds(first, draws, law, self.layout.hearing, self.rules, self.memory, self.output)

    def finish(self) -> Trial:
        gamma, marks = self.layout.gamma, self.output.marks
        sent = self.output.messages
        if self.rules.quiet < 0.0:
            sent = np.cumsum(messages_sent(self.layout.network, gamma, self.rules.horizon))[marks - 1]
        return finished(self.output, sent, self.rules.n_arms if self.rules.shares_rows else 0)

    def _reserve_calendar(self, rounds: int) -> None:
        """Room for the worst case; pages that are never touched cost nothing."""
        calendar = self.memory.calendar
        used = int(calendar.spare[1])
        heard = self.layout.heard
        worst = used + (rounds + self.lag) * int(heard.sum() + len(heard))
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
        worst = state.n + (rounds + self.lag) * (1 + self.layout.heard) + extra
        room = np.diff(state.pool_start.ravel(), append=state.pool.shape[1]).reshape(worst.shape)
        if (worst <= room).all():
            return
        room = np.where(worst <= room, room, 2 * worst).astype(np.int64)
        start = (np.cumsum(room.ravel()) - room.ravel()).reshape(room.shape)
        pool = np.zeros((len(state.pool), int(room.sum())))
        if state.pool.shape[1]:
            move_pool(state.pool, state.pool_start, pool, start, state.n, extra)
        self.memory = self.memory._replace(state=state._replace(pool=pool, pool_start=start))
