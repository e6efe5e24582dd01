"""The node's disk: SQLite in a folder, one writer thread, checksummed snapshots.

The node's disk: SQLite in a folder, one writer thread, one transaction for all that waits.

Records come in order and are on disk when their transaction is (WAL, synchronous FULL). A snapshot replaces
the records before it in the transaction that makes it current. Every row carries a checksum and every record
its number: a damaged or incomplete file is refused, never half read.
"""

from __future__ import annotations

import fcntl
import hashlib
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from rumormill.errors import DataError, InputError
from rumormill.live.core import records
from rumormill.live.core.records import Own, Record
from rumormill.live.io import journal as snapshot

_DIGEST = 16


def pack(state: dict[str, Any]) -> bytes:
    """The state as bytes."""
    body = msgspec.msgpack.encode(state)
    return digest(body) + body


def unpack(data: bytes) -> dict[str, Any]:
    """The state that `pack` was given; damaged bytes raise DataError."""
    body = memoryview(data)[_DIGEST:]  # it can be large: no copy
    if len(data) <= _DIGEST or digest(body) != data[:_DIGEST]:
        raise DataError("the snapshot is damaged: its checksum does not fit")
    state: dict[str, Any] = msgspec.msgpack.decode(body)
    return state


def digest(data: bytes | memoryview) -> bytes:
    """A checksum of 16 bytes."""
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


FORMAT = 1
FILE = "node.db"
# Own observations kept for `rumormill mesh export`.
LOG_ROWS = 1_000_000
# Seconds between two attempts while the disk is full.
RETRY = 0.25

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS records (id INTEGER PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS snapshot (one INTEGER PRIMARY KEY CHECK (one = 1), upto INTEGER NOT NULL,
    data BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY, time REAL NOT NULL, game TEXT NOT NULL,
    t INTEGER NOT NULL, arm INTEGER NOT NULL, reward REAL NOT NULL) STRICT;
"""


@dataclass(frozen=True)
class Found:
    """What was on the disk."""

    epoch: int
    state: dict[str, Any] | None
    records: list[Record]


def lock(folder: Path) -> IO[bytes]:
    """The folder for this process alone, until the file is closed or the process ends, however it ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("ab")
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}; give another --data") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InputError(
            f"{folder} is in use: another node runs on it; stop that one, or give --data"
        ) from None
    return file


class Journal:
    """The disk of one node. Everything but `__init__` and `close` only hands things to the writer thread."""

    def __init__(
        self,
        folder: Path,
        owner: str,
        *,
        fresh_epoch: Callable[[], int],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`owner` names the mesh and node whose folder this is; another's is refused."""
        self.folder = folder
        self._clock = clock
        self._wake = threading.Condition()
        self._waiting: list[Record] = []
        self._snapshot: tuple[int, bytes] | None = None  # (records before it in this process, data)
        self._taken = 0  # records handed over in this process
        self._done = 0  # of those, on disk
        self._ending = False
        self._thread: threading.Thread | None = None
        self.trouble: str | None = None
        """Why nothing is written at the moment; None if all is well."""
        self.commits, self.commit_seconds = 0, 0.0
        self._lock = lock(folder)
        self._base = sqlite3.connect(folder / FILE, isolation_level=None, check_same_thread=False)
        try:
            self._set_up()
            self._last, self.found = self._load(owner, fresh_epoch)
        except sqlite3.DatabaseError as error:
            self._let_go()
            raise damaged(folder, str(error)) from None
        except BaseException:
            self._let_go()
            raise
        self._before = self._last  # the number of the last record that was on disk at the start

    def _set_up(self) -> None:
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = FULL")
        self._base.execute("PRAGMA busy_timeout = 2000")

    def _load(self, owner: str, fresh_epoch: Callable[[], int]) -> tuple[int, Found]:
        base = self._base
        sound = base.execute("PRAGMA quick_check(1)").fetchone()[0]
        if sound != "ok":
            raise damaged(self.folder, sound)
        base.executescript(_TABLES)
        meta = dict(base.execute("SELECT key, value FROM meta").fetchall())
        if not meta:
            rows = [("format", str(FORMAT)), ("owner", owner), ("epoch", str(fresh_epoch()))]
            with _Transaction(base):
                base.executemany("INSERT INTO meta VALUES (?, ?)", rows)
            meta = dict(rows)
        if int(meta["format"]) != FORMAT:
            raise InputError(f"{self.folder} has format {meta['format']}; this version reads {FORMAT}")
        if meta["owner"] != owner:
            raise InputError(f"{self.folder} belongs to {meta['owner']}, not to {owner}: give another --data")
        upto, state = 0, None
        row = base.execute("SELECT upto FROM snapshot").fetchone()
        if row is not None:
            upto = row[0]
            try:
                with base.blobopen("snapshot", "data", 1, readonly=True) as blob:  # it can be large: one copy
                    state = snapshot.unpack(blob.read())
            except (DataError, msgspec.DecodeError) as error:
                raise damaged(self.folder, str(error)) from None
        found: list[Record] = []
        for number, data, crc in base.execute("SELECT id, data, crc FROM records ORDER BY id"):
            if number != upto + len(found) + 1 or zlib.crc32(data) != crc:
                raise damaged(self.folder, f"record {number} does not fit")
            try:
                found.append(records.decode(data))
            except msgspec.DecodeError as error:  # its checksum is right
                raise InputError(
                    f"{self.folder} holds record {number} of a newer version ({error}): run that version"
                ) from None
        return upto + len(found), Found(int(meta["epoch"]), state, found)

    def forget_found(self) -> None:
        """What was found has been taken over: its memory is given back."""
        self.found = Found(self.found.epoch, None, [])

    # --- writing ------------------------------------------------------------------------------------

    def start(self, on_commit: Callable[[int], None]) -> None:
        """Begin to write. `on_commit(n)` hears, in the writer's thread, that n records are on disk."""
        self._on_commit = on_commit
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def write(self, batch: Sequence[Record]) -> None:
        """Records that are to come to the disk."""
        with self._wake:
            self._waiting += batch
            self._taken += len(batch)
            self._wake.notify()

    def write_snapshot(self, data: bytes) -> None:
        """The state as of the last record that was handed over."""
        with self._wake:
            self._snapshot = (self._taken, data)
            self._wake.notify()

    @property
    def backlog(self) -> int:
        """Records that wait for the disk."""
        return self._taken - self._done

    def _work(self) -> None:
        try:
            self._write()
        except Exception as error:
            self.trouble = f"nothing is written any more: {error!r}"
            raise

    def _write(self) -> None:
        while True:
            with self._wake:
                while not (self._waiting or self._snapshot or self._ending):
                    self._wake.wait()
                if not (self._waiting or self._snapshot):
                    return
                batch, snap = list(self._waiting), self._snapshot
            if not self._commit(batch, snap):
                with self._wake:
                    if self._ending:
                        return
                    self._wake.wait(RETRY)
                continue
            with self._wake:
                del self._waiting[: len(batch)]
                self._done += len(batch)
                if self._snapshot is snap:
                    self._snapshot = None
                done = self._done
            self._on_commit(done)

    def _commit(self, batch: Sequence[Record], snap: tuple[int, bytes] | None) -> bool:
        """One transaction; False, and nothing changed, if the disk does not take it."""
        started, now = time.perf_counter(), self._clock()
        first = self._before + self._done + 1
        rows = [(first + i, data, zlib.crc32(data)) for i, data in enumerate(map(records.encode, batch))]
        log = [(now, r.game, r.t, r.arm, r.reward) for r in batch if isinstance(r, Own)]
        base = self._base
        try:
            with _Transaction(base):
                base.executemany("INSERT INTO records VALUES (?, ?, ?)", rows)
                base.executemany("INSERT INTO log (time, game, t, arm, reward) VALUES (?, ?, ?, ?, ?)", log)
                if snap is not None:
                    upto = self._before + snap[0]
                    base.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?)", (upto, snap[1]))
                    base.execute("DELETE FROM records WHERE id <= ?", (upto,))
                    base.execute("DELETE FROM log WHERE id <= (SELECT max(id) FROM log) - ?", (LOG_ROWS,))
        except (sqlite3.Error, OSError) as error:  # said and tried again: never a writer that died unseen
            self.trouble = f"the disk does not take it: {error}"
            return False
        self.trouble = None
        self.commits += 1
        self.commit_seconds += time.perf_counter() - started
        return True

    def close(self, timeout: float = 10.0) -> bool:
        """Write what waits and stop; False if the disk did not take it."""
        with self._wake:
            self._ending = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(timeout)
        self._let_go()
        return self.backlog == 0

    def _let_go(self) -> None:
        self._base.close()
        self._lock.close()


class _Transaction:
    """BEGIN, and COMMIT or ROLLBACK."""

    def __init__(self, base: sqlite3.Connection) -> None:
        self._base = base

    def __enter__(self) -> None:
        self._base.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            self._base.execute("COMMIT" if kind is None else "ROLLBACK")
        except sqlite3.OperationalError:
            if kind is not None:  # SQLite has rolled back already
                return
            if self._base.in_transaction:
                self._base.execute("ROLLBACK")
            raise


def damaged(folder: Path, what: str) -> DataError:
    """The refusal of a file that cannot be trusted, with the way out."""
    return DataError(
        f"{folder / FILE} is damaged ({what}): move the folder away and start again; the node joins with a "
        "new epoch and gets back from its neighbours what they keep of its earlier observations"
    )


def read_log(folder: Path) -> tuple[str, list[tuple[float, str, int, int, float]]]:
    """(owner, rows of (time, game, t, arm, reward)) of a node's folder, while the node runs or not."""
    path = folder / FILE
    if not path.is_file():
        raise InputError(f"{folder} holds no node: there is no {FILE} in it")
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
            owner = base.execute("SELECT value FROM meta WHERE key = 'owner'").fetchone()[0]
            rows = base.execute("SELECT time, game, t, arm, reward FROM log ORDER BY id").fetchall()
    except sqlite3.DatabaseError as error:
        raise damaged(folder, str(error)) from None
    return owner, rows
