"""Strangers, wrong keys, replays, floods, liars: refused, counted, logged, and the node stays healthy."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from live.processes import GAME, Cluster, cluster, wait_until
from rumormill.live import frames as wire
from rumormill.live.frames import Hello, Obs, Splitter
from rumormill.live.keys import make_authority, make_keys
from rumormill.live.transport import tls


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A path 0 - 1 - 2 - 3 of which only node 1 runs; the tests play the others."""
    with cluster(tmp_path_factory.mktemp("mesh"), [(0, 1), (1, 2), (2, 3)], gamma=2) as built:
        built.start(1)
        yield built


class Peer:
    """Somebody who connects to node 1."""

    def __init__(self, made: Cluster, context: ssl.SSLContext | None) -> None:
        raw = socket.create_connection(("127.0.0.1", made.ports[1]), timeout=10)
        self.socket = raw if context is None else context.wrap_socket(raw)
        self._splitter = Splitter(wire.LARGE_FRAME)
        self._bodies: list[bytes] = []

    def send(self, frame: wire.Frame) -> None:
        self.socket.sendall(wire.encode(frame))

    def hello(self, node: int, epoch: int = 1, mesh: str = "test", games: Any = None) -> None:
        self.send(Hello(1, 1, mesh, node, epoch, games or []))

    def read(self) -> wire.Frame | None:
        """The next frame; None when the connection is closed."""
        while not self._bodies:
            try:
                data = self.socket.recv(65536)
            except (OSError, ssl.SSLError):
                return None
            if not data:
                return None
            self._bodies += self._splitter.feed(data)
        return wire.decode(self._bodies.pop(0))

    def is_closed(self) -> bool:
        """Whether the other side hangs up within a while."""
        end = time.monotonic() + 10
        while time.monotonic() < end:
            if self.read() is None:
                return True
        return False

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()


def keys(made: Cluster, name: str) -> ssl.SSLContext:
    return tls(made.folder / "keys", name, server=False)


def counted(made: Cluster, kind: str) -> int:
    return int(made.status(1)["violations"].get(kind, 0))


def games_of(made: Cluster) -> list[tuple[str, str]]:
    from rumormill.live.config import read_mesh

    mesh = read_mesh(made.mesh)
    return [(game.name, mesh.fingerprint(game)) for game in mesh.file.games]


def greeted(made: Cluster, name: str = "n0", node: int = 0, epoch: int = 1) -> Peer:
    """A neighbour that has said hello properly."""
    peer = Peer(made, keys(made, name))
    peer.hello(node, epoch, games=games_of(made))
    peer.send(wire.Have(GAME, [], full=True))
    return peer


def healthy(made: Cluster) -> None:
    with made.client(1) as client:
        client.observe(client.choose(GAME), 12.0)


def test_a_stranger_without_a_certificate(made: Cluster) -> None:
    before = counted(made, "handshake")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with Peer(made, context) as peer:
        assert peer.is_closed()
    wait_until(lambda: counted(made, "handshake") > before)
    assert any("handshake" in row["text"] for row in made.log(1))
    healthy(made)


def test_a_key_of_another_authority(made: Cluster, tmp_path: Path) -> None:
    before = counted(made, "handshake")
    make_authority(tmp_path, "test")
    make_keys(tmp_path, "n0")
    context = tls(tmp_path, "n0", server=False)
    context.verify_mode = ssl.CERT_NONE
    with Peer(made, context) as peer:
        assert peer.is_closed()
    wait_until(lambda: counted(made, "handshake") > before)
    healthy(made)


def test_a_member_that_is_no_neighbour(made: Cluster) -> None:
    before = counted(made, "stranger")
    with Peer(made, keys(made, "n3")) as peer:
        assert peer.is_closed()
    wait_until(lambda: counted(made, "stranger") > before)
    healthy(made)


@pytest.mark.parametrize("case", ["another node", "another mesh", "no hello", "twice"])
def test_a_false_hello(made: Cluster, case: str) -> None:
    before = counted(made, "hostile")
    with Peer(made, keys(made, "n0")) as peer:
        if case == "another node":
            peer.hello(2)
        elif case == "another mesh":
            peer.hello(0, mesh="other")
        elif case == "twice":
            peer.hello(0)
            peer.hello(0)
        else:
            peer.send(wire.Have(GAME, []))
        assert peer.is_closed()
    wait_until(lambda: counted(made, "hostile") > before)
    healthy(made)


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">I", 2 << 20),
        struct.pack(">I", 5) + b"hello",
        struct.pack(">I", 3) + b"\x92\xa3\xff",
        b"GET / HTTP/1.1\r\n",
    ],
    ids=["oversize", "no array", "cut off", "another protocol"],
)
def test_garbage(made: Cluster, data: bytes) -> None:
    before = counted(made, "hostile")
    with greeted(made) as peer:
        peer.socket.sendall(data)
        assert peer.is_closed()
    wait_until(lambda: counted(made, "hostile") > before)
    healthy(made)


def test_a_frame_of_a_newer_version_is_ignored(made: Cluster) -> None:
    import msgspec

    body = msgspec.msgpack.encode(["weather", "fine", 3])
    longer = msgspec.msgpack.encode(["ping", 7, "and more"])
    with greeted(made) as peer:
        for each in (body, longer):
            peer.socket.sendall(struct.pack(">I", len(each)) + each)
        frames: list[wire.Frame | None] = []
        while not frames or not isinstance(frames[-1], wire.Pong):
            frames.append(peer.read())
            assert frames[-1] is not None
    healthy(made)


def test_a_version_of_the_protocol_that_is_not_spoken(made: Cluster) -> None:
    with Peer(made, keys(made, "n0")) as peer:
        peer.send(Hello(7, 9, "test", 0, 1, []))
        said = []
        while (frame := peer.read()) is not None:
            said.append(frame)
        assert any(isinstance(frame, wire.Bye) for frame in said)
    with Peer(made, keys(made, "n0")) as peer:
        peer.send(Hello(1, 2, "test", 0, 1, games_of(made)))  # one version newer: both speak 1
        while not isinstance(frame := peer.read(), wire.Have):
            assert frame is not None
    healthy(made)


def test_a_peer_cannot_speak_for_another(made: Cluster) -> None:
    before, samples = counted(made, "hops"), made.samples(1)
    with greeted(made) as peer:
        peer.send(Obs(GAME, 2, 1, 1, 1, [(1, 0, 5.0)]))
        peer.send(Obs(GAME, 9, 1, 2, 1, [(1, 0, 5.0)]))
        wait_until(lambda: counted(made, "hops") > before)
        wait_until(lambda: counted(made, "origin") > 0)
    assert made.samples(1) == samples
    healthy(made)


def test_replays_and_nonsense_are_counted_once_or_not_at_all(made: Cluster) -> None:
    epoch = time.time_ns()
    before = made.samples(1)
    with greeted(made, epoch=epoch) as peer:
        for _ in range(50):
            peer.send(Obs(GAME, 0, epoch, 1, 1, [(1, 0, -5.0), (2, 99, -5.0), (3, 1, float("nan"))]))
        wait_until(lambda: made.samples(1) > before)
        time.sleep(0.3)
    with greeted(made, epoch=epoch) as peer:  # and again over a new connection
        peer.send(Obs(GAME, 0, epoch, 1, 1, [(1, 0, -5.0)]))
        time.sleep(0.3)
    assert made.samples(1) == before + 1
    healthy(made)


def test_too_many_epochs(made: Cluster) -> None:
    with greeted(made, epoch=1) as peer:
        for epoch in range(100):
            peer.send(Obs(GAME, 0, epoch + 1, 1, 1, [(1, 0, -5.0)]))
        wait_until(lambda: counted(made, "epochs") >= 90)
    healthy(made)


def test_a_thousand_connections_that_say_nothing(made: Cluster) -> None:
    before = counted(made, "crowd")
    crowd: list[socket.socket] = []
    try:
        crowd += [socket.create_connection(("127.0.0.1", made.ports[1]), timeout=5) for _ in range(300)]
        wait_until(lambda: counted(made, "crowd") > before)
        healthy(made)
    finally:
        for each in crowd:
            each.close()
    wait_until(lambda: _can_link(made), 20)


def _can_link(made: Cluster) -> bool:
    try:
        with greeted(made) as peer:
            return peer.read() is not None
    except (OSError, ssl.SSLError):
        return False


def test_http_clients_that_hang_or_talk_nonsense(made: Cluster) -> None:
    hanging = [socket.create_connection(("127.0.0.1", made.http[1]), timeout=5) for _ in range(50)]
    for each in hanging:
        each.sendall(b"POST /v1/choose HTTP/1.1\r\nContent-Length: 100\r\n\r\n{")
    for data, code in (
        (b"\r\n\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\n" + b"a: " + 40_000 * b"b" + b"\r\n\r\n", b"431"),
        (b"POST /v1/choose HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", b"413"),
        (b"POST /v1/choose HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"400"),
        (b"POST /v1/choose HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        (b"POST /v1/choose HTTP/1.1\r\nContent-Length: 4\r\n\r\n{{{{", b"400"),
        (b"DELETE /v1/choose HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /nowhere HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /v1/choose HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n\r\n", b"403"),
    ):
        with socket.create_connection(("127.0.0.1", made.http[1]), timeout=10) as client:
            client.sendall(data)
            assert code in client.recv(200)[:20], data[:40]
    healthy(made)
    for each in hanging:
        each.close()
