"""Logs: agent, arm, time and reward of every decision, from long or wide tables.

Long: columns time, agent, arm, reward. Wide: a column per arm, optionally agent and time. Files are scanned
lazily into columns; 10⁷ rows take a few hundred megabytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    time_of,
    with_time,
)
from rumormill.advice.reading.formats import scanned, suffix_of
from rumormill.arms.objective import Objective, checked_objective, sign_of
from rumormill.errors import DataError, InputError
from rumormill.text import nearest, plural

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
        return replace(found, agents=names, agent=number[found.agent].astype(np.int32))


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
) -> Log:
    """Read a log from a file. Missing cells and rows without a reward are left out, with a note.

    Args:
        path: CSV, TSV, Parquet or Arrow, optionally compressed (.gz).
        columns: Roles of the columns; by default found from their names.
        objective: "maximise" or "minimise"; `ObjectiveNeededError` if missing.
        unit: Unit of the values, for example "ms"; default none.

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
        log = read(path, table, roles, given)
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


def _long(path: Path, table: pl.LazyFrame, roles: Roles, given: Columns) -> Log:
    """The log of a table with one row per decision."""
    import polars as pl

    (reward,) = roles.values
    assert roles.arm is not None
    raw, value = pl.col(reward), number_of(table, reward)
    wanted = [
        value.alias("value"),
        is_bad(raw, value, table, reward).alias("bad"),
    ]
    wanted += _as_codes(table, {"arm": roles.arm, "agent": roles.agent})
    if roles.time is not None:
        wanted.append(time_of(table, roles.time).alias("time"))
    frame = table.select(wanted).collect(engine="streaming")
    refuse_bad(path, table, reward, frame["bad"])
    frame = frame.drop("bad")
    rows, notes = frame.height, _ignored(roles)
    frame = frame.filter(
        pl.all_horizontal(pl.col(name).is_not_null() for name in frame.columns if name != "time")
    )
    if frame.height < rows:
        notes.append(f"{plural(rows - frame.height, 'row')} without reward, arm or agent left out.")
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
    agents, agent = (
        _codes(frame["agent"]) if roles.agent is not None else (None, np.zeros(frame.height, np.int32))
    )
    return Log(
        "",
        arms,
        agents,
        "maximise",
        "",
        frame["time"].to_numpy().astype(np.float64),
        agent,
        code,
        frame["value"].to_numpy().astype(np.float64),
        roles.time is not None,
        (*notes, *more),
    )


# --- the wide form --------------------------------------------------------------------------------------


def _wide(path: Path, table: pl.LazyFrame, roles: Roles, given: Columns) -> Log:
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
    agents, agent = (
        _codes(frame["agent"]) if roles.agent is not None else (None, np.zeros(frame.height, np.int32))
    )
    if not given.arms:
        _refuse_counters(path, taken, agent)
    if not taken:
        raise DataError(f"{path}: no column holds numbers: there are no arms to choose from")
    values = np.column_stack([column.to_numpy().astype(np.float64) for _, column in taken])
    there = ~np.isnan(values)
    empty = int(values.size - there.sum())
    if empty:
        share = empty / values.size
        notes.append(f"{plural(empty, 'cell')} of {values.size:,} ({share:.1%}) missing: they are left out.")
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


def _codes(names: pl.Series) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Those of an Enum's names that occur, in its order, and the number of each row's."""
    import polars as pl

    codes = names.to_physical().cast(pl.Int32).to_numpy()
    used = np.unique(codes)
    known = names.dtype.categories.to_list()  # type: ignore[attr-defined]
    return tuple(known[code] for code in used), np.searchsorted(used, codes).astype(np.int32)


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
