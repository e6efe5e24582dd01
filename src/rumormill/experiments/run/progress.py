"""Progress on standard error: one counter (`Tally`), and its displays for runs and for other long work."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, TYPE_CHECKING, Any, Self

from rumormill.text import amount, duration, plural

if TYPE_CHECKING:
    from rich.console import Group
    from rich.live import Live

# Plain lines go to logs: one every few seconds says enough.
LINE_EVERY_S = 5.0
REFRESH_PER_S = 4
# The rate shown is that of the last seconds, so that it follows what the machine does now.
RATE_WINDOW_S = 5.0


class Tally:
    """Counts things done, of a known number or not. Workers report from their threads: changes are locked.

    Parameters:
        clock: seconds of a monotonic clock.
        compiling: seconds spent on compilation so far; they do not count for the time left.
        total: how many things there are; None if that is not known.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        compiling: Callable[[], float] = lambda: 0.0,
        total: int | None = 0,
    ) -> None:
        self._clock, self._compiling = clock, compiling
        self._compiled_before = 0.0
        self._lock = threading.Lock()
        self.total = total
        self.done = self.done_before = 0
        self.deliveries = 0
        self._started = clock()
        self._marks: list[tuple[float, int]] = [(self._started, 0)]
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def start(self, total_cells: int, done_cells: int) -> None:
        with self._lock:
            self.total, self.done, self.done_before = total_cells, done_cells, done_cells
            self._started = self._clock()
            self._compiled_before = self._compiling()
            self._marks = [(self._started, self.deliveries)]

    def add(self, count: int = 1) -> None:
        """So many more are done."""
        with self._lock:
            self.done += count

    def cell_done(self, summary: Mapping[str, float]) -> None:
        self.add()
        with self._lock:
            for policy, regret in summary.items():
                self._sums[policy] = self._sums.get(policy, 0.0) + regret
                self._counts[policy] = self._counts.get(policy, 0) + 1

    def rounds(self, deliveries: int) -> None:
        with self._lock:
            self.deliveries += deliveries
            now = self._clock()
            self._marks.append((now, self.deliveries))
            while len(self._marks) > 2 and now - self._marks[1][0] > RATE_WINDOW_S:
                self._marks.pop(0)

    @property
    def elapsed(self) -> float:
        return self._clock() - self._started

    @property
    def rate(self) -> float:
        """Deliveries per second of late."""
        with self._lock:
            start, before = self._marks[0]
            return (self.deliveries - before) / max(self._clock() - start, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """At the rate so far, compilation apart; None before anything was done here, or without a total."""
        here = self.done - self.done_before
        if here <= 0 or self.total is None:
            return None
        working = self.elapsed - (self._compiling() - self._compiled_before)
        return max(working, 0.0) / here * (self.total - self.done)

    @property
    def time_left(self) -> str:
        """The time left as text."""
        left = self.seconds_left
        if left is not None:
            return f"{duration(left)} left"
        return "compiling" if self._compiling() > self._compiled_before else "time left not known yet"

    def regrets(self) -> dict[str, float]:
        """Mean regret at the horizon over the cells done here, by policy."""
        with self._lock:
            return {policy: total / self._counts[policy] for policy, total in self._sums.items()}


def compiling_seconds() -> float:
    """How long kernels have been compiled in this process."""
    from rumormill.engine.compiled import COMPILING

    return COMPILING.seconds


def said_when_compiling(say: Callable[[], None] | None) -> None:
    """Call `say` once, when the next compilation begins; None cancels it."""
    from rumormill.engine.compiled import COMPILING

    def once() -> None:
        COMPILING.on_begin = None
        if say is not None:
            say()

    COMPILING.on_begin = None if say is None else once


class CountDisplay:
    """How far a command is: one line rewritten in a terminal, a line every few seconds elsewhere.

    Parameters:
        thing: what is counted, in the singular.
        total: how many there are; None if that is not known.
        verb: what was done with them; shown without a total only.
    """

    def __init__(self, thing: str, total: int | None = None, verb: str = "done") -> None:
        self._thing, self._verb = thing, verb
        self._tally = Tally(total=total)
        self._last, self._live = time.monotonic(), sys.stderr.isatty()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ending: object) -> None:
        if self._live and self._tally.done:
            sys.stderr.write("\r\x1b[K")

    def add(self, count: int = 1) -> None:
        """So many more are done."""
        self._tally.add(count)
        now = time.monotonic()
        if self._live:
            sys.stderr.write(f"\r\x1b[K{self._text()}")
            sys.stderr.flush()
        elif now - self._last > LINE_EVERY_S:
            self._last = now
            print(self._text(), file=sys.stderr)

    def _text(self) -> str:
        tally = self._tally
        if tally.total is None:
            return f"{plural(tally.done, self._thing)} {self._verb}"
        return f"{tally.done:,} of {plural(tally.total, self._thing)}, {tally.time_left}"


class PlainProgress:
    """A run: one line every few seconds."""

    def __init__(
        self,
        title: str,
        stream: IO[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        every_s: float = LINE_EVERY_S,
    ) -> None:
        self._title = title
        self._stream = stream if stream is not None else sys.stderr
        self._clock, self._every = clock, every_s
        self._last = clock()
        self._tally = Tally(clock, compiling_seconds)

    def notice(self, text: str) -> None:
        self._say(text)

    def start(self, total_cells: int, done_cells: int) -> None:
        self._tally.start(total_cells, done_cells)
        kept = f", {done_cells:,} done before" if done_cells else ""
        self._say(f"{total_cells:,} cells{kept}")
        said_when_compiling(lambda: self._say("compiling (once on a machine)"))

    def cell_done(self, cell: Any, summary: Mapping[str, float]) -> None:
        self._tally.cell_done(summary)
        now = self._clock()
        if now - self._last >= self._every:
            self._last = now
            self._say(status_line(self._tally))

    def rounds(self, deliveries: int) -> None:
        self._tally.rounds(deliveries)

    def finish(self) -> None:
        said_when_compiling(None)
        tally = self._tally
        self._say(f"{tally.done:,} of {tally.total:,} cells done in {duration(tally.elapsed)}")

    def _say(self, text: str) -> None:
        print(f"{self._title}: {text}", file=self._stream, flush=True)


class LiveProgress:
    """A run: a bar, the rates, and the regret of every policy so far, redrawn in place."""

    def __init__(self, title: str, console: Any = None) -> None:
        from rich.console import Console

        self._title = title
        self._console = console or Console(stderr=True)
        self._tally = Tally(compiling=compiling_seconds)
        self._live: Live | None = None

    def notice(self, text: str) -> None:
        self._console.print(f"{self._title}: {text}", highlight=False, markup=False)

    def start(self, total_cells: int, done_cells: int) -> None:
        from rich.live import Live

        self._tally.start(total_cells, done_cells)
        self._live = Live(
            get_renderable=self.picture,
            console=self._console,
            refresh_per_second=REFRESH_PER_S,
            transient=True,
        )
        self._live.start()

    def cell_done(self, cell: Any, summary: Mapping[str, float]) -> None:
        self._tally.cell_done(summary)

    def rounds(self, deliveries: int) -> None:
        self._tally.rounds(deliveries)

    def finish(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None
        tally = self._tally
        self._console.print(
            f"[bold]{self._title}[/]  {tally.done:,} of {tally.total:,} cells in {duration(tally.elapsed)}",
            highlight=False,
        )

    def picture(self) -> Group:
        """What is on the screen now."""
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        tally = self._tally
        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=max(tally.total or 0, 1), completed=tally.done, width=32)
        head.add_row(Text(self._title, style="bold"), bar, Text(f"{tally.done:,}/{tally.total:,} cells"))
        facts = Text(
            f"{amount(tally.rate)} deliveries/s   {duration(tally.elapsed)} so far   {tally.time_left}",
            style="dim",
        )
        regrets = Table.grid(padding=(0, 2))
        for policy, regret in tally.regrets().items():
            regrets.add_row(f"  {policy}", Text(f"{regret:,.0f}", justify="right"))
        rows: list[Any] = [head, facts]
        if regrets.row_count:
            rows += [Text("mean group regret so far", style="dim"), regrets]
        return Group(*rows)


def progress_for(title: str) -> PlainProgress | LiveProgress:
    """The display that suits where standard error goes."""
    return LiveProgress(title) if sys.stderr.isatty() else PlainProgress(title)


def status_line(tally: Tally) -> str:
    """Everything the live display shows, in one line."""
    parts = [f"{tally.done:,}/{tally.total:,} cells", f"{amount(tally.rate)} deliveries/s", tally.time_left]
    regrets = ", ".join(f"{policy} {regret:,.0f}" for policy, regret in tally.regrets().items())
    return ", ".join(parts) + (f"; mean regret: {regrets}" if regrets else "")
