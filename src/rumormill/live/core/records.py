"""Records of a node's journal, in the order of events; replaying them gives the same state."""

from __future__ import annotations

import msgspec

from rumormill.live.core.frames import Head, Item


class _Record(msgspec.Struct, array_like=True, frozen=True, gc=False):
    pass


class Reserve(_Record, tag="reserve", frozen=True):
    """Decision numbers up to here may be used once this record is on disk.

    The first record of a game; its fingerprint tells games of the same name apart.
    """

    game: str
    upto: int
    fingerprint: str = ""


class Decision(_Record, tag="choice", frozen=True):
    """A decision; `alone` if a follower decided for itself because its leader sent nothing."""

    game: str
    t: int
    arm: int
    expires: float
    alone: bool = False


class Own(_Record, tag="own", frozen=True):
    """The reward of an own decision; seq is its number in the own stream, 0 if it is not published."""

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
    signature: bytes = b""


class Expired(_Record, tag="expired", frozen=True):
    """A decision closed without a reward."""

    game: str
    t: int


class Skipped(_Record, tag="skipped", frozen=True):
    """Items skipped because no neighbour retains them."""

    game: str
    origin: int
    epoch: int
    upto: int
    digest: bytes = b""
    head: Head | None = None
    signature: bytes = b""


Record = Reserve | Decision | Own | Peer | Expired | Skipped

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Record)


def encode(record: Record) -> bytes:
    """A record as msgpack."""
    return _encoder.encode(record)


def decode(data: bytes) -> Record:
    """The record that `encode` packed."""
    found: Record = _decoder.decode(data)
    return found
