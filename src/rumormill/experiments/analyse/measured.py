"""A run's table taken apart once: every policy at every sweep point, over the trials that are done."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rumormill.experiments.analyse.labels import ANY, Values, in_one_line, in_words
from rumormill.experiments.spec.tuned_constants import CONSTANT, PRINTED
from rumormill.stats.bootstrap import Interval, bootstrap_band

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from rumormill.experiments.run.manifest import Manifest
    from rumormill.experiments.spec.schema import Spec

Array = NDArray[np.float64]
Row = dict[str, Any]


class StoredRun(Protocol):
    """What is read from the folder of a run."""

    @property
    def path(self) -> Path: ...
    @property
    def manifest(self) -> Manifest: ...
    @property
    def spec(self) -> Spec: ...
    @property
    def frame(self) -> pl.DataFrame: ...
    @property
    def games(self) -> pl.DataFrame | None: ...


@dataclass(frozen=True, eq=False)
class Series:
    """One policy at one sweep point, over the trials that are done."""

    policy: str
    values: Values
    trials: list[int]
    rounds: NDArray[np.int64]
    regret: Array
    """Group regret, (trials, rounds)."""
    ends: pl.DataFrame
    """The last row of every trial, in the order of `trials`."""

    @cached_property
    def mean(self) -> Array:
        """Mean regret at every round."""
        mean: Array = self.regret.mean(axis=0)
        return mean

    @cached_property
    def band(self) -> tuple[Array, Array]:
        """Low and high of the mean at every round, with 95 % confidence."""
        return bootstrap_band(self.regret)

    @property
    def at_end(self) -> Interval:
        """Mean regret at the last round, with its band."""
        low, high = self.band
        return Interval(float(self.regret[:, -1].mean()), float(low[-1]), float(high[-1]))

    def mean_at_end(self, column: str) -> float:
        """The mean over trials of another column at the last round."""
        return float(self.ends[column].to_numpy().mean())

    def by_trial(self) -> dict[int, float]:
        """Regret at the last round, by trial."""
        return dict(zip(self.trials, self.regret[:, -1].tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Measurements:
    """A run in numbers. While it is under way, of the cells that are done."""

    path: Path
    manifest: Manifest
    spec: Spec
    points: list[Values]
    """The sweep points that have a trial done, in order; one empty one when nothing is swept."""
    series: dict[tuple[Any, ...], Series]
    """By policy and the values of the axes: see `of`."""
    column: str = ""
    """Of a run with a tuned constant: at which value of it the policies are."""
    games: pl.DataFrame | None = None
    """The arms of every trial, where the run has kept them."""

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def axes(self) -> list[str]:
        """The parameters that are swept; a constant that is tuned is none of them."""
        return [axis for axis in self.manifest.axes if axis != CONSTANT]

    @property
    def policies(self) -> list[str]:
        """The labels of the policies, in the order of the spec."""
        return list(self.manifest.policies)

    @cached_property
    def rounds(self) -> NDArray[np.int64]:
        """The rounds recorded."""
        return self.of(self.policies[0], self.points[0]).rounds

    @property
    def horizon(self) -> int:
        """The last round recorded."""
        return int(self.rounds[-1])

    def of(self, policy: str, values: Values) -> Series:
        """A policy at a sweep point."""
        return self.series[policy, *(values[axis] for axis in self.axes)]

    def at(self, values: Values) -> list[Series]:
        """All policies at a sweep point."""
        return [self.of(policy, values) for policy in self.policies]

    def along(self, policy: str) -> list[Series]:
        """A policy at all sweep points."""
        return [self.of(policy, values) for values in self.points]

    def scope(self, values: Values) -> str:
        """What shares its confidence with a claim about this sweep point.

        A run; of a tuned one, each column and each value of the axis over which a worst case is sought.
        """
        name = f"{self.name} ({self.manifest.scale})"
        if not self.column:
            return name
        over = self.spec.tune.over if self.spec.tune else None
        where = f", {in_words({over: values[over]})}" if over in values else ""
        return f"{name}, {self.column}{where}"

    def start_cost(self, values: Values) -> float | None:
        """Mean regret of the first K rounds of the paper's start: every agent tries every arm once."""
        if self.games is None:
            return None
        here = self.games
        for axis, value in values.items():
            here = here.filter(here[axis] == value)
        trials = set(self.of(self.policies[0], values).trials)
        costs: dict[int, float] = {}
        for trial, gap, agents in here.select("trial", "gap", "agents").iter_rows():
            costs[trial] = costs.get(trial, 0.0) + gap * agents
        return float(np.mean([cost for trial, cost in costs.items() if trial in trials]))

    @property
    def constants(self) -> list[Row]:
        """The constants of every policy at every sweep point, as resolved in the first trial."""
        rows = []
        for number, values in enumerate(self.manifest.points):
            if values.get(CONSTANT, PRINTED) != PRINTED:
                continue
            for policy, found in self.manifest.constants.get(str(number), {}).items():
                where = {axis: value for axis, value in values.items() if axis != CONSTANT}
                rows.append({**where, "policy": policy, "constants": in_one_line(found)})
        return rows

    @property
    def constants_in_short(self) -> list[Row]:
        """The same, with `ANY` for a parameter that the constants of a policy do not depend on."""
        short: list[Row] = []
        for policy in self.policies:
            rows = [row for row in self.constants if row["policy"] == policy]
            for axis in self.axes:
                fewer: dict[tuple[Any, ...], Row] = {}
                for row in rows:
                    blind = {**row, axis: ANY}
                    there = fewer.setdefault(tuple(blind[other] for other in self.axes), blind)
                    if there["constants"] != row["constants"]:
                        break
                else:
                    rows = list(fewer.values())
            short += rows
        return short

    @cached_property
    def rows(self) -> list[Row]:
        """One row per sweep point and policy: means at the last round."""
        return [self._row(series) for values in self.points for series in self.at(values)]

    def _row(self, series: Series) -> Row:
        end = series.at_end
        pulls = {}
        if "agent_rounds" in series.ends.columns:  # some agents were away or lied
            pulls = {"agent_rounds": series.mean_at_end("agent_rounds")}
        return {
            **series.values,
            "policy": series.policy,
            "trials": len(series.trials),
            "regret": end.estimate,
            "low": end.low,
            "high": end.high,
            "median_agent": series.mean_at_end("agent_q50"),
            "worst_agent": series.mean_at_end("agent_max"),
            "messages_per_round": series.mean_at_end("messages") / self.horizon,
            "bytes_per_round": series.mean_at_end("wire_bytes") / self.horizon,
            **pulls,
        }


def measured(run: StoredRun) -> Measurements:
    """The table of a run by policy and axes; `points` is empty where a constant is tuned."""
    axes = list(run.manifest.axes)
    series = {}
    for key, frame in run.frame.partition_by(["policy", *axes], as_dict=True).items():
        values = {axis: value for axis, value in zip(axes, key[1:], strict=True) if axis != CONSTANT}
        series[key] = _series(str(key[0]), values, frame)
    points: list[Values] = []
    if run.spec.tune is None:
        points = [dict(zip(axes, key, strict=True)) for key in dict.fromkeys(key[1:] for key in series)]
    return Measurements(run.path, run.manifest, run.spec, points, series, games=_games(run))


def _games(run: StoredRun) -> pl.DataFrame | None:
    """The games of a run; of one with a tuned constant, those of one of its values: all have the same."""
    games = run.games
    if games is None or CONSTANT not in games.columns:
        return games
    return games.filter(games[CONSTANT] == PRINTED).drop(CONSTANT)


def _series(policy: str, values: Values, frame: pl.DataFrame) -> Series:
    ordered = frame.sort("trial", "t")
    rounds = np.unique(ordered["t"].to_numpy())
    regret = ordered["regret"].to_numpy().reshape(-1, len(rounds)).astype(np.float64)
    ends = ordered.filter(ordered["t"] == rounds[-1])
    return Series(policy, values, ends["trial"].to_list(), rounds, regret, ends)
