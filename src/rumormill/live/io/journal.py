"""The journal of a node: one writer thread, chained checksums, snapshots.

All waiting records are written in one transaction (WAL, synchronous FULL), then the mark, which is on disk
before the records are acknowledged: it is never ahead of the journal. A snapshot replaces the records before
it in the transaction that makes it current.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from rumormill.errors import InputError
from rumormill.live.core import records
from rumormill.live.core.records import DIGEST, NO_MARK, Mark, Record, Row, last_items, stored_rows
from rumormill.live.io.folder import (
    FILE,
    Beginning,
    Found,
    MarkFile,
    append_log,
    create,
    explained,
    lock,
    own_rows,
    pack,
    read_base,
    read_folder,
)
from rumormill.live.io.items import DiskItems

# Seconds between two attempts while the disk is full.
RETRY = 0.25


class Snapshot(NamedTuple):
    """A snapshot that is to be written."""

    records: int
    """Of this process, before it."""
    epoch: int
    data: bytes
    unnamed: frozenset[int]
    """Segments of retained items that it does not name."""


class Journal:
    """The journal of one node. All methods but `__init__` and `close` only queue for the writer thread."""

    def __init__(
        self,
        folder: Path,
        owner: str,
        *,
        fresh_epoch: Callable[[], int],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Open or create the journal in a folder; `owner` is its mesh and node, another's is refused."""
        self.folder = folder
        self._clock = clock
        self._wake = threading.Condition()
        self._waiting: list[Record] = []
        self._segments: list[tuple[int, bytes]] = []
        self._snapshot: Snapshot | None = None
        self._queued = 0  # records queued in this process
        self._done = 0  # of those, on disk
        self._unmarked = 0  # records in the database whose mark is not on disk
        self._ending = False
        self._thread: threading.Thread | None = None
        self.fault: str | None = None
        """Why nothing is written at the moment; None without a fault."""
        self.commits, self.commit_seconds = 0, 0.0
        with ExitStack() as held, explained(folder):
            held.callback(lock(folder).close)
            self.found = self._open(owner, fresh_epoch, held)
            self._held = held.pop_all()  # closed with the journal; at once if it cannot be opened
        rows, self._beginning = self.found.rows, self.found.beginning
        self._last = rows[-1].number if rows else self._beginning.upto
        self._chain = rows[-1].chain if rows else self._beginning.chain
        self._items = self._beginning.items | last_items(self.found.records)
        self._before = self._last  # the number of the last record that was on disk at the start

    def _open(self, owner: str, fresh_epoch: Callable[[], int], held: ExitStack) -> Found:
        """Verify the folder before anything in it is changed; create or convert it."""
        found, base_file = read_folder(self.folder), self.folder / FILE
        self._mark = MarkFile(self.folder)  # before the database: one without its mark is damaged
        held.callback(self._mark.close)
        self._base = base = sqlite3.connect(base_file, isolation_level=None, check_same_thread=False)
        held.callback(base.close)
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "busy_timeout = 2000"):
            base.execute(f"PRAGMA {pragma}")
        if found is None:
            with _transaction(base):
                create(base, self.folder, owner, fresh_epoch)
            found = read_base(base, self.folder, NO_MARK)
            assert found is not None
        base.execute("CREATE TABLE IF NOT EXISTS items (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT")
        self._stored = {number for (number,) in base.execute("SELECT id FROM items")}
        self.items = DiskItems(base_file, 1 + max(self._stored, default=0))
        held.callback(self.items.close)
        if found.owner != owner:
            raise InputError(f"{self.folder} belongs to {found.owner}, not to {owner}: give another --data")
        return found

    def forget_found(self) -> None:
        """Free the memory of what the journal held at the start."""
        self.found.state, self.found.rows, self.found.records, self.found.log = None, [], [], []

    def start(
        self,
        on_commit: Callable[[int], object],
        on_failure: Callable[[Exception], object] = lambda error: None,
    ) -> None:
        """Start the journal's writer thread, which calls `on_commit(n)` when n records are on disk.

        `on_failure(error)` is called if the thread ends with an error; a full disk is none.
        """
        self._on_commit, self._on_failure = on_commit, on_failure
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def write(self, batch: Sequence[Record]) -> None:
        """Queue records for the journal, and the segments of retained items since the last call."""
        with self._wake:
            self._waiting += batch
            self._segments += self.items.take()
            self._queued += len(batch)
            self._wake.notify()

    def write_snapshot(
        self, data: bytes, epoch: int | None = None, segments: Iterable[int] | None = None
    ) -> None:
        """Queue a snapshot of the state as of the last queued record.

        `epoch` is its epoch, if it is another one; `segments` are those that it names, by default all.
        """
        self.write([])
        named = None if segments is None else frozenset(segments)
        with self._wake:
            made = self._stored | {number for number, _ in self._segments}
            unnamed = frozenset() if named is None else frozenset(made - named)
            self._snapshot = Snapshot(self._queued, epoch or self._beginning.epoch, data, unnamed)
            self._wake.notify()

    @property
    def backlog(self) -> int:
        """The number of records that are queued and not on disk, the lag of the journal."""
        return self._queued - self._done

    def _work(self) -> None:
        """The journal's writer thread."""
        try:
            self._write()
        except Exception as error:
            self.fault = f"nothing is written any more: {error!r}"
            self._on_failure(error)

    def _write(self) -> None:
        """Commit what is queued, until the journal is closed."""
        while True:
            with self._wake:
                while not (self._waiting or self._segments or self._snapshot or self._ending):
                    self._wake.wait()
                if not (self._waiting or self._segments or self._snapshot):
                    return
                batch, segments, snap = list(self._waiting), list(self._segments), self._snapshot
            if not self._commit(batch, segments, snap):
                with self._wake:
                    if self._ending:
                        return
                    self._wake.wait(RETRY)
                continue
            with self._wake:
                del self._waiting[: len(batch)]
                del self._segments[: len(segments)]
                self._stored |= {number for number, _ in segments}
                self._stored -= frozenset() if snap is None else snap.unnamed
                self._done += len(batch)
                if self._snapshot is snap:
                    self._snapshot = None
                done = self._done
            self.items.written(number for number, _ in segments)
            self._on_commit(done)

    def _commit(
        self, batch: Sequence[Record], segments: Sequence[tuple[int, bytes]], snap: Snapshot | None
    ) -> bool:
        """Write one transaction, then the mark; False if the disk refuses it."""
        started, base = time.perf_counter(), self._base
        new = batch[self._unmarked :]  # the others are in the database since an attempt whose mark failed
        rows = stored_rows(self._last, self._chain, self._clock(), new)
        try:
            with _transaction(base):
                base.executemany("INSERT INTO records VALUES (?, ?, ?, ?)", rows)
                base.executemany("INSERT OR REPLACE INTO items VALUES (?, ?)", segments)
                if snap is not None:
                    beginning = self._compact(base, snap)
            self._unmarked = len(batch)
            if rows:
                self._last, self._chain = rows[-1].number, rows[-1].chain
                self._items |= last_items(new)
            if snap is not None:
                self._beginning = beginning
            self._mark.write(Mark(self._last, self._chain, self._items))
        except (sqlite3.Error, OSError) as error:  # reported and retried: the writer never ends silently
            self.fault = f"the disk does not take it: {error}"
            return False
        self._unmarked = 0
        self.fault = None
        self.commits += 1
        self.commit_seconds += time.perf_counter() - started
        return True

    def _compact(self, base: sqlite3.Connection, snap: Snapshot) -> Beginning:
        """Make a snapshot current: delete what it replaces, move own observations to the log."""
        upto, old, data = self._before + snap.records, self._beginning, snap.data
        if upto <= old.upto and old.state:
            return old
        sql = "SELECT id, time, data, chain FROM records WHERE id <= ? ORDER BY id"
        chain, own, items = old.chain, [], dict(old.items)
        for row in map(Row._make, base.execute(sql, (upto,))):
            chain = row.chain
            if records.may_be_own(row.data):
                record = records.decode(row.data)
                own += own_rows([(row, record)])
                items |= last_items([record])
        log = append_log(base, old.log, own)
        made = Beginning(snap.epoch, upto, chain, old.begin, data[:DIGEST], items, log)
        base.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?)", (pack(made), data))
        base.execute("DELETE FROM records WHERE id <= ?", (upto,))
        base.executemany("DELETE FROM items WHERE id = ?", [(number,) for number in snap.unnamed])
        return made

    def close(self, timeout: float = 10.0) -> bool:
        """Write what is queued and stop; False if the disk refused it."""
        with self._wake:
            self._ending = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(timeout)
        self._held.close()
        return self.backlog == 0


@contextmanager
def _transaction(base: sqlite3.Connection) -> Iterator[None]:
    """BEGIN, and COMMIT or ROLLBACK."""
    base.execute("BEGIN IMMEDIATE")
    try:
        yield
        base.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.OperationalError):  # SQLite has rolled back already
            base.execute("ROLLBACK")
        raise
