"""What a run shows while it works, on a clock that the test turns."""

from __future__ import annotations

import io
import subprocess
import sys
import threading

import pytest
from rich.console import Console

from rumormill.experiments.run.progress import LiveProgress, PlainProgress, Tally, progress_for
from rumormill.text import amount, duration


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_time_left_is_that_of_the_cells_done_here() -> None:
    clock = Clock()
    tally = Tally(clock)
    tally.start(10, 4)
    assert tally.seconds_left is None
    clock.now += 6
    tally.cell_done({"KMP": 10.0})
    tally.cell_done({"KMP": 30.0, "Robust": 5.0})
    assert tally.done == 6
    assert tally.seconds_left == pytest.approx(12.0)  # two cells in six seconds, four to go
    assert tally.regrets() == {"KMP": 20.0, "Robust": 5.0}


def test_compilation_is_no_part_of_the_pace() -> None:
    clock, compiled = Clock(), [7.0]
    tally = Tally(clock, lambda: compiled[0])
    tally.start(10, 0)
    assert tally.time_left == "time left not known yet"
    clock.now += 30
    compiled[0] += 30
    assert tally.time_left == "compiling"
    clock.now += 2
    tally.cell_done({})
    assert tally.seconds_left == pytest.approx(18.0)  # two seconds a cell, not thirty-two
    assert tally.time_left == "18 s left"


COMPILES = """
import sys
import numba
from rumormill.engine.compiled import COMPILING
from rumormill.experiments.run.progress import PlainProgress, compiling_seconds

shown = PlainProgress("fig", sys.stdout)
shown.start(2, 0)
inner = numba.njit(lambda x: x + 1)
outer = numba.njit(lambda x: inner(x) + inner(x + 1.5))
assert outer(1) == 5.5
assert compiling_seconds() > 0
took = compiling_seconds()
outer(2)
assert compiling_seconds() == took
shown.finish()
"""


def test_that_it_compiles_is_said_once() -> None:
    done = subprocess.run([sys.executable, "-c", COMPILES], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[:2] == ["fig: 2 cells", "fig: compiling (once on a machine)"]
    assert done.stdout.count("compiling") == 1


def test_the_rate_is_that_of_the_last_seconds() -> None:
    clock = Clock()
    tally = Tally(clock)
    tally.start(1, 0)
    for _ in range(10):
        clock.now += 1
        tally.rounds(1_000)
    assert tally.rate == pytest.approx(1_000)
    for _ in range(10):
        clock.now += 1
        tally.rounds(10)
    assert tally.rate == pytest.approx(10)


def test_workers_may_report_at_the_same_time() -> None:
    tally = Tally()

    def work() -> None:
        for _ in range(2_000):
            tally.rounds(1)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert tally.deliveries == 8_000


def test_plain_lines_come_at_intervals() -> None:
    clock, stream = Clock(), io.StringIO()
    shown = PlainProgress("fig", stream, clock, every_s=5.0)
    shown.start(1_200, 1)
    for _ in range(4):
        clock.now += 2
        shown.rounds(3_000_000)
        shown.cell_done(None, {"KMP": 1_234.4})
    shown.finish()
    assert stream.getvalue().splitlines() == [
        "fig: 1,200 cells, 1 done before",
        "fig: 4/1,200 cells, 1.5 M deliveries/s, 39 min 52 s left; mean regret: KMP 1,234",
        "fig: 5 of 1,200 cells done in 8 s",
    ]


def test_the_live_display_shows_everything() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, color_system=None)
    shown = LiveProgress("fig", console)
    shown.start(3, 1)
    shown.rounds(500)
    shown.cell_done(None, {"KMP": 1_234.0, "Robust": 50.0})
    with console.capture() as seen:
        console.print(shown.picture())
    shown.finish()
    assert "2/3 cells" in screen.getvalue()  # drawn, too
    text = seen.get()
    for expected in ("fig", "2/3 cells", "deliveries/s", "left", "KMP", "1,234", "Robust", "50"):
        assert expected in text


def test_finishing_without_a_start_is_harmless() -> None:
    console = Console(file=io.StringIO())
    LiveProgress("fig", console).finish()


def test_lines_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    assert isinstance(progress_for("fig"), PlainProgress)


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (999, "999"), (1_000, "1.0 k"), (12_345_678, "12.3 M"), (2e9, "2.0 G")]
)
def test_amounts(number: float, text: str) -> None:
    assert amount(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (59, "59 s"), (59.7, "1 min 00 s"), (61, "1 min 01 s"), (3_720, "1 h 02 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text
