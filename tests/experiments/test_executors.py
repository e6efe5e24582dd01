"""Threads and processes do every task once, and end when something goes wrong."""

import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from helpers.small_experiments import dies, dies_once, fails_at, square
from rumormill.engine.workers import Processes, Threads, Tick, no_tick
from rumormill.errors import InputError, RumormillError


def endless(task: int, tick: Tick) -> int:
    while True:
        tick(1.0)


def ignore(task: int, outcome: int) -> None:
    pass


@pytest.mark.parametrize("make", [Threads, Processes])
def test_every_task_is_done_once_and_reported_in_the_callers_thread(make: Callable[[int], Any]) -> None:
    here, done = threading.current_thread(), []

    def on_done(task: int, outcome: int) -> None:
        assert threading.current_thread() is here
        done.append((task, outcome))

    make(2).run(range(30), square, on_done)
    assert sorted(done) == [(n, n * n) for n in range(30)]
    make(2).run([], square, on_done)


def test_threads_report_what_they_do() -> None:
    heard: list[float] = []
    Threads(3).run(range(30), square, ignore, heard.append)
    assert heard == [1.0] * 30
    no_tick(1.0)


def test_processes_report_what_they_do() -> None:
    heard: list[float] = []
    Processes(3).run(range(30), square, ignore, heard.append)
    assert sum(heard) == 30.0


def test_what_a_killed_process_left_undone_is_done_again(tmp_path: Path) -> None:
    done: list[int] = []
    Processes(2).run(range(10), partial(dies_once, str(tmp_path / "mark")), lambda task, _: done.append(task))
    assert sorted(done) == list(range(10))
    assert (tmp_path / "mark").exists()


def test_work_that_kills_every_process_is_given_up() -> None:
    with pytest.raises(RumormillError, match="worker processes are killed before any of them is done"):
        Processes(1).run(range(2), dies, ignore)


@pytest.mark.parametrize("make", [Threads, Processes])
def test_an_error_in_a_task_ends_the_run(make: Callable[[int], Any]) -> None:
    with pytest.raises(InputError, match="task 3"):
        make(2).run(range(50), partial(fails_at, 3), ignore)


def test_an_error_in_keeping_an_outcome_ends_the_run() -> None:
    def full(task: int, outcome: int) -> None:
        raise RumormillError("full")

    with pytest.raises(RumormillError, match="full"):
        Threads(2).run(range(50), square, full)


def test_what_is_under_way_ends_at_its_next_tick() -> None:
    before = threading.active_count()

    def mixed(task: int, tick: Tick) -> int:
        return task if task == 0 else endless(task, tick)

    def stopped(task: int, outcome: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Threads(3).run(range(50), mixed, stopped)
    for _ in range(100):
        if threading.active_count() == before:
            break
        threading.Event().wait(0.02)
    assert threading.active_count() == before


@pytest.mark.parametrize("make", [Threads, Processes])
@pytest.mark.parametrize("jobs", [0, -1, True, 1.5])
def test_a_bad_number_of_jobs(make: Callable[[Any], Any], jobs: Any) -> None:
    with pytest.raises(InputError, match=r"jobs = .* is not allowed: a whole number >= 1"):
        make(jobs)
