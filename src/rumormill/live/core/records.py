"""Records of a node's journal, in the order of events; replaying them gives the same state.

On disk every record carries a checksum over itself and the one before. The number and the checksum of the
last acknowledged record, the *mark*, are stored apart: a changed record and a missing tail are both detected.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import isnan
from typing import Any, NamedTuple

import msgspec

from rumormill.arms.base import levelled
from rumormill.errors import DataError
from rumormill.live.core.frames import ITEM, Head, Item, Key
from rumormill.live.core.signatures import BEGIN, chained


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


class Constrained(Decision, tag="constrained", frozen=True):
    """A decision among some arms only, or for several: `others` are the next in its ranking."""

    allowed: list[int] | None = None
    others: list[int] = []


class Drawn(Constrained, tag="drawn", frozen=True):
    """A decision whose propensity is recorded: the probability of its first arm over the node's own draws."""

    propensity: float = 1.0


def limits_of(record: Decision) -> tuple[list[int] | None, list[int]]:
    """The arms that were allowed (None: all), and those ranked behind the first."""
    return (record.allowed, record.others) if isinstance(record, Constrained) else (None, [])


class Own(_Record, tag="own", frozen=True):
    """The reward of an own decision; seq is its number in the own stream, 0 if it is not published."""

    game: str
    t: int
    arm: int
    reward: float
    seq: int
    name: str = ""
    """The name of the arm: its number may be another arm's in a later revision."""


class Weighted(Own, tag="weighted", frozen=True):
    """A reward that counts as several samples: items seq - weight + 1 to seq of the own stream."""

    weight: int = 1


class DrawnOwn(Weighted, tag="drawn-own", frozen=True):
    """The reward of the first arm of a decision whose propensity was recorded."""

    propensity: float = 1.0


class ShiftedOwn(DrawnOwn, tag="shifted-own", frozen=True):
    """A reward of which the node took off an offset; the propensity is NaN where none was recorded."""

    offset: float = 0.0


class ScaledOwn(ShiftedOwn, tag="scaled-own", frozen=True):
    """A reward that the node divided too. Earlier versions refuse it; a mere field they would pass over."""

    scale: float = 1.0


def weight_of(record: Own) -> int:
    """The samples that a reward counts as."""
    return record.weight if isinstance(record, Weighted) else 1


def propensity_of(record: Own) -> float | None:
    """The recorded propensity of the choice that was rewarded."""
    return record.propensity if isinstance(record, DrawnOwn) and not isnan(record.propensity) else None


def sample_of(record: Own) -> float:
    """What the agent took in, and the own stream holds: by the offset and the scale of its time."""
    if not isinstance(record, ShiftedOwn):
        return record.reward
    return float(levelled(record.reward, record.offset, getattr(record, "scale", 1.0)))


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


class Hold(_Record, tag="hold", frozen=True):
    """From here on own items are held back, until neighbours have shown that this disk is the newest."""

    game: str
    held: bool


class Renewed(_Record, tag="renewed", frozen=True):
    """The disk was an old copy: own items behind `upto` become the first of a stream of this epoch."""

    game: str
    epoch: int
    upto: int = 0


class Born(_Record, tag="born", frozen=True):
    """A request class was made; what it knew of every arm: mean, number of samples, spread."""

    game: str
    mean: list[float]
    n: list[float]
    spread: list[float]


class Carried(_Record, tag="carried", frozen=True):
    """The state in which the agent of a new revision of a game begins: what was learned of arms that stay."""

    game: str
    state: bytes


Record = (
    Reserve
    | Decision
    | Constrained
    | Drawn
    | Own
    | Weighted
    | DrawnOwn
    | ShiftedOwn
    | ScaledOwn
    | Peer
    | Expired
    | Skipped
    | Hold
    | Renewed
    | Born
    | Carried
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Record)


def encode(record: Record) -> bytes:
    """A record as msgpack."""
    return _encoder.encode(record)


def decode(data: bytes) -> Record:
    """The record that `encode` packed."""
    found: Record = _decoder.decode(data)
    return found


_TAGS = b"own", b"weighted", b"drawn-own", b"shifted-own", b"scaled-own"
_OWN = {b"%c%s" % (0xA0 + len(tag), tag[:3]) for tag in _TAGS}


def may_be_own(data: bytes) -> bool:
    """Whether a packed record can be an own reward, by its tag: most are not, and need not be decoded."""
    return data[1:5] in _OWN


# --- on disk ----------------------------------------------------------------------------------------------

DIGEST = 16
_PLACE = struct.Struct("<qd")


def digest(data: bytes | memoryview, before: bytes = b"") -> bytes:
    """A checksum of 16 bytes, over what comes before too."""
    return blake2b(before + data if before else data, digest_size=DIGEST).digest()


class Row(NamedTuple):
    """A record on disk."""

    number: int
    time: float
    data: bytes
    chain: bytes
    """The checksum of this record and all before it."""


def stored_rows(number: int, chain: bytes, time: float, batch: Iterable[Record]) -> list[Row]:
    """The rows of records behind record `number`, whose checksum is `chain`."""
    rows = []
    for place, data in enumerate(map(encode, batch), number + 1):
        chain = digest(_PLACE.pack(place, time) + data, chain)
        rows.append(Row(place, time, data, chain))
    return rows


class Mark(NamedTuple):
    """The last acknowledged record: its number, its checksum, and the last own item of every game."""

    number: int
    chain: bytes
    items: dict[str, int]


NO_MARK = Mark(0, b"", {})
"""Nothing was acknowledged yet."""


def verified(
    number: int, chain: bytes, items: dict[str, int], rows: Iterable[Row], mark: Mark
) -> list[Record]:
    """The records behind record `number`, when `items` were the last own ones.

    DataError if a record is changed or missing, also if the mark knows of a later one.
    """
    found: list[Record] = []
    reached = chain if mark.number == number else b""
    for row in rows:
        if row.number != number + 1:
            raise DataError(f"record {number + 1:,} is missing")
        number, chain = row.number, digest(_PLACE.pack(row.number, row.time) + row.data, chain)
        if chain != row.chain:
            raise DataError(f"record {number:,} is changed")
        found.append(decode(row.data))
        reached = chain if mark.number == number else reached
    if mark.number > number:
        kept = items | last_items(found)
        lost = "".join(
            f", own items {kept.get(game, 0) + 1:,} to {last:,} of game {game}"
            for game, last in mark.items.items()
            if last > kept.get(game, 0)
        )
        raise DataError(f"the acknowledged records {number + 1:,} to {mark.number:,} are missing{lost}")
    if mark.chain and reached and mark.chain != reached:
        raise DataError(f"record {mark.number:,} is not the one that was acknowledged")
    return found


def last_items(batch: Iterable[Record]) -> dict[str, int]:
    """The last own item of every game."""
    return {each.game: each.seq for each in batch if isinstance(each, Own) and each.seq}


def last_item(row: Sequence[Any]) -> tuple[int, bytes]:
    """The last item of a stream in a snapshot, and the digest up to it; empty without signatures."""
    digest = bytes(row[5][0]) if len(row) > 5 and row[5] else b""
    return int(row[2]) + len(row[3]) // ITEM.itemsize, digest


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
            case Own(t=t, arm=arm, seq=seq) if seq:
                self.seq = seq
                if self.digest:
                    self.digest = chained(self.digest, [(t, arm, sample_of(record))] * weight_of(record))
            case Renewed():
                self.seq, self.digest = 0, BEGIN if self.digest else b""

    def state(self, own: Key) -> dict[str, Any]:
        """As plain data, for snapshots, in the form of a game that is played."""
        stream = [*own, self.seq, b"", None, *([[self.digest, []]] if self.digest else [])]
        return {"fingerprint": REMOVED, "choices": {"reserved": self.t}, "streams": [stream]}

    @classmethod
    def from_state(cls, state: dict[str, Any], own: Key) -> RemovedGame:
        """From the state of a game, removed or played."""
        row = next(each for each in state["streams"] if tuple(each[:2]) == own)
        logged = state["fingerprint"] == REMOVED
        return cls(int(state["choices"]["reserved"]), *last_item(row), logged)
