"""Links between nodes: TCP with TLS 1.3, both sides with certificates of the mesh.

Links between nodes: TCP with TLS 1.3, both sides with certificates of the mesh.

The certificate names the node; only neighbours get further than the handshake. The smaller id dials, again
and again with growing pauses. What a link may cost is bounded: strangers, frames, unsent bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
import socket
import ssl
from collections import deque
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from rumormill.errors import InputError
from rumormill.live.core.frames import LARGE_FRAME, Hostile, Splitter
from rumormill.live.core.node import Node

# Bytes that may wait in a connection before no more is put into it.
UNSENT = 256 * 1024
# Seconds for which one connection may keep everybody else waiting, and frames that may wait themselves.
TURN, MOST_HELD = 0.002, 64
# What an honest peer does too, for example when links come and go.
USUAL = {"hole", "fingerprint"}


def peer_name(transport: asyncio.BaseTransport) -> str:
    """The node that a certificate names; empty if there is none."""
    certificate = transport.get_extra_info("peercert") or {}
    for part in certificate.get("subject", ()):
        for key, value in part:
            if key == "commonName":
                return str(value)
    return ""


class Connection(asyncio.Protocol):
    """One TLS connection to a neighbour."""

    def __init__(self, transport: Transport, expected: int | None) -> None:
        self._owner, self._expected = transport, expected
        self._splitter = Splitter()
        self._held: deque[bytes] = deque()  # frames that came in while this link rests
        self.wire: asyncio.Transport | None = None
        self.link: int | None = None
        self.peer: int | None = None
        self.writable = True
        self.resting = False
        self.gone = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.wire = transport
        self._owner.wires.add(self)
        transport.set_write_buffer_limits(high=UNSENT)
        name = peer_name(transport)
        self.peer = self._owner.neighbour(name)
        if self.peer is None or self._expected not in (None, self.peer):
            self._owner.refuse("stranger", f"{name!r} is no neighbour")
            transport.abort()
            return
        self._splitter.limit = LARGE_FRAME
        self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        self._owner.bytes_in += len(data)
        if self.link is None:
            return
        try:
            self._held.extend(self._splitter.feed(data))
        except Hostile as error:
            self._owner.node.violations["hostile"] += 1  # what comes as a frame the node counts itself
            self._hostile(error)
            return
        self.take_in()
        if self.is_behind:
            self.rest(True)

    @property
    def is_behind(self) -> bool:
        """Whether more came than was taken in by now."""
        return len(self._held) > MOST_HELD

    def take_in(self) -> None:
        """Give the node what has come, while it wants more of it and nobody else waits for long."""
        node, loop = self._owner.node, asyncio.get_running_loop()
        before, end = dict(node.violations), loop.time() + TURN
        try:
            while self._held and self.link in node.links and not node.rests(self.link):
                node.receive(self.link, self._held.popleft())
                if loop.time() > end:
                    loop.call_soon(self.take_in)
                    break
        except Hostile as error:
            self._hostile(error)
            return
        if node.violations != before:
            for kind, count in node.violations.items():
                if count > before.get(kind, 0) and kind not in USUAL:
                    self._owner.say(kind, f"node {self.peer}: {kind}")
        if self.link in node.links and node.is_asked(self.link):
            self._owner.soon(self)

    def _hostile(self, error: Hostile) -> None:
        self._owner.say("hostile", f"node {self.peer}: {error}")
        self.close()

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self._owner.soon(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._owner.wires.discard(self)
        self._owner.closed(self)
        if not self.gone.done():
            self.gone.set_result(None)

    def rest(self, wanted: bool) -> None:
        """Read no more for now, or read again."""
        if self.wire is not None and wanted != self.resting and not self.wire.is_closing():
            self.resting = wanted
            (self.wire.pause_reading if wanted else self.wire.resume_reading)()

    def close(self) -> None:
        if self.wire is not None:
            self.wire.abort()


MOST_STRANGERS = 64
HANDSHAKE = 5.0
LEAST_PAUSE, MOST_PAUSE = 0.05, 2.0
# Bytes sent over one link before everybody else gets a turn.
AT_ONCE = 64 * 1024
# Why a node lets go of a neighbour that a broken network does not explain.
SLOW = {"no hello", "it does not read"}
# Seconds for the last words of a node that stops, and between two lines of one kind in its log.
GOODBYE, SAY_EVERY = 0.5, 1.0


def tls(folder: Path, name: str, *, server: bool) -> ssl.SSLContext:
    """The context of a node: its own key, and the mesh's authority as the only one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    if server:
        context.num_tickets = 0
    try:
        context.load_verify_locations(folder / "ca.crt")
        context.load_cert_chain(folder / f"{name}.crt", folder / f"{name}.key")
    except (OSError, ssl.SSLError) as error:
        raise InputError(
            f"keys of node {name!r} cannot be read from {folder}: {error}; `rumormill mesh add` makes some"
        ) from None
    return context


class Transport:
    """All links of one node."""

    def __init__(
        self,
        node: Node,
        names: dict[str, int],
        contexts: tuple[ssl.SSLContext, ssl.SSLContext],
        warn: Callable[[str, str], None],
    ) -> None:
        self.node, self._names, self._warn = node, names, warn
        self._server_tls, self._client_tls = contexts
        self.wires: set[Connection] = set()
        """All that are open, neighbours or not."""
        self._links: dict[int, Connection] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._dialling: dict[int, tuple[tuple[str, int], asyncio.Task[None]]] = {}
        self._strangers: dict[socket.socket, asyncio.Task[None]] = {}  # oldest first
        self._said: dict[str, tuple[float, int]] = {}  # per kind, when, and how often since
        self._socket: socket.socket | None = None
        self.bytes_in = self.bytes_out = 0

    # --- who may come in ----------------------------------------------------------------------------

    def neighbour(self, name: str) -> int | None:
        found = self._names.get(name)
        return found if found in self.node.setup.neighbours else None

    def rename(self, names: dict[str, int]) -> None:
        """The nodes of a new mesh file."""
        self._names = names

    def refuse(self, kind: str, text: str) -> None:
        self.node.violations[kind] += 1
        self.say(kind, text)

    def say(self, kind: str, text: str) -> None:
        """A line in the log; of one kind not more than one a second, for a log fills a disk too."""
        now = asyncio.get_running_loop().time()
        last, more = self._said.get(kind, (-SAY_EVERY, 0))
        if now - last < SAY_EVERY:
            self._said[kind] = (last, more + 1)
            return
        self._said[kind] = (now, 0)
        more_words = f" (and {more} more since the last such line)" if more else ""
        self._warn(kind, f"refused: {text}{more_words}")

    async def listen(self, host: str, port: int) -> None:
        self._socket = socket.create_server((host, port), backlog=128, family=_family(host))
        self._socket.setblocking(False)
        self._keep(self._accept())

    @property
    def port(self) -> int:
        assert self._socket is not None
        return int(self._socket.getsockname()[1])

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        assert self._socket is not None
        while True:
            try:
                raw, _ = await loop.sock_accept(self._socket)
            except OSError:
                await asyncio.sleep(LEAST_PAUSE)
                continue
            if len(self._strangers) >= MOST_STRANGERS:
                # The oldest has to go: a neighbour's handshake takes milliseconds, so that it gets through.
                self.refuse("crowd", "too many connections that do not say who they are")
                oldest = next(iter(self._strangers))
                self._strangers.pop(oldest).cancel()
            self._strangers[raw] = self._keep(self._handshake(raw))

    async def _handshake(self, raw: socket.socket) -> None:
        """A stranger costs a place among a few and some seconds, then it is known or gone."""
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: Connection(self, None), raw, ssl=self._server_tls, ssl_handshake_timeout=HANDSHAKE
            )
        except (OSError, ssl.SSLError, TimeoutError) as error:
            self.refuse("handshake", f"no handshake: {error}")
            raw.close()
        except asyncio.CancelledError:
            raw.close()
            raise
        finally:
            self._strangers.pop(raw, None)

    # --- dialling -----------------------------------------------------------------------------------

    def dial(self, addresses: dict[int, tuple[str, int]]) -> None:
        """Keep up the links to neighbours of a larger id; those to others are taken down."""
        for peer, (address, task) in list(self._dialling.items()):
            if addresses.get(peer) != address:  # gone, or moved
                del self._dialling[peer]
                task.cancel()
        for peer, address in addresses.items():
            if peer not in self._dialling:
                self._dialling[peer] = (address, self._keep(self._dial(peer, *address)))

    async def _dial(self, peer: int, host: str, port: int) -> None:
        pause = LEAST_PAUSE
        loop = asyncio.get_running_loop()
        while True:
            with contextlib.suppress(OSError, ssl.SSLError, TimeoutError):
                async with asyncio.timeout(2 * HANDSHAKE):
                    _, connection = await loop.create_connection(
                        lambda: Connection(self, peer),
                        host,
                        port,
                        ssl=self._client_tls,
                        server_hostname="",
                        ssl_handshake_timeout=HANDSHAKE,
                    )
                started = loop.time()
                await connection.gone
                if loop.time() - started > MOST_PAUSE:
                    pause = LEAST_PAUSE
            await asyncio.sleep(pause * (0.5 + random.random()))
            pause = min(2 * pause, MOST_PAUSE)

    # --- links --------------------------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        for other in [each for each in self._links.values() if each.peer == connection.peer]:
            other.close()  # a neighbour that came back before the old connection was seen to be dead
            self.closed(other)
        connection.link = next(self._numbers)
        self._links[connection.link] = connection
        assert connection.peer is not None
        self.node.link_up(connection.link, connection.peer)
        self.soon(connection)

    def closed(self, connection: Connection) -> None:
        if connection.link is not None and self._links.pop(connection.link, None) is not None:
            self.node.link_down(connection.link)

    def soon(self, connection: Connection) -> None:
        """Something is to be said on a link that does not wait for the next look around."""
        asyncio.get_running_loop().call_soon(self._send, connection)

    def pump(self, congested: bool) -> None:
        """Send what is to be sent; close what is to be closed; rest where too much comes in."""
        for link, connection in list(self._links.items()):
            self._send(connection)
            state = self.node.links.get(link)
            if state is None:
                continue
            if state.closing is not None or state.peer not in self.node.setup.neighbours:
                self._hang_up(connection, state.closing or "no neighbour any more")
                continue
            connection.rest(congested or self.node.rests(link) or connection.is_behind)
            if not connection.resting:
                connection.take_in()

    def _send(self, connection: Connection) -> None:
        wire, link = connection.wire, connection.link
        if wire is None or link not in self.node.links:
            return
        if connection.writable and not wire.is_closing():
            data = b"".join(self.node.frames(link, AT_ONCE))
            if data:
                self.bytes_out += len(data)
                wire.write(data)
            if len(data) >= AT_ONCE:  # there may be more, but others have to be served too
                self.soon(connection)

    def _hang_up(self, connection: Connection, why: str) -> None:
        assert connection.wire is not None
        if why in SLOW:
            self.refuse("slow", f"node {connection.peer}: {why}")
        if why.startswith("it speaks"):
            connection.wire.close()  # what was said last goes out first
        else:
            connection.close()
        self.closed(connection)

    async def stop(self) -> None:
        """Let go of everything; what was put into connections goes out first, if it can."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._socket is not None:
            self._socket.close()
        for end in ("close", "abort"):
            left = list(self.wires)
            for connection in left:
                if connection.wire is not None:
                    getattr(connection.wire, end)()
            if left:
                await asyncio.wait([connection.gone for connection in left], timeout=GOODBYE)

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
