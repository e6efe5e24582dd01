"""Play what is missing: all entries of a cell on the same chance, trial by trial, kept as it comes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from rumormill.arena.entries import Entry, EntryStore, Played
from rumormill.arena.score import floor_of, uniform_regret
from rumormill.arena.suite import ArenaCell, LogGame, Suite
from rumormill.engine import play_trial
from rumormill.engine.workers import Executor, Tick, no_tick
from rumormill.errors import InputError
from rumormill.experiments.plan import SweepPoint, plan_of
from rumormill.experiments.run.cache import NETWORK_CACHE, one_blas_thread
from rumormill.experiments.run.runner import RunInterrupted
from rumormill.experiments.spec.errors import own_errors
from rumormill.experiments.spec.reading import check_policies
from rumormill.experiments.spec.schema import PolicyPart
from rumormill.seeds import Role, stream_seed

if TYPE_CHECKING:
    from rumormill.arms import RewardSource

# Files are written at most this often, and at the end.
WRITE_EVERY_S = 15.0


@dataclass(frozen=True)
class Todo:
    """One trial of a cell, for the policies that have not played it."""

    cell: ArenaCell
    trial: int
    parts: tuple[PolicyPart, ...]
    folder: str | None


def play_todo(todo: Todo, tick: Tick = no_tick) -> list[Played]:
    """Play one trial with each of the policies; it may be called in a thread or in another process."""
    cell = todo.cell
    point = point_of(cell, todo.parts, todo.folder)
    horizon, liars = point.spec.size.horizon, len(point.world.liars)
    with one_blas_thread(), own_errors(point.spec):
        prepared = NETWORK_CACHE.at(point, todo.trial)
        source, seed = source_of(cell, point, todo.trial), point.seed(todo.trial)
        contenders = [prepared.contender(point, part) for part in point.spec.policies]
        marks = np.array([horizon], dtype=np.int64)
        trials = play_trial(contenders, source, horizon, seed, marks, on_rounds=lambda rounds: tick(0.0))
        agents = prepared.network.n_agents - liars
    if cell.log is None:
        floor, uniform = floor_of(source, agents, horizon), uniform_regret(source, agents, horizon)
    else:
        floor, uniform = _log_measures(cell.log, agents, horizon)
    return [
        Played(
            float(one.agent_regret[-1].sum()), floor, uniform, int(one.messages[-1]), int(one.wire_bytes[-1])
        )
        for one in trials
    ]


@lru_cache(maxsize=16)
def _log_measures(log: LogGame, agents: int, horizon: int) -> tuple[float, float]:
    """Floor and uniform regret of a log: the same in every trial."""
    return floor_of(log.bandit(), agents, horizon), uniform_regret(log.bandit(), agents, horizon)


def point_of(cell: ArenaCell, parts: Sequence[PolicyPart], folder: str | None) -> SweepPoint:
    """The cell with these policies; a policy of the user's own is looked for in the folder."""
    spec = replace(cell.spec, policies=list(parts))
    return plan_of(replace(spec, folder=folder) if folder is not None else spec).points[0]


def source_of(cell: ArenaCell, point: SweepPoint, trial: int) -> RewardSource:
    """The rewards of a trial: drawn from laws, or a resample of the log."""
    if cell.log is None:
        return point.bandit(trial)
    return cell.log.replay(np.random.default_rng(stream_seed(point.seed(trial), Role.BANDIT)))


def refusal(cell: ArenaCell, entry: Entry) -> str:
    """Why the policy does not play in this cell; "" if it does."""
    try:
        point = point_of(cell, [entry.part], entry.folder)
        check_policies(point)
        with one_blas_thread():
            contender = NETWORK_CACHE.at(point, 0).contender(point, point.spec.policies[0])
    except InputError as error:
        return str(error).removeprefix(f"policies[0] ({entry.label}): ")
    entry.engine = contender.engine
    return ""


def play_suite(
    suite: Suite,
    entries: Sequence[Entry],
    store: EntryStore,
    executor: Executor,
    on_done: Callable[[int, int], None] = lambda done, total: None,
) -> None:
    """Play all that is missing, cell by cell; Ctrl-C keeps what is done.

    Raises RunInterrupted on Ctrl-C.
    """
    todo, owners = _todo(suite, entries)
    total, changed, written = len(todo), set[int](), time.monotonic()
    done = 0

    def flush() -> None:
        nonlocal written
        for number in sorted(changed):
            store.write(entries[number])
        changed.clear()
        written = time.monotonic()

    def keep(number: int, played: list[Played]) -> None:
        nonlocal done
        task = todo[number]
        for owner, one in zip(owners[number], played, strict=True):
            entries[owner].record(task.cell).trials[task.trial] = one
            changed.add(owner)
        done += 1
        on_done(done, total)
        if time.monotonic() - written > WRITE_EVERY_S:
            flush()

    changed.update(
        number for number, entry in enumerate(entries) if any(r.refused for r in entry.cells.values())
    )
    try:
        if todo:
            executor.run(range(total), partial(_play, tuple(todo)), keep)
    except KeyboardInterrupt:
        raise RunInterrupted(store.folder, done, total, "trials") from None
    finally:
        flush()


def _play(todo: tuple[Todo, ...], number: int, tick: Tick = no_tick) -> list[Played]:
    return play_todo(todo[number], tick)


def _todo(suite: Suite, entries: Sequence[Entry]) -> tuple[list[Todo], list[list[int]]]:
    """Trials to be played, each with the numbers of the entries that miss it; own modules stand alone."""
    todo, owners = [], []
    for cell in suite.cells:
        missing: dict[int, list[int]] = {}
        for number, entry in enumerate(entries):
            record = entry.record(cell)
            if not record.trials and not record.refused:
                record.refused = refusal(cell, entry)
            for trial in entry.missing(cell, suite.trials):
                missing.setdefault(trial, []).append(number)
        for trial, numbers in sorted(missing.items()):
            for folder in dict.fromkeys(entries[i].folder for i in numbers):
                group = [i for i in numbers if entries[i].folder == folder]
                todo.append(Todo(cell, trial, tuple(entries[i].part for i in group), folder))
                owners.append(group)
    return todo, owners
