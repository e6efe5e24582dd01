"""Who plays the cells, by name. An executor of one's own needs one method: see engine.workers.Executor."""

from __future__ import annotations

from collections.abc import Callable

from rumormill.engine.workers import Executor, Processes, Threads
from rumormill.errors import InputError
from rumormill.experiments.run.cluster import Ray
from rumormill.validate import one_of

EXECUTORS: dict[str, Callable[[int | None], Executor]] = {
    "threads": Threads,
    "processes": Processes,
    "ray": Ray,
}


def executor_of(given: str | Executor | None, jobs: int | None, address: str | None = None) -> Executor:
    """The executor itself, or one by name; threads if nobody says otherwise. Ray takes an address."""
    if given is None or isinstance(given, str):
        name = one_of("executor", "threads" if given is None else given, EXECUTORS)
        if name == "ray":
            return Ray(jobs, address)
        if address is not None:
            raise InputError(f"address = {address!r} is not allowed with {name}: it is that of a Ray cluster")
        return EXECUTORS[name](jobs)
    return given
