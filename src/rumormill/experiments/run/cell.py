"""One cell of an experiment: all policies of a sweep point on the rewards of one trial."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from rumormill.engine import Contender, Trial, play_trial
from rumormill.engine.trial import require_memory
from rumormill.engine.workers import Tick, no_tick
from rumormill.experiments.plan import Cell, ExperimentPlan, plan_of
from rumormill.experiments.run.cache import NETWORK_CACHE, one_blas_thread
from rumormill.experiments.run.manifest import game_note, gamma_of
from rumormill.experiments.spec.errors import own_errors, own_names
from rumormill.experiments.spec.schema import Spec
from rumormill.graphs.datasets import find
from rumormill.plugins import files_in

if TYPE_CHECKING:
    import polars as pl

    from rumormill.arms import RewardSource

# Kinds of networks that are read from a file.
FILED = ("file", "mesh")
QUANTILES = {"agent_min": 0.0, **{f"agent_q{q}": q / 100 for q in (10, 25, 50, 75, 90)}, "agent_max": 1.0}


@dataclass(frozen=True)
class CellOutcome:
    """The rows of a cell, its regret, and its times.

    Times are processor seconds of the thread that played it; helper threads (fewer cells than cores) are not
    counted.
    """

    frame: pl.DataFrame
    regret: dict[str, float]
    """Group regret at the horizon, by policy."""
    kernel_s: float
    prepare_s: float
    game: str
    """The arms of the trial and what is known of them, as a note: see `describe.game_note`."""


def play_cell(spec: Spec, cell: Cell, tick: Tick = no_tick, threads: int = 1) -> CellOutcome:
    """All policies of the point on the very same rewards.

    It depends on the spec and the cell alone, and may be called anywhere: in a thread, in another process, on
    another machine.
    """
    plan = plan_of(spec)
    point = plan.points[cell.point]
    policies, labels = point.spec.policies, point.spec.labels
    with one_blas_thread(), own_errors(spec):
        start = time.thread_time()
        tick(0)
        prepared, bandit = NETWORK_CACHE.at(point, cell.trial), point.bandit(cell.trial)
        games = {point.game(part): part for part in policies}
        known = {game: prepared.trials[game] for game in games if game in prepared.trials}
        missing = {game: prepared.contender(point, games[game]) for game in games if game not in known}
        plans = [prepared.plan_of(part) for part in policies]
        tick(0)
        ready = time.thread_time()
        if missing:
            played = _played(plan, cell, list(missing.values()), bandit, tick, threads)
            known.update(zip(missing, played, strict=True))
            if point.is_fresh:  # else the network is shared by all trials
                prepared.trials.update({game: known[game] for game in missing if game in plan.repeated_games})
        done = time.thread_time()
    trials = [known[point.game(part)] for part in policies]
    return CellOutcome(
        frame=_table(plan, cell, trials),
        regret={label: float(one.agent_regret[-1].sum()) for label, one in zip(labels, trials, strict=True)},
        kernel_s=done - ready,
        prepare_s=ready - start,
        game=game_note(bandit, prepared.network.n_agents, gamma_of(plans)),
    )


def _played(
    plan: ExperimentPlan,
    cell: Cell,
    contenders: list[Contender],
    bandit: RewardSource,
    tick: Tick,
    threads: int,
) -> list[Trial]:
    """The trials of the policies whose outcome is not known yet."""
    point, horizon = plan.points[cell.point], plan.spec.size.horizon
    require_memory(contenders, bandit, horizon, len(plan.checkpoints))
    each = float(sum(contender.deliveries for contender in contenders)) / len(contenders)
    return play_trial(
        contenders,
        bandit,
        horizon,
        point.seed(cell.trial),
        plan.checkpoints,
        on_rounds=lambda rounds: tick(rounds * each),
        threads=threads,
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
        for point in plan_of(self.spec).points:
            network = point.spec.network
            name = str(network.settings.get("file", "")) if network.kind in FILED else ""
            if name and not Path(name).is_absolute():
                path = find(name) if network.kind == "file" else Path(name)
                found[name if path == Path(name) else path.name] = path
        return found

    def at(self, folder: str) -> PlayCells:
        """The same where its files lie in this folder."""
        return PlayCells(msgspec.structs.replace(self.spec, folder=folder), self.threads)


def _table(plan: ExperimentPlan, cell: Cell, trials: Sequence[Trial]) -> pl.DataFrame:
    """The rows of a cell: one per policy and checkpoint."""
    import polars as pl

    point, marks = plan.points[cell.point], plan.checkpoints
    types, rows = plan.axis_types, len(marks) * len(trials)
    agents = np.concatenate([one.agent_regret for one in trials])
    columns: dict[str, Any] = {
        "experiment": pl.Series([plan.spec.name]).new_from_index(0, rows),
        "policy": pl.Series([label for label in point.spec.labels for _ in marks], dtype=pl.String),
    }
    for axis, value in point.values.items():
        kind = types[axis]
        columns[axis] = pl.Series([kind(value)], dtype=column_type(kind)).new_from_index(0, rows)
    columns["trial"] = np.full(rows, cell.trial, dtype=np.int64)
    columns["t"] = np.tile(marks, len(trials))
    columns["regret"] = agents.sum(axis=1)
    columns.update(zip(QUANTILES, np.quantile(agents, list(QUANTILES.values()), axis=1), strict=True))
    columns["messages"] = np.concatenate([one.messages for one in trials]).astype(np.int64)
    columns["wire_bytes"] = np.concatenate([one.wire_bytes for one in trials]).astype(np.int64)
    if not plan.spec.all_pull:
        columns["agent_rounds"] = np.concatenate([one.pulls_at(marks) for one in trials]).astype(np.int64)
    return pl.DataFrame(columns)


def column_type(kind: type) -> Any:
    """The column that holds values of this type."""
    import polars as pl

    return {int: pl.Int64, float: pl.Float64, bool: pl.Boolean, str: pl.String}[kind]
