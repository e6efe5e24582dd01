"""One door to both engines."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from rumormill import catalogue
from rumormill.arms import Replay, RewardSource
from rumormill.engine.result import Result, Trial, needs_actions, resolve_checkpoints
from rumormill.engine.trial import Engine, play_trial, prepare, require_memory
from rumormill.engine.workers import Threads, Tick, no_tick
from rumormill.errors import InputError
from rumormill.graphs import Network, Topology
from rumormill.protocol import Byzantine, Channel, Churn, Corruption, PerfectChannel, World
from rumormill.seeds import RandomSource, Role, root_seed, stream_seed
from rumormill.system_memory import refuse_impossible
from rumormill.validate import named_arguments, whole

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
    checkpoints: int | Sequence[int] | None = None,
    channel: Channel | str | Table | None = None,
    absences: Sequence[tuple[int, int, int]] = (),
    outages: Sequence[tuple[int, int, int, int]] = (),
    churn: Churn | None = None,
    corruption: Corruption | None = None,
    byzantine: Byzantine | None = None,
    progress: OnProgress | None = None,
    workers: int | None = None,
    block: int | None = None,
) -> Result:
    """Play `trials` independent trials of `horizon` rounds.

    The rewards of a trial depend on `rng` and the number of the trial only: two policies simulated with
    the same `rng` see the very same rewards, and neither `workers` nor `block` changes any result.

    Policy, network and channel are objects, or what a spec would say: a name ("kmp", "my_module:Greedy") or
    a table {"type": "kmp", "gamma": 1}. A network that has to be drawn is drawn once, from `rng`.

    - `bandit`: the arms: `rm.Bandit`, or arms that differ or change, or `rm.Replay` of a log.
    - `network`: who is linked to whom.
    - `policy`: what every agent does.
    - `horizon`: how many rounds a trial has.
    - `trials`: how many trials.
    - `rng`: a seed, a generator or a seed sequence: all chance comes from it.
    - `engine`: "auto" (compiled where it can be), "fast" (compiled) or "reference".
    - `actions`: keep every action of every agent in the result.
    - `checkpoints`: how many rounds to keep regret at (200), or which ones.
    - `channel`: what happens to messages on their way; nothing, if left out.
    - `absences`: (agent, first round, last round) of agents that are away.
    - `outages`: (agent, agent, first round, last round) of links that are down.
    - `churn`: how long agents stay and are away; nobody leaves, if left out.
    - `corruption`: what falsifies rewards in messages.
    - `byzantine`: who lies, and how.
    - `progress`: a function that is told (rounds done, rounds in all), over all trials.
    - `workers`: threads; all cores if left out. With fewer trials than threads, several play one trial.
    - `block`: how many rounds are played at a time; it only changes the speed.

    Whoever is away or lies does not pull (its action is -1) and regrets nothing; `Result.agent_rounds` counts
    the pulls.
    """
    horizon, trials = whole("horizon", horizon), whole("trials", trials)
    if isinstance(bandit, type) or not isinstance(bandit, RewardSource):
        raise InputError(f"bandit is a {type(bandit).__name__}: give rm.Bandit([...]) or rm.Replay(table)")
    if isinstance(bandit, Replay) and trials != 1:
        raise InputError(f"trials = {trials} of a Replay would all be the same: trials=1")
    block = None if block is None else whole("block", block)
    cores = (os.cpu_count() or 1) if workers is None else whole("workers", workers)
    jobs, threads = min(cores, trials), max(1, cores // trials)
    root = root_seed(rng)
    made_network = catalogue.given("network", network)
    if callable(getattr(made_network, "build", None)):
        made_network = made_network.build(np.random.default_rng(stream_seed(root, Role.NETWORK)))
    given = catalogue.given("channel", channel)
    world = World(
        channel=PerfectChannel() if given is None else given,
        absences=absences,
        outages=outages,
        churn=churn,
        corruption=corruption,
        byzantine=byzantine,
    )
    contender = prepare(
        catalogue.given("policy", policy),
        made_network,
        bandit.n_arms,
        engine=engine,
        world=world,
    )
    refuse_impossible(made_network.n_agents, horizon, trials, keep_actions=actions or needs_actions(bandit))
    marks = resolve_checkpoints(checkpoints, horizon)
    require_memory([contender], bandit, horizon, len(marks), at_once=jobs, kept=trials)
    told = _Told(progress, trials * horizon)

    def play(trial: int, tick: Tick) -> Trial:
        def on_rounds(rounds: int) -> None:
            tick(0.0)
            told.add(rounds)

        return play_trial(
            [contender],
            bandit,
            horizon,
            stream_seed(root, trial),
            marks,
            keep_actions=actions,
            on_rounds=on_rounds,
            block=block,
            threads=threads,
        )[0]

    # Python code does not run in parallel threads, so only the compiled engine gets them.
    done: dict[int, Trial] = {}
    if jobs == 1 or contender.engine == "reference":
        done = {trial: play(trial, no_tick) for trial in range(trials)}
    else:
        Threads(jobs).run(range(trials), play, done.__setitem__)
    return Result.gather(policy, contender.engine, marks, [done[trial] for trial in range(trials)])


class _Told:
    """Counts rounds for the progress callback."""

    def __init__(self, progress: OnProgress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0
        self._lock = threading.Lock()

    def add(self, rounds: int) -> None:
        with self._lock:
            self._done += rounds
            if self._progress is not None:
                self._progress(self._done, self._total)
