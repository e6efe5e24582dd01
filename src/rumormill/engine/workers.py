"""Executors: threads or processes on this machine behind one interface; a thread pool inside one trial.

Work is a function of a task and of `tick`, which it calls every few milliseconds with the work just done;
what `tick` raises ends the task. It may run in a thread, in another process, or on another machine.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from rumormill.errors import RumormillError
from rumormill.validate import whole

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


class ThreadPool:
    """A few threads. What they are given depends on nothing that another of them is doing."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="rumormill")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=kind is None, cancel_futures=True)  # Ctrl-C does not wait

    def begin(self, work: Callable[[], Outcome]) -> Future[Outcome]:
        """Start work in another thread."""
        return self._pool.submit(work)

    def each(self, work: Callable[[Item], None], items: Iterable[Item]) -> None:
        """Do all items, and wait for the last."""
        for one in [self._pool.submit(work, item) for item in items]:
            one.result()


Task = TypeVar("Task")
Done = TypeVar("Done")
Tick = Callable[[float], None]
Work = Callable[[Task, Tick], Done]

# Seconds that Ctrl-C waits for busy workers.
PATIENCE = 0.2
# Short waits, so that the main thread sees Ctrl-C.
GLANCE = 0.1
# How often in a row all processes may be lost before any of them has done something.
VAIN_ATTEMPTS = 3


class WorkStopped(BaseException):
    """Raised inside a task to end it; never seen outside."""


def no_tick(amount: float) -> None:
    """For work whose progress is not shown."""


class Executor(Protocol):
    """Works through tasks that do not depend on each other, in any order.

    `on_done(task, outcome)` is called in the caller's own thread, one at a time, `on_tick(amount)` from
    anywhere in this process. What a task or `on_done` raises, and Ctrl-C, ends the run within a moment and is
    raised again; what is under way is then dropped.
    """

    @property
    def jobs(self) -> int:
        """How many tasks are under way at a time."""

    def run(
        self,
        tasks: Sequence[Task],
        work: Work[Task, Done],
        on_done: Callable[[Task, Done], None],
        on_tick: Tick = no_tick,
    ) -> None:
        """Do all tasks."""


class Threads:
    """Threads on this machine: the compiled kernels run in parallel."""

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = (os.cpu_count() or 1) if jobs is None else whole("jobs", jobs)

    def run(
        self,
        tasks: Sequence[Task],
        work: Work[Task, Done],
        on_done: Callable[[Task, Done], None],
        on_tick: Tick = no_tick,
    ) -> None:
        todo: queue.SimpleQueue[Task] = queue.SimpleQueue()
        for task in tasks:
            todo.put(task)
        done: queue.SimpleQueue[tuple[Any, Any, BaseException | None]] = queue.SimpleQueue()
        stop, lock = threading.Event(), threading.Lock()

        def tick(amount: float) -> None:
            if stop.is_set():
                raise WorkStopped
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
                except WorkStopped:
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
            while waiting:
                try:
                    task, outcome, error = done.get(timeout=GLANCE)
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


class Processes:
    """Processes on this machine: for policies in plain Python, of which threads run one at a time.

    Work and tasks travel by pickle. What a process leaves undone when it is killed is done again.
    """

    def __init__(self, jobs: int | None = None) -> None:
        self.jobs = (os.cpu_count() or 1) if jobs is None else whole("jobs", jobs)

    def run(
        self,
        tasks: Sequence[Task],
        work: Work[Task, Done],
        on_done: Callable[[Task, Done], None],
        on_tick: Tick = no_tick,
    ) -> None:
        left = list(tasks)
        in_vain = 0
        while left:
            before = len(left)

            def finished(task: Task, outcome: Done) -> None:
                on_done(task, outcome)
                left.remove(task)

            try:
                self._run(list(left), work, finished, on_tick)
            except BrokenProcessPool:
                in_vain = 0 if len(left) < before else in_vain + 1
                if in_vain == VAIN_ATTEMPTS:
                    raise RumormillError(
                        "worker processes are killed before any of them is done: memory may be short; "
                        "try fewer jobs"
                    ) from None

    def _run(
        self,
        tasks: Sequence[Task],
        work: Work[Task, Done],
        on_done: Callable[[Task, Done], None],
        on_tick: Tick,
    ) -> None:
        # Spawned, not forked: threads of numba or of the linear algebra do not survive a fork.
        context = multiprocessing.get_context("spawn")
        size = min(self.jobs, len(tasks))
        # A number for each process and no lock, which a process that is killed could never give back.
        amounts, told = context.RawArray("d", size), 0.0
        pool = ProcessPoolExecutor(size, context, initializer=_begin_worker, initargs=(amounts,))
        todo = iter(tasks)
        under_way: dict[Future[Any], Any] = {}
        try:
            for task in todo:
                under_way[pool.submit(work, task, _tell)] = task
                if len(under_way) == 2 * self.jobs:
                    break
            while under_way:
                finished, _ = wait(under_way, timeout=GLANCE, return_when=FIRST_COMPLETED)
                now = sum(amounts)
                if now > told:
                    on_tick(now - told)
                    told = now
                for future in finished:
                    task = under_way.pop(future)
                    on_done(task, future.result())
                    following = next(todo, None)
                    if following is not None:
                        under_way[pool.submit(work, following, _tell)] = following
        except BaseException:
            for process in list((pool._processes or {}).values()):
                process.terminate()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


# In a worker process: what each of them has done so far.
_amounts: Any = None


def _tell(amount: float) -> None:
    own = multiprocessing.current_process()._identity[-1] % len(_amounts)  # they are numbered in a row
    _amounts[own] += amount


def _begin_worker(amounts: Any) -> None:
    """Ctrl-C reaches every process of a terminal: only the one in charge acts on it. None outlives it."""
    global _amounts
    _amounts = amounts
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
