"""What a run came to, worked out once: terminal, figures and page all read it from here."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rumormill.experiments.analyse.bootstrap import Interval, bootstrap_band
from rumormill.experiments.analyse.claims import Verdict, own_verdicts
from rumormill.experiments.analyse.words import Values

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from rumormill.experiments.analyse.bounds import RunBounds
    from rumormill.experiments.run.manifest import Manifest
    from rumormill.experiments.run.store import RunFolder
    from rumormill.experiments.spec.schema import Spec

Array = NDArray[np.float64]
Row = dict[str, Any]


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
class Summary:
    """A run in numbers. While it is under way, of the cells that are done."""

    path: Path
    manifest: Manifest
    spec: Spec
    points: list[Values]
    """The sweep points that have a trial done, in order; one empty one when nothing is swept."""
    series: dict[tuple[Any, ...], Series]
    """By policy and the values of the axes: see `of`."""
    bounds: RunBounds | None = None
    """What the theory promises, if it was asked for."""

    @property
    def name(self) -> str:
        return self.manifest.name

    @property
    def axes(self) -> list[str]:
        """The parameters that are swept."""
        return list(self.manifest.axes)

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

    @cached_property
    def verdicts(self) -> list[Verdict]:
        """The claims of the spec that this run alone can decide."""
        return own_verdicts(self)

    @cached_property
    def rows(self) -> list[Row]:
        """One row per sweep point and policy: what it came to at the last round."""
        return [self._row(series) for values in self.points for series in self.at(values)]

    def _row(self, series: Series) -> Row:
        end = series.at_end
        pulls = {}
        if "agent_rounds" in series.ends.columns:  # not everybody pulled in every round
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


def summarise(run: RunFolder, *, bounds: bool = False) -> Summary:
    """Take a run's table apart, once; with `bounds`, also what the theory promises for it."""
    axes = list(run.manifest.axes)
    series = {}
    for key, frame in run.frame.partition_by(["policy", *axes], as_dict=True).items():
        series[key] = _series(str(key[0]), dict(zip(axes, key[1:], strict=True)), frame)
    points = [dict(zip(axes, key, strict=True)) for key in dict.fromkeys(key[1:] for key in series)]
    summary = Summary(run.path, run.manifest, run.spec, points, series)
    if not bounds:
        return summary
    from rumormill.experiments.analyse.bounds import run_bounds

    return dataclasses.replace(summary, bounds=run_bounds(summary))


def _series(policy: str, values: Values, frame: pl.DataFrame) -> Series:
    ordered = frame.sort("trial", "t")
    rounds = np.unique(ordered["t"].to_numpy())
    regret = ordered["regret"].to_numpy().reshape(-1, len(rounds)).astype(np.float64)
    ends = ordered.filter(ordered["t"] == rounds[-1])
    return Series(policy, values, ends["trial"].to_list(), rounds, regret, ends)
