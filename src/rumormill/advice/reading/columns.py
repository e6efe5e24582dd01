"""Roles of columns, and their values as numbers and times; a bad cell is refused with its row."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rumormill.arms.base import Objective
from rumormill.errors import DataError, InputError
from rumormill.text import nearest
from rumormill.validate import LARGEST_REWARD

if TYPE_CHECKING:
    import polars as pl

# fmt: off
TIMES = (
    "time", "timestamp", "ts", "t", "date", "datetime", "when", "slot", "slice", "round", "step", "epoch",
    "month", "week", "day", "hour", "minute",
)
AGENTS = (
    "agent", "client", "node", "host", "user", "worker", "peer", "probe", "vantage", "who", "gateway",
    "team", "site", "store", "tenant", "customer", "segment", "workload", "region",
)
ARMS = (
    "arm", "choice", "action", "option", "mirror", "route", "server", "variant", "endpoint", "target",
    "provider", "model", "resolver", "solver", "algorithm", "treatment", "campaign", "item", "backend",
)
# fmt: on
GAINS = ("reward", "revenue", "profit", "score", "throughput", "gain", "clicks", "conversion", "sales")
COSTS = ("latency", "cost", "loss", "error", "errors", "rtt", "delay", "duration", "ms", "seconds", "penalty")
VALUES = ("value", "outcome", "result", "y", *GAINS, *COSTS)
COUNTERS = ("id", "index", "idx", "row", "nr", "no", "number", "unnamed", "")


@dataclass(frozen=True)
class Columns:
    """Column names given by the caller; None or empty: found from the names."""

    time: str | None = None
    agent: str | None = None
    arm: str | None = None
    reward: str | None = None
    arms: tuple[str, ...] = ()
    """Long form: the arms to take. Wide form: the columns to take as arms."""
    ignore: tuple[str, ...] = ()
    status: str | None = None
    """Long form: the column that says whether a try succeeded."""
    ok: tuple[str, ...] = ()
    """The statuses of success; empty: the words and HTTP codes of `SUCCESS`."""


@dataclass(frozen=True)
class Roles:
    """The role of every column."""

    time: str | None
    agent: str | None
    arm: str | None
    """Long form only."""
    values: tuple[str, ...]
    """The reward in the long form, the arms in the wide form."""
    ignored: tuple[str, ...]

    @property
    def long(self) -> bool:
        """Whether the table has one row per decision."""
        return self.arm is not None


class ObjectiveNeededError(InputError):
    """The objective is missing; `suggestion` is the one that a column name suggests."""

    def __init__(self, message: str, suggestion: Objective | None) -> None:
        super().__init__(message)
        self.suggestion = suggestion


def roles_of(path: object, names: Sequence[str], given: Columns) -> Roles:
    """The roles of the columns: as given, else by name."""
    asked = (given.time, given.agent, given.arm, given.reward, given.status, *given.ignore)
    for name in asked:
        if name is not None and name not in names:
            raise InputError(f"{path} has no column {name!r}{nearest(name, names)}")
    free = [name for name in names if name not in asked]
    arm = given.arm or _one(free, ARMS)
    reward = given.reward or _value_column([name for name in free if name != arm])
    long = given.arm is not None or given.reward is not None or (arm is not None and reward is not None)
    if long and (arm is None or reward is None):
        missing = "arm" if arm is None else "reward"
        raise InputError(f"{path}: which column is the {missing}? Say so with --{missing}-column NAME")
    if not long:
        if given.status is not None:
            raise InputError(f"{path}: --status-column is for logs with a column of arms: say --arm-column")
        arm = reward = None
        for name in given.arms:
            if name not in names:
                raise InputError(f"{path} has no column {name!r}{nearest(name, names)}")
    named = [*given.arms] if not long else [arm, reward]
    rest = [name for name in free if name not in named]
    time, agent = given.time or _one(rest, TIMES), given.agent or _one(rest, AGENTS)
    rest = [name for name in rest if name not in (time, agent)]
    if long:
        assert reward is not None
        return Roles(time, agent, arm, (reward,), (*given.ignore, *rest))
    if given.arms:
        return Roles(time, agent, None, tuple(dict.fromkeys(given.arms)), (*given.ignore, *rest))
    return Roles(time, agent, None, tuple(rest), given.ignore)


# Rows that show what a column holds.
HEAD = 1_000


def guess_long(path: object, table: pl.LazyFrame, roles: Roles, given: Columns) -> tuple[Roles, list[str]]:
    """The long form where the names did not say so and the cells allow no other reading, with a note.

    One column of numbers and one of repeated texts: the second names the arm. Of several columns of texts
    none is guessed: refused, with their names.
    """
    if roles.long or given.arms:
        return roles, []
    head = table.head(HEAD).collect()
    texts = [name for name in roles.values if _share_of_numbers(head[name]) < 0.5]
    numbers = [name for name in roles.values if name not in texts and not looks_like_a_counter(name)]
    dates = [name for name in texts if roles.time is None and _are_dates(head[name])]
    names = [name for name in texts if name not in dates and 1 < head[name].n_unique() <= len(head) / 2]
    arm = names[0] if len(names) == 1 else _one(names, ARMS)
    if len(numbers) != 1 or len(dates) > 1:
        return roles, []
    if not names and roles.agent is not None and _share_of_numbers(head[roles.agent]) < 0.5:
        names = [roles.agent]
    if arm is None and names:
        listed = ", ".join(repr(name) for name in names)
        raise InputError(
            f"{path}: {numbers[0]!r} is the only column of numbers, so a row is one decision: which column "
            f"names the arm ({listed})? Say --arm-column NAME, and --agent-column NAME for the one that "
            "says who measured"
        )
    if arm is None:
        return roles, []
    time = roles.time or (dates[0] if dates else None)
    rest = tuple(name for name in roles.values if name not in (arm, numbers[0], time))
    said = f"{arm!r} names the arm, {numbers[0]!r} is the outcome" + (f", {time!r} the time" if dates else "")
    notes = [
        f"Guessed from the cells: {said}; --arm-column, --reward-column and --time-column say otherwise."
    ]
    return Roles(time, roles.agent, arm, (numbers[0],), (*roles.ignored, *rest)), notes


def _share_of_numbers(column: pl.Series) -> float:
    """The share of the cells that are numbers, of those that hold anything."""
    import polars as pl

    if column.dtype != pl.String:
        return float(column.dtype.is_numeric() or column.dtype == pl.Boolean)
    cells = column.str.strip_chars().drop_nulls()
    cells = cells.filter(~cells.str.to_lowercase().is_in([*MISSING, *FAILED]))
    return 1.0 if cells.is_empty() else 1.0 - cells.cast(pl.Float64, strict=False).null_count() / len(cells)


def _are_dates(column: pl.Series) -> bool:
    import polars as pl

    if column.dtype != pl.String:
        return column.dtype.is_temporal()
    cells = column.drop_nulls()
    return not cells.is_empty() and dates_of(cells)[0].null_count() == 0


# Twelve-hour clocks stand with the month first, as where they are used.
TWELVE_HOURS = tuple(
    f"{date} %I:%M{seconds}{gap}%p"
    for date in ("%m/%d/%Y", "%Y-%m-%d", "%m/%d/%y")
    for seconds in (":%S", "")
    for gap in (" ", "")
)


def dates_of(texts: pl.Series) -> tuple[pl.Series, str]:
    """Times in UTC, null where a text is none, and what was assumed about their form."""
    import polars as pl

    if texts.str.contains("(?i)[0-9] ?[ap]m$").any():
        upper = texts.str.strip_chars().str.to_uppercase()
        for form in TWELVE_HOURS:
            time = upper.str.to_datetime(form, strict=False, time_zone="UTC", time_unit="us")
            if time.null_count() == texts.null_count():
                first = " the month is taken to stand first." if form.startswith("%m") else ""
                return time, f"Times are on a 12-hour clock{':' if first else '.'}{first}"
    try:
        return texts.str.to_datetime(strict=False, time_zone="UTC", time_unit="us"), ""
    except pl.exceptions.PolarsError:  # no form is known for them
        return pl.Series(texts.name, [None] * len(texts), pl.Datetime("us", "UTC")), ""


def _one(names: Sequence[str], known: Sequence[str]) -> str | None:
    """The first column whose whole name is one of the known words; user_id is as good as user."""
    for word in known:
        for name in names:
            if name.strip().lower() == word or words_of(name) - {"id", "name"} == {word}:
                return name
    return None


def _value_column(names: Sequence[str]) -> str | None:
    """The column with the reward, by its name."""
    exact = _one(names, VALUES)
    if exact is not None:
        return exact
    near = [name for name in names if words_of(name) & set(VALUES)]
    return near[0] if len(near) == 1 else None


def words_of(name: str) -> set[str]:
    """The words in a name: latency_ms has two."""
    return set(re.split(r"[^a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower())) - {""}


def looks_like_a_counter(name: str) -> bool:
    """Whether a column is, by its name, a row number."""
    return name.strip().lower() in COUNTERS


def settled_objective(given: Objective | None, roles: Roles, name: str) -> Objective:
    """The objective as given. One that a name suggests must be confirmed: costs are called rewards too."""
    if given is not None:
        return given
    for word, kind in [*((w, "cost") for w in COSTS), *((w, "gain") for w in GAINS)]:
        for column in (*roles.values, name):
            if word in words_of(column):
                way: Objective = "minimise" if kind == "cost" else "maximise"
                less = "less" if way == "minimise" else "more"
                raise ObjectiveNeededError(
                    f"{column!r} suggests that {less} is better: say so with --{way} (or the other way with "
                    f"--{'maximise' if way == 'minimise' else 'minimise'})",
                    way,
                )
    raise ObjectiveNeededError(
        "is more better, or less? Say --maximise for rewards, --minimise for costs such as latency", None
    )


def refuse_counter(path: object, name: str, why: str) -> DataError:
    """The error for a column that only counts."""
    return DataError(
        f"{path}: column {name!r} {why}: it looks like a row number or a time, not like an arm. Take it as "
        f"the time with --time-column {name!r}, or leave it out with --ignore {name!r}"
    )


MISSING = ("", "na", "n/a", "nan", "null", "none", "-", "?")
# Cells of an outcome that failed; they count as missing.
FAILED = ("timeout", "timed out", "time-out", "error", "err", "fail", "failed", "failure")
# Statuses of a success, and of HTTP all below 400; of a failure: FAILED, "false", "no", and HTTP from 400 on.
SUCCESS = ("ok", "success", "succeeded", "successful", "true", "yes", "done", "pass", "passed", "completed")
HTTP = range(100, 600)


def succeeded(path: object, statuses: Sequence[str], given: Columns) -> list[str]:
    """Those of some statuses that mean success; unknown ones are refused."""
    if given.ok:
        for word in given.ok:
            if word not in statuses:
                raise InputError(f"{path}: no row has the status {word!r}{nearest(word, statuses)}")
        return [*given.ok]
    good, unknown = [], []
    for status in statuses:
        word = status.strip().lower()
        code = int(word) if word.isascii() and word.isdigit() and int(word) in HTTP else None
        if word in SUCCESS or (code is not None and code < 400):
            good.append(status)
        elif code is None and word not in (*FAILED, *MISSING, "false", "no", "cancelled", "aborted"):
            unknown.append(status)
    if unknown:
        listed = ", ".join(repr(status) for status in unknown[:4])
        raise InputError(
            f"{path}: is the status {listed} in {given.status!r} a success? Name those of success with --ok"
        )
    return good


def number_of(table: pl.LazyFrame, name: str) -> pl.Expr:
    """The cells as floats; null where there is none. NaN is missing too."""
    import polars as pl

    kind = table.collect_schema()[name]
    cell = pl.col(name)
    if kind == pl.String:
        cell = cell.str.strip_chars()
    elif not (kind.is_numeric() or kind == pl.Boolean):
        return pl.lit(None, dtype=pl.Float64)
    return cell.cast(pl.Float64, strict=False).fill_nan(None)


def is_bad(raw: pl.Expr, value: pl.Expr, table: pl.LazyFrame, name: str) -> pl.Expr:
    """Cells that hold neither a number nor a word for a missing value."""
    import polars as pl

    too_large = value.abs() > LARGEST_REWARD
    kind = table.collect_schema()[name]
    if kind == pl.String:
        word = raw.str.strip_chars().str.to_lowercase()
        return (
            (value.is_null() & raw.is_not_null() & ~word.is_in([*MISSING, *FAILED]))
            | too_large.fill_null(False)
        ).fill_null(False)
    if kind.is_numeric() or kind == pl.Boolean:
        return too_large.fill_null(False)
    return raw.is_not_null()


def refuse_bad(path: Path, table: pl.LazyFrame, name: str, bad: pl.Series) -> None:
    """Refuse the first cell that is no number, with its row."""
    count = int(bad.sum())
    if not count:
        return
    row = int(bad.arg_true()[0])
    cell = table.select(name).slice(row, 1).collect()[name][0]
    more = f" (and {count - 1:,} more)" if count > 1 else ""
    raise DataError(
        f"{path}: column {name!r}, row {row + 1:,} holds {str(cell)!r}{more}: every cell must be a finite "
        f"number (at most {LARGEST_REWARD:g} in size) or empty; drop or repair the row, or choose other "
        "columns"
    )


def time_of(table: pl.LazyFrame, name: str) -> pl.Expr:
    """Numbers where the times are numbers; else as they are, to be read as dates later."""
    import polars as pl

    kind = table.collect_schema()[name]
    if kind == pl.String:
        head = table.select(pl.col(name).str.strip_chars()).head(1_000).collect()[name].drop_nulls()
        numbers = head.cast(pl.Float64, strict=False).null_count() == 0
        cell = pl.col(name).str.strip_chars()
        return cell.cast(pl.Float64, strict=False) if numbers else cell
    return pl.col(name)


def with_time(path: Path, frame: pl.DataFrame) -> tuple[pl.DataFrame, list[str]]:
    """The frame with its time as a number: seconds or what the file counts in, else the row."""
    import polars as pl

    notes: list[str] = []
    if "time" not in frame.columns:
        return frame.with_columns(pl.Series("time", np.arange(frame.height, dtype=np.float64))), []
    time = frame["time"]
    if time.dtype == pl.String:
        given = time
        time, said = dates_of(given)
        notes += [said] if said else []
        bad = (time.is_null() & given.is_not_null()).arg_true()
        if len(bad):
            row = int(bad[0])
            raise DataError(
                f"{path}: the time in row {row + 1:,} is {given[row]!r}: neither a number nor a date"
            )
    if time.dtype.is_temporal():
        time = time.cast(pl.Datetime("us")) if time.dtype == pl.Date else time
        time = time.to_physical().cast(pl.Float64) / 1e6
    time = time.cast(pl.Float64, strict=False)
    if time.null_count() or not bool(time.is_finite().all()):
        row = int((time.is_null() | ~time.is_finite().fill_null(False)).arg_true()[0])
        raise DataError(f"{path}: row {row + 1:,} has no time: drop or repair it")
    notes += [] if time.is_sorted() else ["Rows were not in the order of their times: they were sorted."]
    return frame.with_columns(time.alias("time")), notes
