"""Links between nodes: TCP with TLS 1.3, both sides with certificates of the mesh.

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
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from rumormill.errors import InputError
from rumormill.live.frames import LARGE_FRAME, Hostile, Splitter
from rumormill.live.node import Node

MOST_STRANGERS = 64
HANDSHAKE = 5.0
LEAST_PAUSE, MOST_PAUSE = 0.05, 2.0
# Bytes that may wait in a connection before no more is put into it.
UNSENT = 256 * 1024


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
        self.wire: asyncio.Transport | None = None
        self.link: int | None = None
        self.peer: int | None = None
        self.writable = True
        self.resting = False
        self.gone = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.wire = transport
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
        node = self._owner.node
        try:
            try:
                bodies = self._splitter.feed(data)
            except Hostile:
                node.violations["hostile"] += 1  # what comes as a frame the node counts itself
                raise
            for body in bodies:
                node.receive(self.link, body)
        except Hostile as error:
            self._owner.warn(f"refused: node {self.peer}: {error}")
            self.close()
        self._owner.changed()

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self._owner.changed()

    def connection_lost(self, error: Exception | None) -> None:
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


class Transport:
    """All links of one node."""

    def __init__(
        self,
        node: Node,
        names: dict[str, int],
        contexts: tuple[ssl.SSLContext, ssl.SSLContext],
        changed: Callable[[], None],
        warn: Callable[[str], None],
    ) -> None:
        self.node, self._names, self.changed, self.warn = node, names, changed, warn
        self._server_tls, self._client_tls = contexts
        self._links: dict[int, Connection] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._dialling: dict[int, asyncio.Task[None]] = {}
        self._strangers = 0
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
        self.warn(f"refused: {text}")

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
            if self._strangers >= MOST_STRANGERS:
                self.node.violations["crowd"] += 1
                raw.close()
                continue
            self._keep(self._handshake(raw))

    async def _handshake(self, raw: socket.socket) -> None:
        """A stranger costs a place among a few and some seconds, then it is known or gone."""
        self._strangers += 1
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: Connection(self, None), raw, ssl=self._server_tls, ssl_handshake_timeout=HANDSHAKE
            )
        except (OSError, ssl.SSLError, TimeoutError) as error:
            self.refuse("handshake", f"no handshake: {error}")
            raw.close()
        finally:
            self._strangers -= 1

    # --- dialling -----------------------------------------------------------------------------------

    def dial(self, addresses: dict[int, tuple[str, int]]) -> None:
        """Keep up the links to neighbours of a larger id; those to others are taken down."""
        for peer in set(self._dialling) - set(addresses):
            self._dialling.pop(peer).cancel()
        for peer, (host, port) in addresses.items():
            if peer not in self._dialling:
                self._dialling[peer] = self._keep(self._dial(peer, host, port))

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
        self.changed()

    def closed(self, connection: Connection) -> None:
        if connection.link is not None and self._links.pop(connection.link, None) is not None:
            self.node.link_down(connection.link)
            self.changed()

    def pump(self, congested: bool) -> None:
        """Send what is to be sent; close what is to be closed; rest where too much comes in."""
        for link, connection in list(self._links.items()):
            state, wire = self.node.links[link], connection.wire
            assert wire is not None
            while connection.writable and not wire.is_closing():
                frames = self.node.frames(link, UNSENT // 4)
                if not frames:
                    break
                data = b"".join(frames)
                self.bytes_out += len(data)
                wire.write(data)
            if state.closing is not None or state.peer not in self.node.setup.neighbours:
                wire.close() if state.closing and state.closing.startswith(
                    "it speaks"
                ) else connection.close()
                self.closed(connection)
                continue
            connection.rest(congested or state.pause_until > self.node.now)

    async def stop(self) -> None:
        """Let go of everything; what was put into connections goes out first."""
        for connection in list(self._links.values()):
            if connection.wire is not None:
                connection.wire.close()
        if self._links:
            await asyncio.sleep(0.05)
        for task in list(self._tasks):
            task.cancel()
        if self._socket is not None:
            self._socket.close()

    def _keep(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
