"""Who plays the cells, by name. An executor of one's own needs one method: see engine.workers.Executor."""

from __future__ import annotations

from collections.abc import Callable

from rumormill.engine.workers import Executor, Processes, Threads
from rumormill.validate import one_of

EXECUTORS: dict[str, Callable[[int | None], Executor]] = {
    "threads": Threads,
    "processes": Processes,
}


def executor_of(given: str | Executor | None, jobs: int | None) -> Executor:
    """The executor itself, or one by name; threads if nobody says otherwise."""
    if given is None or isinstance(given, str):
        name = one_of("executor", "threads" if given is None else given, EXECUTORS)
        return EXECUTORS[name](jobs)
    return given
