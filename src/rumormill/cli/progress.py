"""How far a command is, on standard error: one line in a terminal, one every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Self

from rumormill.cli.printing import note
from rumormill.text import duration

EVERY_S = 5.0


class Counting:
    """Counts things done, of a known number; says how long the rest will take at the pace so far."""

    def __init__(self, things: str, total: int) -> None:
        self._things, self._total, self._done = things, total, 0
        self._began = self._last = time.monotonic()
        self._live = sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ending: object) -> None:
        if self._live and self._done:
            sys.stderr.write("\r\x1b[K")

    def one_more(self) -> None:
        """Another one is done."""
        self._done += 1
        now = time.monotonic()
        left = (now - self._began) / self._done * (self._total - self._done)
        words = f"{self._done:,} of {self._total:,} {self._things}, {duration(left)} left"
        if self._live:
            sys.stderr.write(f"\r\x1b[K{words}")
            sys.stderr.flush()
        elif now - self._last > EVERY_S:
            self._last = now
            note(words)
