"""What a node writes down, in the order in which it happened; replaying it gives the same state."""

from __future__ import annotations

import msgspec

from rumormill.live.core.frames import Head, Item


class _Record(msgspec.Struct, array_like=True, frozen=True, gc=False):
    pass


class Reserve(_Record, tag="reserve", frozen=True):
    """Decision numbers up to here may be used, once this is on disk.

    The first record of a game, and the one that says which game of this name it was.
    """

    game: str
    upto: int
    fingerprint: str = ""


class Choice(_Record, tag="choice", frozen=True):
    """A decision; `alone` if a follower decided for itself because its leader was silent."""

    game: str
    t: int
    arm: int
    expires: float
    alone: bool = False


class Own(_Record, tag="own", frozen=True):
    """A reward of an own decision; seq is its place in the own stream, 0 if it is not published."""

    game: str
    t: int
    arm: int
    reward: float
    seq: int


class Peer(_Record, tag="peer", frozen=True):
    """Items accepted from a stream of another origin, or of an earlier epoch of the own."""

    game: str
    origin: int
    epoch: int
    first: int
    items: list[Item]
    head: Head | None = None
    seal: bytes = b""


class Expired(_Record, tag="expired", frozen=True):
    """A choice whose reward is no longer waited for."""

    game: str
    t: int


class Skipped(_Record, tag="skipped", frozen=True):
    """Items given up: nobody in reach has them any more."""

    game: str
    origin: int
    epoch: int
    upto: int
    digest: bytes = b""
    head: Head | None = None
    seal: bytes = b""


Record = Reserve | Choice | Own | Peer | Expired | Skipped

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Record)


def encode(record: Record) -> bytes:
    return _encoder.encode(record)


def decode(data: bytes) -> Record:
    found: Record = _decoder.decode(data)
    return found
