"""One trial of one or several policies on the very same rewards."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.arms import RewardSource
from rumormill.engine import fast, reference
from rumormill.engine.result import Trial
from rumormill.errors import ContractError, InputError, SlowEngineNotice
from rumormill.graphs import Network
from rumormill.policies import Agent, OwnPolicy, Policy, Problem, Seat
from rumormill.protocol import Channel, PerfectChannel
from rumormill.seeds import Role, stream_seed

Engine = Literal["auto", "reference", "fast"]
OnRounds = Callable[[int], None]

# Rewards in hand at a time: a quarter of a million draws, in multiples of what is drawn at once.
DRAWS_PER_BLOCK = 1 << 18
DRAW_ROUNDS = 64


@dataclass(frozen=True)
class Contender:
    """A policy made ready for a network: everything that all its trials share."""

    policy: Policy | OwnPolicy
    network: Network
    plan: Any
    prepared: fast.Prepared | None
    """What the compiled engine needs; None for the reference engine."""
    channel: Callable[[], Channel]

    @property
    def engine(self) -> str:
        return "reference" if self.prepared is None else "fast"


def prepare(
    policy: Policy | OwnPolicy,
    network: Network,
    n_arms: int,
    *,
    engine: Engine = "auto",
    channel: Callable[[], Channel] | None = None,
) -> Contender:
    """Work out cliques, leaders or weights once, and pick the engine."""
    if engine not in ("auto", "reference", "fast"):
        raise InputError(f'engine = {engine!r} is not allowed: "auto", "reference" or "fast"')
    if _is_policy_class(policy):
        name = getattr(policy, "__name__", policy)
        raise InputError(f"policy = {name} is a class: give rm.{name}(...)")
    if not callable(policy) and not isinstance(policy, Policy):
        raise InputError(f"policy = {policy!r} is neither a built-in policy nor a class that makes agents")
    if not isinstance(network, Network):
        raise InputError(f"network is a {type(network).__name__}: give rm.Network(graph)")
    if channel is not None and not callable(channel):
        raise InputError(f"channel = {channel!r} must make channels: give the class, not an instance")
    prepared = None
    plan = policy.plan(network) if isinstance(policy, Policy) else None
    if engine != "reference":
        reason = fast.why_not(policy) if channel is None else "it knows the perfect channel only"
        if reason is None:
            prepared = fast.Prepared(policy, network, plan, n_arms)  # type: ignore[arg-type]
        elif engine == "fast":
            raise InputError(f'engine="fast" cannot run this: {reason}; take engine="auto"')
        else:
            name = getattr(policy, "__name__", type(policy).__name__)
            warnings.warn(f"{name} runs on the reference engine: {reason}", SlowEngineNotice, stacklevel=3)
    return Contender(policy, network, plan, prepared, channel or PerfectChannel)


def _is_policy_class(policy: object) -> bool:
    """Brackets forgotten: rm.KMPUCB instead of rm.KMPUCB(...)."""
    return isinstance(policy, type) and issubclass(policy, Policy)


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
) -> list[Trial]:
    """Play all contenders on the rewards of one seed; the outcome of each is as if it were alone.

    `on_rounds` hears how many rounds of a contender were just played, every few milliseconds; what it
    raises ends the trial. `block` is the number of rounds played between two such moments.
    """
    trials: dict[int, Trial] = {}
    compiled = {i: c.prepared for i, c in enumerate(contenders) if c.prepared is not None}
    if compiled:
        network = contenders[0].network
        problem = Problem(source, network, horizon)
        runs = {i: fast.Run(prepared, problem, marks, keep_actions) for i, prepared in compiled.items()}
        rewards = source.stream(stream_seed(seed, Role.REWARDS), network.n_agents, horizon)
        columns = network.n_agents * (1 if rewards.shared else source.n_arms)
        hold = DRAW_ROUNDS * max(1, min(4, DRAWS_PER_BLOCK // (columns * DRAW_ROUNDS)))
        for start in range(0, horizon, hold):
            draws = rewards.block(start, min(start + hold, horizon))
            for i, run in runs.items():
                step = block or fast.rounds_per_block(compiled[i])
                for row in range(0, len(draws), step):
                    piece = draws[row : row + step]
                    run.advance(start + row + 1, piece, rewards)
                    on_rounds(len(piece))
        trials.update({i: run.finish() for i, run in runs.items()})
    for i, contender in enumerate(contenders):
        if contender.prepared is None:
            problem = Problem(source, contender.network, horizon)
            trials[i] = reference.play(
                problem,
                make_agents(contender.policy, problem, contender.plan, stream_seed(seed, Role.AGENTS)),
                source.stream(stream_seed(seed, Role.REWARDS), problem.n_agents, horizon),
                contender.channel(),
                marks,
                keep_actions=keep_actions,
                on_rounds=on_rounds,
            )
    return [trials[i] for i in range(len(contenders))]


def make_agents(
    policy: Policy | OwnPolicy, problem: Problem, plan: Any, seed: np.random.SeedSequence
) -> list[Agent]:
    """One agent per vertex; each agent of a user's own policy gets a generator of its own."""
    if isinstance(policy, Policy):
        return policy.agents(problem, plan)
    agents = [
        policy(Seat(v, problem, np.random.default_rng(stream_seed(seed, v)))) for v in range(problem.n_agents)
    ]
    for agent in agents:
        missing = [name for name in ("choose", "observe", "outgoing", "receive") if not hasattr(agent, name)]
        if missing:
            raise ContractError(f"{type(agent).__name__} is not an agent: it has no {', '.join(missing)}")
    return agents
