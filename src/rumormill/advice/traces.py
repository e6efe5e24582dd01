"""Recorded rewards from a file: one column per arm, one row per record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rumormill.advice.tails import LEAST_VALUES
from rumormill.errors import DataError, InputError
from rumormill.text import nearest

if TYPE_CHECKING:
    import polars as pl

SEPARATORS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
FORM = "a header with the names of the arms, then a row per record"


@dataclass(frozen=True)
class Traces:
    """What was recorded: `values[row, arm]`, all finite, no column constant."""

    arms: tuple[str, ...]
    values: NDArray[np.float64]


def is_traces(path: str | PathLike[str]) -> bool:
    """Whether a file is, by its name, a table of recorded rewards."""
    return Path(path).suffix.lower() in (*SEPARATORS, *PARQUET)


def read_traces(path: str | PathLike[str], arms: Sequence[str] | None = None) -> Traces:
    """The table in a CSV, TSV or Parquet file; `arms` names the columns to take, all by default.

    Rows are counted from 1, the header of a CSV file aside.
    """
    path = Path(path)
    if not is_traces(path):
        raise InputError(f"{path} is no table: its name must end in .csv, .tsv, .parquet or .pq")
    table = _read(path)
    for name in arms or ():
        if name not in table.columns:
            raise InputError(f"{path} has no column {name!r}{nearest(name, table.columns)}")
    names = list(dict.fromkeys(arms)) if arms else table.columns
    if not names or table.height == 0:
        raise DataError(f"{path} is empty: it needs {FORM}")
    if len(names) < 2:
        raise DataError(
            f"{path}: {names[0]!r} is the only column; a choice needs at least two arms, one column each "
            "(comma between them in .csv, tab in .tsv)"
        )
    values = np.column_stack([_numbers(path, table[name]) for name in names])
    if len(values) < LEAST_VALUES:
        raise DataError(f"{path} has {len(values)} rows: too few to learn from, give at least {LEAST_VALUES}")
    for name, column in zip(names, values.T, strict=True):
        if (column == column[0]).all():
            raise DataError(
                f"{path}: column {name!r} is constant ({column[0]:g} in all {len(values):,} rows): "
                "an arm that never varies is known already, leave it out"
            )
    return Traces(tuple(names), values)


def _read(path: Path) -> pl.DataFrame:
    """All columns; those of a text file as text, so that a bad cell can be named."""
    import polars as pl

    if not path.is_file():
        raise InputError(f"{path}: there is no such file")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty: it needs {FORM}")
    try:
        if path.suffix.lower() in PARQUET:
            return pl.read_parquet(path)
        table = pl.read_csv(path, separator=SEPARATORS[path.suffix.lower()], infer_schema=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} cannot be read as a table: {str(error).splitlines()[0]}") from None
    repeated = [name for name in table.columns if "_duplicated_" in name]
    if repeated:
        raise DataError(
            f"{path}: two columns are called {repeated[0].split('_duplicated_')[0]!r}: rename one"
        )
    if all(_is_number(name) for name in table.columns):
        raise DataError(f"{path}: the first line holds numbers; it must name the arms, one per column")
    return table


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(path: Path, column: pl.Series) -> NDArray[np.float64]:
    """The column as floats; the first cell that is none is named."""
    import polars as pl

    if not (column.dtype == pl.String or column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise DataError(f"{path}: column {column.name!r} holds {column.dtype}, not numbers: leave it out")
    given = column.str.strip_chars() if column.dtype == pl.String else column
    cells = given.cast(pl.Float64, strict=False)
    bad = (cells.is_null() | ~cells.fill_null(0.0).is_finite()).arg_true()
    if len(bad):
        row = int(bad[0])
        cell = column[row]
        shown = "is empty" if cell is None or cell == "" else f"holds {cell!r}"
        more = f" (and {len(bad) - 1:,} more)" if len(bad) > 1 else ""
        raise DataError(
            f"{path}: column {column.name!r}, row {row + 1} {shown}{more}: every cell must be a finite "
            "number; drop or repair the row, or choose other columns"
        )
    return cells.to_numpy().astype(np.float64)
