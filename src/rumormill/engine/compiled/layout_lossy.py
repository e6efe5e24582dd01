"""Message passing with lossy channels, delays, corruption and absences: layout and arrays of one trial."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rumormill.counter_rng import CORRUPT, DISCARD, key_of, key_with
from rumormill.engine.compiled.estimators import BY_ORIGIN, layout_of_mean
from rumormill.engine.compiled.layout_messages import (
    MessagePassingLayout,
    MessagePassingTrial,
    fill_draw_keys,
    refuse_too_large,
)
from rumormill.engine.compiled.reach import as_bitmasks, build_reach, links_of
from rumormill.engine.compiled.state import LayoutInputs, features_of, finished, forget_state, rounds_for
from rumormill.engine.result import Opening, Trial
from rumormill.kernels.counter_rng import limit_of
from rumormill.kernels.lossy_round import lossy_block_kernel
from rumormill.kernels.lossy_state import (
    AT_ONCE,
    DRAWN,
    LOST,
    SCALED,
    SHIFTED,
    TRUE,
    BestRows,
    BlockFaults,
    CorruptionRules,
    InFlight,
    Links,
    LossyState,
    OneHop,
    ReceiveRules,
    RoundState,
)
from rumormill.kernels.origins import ALL, Origins
from rumormill.kernels.state import ANY, DEFAULT, RUNNING, EstimatorConstants, Output, RewardLaw, Rules
from rumormill.policies import HopPlan, RobustPolicy
from rumormill.protocol import Conditions, Corruption, World
from rumormill.protocol.adversary import CLAIMED_COUNT

# The cost of a simulated arrival, in deliveries on a perfect channel.
ARRIVAL_COST = 8
WORD = 64
LONGEST_DELAY = 1 << 14
# Beyond, corrupted rewards may exceed what validation accepts.
LARGEST_SCALE = 1e50
# Bitmasks for every agent up to this size; lists take less on large, sparse networks.
MOST_BYTES_OF_BITS = 1 << 26
# A hop budget of 1 without delays: losses are drawn for every pair, whether there is a link or not.
DENSE_FROM = 0.1
FEWEST_IN_BITS, MOST_IN_BITS = 24, 4096
TOP = 16  # agents with most samples that are tried before all others


class OriginGroups(NamedTuple):
    """Samples by origin: how many liars are tolerated, spare pairs of groups, what the radius counts."""

    f: int
    spare: int
    counting: int


@dataclass(frozen=True, eq=False)
class LossyLayout(MessagePassingLayout):
    """The same policy with faults: any agent may have to decide, so all are learners."""

    world: World
    plan: Any
    group_of: NDArray[np.int32]
    """Agents use samples of their own group only; empty: of all agents in reach."""
    origin_groups: OriginGroups | None
    """Groups of origins, if samples are kept by origin."""

    @classmethod
    def build_lossy(
        cls,
        inputs: LayoutInputs,
        policy: RobustPolicy,
        plan: HopPlan,
        *,
        group_of: NDArray[np.int64] | None = None,
        leader_of: NDArray[np.int32] | None = None,
        leader_distance: NDArray[np.int32] | None = None,
        shares_rows: bool = False,
        origin_groups: OriginGroups | None = None,
    ) -> LossyLayout:
        """As on a perfect channel, but arrivals are not known in advance."""
        network, world, gamma = inputs.network, inputs.world, inputs.gamma or 0
        n_agents, no_groups = network.n_agents, np.zeros(0, dtype=np.int32)
        if world.all_present:  # a message is forwarded every round, and to no agent twice
            gamma = min(gamma, n_agents * ((world.longest_delay or 0) + 1))
        reach, sources = build_reach(network, 0, np.arange(n_agents, dtype=np.int32), None)
        return cls(
            policy=policy,
            network=network,
            mean=layout_of_mean(policy) if origin_groups is None else BY_ORIGIN,
            gamma=gamma,
            reach=reach,
            sources=sources,
            n_sources=np.zeros(n_agents, dtype=np.int64) if plan.near is None else plan.near.sizes,
            leader_of=np.full(n_agents, -1, dtype=np.int32) if leader_of is None else leader_of,
            leader_distance=np.zeros(n_agents, dtype=np.int32)
            if leader_distance is None
            else leader_distance,
            shares_rows=shares_rows,
            has_leaders=leader_of is not None,
            prior=inputs.prior,
            world=world,
            plan=plan,
            group_of=no_groups if group_of is None else group_of.astype(np.int32),
            origin_groups=origin_groups,
        )

    @property
    def group_sizes(self) -> NDArray[np.int64]:
        return self.n_sources

    @cached_property
    def shares_kept(self) -> NDArray[np.float64] | None:
        """Per agent, the share of arrivals that it uses; None: all."""
        if getattr(self.policy, "discard", None) is None:
            return None
        return np.array([self.plan.keep(v) for v in range(self.network.n_agents)])

    @property
    def longest(self) -> int:
        """The longest delay of a bundle, in rounds."""
        return self.world.longest_delay or 0

    @property
    def hold(self) -> int:
        return int(getattr(self.policy, "hold", 1))

    @property
    def slots(self) -> int:
        """For how many rounds samples are kept in the ring."""
        return max(self.gamma + self.longest, self.hold, 1)

    @property
    def rounds_per_block(self) -> int:
        return rounds_for(self.deliveries * self.mean.slow * ARRIVAL_COST)

    @property
    def divides(self) -> bool:
        return False

    def _trial(
        self, rules: Rules, constants: EstimatorConstants, output: Output, opening: Opening
    ) -> LossyTrial:
        conditions = self.world.of_trial(self.network, opening.source, rules.horizon, opening.seed)
        layout, most = self, rules.horizon  # rounds that a message is held or in flight, at most
        if self.gamma > most:
            layout = replace(layout, gamma=most)
        if self.hold > most:
            policy: Any = self.policy
            layout = replace(layout, policy=replace(policy, hold=most))
        trial = LossyTrial(layout, rules, constants, output, conditions)
        if rules.kind == DEFAULT or rules.width > 0.0:
            fill_draw_keys(trial.memory.general.sketches.draws.keys, opening.seed)
        return trial


class LossyTrial(MessagePassingTrial):
    """One trial with its own faults."""

    layout: LossyLayout

    def __init__(
        self,
        layout: LossyLayout,
        rules: Rules,
        constants: EstimatorConstants,
        output: Output,
        conditions: Conditions,
    ) -> None:
        features = features_of(rules, perfect=False)
        general = layout.general(features, rules, constants)
        if rules.forget:
            near = layout.network.power(layout.plan.gamma if rules.shares_rows else 0)
            kept = forget_state(layout.policy, features, layout.mean, rules, layout.reach, near, general)
            general = general._replace(forget=kept)
        super().__init__(layout, features, rules, general, output)
        self.lag = layout.slots  # rounds whose samples may arrive late, all at once
        self.conditions = conditions
        links = links_of(layout.network, layout.gamma, conditions)
        self.lossy = LossyState(
            links=links,
            receive=receive_rules(layout, conditions),
            corruption=corruption_rules(conditions, rules.n_arms),
            in_flight=empty_flight(layout),
            now=empty_round(layout),
            best_rows=empty_best_rows(rules, layout.network.n_agents),
            one_hop=one_hop_bitmasks(layout, links, rules),
            origins=empty_origins(layout, rules),
        )

    def play(self, first: int, draws: NDArray[np.float64], law: RewardLaw) -> None:
        conditions, stop = self.conditions, first + len(draws)
        drawn = np.zeros((0, 0))
        if self.lossy.corruption.way == DRAWN:
            drawn = conditions.drawn(first, stop)
        faults = BlockFaults(conditions.up(first, stop), conditions.corrupt(first, stop), drawn)
        rules = self.rules
        one_hop = self.features.kind != ANY and self.lossy.one_hop.words.shape[0] > 0
        play = lossy_block_kernel(self.features, one_hop)
        play(first, draws, law, faults, rules, self.memory, self.lossy, self.output)

    def finish(self) -> Trial:
        rows = self.rules.n_arms if self.rules.shares_rows else 0
        return finished(self.output, self.output.messages, rows, self.output.agent_rounds)


def receive_rules(layout: LossyLayout, conditions: Conditions) -> ReceiveRules:
    """Whose samples agents use, what they discard, and how long they wait for their leader."""
    policy, n_agents = layout.policy, layout.network.n_agents
    shares = layout.shares_kept
    discard = np.zeros(0, dtype=np.uint64)
    if shares is not None:
        begin = np.full(n_agents, key_of(conditions.seed, DISCARD), dtype=np.uint64)
        discard = key_with(begin, np.arange(n_agents, dtype=np.uint64))
    patience = getattr(policy, "patience", None)
    return ReceiveRules(
        group=layout.group_of,
        hold=layout.hold,
        discards=shares is not None,
        discard=discard,
        kept=np.array([limit_of(share) for share in ([] if shares is None else shares)], dtype=np.uint64),
        patience=np.inf if patience is None else float(patience),
        audience=layout.n_sources + 1,
    )


def corruption_rules(conditions: Conditions, n_arms: int) -> CorruptionRules:
    """Corruption of messages, and the lie of byzantine agents."""
    corruption, lie = conditions.world.corruption, conditions.lie
    way, amount = (TRUE, 0.0) if corruption is None else _way(corruption)
    return CorruptionRules(
        way=way,
        amount=amount,
        at_receiver=corruption is not None and corruption.at == "receiver",
        rows=corruption is not None and corruption.rows,
        limit=limit_of(0.0 if corruption is None else corruption.rate),
        key=np.uint64(key_of(conditions.seed, CORRUPT)),
        liars=conditions.lies,
        lie_arm=0 if lie is None else lie.arm,
        lie_x=0.0 if lie is None else lie.reward,
        lie_means=np.zeros(n_arms) if lie is None else np.array(lie.means),
        lie_count=CLAIMED_COUNT,
    )


def _way(corruption: Corruption) -> tuple[int, float]:
    if corruption.shift is not None:
        return SHIFTED, float(corruption.shift)
    return (SCALED, float(corruption.scale)) if corruption.scale is not None else (DRAWN, 0.0)


def empty_flight(layout: LossyLayout) -> InFlight:
    """Before the first round no message is in flight."""
    network, slots, gamma = layout.network, layout.slots, layout.gamma
    n_agents, delays, words = network.n_agents, layout.longest + 1, -(-network.n_agents // WORD)
    # Over one link every message arrives once: only what is forwarded, or held, is stored.
    stores = gamma > 1 or layout.hold > 1
    out, seen = (delays + 1, n_agents, max(gamma - 1, 0), words), (n_agents if stores else 0, slots, words)
    lists, places = stores and 8 * (math.prod(out) + math.prod(seen)) > MOST_BYTES_OF_BITS, 0
    if lists:
        out, seen = (1, n_agents, 0, words), (1, slots, words)
        near = network.neighbourhoods(min(gamma, slots - 1)).sizes
        # Every message arrives once, and arrivals of the last rounds were sent in twice as many.
        places = 1 << int(near.sum() * (2 * slots - 1)).bit_length()
        refuse_too_large(type(layout.policy).__name__, 8 * places)
    most = 1 + slots * int(layout.n_sources.max(initial=0))
    return InFlight(
        late=np.full((delays, len(network.indices)), LOST, dtype=np.int16),
        out=np.zeros(out, dtype=np.uint64),
        seen=np.zeros(seen, dtype=np.uint64),
        arrived=np.zeros((slots, words), dtype=np.uint64),
        filled=np.zeros((slots, -(-words // WORD)), dtype=np.uint64),
        begin=np.zeros((slots if lists else 1, n_agents), dtype=np.int64),
        end=np.zeros((slots if lists else 1, n_agents), dtype=np.int64),
        pool=np.zeros((2, places), dtype=np.int32),
        written=np.zeros(1, dtype=np.int64),
        forwards=np.zeros(n_agents, dtype=np.int64),
        origin=np.zeros(most, dtype=np.int32),
        when=np.zeros(most, dtype=np.int32),
        arm=np.zeros(most, dtype=np.int32),
        source=np.zeros(most, dtype=np.int32),
        x=np.zeros(most),
        need=np.zeros(most),
        power=np.zeros(most),
    )


def one_hop_bitmasks(layout: LossyLayout, links: Links, rules: Rules) -> OneHop:
    """Bitmasks of receivers, where they suffice: one hop, no delay, one kind of sums, a dense network."""
    network = layout.network
    n_agents, corruption = network.n_agents, layout.world.corruption
    simple = layout.gamma == 1 and links.delay == AT_ONCE and layout.hold == 1 and layout.shares_kept is None
    same_for_all = corruption is None or corruption.at == "origin"
    dense = FEWEST_IN_BITS <= n_agents <= MOST_IN_BITS and len(network.indices) >= DENSE_FROM * n_agents**2
    if not (simple and same_for_all and dense and rules.kind == RUNNING and not rules.forget):
        empty = np.zeros((0, 0), dtype=np.uint64)
        return OneHop(np.zeros((0, 0, 0), dtype=np.uint64), empty, empty, np.zeros(0, dtype=np.int32))
    receiver = np.repeat(np.arange(n_agents), network.degrees)
    used = np.ones(len(receiver), dtype=np.bool_)
    if len(layout.group_of):
        used = layout.group_of[receiver] == layout.group_of[network.indices]
    base = as_bitmasks(network.indices[used].astype(np.int64), receiver[used], n_agents, n_agents)
    keys = np.zeros((n_agents, len(base) * WORD) if links.loses else (0, 0), dtype=np.uint64)
    if links.loses:
        keys[network.indices, receiver] = links.loss
        if links.per_copy:  # one message per link: the sender is its origin
            keys = key_with(keys, np.arange(n_agents, dtype=np.uint64)[:, None])
    bits = keys.reshape(len(keys), len(base), WORD)
    return OneHop(bits, base, np.zeros_like(base), np.zeros(min(TOP, n_agents), dtype=np.int32))


def empty_origins(layout: LossyLayout, rules: Rules) -> Origins:
    """Samples by origin, if the policy keeps them, and rows by origin, if it sends any."""
    groups, n_agents = layout.origin_groups or OriginGroups(0, 0, ALL), layout.network.n_agents
    shape = (rules.n_arms, n_agents, n_agents) if layout.origin_groups else (0, 0, 0)
    rows = shape if rules.shares_rows else (0, 0, 0)
    if rules.shares_rows and rules.forget:
        rows = (rules.n_arms, n_agents, n_agents)
    refuse_too_large(type(layout.policy).__name__, 24 * math.prod(shape) + 16 * math.prod(rows))
    most = 2 * groups.f + 1 + 2 * groups.spare
    return Origins(
        f=groups.f,
        most=most,
        counting=groups.counting,
        root=math.pow(rules.u, 1.0 / rules.p),
        n=np.zeros(shape),
        total=np.zeros(shape),
        order=np.zeros(shape, dtype=np.int32),
        place=np.zeros(shape, dtype=np.int32),
        n_origins=np.zeros(shape[:2], dtype=np.int32),
        group_n=np.zeros(most),
        group_mean=np.zeros(most),
        newest=np.zeros(rows[1:], dtype=np.int32),
        row_mean=np.zeros(rows),
        row_n=np.zeros(rows),
        indices=np.zeros(n_agents),
    )


def empty_round(layout: LossyLayout) -> RoundState:
    """Before the first round no agent has pulled or received anything."""
    n_agents = layout.network.n_agents
    return RoundState(
        arm=np.zeros(n_agents, dtype=np.int32),
        x=np.zeros(n_agents),
        need=np.zeros(n_agents),
        power=np.zeros(n_agents),
        copies=np.zeros(n_agents, dtype=np.bool_),
        leader_round=np.zeros(n_agents, dtype=np.int32),
        leader_arm=np.zeros(n_agents, dtype=np.int32),
        pulled=np.zeros(1, dtype=np.int64),
        drawn=np.zeros((layout.slots, n_agents)),
    )


def empty_best_rows(rules: Rules, n_agents: int) -> BestRows:
    """Before the first round no row was received."""
    shape = (rules.n_arms, n_agents) if rules.shares_rows else (1, 1)
    return BestRows(
        n=np.zeros(shape),
        mean=np.zeros(shape),
        origin=np.full(shape, -1, dtype=np.int32),
        when=np.zeros(shape, dtype=np.int32),
    )
