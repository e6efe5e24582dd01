"""Message passing where messages are lost, late or false and agents come and go, laid out for kernels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rumormill.counter_rng import CORRUPT, DISCARD, key_of, key_with
from rumormill.engine.compiled.estimators import BY_ORIGIN, MEANS, Room
from rumormill.engine.compiled.layout_messages import (
    MessagePassingLayout,
    MessagePassingTrial,
    refuse_too_large,
)
from rumormill.engine.compiled.reach import build_hearing, in_words, links_of
from rumormill.engine.compiled.state import Ground, finished, rounds_for
from rumormill.engine.result import Opening, Trial
from rumormill.kernels.counter_rng import limit_of
from rumormill.kernels.lossy_round import play_imperfect_block
from rumormill.kernels.lossy_state import (
    AT_ONCE,
    DRAWN,
    LOST,
    SCALED,
    SHIFTED,
    TRUE,
    Ears,
    Falsehood,
    Hearsay,
    Links,
    Nearby,
    Present,
    Traffic,
    Weather,
)
from rumormill.kernels.lossy_state import World as KernelWorld
from rumormill.kernels.origins import ALL, Origins
from rumormill.kernels.state import RUNNING, Law, Output, Rules
from rumormill.policies import HopPlan, RobustPolicy
from rumormill.protocol import Conditions, Corruption, World
from rumormill.protocol.adversary import CLAIMED_COUNT

# A sample that has to be looked for costs about so many plain deliveries.
COST_OF_LOOKING = 8
WORD = 64
LONGEST_DELAY = 1 << 14
# Beyond, what is said may be too large to be let in.
LARGEST_SCALE = 1e50
# Rows of bits for every agent up to this size; lists take less on large, sparse networks.
MOST_BYTES_OF_BITS = 1 << 26
# One hop at once: every pair's chances are worked out, whether there is a link or not.
DENSE_FROM = 0.1
FEWEST_IN_BITS, MOST_IN_BITS = 24, 4096
TOP = 16  # best informed agents that are looked at before all others


class Apart(NamedTuple):
    """Samples apart by origin: liars to withstand, spare pairs of groups, what the radius counts."""

    f: int
    spare: int
    counting: int


@dataclass(frozen=True, eq=False)
class ImperfectLayout(MessagePassingLayout):
    """The same policy in an imperfect world: everybody may have to decide, so all are learners."""

    world: World
    plan: Any
    group_of: NDArray[np.int32]
    """Whom an agent listens to; empty: everybody in reach."""
    apart: Apart | None
    """How samples are kept apart by origin, if they are."""

    @classmethod
    def build_on(
        cls,
        ground: Ground,
        policy: RobustPolicy,
        plan: HopPlan,
        *,
        group_of: NDArray[np.int64] | None = None,
        leader_of: NDArray[np.int32] | None = None,
        leader_distance: NDArray[np.int32] | None = None,
        shares_rows: bool = False,
        apart: Apart | None = None,
    ) -> ImperfectLayout:
        """As in a perfect world, but nobody knows before who hears what."""
        network, world, gamma = ground.network, ground.world, ground.gamma or 0
        n_agents, nobody = network.n_agents, np.zeros(0, dtype=np.int32)
        if world.all_present:  # a message moves on every round, and to nobody twice
            gamma = min(gamma, n_agents * ((world.longest_delay or 0) + 1))
        return cls(
            policy=policy,
            network=network,
            mean=MEANS[type(policy.estimator)] if apart is None else BY_ORIGIN,
            gamma=gamma,
            hearing=build_hearing(network, 0, np.arange(n_agents, dtype=np.int32), None),
            heard=np.zeros(n_agents, dtype=np.int64) if plan.near is None else plan.near.sizes,
            leader_of=np.full(n_agents, -1, dtype=np.int32) if leader_of is None else leader_of,
            leader_distance=np.zeros(n_agents, dtype=np.int32)
            if leader_distance is None
            else leader_distance,
            shares_rows=shares_rows,
            has_leaders=leader_of is not None,
            world=world,
            plan=plan,
            group_of=nobody if group_of is None else group_of.astype(np.int32),
            apart=apart,
        )

    @property
    def reach(self) -> NDArray[np.int64]:
        return self.heard

    @cached_property
    def shares_kept(self) -> NDArray[np.float64] | None:
        """Per agent, of how much that it hears it makes use; None: of everything."""
        if getattr(self.policy, "discard", None) is None:
            return None
        return np.array([self.plan.keep(v) for v in range(self.network.n_agents)])

    @property
    def longest(self) -> int:
        """By how many rounds a bundle may be late."""
        return self.world.longest_delay or 0

    @property
    def hold(self) -> int:
        return int(getattr(self.policy, "hold", 1))

    @property
    def slots(self) -> int:
        """For how many rounds what was said must be known."""
        return max(self.gamma + self.longest, self.hold, 1)

    @property
    def rounds_per_block(self) -> int:
        return rounds_for(self.deliveries * self.mean.slow * COST_OF_LOOKING)

    @property
    def divides(self) -> bool:
        return False

    def _trial(self, rules: Rules, room: Room, output: Output, opening: Opening) -> ImperfectTrial:
        conditions = self.world.of_trial(self.network, opening.source, rules.horizon, opening.seed)
        layout, most = self, rules.horizon  # rounds that a message is held or on its way; none comes later
        if self.gamma > most:
            layout = replace(layout, gamma=most)
        if self.hold > most:
            policy: Any = self.policy
            layout = replace(layout, policy=replace(policy, hold=most))
        return ImperfectTrial(layout, rules, room, output, conditions)


class ImperfectTrial(MessagePassingTrial):
    """One trial under its own conditions."""

    layout: ImperfectLayout

    def __init__(
        self, layout: ImperfectLayout, rules: Rules, room: Room, output: Output, conditions: Conditions
    ) -> None:
        super().__init__(layout, rules, room, output)
        self.lag = layout.slots  # rounds whose samples may come late, all at once
        self.conditions = conditions
        links = links_of(layout.network, layout.gamma, conditions)
        self.world = KernelWorld(
            links=links,
            ears=ears_of(layout, conditions),
            falsehood=falsehood_of(conditions, rules.n_arms),
            traffic=no_traffic(layout),
            present=before_round_one(layout),
            hearsay=no_hearsay(rules, layout.network.n_agents),
            nearby=nearby_of(layout, links, rules),
            origins=origins_of(layout, rules),
        )

    def play(self, first: int, draws: NDArray[np.float64], law: Law) -> None:
        conditions, stop = self.conditions, first + len(draws)
        drawn = np.zeros((0, 0))
        if self.world.falsehood.way == DRAWN:
            drawn = conditions.drawn(first, stop)
        weather = Weather(conditions.up(first, stop), conditions.corrupt(first, stop), drawn)
        play_imperfect_block(first, draws, law, weather, self.rules, self.memory, self.world, self.output)

    def finish(self) -> Trial:
        rows = self.rules.n_arms if self.rules.shares_rows else 0
        return finished(self.output, self.output.messages, rows, self.output.agent_rounds)


def ears_of(layout: ImperfectLayout, conditions: Conditions) -> Ears:
    """Whom agents listen to, what they discard, and how patient they are."""
    policy, n_agents = layout.policy, layout.network.n_agents
    shares = layout.shares_kept
    discard = np.zeros(0, dtype=np.uint64)
    if shares is not None:
        begin = np.full(n_agents, key_of(conditions.seed, DISCARD), dtype=np.uint64)
        discard = key_with(begin, np.arange(n_agents, dtype=np.uint64))
    patience = getattr(policy, "patience", None)
    return Ears(
        group=layout.group_of,
        hold=layout.hold,
        discards=shares is not None,
        discard=discard,
        kept=np.array([limit_of(share) for share in ([] if shares is None else shares)], dtype=np.uint64),
        patience=np.inf if patience is None else float(patience),
        reach=layout.heard + 1,
    )


def falsehood_of(conditions: Conditions, n_arms: int) -> Falsehood:
    """What is said that is not true."""
    corruption, lie = conditions.world.corruption, conditions.lie
    way, amount = (TRUE, 0.0) if corruption is None else _way(corruption)
    return Falsehood(
        way=way,
        amount=amount,
        at_receiver=corruption is not None and corruption.at == "receiver",
        rows=corruption is not None and corruption.rows,
        limit=limit_of(0.0 if corruption is None else corruption.rate),
        key=np.uint64(key_of(conditions.seed, CORRUPT)),
        lies=conditions.lies,
        lie_arm=0 if lie is None else lie.arm,
        lie_x=0.0 if lie is None else lie.reward,
        lie_means=np.zeros(n_arms) if lie is None else np.array(lie.means),
        lie_count=CLAIMED_COUNT,
    )


def _way(corruption: Corruption) -> tuple[int, float]:
    if corruption.shift is not None:
        return SHIFTED, float(corruption.shift)
    return (SCALED, float(corruption.scale)) if corruption.scale is not None else (DRAWN, 0.0)


def no_traffic(layout: ImperfectLayout) -> Traffic:
    """Before the first round nothing is on its way."""
    network, slots, gamma = layout.network, layout.slots, layout.gamma
    n_agents, delays, words = network.n_agents, layout.longest + 1, -(-network.n_agents // WORD)
    # Over one link everything comes once: only what is passed on, or held, must be known again.
    remembers = gamma > 1 or layout.hold > 1
    out, seen = (delays + 1, n_agents, max(gamma - 1, 0), words), (n_agents if remembers else 0, slots, words)
    lists, places = remembers and 8 * (math.prod(out) + math.prod(seen)) > MOST_BYTES_OF_BITS, 0
    if lists:
        out, seen = (1, n_agents, 0, words), (1, slots, words)
        near = network.neighbourhoods(min(gamma, slots - 1)).sizes
        # Everything comes once, and what came in the last rounds was said in twice as many.
        places = 1 << int(near.sum() * (2 * slots - 1)).bit_length()
        refuse_too_large(type(layout.policy).__name__, 8 * places)
    most = 1 + slots * int(layout.heard.max(initial=0))
    return Traffic(
        late=np.full((delays, len(network.indices)), LOST, dtype=np.int16),
        out=np.zeros(out, dtype=np.uint64),
        seen=np.zeros(seen, dtype=np.uint64),
        got=np.zeros((slots, words), dtype=np.uint64),
        filled=np.zeros((slots, -(-words // WORD)), dtype=np.uint64),
        begin=np.zeros((slots if lists else 1, n_agents), dtype=np.int64),
        end=np.zeros((slots if lists else 1, n_agents), dtype=np.int64),
        pool=np.zeros((2, places), dtype=np.int32),
        written=np.zeros(1, dtype=np.int64),
        passes=np.zeros(n_agents, dtype=np.int64),
        origin=np.zeros(most, dtype=np.int32),
        when=np.zeros(most, dtype=np.int32),
        arm=np.zeros(most, dtype=np.int32),
        who=np.zeros(most, dtype=np.int32),
        x=np.zeros(most),
        need=np.zeros(most),
        power=np.zeros(most),
    )


def nearby_of(layout: ImperfectLayout, links: Links, rules: Rules) -> Nearby:
    """Bits, where they do."""
    network = layout.network
    n_agents, corruption = network.n_agents, layout.world.corruption
    simple = layout.gamma == 1 and links.delay == AT_ONCE and layout.hold == 1 and layout.shares_kept is None
    heard_alike = corruption is None or corruption.at == "origin"
    dense = FEWEST_IN_BITS <= n_agents <= MOST_IN_BITS and len(network.indices) >= DENSE_FROM * n_agents**2
    if not (simple and heard_alike and dense and rules.kind == RUNNING):
        empty = np.zeros((0, 0), dtype=np.uint64)
        return Nearby(np.zeros((0, 0, 0), dtype=np.uint64), empty, empty, np.zeros(0, dtype=np.int32))
    hearer = np.repeat(np.arange(n_agents), network.degrees)
    listens = np.ones(len(hearer), dtype=np.bool_)
    if len(layout.group_of):
        listens = layout.group_of[hearer] == layout.group_of[network.indices]
    base = in_words(network.indices[listens].astype(np.int64), hearer[listens], n_agents, n_agents)
    keys = np.zeros((n_agents, len(base) * WORD) if links.loses else (0, 0), dtype=np.uint64)
    if links.loses:
        keys[network.indices, hearer] = links.loss
        if links.per_copy:  # of one hop there is one message on a link: its origin is where it begins
            keys = key_with(keys, np.arange(n_agents, dtype=np.uint64)[:, None])
    bits = keys.reshape(len(keys), len(base), WORD)
    return Nearby(bits, base, np.zeros_like(base), np.zeros(min(TOP, n_agents), dtype=np.int32))


def origins_of(layout: ImperfectLayout, rules: Rules) -> Origins:
    """Samples apart by origin, if the policy keeps them so, and rows by origin, if it has any."""
    apart, n_agents = layout.apart or Apart(0, 0, ALL), layout.network.n_agents
    shape = (rules.n_arms, n_agents, n_agents) if layout.apart else (0, 0, 0)
    rows = shape if rules.shares_rows else (0, 0, 0)
    refuse_too_large(type(layout.policy).__name__, 24 * math.prod(shape) + 16 * math.prod(rows))
    most = 2 * apart.f + 1 + 2 * apart.spare
    return Origins(
        f=apart.f,
        most=most,
        counting=apart.counting,
        root=math.pow(rules.u, 1.0 / rules.p),
        n=np.zeros(shape),
        total=np.zeros(shape),
        order=np.zeros(shape, dtype=np.int32),
        place=np.zeros(shape, dtype=np.int32),
        heard=np.zeros(shape[:2], dtype=np.int32),
        group_n=np.zeros(most),
        group_mean=np.zeros(most),
        newest=np.zeros(rows[1:], dtype=np.int32),
        row_mean=np.zeros(rows),
        row_n=np.zeros(rows),
        said=np.zeros(n_agents),
    )


def before_round_one(layout: ImperfectLayout) -> Present:
    """Nobody has pulled or heard anything."""
    n_agents = layout.network.n_agents
    return Present(
        arm=np.zeros(n_agents, dtype=np.int32),
        x=np.zeros(n_agents),
        need=np.zeros(n_agents),
        power=np.zeros(n_agents),
        copies=np.zeros(n_agents, dtype=np.bool_),
        heard_round=np.zeros(n_agents, dtype=np.int32),
        heard_arm=np.zeros(n_agents, dtype=np.int32),
        pulled=np.zeros(1, dtype=np.int64),
        drawn=np.zeros((layout.slots, n_agents)),
    )


def no_hearsay(rules: Rules, n_agents: int) -> Hearsay:
    """No row was heard of."""
    shape = (rules.n_arms, n_agents) if rules.shares_rows else (1, 1)
    return Hearsay(
        n=np.zeros(shape),
        mean=np.zeros(shape),
        origin=np.full(shape, -1, dtype=np.int32),
        when=np.zeros(shape, dtype=np.int32),
    )
