"""Strangers, wrong keys, replays, floods, liars: refused, counted, logged, and the node stays healthy."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from live.processes import GAME, Cluster, cluster, wait_until
from rumormill.live.core import frames as wire
from rumormill.live.core.frames import Hello, Obs, Splitter
from rumormill.live.core.node_config import fingerprint
from rumormill.live.core.signatures import BEGIN, Signer, chained
from rumormill.mesh.file import read_mesh
from rumormill.mesh.keys import load_tls, make_authority, make_keys, signing_keys


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A path 0 - 1 - 2 - 3 of which only node 1 runs; the tests play the others."""
    with cluster(tmp_path_factory.mktemp("mesh"), [(0, 1), (1, 2), (2, 3)], gamma=2) as built:
        built.start(1)
        yield built


class Peer:
    """Somebody who connects to node 1."""

    def __init__(self, made: Cluster, context: ssl.SSLContext | None) -> None:
        raw = socket.create_connection(("127.0.0.1", made.ports[1]), timeout=60)
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
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.read() is None:
                return True
        return False

    def is_heard(self) -> None:
        """Everything that was sent has been taken in: frames are handled in order."""
        nonce = time.time_ns() % 1_000_000_007
        self.send(wire.Ping(nonce))
        while (frame := self.read()) != wire.Pong(nonce):
            assert frame is not None

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()


def keys(made: Cluster, name: str) -> ssl.SSLContext:
    return load_tls(made.folder / "keys", name).client


def counted(made: Cluster, kind: str) -> int:
    return int(made.status(1)["violations"].get(kind, 0))


def games_of(made: Cluster) -> list[tuple[str, str]]:
    mesh = read_mesh(made.mesh)
    return [(game.name, fingerprint(mesh, game)) for game in mesh.file.games]


def greeted(made: Cluster, name: str = "n0", node: int = 0, epoch: int = 1) -> Peer:
    """A neighbour that has said hello properly."""
    peer = Peer(made, keys(made, name))
    peer.hello(node, epoch, games=games_of(made))
    peer.send(wire.Have(GAME, [], full=True))
    return peer


@contextmanager
def refused(made: Cluster, *kinds: str) -> Iterator[None]:
    """What happens in here is counted and logged, and the node goes on choosing and learning."""
    before = made.status(1)["violations"]
    yield
    wait_until(lambda: all(counted(made, kind) > before.get(kind, 0) for kind in kinds))
    wait_until(lambda: {row.get("kind") for row in made.log(1)} >= set(kinds))
    healthy(made)


def healthy(made: Cluster) -> None:
    with made.client(1) as client:
        client.observe(client.choose(GAME), 12.0)


def test_a_stranger_without_a_certificate(made: Cluster) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with refused(made, "handshake"), Peer(made, context) as peer:
        assert peer.is_closed()


def test_a_key_of_another_authority(made: Cluster, tmp_path: Path) -> None:
    make_authority(tmp_path, "test")
    make_keys(tmp_path, "n0")
    context = load_tls(tmp_path, "n0").client
    context.verify_mode = ssl.CERT_NONE
    with refused(made, "handshake"), Peer(made, context) as peer:
        assert peer.is_closed()


def test_a_member_that_is_no_neighbour(made: Cluster) -> None:
    with refused(made, "stranger"), Peer(made, keys(made, "n3")) as peer:
        assert peer.is_closed()


@pytest.mark.parametrize("case", ["another node", "another mesh", "no hello", "twice"])
def test_a_false_hello(made: Cluster, case: str) -> None:
    with refused(made, "hostile"), Peer(made, keys(made, "n0")) as peer:
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


@pytest.mark.parametrize(
    "sent", [b"", b"\0\0", struct.pack(">I", 100) + b"\x97"], ids=["none", "two", "some"]
)
def test_a_neighbour_that_does_not_say_hello_in_time(made: Cluster, sent: bytes) -> None:
    """However slowly its bytes come: only whole frames count."""
    with refused(made, "slow"), Peer(made, keys(made, "n0")) as peer:
        peer.socket.sendall(sent)
        assert peer.is_closed()
    assert any("no hello" in row["text"] for row in made.log(1))


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
    with refused(made, "hostile"), greeted(made) as peer:
        peer.socket.sendall(data)
        assert peer.is_closed()


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
    samples = made.samples(1)
    with refused(made, "hops", "origin"), greeted(made) as peer:
        peer.send(Obs(GAME, 2, 1, 1, 1, [(1, 0, 5.0)]))
        peer.send(Obs(GAME, 9, 1, 2, 1, [(1, 0, 5.0)]))
        peer.is_heard()
        assert made.samples(1) == samples


def test_replays_and_nonsense_are_counted_once_or_not_at_all(made: Cluster) -> None:
    epoch = time.time_ns()
    before = made.samples(1)
    with greeted(made, epoch=epoch) as peer:
        for _ in range(50):
            peer.send(Obs(GAME, 0, epoch, 1, 1, [(1, 0, -5.0), (2, 99, -5.0), (3, 1, float("nan"))]))
        peer.is_heard()
    with greeted(made, epoch=epoch) as peer:  # and again over a new connection
        peer.send(Obs(GAME, 0, epoch, 1, 1, [(1, 0, -5.0)]))
        peer.is_heard()
    assert made.samples(1) == before + 1
    healthy(made)


def test_a_recorded_connection_that_is_played_again(made: Cluster) -> None:
    """Byte for byte what a neighbour once sent: without its key nobody gets through the handshake."""
    epoch = time.time_ns()
    incoming, outgoing, sent = ssl.MemoryBIO(), ssl.MemoryBIO(), b""
    tunnel = keys(made, "n0").wrap_bio(incoming, outgoing)
    address = ("127.0.0.1", made.ports[1])

    def through(step: Callable[[], object]) -> None:
        nonlocal sent
        while True:
            try:
                step()
                break
            except ssl.SSLWantReadError:
                pass
            finally:
                said = outgoing.read()
                raw.sendall(said)
                sent += said
            incoming.write(raw.recv(65536))

    before = made.samples(1)
    with socket.create_connection(address, timeout=60) as raw:
        through(tunnel.do_handshake)
        hello = Hello(1, 1, "test", 0, epoch, games_of(made))
        for frame in (hello, Obs(GAME, 0, epoch, 1, 1, [(1, 0, -5.0)])):
            through(partial(tunnel.write, wire.encode(frame)))
        wait_until(lambda: made.samples(1) == before + 1)
    with (
        refused(made, "handshake"),
        socket.create_connection(address, timeout=60) as raw,
        suppress(ConnectionError),
    ):
        raw.sendall(sent)
        while raw.recv(65536):
            pass
    assert made.samples(1) == before + 2, "what was told once, and the own sample of a healthy node"


def test_too_many_epochs(made: Cluster) -> None:
    with refused(made, "epochs"), greeted(made, epoch=1) as peer:
        for epoch in range(100):
            peer.send(Obs(GAME, 0, epoch + 1, 1, 1, [(1, 0, -5.0)]))
        wait_until(lambda: counted(made, "epochs") >= 90)


def test_a_thousand_connections_that_say_nothing(made: Cluster) -> None:
    """A neighbour gets through while they are there: of those that say nothing the oldest has to go."""
    before = counted(made, "crowd")
    with ExitStack() as crowd:
        for _ in range(1000):
            crowd.enter_context(socket.create_connection(("127.0.0.1", made.ports[1]), timeout=60))
        wait_until(lambda: counted(made, "crowd") >= before + 900)
        with greeted(made) as peer:
            assert isinstance(peer.read(), Hello)
        healthy(made)
    lines = [row for row in made.log(1) if "too many unidentified connections" in row["text"]]
    assert 0 < len(lines) < 100, "a crowd does not fill the log"


def test_http_clients_that_hang_or_talk_nonsense(made: Cluster) -> None:
    with ExitStack() as hanging:
        for _ in range(50):
            each = socket.create_connection(("127.0.0.1", made.http[1]), timeout=60)
            slow = hanging.enter_context(each)
            slow.sendall(b"POST /v1/choose HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{")
        ask_nonsense(made)
        healthy(made)
        first = counted(made, "http")
        idle = hanging.enter_context(socket.create_connection(("127.0.0.1", made.http[1]), timeout=60))
        for each in (slow, idle):
            assert each.recv(100) == b"", "it is let go"
        wait_until(lambda: counted(made, "http") >= max(first, 50))
    assert any("an incomplete request" in row["text"] for row in made.log(1))
    healthy(made)


def ask_nonsense(made: Cluster) -> None:
    for data, code in (
        (b"\r\n\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"a: " + 40_000 * b"b" + b"\r\n\r\n", b"431"),
        (b"POST /v1/choose HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999\r\n\r\n", b"413"),
        (b"POST /v1/choose HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n", b"400"),
        (b"POST /v1/choose HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"501"),
        (b"POST /v1/choose HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n\r\n{{{{", b"400"),
        (b"DELETE /v1/choose HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"405"),
        (b"GET /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"404"),
        (b"POST /v1/choose HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://evil.example\r\n\r\n", b"403"),
    ):
        with socket.create_connection(("127.0.0.1", made.http[1]), timeout=60) as client:
            client.sendall(data)
            assert code in client.recv(200)[:20], data[:40]


def test_a_page_that_made_its_own_name_point_here(made: Cluster) -> None:
    """Its origin and its host agree, but the host is not this machine."""
    head = b"Host: evil.example:%d\r\nOrigin: http://evil.example:%d\r\n" % (made.http[1], made.http[1])
    for path in (b"POST /v1/choose", b"GET /v1/status"):
        with socket.create_connection(("127.0.0.1", made.http[1]), timeout=60) as client:
            client.sendall(path + b" HTTP/1.1\r\n" + head + b"\r\n")
            assert b"403" in client.recv(200)[:20]


def test_claims_beyond_all_reason(made: Cluster) -> None:
    before = counted(made, "have"), counted(made, "skip"), counted(made, "batch")
    with refused(made, "have", "skip", "batch"), greeted(made) as peer:
        peer.send(wire.Have(GAME, [(0, 1, 1 << 60, 0)], full=False))
        peer.send(wire.Skip(GAME, 2, 1, 1 << 60))
        peer.send(Obs(GAME, 0, 1, 1, 1 << 60, [(1, 0, -5.0)]))
        peer.is_heard()
        now = counted(made, "have"), counted(made, "skip"), counted(made, "batch")
        assert [a - b for a, b in zip(now, before, strict=True)] == [1, 1, 1]


def test_a_relay_cannot_speak_for_another_where_items_are_signed(tmp_path: Path) -> None:
    """Of a path 0 - 1 - 2 node 2 runs: the test passes on, as node 1, what node 0 said or did not."""
    with cluster(tmp_path, [(0, 1), (1, 2)], gamma=2, signed=True) as built:
        built.ports[1] = built.ports[2]  # whom the peer of this test connects to
        built.start(2)
        mesh = read_mesh(built.mesh)
        public = {node.id: [node.key] for node in mesh.file.nodes}
        signers = [Signer("test", *signing_keys(tmp_path / "keys", f"n{v}", public)) for v in range(2)]
        items = [(1, 0, -5.0), (2, 1, -7.0)]
        true = signers[0].sign_point(GAME, (0, 9), 2, chained(BEGIN, items), None)
        own = signers[1].sign_point(GAME, (0, 9), 2, chained(BEGIN, items), None)
        other = signers[0].sign_point("chess", (0, 9), 2, chained(BEGIN, items), None)

        def refused() -> int:
            return int(built.status(2)["violations"].get("seal", 0))

        with Peer(built, keys(built, "n1")) as peer:
            peer.hello(1, games=[(game.name, fingerprint(mesh, game)) for game in mesh.file.games])
            peer.send(wire.Have(GAME, [], full=True))
            for signature in (b"", own.signature, other.signature, true.signature[::-1]):
                peer.send(Obs(GAME, 0, 9, 2, 1, items, None, signature))
            peer.send(Obs(GAME, 0, 9, 2, 1, [(1, 0, -5.0), (2, 1, -8.0)], None, true.signature))
            peer.send(Obs(GAME, 0, 9, 2, 1, items[:1], None, true.signature))
            peer.send(Obs(GAME, 0, 9, 2, 1, items, wire.Head(5, 1, ()), true.signature))
            peer.send(wire.Skip(GAME, 0, 9, 1000, bytes(32), None, true.signature))
            peer.is_heard()
            assert refused() == 8
            assert built.samples(2) == 0
            for _ in range(2):  # and again: once is enough
                peer.send(Obs(GAME, 0, 9, 2, 1, items, None, true.signature))
            peer.is_heard()
        assert refused() == 8
        assert built.samples(2) == 2
        with built.client(2) as client:
            client.observe(client.choose(GAME), 12.0)
        assert any("node 1: seal" in row["text"] for row in built.log(2))
