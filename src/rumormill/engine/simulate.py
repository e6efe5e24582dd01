"""One door to both engines: `simulate` plays one policy, `comparison.compare` several on the same rewards.

Notices on standard error say how far a simulation is, and that kernels are compiled. In notebooks standard
error is shown below the cell, and a carriage return rewrites the line there as well.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TextIO

import numpy as np

from rumormill import catalogue
from rumormill.arms import Replay, RewardSource
from rumormill.engine.reference import constraint_of
from rumormill.engine.result import Result, Trial, needs_actions, resolve_checkpoints, with_rewards
from rumormill.engine.trial import Contender, Engine, play_trial, prepare, require_memory, require_network
from rumormill.engine.workers import Threads, Tick, no_tick
from rumormill.errors import InputError
from rumormill.graphs import Network, Topology
from rumormill.plotting.rendering import in_notebook
from rumormill.policies import MixedGroup, Prior, policy_name
from rumormill.protocol import Byzantine, Channel, Churn, Corruption, PerfectChannel, World
from rumormill.seeds import RandomSource, Role, root_seed, stream_seed
from rumormill.system_memory import refuse_impossible
from rumormill.text import duration, plural, shown
from rumormill.validate import named_arguments, truth, whole

OnProgress = Callable[[int, int], None]
Table = Mapping[str, Any]


@named_arguments
def simulate(
    bandit: RewardSource,
    network: Network | Topology | str | Table,
    policy: Any,
    *,
    horizon: int,
    trials: int = 1,
    rng: RandomSource,
    engine: Engine = "auto",
    actions: bool = False,
    rewards: bool = False,
    checkpoints: int | Sequence[int] | None = None,
    channel: Channel | str | Table | None = None,
    absences: Sequence[tuple[int, int, int]] = (),
    outages: Sequence[tuple[int, int, int, int]] = (),
    churn: Churn | None = None,
    corruption: Corruption | None = None,
    byzantine: Byzantine | None = None,
    prior: Prior | None = None,
    offsets: Sequence[float] | None = None,
    scales: Sequence[float] | None = None,
    allowed: Any = None,
    k: int = 1,
    propensities: bool = False,
    progress: OnProgress | bool | None = None,
    workers: int | None = None,
    block: int | None = None,
) -> Result:
    """Play `trials` independent trials of `horizon` rounds with one policy.

    The rewards of a trial depend on `rng` and the number of the trial only: two policies simulated with
    the same `rng` see the same rewards. `engine`, `workers` and `block` change no result.

    Policy, network and channel are objects, names of the catalogue ("kmp", "my_module:Greedy") or tables as
    in a spec ({"type": "kmp", "gamma": 1}). A random network is drawn once, from `rng`.

    Parameters
    ----------
    bandit : Bandit, Replay, or arms that differ between agents or change (Clusters, Piecewise, …)
        The reward source.
    network : Network, Topology, str or mapping
        The communication graph; its nodes are the agents.
    policy : Policy, class of agents, str or mapping
        The policy of every agent; or {agents: policy, ...: policy}, where agents are numbers, ranges or
        tuples of them and `...` stands for all others (on the reference engine, without faults).
    horizon : int
        Rounds of a trial, at least 1.
    trials : int, default 1
        Number of independent trials; a Replay has one.
    rng : int, numpy SeedSequence or numpy Generator
        The seed of all randomness.
    engine : "auto", "fast" or "reference", default "auto"
        "fast" is compiled; "auto" falls back to "reference" with a SlowEngineNotice.
    actions : bool, default False
        Keep every action in `Result.actions`.
    rewards : bool, default False
        Keep every reward in `Result.rewards`, in the unit of the bandit.
    checkpoints : int or increasing rounds, default 200
        The number of rounds at which regret is recorded, ⌈i·T/n⌉; or the rounds themselves.
    channel : Channel, str or mapping, default PerfectChannel
        Loss and delay of messages.
    absences : sequence of (agent, first round, last round)
        Scheduled absences. Absent agents do not pull: their action is -1, without regret.
    outages : sequence of (agent, agent, first round, last round)
        Scheduled link outages.
    churn : Churn, optional
        Random absences.
    corruption : Corruption, optional
        Random corruption of rewards in messages.
    byzantine : Byzantine, optional
        Agents that send false messages; they do not pull.
    prior : Prior, optional
        What the agents know of the arms before round 1.
    offsets : one number per agent, in the unit of the bandit, optional
        What agents take off their own outcomes before they learn from them and send them, so that those of
        a far client compare with others. Regret and recorded rewards stay as they are.
    scales : one number above 0 per agent, optional
        What agents divide their outcomes (less the offset) by, in the same way.
    allowed : bool array, (arms), (agents, arms) or (rounds, agents, arms), optional
        Which arms an agent may pull; by default all.
    k : int, default 1
        Arms that an agent tries in a round, the best of its ranking, and observes; `Result.actions` has a
        last axis of this length then.
    propensities : bool, default False
        Record the probability of every choice in `Result.propensities`, for off-policy evaluation
        (`rm.evaluate`); on the reference engine.
    progress : bool or callable (rounds done, rounds in all), default False
        True: a line on standard error, in notebooks too. A callable is called every few milliseconds, over
        all trials.
    workers : int, default all cores
        Threads; with fewer trials than threads, several play one trial.
    block : int, optional
        Rounds per call of a kernel.

    Returns
    -------
    Result
        Regret, messages and bytes at the checkpoints of every trial.

    Raises
    ------
    InputError
        An argument is not allowed, or the simulation does not fit into memory.

    Examples
    --------
    >>> import rumormill as rm
    >>> bandit = rm.Bandit([rm.AlphaStable(alpha=1.8, loc=0.0), rm.AlphaStable(alpha=1.8, loc=1.0)])
    >>> result = rm.simulate(bandit, rm.Network.ring(5), rm.KMPUCB(gamma=1), horizon=218, rng=1)
    >>> result.regret.shape, int(result.checkpoints[-1])
    ((1, 200), 218)

    References
    ----------
    Dubey and Pentland, "Cooperative Multi-Agent Bandits with Heavy Tails", ICML 2020.
    """
    world = world_of(channel, absences, outages, churn, corruption, byzantine)
    size = horizon, trials, rng, engine, actions, rewards, checkpoints, world, (prior, offsets, scales)
    more = (allowed, k, propensities), progress, workers, block
    return play_policies(bandit, network, [policy], *size, *more)[0]


def world_of(
    channel: Channel | str | Table | None,
    absences: Sequence[tuple[int, int, int]],
    outages: Sequence[tuple[int, int, int, int]],
    churn: Churn | None,
    corruption: Corruption | None,
    byzantine: Byzantine | None,
) -> World:
    """The fault model; a channel may be given by name."""
    made = catalogue.given("channel", channel)
    return World(
        channel=PerfectChannel() if made is None else made,
        absences=absences,
        outages=outages,
        churn=churn,
        corruption=corruption,
        byzantine=byzantine,
    )


def policy_of(given: Any, network: Network) -> Any:
    """The policy of what a caller gave; a mapping of agents to policies is a mixed group."""
    if isinstance(given, Mapping) and not all(isinstance(key, str) for key in given):
        members = {key: catalogue.given("policy", policy) for key, policy in given.items()}
        return MixedGroup.of(members, network.n_agents)
    return catalogue.given("policy", given)


def play_policies(
    bandit: RewardSource,
    network: Network | Topology | str | Table,
    policies: Sequence[Any],
    horizon: int,
    trials: int,
    rng: RandomSource,
    engine: Engine,
    actions: bool,
    rewards: bool,
    checkpoints: int | Sequence[int] | None,
    world: World,
    born: tuple[Prior | None, Any, Any],
    limits: tuple[Any, int, bool],
    progress: OnProgress | bool | None,
    workers: int | None,
    block: int | None,
) -> list[Result]:
    """Play all policies on the same network and rewards; each result is the same as if played alone."""
    horizon, trials = whole("horizon", horizon), whole("trials", trials)
    _require_source(bandit, trials, limits[1])
    block = None if block is None else whole("block", block)
    cores = (os.cpu_count() or 1) if workers is None else whole("workers", workers)
    jobs, threads = min(cores, trials), max(1, cores // trials)
    root = root_seed(rng)
    made = _built(network, root)
    require_network(made)
    constraint = constraint_of(*limits, bandit.n_arms, made.n_agents, horizon)
    given: Any = dict(zip(("prior", "offsets", "scales"), born, strict=True))
    given |= {"engine": engine, "world": world, "constraint": constraint}
    contenders = [prepare(policy_of(p, made), made, bandit.n_arms, **given) for p in policies]
    keep = truth("actions", actions) or truth("rewards", rewards)
    refuse_impossible(made.n_agents, horizon, trials, keep_actions=keep or needs_actions(bandit))
    marks = resolve_checkpoints(checkpoints, horizon)
    require_memory(contenders, bandit, horizon, len(marks), at_once=jobs, kept=trials)
    total = len(contenders) * trials * horizon
    count = _RoundCounter(progress_line(sys.stderr) if progress is True else progress or None, total)

    def play(members: Sequence[Contender], trial: int, tick: Tick) -> list[Trial]:
        def on_rounds(rounds: int) -> None:
            tick(0.0)
            count.add(rounds)

        return play_trial(
            members,
            bandit,
            horizon,
            stream_seed(root, trial),
            marks,
            keep_actions=keep,
            on_rounds=on_rounds,
            block=block,
            threads=threads,
        )

    with compilation_announced([policy_name(each.policy) for each in contenders if each.layout is not None]):
        played = _in_parallel(contenders, trials, jobs, play)
    engines = [contender.engine for contender in contenders]
    told = zip(policies, engines, played, strict=True)
    results = [Result.gather(policy, name, marks, outcomes) for policy, name, outcomes in told]
    seeds = [stream_seed(root, trial) for trial in range(trials)]
    return [with_rewards(each, bandit, seeds, actions) for each in results] if rewards else results


def _require_source(bandit: Any, trials: int, k: int) -> None:
    if isinstance(bandit, type) or not isinstance(bandit, RewardSource):
        raise InputError(f"bandit is a {type(bandit).__name__}: give rm.Bandit([...]) or rm.Replay(table)")
    if isinstance(bandit, Replay) and trials != 1:
        raise InputError(f"trials = {trials} of a Replay would all be the same: trials=1")
    if k != 1 and needs_actions(bandit):
        raise InputError(f"k = {shown(k)} needs arms that do not differ between agents or rounds: k=1")


def _built(network: Network | Topology | str | Table, root: np.random.SeedSequence) -> Any:
    """The network; a random one is drawn from the root seed."""
    made = catalogue.given("network", network)
    if callable(getattr(made, "build", None)):
        made = made.build(np.random.default_rng(stream_seed(root, Role.NETWORK)))
    return made


def _in_parallel(
    contenders: Sequence[Contender],
    trials: int,
    jobs: int,
    play: Callable[[Sequence[Contender], int, Tick], list[Trial]],
) -> list[list[Trial]]:
    """All trials of every contender; threads play compiled ones only, since Python code shares one lock."""
    found: dict[int, dict[int, Trial]] = {i: {} for i in range(len(contenders))}
    for engine, at_once in (("fast", jobs), ("reference", 1)):
        numbers = [i for i, contender in enumerate(contenders) if contender.engine == engine]
        members = [contenders[i] for i in numbers]

        def keep(trial: int, outcomes: list[Trial], numbers: Sequence[int] = numbers) -> None:
            for i, outcome in zip(numbers, outcomes, strict=True):
                found[i][trial] = outcome

        if members and at_once == 1:
            for trial in range(trials):
                keep(trial, play(members, trial, no_tick))
        elif members:
            Threads(at_once).run(range(trials), partial(play, members), keep)
    return [[found[i][trial] for trial in range(trials)] for i in range(len(contenders))]


class _RoundCounter:
    """Counts rounds for the progress callback."""

    def __init__(self, progress: OnProgress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0
        self._lock = threading.Lock()

    def add(self, rounds: int) -> None:
        with self._lock:
            self._done += rounds
            if self._progress is not None:
                self._progress(self._done, self._total)


EVERY_S = 0.2


def progress_line(stream: TextIO, clock: Callable[[], float] = time.monotonic) -> Callable[[int, int], None]:
    """A progress callback that rewrites one line: the share done, and the time left at this pace."""
    begun = shown = clock()

    def show(done: int, total: int) -> None:
        nonlocal shown
        now = clock()
        if now - shown < EVERY_S and done < total:
            return
        shown = now
        left = (now - begun) / max(done, 1) * (total - done)
        state = f"{duration(left)} left" if done < total else f"in {duration(now - begun)}"
        stream.write(f"\r{done / total:4.0%} of {plural(total, 'round')}, {state}".ljust(60))
        stream.write("\n" if done >= total else "")
        stream.flush()

    return show


def is_interactive() -> bool:
    """Whether standard error is seen at once: in a terminal or a notebook."""
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


@contextmanager
def compilation_announced(policies: Sequence[str]) -> Iterator[None]:
    """In a terminal or a notebook, say it when kernels are compiled inside: that takes a while."""
    if not policies or not is_interactive():
        yield
        return
    from rumormill.engine.compiled import COMPILING

    def say() -> None:
        COMPILING.on_begin = None
        names = ", ".join(dict.fromkeys(policies))
        print(f"compiling kernels for {names}, once on this machine: 8 to 20 s", file=sys.stderr, flush=True)

    if COMPILING.on_begin is None:
        COMPILING.on_begin = say
    try:
        yield
    finally:
        if COMPILING.on_begin is say:
            COMPILING.on_begin = None
