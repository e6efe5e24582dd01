"""Several threads inside one trial: for when there are fewer trials than cores."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

Item = TypeVar("Item")
Done = TypeVar("Done")


class Crew:
    """A few threads. What they are given depends on nothing that another of them is doing."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="rumormill")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=kind is None, cancel_futures=True)  # Ctrl-C waits for nobody

    def begin(self, work: Callable[[], Done]) -> Future[Done]:
        """Have something done meanwhile."""
        return self._pool.submit(work)

    def each(self, work: Callable[[Item], None], items: Iterable[Item]) -> None:
        """Do all of them, and wait for the last."""
        for one in [self._pool.submit(work, item) for item in items]:
            one.result()
