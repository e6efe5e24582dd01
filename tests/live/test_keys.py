"""Keys over the years: rotated, revoked, reloaded, expired; both ends of a link say what happens to it."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from live.processes import COMMAND, Cluster, cluster, wait_until
from live.test_processes import all_have, play
from live.test_security import Peer, keys
from rumormill.cli import main
from rumormill.errors import InputError
from rumormill.live.core import frames as wire
from rumormill.live.io import runtime as process
from rumormill.live.io.runtime import Runtime, Settings
from rumormill.live.io.status import metrics
from rumormill.mesh import edit
from rumormill.mesh import keys as mesh_keys
from rumormill.mesh.file import GamePart, read_mesh
from rumormill.mesh.keys import load_tls, make_authority, make_keys, serial_of

DAY = 86_400.0


def made_mesh(folder: Path, *, signed: bool = False) -> Path:
    moments = {"eps": 0.5, "u": 1.0, "rho": 1.0}
    policy = {"type": "decentralized", "gamma": 1, "clique_filter": False}
    path = edit.init(
        folder, "test", GamePart(name="g", arms=["a", "b"], policy=policy, moments=moments), signed=signed
    )
    edit.add(path, "n0", "127.0.0.1:7400", [])
    edit.add(path, "n1", "127.0.0.1:7401", ["n0"])
    edit.plan(path)
    return path


@pytest.mark.parametrize("signed", [False, True])
def test_rotate_gives_new_keys_and_revokes_the_old_certificate(tmp_path: Path, signed: bool) -> None:
    path = made_mesh(tmp_path, signed=signed)
    folder, before = tmp_path / "keys", read_mesh(path).file
    old = {kind: (folder / f"n1.{kind}").read_bytes() for kind in ("key", "crt")}
    serial = serial_of(folder, "n1")
    assert serial is not None
    for _ in range(2):  # also twice
        after = edit.rotate(path, "n1").file
    assert after.revision == before.revision + 2
    assert after.plans == before.plans
    assert after.revoked[0] == serial
    assert len(set(after.revoked)) == 2
    assert load_tls(folder, "n1").serial == serial_of(folder, "n1") not in after.revoked
    for kind, data in old.items():
        assert (folder / "removed" / f"n1-{serial}.{kind}").read_bytes() == data
        assert (folder / f"n1.{kind}").read_bytes() != data
    assert oct((folder / "n1.key").stat().st_mode)[-3:] == "600"
    assert after.nodes[1].key != before.nodes[1].key
    assert after.nodes[1].former_keys[:1] == ([before.nodes[1].key] if signed else [])


def test_rotate_needs_the_certificate_and_the_authority(tmp_path: Path) -> None:
    path = made_mesh(tmp_path)
    before = path.read_bytes()
    with pytest.raises(InputError, match="has no node 'n7'"):
        edit.rotate(path, "n7")
    (tmp_path / "keys" / "n0.crt").unlink()
    (tmp_path / "keys" / "ca.key").rename(tmp_path / "ca.key")
    with pytest.raises(InputError, match=r"n0\.crt is missing: its serial number is to be revoked"):
        edit.rotate(path, "n0")
    with pytest.raises(InputError, match=r"ca\.key is missing: rotate keys where the mesh was made"):
        edit.rotate(path, "n1")
    assert path.read_bytes() == before


def test_the_certificate_of_a_removed_node_is_revoked(tmp_path: Path) -> None:
    """Else it would be let in again as soon as a new node has its name."""
    path = made_mesh(tmp_path)
    serial = serial_of(tmp_path / "keys", "n1")
    edit.remove(path, "n1")
    edit.add(path, "n1", "127.0.0.1:7401", ["n0"])
    assert read_mesh(path).revoked == {serial}
    assert serial_of(tmp_path / "keys", "n1") != serial


def test_keys_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    path = made_mesh(tmp_path)
    folder = tmp_path / "keys"
    for kind in ("key", "crt"):
        (tmp_path / f"n1.{kind}").write_bytes((folder / f"n0.{kind}").read_bytes())
    (tmp_path / "ca.crt").write_bytes((folder / "ca.crt").read_bytes())
    with pytest.raises(InputError, match=r"n1\.crt is the certificate of 'n0', not of 'n1'"):
        load_tls(tmp_path, "n1")
    (tmp_path / "other").mkdir()
    make_authority(tmp_path / "other", "test")
    (tmp_path / "ca.crt").write_bytes((tmp_path / "other" / "ca.crt").read_bytes())
    with pytest.raises(InputError, match="is not a certificate of the authority"):
        load_tls(tmp_path, "n1")
    edit.rotate(path, "n0")
    for kind in ("key", "crt"):  # the new mesh file, the old keys
        (old,) = (folder / "removed").glob(f"n0-*.{kind}")
        (folder / f"n0.{kind}").write_bytes(old.read_bytes())
    with pytest.raises(InputError, match=r"revokes the certificate \w+ of node 'n0': copy its new n0\.crt"):
        Runtime(Settings(mesh=path, name="n0", data=tmp_path / "n0.data"))


def test_a_signed_mesh_refuses_a_key_that_is_not_in_its_file(tmp_path: Path) -> None:
    path = made_mesh(tmp_path, signed=True)
    before = path.read_bytes()
    edit.rotate(path, "n0")
    path.write_bytes(before)  # the new keys, the old mesh file
    with pytest.raises(InputError, match=r"n0\.key is not the key of node 'n0' in"):
        Runtime(Settings(mesh=path, name="n0", data=tmp_path / "n0.data"))


def test_expiry_is_a_metric_and_is_warned_of_thirty_days_ahead(tmp_path: Path, caplog: Any) -> None:
    """By the node's own clock, once a day."""
    path = made_mesh(tmp_path)

    def warned(runtime: Runtime, days: float) -> list[float]:
        now = runtime.transport.keys.expires["node"] - days * DAY
        runtime.clock = lambda: now
        caplog.clear()
        runtime.log_changes()
        once = {id(row): row for row in caplog.records}.values()  # other tests may leave a second handler
        found = [row for row in once if getattr(row, "fields", {}).get("certificate") == "node"]
        assert all("rumormill mesh rotate" in row.getMessage() for row in found)
        return [row.fields["days"] for row in found]

    async def live() -> None:
        runtime = Runtime(Settings(mesh=path, name="n0", data=tmp_path / "n0.data", http="127.0.0.1:0"))
        runtime._next_warning = 0.0
        found = [warned(runtime, days) for days in (31.2, 30.6, 30.1, 29.0, 28.9, 27.9, -1.0)]
        assert found == [[], [], [], [29.0], [], [27.9], [-1.0]]
        for name, when in runtime.transport.keys.expires.items():
            line = f'rumormill_certificate_expiry_timestamp_seconds{{certificate="{name}"}} {when!r}\n'
            assert line in metrics(runtime)
        runtime.journal.close()

    monkey = process.log.propagate
    process.log.propagate = True
    try:
        with caplog.at_level(logging.WARNING, process.log.name):
            asyncio.run(live())
    finally:
        process.log.propagate = monkey


def lines(made: Cluster, v: int, text: str, **fields: str) -> list[dict[str, Any]]:
    return [
        row
        for row in made.log(v)
        if text in row["text"] and all(str(row.get(key)).find(value) >= 0 for key, value in fields.items())
    ]


def test_a_node_is_rotated_in_a_running_mesh(tmp_path: Path) -> None:
    """No process is started again; the old certificate is out; what was signed before is still passed on."""
    with cluster(tmp_path, [(0, 1), (1, 2)], gamma=2, signed=True) as made:
        for v in range(2):
            made.start(v, wait=False)
        wait_until(lambda: all(made.ready(v) for v in range(2)))
        pids = {v: made.processes[v].pid for v in range(2)}
        with made.client(0) as client:
            play(client, 5, random.Random(1))
        with made.client(1) as client:
            play(client, 4, random.Random(2))
        all_have(made, 9)
        stolen = keys(made, "n1")
        edit.rotate(made.mesh, "n1")
        made.hang_up(0)  # the others first
        wait_until(lambda: bool(lines(made, 0, "refused", kind="revoked", node="n1")))
        wait_until(lambda: bool(lines(made, 1, "no link", node="n0", reason="revoked")))
        made.hang_up(1)
        wait_until(lambda: len(lines(made, 0, "link up", node="n1")) == 2)
        with made.client(1) as client:
            play(client, 3, random.Random(3))
        all_have(made, 12)
        made.start(2)  # it gets items signed with both keys, those of n0 through n1
        all_have(made, 12)
        for port in (made.ports[0], made.ports[2]):
            made.ports[1] = port
            with Peer(made, stolen) as peer:
                said = peer.read()
                assert isinstance(said, wire.Bye)
                assert re.fullmatch(r"refused: its certificate \w+ is revoked", said.reason)
                assert peer.is_closed()
        assert {v: made.processes[v].pid for v in range(2)} == pids
        assert made.kill(2, signal.SIGTERM) == 0
        wait_until(lambda: bool(lines(made, 1, "link down", node="n2", reason="stopping")))
        made.hang_up(0)  # nothing is new
        wait_until(lambda: bool(lines(made, 0, "not taken: its revision")))


def test_refused_handshakes_are_logged_on_both_sides(tmp_path: Path, monkeypatch: Any) -> None:
    """An expired certificate, and the keys of another mesh: the one who dials learns the reason too."""
    with cluster(tmp_path, [(0, 1)]) as made:
        made.start(1)
        (tmp_path / "keys" / "n0.crt").unlink()
        (tmp_path / "keys" / "n0.key").unlink()
        monkeypatch.setattr(mesh_keys, "YEARS", -0.5 / 365)
        make_keys(tmp_path / "keys", "n0")
        monkeypatch.undo()
        made.start(0)
        wait_until(lambda: bool(lines(made, 0, "no link", node="n1", reason="certificate expired")))
        wait_until(lambda: bool(lines(made, 1, "certificate has expired", kind="handshake")))
        wait_until(lambda: bool(lines(made, 0, "the certificate of the node expires in -0.5 days")))
        made.kill(0)
        other = tmp_path / "other"
        make_authority(other, "test")
        make_keys(other, "n0")
        mesh = str(made.mesh)
        words = ["node", "--mesh", mesh, "--name", "n0", "--data", str(made.data(0)), "--keys", str(other)]
        command = [sys.executable, "-c", COMMAND, *words, "--http", "127.0.0.1:0"]
        log = (tmp_path / "n0.log").open("ab")
        made.processes[0] = subprocess.Popen(command, stderr=log)
        log.close()
        wait_until(lambda: bool(lines(made, 0, "no link", node="n1", reason="certificate verify failed")))
        wait_until(lambda: bool(lines(made, 1, "alert decrypt error", kind="handshake", address="127.0.0.1")))


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = made_mesh(tmp_path)
    with pytest.raises(SystemExit, match="0"):
        main(["mesh", "rotate", "n0", "--mesh", str(path)])
    printed = capsys.readouterr()
    assert "n0 has new keys n0.crt and n0.key" in printed.out
    assert "SIGHUP to all nodes, to n0 last" in printed.err
