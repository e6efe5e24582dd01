"""The disk: acknowledged means kept, whatever happens; damage and a full disk are said, not hidden."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import rumormill as rm
from live.making import GAME, node_config
from rumormill.errors import DataError, InputError
from rumormill.live.core.decisions import check_of
from rumormill.live.core.node import Node
from rumormill.live.core.records import Own, Reserve
from rumormill.live.io import folder as snapshot
from rumormill.live.io.folder import FILE, Found, read_log
from rumormill.live.io.journal import Journal

OWNER = "mesh test, node a"


def opened(folder: Path, owner: str = OWNER) -> Journal:
    return Journal(folder, owner, fresh_epoch=lambda: 7)


def found_in(folder: Path) -> Found:
    """What a node that starts finds."""
    with closing(opened(folder)) as journal:
        return journal.found


class Waiter:
    """Waits for what the writer's thread says."""

    def __init__(self) -> None:
        self.done = 0
        self._changed = threading.Condition()

    def __call__(self, n: int) -> None:
        with self._changed:
            self.done = n
            self._changed.notify_all()

    def wait_for(self, n: int, timeout: float = 60.0) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self.done >= n, timeout)


def wait_for(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def some(n: int) -> list[Own]:
    return [Own(GAME, t, t % 3, t / 3, t) for t in range(1, n + 1)]


def written(folder: Path, n: int = 50) -> None:
    journal, waiter = opened(folder), Waiter()
    journal.start(waiter)
    journal.write(some(n))
    assert waiter.wait_for(n)
    assert journal.close()


def test_records_come_back_in_order(tmp_path: Path) -> None:
    written(tmp_path)
    found = found_in(tmp_path)
    assert found.epoch == 7
    assert found.state is None
    assert found.records == some(50)


def test_a_snapshot_replaces_the_records_before_it(tmp_path: Path) -> None:
    journal, waiter = opened(tmp_path), Waiter()
    journal.start(waiter)
    journal.write(some(20))
    journal.write_snapshot(snapshot.pack({"a": [1, 2.5, b"x"]}))
    journal.write([Reserve(GAME, 99)])
    assert waiter.wait_for(21)
    assert journal.close()
    found = found_in(tmp_path)
    assert found.state == {"a": [1, 2.5, b"x"]}
    assert found.records == [Reserve(GAME, 99)]


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    for _ in range(3):
        written(tmp_path, 10)
    assert len(found_in(tmp_path).records) == 30


def test_the_log_is_kept_for_export(tmp_path: Path) -> None:
    written(tmp_path, 5)
    owner, rows = read_log(tmp_path)
    assert owner == OWNER
    assert [row[1:] for row in rows] == [(GAME, t, t % 3, t / 3, None) for t in range(1, 6)]


def test_another_nodes_folder_is_refused(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(InputError, match="belongs to mesh test, node a"):
        opened(tmp_path, "mesh test, node b")


def test_a_folder_is_for_one_process(tmp_path: Path) -> None:
    with closing(opened(tmp_path)), pytest.raises(InputError, match="in use"):
        opened(tmp_path)
    opened(tmp_path).close()


def test_a_writer_that_fails_says_so(tmp_path: Path) -> None:
    """Somebody else's rows are in the way: no acknowledgement, and the trouble is named."""
    waiter = Waiter()
    with closing(opened(tmp_path)) as journal:
        journal._base.execute("INSERT INTO records VALUES (1, 0.0, x'00', x'00')")
        journal.start(waiter)
        journal.write(some(3))
        wait_for(lambda: journal.fault is not None)
        assert "UNIQUE" in (journal.fault or "")
        assert waiter.done == 0
        journal._base.execute("DELETE FROM records")
        assert waiter.wait_for(3)


def test_a_writer_that_breaks_says_so_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> bool:
        raise KeyError("a defect")

    monkeypatch.setattr(Journal, "_commit", broken)
    failed: list[Exception] = []
    with closing(opened(tmp_path)) as journal:
        journal.start(Waiter(), failed.append)
        journal.write(some(3))
        wait_for(lambda: bool(failed))
        assert journal.fault == "nothing is written any more: KeyError('a defect')"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE records SET data = zeroblob(length(data)) WHERE id = 7",
        "DELETE FROM records WHERE id = 7",
        "INSERT INTO snapshot VALUES (1, x'00112233445566778899aabbccddeeff0011', x'00')",
    ],
)
def test_damaged_rows_are_refused(tmp_path: Path, statement: str) -> None:
    written(tmp_path)
    base = sqlite3.connect(tmp_path / FILE)
    base.execute(statement)
    base.commit()
    base.close()
    with pytest.raises(DataError, match=r"damaged.*new epoch"):
        opened(tmp_path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    written(tmp_path, 2000)
    path = tmp_path / FILE
    raw = bytearray(path.read_bytes())
    for at in range(0, len(raw), 4096):
        raw[at : at + 200] = os.urandom(200)
    path.write_bytes(raw)
    for extra in ("-wal", "-shm"):
        Path(f"{path}{extra}").unlink(missing_ok=True)
    with pytest.raises(DataError, match="damaged"):
        opened(tmp_path)


def test_a_full_disk_is_waited_for(tmp_path: Path) -> None:
    journal, waiter = opened(tmp_path), Waiter()
    pages = journal._base.execute("PRAGMA page_count").fetchone()[0]
    journal._base.execute(f"PRAGMA max_page_count = {pages + 2}")
    journal.start(waiter)
    journal.write(some(20_000))
    wait_for(lambda: journal.fault is not None)
    assert "full" in (journal.fault or "")
    assert waiter.done == 0
    assert journal.backlog == 20_000
    journal._base.execute("PRAGMA max_page_count = 1000000")
    assert waiter.wait_for(20_000)
    assert journal.fault is None
    assert journal.close()
    assert len(found_in(tmp_path).records) == 20_000


# A process that acknowledges observations on standard output, and is killed at any moment.
VICTIM = """
import sys, threading
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from live.test_journal import opened, Waiter, GAME, setup
from rumormill.live.core.node import Node
from rumormill.live.io.folder import pack
journal, waiter = opened(Path(sys.argv[1])), Waiter()
node = Node(setup(journal.found.epoch))
node.restart(journal.found.state, journal.found.records)
journal.start(waiter)
node.start()
def commit():
    journal.write(node.take_journal())
    waiter.wait_for(node.records)
    node.committed(waiter.done)
commit()
n = 0
while True:
    answers = []
    for _ in range(5):
        token = node.choose(GAME, float(n), 60.0)
        reward = token.t / 7
        answers.append((token.t, token.arm, reward, node.observe(GAME, token.t, token.arm, reward)))
    commit()
    for t, arm, reward, answer in answers:
        assert answer.record <= node.durable
        print(t, arm, reward, answer.seq, flush=True)
    n += 1
    if n % 13 == 0:
        journal.write_snapshot(pack(node.snapshot()))
"""


def setup(epoch: int) -> object:
    network = rm.Network.complete(2)
    return node_config(rm.DecentralizedMPUCB(gamma=1, clique_filter=False), network, 0, epoch=epoch)


def test_kill_at_any_moment_loses_nothing_and_counts_nothing_twice(tmp_path: Path) -> None:
    acknowledged: dict[int, tuple[int, float, int]] = {}
    for round_ in range(4):
        victim = subprocess.Popen(
            [sys.executable, "-c", VICTIM, str(tmp_path), str(Path(__file__).parents[1])],
            stdout=subprocess.PIPE,
            text=True,
        )
        with victim:
            assert victim.stdout is not None
            try:
                for count, line in enumerate(victim.stdout, 1):
                    if not line.endswith("\n"):
                        break
                    t, arm, reward, seq = line.split()
                    assert int(t) not in acknowledged, "a decision number was used twice"
                    acknowledged[int(t)] = (int(arm), float(reward), int(seq))
                    if count == 20 + 37 * round_:
                        victim.send_signal(signal.SIGKILL)
            finally:
                victim.kill()
    found = found_in(tmp_path)
    node = Node(setup(found.epoch))  # type: ignore[arg-type]
    node.restart(found.state, found.records)
    game = node.games[GAME]
    for number, answer in acknowledged.items():
        known = game.decisions.known(number)
        assert known is not None
        assert (known.check, known.seq) == (check_of(*answer[:2]), answer[2])
    assert sum(game.adapter.samples) == game.own.upto >= len(acknowledged)
    assert sum(samples.count for samples in game.adapter.agent.samples._arms) == game.own.upto
    items = game.own.retained.between(1, game.own.upto)
    assert len({t for t, _, _ in items}) == len(items)
