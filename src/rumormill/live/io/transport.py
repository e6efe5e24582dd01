"""Links between nodes: TCP with TLS 1.3, both sides with certificates of the mesh.

The certificate names the node; only neighbours get past the handshake. The node with the smaller id dials,
with exponential back-off. Connections that are not identified yet, frames and unsent bytes are bounded.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import socket
import ssl
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from rumormill.live.core.frames import Bye, ProtocolError, Splitter, encode
from rumormill.live.core.node import Node
from rumormill.mesh.keys import FAILED, NodeTls, common_name, serial_number

# Bytes that may wait in a connection before no more is written.
UNSENT = 256 * 1024
# Seconds that one connection may process frames at a time, and frames that may wait before reading is paused.
TURN, MOST_HELD = 0.002, 64
# Violations that correct peers cause too, for example when links come and go: not logged.
USUAL = {"hole", "fingerprint"}


class PeerConnection(asyncio.Protocol):
    """One TLS connection to a neighbour."""

    def __init__(self, transport: Transport, expected: int | None) -> None:
        self._owner, self._expected = transport, expected
        self._splitter = Splitter()
        self._held: deque[bytes] = deque()  # frames not processed yet
        self.is_scheduled = False  # whether they are in the next iteration of the event loop
        self.wire: asyncio.Transport | None = None
        self.link: int | None = None
        self.peer: int | None = None
        self.writable = True
        self.paused = False
        self.is_linked = False
        """Whether the peer has sent its Hello."""
        self.reason: str | None = None
        """Why this side closes the connection."""
        self.gone = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.wire = transport
        self._owner.wires.add(self)
        transport.set_write_buffer_limits(high=UNSENT)
        certificate = transport.get_extra_info("peercert") or {}
        name = common_name(certificate)
        peer = self._owner.id_of(name)
        refused = self._owner.node.refusal(peer, serial_number(certificate))
        if refused is None and self._expected not in (None, peer):
            refused = "stranger", "another node was expected there"
        if refused is not None:
            self._owner.refuse(refused[0], f"{name!r}: {refused[1]}", node=name)
            transport.write(encode(Bye(f"refused: {refused[1]}")))
            transport.close()
            asyncio.get_running_loop().call_later(GOODBYE, transport.abort)
            return
        self.peer = peer
        self._splitter.limit = self._owner.node.largest_frame
        self._owner.opened(self)

    def data_received(self, data: bytes) -> None:
        self._owner.bytes_in += len(data)
        if self.link is None:
            return
        try:
            self._held.extend(self._splitter.feed(data))
        except ProtocolError as error:
            self._owner.node.violations["hostile"] += 1  # the node counts errors inside frames
            self._hostile(error)
            return
        if not self.is_scheduled:
            self.process_frames()
        if self.is_behind:
            self.pause(True)

    @property
    def is_behind(self) -> bool:
        """Whether too many frames wait."""
        return len(self._held) > MOST_HELD

    def process_frames(self) -> None:
        """Pass waiting frames to the node until the link is paused or its turn is over."""
        node, loop = self._owner.node, asyncio.get_running_loop()
        before, end = dict(node.violations), loop.time() + TURN
        self.is_scheduled = False
        try:
            while self._held and self.link in node.links and not node.is_paused(self.link):
                node.receive(self.link, self._held.popleft())
                if loop.time() > end:
                    self.is_scheduled = True
                    loop.call_soon(self.process_frames)
                    break
        except ProtocolError as error:
            self._hostile(error)
            return
        if node.violations != before:
            for kind, count in node.violations.items():
                if count > before.get(kind, 0) and kind not in USUAL:
                    self._owner.report(kind, f"node {self.peer}: {kind}")
        if self.link in node.links:
            if node.links[self.link].epoch is not None and not self.is_linked:
                self.is_linked = True
                self._owner.linked(self)
            if node.is_urgent(self.link):
                self._owner.send_soon(self)

    def _hostile(self, error: ProtocolError) -> None:
        self._owner.report("hostile", f"node {self.peer}: {error}")
        self.close(str(error))

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self._owner.send_soon(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._owner.wires.discard(self)
        self._owner.closed(self, "the peer closed the connection" if error is None else str(error))
        if not self.gone.done():
            self.gone.set_result(None)

    def pause(self, wanted: bool) -> None:
        """Pause or resume reading."""
        if self.wire is not None and wanted != self.paused and not self.wire.is_closing():
            self.paused = wanted
            (self.wire.pause_reading if wanted else self.wire.resume_reading)()

    def close(self, reason: str) -> None:
        """Close the connection at once."""
        self.reason = self.reason or reason
        if self.wire is not None:
            self.wire.abort()


MOST_UNIDENTIFIED = 64
HANDSHAKE = 5.0
LEAST_PAUSE, MOST_PAUSE = 0.05, 2.0
# Bytes sent over one link before other links get a turn.
AT_ONCE = 64 * 1024
# Reasons to close a link that a broken network does not explain.
SLOW = {"no hello", "it does not read"}
# Seconds to send Bye, between two log lines of one kind, and between two lines for one failing link.
GOODBYE, REPORT_EVERY, REMIND_EVERY = 0.5, 1.0, 60.0


class Transport:
    """All links of one node."""

    def __init__(
        self,
        node: Node,
        names: dict[str, int],
        keys: NodeTls,
        log: Callable[..., None],
        failed: Callable[[str, BaseException], None],
    ) -> None:
        """`log(level, text, **fields)` writes a line; `failed` is called when a task ends that should not."""
        self._failed = failed
        self.node, self.names, self._log = node, names, log
        self.keys = keys
        """New connections use these; they may be replaced."""
        self.wires: set[PeerConnection] = set()
        """All open connections, identified or not."""
        self._links: dict[int, PeerConnection] = {}
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[None]] = set()
        self._dialling: dict[int, tuple[tuple[str, int], asyncio.Task[None]]] = {}
        self._unidentified: dict[socket.socket, asyncio.Task[None]] = {}  # oldest first
        self._reported: dict[str, tuple[float, int]] = {}  # per kind: when, and how many since
        self._unlinked: dict[int, tuple[str, float]] = {}  # per neighbour: why not, and when logged
        self._socket: socket.socket | None = None
        self.bytes_in = self.bytes_out = 0

    # --- accepting ----------------------------------------------------------------------------------

    def id_of(self, name: str) -> int | None:
        """The id of a node; None for any other name."""
        return self.names.get(name)

    def _name(self, peer: int | None) -> str:
        return next((name for name, each in self.names.items() if each == peer), str(peer))

    def refuse(self, kind: str, text: str, **fields: str) -> None:
        """Count and log a violation."""
        self.node.violations[kind] += 1
        self.report(kind, text, **fields)

    def report(self, kind: str, text: str, **fields: str) -> None:
        """Log a violation, at most one line of a kind per second."""
        now = asyncio.get_running_loop().time()
        last, more = self._reported.get(kind, (-REPORT_EVERY, 0))
        if now - last < REPORT_EVERY:
            self._reported[kind] = (last, more + 1)
            return
        self._reported[kind] = (now, 0)
        more_words = f" (and {more} more since the last such line)" if more else ""
        self._log("warning", f"refused: {text}{more_words}", kind=kind, **fields)

    async def serve(self, host: str, port: int) -> int:
        """Accept connections on an address; its port."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, port), backlog=128, family=family)
        self._socket.setblocking(False)
        self._keep("the accept loop", self._accept())
        return int(self._socket.getsockname()[1])

    async def _accept(self) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        assert self._socket is not None
        while True:
            try:
                raw, address = await loop.sock_accept(self._socket)
            except OSError:
                await asyncio.sleep(LEAST_PAUSE)
                continue
            if len(self._unidentified) >= MOST_UNIDENTIFIED:
                # The oldest is dropped: the handshake of a neighbour takes only milliseconds.
                self.refuse("crowd", "too many unidentified connections")  # plain-words: allow
                oldest = next(iter(self._unidentified))
                self._unidentified.pop(oldest).cancel()
            self._unidentified[raw] = self._keep("a handshake", self._handshake(raw, address[0]))

    async def _handshake(self, raw: socket.socket, host: str) -> None:
        """Complete the TLS handshake within `HANDSHAKE` seconds, or close the socket."""
        failures: list[ssl.SSLError] = []
        FAILED.set(failures)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: PeerConnection(self, None), raw, ssl=self.keys.server, ssl_handshake_timeout=HANDSHAKE
            )
        except (OSError, ssl.SSLError, TimeoutError) as error:
            self.refuse("handshake", f"no handshake with {host}: {_words(*failures, error)}", address=host)
            raw.close()
        except asyncio.CancelledError:
            raw.close()
            raise
        finally:
            self._unidentified.pop(raw, None)

    # --- dialling -----------------------------------------------------------------------------------

    def dial(self, addresses: dict[int, tuple[str, int]]) -> None:
        """Keep connections to these neighbours; stop dialling all others."""
        for peer, (address, task) in list(self._dialling.items()):
            if addresses.get(peer) != address:  # gone, or moved
                del self._dialling[peer]
                task.cancel()
        for peer, address in addresses.items():
            if peer not in self._dialling:
                task = self._keep(f"dialling node {peer}", self._dial(peer, *address))
                self._dialling[peer] = (address, task)

    async def _dial(self, peer: int, host: str, port: int) -> None:
        """Connect to a neighbour, again after every disconnection, with exponential back-off."""
        pause = LEAST_PAUSE
        loop = asyncio.get_running_loop()
        while True:
            failures: list[ssl.SSLError] = []
            FAILED.set(failures)
            try:
                async with asyncio.timeout(2 * HANDSHAKE):
                    _, connection = await loop.create_connection(
                        lambda: PeerConnection(self, peer),
                        host,
                        port,
                        ssl=self.keys.client,
                        server_hostname="",
                        ssl_handshake_timeout=HANDSHAKE,
                    )
            except (OSError, ssl.SSLError, TimeoutError, UnicodeError) as error:
                # UnicodeError: a host that cannot be a name
                self._unlink(peer, _words(*failures, error))
            else:
                started = loop.time()
                await connection.gone
                if loop.time() - started > MOST_PAUSE:
                    pause = LEAST_PAUSE
            await asyncio.sleep(pause * (0.5 + random.random()))
            pause = min(2 * pause, MOST_PAUSE)

    # --- links --------------------------------------------------------------------------------------

    def opened(self, connection: PeerConnection) -> None:
        """A neighbour has connected: replace its earlier connection."""
        for other in [each for each in self._links.values() if each.peer == connection.peer]:
            other.close("a new connection")  # the end of the earlier one was not noticed yet
            self.closed(other)
        connection.link = next(self._numbers)
        self._links[connection.link] = connection
        assert connection.peer is not None
        self.node.link_up(connection.link, connection.peer)
        self.send_soon(connection)

    def linked(self, connection: PeerConnection) -> None:
        """A neighbour has sent its Hello."""
        assert connection.peer is not None
        self._unlinked.pop(connection.peer, None)
        self._log("info", "link up", node=self._name(connection.peer))

    def _unlink(self, peer: int, reason: str) -> None:
        """Log that a neighbour cannot be linked: when the reason changes, and again every minute."""
        now = asyncio.get_running_loop().time()
        before, since = self._unlinked.get(peer, ("", 0.0))
        if reason != before or now - since >= REMIND_EVERY:
            self._unlinked[peer] = (reason, now)
            self._log("warning", "no link", node=self._name(peer), reason=reason)

    def closed(self, connection: PeerConnection, reason: str = "") -> None:
        """A connection has ended."""
        if connection.link is None or self._links.pop(connection.link, None) is None:
            return
        state = self.node.links.get(connection.link)
        self.node.link_down(connection.link)
        why = connection.reason or (state and state.closing) or reason
        assert connection.peer is not None
        if connection.is_linked:
            self._log("info", "link down", node=self._name(connection.peer), reason=why)
        else:
            self._unlink(connection.peer, why)

    def send_soon(self, connection: PeerConnection) -> None:
        """Send the frames of a link in the next iteration of the event loop."""
        asyncio.get_running_loop().call_soon(self._send, connection)

    def pump(self, congested: bool) -> None:
        """Send frames, close links, and pause or resume reading."""
        for link, connection in list(self._links.items()):
            self._send(connection)
            state = self.node.links.get(link)
            if state is None:
                continue
            if state.closing is not None or state.peer not in self.node.config.neighbours:
                self._disconnect(connection, state.closing or "no neighbour any more")
                continue
            connection.pause(congested or self.node.is_paused(link) or connection.is_behind)
            if not connection.paused and not connection.is_scheduled:
                connection.process_frames()

    def _send(self, connection: PeerConnection) -> None:
        """Write the next frames of a link."""
        wire, link = connection.wire, connection.link
        if wire is None or link not in self.node.links:
            return
        if connection.writable and not wire.is_closing():
            data = b"".join(self.node.frames(link, AT_ONCE))
            if data:
                self.bytes_out += len(data)
                wire.write(data)
            if len(data) >= AT_ONCE:  # there may be more; other links get a turn first
                self.send_soon(connection)

    def _disconnect(self, connection: PeerConnection, why: str) -> None:
        """Close a link that the node wants closed."""
        assert connection.wire is not None
        if why in SLOW:
            self.refuse("slow", f"node {connection.peer}: {why}")
        if why.startswith("protocol versions"):
            connection.reason = why
            connection.wire.close()  # the last frames are sent first
        else:
            connection.close(why)
        self.closed(connection)

    async def stop(self) -> None:
        """Close everything; bytes already written are sent first, within `GOODBYE` seconds."""
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

    def _keep(self, what: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that `stop` cancels and whose failure is reported."""

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            error = None if task.cancelled() else task.exception()
            if error is not None:
                self._failed(what, error)

        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(ended)
        return task


def _words(*errors: BaseException) -> str:
    """What the first of some exceptions says; of one that says nothing, its name."""
    return str(errors[0]) or type(errors[0]).__name__
