"""One door to both engines, and the workers behind it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

import numpy as np

from rumormill.arms import Replay, RewardSource
from rumormill.engine.result import Result, Trial, resolve_checkpoints
from rumormill.engine.trial import Engine, play_trial, prepare
from rumormill.errors import InputError
from rumormill.graphs import Network
from rumormill.policies import OwnPolicy, Policy
from rumormill.protocol import Channel
from rumormill.seeds import RandomSource, root_seed, stream_seed

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
    workers: int | None = None,
    block: int | None = None,
) -> Result:
    """Play `trials` independent trials of `horizon` rounds.

    The rewards of a trial depend on `rng` and the number of the trial only: two policies simulated with
    the same `rng` see the very same rewards, and neither `workers` (threads, default: all cores) nor
    `block` (rounds played at a time) changes any result. `progress(done, total)` is told about rounds,
    over all trials. `channel` makes the channel of each trial (perfect by default).
    """
    horizon, trials = whole("horizon", horizon), whole("trials", trials)
    if not isinstance(bandit, RewardSource):
        raise InputError(f"bandit is a {type(bandit).__name__}: give rm.Bandit([...]) or rm.Replay(table)")
    if isinstance(bandit, Replay) and trials != 1:
        raise InputError(f"trials = {trials} of a Replay would all be the same: trials=1")
    block = None if block is None else whole("block", block)
    workers = min(os.cpu_count() or 1, trials) if workers is None else whole("workers", workers)
    marks = resolve_checkpoints(checkpoints, horizon)
    root = root_seed(rng)
    contender = prepare(policy, network, bandit.n_arms, engine=engine, channel=channel)
    rounds = Rounds(progress, trials * horizon)

    def play(trial: int) -> Trial:
        return play_trial(
            [contender],
            bandit,
            horizon,
            stream_seed(root, trial),
            marks,
            keep_actions=actions,
            on_rounds=rounds.add,
            block=block,
        )[0]

    # Python code does not run in parallel threads, so only the compiled engine gets them.
    if workers == 1 or contender.engine == "reference":
        done = [play(trial) for trial in range(trials)]
    else:
        done = in_threads(play, trials, workers, rounds)
    return Result.gather(policy, contender.engine, marks, done)


class Stopped(BaseException):
    """Raised inside a worker to end its trial; never seen outside."""


class Rounds:
    """Counts rounds for the progress callback, and ends trials when asked to stop."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total = progress, total
        self._done = 0
        self._lock = threading.Lock()
        self.stop = threading.Event()

    def add(self, rounds: int) -> None:
        if self.stop.is_set():
            raise Stopped
        with self._lock:
            self._done += rounds
            if self._progress is not None:
                self._progress(self._done, self._total)


def in_threads(play: Callable[[int], Trial], trials: int, workers: int, rounds: Rounds) -> list[Trial]:
    """All trials in order; the first error, or Ctrl-C, stops the rest within a block."""
    with ThreadPoolExecutor(workers) as pool:
        futures: list[Future[Trial]] = [pool.submit(play, trial) for trial in range(trials)]
        try:
            waiting = set(futures)
            while waiting:  # short waits, so that the main thread sees Ctrl-C
                finished, waiting = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in finished:
                    future.result()
        except BaseException:
            rounds.stop.set()
            pool.shutdown(wait=True, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def whole(name: str, value: object) -> int:
    """A count of at least one."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InputError(f"{name} = {value!r} is not allowed: a whole number >= 1")
    return int(value)
