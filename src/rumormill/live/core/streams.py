"""Streams: the observations of one origin in one epoch, numbered without holes.

What a node knows of a stream is a prefix: everything up to `upto` was taken in or skipped, so that one number
removes duplicates. The last items are kept, packed, for neighbours that come back.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rumormill.live.core.frames import Head, Item
from rumormill.live.core.node_config import LAST_DECISION
from rumormill.validate import LARGEST_REWARD

if TYPE_CHECKING:
    from rumormill.live.core.signatures import Chain

Key = tuple[int, int]
"""(origin, epoch)."""
ITEM = np.dtype([("t", "<i8"), ("arm", "<u2"), ("reward", "<f8")])
NO_ARM = 65_535
UNKNOWN = 1 << 30
"""Hops of a stream that came by a way that was forgotten: more than any budget."""
VOID: Item = (0, NO_ARM, 0.0)
"""Stands in the place of an item that is no sample."""


def packable(item: Item) -> Item:
    """The item if it can be stored, else one that is no sample for anybody."""
    t, arm, _ = item
    return item if 0 <= t <= LAST_DECISION and 0 <= arm < NO_ARM else VOID


class Kept:
    """The last items of a stream in a ring that grows up to a limit; seqs floor + 1 .. last."""

    def __init__(self, limit: int, floor: int = 0) -> None:
        self._limit = limit
        self._ring = np.zeros(min(16, limit), ITEM)
        self.floor = floor
        self.last = floor

    def append(self, items: Sequence[Item]) -> None:
        """Items behind the last; the oldest make room."""
        if len(items) > self._limit:
            self.last += len(items) - self._limit
            self.floor = self.last
            items = items[-self._limit :]
        count = len(items)
        self._reserve(self.last - self.floor + count)
        size = len(self._ring)
        if count == 1:
            self._ring[self.last % size] = items[0]
        else:
            self._ring[(self.last + np.arange(count)) % size] = np.array(items, ITEM)
        self.last += count
        self.floor = max(self.floor, self.last - self._limit)

    def between(self, first: int, count: int) -> list[Item]:
        """Items first .. first + count - 1, which are all kept."""
        size = len(self._ring)
        start, stop = (first - 1) % size, (first - 1 + count) % size
        if count == 0:
            return []
        if start < stop:
            found: list[Item] = self._ring[start:stop].tolist()
            return found
        return [*self._ring[start:].tolist(), *self._ring[:stop].tolist()]

    def restart(self, floor: int) -> None:
        """Nothing is kept; the next item is floor + 1."""
        self.floor = self.last = floor

    def _reserve(self, count: int) -> None:
        if count <= len(self._ring) or len(self._ring) == self._limit:
            return
        held = self.between(self.floor + 1, self.last - self.floor)
        self._ring = np.zeros(min(max(2 * len(self._ring), count), self._limit), ITEM)
        if held:
            places = (self.floor + np.arange(len(held))) % len(self._ring)
            self._ring[places] = np.array(held, ITEM)

    def packed(self) -> bytes:
        """All kept items."""
        order = (self.floor + np.arange(self.last - self.floor)) % len(self._ring)
        return self._ring[order].tobytes()

    def unpack(self, data: bytes, floor: int) -> None:
        """Take over what `packed()` gave."""
        items = np.frombuffer(data, ITEM)[-self._limit :]
        self.last = floor + len(data) // ITEM.itemsize
        self.floor = self.last - len(items)
        self._ring = np.zeros(max(len(items), min(16, self._limit)), ITEM)
        self._ring[(self.floor + np.arange(len(items))) % len(self._ring)] = items


class Stream:
    """One stream as one node knows it."""

    def __init__(self, key: Key, retain: int, hops: int, chain: Chain | None = None) -> None:
        self.key = key
        self.chain = chain
        """What its origin signed; None in a mesh without signatures."""
        self.hops = hops
        """The least number of hops it came by, 0 for the own; not on disk, neighbours know it."""
        self.kept = Kept(retain)
        self.head: Head | None = None
        self.skip_since: float | None = None
        """When a neighbour first said that it no longer keeps what comes next here."""

    @property
    def upto(self) -> int:
        return self.kept.last

    @property
    def floor(self) -> int:
        """Up to here it cannot be told: not kept, or, with signatures, before the first point that is."""
        if self.chain is None or self.kept.floor == 0:
            return self.kept.floor
        point = self.chain.above(self.kept.floor)
        return self.upto if point is None else point.upto

    def state(self) -> list[Any]:
        state = [*self.key, self.kept.floor, self.kept.packed(), plain(self.head)]
        return state if self.chain is None else [*state, self.chain.state()]

    @classmethod
    def from_state(cls, state: Sequence[Any], retain: int, hops: int, chain: Chain | None = None) -> Stream:
        origin, epoch, floor, packed, head, *seals = state
        stream = cls((int(origin), int(epoch)), retain, hops, chain)
        stream.kept.unpack(packed, int(floor))
        stream.head = head_from(head)
        if chain is not None:
            chain.restore(*seals)
        return stream


def plain(head: Head | None) -> list[Any] | None:
    """A head as plain data."""
    return None if head is None else [head.t, head.arm, head.rows]


def head_from(state: Sequence[Any] | None) -> Head | None:
    """The head that `plain` was given."""
    if state is None:
        return None
    t, arm, rows = state
    return Head(int(t), int(arm), tuple((float(mean), float(n)) for mean, n in rows))


def is_newer(stream: Stream, head: Head | None) -> bool:
    """Whether a head says more than what is known."""
    return head is not None and (stream.head is None or head.t > stream.head.t)


def makes_sense(head: Head, n_arms: int) -> bool:
    """Whether there can be such a decision."""
    return 0 <= head.t <= LAST_DECISION and 0 <= head.arm < n_arms and len(head.rows) in (0, n_arms)


def believed(head: Head, most: float) -> Head:
    """The head; rows that claim more samples than there can be, or no mean, become rows without samples."""
    rows = tuple((mean, n) if _is_possible(mean, n, most) else (math.inf, 0.0) for mean, n in head.rows)
    return Head(head.t, head.arm, rows)


def _is_possible(mean: float, n: float, most: float) -> bool:
    """A mean that too few samples do not define yet is +inf."""
    return 0 <= n <= most and (n == 0 or mean == math.inf or -LARGEST_REWARD <= mean <= LARGEST_REWARD)


def most_samples(streams: Iterable[Stream], reach: Iterable[int]) -> float:
    """More samples than the streams in reach of an origin could contain, as far as is known here.

    Streams arrive at their own pace, so that twice what is known, and some more, is believed.
    """
    known: dict[int, int] = {}
    for stream in streams:
        if stream.upto:  # one that was only heard of leaves no record
            known[stream.key[0]] = known.get(stream.key[0], 0) + stream.upto
    most = max(known.values(), default=0)
    return sum(2.0 * known.get(v, most) + 1024 for v in reach)
