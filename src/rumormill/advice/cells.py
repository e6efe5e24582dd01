"""Cells of a table as numbers and times; what is neither is refused with its row."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from rumormill.errors import DataError
from rumormill.validate import LARGEST_REWARD

if TYPE_CHECKING:
    import polars as pl

MISSING = ("", "na", "n/a", "nan", "null", "none", "-", "?")


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
    """Cells that hold something which is neither a number nor a word for nothing."""
    import polars as pl

    too_large = value.abs() > LARGEST_REWARD
    kind = table.collect_schema()[name]
    if kind == pl.String:
        word = raw.str.strip_chars().str.to_lowercase()
        return (
            (value.is_null() & raw.is_not_null() & ~word.is_in(list(MISSING))) | too_large.fill_null(False)
        ).fill_null(False)
    if kind.is_numeric() or kind == pl.Boolean:
        return too_large.fill_null(False)
    return raw.is_not_null()


def refuse_bad(path: Path, table: pl.LazyFrame, name: str, bad: pl.Series) -> None:
    """Name the first cell that is no number."""
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

    if "time" not in frame.columns:
        return frame.with_columns(pl.Series("time", np.arange(frame.height, dtype=np.float64))), []
    time = frame["time"]
    if time.dtype == pl.String:
        given = time
        time = time.str.to_datetime(strict=False, time_zone="UTC", time_unit="us")
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
    notes = [] if time.is_sorted() else ["Rows were not in the order of their times: they were sorted."]
    return frame.with_columns(time.alias("time")), notes
