"""The interface of a layout, and the arrays of one trial before its first round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardStream
from rumormill.default_rule import NOW, TOP, Beliefs
from rumormill.engine.compiled.estimators import EstimatorLayout
from rumormill.engine.compiled.reach import n_words
from rumormill.engine.reference import NO_CONSTRAINT, Constraint
from rumormill.engine.result import Opening, Trial
from rumormill.estimators.clipped import clip_budget
from rumormill.formulas import CUSUM_BEGIN, CUSUM_REFERENCE, log_confidence, prior_doubt
from rumormill.graphs import Network
from rumormill.graphs.adjacency import Adjacency
from rumormill.kernels.state import (
    ANY,
    CATONI,
    DEFAULT,
    HUBER_SGD,
    Calendar,
    DrawState,
    EstimatorConstants,
    Features,
    ForgetState,
    GeneralState,
    IndexBounds,
    Memory,
    MessageRing,
    Output,
    PriorArrays,
    Reach,
    RewardLaw,
    Rules,
    SentRows,
    SketchState,
    Sources,
    State,
)
from rumormill.policies import Prior, RobustPolicy
from rumormill.protocol import World, wire_size

# Work between two calls of `on_rounds` (progress, Ctrl-C): some milliseconds.
DELIVERIES_PER_BLOCK = 4_000_000
ROUNDS_PER_BLOCK = 256
# In place of arrays that no branch of a kernel reads: what is not passed on need not be compiled.
UNUSED: Any = ()
_SHARING = [0]


@contextmanager
def shared_kernels() -> Iterator[None]:
    """Inside, all means but running sums have one kernel: less to compile for those who use many of them."""
    _SHARING[0] += 1
    try:
        yield
    finally:
        _SHARING[0] -= 1


def features_of(rules: Rules, perfect: bool) -> Features:
    """What a game uses of the kernels; shared ones have more, but for running sums on perfect channels."""
    messaging = rules.shared_start or rules.quiet >= 0.0
    ranks = len(rules.allowed) > 0
    features = Features(rules.kind, messaging or rules.has_prior or ranks, rules.forget, ranks)
    if _SHARING[0] and rules.kind != DEFAULT and not (perfect and features.are_plain):
        return Features(ANY, True, ANY if rules.forget else 0, ranks)
    return features


@dataclass(frozen=True, eq=False)
class LayoutInputs:
    """What a policy is compiled for, beside its plan."""

    network: Network
    n_arms: int
    world: World
    gamma: int | None
    """The hop budget; None where the policy does not flood."""
    prior: Prior | None = None
    constraint: Constraint = NO_CONSTRAINT


class CompiledTrial(Protocol):
    """One trial of one policy, advanced block by block."""

    def advance(self, first: int, draws: NDArray[np.float64], rewards: RewardStream) -> None:
        """Play the rounds first, first + 1, ... for which draws are given."""

    def finish(self) -> Trial:
        """The result of the trial."""


class Layout(Protocol):
    """A policy on a network as arrays for the kernels: built once, used by every trial."""

    @property
    def deliveries(self) -> int:
        """Messages that reach an agent, per round."""

    @property
    def rounds_per_block(self) -> int:
        """How many rounds to play between two calls of `on_rounds`."""

    def start(self, opening: Opening) -> CompiledTrial:
        """A trial before its first round."""


def rounds_for(cost: int) -> int:
    """Rounds per block where a round costs so many deliveries."""
    return max(1, min(ROUNDS_PER_BLOCK, DELIVERIES_PER_BLOCK // max(cost, 1)))


def law_of(rewards: RewardStream) -> RewardLaw:
    """The law of the rewards as the kernels take it."""
    return RewardLaw(rewards.shared, rewards.loc, rewards.scale)


def empty_output(n_agents: int, opening: Opening, k: int = 1) -> Output:
    """Arrays for the results of a trial in which agents try k arms in a round."""
    marks, rows = opening.marks, opening.horizon if opening.keep_actions else 0
    return Output(
        marks,
        np.empty((len(marks), n_agents)),
        np.empty((rows, n_agents * k), dtype=np.int64),
        np.zeros(len(marks), dtype=np.int64),
        np.zeros(len(marks), dtype=np.int64),
    )


def finished(
    output: Output, messages: NDArray[np.int64], rows_sent: int, agent_rounds: NDArray[np.int64] | None = None
) -> Trial:
    """The result of a trial, with the messages it took."""
    actions = output.actions if len(output.actions) else None
    return Trial(output.agent_regret, messages, messages * wire_size(rows_sent), actions, agent_rounds)


def empty_memory(reach: Reach, slots: int, rules: Rules, general: Any, k: int = 1) -> Memory:
    """The arrays of a trial before its first round; `general` is a GeneralState, or () where not needed."""
    n_agents = len(reach.learner_of)
    n_samples = n_agents * k
    n_arms, n_learners = rules.n_arms, len(reach.learners)
    shape = (n_arms, n_learners)
    ring = MessageRing(
        arm=np.zeros((slots, n_samples), dtype=np.int32),
        x=np.zeros((slots, n_samples)),
        need=np.zeros((slots, n_samples)),
        power=np.zeros((slots, n_samples)),
        order=np.zeros((slots, n_samples), dtype=np.int32),
        start=np.zeros((slots, n_arms + 1), dtype=np.int32),
        sent=np.ones((slots, n_samples), dtype=np.bool_),
    )
    best = shape if rules.shares_rows else (1, 1)
    state = State(
        n=general.sketches.beliefs.n if rules.kind == DEFAULT else np.zeros(shape),
        total=np.zeros(shape),
        mean=np.zeros(shape),
        best_mean=np.zeros(best),
        best_n=np.zeros(best),
        received_n=np.zeros(best),
        received_from=np.zeros(best, dtype=np.int32),
        received_hop=np.zeros(best, dtype=np.int32),
        changed=np.ones(n_arms, dtype=np.bool_),
        sure_x=np.full(n_arms, -1.0),
        action=np.zeros(n_learners, dtype=np.int32),
        bounds=IndexBounds(power=np.zeros(shape), inverse=np.zeros(shape), first=np.zeros(n_learners)),
        pulls=np.zeros((n_agents, n_arms), dtype=np.int64),
        mark=np.zeros(1, dtype=np.int64),
        starts=np.zeros(n_learners, dtype=np.bool_),
    )
    return Memory(state, ring, empty_calendar(rules), _empty_rows(reach, slots, rules), general)


def empty_calendar(rules: Rules) -> Calendar:
    """No sample leaves a mean; entries are added when rounds are played."""
    return Calendar(
        head=np.full(rules.horizon + 2 if rules.trims else 1, -1, dtype=np.int32),
        after=np.zeros(0, dtype=np.int32),
        place=np.zeros(0, dtype=np.int64),
        x=np.zeros(0),
        spare=np.array([-1, 0], dtype=np.int64),
    )


def reserve(calendar: Calendar, worst: int, room: int) -> Calendar:
    """A calendar with entries for `worst` samples, with `room` of them if it has to grow.

    Pages that are never touched cost nothing.
    """
    if worst <= len(calendar.x):
        return calendar
    used, grown = int(calendar.spare[1]), {}
    for name in ("after", "place", "x"):
        old = getattr(calendar, name)
        grown[name] = np.empty(room, dtype=old.dtype)
        grown[name][:used] = old[:used]
    return calendar._replace(**grown)


def _empty_rows(reach: Reach, slots: int, rules: Rules) -> SentRows:
    n_agents, n_arms, n_learners = len(reach.learner_of), rules.n_arms, len(reach.learners)
    shape = (slots, n_arms, n_agents) if rules.shares_rows else (1, 1, 1)
    dense = rules.shares_rows and bool((reach.dense >= 0).any())
    sparse = rules.shares_rows and bool((reach.dense < 0).any())
    return SentRows(
        mean=np.zeros(shape),
        n=np.zeros(shape),
        top=np.tile(np.arange(n_agents if dense else 0, dtype=np.int32), (slots, n_arms, 1)),
        updated=np.zeros((slots, n_arms, n_agents + 1 if sparse else 0), dtype=np.int32),
        n_updated=np.zeros((slots, n_arms), dtype=np.int32),
        left=np.zeros(n_words(n_learners), dtype=np.uint64),
    )


def empty_general(
    features: Features,
    mean: EstimatorLayout,
    rules: Rules,
    constants: EstimatorConstants,
    sources: Sources,
    always_sends: NDArray[np.bool_],
    copies: NDArray[np.int64],
    prior: PriorArrays,
    reach: Any = UNUSED,
    k: int = 1,
) -> GeneralState:
    """Before the first round: other estimators than running sums, quiet messaging, faults."""
    n_learners = len(sources.ptr)
    shape = (rules.n_arms, n_learners)
    sketches = UNUSED
    most_received = k + int((sources.ptr[:, -1] - sources.ptr[:, 0]).max(initial=0))
    kinds = range(DEFAULT) if features.kind == ANY else [features.kind]
    if features.extras or max(kinds) > CATONI:
        sketches = _empty_sketches(kinds, rules.kind, shape, most_received, constants)
    return GeneralState(
        constants=constants,
        sources=sources,
        reach=reach if features.ranks else UNUSED,
        always_sends=always_sends,
        copies=copies,
        n_sent=np.zeros(1, dtype=np.int64),
        needs_mean=np.ones(n_learners, dtype=np.bool_),
        known=np.full(shape, -1.0),
        groups=np.zeros(shape),
        pool=np.zeros((mean.pool_rows, 0)),
        pool_start=np.zeros(shape, dtype=np.int64),
        scratch=np.zeros(int(1 + 8 * rules.L[-1]) + 2 if mean.pool_rows else 0),
        sketches=sketches,
        prior=prior if features.extras else UNUSED,
        forget=UNUSED,
    )


def forget_state(
    policy: RobustPolicy,
    features: Features,
    mean: EstimatorLayout,
    rules: Rules,
    reach: Reach,
    near: Adjacency,
    general: Any,
) -> ForgetState:
    """Streams of all learners before the first round, where samples are forgotten."""
    n_agents, n_arms = len(reach.learners), rules.n_arms
    forget: Any = policy.forget
    wide = 1 if forget.window is None else 2  # streams of a learner
    sources = Sources(np.tile(general.sources.ptr, (wide, 1)), general.sources.ids)
    constants = general.constants._replace(budgets=np.tile(general.constants.budgets, wide))
    inner = empty_general(features, mean, rules, constants, sources, UNUSED, UNUSED, UNUSED)
    reach = reach._replace(learners=np.tile(reach.learners, wide))
    return ForgetState(
        streams=empty_memory(reach, 1, rules._replace(shares_rows=False), inner),
        span=float(forget.span or np.inf),
        discount=float(forget.discount or 1.0),
        L=log_confidence(policy.confidence, forget.span or 1, n_agents),
        budget=clip_budget(rules.u, rules.p) if policy.estimator.clips else np.inf,
        taken=general.prior.taken if rules.has_prior else np.zeros(n_agents),
        present=np.arange(n_agents),
        last=np.zeros((n_arms, n_agents)),
        heard_at=np.zeros((n_agents, n_agents) if rules.shares_rows else (0, 0)),
        near_ptr=near.indptr.copy(),
        near=near.indices.copy(),
        cusum=np.zeros((n_arms, n_agents, CUSUM_BEGIN + CUSUM_REFERENCE) if forget.restart else (0, 0, 0)),
    )


def prior_arrays(prior: Prior | None, learners: NDArray[np.int32], zeta: float | None) -> PriorArrays:
    """The priors of all learners before the first round."""
    if prior is None:
        none = np.zeros((0, 0))
        return PriorArrays(1.0, 1.0, none, none, none, np.zeros(0), none)
    each = [prior.of(v) for v in learners.tolist()]
    mean = np.array([one.mean for one in each], dtype=float).T.copy()
    weight = np.array([one.weights for one in each], dtype=float).T.copy()
    spread = np.zeros_like(mean)
    if prior.spread is not None:
        spread = np.array([one.spread for one in each], dtype=float).T.copy()
    constants = (float(prior.probe), prior_doubt(zeta))
    return PriorArrays(*constants, mean, weight, spread, np.zeros(len(each)), np.zeros_like(mean))


def _empty_beliefs(shape: tuple[int, int], room: int) -> Beliefs:
    n_arms, n_learners = shape
    found = {name: np.zeros(shape) for name in Beliefs._fields}
    lists = {"store": room, "top": TOP}
    found |= {name: np.zeros((n_learners, n_arms, size)) for name, size in lists.items()}
    found["now"] = np.zeros((NOW, n_learners))
    return Beliefs(**{**found, "filled": np.zeros(shape, dtype=np.int64)})


def _empty_draws(n_learners: int) -> DrawState:
    found: dict[str, NDArray[Any]] = {name: np.zeros(n_learners) for name in DrawState._fields}
    found |= {name: np.zeros(n_learners, dtype=np.uint64) for name in ("keys", "now")}
    return DrawState(**found | {"forced": np.zeros(n_learners, dtype=np.int32)})


def _first_level(constants: EstimatorConstants) -> float:
    if constants.store:
        return -1.0
    return constants.lam * constants.scale if constants.lam > 0.0 else 1.0


def _empty_sketches(
    kinds: Sequence[int], kind: int, shape: tuple[int, int], most_received: int, constants: EstimatorConstants
) -> SketchState:
    shape = shape if kind > CATONI else (1, 1)
    return SketchState(
        upper=np.zeros(shape),
        top=np.zeros((*shape, constants.top)),
        filled=np.zeros(shape, dtype=np.int32),
        rest=np.zeros(shape),
        squares=np.zeros(shape),
        centre=np.zeros(shape),
        pilot=np.zeros((*shape, constants.pilot)),
        room=np.zeros(constants.pilot),
        counts=np.zeros((*shape, len(constants.edges)), dtype=np.int32),
        place=np.zeros((2, *shape), dtype=np.int32),
        below=np.zeros((2, *shape), dtype=np.int32),
        level=np.full(shape, _first_level(constants)),
        clip=np.full(shape, constants.scale),
        arms=np.zeros(most_received, dtype=np.int32),
        xs=np.zeros(most_received),
        draws=_empty_draws(shape[1]) if max(kinds) >= HUBER_SGD else UNUSED,
        beliefs=_empty_beliefs(shape, constants.store) if kind == DEFAULT else UNUSED,
    )
