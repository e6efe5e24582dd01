"""Damage to any file of a node's folder is refused, or changes nothing: no record is missing silently."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from live.making import GAME
from live.test_journal import OWNER, Waiter, opened
from live.test_supervision import lines, settings
from rumormill.cli.app import main
from rumormill.errors import DataError, InputError
from rumormill.live.core import records
from rumormill.live.core.records import Own, Record, Reserve
from rumormill.live.core.streams import checksum
from rumormill.live.io.folder import FILE, FORMAT, MARK, LogRow, MarkFile, pack, read_log, set_aside_damage
from rumormill.live.io.items import named_segments, verify_segments
from rumormill.live.io.journal import Journal
from rumormill.live.io.runtime import Settings

__all__ = ["settings"]

STEP = 97
SEGMENTS = [b"s" * 2_000, b"t" * 1_500]
STORED = [0, 4, [[4 * at, at + 1, checksum(data)] for at, data in enumerate(SEGMENTS)]]
STREAM = [1, 1, 8, b"", None, None, STORED]
STATE = {"a game": {"agent": [1, 2.5, b"x" * 3000], "streams": [STREAM]}}
FILES = (FILE, f"{FILE}-wal", f"{FILE}-shm", MARK, "lock")


def some(first: int, last: int) -> list[Record]:
    return [Own(GAME, t, t % 3, t / 3, t) for t in range(first, last + 1)]


@pytest.mark.parametrize("marked", [True, False], ids=["before the mark", "after the mark"])
def test_a_changed_record_is_named(marked: bool) -> None:
    """Also one that was written but not acknowledged: the mark says nothing about it."""
    rows = records.stored_rows(0, b"", 1.0, some(1, 9))
    mark = records.Mark(9, rows[-1].chain, {}) if marked else records.NO_MARK
    assert records.verified(0, b"", {}, rows, mark) == some(1, 9)
    rows[4] = rows[4]._replace(data=records.encode(Own(GAME, 5, 1, 99.0, 5)))
    with pytest.raises(DataError, match="record 5 is changed"):
        records.verified(0, b"", {}, rows, mark)


def test_a_missing_segment_is_refused() -> None:
    with closing(sqlite3.connect(":memory:")) as base:
        base.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, data BLOB)")
        base.execute("INSERT INTO items VALUES (1, ?)", (SEGMENTS[0],))
        verify_segments(base, {1: checksum(SEGMENTS[0])})
        with pytest.raises(DataError, match="1 segments of the retained items are missing"):
            verify_segments(base, {1: checksum(SEGMENTS[0]), 2: checksum(SEGMENTS[1])})


class Made:
    """A folder as it is found: after a crash (with a WAL) or a clean stop; and what its node acknowledged."""

    def __init__(self, place: Path, *, crash: bool, size: int = 40) -> None:
        place.mkdir(parents=True)
        journal, waiter = opened(place), Waiter()
        journal.start(waiter)
        assert [journal.items.put(data) for data in [*SEGMENTS, b"not named"]] == [1, 2, 3]
        journal.write(some(1, size))
        assert waiter.wait_for(size)
        journal.write_snapshot(pack(STATE), segments=named_segments(STATE))
        for t in range(size + 1, 2 * size + 1, 5):  # one transaction each
            journal.write(some(t, t + 4))
            assert waiter.wait_for(t + 4)
            if t == size + 1:  # part of the journal is in the main file, part of it in the WAL
                journal._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        found = [path for path in place.iterdir() if crash]
        self.files = {path.name: path.read_bytes() for path in found}
        assert journal.close()
        self.files = self.files or {path.name: path.read_bytes() for path in place.iterdir()}
        self.log = read_log(place)
        self.records = some(size + 1, 2 * size)
        assert len(self.log[1]) == 2 * size
        self._place, self._turn = place, 0

    def put(self, name: str = "", data: bytes = b"") -> Path:
        """The folder, with other bytes in one file."""
        self._turn += 1
        place = self._place.with_name(f"{self._place.name}{self._turn}")
        place.mkdir()
        for each, content in self.files.items():
            (place / each).write_bytes(data if each == name else content)
        return place

    def is_refused(self, place: Path) -> bool:
        """Whether a start and the export are refused; if not, nothing may be missing or changed."""
        try:
            log = read_log(place)
        except (DataError, InputError):
            log = None
        try:
            with closing(opened(place)) as journal:
                assert (journal.found.epoch, journal.found.state) == (7, STATE)
                assert journal.found.records == self.records
                assert [journal.items.get(number) for number in (1, 2)] == SEGMENTS
        except (DataError, InputError):
            shutil.rmtree(place)
            return True
        assert log == self.log
        assert read_log(place) == self.log
        shutil.rmtree(place)
        return False


@pytest.fixture(scope="module", params=["crash", "clean"])
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    return Made(tmp_path_factory.mktemp("damage") / "node", crash=request.param == "crash")


def flips(data: bytes, step: int) -> Iterator[bytes]:
    for at in range(0, len(data), step):
        yield data[:at] + bytes([data[at] ^ (1 << at % 8)]) + data[at + 1 :]


def other_bytes(data: bytes, step: int) -> Iterator[bytes]:
    """Truncated, or with a page of zeros."""
    for at in range(0, len(data), step):
        yield data[:at]
    for at in range(0, len(data), max(512, step)):
        yield data[:at] + bytes(512) + data[at + 512 :]


@pytest.mark.parametrize("name", FILES)
def test_no_damage_goes_unseen(made: Made, name: str) -> None:
    """A sample of what the slow test does."""
    _damage_all(made, name, 9 * STEP)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_no_damage_to_any_97th_byte_goes_unseen(made: Made, name: str) -> None:
    _damage_all(made, name, STEP)


def _damage_all(made: Made, name: str, step: int) -> None:
    assert not made.is_refused(made.put())
    data = made.files.get(name, b"")
    seen = [made.is_refused(made.put(name, each)) for each in flips(data, step)]
    seen += [made.is_refused(made.put(name, each)) for each in other_bytes(data, 4 * step)]
    if name == FILE:
        assert sum(seen) > len(seen) / 4


@pytest.mark.parametrize("name", [FILE, f"{FILE}-wal", MARK])
def test_a_file_that_is_gone_is_missed(made: Made, name: str) -> None:
    if name in made.files:
        place = made.put()
        (place / name).unlink()
        assert made.is_refused(place)


# --- what is said, and what to do ------------------------------------------------------------------------


def cut_wal(tmp_path: Path) -> Path:
    """A folder whose WAL lost its last transactions."""
    made = Made(tmp_path / "node", crash=True)
    wal = made.files[f"{FILE}-wal"]
    return made.put(f"{FILE}-wal", wal[: len(wal) // 2])


def test_a_missing_tail_is_named(tmp_path: Path) -> None:
    place = cut_wal(tmp_path)
    before = {path.name: path.read_bytes() for path in place.iterdir() if not path.name.endswith("-shm")}
    with pytest.raises(DataError) as caught:
        opened(place)
    said = str(caught.value)
    first = int(said.partition("records ")[2].partition(" to 80 are missing")[0])
    assert 41 < first <= 80
    assert f"own items {first} to 80 of game {GAME}" in said
    assert "--rejoin" in said
    assert all((place / name).read_bytes() == data for name, data in before.items()), (
        "a refusal changes nothing"
    )


def test_rejoin_sets_a_damaged_folder_aside(tmp_path: Path) -> None:
    place = cut_wal(tmp_path)
    aside = set_aside_damage(place)
    assert aside is not None
    assert {FILE, f"{FILE}-wal", MARK} <= {path.name for path in aside.iterdir()}
    with closing(opened(place)) as journal:
        assert journal.found.records == []
    assert set_aside_damage(place) is None


def code_of(*words: str) -> int:
    with pytest.raises(SystemExit) as caught:
        main(words)
    return int(caught.value.code or 0)


def test_check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = Made(tmp_path / "node", crash=False)
    assert code_of("node", "check", str(made.put())) == 0
    assert f"is sound: {OWNER}, 80 own observations" in capsys.readouterr().out
    assert code_of("node", "check", str(cut_wal(tmp_path / "other"))) == 1
    assert "are missing" in capsys.readouterr().out
    assert code_of("node", "check", str(tmp_path / "nothing")) == 2
    assert code_of("node") == 2
    with closing(opened(place := made.put())):  # while its node runs
        assert code_of("node", "check", str(place)) == 0


def test_a_mark_that_was_not_written_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction is on disk, the mark is not: nothing is acknowledged, nothing is written twice."""
    write, fails = MarkFile.write, [OSError(5, "input/output error")] * 2

    def failing(self: MarkFile, mark: records.Mark) -> None:
        if fails:
            assert waiter.done == 0
            raise fails.pop()
        write(self, mark)

    monkeypatch.setattr(MarkFile, "write", failing)
    journal, waiter = opened(tmp_path), Waiter()
    journal.start(waiter)
    journal.write(some(1, 10))
    assert waiter.wait_for(10)
    journal.write(some(11, 12))
    assert waiter.wait_for(12)
    assert journal.close()
    with closing(opened(tmp_path)) as again:
        assert again.found.records == some(1, 12)


def test_a_crash_before_the_mark_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(tmp_path / "node", crash=False)
    place = made.put()
    monkeypatch.setattr(MarkFile, "write", lambda self, mark: None)
    journal, waiter = opened(place), Waiter()
    journal.start(waiter)
    journal.write([Reserve(GAME, 99)])
    journal.write_snapshot(pack(STATE))
    assert waiter.wait_for(1)
    assert journal.close()
    monkeypatch.undo()
    with closing(opened(place)) as again:
        assert again.found.state == STATE
    assert read_log(place) == made.log


# --- folders of version 0.2 ------------------------------------------------------------------------------

OLD_STATE = {"a game": {"agent": [1]}}
OLD = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE records (id INTEGER PRIMARY KEY, data BLOB NOT NULL, crc INTEGER NOT NULL) STRICT;
CREATE TABLE snapshot (one INTEGER PRIMARY KEY CHECK (one = 1), upto INTEGER NOT NULL,
    data BLOB NOT NULL) STRICT;
CREATE TABLE log (id INTEGER PRIMARY KEY, time REAL NOT NULL, game TEXT NOT NULL,
    t INTEGER NOT NULL, arm INTEGER NOT NULL, reward REAL NOT NULL) STRICT;
"""


def old_folder(place: Path, *, snapshot: bool) -> list[LogRow]:
    """A folder as 0.2 wrote it: 30 observations, with a snapshot after 20; its log."""
    rows = [*some(1, 20), Reserve(GAME, 2048), *some(21, 30)]
    log = [LogRow(100.0 + r.t, r.game, r.t, r.arm, r.reward) for r in rows if isinstance(r, Own)]
    place.mkdir()
    with closing(sqlite3.connect(place / FILE)) as base:
        base.executescript(OLD)
        base.executemany(
            "INSERT INTO meta VALUES (?, ?)", [("format", "1"), ("owner", OWNER), ("epoch", "7")]
        )
        for number, data in enumerate(map(records.encode, rows), 1):
            if not snapshot or number > 20:
                base.execute("INSERT INTO records VALUES (?, ?, ?)", (number, data, zlib.crc32(data)))
        if snapshot:
            base.execute("INSERT INTO snapshot VALUES (1, 20, ?)", (pack(OLD_STATE),))
        base.executemany(
            "INSERT INTO log (time, game, t, arm, reward) VALUES (?, ?, ?, ?, ?)", [row[:5] for row in log]
        )
        base.commit()
    return log


@pytest.mark.parametrize("snapshot", [False, True])
def test_a_folder_of_0_2_is_converted(tmp_path: Path, snapshot: bool) -> None:
    log = old_folder(tmp_path / "old", snapshot=snapshot)
    for _ in range(2):
        with closing(opened(tmp_path / "old")) as journal:
            assert journal.found.epoch == 7
            assert journal.found.state == (OLD_STATE if snapshot else None)
            expected = [Reserve(GAME, 2048), *some(21, 30)]
            assert journal.found.records == (expected if snapshot else [*some(1, 20), *expected])
    assert read_log(tmp_path / "old") == (OWNER, log)
    with closing(sqlite3.connect(tmp_path / "old" / FILE)) as base:
        assert base.execute("SELECT value FROM meta WHERE key = 'format'").fetchone() == (str(FORMAT),)


def test_a_crash_while_converting_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = old_folder(tmp_path / "old", snapshot=True)

    def stops(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rumormill.live.io.folder.append_log", stops)
    with pytest.raises(KeyboardInterrupt):
        opened(tmp_path / "old")
    monkeypatch.undo()
    opened(tmp_path / "old").close()
    assert read_log(tmp_path / "old") == (OWNER, log)


# --- a full disk, and SIGTERM, at the start --------------------------------------------------------------


@pytest.mark.parametrize("code", ["SQLITE_FULL", "SQLITE_IOERR_SHMSIZE", "SQLITE_CANTOPEN"])
def test_a_start_on_a_full_disk_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    made = Made(tmp_path / "node", crash=True)
    place = made.put()

    def full(*given: Any, **options: Any) -> Any:
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorcode = getattr(sqlite3, code)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("sqlite3.connect", full)
        patch.setattr("os.statvfs", lambda path: type("Full", (), {"f_bavail": 3, "f_frsize": 4096}))
        with pytest.raises(InputError, match="disk is full: make room and start again") as caught:
            opened(place)
    assert "damaged" not in str(caught.value)
    assert not made.is_refused(place)


def test_sigterm_during_the_start_ends_with_0(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before, opening = signal.getsignal(signal.SIGTERM), Journal.__init__

    def interrupted(self: Journal, *given: Any, **options: Any) -> None:
        signal.raise_signal(signal.SIGTERM)
        opening(self, *given, **options)

    monkeypatch.setattr(Journal, "__init__", interrupted)
    words = [
        "--mesh",
        str(settings.mesh),
        "--name",
        "a",
        "--data",
        str(settings.data),
        "--http",
        settings.http,
    ]
    try:
        assert code_of("node", *words) == 0
    finally:
        signal.signal(signal.SIGTERM, before)
    assert lines(capsys.readouterr().err)[-1]["text"] == "stopped"


def test_another_epoch_in_the_file_is_noticed(tmp_path: Path) -> None:
    place = Made(tmp_path / "node", crash=False).put()
    with closing(sqlite3.connect(place / FILE)) as base, base:
        base.execute("UPDATE meta SET value = '8' WHERE key = 'epoch'")
    with pytest.raises(DataError, match="the snapshot is of another journal"):
        opened(place)
