"""Logs as people have them: forms, separators, encodings, packing, holes; and what is refused, where."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rumormill as rm
from rumormill.advice.reading.columns import Columns, ObjectiveNeededError
from rumormill.advice.reading.log import read_log
from rumormill.advice.reward_table import build_reward_table, unsupported

RNG = np.random.default_rng(0)
ROWS = 300
WIDE = pl.DataFrame(
    {
        "time": np.repeat(np.arange(100), 3),
        "client": ["c2", "c10", "b"] * 100,
        "m1": RNG.normal(size=ROWS),
        "m2": RNG.normal(size=ROWS),
        "note": ["x"] * ROWS,
    }
)


def numbers(count: int = 200) -> str:
    return "\n".join(f"{i},{RNG.normal()},{RNG.normal()}" for i in range(count))


def long_rows(count: int = 200) -> str:
    return "\n".join(
        f"2024-01-01T00:{i // 60:02d}:{i % 60:02d}Z,c{i % 4},{'ab'[i % 2]},{RNG.normal()},eu"
        for i in range(count)
    )


LONG = "timestamp,client,arm,reward,region\n"


def write_csv(path: Path) -> None:
    WIDE.write_csv(path)


def as_gzip(path: Path) -> None:
    path.write_bytes(gzip.compress(WIDE.write_csv().encode()))


WRITERS: dict[str, Callable[[Path], Any]] = {
    "wide.csv": write_csv,
    "semicolon.csv": lambda path: WIDE.write_csv(path, separator=";", decimal_comma=True),
    "tabs.tsv": lambda path: WIDE.write_csv(path, separator="\t"),
    "wide.parquet": WIDE.write_parquet,
    "wide.arrow": WIDE.write_ipc,
    "mark.csv": lambda path: path.write_bytes(b"\xef\xbb\xbf" + WIDE.write_csv().encode()),
    "utf16.csv": lambda path: path.write_bytes(WIDE.write_csv().encode("utf-16")),
    "utf16be.csv": lambda path: path.write_bytes(WIDE.write_csv().encode("utf-16-be")),
    "packed.csv.gz": as_gzip,
}


@pytest.mark.parametrize("name", WRITERS)
def test_one_table_in_every_dress(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    log = read_log(tmp_path / name, objective="minimise", unit="ms")
    assert (log.arms, log.agents) == (("m1", "m2"), ("b", "c2", "c10"))
    np.testing.assert_allclose(log.value.reshape(ROWS, 2), WIDE.select("m1", "m2").to_numpy())
    assert log.agent.reshape(100, 3, 2)[0].tolist() == [[1, 1], [2, 2], [0, 0]]
    assert log.time.reshape(100, 6)[7].tolist() == [7.0] * 6
    assert log.notes == ("Ignored 1 column: 'note'.",)
    assert (log.objective, log.better, log.amount(12.3456)) == ("minimise", "less", "12.3 ms")


def put(tmp_path: Path, text: str | bytes, name: str = "log.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_long_form(tmp_path: Path) -> None:
    log = read_log(put(tmp_path, LONG + long_rows()), objective="maximise")
    assert (log.arms, log.agents, log.objective) == (("a", "b"), ("c0", "c1", "c2", "c3"), "maximise")
    assert log.notes == ("Ignored 1 column: 'region'.",)
    assert np.diff(log.time).tolist() == [1.0] * 199


def test_names_are_mapped_by_options(tmp_path: Path) -> None:
    path = put(tmp_path, "a,b,c,d\n" + "\n".join(f"{i},n{i % 3},m{i % 2},{i * 0.5}" for i in range(200)))
    columns = Columns(time="a", agent="b", arm="c", reward="d")
    log = read_log(path, columns, objective="minimise")
    assert (log.arms, log.agents) == (("m0", "m1"), ("n0", "n1", "n2"))
    only = read_log(
        path, Columns(time="a", agent="b", arm="c", reward="d", arms=("m0", "m1")), objective="minimise"
    )
    np.testing.assert_array_equal(only.value, log.value)
    with pytest.raises(rm.InputError, match="no arm is called 'm3'"):
        read_log(path, Columns(time="a", agent="b", arm="c", reward="d", arms=("m3",)), objective="minimise")


def test_late_rows_are_sorted_and_rows_without_reward_left_out(tmp_path: Path) -> None:
    rows = [f"{i},c{i % 2},{'ab'[i % 2]},{i}" for i in range(200)]
    rows[10], rows[50] = rows[50], rows[10]
    rows[100] = "100,c0,a,"
    log = read_log(put(tmp_path, "time,agent,arm,reward\n" + "\n".join(rows)), objective="maximise")
    assert log.value.tolist() == [float(i) for i in range(200) if i != 100]
    assert log.notes == (
        "1 row of 200 (0.5%) without an outcome: left out.",
        "Rows were not in the order of their times: they were sorted.",
    )


def test_missing_cells_of_the_wide_form(tmp_path: Path) -> None:
    rows = "\n".join(f"{i},{'' if i % 4 else i},{'NA' if i % 4 == 0 else -i}" for i in range(400))
    log = read_log(put(tmp_path, "time,a,b\n" + rows), objective="maximise")
    assert len(log.value) == 400
    assert "400 cells of 800 (50.0%) without an outcome" in log.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("id,a,b\n" + numbers(), "column 'id' is called like a row number"),
        ("seq,a,b\n" + numbers(), "column 'seq' only goes one way"),
        ("time,a,b\n" + numbers() + "\n3,x,4", r"column 'a', row 201 holds 'x'"),
        ("time,a,b\n" + numbers() + "\n3,1e300,4", r"column 'a', row 201 holds '1e300'"),
        (("time,a,b\n" + numbers() + "\n3,").encode() + b"\xe9\xff,4\n", "line 202 is not UTF-8 text"),
        ("1,2,3\n4,5,6\n", "the first line holds numbers"),
        ("a,a,b\n" + numbers(), "two columns are called 'a'"),
        ("a\n1\n2\n", "'a' is the only column"),
        ("", "is empty"),
        ("a,b\n1,2\n3,4\n", "has 4 values: too few to learn from"),
        ("time,agent,a\n" + numbers(), "'a' is the only arm"),
        (b"a,b\n1,\x002\n", "is no text: line 2 holds zero bytes"),
        (
            "time,agent,arm,reward\n" + "\n".join(f"{i},c,{i},{i}" for i in range(2000)),
            "'arm' has 2,000 different",
        ),
        ("time,agent,arm,reward\nnever,c,a,1\n" * 1 + "x,c,b,2\n" * 120, "the time in row 1 is 'never'"),
    ],
)
def test_what_is_refused_and_where(text: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(rm.RumormillError, match=message):
        read_log(put(tmp_path, text), objective="maximise")


def test_a_counter_within_every_agent_is_no_arm(tmp_path: Path) -> None:
    rows = "\n".join(f"c{v},{i},{RNG.normal()},{RNG.normal()}" for v in range(3) for i in range(60))
    path = put(tmp_path, "client,n,a,b\n" + rows)
    with pytest.raises(rm.DataError, match=r"column 'n' only goes one way.*--time-column 'n'"):
        read_log(path, objective="maximise")
    assert read_log(path, Columns(time="n"), objective="maximise").arms == ("a", "b")
    assert read_log(path, Columns(ignore=("n",)), objective="maximise").arms == ("a", "b")


@pytest.mark.parametrize(
    ("header", "suggestion"),
    [
        ("time,a,b\n", None),
        ("time,latency_ms,b\n", "minimise"),
        ("time,errorRate,b\n", "minimise"),
        ("time,revenue,b\n", "maximise"),
    ],
)
def test_the_objective_is_asked_for(header: str, suggestion: str | None, tmp_path: Path) -> None:
    """Positive latencies were once maximised without a word."""
    with pytest.raises(ObjectiveNeededError) as asked:
        read_log(put(tmp_path, header + numbers()))
    assert asked.value.suggestion == suggestion


@pytest.mark.parametrize(("name", "way"), [("rtt", "less"), ("reward", "more")])
def test_a_long_log_is_asked_about_too(name: str, way: str, tmp_path: Path) -> None:
    """Nodes that minimise export their costs as rewards: the name alone decides nothing."""
    with pytest.raises(ObjectiveNeededError, match=f"'{name}' suggests that {way} is better"):
        read_log(put(tmp_path, LONG.replace("reward", name) + long_rows()))


def test_rounds_without_a_common_clock(tmp_path: Path) -> None:
    """Agents decide at their own times: rounds are made so that each decides about once."""
    rng = np.random.default_rng(2)
    times = np.sort(rng.random(600) * 1e5)
    rows = "\n".join(f"{t},c{i % 3},{'ab'[rng.integers(2)]},{rng.normal()}" for i, t in enumerate(times))
    table = build_reward_table(
        read_log(put(tmp_path, "time,agent,arm,reward\n" + rows), objective="maximise"), rng
    )
    assert (table.kind, table.rounds, table.n_agents) == ("chosen", 200, 3)
    assert np.isfinite(table.values).all()
    assert not unsupported(table).any()


def test_rounds_of_a_log_without_time(tmp_path: Path) -> None:
    """The n-th decision of every agent is round n, also where the file lists one agent after the other."""
    rows = "\n".join(
        f"c{v},{100 * v + i},{-i}" for v in range(2) for i in [*range(59, -1, -2), *range(0, 60, 2)]
    )
    table = build_reward_table(
        read_log(put(tmp_path, "client,a,b\n" + rows), objective="maximise"), np.random.default_rng(0)
    )
    assert (table.kind, table.values.shape) == ("full", (60, 2, 2))
    assert table.values[0].tolist() == [[59.0, -59.0], [159.0, -59.0]]


def test_holes_are_filled_from_the_same_agent_and_arm_about_the_same_time(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    t, v, k = (each.ravel() for each in np.meshgrid(range(400), range(4), range(3), indexing="ij"))
    value = 1000.0 * v + 10_000 * k + t
    keep = rng.random(len(t)) > 0.3
    frame = pl.DataFrame({"time": t, "agent": v, "arm": k, "reward": value}).filter(pl.Series(keep))
    frame.write_parquet(tmp_path / "holes.parquet")
    table = build_reward_table(read_log(tmp_path / "holes.parquet", objective="maximise"), rng)
    truth = value.reshape(400, 4, 3)
    assert table.kind == "partial"
    np.testing.assert_array_equal(table.values[table.recorded], truth[table.recorded])
    assert np.abs(table.values - truth).max() < 60


def test_a_line_with_too_many_cells_is_named(tmp_path: Path) -> None:
    rows = [f"{i},{i % 7}.5,{i % 5}.25" for i in range(300)]
    rows[40] += ",9"
    with pytest.raises(rm.DataError, match=r"more cells than the header has names \(line 42\)"):
        read_log(put(tmp_path, "time,a,b\n" + "\n".join(rows)), objective="maximise")


@pytest.mark.parametrize("name", ["client_id", "userId", "Node name"])
def test_an_id_of_the_agent_names_the_agent(name: str, tmp_path: Path) -> None:
    log = read_log(put(tmp_path, LONG.replace("client", name) + long_rows()), objective="maximise")
    assert log.agents == ("c0", "c1", "c2", "c3")


def decisions(header: str, cells: Callable[[int], str], count: int = 240) -> str:
    return header + "\n" + "\n".join(cells(i) for i in range(count))


GUESSED = {
    "one column of names": (
        decisions("timestamp,client,ns,rtime_x", lambda i: f"{i},c{i % 4},{'abc'[i % 3]},{RNG.normal()}"),
        ("a", "b", "c"),
        4,
        "'ns' names the arm, 'rtime_x' is the outcome;",
    ),
    "arm by name, outcome by its cells": (
        decisions("ts,shop,mirror,foo", lambda i: f"{i},s{i % 4},{'ab'[i % 2]},{RNG.normal()}"),
        ("a", "b"),
        1,
        "'mirror' names the arm, 'foo' is the outcome;",
    ),
    "a time by its cells": (
        decisions(
            "asked at,ns,foo", lambda i: f"2024-01-01 00:{i // 60:02d}:{i % 60:02d},{'ab'[i % 2]},{i % 7}"
        ),
        ("a", "b"),
        1,
        "'foo' is the outcome, 'asked at' the time;",
    ),
}


@pytest.mark.parametrize("case", GUESSED)
def test_the_only_possible_reading_is_guessed_and_said(case: str, tmp_path: Path) -> None:
    text, arms, agents, note = GUESSED[case]
    (tmp_path / "log.csv").write_text(text)
    log = read_log(tmp_path / "log.csv", objective="minimise")
    assert (log.arms, log.n_agents, log.timed) == (arms, agents, True)
    assert note in log.notes[0]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("ts,place,kind,foo", r"which column names the arm \('place', 'kind'\)\? Say --arm-column NAME"),
        ("ts,client,extra,foo", r"which column names the arm \('client'\)\?"),
    ],
)
def test_of_two_readings_none_is_guessed(header: str, message: str, tmp_path: Path) -> None:
    last = "ab" if "kind" in header else "xx"
    text = decisions(header, lambda i: f"{i},p{i % 4},{last[i % 2]},{RNG.normal()}")
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(rm.InputError, match=message):
        read_log(tmp_path / "log.csv", objective="minimise")


def test_columns_of_names_beside_a_wide_table_stay_out(tmp_path: Path) -> None:
    text = decisions("kind,a,b", lambda i: f"{'xy'[i % 2]},{RNG.normal()},{RNG.normal()}")
    (tmp_path / "log.csv").write_text(text)
    log = read_log(tmp_path / "log.csv", objective="minimise")
    assert log.arms == ("a", "b")
    assert "'kind'" in log.notes[0]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("01/{day:02d}/2024 {hour}:05 {half}", "the month is taken to stand first"),
        ("2024-01-{day:02d} {hour}:05:00{half}", "12-hour clock."),
    ],
)
def test_a_twelve_hour_clock(form: str, said: str, tmp_path: Path) -> None:
    def row(i: int) -> str:
        day, hour = divmod(i // 2, 24)
        when = form.format(day=day + 1, hour=hour % 12 or 12, half="pm" if hour >= 12 else "AM")
        return f"{when},{'ab'[i % 2]},{i}"

    (tmp_path / "log.csv").write_text(decisions("time,arm,reward", row))
    log = read_log(tmp_path / "log.csv", objective="maximise")
    assert np.array_equal(log.time - log.time[0], np.arange(240) // 2 * 3600.0)
    assert any(said in note for note in log.notes)


def test_lines_that_end_with_a_carriage_return(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes((LONG + long_rows()).replace("\n", "\r").encode())
    log = read_log(path, objective="maximise")
    assert (len(log.value), log.arms) == (200, ("a", "b"))


def test_a_folder_is_answered_with_its_files(tmp_path: Path) -> None:
    with pytest.raises(rm.InputError, match="is a folder, and holds no table"):
        read_log(tmp_path, objective="minimise")
    (tmp_path / "may.csv").write_text(LONG)
    with pytest.raises(rm.InputError, match=r"is a folder: give one of its files, may\.csv"):
        read_log(tmp_path, objective="minimise")
