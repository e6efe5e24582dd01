"""Cells on a Ray cluster: the machines need rumormill, and nothing in common with the one that asks.

Every cell is a task. Outcomes travel back and are kept by the driver, as those of local workers are: the same
parts, the same table. What dies with its worker or its machine is played again elsewhere; when the driver
dies, Ray ends its tasks, and running again goes on from the parts.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rumormill.engine.workers import GLANCE, Done, Executor, Processes, Task, Threads, Tick, Work, no_tick
from rumormill.errors import InputError, RumormillError
from rumormill.text import VERSION, one_line, plural
from rumormill.validate import one_of, whole

ADDRESS = "RAY_ADDRESS"
# How often a task may lose its worker before it is taken for the cause.
RETRIES = 5
# Seconds between two reports of a worker, and between two looks of the driver at reports and processors.
REPORT_EVERY, ASK_EVERY = 0.5, 1.0
# How long the head of a cluster may take to answer.
KNOCK_S = 10.0


@runtime_checkable
class WorkWithFiles(Protocol):
    """Work that reads files, which must be present where it runs."""

    def files(self) -> dict[str, Path]:
        """The files here, by the names that they must have there."""

    def at(self, folder: str) -> Any:
        """The same work, with its files in this folder."""


class Ray:
    """Workers of a Ray cluster.

    Parameters:
        jobs: how many tasks are under way at a time; as many as the cluster has processors if left out.
        address: host:port of the cluster, "auto" for the one on this machine, "local" for one of its own.
            Left out: RAY_ADDRESS, else the cluster on this machine, else one of its own.

    Where this process is connected to Ray already, that connection is used, with its runtime environment.
    """

    def __init__(self, jobs: int | None = None, address: str | None = None) -> None:
        self._jobs = None if jobs is None else whole("jobs", jobs)
        self._address = address

    @property
    def jobs(self) -> int:
        """For the order of the tasks: how many processors there are is known only when it is connected."""
        return self._jobs or os.cpu_count() or 1

    def run(
        self,
        tasks: Sequence[Task],
        work: Work[Task, Done],
        on_done: Callable[[Task, Done], None],
        on_tick: Tick = no_tick,
    ) -> None:
        if not tasks:
            return
        files: dict[str, Path] = work.files() if isinstance(work, WorkWithFiles) else {}
        with _packed(files) as folder, _connected(self._address, self.jobs, folder) as ray:
            _Driver(ray, self._jobs, work, on_done, on_tick).complete(tasks)


class _Driver:
    """Keeps as many tasks under way as there are processors, and a few more in the queue."""

    def __init__(
        self, ray: Any, jobs: int | None, work: Any, on_done: Callable[[Any, Any], None], on_tick: Tick
    ) -> None:
        self.ray, self.jobs, self.on_done, self.on_tick = ray, jobs, on_done, on_tick
        self.work = ray.put(work)
        here = ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
            node_id=ray.get_runtime_context().get_node_id(), soft=True
        )
        # On this machine, so that it lives as long as the driver.
        self.counter = (
            ray.remote(_Counter)
            .options(num_cpus=0, max_restarts=-1, max_task_retries=0, scheduling_strategy=here)
            .remote()
        )
        self.play = ray.remote(_play).options(num_cpus=1, max_retries=RETRIES)
        self.asked: Any = None
        self.asked_at = 0.0
        self.room = 1

    def complete(self, tasks: Sequence[Any]) -> None:
        todo = iter(tasks)
        under_way: dict[Any, Any] = {}
        left = len(tasks)
        while left:
            self._look_around()
            while len(under_way) < self.room and (task := next(todo, None)) is not None:
                under_way[self.play.remote(self.work, task, self.counter, VERSION)] = task
            ready, _ = self.ray.wait(list(under_way), timeout=GLANCE)
            for ref in ready:
                task = under_way.pop(ref)
                self.on_done(task, self._outcome(ref, task))
                left -= 1
        self._count(last=True)

    def _look_around(self) -> None:
        """How far the workers are, and how many processors there are now: machines may join at any time."""
        if time.monotonic() - self.asked_at < ASK_EVERY:
            return
        self._count()
        self.asked_at = time.monotonic()
        # As many again wait in the queue, so that no worker has to wait for the driver.
        self.room = self.jobs or 2 * max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def _count(self, last: bool = False) -> None:
        """Pass on what workers did since they were last asked; the answer is awaited at the end only."""
        if self.asked is None or last:
            self.asked = self.asked or self.counter.take.remote()
        ready, _ = self.ray.wait([self.asked], timeout=GLANCE if last else 0)
        if ready:
            with suppress(self.ray.exceptions.RayError):  # its machine died: the next one begins at zero
                self.on_tick(self.ray.get(self.asked))
            self.asked = None

    def _outcome(self, ref: Any, task: Any) -> Any:
        errors = self.ray.exceptions
        try:
            return self.ray.get(ref)
        except errors.RayTaskError as error:
            if isinstance(error.cause, Exception):
                raise error.cause from None
            raise
        except errors.RuntimeEnvSetupError as error:
            raise RumormillError(f"a worker could not be set up: {one_line(str(error))}") from None
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.OutOfMemoryError) as error:
            raise RumormillError(
                f"{task} lost its worker {plural(RETRIES + 1, 'time')} ({type(error).__name__}): it may need "
                "more memory than the machines have; what is done is kept"
            ) from None
        except errors.RayError as error:
            raise RumormillError(f"Ray: {type(error).__name__}: {one_line(str(error))}") from None


# --- connecting -----------------------------------------------------------------------------------------


@contextmanager
def _connected(address: str | None, jobs: int, folder: str | None) -> Iterator[Any]:
    import ray
    import ray.util.scheduling_strategies

    if ray.is_initialized():
        yield ray
        return
    # Ray would take SIGTERM for itself, and it means Ctrl-C here.
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if main else None
    try:
        # What Ray has to say of workers that died it prints; standard output is for results.
        with redirect_stdout(sys.stderr):
            _connect(ray, address or os.environ.get(ADDRESS) or None, jobs, folder)
            if main:
                signal.signal(signal.SIGTERM, before)
            yield ray
    finally:
        ray.shutdown()
        if main:
            signal.signal(signal.SIGTERM, before)


def _connect(ray: Any, address: str | None, jobs: int, folder: str | None) -> None:
    common: dict[str, Any] = {"log_to_driver": False, "configure_logging": False, "namespace": "rumormill"}
    if folder is not None:
        # Beside the own modules lie the graph files: both are found from the working directory.
        common["runtime_env"] = {"working_dir": folder, "env_vars": {"RUMORMILL_DATA": "."}}
    if address != "local":
        if address is not None:
            _require_answer(address)
        try:
            ray.init(address=address or "auto", **common)
            return
        except (ConnectionError, ValueError, RuntimeError) as error:
            if address is not None:
                raise _no_answer(address, error) from None
    # A cluster of our own sends no usage statistics.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    ray.init(address="local", num_cpus=jobs, include_dashboard=False, **common)


def _require_answer(address: str) -> None:
    """Refuse an address that does not answer; Ray itself would retry for minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if address == "auto":
        return
    if not (colon and host and port.isdecimal()):
        raise InputError(f"address = {address!r} is not allowed: host:port, for example 10.0.0.1:6379")
    try:
        socket.create_connection((host, int(port)), timeout=KNOCK_S).close()
    except (OSError, OverflowError) as error:
        raise _no_answer(address, error) from None


def _no_answer(address: str, error: Exception) -> InputError:
    return InputError(
        f"no Ray cluster answers at {address} ({one_line(str(error))}): start one with `ray start --head`, "
        "or leave the address out"
    )


@contextmanager
def _packed(files: dict[str, Path]) -> Iterator[str | None]:
    """The files in a folder of their own, which Ray carries to every machine; None where there are none."""
    if not files:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="rumormill-") as folder:
        for name, path in files.items():
            there = Path(folder) / name
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_bytes(path.read_bytes())
        yield folder


# --- on the other machines ------------------------------------------------------------------------------


def _play(work: Any, task: Any, counter: Any, version: str) -> Any:
    if version != VERSION:
        raise RumormillError(
            f"a worker has rumormill {VERSION}, the driver {version}: install the same on every machine"
        )
    tick = _Reporter(counter)
    outcome = (work.at(os.getcwd()) if isinstance(work, WorkWithFiles) else work)(task, tick)
    tick.report()
    return outcome


@dataclass
class _Reporter:
    """Sums up what was done, and reports it every REPORT_EVERY seconds."""

    counter: Any
    amount: float = 0.0
    reported: float = 0.0

    def __call__(self, amount: float) -> None:
        self.amount += amount
        if time.monotonic() - self.reported > REPORT_EVERY:
            self.report()

    def report(self) -> None:
        if self.amount:
            self.counter.add.remote(self.amount)
            self.amount, self.reported = 0.0, time.monotonic()


class _Counter:
    """What all workers did since it was last asked."""

    def __init__(self) -> None:
        self.amount = 0.0

    def add(self, amount: float) -> None:
        self.amount += amount

    def take(self) -> float:
        amount, self.amount = self.amount, 0.0
        return amount


EXECUTORS: dict[str, Callable[[int | None], Executor]] = {
    "threads": Threads,
    "processes": Processes,
    "ray": Ray,
}


def executor_of(given: str | Executor | None, jobs: int | None, address: str | None = None) -> Executor:
    """The executor itself, or one by name; threads by default. Ray takes an address."""
    if given is None or isinstance(given, str):
        name = one_of("executor", "threads" if given is None else given, EXECUTORS)
        if name == "ray":
            return Ray(jobs, address)
        if address is not None:
            raise InputError(f"address = {address!r} is not allowed with {name}: it is that of a Ray cluster")
        return EXECUTORS[name](jobs)
    return given
