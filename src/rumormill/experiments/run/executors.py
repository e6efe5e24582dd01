"""Who does the work: one small interface, and threads on this machine behind it."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from rumormill.errors import InputError

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")
Tick = Callable[[float], None]

# How long Ctrl-C waits for workers that are in the middle of something.
PATIENCE = 0.2


class Stopped(BaseException):
    """Raised inside a worker's task to end it; never seen outside."""


class Executor(Protocol):
    """Works through tasks that do not depend on each other, in any order.

    `work(task, tick)` is called once per task, anywhere; it calls `tick(amount)` every few milliseconds
    with the work just done. `on_done(task, outcome)` is called in the caller's own thread, one at a time.
    When `stop` is set nothing new begins, and what is under way may be dropped. What a task or `on_done`
    raises ends the run and is raised again.
    """

    def run(
        self,
        tasks: Sequence[Task],
        work: Callable[[Task, Tick], Outcome],
        on_done: Callable[[Task, Outcome], None],
        stop: threading.Event,
        on_tick: Tick = lambda amount: None,
    ) -> None: ...


class LocalExecutor:
    """Threads on this machine: the compiled kernels run in parallel."""

    def __init__(self, jobs: int | None = None) -> None:
        if jobs is not None and (isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1):
            raise InputError(f"jobs = {jobs!r} is not allowed: a whole number >= 1")
        self.jobs = jobs or os.cpu_count() or 1

    def run(
        self,
        tasks: Sequence[Task],
        work: Callable[[Task, Tick], Outcome],
        on_done: Callable[[Task, Outcome], None],
        stop: threading.Event,
        on_tick: Tick = lambda amount: None,
    ) -> None:
        todo: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for task in tasks:
            todo.put(task)
        done: queue.SimpleQueue[tuple[Task, Any, BaseException | None]] = queue.SimpleQueue()
        lock = threading.Lock()

        def tick(amount: float) -> None:
            if stop.is_set():
                raise Stopped
            with lock:
                on_tick(amount)

        def loop() -> None:
            while not stop.is_set():
                try:
                    task = todo.get_nowait()
                except queue.Empty:
                    return
                try:
                    done.put((task, work(task, tick), None))
                except Stopped:
                    return
                except BaseException as error:
                    done.put((task, None, error))
                    return

        # Daemons: a worker deep in a long graph computation must not hold up Ctrl-C.
        workers = [threading.Thread(target=loop, daemon=True) for _ in range(min(self.jobs, len(tasks)))]
        for worker in workers:
            worker.start()
        waiting = len(tasks)
        try:
            while waiting and not stop.is_set():
                try:
                    task, outcome, error = done.get(timeout=0.1)  # short, so that Ctrl-C is seen
                except queue.Empty:
                    continue
                if error is not None:
                    raise error
                on_done(task, outcome)
                waiting -= 1
        finally:
            stop.set()
            for worker in workers:
                worker.join(PATIENCE / len(workers))
