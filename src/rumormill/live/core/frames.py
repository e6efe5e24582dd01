"""Frames, the messages between two neighbours: tagged msgpack arrays with a length prefix.

A newer version may append elements to a frame and add frames with new tags: both are ignored. Anything else
that does not decode is a protocol error, and the link is closed.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

PROTO_MIN, PROTO_MAX = 1, 1
# Bytes of the longest frame: before the peer is identified, and after.
SMALL_FRAME, LARGE_FRAME = 4 * 1024, 1024 * 1024
HEAD = struct.Struct(">I")

Item = tuple[int, int, float]
"""(t, arm, reward): a decision of the origin and its reward."""
ITEM = np.dtype([("t", "<i8"), ("arm", "<u2"), ("reward", "<f8")])
"""An item as it is stored and hashed."""
Key = tuple[int, int]
"""(origin, epoch): names a stream."""
Rows = tuple[tuple[float, float], ...]
"""(mean, number of samples) of every arm."""


class ProtocolError(Exception):
    """A frame that no correct node sends: the link must be closed."""


class _Frame(msgspec.Struct, array_like=True, frozen=True, gc=False):
    pass


class Head(_Frame, frozen=True):
    """The newest decision of an origin, and its estimate of every arm."""

    t: int
    arm: int
    rows: Rows = ()

    def plain(self) -> list[Any]:
        """As plain data, for snapshots."""
        return [self.t, self.arm, self.rows]


def head_from(state: Sequence[Any] | None) -> Head | None:
    """The head that `Head.plain` described."""
    if state is None:
        return None
    t, arm, rows = state
    return Head(int(t), int(arm), tuple((float(mean), float(n)) for mean, n in rows))


class Hello(_Frame, tag="hello", frozen=True):
    """The first frame of both sides: who the sender is and which games it plays."""

    proto_min: int
    proto_max: int
    mesh: str
    node: int
    epoch: int
    games: list[tuple[str, str]]
    """Name and fingerprint of each."""


class Have(_Frame, tag="have", frozen=True):
    """How far the sender is in each stream: (origin, epoch, upto, hops). A full one replaces those before."""

    game: str
    streams: list[tuple[int, int, int, int]]
    full: bool = True


class Obs(_Frame, tag="obs", frozen=True):
    """Items first, first + 1, ... of a stream, which reach the receiver by `hops` hops."""

    game: str
    origin: int
    epoch: int
    hops: int
    first: int
    items: list[Item]
    head: Head | None = None
    signature: bytes = b""
    """In a signed mesh: the origin's signature of the stream up to the last item, and of the head."""


class Skip(_Frame, tag="skip", frozen=True):
    """The sender no longer retains items up to `upto`; in a signed mesh with the origin's signature."""

    game: str
    origin: int
    epoch: int
    upto: int
    digest: bytes = b""
    head: Head | None = None
    signature: bytes = b""


class Ping(_Frame, tag="ping", frozen=True):
    """Keeps a link alive."""

    nonce: int = 0


class Pong(_Frame, tag="pong", frozen=True):
    """The reply to a Ping."""

    nonce: int = 0


class Bye(_Frame, tag="bye", frozen=True):
    """The sender closes the link."""

    reason: str = ""


Frame = Hello | Have | Obs | Skip | Ping | Pong | Bye
TAGS = frozenset({"hello", "have", "obs", "skip", "ping", "pong", "bye"})

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)
_any = msgspec.msgpack.Decoder()


def encode(frame: Frame) -> bytes:
    """The frame with its length prefix."""
    body = _encoder.encode(frame)
    return HEAD.pack(len(body)) + body


def decode(body: bytes) -> Frame | None:
    """The frame in these bytes (without the length prefix); None for a tag of a newer version."""
    try:
        frame: Frame = _decoder.decode(body)
        return frame
    except msgspec.MsgspecError as error:
        if _is_newer(body):
            return None
        raise ProtocolError(f"a frame that cannot be read: {error}") from None
    except (RecursionError, ValueError, OverflowError) as error:
        raise ProtocolError(f"a frame that cannot be read: {error}") from None


def _is_newer(body: bytes) -> bool:
    try:
        plain: Any = _any.decode(body)
    except (msgspec.MsgspecError, RecursionError, ValueError, OverflowError):
        return False
    return isinstance(plain, list) and bool(plain) and isinstance(plain[0], str) and plain[0] not in TAGS


class Splitter:
    """Splits a byte stream into frames; refuses a frame that is too long before it is read."""

    def __init__(self, limit: int = SMALL_FRAME) -> None:
        self.limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies of all complete frames."""
        self._buffer += data
        bodies = []
        start = 0
        while len(self._buffer) - start >= HEAD.size:
            (length,) = HEAD.unpack_from(self._buffer, start)
            if length > self.limit:
                raise ProtocolError(f"a frame of {length} bytes, at most {self.limit} are allowed")
            end = start + HEAD.size + length
            if end > len(self._buffer):
                break
            bodies.append(bytes(self._buffer[start + HEAD.size : end]))
            start = end
        del self._buffer[:start]
        return bodies
