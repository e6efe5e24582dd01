"""The journal of a node: SQLite in a folder, one writer thread, checksummed snapshots.

All waiting records are written in one transaction (WAL, synchronous FULL) and are durable when it commits. A
snapshot replaces the records before it in the transaction that makes it current. Every row of the journal has
a checksum and every record its number: a damaged or incomplete journal is refused, never read in part. The
journal also keeps the own observations as a log, which `rumormill mesh export` writes as a table.
"""

from __future__ import annotations

import csv
import datetime
import fcntl
import hashlib
import sqlite3
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from rumormill.errors import DataError, InputError
from rumormill.live.core import records
from rumormill.live.core.records import Own, Record
from rumormill.mesh.file import GamePart, read_mesh
from rumormill.text import nearest

_DIGEST = 16


def pack(state: dict[str, Any]) -> bytes:
    """A snapshot as bytes, with a checksum."""
    body = msgspec.msgpack.encode(state)
    return digest(body) + body


def unpack(data: bytes) -> dict[str, Any]:
    """The state that `pack` was given; damaged bytes raise DataError."""
    body = memoryview(data)[_DIGEST:]  # large: no copy
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
    """The content of a journal at the start."""

    epoch: int
    state: dict[str, Any] | None
    records: list[Record]


def lock(folder: Path) -> IO[bytes]:
    """Lock the folder for this process, until the file is closed or the process ends."""
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
        self._snapshot: tuple[int, bytes] | None = None  # (records before it in this process, data)
        self._queued = 0  # records queued in this process
        self._done = 0  # of those, on disk
        self._ending = False
        self._thread: threading.Thread | None = None
        self.fault: str | None = None
        """Why nothing is written at the moment; None without a fault."""
        self.commits, self.commit_seconds = 0, 0.0
        self._lock = lock(folder)
        self._base = sqlite3.connect(folder / FILE, isolation_level=None, check_same_thread=False)
        try:
            self._set_up()
            self._last, self.found = self._load(owner, fresh_epoch)
        except sqlite3.DatabaseError as error:
            self._release()
            raise damaged(folder, str(error)) from None
        except BaseException:
            self._release()
            raise
        self._before = self._last  # the number of the last record that was on disk at the start

    def _set_up(self) -> None:
        """The durability of transactions."""
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = FULL")
        self._base.execute("PRAGMA busy_timeout = 2000")

    def _load(self, owner: str, fresh_epoch: Callable[[], int]) -> tuple[int, Found]:
        """Check and read the whole journal: (number of the last record, content)."""
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
                with base.blobopen("snapshot", "data", 1, readonly=True) as blob:  # large: one copy
                    state = unpack(blob.read())
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
        """Free the memory of the content that was read at the start."""
        self.found = Found(self.found.epoch, None, [])

    # --- writing ------------------------------------------------------------------------------------

    def start(
        self,
        on_commit: Callable[[int], None],
        on_failure: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        """Start the writer thread, which calls `on_commit(n)` when n records are on disk.

        `on_failure(error)` is called if the thread ends with an error; a full disk is none.
        """
        self._on_commit, self._on_failure = on_commit, on_failure
        self._thread = threading.Thread(target=self._work, name="journal", daemon=True)
        self._thread.start()

    def write(self, batch: Sequence[Record]) -> None:
        """Queue records."""
        with self._wake:
            self._waiting += batch
            self._queued += len(batch)
            self._wake.notify()

    def write_snapshot(self, data: bytes) -> None:
        """Queue a snapshot of the state as of the last queued record."""
        with self._wake:
            self._snapshot = (self._queued, data)
            self._wake.notify()

    @property
    def backlog(self) -> int:
        """The number of records that are queued and not on disk."""
        return self._queued - self._done

    def _work(self) -> None:
        """The writer thread."""
        try:
            self._write()
        except Exception as error:
            self.fault = f"nothing is written any more: {error!r}"
            self._on_failure(error)

    def _write(self) -> None:
        """Commit what is queued, until closed."""
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
        """Write one transaction; False, and nothing written, if the disk refuses it."""
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
        except (sqlite3.Error, OSError) as error:  # reported and retried: the writer never ends silently
            self.fault = f"the disk does not take it: {error}"
            return False
        self.fault = None
        self.commits += 1
        self.commit_seconds += time.perf_counter() - started
        return True

    def close(self, timeout: float = 10.0) -> bool:
        """Write what is queued and stop; False if the disk refused it."""
        with self._wake:
            self._ending = True
            self._wake.notify()
        if self._thread is not None:
            self._thread.join(timeout)
        self._release()
        return self.backlog == 0

    def _release(self) -> None:
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
    """The error for a damaged journal, with what to do."""
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


# --- the log as a table ---------------------------------------------------------------------------------


def observations(
    path: Path, folders: Iterable[Path], game: str | None
) -> tuple[GamePart, list[tuple[Any, ...]]]:
    """(game, rows of (time, agent, arm, reward)) from the folders of nodes, oldest first."""
    mesh = read_mesh(path)
    if game is None and len(mesh.games) != 1:
        raise InputError(f"which game: --game {' or '.join(mesh.games)}")
    part = next(iter(mesh.games.values())) if game is None else mesh.games.get(game)
    if part is None:
        raise InputError(f"{path} has no game {game!r}{nearest(str(game), mesh.games)}")
    sign = -1.0 if part.objective == "minimise" else 1.0
    rows = []
    for folder in folders:
        owner, found = read_log(folder)
        prefix = f"mesh {mesh.file.name}, node "
        if not owner.startswith(prefix):
            raise InputError(f"{folder} belongs to {owner}, not to mesh {mesh.file.name}")
        rows += [
            (when, owner.removeprefix(prefix), part.arms[arm], sign * reward)
            for when, name, _, arm, reward in found
            if name == part.name and arm < len(part.arms)
        ]
    rows.sort(key=lambda row: row[0])
    return part, rows


def export(
    path: Path, folders: Iterable[Path], out: Path, *, game: str | None = None, wide: bool = False
) -> int:
    """Write the log of nodes as a table: a row per observation or, if `wide`, a column per arm; its rows."""
    part, rows = observations(path, folders, game)
    if wide:
        columns = {arm: [row[3] for row in rows if row[2] == arm] for arm in part.arms}
        length = min(len(column) for column in columns.values())
        table: dict[str, list[Any]] = {arm: column[:length] for arm, column in columns.items()}
    else:
        times = [datetime.datetime.fromtimestamp(row[0], datetime.UTC).isoformat() for row in rows]
        names = ("agent", "arm", value_name(part))
        table = {"time": times} | {key: [row[i] for row in rows] for i, key in enumerate(names, 1)}
    _write_table(out, table)
    return len(rows)


def value_name(game: GamePart) -> str:
    """The column of the values of a game: cost or reward."""
    return "cost" if game.objective == "minimise" else "reward"


def _write_table(out: Path, table: dict[str, list[Any]]) -> None:
    suffix = out.suffix.lower()
    out.parent.mkdir(parents=True, exist_ok=True)
    if suffix in (".parquet", ".pq"):
        import polars as pl

        pl.DataFrame(table).write_parquet(out)
    elif suffix in (".csv", ".tsv"):
        with out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, delimiter="," if suffix == ".csv" else "\t")
            writer.writerow(table)
            writer.writerows(zip(*table.values(), strict=True))
    else:
        raise InputError(f"{out} is no table: its name must end in .csv, .tsv, .parquet or .pq")
