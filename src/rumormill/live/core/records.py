"""Records of a node's journal, in the order of events; replaying them gives the same state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from rumormill.live.core.frames import ITEM, Head, Item, Key
from rumormill.live.core.signatures import chained


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


REMOVED = "removed"
"""The fingerprint of a game that is not in the mesh file: equal to that of no game."""


@dataclass
class RemovedGame:
    """The numbers that a game has used which is not in the mesh file any more."""

    t: int = 0
    """The last decision number."""
    seq: int = 0
    """The last item of the own stream."""
    digest: bytes = b""
    """Of the own stream up to there; empty without signatures."""
    logged: bool = False
    """Whether the journal holds the removal."""

    @property
    def numbers(self) -> tuple[int, int, bytes]:
        """The last decision number, the last item of the own stream, and the digest up to it."""
        return self.t, self.seq, self.digest

    def record(self, game: str) -> Reserve:
        """The record of the removal: whatever follows of this name is another game."""
        return Reserve(game, self.t, REMOVED)

    def replay(self, record: Record) -> None:
        """Take the numbers from a record."""
        match record:
            case Reserve(upto=upto, fingerprint=fingerprint):
                self.t = max(self.t, upto)
                self.logged = fingerprint == REMOVED
            case Own(t=t, arm=arm, reward=reward, seq=seq) if seq:
                self.seq = seq
                if self.digest:
                    self.digest = chained(self.digest, [(t, arm, reward)])

    def state(self, own: Key) -> dict[str, Any]:
        """As plain data, for snapshots, in the form of a game that is played."""
        stream = [*own, self.seq, b"", None, *([[self.digest, []]] if self.digest else [])]
        return {"fingerprint": REMOVED, "choices": {"reserved": self.t}, "streams": [stream]}

    @classmethod
    def from_state(cls, state: dict[str, Any], own: Key) -> RemovedGame:
        """From the state of a game, removed or played."""
        row = next(each for each in state["streams"] if tuple(each[:2]) == own)
        seq = int(row[2]) + len(row[3]) // ITEM.itemsize
        digest = bytes(row[5][0]) if len(row) > 5 else b""
        logged = state["fingerprint"] == REMOVED
        return cls(int(state["choices"]["reserved"]), seq, digest, logged)
