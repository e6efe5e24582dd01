"""Logs: agent, arm, time and reward of every decision, from long or wide tables.

Long: columns time, agent, arm, reward. Wide: a column per arm, optionally agent and time. Files are scanned
lazily into columns; 10⁷ rows take a few hundred megabytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.advice.reading.columns import (
    Columns,
    Roles,
    guess_long,
    is_bad,
    looks_like_a_counter,
    number_of,
    refuse_bad,
    refuse_counter,
    roles_of,
    settled_objective,
    succeeded,
    time_of,
    with_time,
)
from rumormill.advice.reading.formats import scanned, suffix_of
from rumormill.arms.base import Objective, checked_objective, sign_of
from rumormill.errors import DataError, InputError
from rumormill.text import nearest, plural
from rumormill.validate import LARGEST_REWARD, refused

if TYPE_CHECKING:
    import polars as pl

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Log:
    """One row per value, oldest first: agent[i] tried arm[i] at time[i] and got value[i]."""

    name: str
    arms: tuple[str, ...]
    agents: tuple[str, ...] | None
    """The names of the agents; None if the file has no column for them."""
    objective: Objective
    unit: str
    time: Floats
    agent: Ints
    arm: Ints
    value: Floats
    timed: bool
    """Whether the file had a time; else the order of its rows stands in."""
    notes: tuple[str, ...] = ()
    """Notes on how the file was read, for the reader of the advice."""
    missing: NDArray[np.int64] | None = None
    """(agents, arms): tries without an outcome, failed or not recorded; None where the form does not tell."""
    failure_cost: float | None = None
    """The value that a missing outcome counts as; None: they are left out."""

    @property
    def n_agents(self) -> int:
        return 1 if self.agents is None else len(self.agents)

    @property
    def n_arms(self) -> int:
        return len(self.arms)

    @property
    def sign(self) -> float:
        """What a value is multiplied by so that more is better."""
        return sign_of(self.objective)

    @property
    def better(self) -> str:
        """Which way is better, in a word."""
        return "more" if self.objective == "maximise" else "less"

    def amount(self, value: float, digits: int = 3) -> str:
        """A value in the user's unit."""
        number = f"{value:,.{digits}g}" if abs(value) < 1e6 else f"{value:.{digits}e}"
        if 1e3 <= abs(value) < 1e6:
            number = f"{value:,.0f}"
        return f"{number} {self.unit}".rstrip()

    def counts(self) -> NDArray[np.int64]:
        """How many values there are of every (agent, arm)."""
        cells = self.agent.astype(np.int64) * self.n_arms + self.arm
        return np.bincount(cells, minlength=self.n_agents * self.n_arms).reshape(self.n_agents, self.n_arms)

    def taken(self, rows: NDArray[Any]) -> Log:
        """The log with these rows only, in this order."""
        return replace(
            self, time=self.time[rows], agent=self.agent[rows], arm=self.arm[rows], value=self.value[rows]
        )

    def without_agents(self, out: NDArray[np.bool_]) -> Log:
        """The log without some agents; the others are renumbered."""
        assert self.agents is not None
        found, number = self.taken(~out[self.agent]), np.cumsum(~out) - 1
        names = tuple(name for name, left_out in zip(self.agents, out, strict=True) if not left_out)
        missing = None if self.missing is None else self.missing[~out]
        return replace(found, agents=names, agent=number[found.agent].astype(np.int32), missing=missing)


@dataclass(frozen=True)
class Failure:
    """What a missing outcome counts as."""

    cost: float | str | None
    objective: Objective

    def __post_init__(self) -> None:
        if isinstance(self.cost, str) and self.cost != "timeout":
            raise refused("failure_cost", self.cost, "a number, or timeout: the worst value of the log")
        if isinstance(self.cost, int | float) and not abs(self.cost) <= LARGEST_REWARD:
            raise refused("failure_cost", self.cost, f"a number, at most {LARGEST_REWARD:g} in size")

    def value(self, values: Floats) -> float | None:
        """The value that failures count as, beside these values of other tries."""
        if self.cost is None or not len(values):
            return None
        if isinstance(self.cost, str):
            return float(values.max() if self.objective == "minimise" else values.min())
        return float(self.cost)


LEAST_ROWS = 100
MOST_ARMS = 1_000
# A wide column of which more cells than this share hold no number is no arm.
MOSTLY = 0.5


def read_log(
    path: str | PathLike[str],
    columns: Columns | None = None,
    *,
    objective: Objective | None = None,
    unit: str = "",
    failure_cost: float | Literal["timeout"] | None = None,
) -> Log:
    """Read a log from a file. Missing outcomes are counted; they are left out unless `failure_cost` is given.

    Args:
        path: CSV, TSV, Parquet or Arrow, optionally compressed (.gz).
        columns: Roles of the columns; by default found from their names.
        objective: "maximise" or "minimise"; `ObjectiveNeededError` if missing.
        unit: Unit of the values, for example "ms"; default none.
        failure_cost: The value of a missing outcome; "timeout": the worst value of the log.

    Returns:
        The log in the order of time.

    Example:
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "mirrors.csv"
        ...     text = "north,south\\n" + "20,30\\n21,29\\n" * 30
        ...     _ = path.write_text(text)
        ...     read_log(path, objective="minimise", unit="ms").arms
        ('north', 'south')

    Reference: docs/advice.md.
    """
    path = Path(path)
    objective = None if objective is None else checked_objective(objective)
    with scanned(path) as table:
        given = columns or Columns()
        roles, notes = guess_long(path, table, roles_of(path, table.collect_schema().names(), given), given)
        name = path.name.lower().removesuffix(".gz").removesuffix(suffix_of(path))
        settled = settled_objective(objective, roles, name)
        read = _long if roles.long else _wide
        log = read(path, table, roles, given, Failure(failure_cost, settled))
        log = replace(log, name=name, objective=settled, unit=unit, notes=(*notes, *log.notes))
    if len(log.value) < LEAST_ROWS:
        raise DataError(
            f"{path} has {plural(len(log.value), 'value')}: too few to learn from, give at least {LEAST_ROWS}"
        )
    if log.n_arms < 2:
        raise DataError(f"{path}: {log.arms[0]!r} is the only arm; a choice needs at least two")
    return _in_order(log)


def _in_order(log: Log) -> Log:
    """The log sorted by time."""
    if len(log.time) < 2 or bool((log.time[1:] >= log.time[:-1]).all()):
        return log
    return log.taken(np.argsort(log.time, kind="stable"))


# --- the long form --------------------------------------------------------------------------------------


def _long(path: Path, table: pl.LazyFrame, roles: Roles, given: Columns, failure: Failure) -> Log:
    """The log of a table with one row per decision."""
    import polars as pl

    (reward,) = roles.values
    assert roles.arm is not None
    raw, value = pl.col(reward), number_of(table, reward)
    wanted = [value.alias("value"), is_bad(raw, value, table, reward).alias("bad")]
    wanted += _as_codes(table, {"arm": roles.arm, "agent": roles.agent, "status": given.status})
    if roles.time is not None:
        wanted.append(time_of(table, roles.time).alias("time"))
    frame = table.select(wanted).collect(engine="streaming")
    refuse_bad(path, table, reward, frame["bad"])
    if given.status is not None:
        good = succeeded(path, frame["status"].dtype.categories.to_list(), given)  # type: ignore[attr-defined]
        frame = frame.with_columns(pl.when(pl.col("status").cast(pl.String).is_in(good)).then("value"))
    frame = frame.drop("bad", "status", strict=False)
    rows, notes = frame.height, _ignored(roles)
    names = [name for name in frame.columns if name not in ("time", "value")]
    if any(frame[name].null_count() for name in names):
        frame = frame.drop_nulls(names)
        notes.append(f"{plural(rows - frame.height, 'row')} without arm or agent left out.")
    if given.arms:
        known = frame["arm"].cast(pl.String).unique().to_list()
        for arm in given.arms:
            if arm not in known:
                raise InputError(f"{path}: no arm is called {arm!r}{nearest(arm, sorted(known))}")
        frame = frame.filter(pl.col("arm").cast(pl.String).is_in(list(given.arms)))
    frame, more = with_time(path, frame)
    arms, code = _codes(frame["arm"])
    if len(arms) > MOST_ARMS:
        raise refuse_counter(path, roles.arm, f"has {len(arms):,} different values")
    agents, agent = _agents(frame)
    outcome, time = (
        frame.drop_in_place(name).to_numpy().astype(np.float64, copy=False) for name in ("value", "time")
    )
    failed, missing = np.isnan(outcome), np.zeros((len(agents or "."), len(arms)), np.int64)
    kept: NDArray[np.bool_] | slice = ~failed if failed.any() else slice(None)
    cost = failure.value(outcome[kept])
    if failed.any():
        np.add.at(missing, (agent[failed], code[failed]), 1)
        kept = kept if cost is None else slice(None)
        outcome = np.where(failed, np.nan if cost is None else cost, outcome)
        notes.append(_missing_note(int(failed.sum()), len(failed), "row", cost))
    return Log(
        "",
        arms,
        agents,
        "maximise",
        "",
        time[kept],
        agent[kept],
        code[kept],
        outcome[kept],
        roles.time is not None,
        (*notes, *more),
        missing,
        cost,
    )


def _missing_note(count: int, of: int, what: str, cost: float | None) -> str:
    """How many outcomes are missing, and what became of them."""
    done = "left out" if cost is None else f"each counts as {cost:g}"
    return f"{plural(count, what)} of {of:,} ({count / of:.1%}) without an outcome: {done}."


# --- the wide form --------------------------------------------------------------------------------------


def _wide(path: Path, table: pl.LazyFrame, roles: Roles, given: Columns, failure: Failure) -> Log:
    """The log of a table with one column per arm."""
    import polars as pl

    wanted: list[pl.Expr] = []
    for k, name in enumerate(roles.values):
        value = number_of(table, name)
        wanted += [value.alias(f"v{k}"), is_bad(pl.col(name), value, table, name).alias(f"b{k}")]
    wanted += _as_codes(table, {"agent": roles.agent})
    if roles.time is not None:
        wanted.append(time_of(table, roles.time).alias("time"))
    frame = table.select(wanted).collect(engine="streaming")
    if frame.height == 0:
        raise DataError(f"{path} is empty: it needs a header with the names of the columns, then rows")
    taken, words = [], []
    for k, name in enumerate(roles.values):
        if not given.arms and float(frame[f"b{k}"].mean() or 0.0) > MOSTLY:  # type: ignore[arg-type]
            words.append(name)
            continue
        refuse_bad(path, table, name, frame[f"b{k}"])
        taken.append((name, frame[f"v{k}"]))
    notes = _ignored(replace(roles, ignored=(*roles.ignored, *words)))
    frame, more = with_time(
        path, frame.select([c for c in ("agent", "time") if c in frame.columns] or ["v0"])
    )
    agents, agent = _agents(frame)
    if not given.arms:
        _refuse_counters(path, taken, agent)
    if not taken:
        raise DataError(f"{path}: no column holds numbers: there are no arms to choose from")
    values = np.column_stack([column.to_numpy().astype(np.float64) for _, column in taken])
    there = ~np.isnan(values)
    # Where most rows hold one value, that of the arm chosen, an empty cell is no failure.
    full = bool((there.sum(axis=1) > 1).mean() > MOSTLY)
    failed = ~there & there.any(axis=1, keepdims=True) & full
    missing = np.zeros((len(agents or "."), len(taken)), np.int64)
    np.add.at(missing, agent, failed)
    cost = failure.value(values[there]) if full else None
    if failure.cost is not None and not full:
        raise DataError(
            f"{path}: most rows hold one value, so that empty cells are no failures: no cost for them"
        )
    if not there.all():
        counted = None if not failed.any() else cost
        notes.append(_missing_note(int((~there).sum()), values.size, "cell", counted))
    if cost is not None:
        values, there = np.where(failed, cost, values), there | failed
    row, arm = np.nonzero(there)
    return Log(
        "",
        tuple(name for name, _ in taken),
        agents,
        "maximise",
        "",
        frame["time"].to_numpy().astype(np.float64)[row],
        agent[row],
        arm.astype(np.int32),
        values[there],
        roles.time is not None,
        (*notes, *more),
        missing if full else None,
        cost,
    )


def _refuse_counters(path: Path, taken: list[tuple[str, pl.Series]], agent: NDArray[np.int32]) -> None:
    """A column that only counts is never an arm: over the file, or for every agent."""
    by_agent = np.argsort(agent, kind="stable")
    same = np.diff(agent[by_agent]) == 0
    for name, column in taken:
        values = column.to_numpy().astype(np.float64)
        if len(values) < LEAST_ROWS:
            continue
        if looks_like_a_counter(name):
            raise refuse_counter(path, name, "is called like a row number")
        steps = np.diff(values)
        inside = np.diff(values[by_agent])[same]
        rises = bool((steps >= 0).all() and (steps > 0).mean() * len(steps) >= LEAST_ROWS / 2)
        always = bool((steps > 0).all() or (steps < 0).all() or rises)
        if always or (len(inside) > len(values) / 2 and bool((inside > 0).all() or (inside < 0).all())):
            raise refuse_counter(path, name, "only goes one way")


# --- names ----------------------------------------------------------------------------------------------


def _as_codes(table: pl.LazyFrame, roles: dict[str, str | None]) -> list[pl.Expr]:
    """Columns of names as numbers. The file is scanned once more, for the names: no text is kept per row."""
    import polars as pl

    cells = {
        role: pl.col(column).cast(pl.String).str.strip_chars()
        for role, column in roles.items()
        if column is not None
    }
    if not cells:
        return []
    pairs = table.select(cell.alias(role) for role, cell in cells.items())
    found = pairs.unique().collect(engine="streaming")
    return [
        cell.cast(pl.Enum(sorted(found[role].unique().drop_nulls().to_list(), key=_natural))).alias(role)
        for role, cell in cells.items()
    ]


def _agents(frame: pl.DataFrame) -> tuple[tuple[str, ...] | None, NDArray[np.int32]]:
    """The names of the agents, if there is a column of them, and the number of each row's."""
    return _codes(frame["agent"]) if "agent" in frame.columns else (None, np.zeros(frame.height, np.int32))


def _codes(names: pl.Series) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Those of an Enum's names that occur, in its order, and the number of each row's."""
    import polars as pl

    codes = names.to_physical().cast(pl.Int32)
    used = np.unique(codes.unique().to_numpy())
    known = names.dtype.categories.to_list()  # type: ignore[attr-defined]
    place = np.zeros(len(known), dtype=np.int32)
    place[used] = np.arange(len(used))
    return tuple(known[code] for code in used), place[codes.to_numpy()]


def _natural(name: str) -> list[tuple[int, int, str]]:
    """a2 before a10."""
    return [
        (0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part
    ]


def _ignored(roles: Roles) -> list[str]:
    """A note on the columns that are not used."""
    if not roles.ignored:
        return []
    shown = ", ".join(repr(name) for name in roles.ignored[:8]) + (", ..." if len(roles.ignored) > 8 else "")
    return [f"Ignored {plural(len(roles.ignored), 'column')}: {shown}."]
