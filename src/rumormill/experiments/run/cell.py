"""One cell of an experiment: all policies of a sweep point on the rewards of one trial."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from rumormill.engine import Trial, play_trial
from rumormill.engine.result import resolve_checkpoints
from rumormill.engine.trial import require_memory
from rumormill.engine.workers import Tick, no_tick
from rumormill.experiments.run.cache import AT_HAND, one_blas_thread
from rumormill.experiments.run.describe import game_note, gamma_of
from rumormill.experiments.run.store import Cell
from rumormill.experiments.spec.building import build_bandit, is_fresh, trial_seed
from rumormill.experiments.spec.errors import own_errors, own_names
from rumormill.experiments.spec.reading import SweepPoint, axes_of, points
from rumormill.experiments.spec.schema import PolicyPart, Spec
from rumormill.graphs.datasets import find
from rumormill.plugins import files_in

if TYPE_CHECKING:
    import polars as pl

# Kinds of networks that are read from a file.
FILED = ("file", "mesh")
QUANTILES = {
    "agent_min": 0.0,
    "agent_q10": 0.1,
    "agent_q25": 0.25,
    "agent_q50": 0.5,
    "agent_q75": 0.75,
    "agent_q90": 0.9,
    "agent_max": 1.0,
}


@dataclass(frozen=True)
class CellOutcome:
    """What a cell came to.

    Times are processor seconds of the thread that played it; what others in the same trial helped with (fewer
    cells than cores) is not counted.
    """

    frame: pl.DataFrame
    regret: dict[str, float]
    """Group regret at the horizon, by policy."""
    kernel_s: float
    prepare_s: float
    game: str
    """The arms of the trial and what is known of them, as a note: see games.py."""


@dataclass(frozen=True)
class _Sweep:
    """What all cells of a spec share."""

    points: list[SweepPoint]
    marks: NDArray[np.int64]
    repeated: frozenset[str]
    """Games that several points play."""


def cells_of(spec: Spec, jobs: int) -> list[Cell]:
    """All cells. Points of a trial stand near each other, so that they find its network ready.

    Workers get different trials at a time: what one point leaves for the next is then there.
    """
    trials, found = spec.size.trials, _sweep_of(spec).points
    # Where there are several networks, one after the other: only a few are kept at hand.
    order = sorted(range(len(found)), key=lambda i: repr(found[i].spec.network)) if spec.networks else None
    return [
        Cell(point, trial)
        for first in range(0, trials, jobs)
        for point in order or range(len(found))
        for trial in range(first, min(first + jobs, trials))
    ]


def play_cell(spec: Spec, cell: Cell, tick: Tick = no_tick, threads: int = 1) -> CellOutcome:
    """All policies of the point on the very same rewards.

    It depends on the spec and the cell alone, and may be called anywhere: in a thread, in another process, on
    another machine.
    """
    sweep = _sweep_of(spec)
    point = sweep.points[cell.point]
    here = point.spec
    with one_blas_thread(), own_errors(spec):
        start = time.thread_time()
        tick(0)
        games = {_game(here, part): part for part in here.policies}
        site = AT_HAND.at(here, cell.trial)
        known = {game: site.trials[game] for game in games if game in site.trials}
        missing = {game: site.contender(here, part) for game, part in games.items() if game not in known}
        bandit = build_bandit(here, cell.trial)
        plans = [site.plan_of(part) for part in here.policies]
        tick(0)
        ready = time.thread_time()
        if missing:
            require_memory(list(missing.values()), bandit, here.size.horizon, len(sweep.marks))
            each = float(sum(contender.deliveries for contender in missing.values())) / len(missing)
            played = play_trial(
                list(missing.values()),
                bandit,
                here.size.horizon,
                trial_seed(here, cell.trial),
                sweep.marks,
                on_rounds=lambda rounds: tick(rounds * each),
                threads=threads,
            )
            known.update(zip(missing, played, strict=True))
            if is_fresh(here):  # else the network's place is shared by all trials
                site.trials.update({game: known[game] for game in missing if game in sweep.repeated})
        done = time.thread_time()
    trials = [known[_game(here, part)] for part in here.policies]
    return CellOutcome(
        frame=_table(spec, point, cell.trial, sweep.marks, trials),
        regret={
            label: float(one.agent_regret[-1].sum()) for label, one in zip(here.labels, trials, strict=True)
        },
        kernel_s=done - ready,
        prepare_s=ready - start,
        game=game_note(bandit, site, gamma_of(plans)),
    )


@dataclass(frozen=True)
class PlayCells:
    """The cells of a spec as work, for any executor. What it reads can be taken elsewhere: see `cluster`."""

    spec: Spec
    threads: int = 1
    """That play one cell together."""

    def __call__(self, cell: Cell, tick: Tick = no_tick) -> CellOutcome:
        return play_cell(self.spec, cell, tick, self.threads)

    def files(self) -> dict[str, Path]:
        """Own modules beside the spec, and graph files; an absolute path must be good everywhere."""
        found = {} if self.spec.folder is None else files_in(self.spec.folder, own_names(self.spec))
        for point in _sweep_of(self.spec).points:
            network = point.spec.network
            name = str(network.settings.get("file", "")) if network.kind in FILED else ""
            if name and not Path(name).is_absolute():
                path = find(name) if network.kind == "file" else Path(name)
                found[name if path == Path(name) else path.name] = path
        return found

    def at(self, folder: str) -> PlayCells:
        """The same where its files lie in this folder."""
        return PlayCells(msgspec.structs.replace(self.spec, folder=folder), self.threads)


def _sweep_of(spec: Spec) -> _Sweep:
    return _laid_out(msgspec.json.encode(spec))


@lru_cache(maxsize=4)
def _laid_out(plain: bytes) -> _Sweep:
    """Once per spec and process. Its text is the key, for every task may bring a copy of its own."""
    spec = msgspec.json.decode(plain, type=Spec)
    found = points(spec)
    games = Counter(_game(point.spec, part) for point in found for part in point.spec.policies)
    marks = resolve_checkpoints(spec.size.checkpoints, spec.size.horizon)
    return _Sweep(found, marks, frozenset(game for game, count in games.items() if count > 1))


def _game(spec: Spec, part: PolicyPart) -> str:
    """Everything that decides a policy's outcome in a trial, as a key."""
    return repr((spec.network, spec.arms, spec.surroundings, spec.size, part.type, part.settings))


# --- one thread of linear algebra -----------------------------------------------------------------------


def _table(
    spec: Spec, point: SweepPoint, trial: int, marks: NDArray[np.int64], trials: Sequence[Trial]
) -> pl.DataFrame:
    import polars as pl

    types, rows = axis_types(spec), len(marks) * len(trials)
    agents = np.concatenate([one.agent_regret for one in trials])
    columns: dict[str, Any] = {
        "experiment": pl.repeat(spec.name, rows, eager=True),
        "policy": pl.concat([pl.repeat(label, len(marks), eager=True) for label in point.spec.labels]),
    }
    for axis, value in point.values.items():
        kind = types[axis]
        columns[axis] = pl.repeat(kind(value), rows, dtype=column_type(kind), eager=True)
    columns["trial"] = np.full(rows, trial, dtype=np.int64)
    columns["t"] = np.tile(marks, len(trials))
    columns["regret"] = agents.sum(axis=1)
    columns.update(zip(QUANTILES, np.quantile(agents, list(QUANTILES.values()), axis=1), strict=True))
    columns["messages"] = np.concatenate([one.messages for one in trials]).astype(np.int64)
    columns["wire_bytes"] = np.concatenate([one.wire_bytes for one in trials]).astype(np.int64)
    if not spec.all_pull:
        columns["agent_rounds"] = np.concatenate([one.pulls_at(marks) for one in trials]).astype(np.int64)
    return pl.DataFrame(columns)


def axis_types(spec: Spec) -> dict[str, type]:
    """The type of every sweep column: whole numbers, numbers, true/false, or words for a mixture."""
    types: dict[str, type] = {}
    for axis, values in axes_of(spec).items():
        kinds = {type(value) for value in values}
        if len(kinds) == 1:
            types[axis] = kinds.pop()
        else:
            types[axis] = float if kinds == {int, float} else str
    return types


def column_type(kind: type) -> Any:
    """The column that holds values of this type."""
    import polars as pl

    return {int: pl.Int64, float: pl.Float64, bool: pl.Boolean, str: pl.String}[kind]
