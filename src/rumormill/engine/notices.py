"""What a simulation says on standard error: how far it is, and that kernels are compiled.

In notebooks standard error is shown below the cell, and a carriage return rewrites the line there as well.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rumormill.plotting.notebook import in_notebook
from rumormill.text import duration, plural

EVERY_S = 0.2


def progress_line(stream: TextIO, clock: Callable[[], float] = time.monotonic) -> Callable[[int, int], None]:
    """A progress callback that rewrites one line: the share done, and the time left at this pace."""
    begun = shown = clock()

    def show(done: int, total: int) -> None:
        nonlocal shown
        now = clock()
        if now - shown < EVERY_S and done < total:
            return
        shown = now
        left = (now - begun) / max(done, 1) * (total - done)
        state = f"{duration(left)} left" if done < total else f"in {duration(now - begun)}"
        stream.write(f"\r{done / total:4.0%} of {plural(total, 'round')}, {state}".ljust(60))
        stream.write("\n" if done >= total else "")
        stream.flush()

    return show


def is_interactive() -> bool:
    """Whether standard error is seen at once: in a terminal or a notebook."""
    return in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


@contextmanager
def compilation_announced(policies: Sequence[str]) -> Iterator[None]:
    """In a terminal or a notebook, say it when kernels are compiled inside: that takes a while."""
    if not policies or not is_interactive():
        yield
        return
    from rumormill.engine.compiled import COMPILING

    def say() -> None:
        COMPILING.on_begin = None
        names = ", ".join(dict.fromkeys(policies))
        print(f"compiling kernels for {names}, once on this machine: 8 to 20 s", file=sys.stderr, flush=True)

    if COMPILING.on_begin is None:
        COMPILING.on_begin = say
    try:
        yield
    finally:
        if COMPILING.on_begin is say:
            COMPILING.on_begin = None
