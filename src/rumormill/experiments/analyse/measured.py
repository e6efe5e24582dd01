"""A run's table taken apart once: every policy at every sweep point, over the trials that are done.

Labels for swept parameters and fault models, the same in terminal, figures and page.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rumormill.experiments.plan import plan_of
from rumormill.experiments.spec.building import CONSTANT, PRINTED
from rumormill.experiments.spec.errors import own_names
from rumormill.experiments.spec.schema import Spec
from rumormill.protocol import Imperfect, World
from rumormill.stats import Interval, bootstrap_band
from rumormill.text import band, plural, setting

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from rumormill.experiments.run.manifest import Manifest
    from rumormill.experiments.spec.schema import Spec

Values = dict[str, Any]
"""What every swept parameter is at one sweep point; empty when nothing is swept."""

ANY = "any"
"""A parameter on which something does not depend."""

AXIS_NAMES = {
    "gamma": "γ (hops)",
    "alpha": "tail index α",
    "zeta": "factor ζ",
    "eps": "ε",
    "M": "agents",
    "K": "arms K",
    "gap": "gap Δ",
    "tail": "tail index",
    "channel.p": "share of bundles that arrive, p",
    "channel.delay": "longest delay (rounds)",
    "churn.up": "mean rounds present",
    "churn.down": "mean rounds away",
    "corruption.rate": "share of false messages",
    "byzantine.agents": "liars",
    "byzantine.attack": "attack",
    "network.n": "agents",
    "network.p": "link probability p",
}
VALUE_NAMES = {"er": "Erdős–Rényi", "ba": "Barabási–Albert", "gnutella": "Gnutella", "facebook": "Facebook"}
SYMBOLS = {"gamma": "γ", "alpha": "α", "zeta": "ζ", "eps": "ε", "rho": "ρ", "sigma": "σ", "tau": "τ"}
SHORT = {"channel.p": "p", "channel.delay": "delay", "churn.down": "rounds away", "network.p": "p"}
# Parameters with a limit: named instead of "falls" or "grows".
LIMITS = {("alpha", "low"): "1"}


def in_words(values: Values, between: str = ", ") -> str:
    """A sweep point as a title."""
    return between.join(named(values))


def named(values: Values) -> list[str]:
    """Every parameter of a sweep point with its value: γ = 2."""
    return [f"{symbol(name)} = {value_name(value)}" for name, value in values.items()]


def value_name(value: Any) -> str:
    """What a swept value is called; never a raw key of a shipped spec."""
    return VALUE_NAMES.get(str(value)) or setting(value)


def band_of(row: dict[str, Any]) -> str:
    """The band of a row of a summary; one trial has none."""
    return "one trial: no band" if row["trials"] == 1 else band(row["low"], row["high"])


def in_one_line(constants: dict[str, Any]) -> str:
    """Constants as they were resolved: ζ = 1, ε = 0.765, u = 4.03, …"""
    return ", ".join(f"{symbol(name)} = {setting(value)}" for name, value in constants.items())


def axis_name(parameter: str) -> str:
    """What a swept parameter is called on an axis; never a raw key of a spec."""
    part, _, key = parameter.rpartition(".")
    for known in (parameter, key):
        if known in AXIS_NAMES:
            return AXIS_NAMES[known]
    name = key.replace("_", " ")
    return f"{name} ({part.replace('.', ' ')})" if part and part != "policies" else name


def symbol(parameter: str) -> str:
    """What a swept parameter is called in a sentence; never a raw key of a spec."""
    part, _, key = parameter.rpartition(".")
    if not part:
        return SYMBOLS.get(key, key)
    return SYMBOLS.get(key) or SHORT.get(parameter) or (axis_name(parameter) if part != "policies" else key)


def is_number(value: Any) -> bool:
    """Whether a swept value has a place on an axis."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def fault_sentences_of(spec: Spec) -> list[str]:
    """The fault models of a spec; where they differ between sweep points, one sentence says so."""
    if own_names(spec):  # a user's own class is not imported for a sentence
        return []
    found = [fault_sentences(point.world) for point in plan_of(spec).points]
    if all(each == found[0] for each in found):
        return found[0]
    return ["What is lost, late or away differs between the points of the sweep."]


def fault_sentences(world: World) -> list[str]:
    """The fault models of a world, a sentence each."""
    found, channel = [], world.channel
    if isinstance(channel, Imperfect):
        what = "bundle" if channel.per == "link" else "message"
        if channel.p < 1:
            found.append(f"Every {what} is lost with probability {setting(round(1 - channel.p, 12))}.")
        if channel.longest_delay:
            found.append(
                f"Bundles come up to {plural(channel.longest_delay, 'round')} late, "
                f"{setting(round(channel.mean_delay, 3))} in the mean."
            )
    elif not world.messages_arrive:
        found.append(f"What happens to messages is decided by {type(channel).__name__}.")
    if world.churn is not None:
        up, down = setting(world.churn.up), setting(world.churn.down)
        found.append(f"Agents stay for {up} rounds in the mean, then are away for {down}.")
    elif world.absences:
        found.append("Some agents are away for a while.")
    if world.outages:
        found.append("Some links are down for a while.")
    if world.corruption is not None and world.corruption.rate > 0:
        found.append(f"Of all messages a share of {setting(world.corruption.rate)} says something false.")
    if world.liars:
        found.append(f"{plural(len(world.liars), 'agent')} {'lies' if len(world.liars) == 1 else 'lie'}.")
    return found


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
            name = f"swept_{axis}"
            here = here.filter(here[name if name in here.columns else axis] == value)
        trials = set(self.of(self.policies[0], values).trials)
        costs: dict[int, float] = {}
        for trial, gap, agents in here.select("trial", "gap", "agents").iter_rows():
            costs[trial] = costs.get(trial, 0.0) + gap * agents
        found = [cost for trial, cost in costs.items() if trial in trials]
        return float(np.mean(found)) if found else None  # older runs of such a sweep do not tell

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
