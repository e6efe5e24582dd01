"""The folder of a node: its journal in SQLite, the mark beside it, the log; verified before it is used.

Records carry chained checksums, and the last acknowledged one is marked in a file of its own: a journal that
ends before its mark has lost records. A damaged folder is refused, never read in part, and not changed. Own
observations that a snapshot replaces move to the log, which `rumormill mesh export` writes as a table.
"""

from __future__ import annotations

import csv
import datetime
import fcntl
import os
import sqlite3
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

import msgspec

from rumormill.arms.base import sign_of
from rumormill.errors import DataError, InputError
from rumormill.files import StoreError, write_atomically
from rumormill.live.core import records
from rumormill.live.core.records import (
    DIGEST,
    NO_MARK,
    Mark,
    Own,
    Record,
    Row,
    digest,
    propensity_of,
    stored_rows,
    verified,
    weight_of,
)
from rumormill.live.io.items import named_segments, verify_segments
from rumormill.mesh.file import GamePart, Mesh, read_mesh
from rumormill.text import nearest


def pack(state: Any) -> bytes:
    """A snapshot as bytes, with a checksum."""
    body = msgspec.msgpack.encode(state)
    return digest(body) + body


def unpack(data: bytes, kind: Any = dict[str, Any]) -> Any:
    """The state that `pack` was given; damaged bytes raise DataError."""
    body = memoryview(data)[DIGEST:]  # large: no copy
    if len(data) <= DIGEST or digest(body) != data[:DIGEST]:
        raise DataError("the snapshot is damaged: its checksum does not fit")
    return msgspec.msgpack.decode(body, type=kind)


FORMAT = 2
FILE, MARK = "node.db", "node.mark"
# Own observations kept for `rumormill mesh export`, and the fewest in a segment of the log but the last.
LOG_ROWS, SEGMENT = 1_000_000, 4_096
# Bytes of each of the two places of the mark.
PLACE = 4_096
# The disk or its rights refuse an operation: this says nothing about the content.
REFUSED = (
    *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY),
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PERM),
)

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE records (id INTEGER PRIMARY KEY, time REAL NOT NULL, data BLOB NOT NULL,
    chain BLOB NOT NULL) STRICT;
CREATE TABLE snapshot (one INTEGER PRIMARY KEY CHECK (one = 1), head BLOB NOT NULL,
    data BLOB NOT NULL) STRICT;
CREATE TABLE log (id INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
"""


class LogRow(NamedTuple):
    """An own observation; without a propensity it is stored as the five values before."""

    time: float
    game: str
    t: int
    arm: int | str
    reward: float
    propensity: float | None = None


class Beginning(msgspec.Struct, array_like=True):
    """What the records of a journal follow: a snapshot, or nothing."""

    epoch: int
    upto: int
    """The number of the last record before, and its checksum."""
    chain: bytes
    begin: bytes
    """The checksum of format, owner and epoch at the first start."""
    state: bytes = b""
    """The checksum of the snapshot."""
    items: dict[str, int] = {}
    """The last own item of every game."""
    log: list[tuple[int, int, bytes]] = []
    """(number, rows, checksum) of every segment of the log."""


@dataclass
class Found:
    """The content of a sound journal."""

    owner: str
    beginning: Beginning
    state: dict[str, Any] | None
    rows: list[Row]
    records: list[Record]
    log: list[LogRow]
    """Own observations, if they were asked for."""

    @property
    def epoch(self) -> int:
        """The epoch as of the snapshot; records may change it."""
        return self.beginning.epoch


def lock(folder: Path) -> IO[bytes]:
    """Lock the folder for this process, until the file is closed or the process ends."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("ab")
    except OSError as error:
        raise InputError(f"{folder} cannot be written: {error.strerror}{_room(folder)}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise InputError(
            f"{folder} is in use: another node runs on it; stop that one, or give --data"
        ) from None
    return file


def _room(folder: Path) -> str:
    """What to do, by how much room there is on the disk."""
    place = next(each for each in (folder, *folder.absolute().parents) if each.is_dir())
    disk = os.statvfs(place)
    full = "the disk is full: make room" if disk.f_bavail * disk.f_frsize < 1 << 20 else "see to the disk"
    return f"; {full} and start again, or give another --data; do not move the folder away, it may be sound"


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Say whether a journal is damaged or the disk refuses it, and what to do."""
    try:
        yield
    except sqlite3.Error as error:
        if (getattr(error, "sqlite_errorcode", 0) & 0xFF) not in REFUSED:
            raise damaged(folder, str(error)) from None
        raise InputError(f"{folder / FILE} cannot be used: {error}{_room(folder)}") from None
    except (OSError, StoreError) as error:
        raise InputError(f"{folder} cannot be used: {error}{_room(folder)}") from None


def damaged(folder: Path, what: str) -> DataError:
    """The error for a damaged journal, with what to do."""
    return DataError(
        f"{folder} is damaged ({what}): nothing was changed; start the node with --rejoin, which sets the"
        " damaged files aside, joins with a new epoch and gets back what neighbours keep of its observations"
    )


class MarkFile:
    """The mark, in two places written in turn: one of them is whole whenever the machine stops."""

    def __init__(self, folder: Path) -> None:
        """Open the mark of a folder, made if there is none."""
        path = folder / MARK
        if not path.exists():
            write_atomically(path, 2 * _place(NO_MARK))
        self._next = 1 - _newest(folder)[0]
        self._file = os.open(path, os.O_RDWR)

    def write(self, mark: Mark) -> None:
        """Write the mark; it is on disk when this returns."""
        os.pwrite(self._file, _place(mark), self._next * PLACE)
        os.fdatasync(self._file)
        self._next = 1 - self._next

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def _place(mark: Mark) -> bytes:
    """A mark as bytes: checksum, length, content, zeros."""
    body = msgspec.msgpack.encode(mark)
    if len(body) > PLACE - DIGEST - 4:  # hundreds of games
        body = msgspec.msgpack.encode(mark._replace(items={}))
    filled = (len(body).to_bytes(4, "big") + body).ljust(PLACE - DIGEST, b"\0")
    return digest(filled) + filled


def _newest(folder: Path) -> tuple[int, Mark]:
    """The newest mark of a folder, and in which place it is."""
    raw, found = (folder / MARK).read_bytes(), []
    for at in (0, 1):
        data = raw[at * PLACE : (at + 1) * PLACE]
        if len(data) == PLACE and digest(data[DIGEST:]) == data[:DIGEST]:
            start = DIGEST + 4
            body = data[start : start + int.from_bytes(data[DIGEST:start], "big")]
            found.append((at, msgspec.msgpack.decode(body, type=Mark)))
    if not found:
        raise damaged(folder, f"{MARK} is not readable")
    return max(found, key=lambda each: each[1].number)


# --- reading --------------------------------------------------------------------------------------------


def read_folder(folder: Path, *, with_log: bool = False) -> Found | None:
    """The content of a folder, verified, while its node runs or not; None if a start creates or converts it.

    Changes nothing. A damaged folder raises DataError, one that cannot be read InputError.
    """
    with explained(folder):
        mark = _newest(folder)[1] if (folder / MARK).exists() else None
        if (folder / FILE).exists():
            base = sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True, isolation_level=None)
            with closing(base):
                base.execute("BEGIN")  # one state of the file, whatever is written meanwhile
                if base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    return read_base(base, folder, mark, with_log)
        if mark is not None and mark.number:
            raise damaged(folder, f"{FILE} is empty: {mark.number:,} records are missing")
    return None


def read_base(
    base: sqlite3.Connection, folder: Path, mark: Mark | None, with_log: bool = False
) -> Found | None:
    """The content of the database, verified; None if it is of version 0.2."""
    sound = base.execute("PRAGMA quick_check(1)").fetchone()[0]
    meta = dict(base.execute("SELECT key, value FROM meta").fetchall())
    if sound == "ok" and meta.get("format") == "1":
        return None
    try:
        if sound != "ok" or mark is None:
            raise DataError(sound if mark else f"{MARK} is missing")
        if meta.get("format") != str(FORMAT):
            raise InputError(f"{folder} has format {meta.get('format')}; this version reads {FORMAT}")
        start, state = _beginning(base, meta)
        rows = list(map(Row._make, base.execute("SELECT id, time, data, chain FROM records ORDER BY id")))
        found = Found(meta["owner"], start, state, rows, [], [])
        verify_segments(base, named_segments(state))
        found.records = verified(start.upto, start.chain, start.items, rows, mark)
        for name, _, wanted in start.log:
            (data,) = base.execute("SELECT data FROM log WHERE id = ?", (name,)).fetchone() or (b"",)
            if digest(data) != wanted:
                raise DataError(f"segment {name} of the log is changed")
            found.log += msgspec.msgpack.decode(data, type=list[LogRow]) if with_log else []
    except DataError as error:
        raise damaged(folder, str(error)) from None
    except msgspec.MsgspecError as error:  # its checksum is right
        raise InputError(f"{folder} holds a record of a newer version ({error}): run that version") from None
    found.log += own_rows(zip(rows, found.records, strict=True))
    return found


def _beginning(base: sqlite3.Connection, meta: dict[str, str]) -> tuple[Beginning, dict[str, Any] | None]:
    """What the records follow, and the state of the snapshot."""
    begin = digest("\n".join(f"{key} {meta.get(key)}" for key in ("format", "owner", "epoch")).encode())
    row = base.execute("SELECT head FROM snapshot").fetchone()
    if row is None:
        return Beginning(int(meta["epoch"]), 0, begin, begin), None
    beginning = unpack(row[0], Beginning)
    with base.blobopen("snapshot", "data", 1, readonly=True) as blob:  # large: one copy
        data = blob.read()
    if beginning.begin != begin or data[:DIGEST] != beginning.state:
        raise DataError("the snapshot is of another journal")
    return beginning, unpack(data)


def own_rows(found: Iterable[tuple[Row, Record]]) -> list[LogRow]:
    """The own observations among records, as the log keeps them."""
    return [
        LogRow(row.time, r.game, r.t, r.name or r.arm, r.reward, propensity_of(r) if copy == 0 else None)
        for row, r in found
        if isinstance(r, Own)
        for copy in range(weight_of(r))
    ]


def check_folder(folder: Path) -> str:
    """What a sound folder holds, in one line; DataError if it is damaged."""
    owner, log = read_log(folder)
    return f"{folder} is sound: {owner}, {len(log):,} own observations"


def read_log(folder: Path) -> tuple[str, list[LogRow]]:
    """(owner, own observations) of a node's folder, while the node runs or not."""
    if not (folder / FILE).is_file() and not (folder / MARK).is_file():
        raise InputError(f"{folder} holds no node: there is no {FILE} in it")
    found = read_folder(folder, with_log=True)
    if found is None:
        raise InputError(f"{folder} is empty, or of version 0.2: start its node once, which converts it")
    return found.owner, found.log


def set_aside_damage(folder: Path) -> Path | None:
    """Move the files of a damaged folder away, so that its node joins anew; where to, None if it is sound."""
    with closing(lock(folder)), explained(folder):
        try:
            read_folder(folder)
        except DataError:
            aside = folder / f"damaged-{time.time_ns() // 1_000_000}"
            aside.mkdir()
            for path in sorted(folder.glob("node.*")):
                path.rename(aside / path.name)
            return aside
    return None


# --- writing --------------------------------------------------------------------------------------------


def append_log(
    base: sqlite3.Connection, log: Sequence[tuple[int, int, bytes]], own: Sequence[LogRow]
) -> list[tuple[int, int, bytes]]:
    """Append observations to the log, as a segment or to the last one if that is short; drop the oldest."""
    kept = list(log)
    if not own:
        return kept
    name = kept[-1][0] + 1 if kept else 1
    if kept and kept[-1][1] < SEGMENT:
        name, _, _ = kept.pop()
        (data,) = base.execute("SELECT data FROM log WHERE id = ?", (name,)).fetchone()
        own = [*msgspec.msgpack.decode(data, type=list[LogRow]), *own]
    data = msgspec.msgpack.encode([row if row.propensity is not None else row[:5] for row in own])
    base.execute("INSERT OR REPLACE INTO log VALUES (?, ?)", (name, data))
    kept.append((name, len(own), digest(data)))
    while sum(count for _, count, _ in kept[1:]) >= LOG_ROWS:
        base.execute("DELETE FROM log WHERE id = ?", (kept.pop(0)[0],))
    return kept


def create(base: sqlite3.Connection, folder: Path, owner: str, fresh_epoch: Callable[[], int]) -> None:
    """Create the tables; convert those of version 0.2 (format 1), if there are."""
    if base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        _convert(base, folder)
        return
    _make_tables(base)
    meta = [("format", str(FORMAT)), ("owner", owner), ("epoch", str(fresh_epoch()))]
    base.executemany("INSERT INTO meta VALUES (?, ?)", meta)


def _convert(base: sqlite3.Connection, folder: Path) -> None:
    upto, state = base.execute("SELECT upto, data FROM snapshot").fetchone() or (0, b"")
    old: list[Record] = []
    for number, data, crc in base.execute("SELECT id, data, crc FROM records ORDER BY id"):
        if number != upto + len(old) + 1 or zlib.crc32(data) != crc:
            raise damaged(folder, f"record {number} does not fit")
        old.append(records.decode(data))
    base.execute("ALTER TABLE log RENAME TO old_log")
    base.execute("DROP TABLE records")
    base.execute("DROP TABLE snapshot")
    _make_tables(base)
    base.execute("UPDATE meta SET value = ? WHERE key = 'format'", (str(FORMAT),))
    # Own observations in the records are in the old log too, with their time.
    last = (base.execute("SELECT max(id) FROM old_log").fetchone()[0] or 0) - sum(
        isinstance(each, Own) for each in old
    )
    times = base.execute("SELECT time FROM old_log WHERE id > ? ORDER BY id", (last,)).fetchall()
    start, _ = _beginning(base, dict(base.execute("SELECT key, value FROM meta").fetchall()))
    if state:
        rows = base.execute(
            "SELECT time, game, t, arm, reward, NULL FROM old_log WHERE id <= ? ORDER BY id", (last,)
        )
        while part := rows.fetchmany(50_000):
            start.log = append_log(base, start.log, list(map(LogRow._make, part)))
        start.upto, start.state = upto, state[:DIGEST]
        base.execute("INSERT INTO snapshot VALUES (1, ?, ?)", (pack(start), state))
    chain, when = start.chain, iter(times)
    for number, record in enumerate(old, upto):
        (row,) = stored_rows(number, chain, next(when)[0] if isinstance(record, Own) else 0.0, [record])
        chain = row.chain
        base.execute("INSERT INTO records VALUES (?, ?, ?, ?)", row)
    base.execute("DROP TABLE old_log")


def _make_tables(base: sqlite3.Connection) -> None:
    for statement in _TABLES.split(";"):  # `executescript` would end the transaction
        base.execute(statement)


# --- the log as a table ---------------------------------------------------------------------------------


def observations(
    path: Path, folders: Iterable[Path], game: str | None
) -> tuple[GamePart, list[tuple[Any, ...]]]:
    """(game, rows of (time, agent, arm, reward, propensity)) from the folders of nodes, oldest first."""
    mesh = read_mesh(path)
    if game is None and len(mesh.games) != 1:
        raise InputError(f"which game: --game {' or '.join(mesh.games)}")
    part = next(iter(mesh.games.values())) if game is None else mesh.part(game)
    if part is None:
        raise InputError(f"{path} has no game {game!r}{nearest(str(game), mesh.games)}")
    sign = sign_of(part.objective)
    rows = []
    for folder in folders:
        node, found = read_log_of(mesh, folder)
        numbered = dict(enumerate(part.arms))  # before arms could change, they were logged by number
        rows += [
            (when, node, numbered.get(arm) if isinstance(arm, int) else arm, sign * reward, chance)
            for when, name, _, arm, reward, chance in found
            if name == (game or part.name) and (isinstance(arm, str) or arm in numbered)
        ]
    rows.sort(key=lambda row: row[0])
    return part, rows


def read_log_of(mesh: Mesh, folder: Path) -> tuple[str, list[LogRow]]:
    """(name, own observations) of a node of this mesh."""
    owner, found = read_log(folder)
    prefix = f"mesh {mesh.file.name}, node "
    if not owner.startswith(prefix):
        raise InputError(f"{folder} belongs to {owner}, not to mesh {mesh.file.name}")
    return owner.removeprefix(prefix), found


def export(
    path: Path, folders: Iterable[Path], out: Path, *, game: str | None = None, wide: bool = False
) -> int:
    """Write the log of nodes as a table: a row per observation or, if `wide`, a column per arm; its rows.

    The column `propensity` is there if it was recorded, empty in rows that have none.
    """
    part, rows = observations(path, folders, game)
    if wide:
        columns = {arm: [row[3] for row in rows if row[2] == arm] for arm in part.arms}
        length = min(len(column) for column in columns.values())
        table: dict[str, list[Any]] = {arm: column[:length] for arm, column in columns.items()}
    else:
        times = [datetime.datetime.fromtimestamp(row[0], datetime.UTC).isoformat() for row in rows]
        drawn = any(row[4] is not None for row in rows)
        names = ("agent", "arm", value_name(part), *["propensity"] * drawn)
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
