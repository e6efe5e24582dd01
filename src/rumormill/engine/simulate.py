"""One door to both engines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from rumormill.arms import Replay, RewardSource
from rumormill.engine import reference
from rumormill.engine.result import Result, Trial, resolve_checkpoints
from rumormill.engine.seeds import RandomSource, Role, root_seed, stream_seed
from rumormill.errors import ContractError, InputError
from rumormill.graphs import Network
from rumormill.policies import Agent, OwnPolicy, Policy, Problem, Seat
from rumormill.protocol import Channel, PerfectChannel

Engine = Literal["auto", "reference", "fast"]
Progress = Callable[[int, int], None]


def simulate(
    bandit: RewardSource,
    network: Network,
    policy: Policy | OwnPolicy,
    *,
    horizon: int,
    trials: int = 1,
    rng: RandomSource,
    engine: Engine = "auto",
    actions: bool = False,
    checkpoints: int | Sequence[int] | None = None,
    channel: Callable[[], Channel] | None = None,
    progress: Progress | None = None,
) -> Result:
    """Play `trials` independent trials of `horizon` rounds.

    The rewards of a trial depend on `rng` and the number of the trial only: two policies simulated with
    the same `rng` see the very same rewards. `progress(done, total)` is told about rounds, over all
    trials. `channel` makes the channel of each trial (perfect by default).
    """
    horizon, trials = _count("horizon", horizon), _count("trials", trials)
    if engine not in ("auto", "reference", "fast"):
        raise InputError(f'engine = {engine!r} is not allowed: "auto", "reference" or "fast"')
    if isinstance(bandit, Replay) and trials != 1:
        raise InputError(f"trials = {trials} of a Replay would all be the same: trials=1")
    if not callable(policy) and not isinstance(policy, Policy):
        raise InputError(f"policy = {policy!r} is neither a built-in policy nor a class that makes agents")
    problem = Problem(bandit, network, horizon)
    marks = resolve_checkpoints(checkpoints, horizon)
    root = root_seed(rng)

    plan = policy.plan(network) if isinstance(policy, Policy) else None
    played = 0

    def on_rounds(rounds: int) -> None:
        nonlocal played
        played += rounds
        if progress is not None:
            progress(played, trials * horizon)

    done: list[Trial] = []
    for trial in range(trials):
        agents = make_agents(policy, problem, plan, stream_seed(root, trial, Role.AGENTS))
        stream = bandit.stream(stream_seed(root, trial, Role.REWARDS), network.n_agents, horizon)
        wire = channel() if channel is not None else PerfectChannel()
        done.append(
            reference.play(problem, agents, stream, wire, marks, keep_actions=actions, on_rounds=on_rounds)
        )
    return Result.gather(policy, "reference", marks, done)


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


def _count(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} = {value!r} is not allowed: a whole number >= 1")
    return int(value)
