"""What two neighbours say to each other: msgpack arrays, tagged, with a length in front.

A newer version may add elements at the end and frames with new tags: both are ignored. Anything else that
does not fit is hostile, and the link is closed.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec

PROTO_MIN, PROTO_MAX = 1, 1
# Until a peer has said who it is, and then.
SMALL_FRAME, LARGE_FRAME = 4 * 1024, 1024 * 1024
HEAD = struct.Struct(">I")

Item = tuple[int, int, float]
"""(t, arm, reward): the decision of the origin, and what came of it."""
Rows = tuple[tuple[float, float], ...]


class Hostile(Exception):
    """What came over a link cannot come from a node that works: the link must be closed."""


class _Frame(msgspec.Struct, array_like=True, frozen=True, gc=False):
    pass


class Head(_Frame, frozen=True):
    """The newest decision of an origin, and what it knew of every arm (mean, count)."""

    t: int
    arm: int
    rows: Rows = ()


class Hello(_Frame, tag="hello", frozen=True):
    proto_min: int
    proto_max: int
    mesh: str
    node: int
    epoch: int
    games: list[tuple[str, str]]
    """Name and fingerprint of each."""


class Have(_Frame, tag="have", frozen=True):
    """What the sender has of every stream: (origin, epoch, upto, hops). A full one replaces all before."""

    game: str
    streams: list[tuple[int, int, int, int]]
    full: bool = True


class Obs(_Frame, tag="obs", frozen=True):
    """Items first, first + 1, ... of a stream, which the receiver has by `hops` hops."""

    game: str
    origin: int
    epoch: int
    hops: int
    first: int
    items: list[Item]
    head: Head | None = None
    seal: bytes = b""
    """In a mesh with signatures: the origin's, of the stream up to the last item, and of the head."""


class Skip(_Frame, tag="skip", frozen=True):
    """The sender does not keep the items up to here; signed, for nobody shall skip what never was."""

    game: str
    origin: int
    epoch: int
    upto: int
    digest: bytes = b""
    head: Head | None = None
    seal: bytes = b""


class Ping(_Frame, tag="ping", frozen=True):
    nonce: int = 0


class Pong(_Frame, tag="pong", frozen=True):
    nonce: int = 0


class Round(_Frame, tag="round", frozen=True):
    """All that the sender tells in this round has been said. Lock step only."""

    t: int


class Bye(_Frame, tag="bye", frozen=True):
    reason: str = ""


Frame = Hello | Have | Obs | Skip | Ping | Pong | Round | Bye
TAGS = frozenset({"hello", "have", "obs", "skip", "ping", "pong", "round", "bye"})

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Frame)
_any = msgspec.msgpack.Decoder()


def encode(frame: Frame) -> bytes:
    """The frame with its length in front."""
    body = _encoder.encode(frame)
    return HEAD.pack(len(body)) + body


def decode(body: bytes) -> Frame | None:
    """The frame in these bytes (without the length); None for a tag of a newer version."""
    try:
        frame: Frame = _decoder.decode(body)
        return frame
    except msgspec.MsgspecError as error:
        if _is_newer(body):
            return None
        raise Hostile(f"a frame that cannot be read: {error}") from None
    except (RecursionError, ValueError, OverflowError) as error:
        raise Hostile(f"a frame that cannot be read: {error}") from None


def _is_newer(body: bytes) -> bool:
    try:
        plain: Any = _any.decode(body)
    except (msgspec.MsgspecError, RecursionError, ValueError, OverflowError):
        return False
    return isinstance(plain, list) and bool(plain) and isinstance(plain[0], str) and plain[0] not in TAGS


class Splitter:
    """Cuts a byte stream into frames; refuses a long one before it is read."""

    def __init__(self, limit: int = SMALL_FRAME) -> None:
        self.limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        """The bodies of all frames that are complete."""
        self._buffer += data
        bodies = []
        start = 0
        while len(self._buffer) - start >= HEAD.size:
            (length,) = HEAD.unpack_from(self._buffer, start)
            if length > self.limit:
                raise Hostile(f"a frame of {length} bytes, at most {self.limit} are allowed")
            end = start + HEAD.size + length
            if end > len(self._buffer):
                break
            bodies.append(bytes(self._buffer[start + HEAD.size : end]))
            start = end
        del self._buffer[:start]
        return bodies
