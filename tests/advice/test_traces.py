"""Recorded rewards from files, good and bad."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import rumormill as rm
from rumormill.advice.tails import LEAST_VALUES
from rumormill.advice.traces import read_traces

ROWS = 120


def table() -> pl.DataFrame:
    rng = np.random.default_rng(1)
    return pl.DataFrame(
        {"fast": rng.standard_normal(ROWS), "slow": rng.integers(0, 9, ROWS), "far": rng.random(ROWS)}
    )


def test_every_format_gives_the_same_values(tmp_path: Path) -> None:
    frame = table()
    frame.write_csv(tmp_path / "a.csv")
    frame.write_csv(tmp_path / "a.tsv", separator="\t")
    frame.write_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.tsv", "a.parquet"):
        traces = read_traces(tmp_path / name)
        assert traces.arms == ("fast", "slow", "far")
        np.testing.assert_array_equal(traces.values, frame.to_numpy())


def test_columns_can_be_chosen(tmp_path: Path) -> None:
    table().with_columns(when=pl.lit("monday")).write_csv(tmp_path / "a.csv")
    traces = read_traces(tmp_path / "a.csv", ["far", "fast"])
    assert traces.arms == ("far", "fast")
    np.testing.assert_array_equal(traces.values, table().select("far", "fast").to_numpy())
    with pytest.raises(rm.InputError, match="no column 'fats': did you mean 'fast'"):
        read_traces(tmp_path / "a.csv", ["fats", "far"])


def _lines(*changes: tuple[int, str]) -> str:
    """A file of two columns with some lines replaced; line 0 is the header."""
    lines = ["a,b", *(f"{i},{i * i}" for i in range(ROWS))]
    for at, text in changes:
        lines[at] = text
    return "\n".join(lines) + "\n"


BAD_FILES = {
    "empty": ("", "is empty: it needs a header"),
    "header only": ("a,b\n", "is empty: it needs a header"),
    "one column": ("a\n" + "1\n2\n" * ROWS, "'a' is the only column; a choice needs at least two arms"),
    "semicolons": ("a;b\n" + "1;2\n" * ROWS, "'a;b' is the only column; .*comma between them"),
    "no header": ("1,2\n" * ROWS, "the first line holds numbers"),
    "same name": (_lines((0, "a,a")), "two columns are called 'a'"),
    "few rows": ("a,b\n" + "1,2\n3,4\n" * 20, f"has 40 rows: too few .* at least {LEAST_VALUES}"),
    "text": (_lines((7, "6,dear")), "column 'b', row 7 holds 'dear'"),
    "nan": (_lines((3, "nan,5")), "column 'a', row 3 holds 'nan'"),
    "infinite": (_lines((3, "2,-inf")), "column 'b', row 3 holds '-inf'"),
    "gap": (_lines((9, "8,")), "column 'b', row 9 is empty"),
    "two bad": (_lines((4, "x,1"), (6, "y,1")), r"column 'a', row 4 holds 'x' \(and 1 more\)"),
    "constant": ("a,b\n" + "1,7\n2,7\n" * ROWS, f"column 'b' is constant \\(7 in all {2 * ROWS} rows\\)"),
    "ragged": (_lines((5, "1,2,3")), "cannot be read as a table"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_are_refused_in_one_line(case: str, tmp_path: Path) -> None:
    text, message = BAD_FILES[case]
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(rm.DataError, match=message) as caught:
        read_traces(tmp_path / "a.csv")
    assert "\n" not in str(caught.value)


def test_bad_parquet(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no more")
    with pytest.raises(rm.DataError, match="cannot be read as a table"):
        read_traces(tmp_path / "a.parquet")
    holes = table().with_columns(fast=pl.when(pl.int_range(ROWS) == 4).then(None).otherwise(pl.col("fast")))
    holes.write_parquet(tmp_path / "b.parquet")
    with pytest.raises(rm.DataError, match="column 'fast', row 5 is empty"):
        read_traces(tmp_path / "b.parquet")
    table().with_columns(slow=pl.lit([1, 2])).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(rm.DataError, match="column 'slow' holds List"):
        read_traces(tmp_path / "c.parquet")


def test_no_such_file(tmp_path: Path) -> None:
    with pytest.raises(rm.InputError, match="there is no such file"):
        read_traces(tmp_path / "a.csv")
    with pytest.raises(rm.InputError, match=r"must end in \.csv"):
        read_traces(tmp_path / "a.xlsx")
