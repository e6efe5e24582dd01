"""One trial of one or several policies on the same rewards."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource, RewardStream
from rumormill.arms.bandit import DRAW_ROUNDS
from rumormill.arms.base import sign_of
from rumormill.arms.varying import levelled_stream
from rumormill.engine import reference
from rumormill.engine.faults import ImperfectGame
from rumormill.engine.reference import NO_CONSTRAINT, Constraint, Game, seats
from rumormill.engine.result import Opening, Trial, needs_actions, with_regret
from rumormill.engine.workers import ThreadPool
from rumormill.errors import InputError, SlowEngineNotice
from rumormill.graphs import Network
from rumormill.policies import Plan, Policy, Prior, as_policy, policy_name, seated
from rumormill.protocol import Carrier, Conditions, World
from rumormill.seeds import Role, stream_seed
from rumormill.system_memory import refuse_without_memory, trial_bytes
from rumormill.validate import is_whole, level_scale, one_of, refused, reward

if TYPE_CHECKING:
    from rumormill.engine.compiled import Layout

Engine = Literal["auto", "reference", "fast"]
OnRounds = Callable[[int], None]

# Rewards held at a time: a quarter of a million draws, in multiples of DRAW_ROUNDS.
DRAWS_PER_BLOCK = 1 << 18


@dataclass(frozen=True)
class Contender:
    """A policy prepared for a network: what all its trials share."""

    policy: Policy
    network: Network
    plan: Plan
    world: World
    prior: Prior | None
    layout: Layout | None
    """What the compiled engine needs; None for the reference engine."""
    constraint: Constraint = NO_CONSTRAINT
    levels: tuple[tuple[float, float], ...] | None = None
    """Offset and scale of every agent: what it takes off its outcomes, and divides them by."""

    @property
    def engine(self) -> str:
        return "reference" if self.layout is None else "fast"

    @property
    def gamma(self) -> int | None:
        """How many hops messages travel; None where the policy does not flood."""
        return hop_budget(self.policy, self.plan, self.world)

    @property
    def deliveries(self) -> int:
        """About how many messages reach an agent in a round: the unit of progress."""
        return int(self.network.degrees.sum()) if self.layout is None else self.layout.deliveries

    def rewards(self, source: RewardSource, seed: np.random.SeedSequence, horizon: int) -> RewardStream:
        """The rewards that the agents of a trial take in."""
        stream = source.stream(stream_seed(seed, Role.REWARDS), self.network.n_agents, horizon)
        if self.levels is None:
            return stream
        sign = sign_of(getattr(source, "objective", "maximise"))
        return levelled_stream(stream, [(sign * offset, scale) for offset, scale in self.levels], horizon)


def hop_budget(policy: Policy, plan: Plan, world: World) -> int | None:
    """The hop budget of messages; None where the policy does not flood.

    Plans cut it to the diameter. With loss, delay or absences messages take detours, and the budget is that
    of the policy.
    """
    reach: int | None = getattr(plan, "gamma", None)
    given: Any = getattr(policy, "gamma", None)
    direct = world.messages_arrive and world.all_present
    return int(given) if reach is not None and is_whole(given) and not direct else reach


def require_network(network: object) -> None:
    """InputError for what is no network, a networkx graph for example."""
    if not isinstance(network, Network):
        raise InputError(f"network is a {type(network).__name__}: give rm.Network(graph)")


def prepare(
    policy: Any,
    network: Network,
    n_arms: int,
    *,
    engine: Engine = "auto",
    world: World | None = None,
    plan: Plan | None = None,
    prior: Prior | None = None,
    constraint: Constraint = NO_CONSTRAINT,
    offsets: Any = None,
    scales: Any = None,
    quiet: bool = False,
) -> Contender:
    """Compute the plan (cliques, leaders, weights) unless it is given, and select the engine.

    `quiet`: no SlowEngineNotice; the caller reports it.
    """
    one_of("engine", engine, ("auto", "reference", "fast"))
    policy = as_policy(policy)
    require_network(network)
    world = World() if world is None else world
    policy.require_supported(world)
    if prior is not None:
        if not isinstance(prior, Prior):
            raise refused("prior", prior, "rm.Prior(mean=[...], n=[...]), or None")
        policy.require_prior(prior, n_arms, network.n_agents)
    plan = _plan_of(policy, network) if plan is None else plan
    if world.liars and getattr(plan, "gamma", None) is None:
        raise InputError(
            f"byzantine does not go with {policy_name(policy)}: adversaries relay messages, and only "
            "message-passing policies have a hop budget"
        )
    layout = None
    if engine != "reference":
        from rumormill.engine import compiled

        reason = compiled.unsupported_reason(policy, world, prior, constraint)
        if reason is None:
            gamma = hop_budget(policy, plan, world)
            inputs = compiled.LayoutInputs(network, n_arms, world, gamma, prior, constraint)
            layout = compiled.compile_layout(policy, plan, inputs)
        elif engine == "fast":
            raise InputError(f'engine="fast" cannot run this: {reason}; take engine="auto"')
        elif not quiet:
            notice = f"{policy_name(policy)} runs on the reference engine: {reason}"
            warnings.warn(notice, SlowEngineNotice, stacklevel=5)  # the line that calls simulate
    taken_off = _per_agent("offsets", offsets, network.n_agents, 0.0, reward)
    divided_by = _per_agent("scales", scales, network.n_agents, 1.0, level_scale)
    levels = None if offsets is None and scales is None else tuple(zip(taken_off, divided_by, strict=True))
    return Contender(policy, network, plan, world, prior, layout, constraint, levels)


def _per_agent(
    name: str, given: Any, n_agents: int, usual: float, checked: Callable[[str, Any], float]
) -> list[float]:
    """An argument of `simulate` that has one number per agent."""
    values = given.tolist() if isinstance(given, np.ndarray) else given
    values = [usual] * n_agents if given is None else values
    if not isinstance(values, Sequence) or isinstance(values, str) or len(values) != n_agents:
        raise refused(name, given, f"a list of {n_agents} numbers, one per agent")
    return [checked(f"{name}[{v}]", value) for v, value in enumerate(values)]


# Of networks that are in use: a second comparison on one of them starts at once.
_PLANS: WeakKeyDictionary[Network, dict[Hashable, Plan]] = WeakKeyDictionary()


def _plan_of(policy: Policy, network: Network) -> Plan:
    """The plan of a policy on a network, computed once for policies with equal keys."""
    key = policy.plan_key()
    try:
        known = _PLANS.setdefault(network, {})
        if key not in known:
            known[key] = policy.plan(network)
    except TypeError:  # an own policy with a list among its parameters has no hash
        return policy.plan(network)
    return known[key]


def require_memory(
    contenders: Sequence[Contender],
    source: RewardSource,
    horizon: int,
    n_marks: int,
    *,
    at_once: int = 1,
    kept: int = 1,
) -> None:
    """Refuse, before it starts, a simulation that does not fit: trials at once, and outcomes kept."""
    needed, agents = 0.0, 0
    for contender in contenders:
        if contender.layout is None:
            continue
        agents = contender.network.n_agents
        shared = contender.rewards(source, np.random.SeedSequence(0), horizon).shared
        needed += at_once * trial_bytes(
            agents,
            source.n_arms,
            pairs=contender.layout.deliveries,
            slots=min(contender.gamma or 0, horizon) + 1,
            shares_rows=contender.policy.shares_rows,
            marks=n_marks,
            columns=1 if shared else source.n_arms,
        )
        needed += 8.0 * n_marks * agents * (2 * kept if kept > 1 else 0)
    refuse_without_memory(
        needed, f"a game of {agents:,} agents, {source.n_arms:,} arms and {n_marks} checkpoints"
    )


def play_trial(
    contenders: Sequence[Contender],
    source: RewardSource,
    horizon: int,
    seed: np.random.SeedSequence,
    marks: NDArray[np.int64],
    *,
    keep_actions: bool = False,
    on_rounds: OnRounds = lambda rounds: None,
    block: int | None = None,
    threads: int = 1,
) -> list[Trial]:
    """Play all contenders on the rewards of one seed; the outcome of each is as if it were alone.

    `on_rounds` is called every few milliseconds with the rounds of a contender just played; what it raises
    ends the trial. `block` is the number of rounds between two calls. With several `threads` rewards are
    drawn ahead, and a partitioned game is played by all of them.
    """
    wanted, keep_actions = keep_actions, keep_actions or needs_actions(source)
    trials: dict[int, Trial] = {}
    # Compiled contenders on networks of the same size, with the same levels, share the draws.
    together: dict[tuple[int, Hashable], list[int]] = {}
    for i, contender in enumerate(contenders):
        if contender.layout is None:
            game = reference_game(contender, source, horizon, seed)
            size = contender.network.n_agents, source.gaps, horizon, marks
            trials[i] = reference.play(game, *size, keep_actions=keep_actions, on_rounds=on_rounds)
        else:
            together.setdefault((contender.network.n_agents, contender.levels), []).append(i)
    with ThreadPool(threads) if threads > 1 and together else nullcontext() as thread_pool:
        for (n_agents, _), members in together.items():
            rewards = contenders[members[0]].rewards(source, seed, horizon)
            layouts = {i: layout for i in members if (layout := contenders[i].layout) is not None}
            opening = Opening(source, horizon, marks, keep_actions, seed, thread_pool)
            runs = {i: layout.start(opening) for i, layout in layouts.items()}
            columns = n_agents * (1 if rewards.shared else source.n_arms)
            hold = DRAW_ROUNDS * max(1, min(4, DRAWS_PER_BLOCK // (columns * DRAW_ROUNDS)))
            for start, draws in blocks(rewards, horizon, hold, thread_pool):
                for i, run in runs.items():
                    step = block or layouts[i].rounds_per_block
                    for row in range(0, len(draws), step):
                        piece = draws[row : row + step]
                        run.advance(start + row + 1, piece, rewards)
                        on_rounds(len(piece))
            trials.update({i: run.finish() for i, run in runs.items()})
    return [with_regret(trials[i], source, marks, wanted) for i in range(len(contenders))]


def blocks(
    rewards: RewardStream, horizon: int, hold: int, thread_pool: ThreadPool | None
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """All draws in blocks, each with the number of rounds before it; a thread pool draws one block ahead."""

    def drawn(start: int) -> NDArray[np.float64]:
        return rewards.block(start, min(start + hold, horizon))

    if thread_pool is None:
        yield from ((start, drawn(start)) for start in range(0, horizon, hold))
        return
    ahead = thread_pool.begin(partial(drawn, 0))
    for start in range(0, horizon, hold):
        draws = ahead.result()
        if start + hold < horizon:
            ahead = thread_pool.begin(partial(drawn, start + hold))
        yield start, draws


def reference_game(
    contender: Contender,
    source: RewardSource,
    horizon: int,
    seed: np.random.SeedSequence,
    carry: Callable[[Conditions], Carrier] = Conditions.carrier,
) -> Game:
    """The game of one trial on the reference engine; `carry` opens the carrier of its messages."""
    network, policy, plan = contender.network, contender.policy, contender.plan
    conditions = contender.world.of_trial(network, source, horizon, seed)
    rewards = contender.rewards(source, seed, horizon)
    given = policy, plan, source, network, horizon, stream_seed(seed, Role.AGENTS)
    gamma, prior, k = contender.gamma, contender.prior, contender.constraint.k
    places = seats(*given, gamma=gamma, conditions=conditions, prior=prior, tries=k)
    agents = [seated(policy, seat) for seat in places]
    carrier = carry(conditions)
    game = Game(agents, network, rewards, carrier, horizon)
    if not conditions.even:
        rows = policy.shares_rows
        game = ImperfectGame(agents, conditions, rewards, carrier, gamma=gamma, shares_rows=rows, tries=k)
    game.constraint = contender.constraint
    return game
