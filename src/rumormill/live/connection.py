"""One TLS connection to a neighbour: bytes come in as frames, and frames go out."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from rumormill.live.frames import LARGE_FRAME, Hostile, Splitter

if TYPE_CHECKING:
    from rumormill.live.transport import Transport

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
