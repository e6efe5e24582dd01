"""Streams: the observations of one origin in one epoch, numbered without holes.

A node knows a prefix of a stream: every item up to `upto` was accepted or skipped, so one number removes
duplicates. Its items are retained, packed, for neighbours that reconnect: the newest in memory, all others in
segments.

Segments are blocks of consecutive items, stored by an `ItemStore`; a stream remembers their numbers and
checksums. They never change, so that a snapshot names them instead of holding them.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

import numpy as np

from rumormill.errors import DataError
from rumormill.live.core.frames import ITEM, Head, Item, Key, head_from
from rumormill.live.core.node_config import LAST_DECISION
from rumormill.live.core.signatures import Chain
from rumormill.validate import LARGEST_REWARD

# Items of a segment: it ends with an item whose number is a multiple of this.
SEGMENT = 1_024
CHECKSUM = 16


class ItemStore(Protocol):
    """Stores segments by number."""

    def put(self, data: bytes) -> int:
        """Store a segment; its number, which no other segment has."""

    def get(self, number: int) -> bytes:
        """A segment."""

    def drop(self, number: int) -> None:
        """A segment is not needed any more, once a snapshot that does not name it is on disk."""


class MemoryItems:
    """Segments in memory."""

    def __init__(self) -> None:
        self.segments: dict[int, bytes] = {}
        self._next = 1

    def put(self, data: bytes) -> int:
        """Store a segment; its number."""
        self.segments[self._next] = data
        self._next += 1
        return self._next - 1

    def get(self, number: int) -> bytes:
        """A segment."""
        return self.segments[number]

    def drop(self, number: int) -> None:
        """Forget a segment."""
        self.segments.pop(number, None)


class Segment(NamedTuple):
    """Items after `before`, up to the next multiple of SEGMENT."""

    before: int
    number: int
    checksum: bytes


def checksum(data: bytes) -> bytes:
    """The checksum of a segment."""
    return sha256(data).digest()[:CHECKSUM]  # the fastest where processors have it: a start verifies all


class RetainedItems:
    """The last items of a stream, numbers floor + 1 .. last, up to a limit."""

    def __init__(self, limit: int, store: ItemStore | None = None) -> None:
        self._limit, self._store = limit, MemoryItems() if store is None else store
        self._segment = SEGMENT
        # In memory: a ring that grows to the limit, or to two segments.
        self._ring = np.zeros(min(16, limit), ITEM)
        self._begin = 0  # items after this one are in the ring
        self._segments: list[Segment] = []  # of consecutive items, the oldest first
        self.floor = self.last = 0

    @property
    def _window(self) -> int:
        """The most items in memory."""
        return min(self._limit, 2 * self._segment)

    def append(self, items: Sequence[Item]) -> None:
        """Append items; drop the oldest beyond the limit."""
        for start in range(0, len(items), self._segment):
            self._append(items[start : start + self._segment])

    def _append(self, items: Sequence[Item]) -> None:
        if len(items) > self._limit:  # fewer than a segment are retained
            self.restart(self.last + len(items) - self._limit)
            items = items[-self._limit :]
        count = len(items)
        self._reserve(min(self.last - self._begin + count, self._window))
        size = len(self._ring)
        if count == 1:
            self._ring[self.last % size] = items[0]
        else:
            self._ring[(self.last + np.arange(count)) % size] = np.array(items, ITEM)
        self.last += count
        self.floor = max(self.floor, self.last - self._limit)
        self._begin = max(self._begin, self.floor, self.last - size)
        if self._limit > self._window:
            self._cut()

    def _cut(self) -> None:
        """Store the segments that are complete, and drop those before the floor."""
        step = self._segment
        stored = self._stored
        while (stored // step + 1) * step <= self.last:
            end = (stored // step + 1) * step
            data = self._array(stored + 1, end - stored).tobytes()
            self._segments.append(Segment(stored, self._store.put(data), checksum(data)))
            stored = end
        while self._segments and self._end(self._segments[0]) <= self.floor:
            self._store.drop(self._segments.pop(0).number)

    def _end(self, segment: Segment) -> int:
        return (segment.before // self._segment + 1) * self._segment

    @property
    def _stored(self) -> int:
        """The last item in a segment; without one, the item before all in memory."""
        return self._end(self._segments[-1]) if self._segments else max(self._begin, self.floor)

    def between(self, first: int, count: int) -> list[Item]:
        """Items first .. first + count - 1, all of which must be retained."""
        found: list[Item] = []
        while count > 0 and first <= self._begin:
            at = bisect_right(self._segments, first - 1, key=lambda each: each.before) - 1
            before, end = self._segments[at].before, self._end(self._segments[at])
            part = self._load(self._segments[at])[first - 1 - before :][:count]
            found += part.tolist()
            first, count = end + 1, count - len(part)
        return found + self._array(first, count).tolist() if count else found

    def newest(self, count: int) -> list[Item]:
        """The last items, at most so many, of those in memory."""
        count = min(count, self.last - self._begin)
        return self.between(self.last - count + 1, count)

    def _array(self, first: int, count: int) -> Any:
        """Items that are in memory."""
        size = len(self._ring)
        start, stop = (first - 1) % size, (first - 1 + count) % size
        if start < stop:
            return self._ring[start:stop]
        return np.concatenate([self._ring[start:], self._ring[:stop]])

    def _load(self, segment: Segment) -> Any:
        data = self._store.get(segment.number)
        if checksum(data) != segment.checksum:
            raise DataError(f"segment {segment.number} of retained items is changed: start the node again")
        return np.frombuffer(data, ITEM)

    def restart(self, floor: int) -> None:
        """Drop all items; the next one is floor + 1."""
        for segment in self._segments:
            self._store.drop(segment.number)
        self._segments = []
        self.floor = self.last = self._begin = floor

    def truncate(self, last: int) -> None:
        """Drop the items after `last`."""
        if last <= self.floor:
            self.restart(last)
            return
        begin = max(last // self._segment * self._segment, self.floor)
        if begin < self._begin:  # items of a segment that is cut are in memory again
            items = self.between(begin + 1, last - begin)
            self._reserve(min(len(items), self._window))
            self._ring[(begin + np.arange(len(items))) % len(self._ring)] = np.array(items, ITEM)
            self._begin = begin
        while self._segments and self._end(self._segments[-1]) > last:
            self._store.drop(self._segments.pop().number)
        self.last = last

    def _reserve(self, count: int) -> None:
        if count <= len(self._ring):
            return
        held = self._array(self._begin + 1, self.last - self._begin) if self.last > self._begin else []
        self._ring = np.zeros(min(max(2 * len(self._ring), count), self._window), ITEM)
        if len(held):
            self._ring[(self._begin + np.arange(len(held))) % len(self._ring)] = held

    def state(self) -> tuple[int, bytes, list[Any]]:
        """(item before, items in no segment as bytes, the segments if there are any), for snapshots."""
        begin = self._stored
        packed = self._array(begin + 1, self.last - begin).tobytes() if self.last > begin else b""
        segments = list(map(list, self._segments))
        return begin, packed, [self.floor, self._segment, segments] if segments else []

    def restore(self, begin: int, data: bytes, stored: Sequence[Any] = ()) -> None:
        """Take over what `state` described; without segments, all items are in `data`."""
        self.restart(begin)
        items = np.frombuffer(data, ITEM)
        if stored:
            self.floor, self._segment = int(stored[0]), int(stored[1])
            self._segments = [
                Segment(int(before), int(number), bytes(check)) for before, number, check in stored[2]
            ]
            if self._limit <= self._window:  # the limit is lower now: all that is retained fits into memory
                first = max(self.floor, begin - self._limit) + 1
                items = np.concatenate([np.array(self.between(first, begin + 1 - first), ITEM), items])
                self.restart(first - 1)
        for start in range(0, len(items), self._segment):
            self._append(items[start : start + self._segment])  # type: ignore[arg-type]
        self.floor = max(self.floor, self.last - self._limit)


NO_ARM = 65_535
UNKNOWN = 1 << 30
"""Hops of a stream whose path is not known since a restart: more than any hop budget."""
VOID: Item = (0, NO_ARM, 0.0)
"""Stored in place of an item that is no sample."""


def packable(item: Item) -> Item:
    """The item if it can be stored, else VOID."""
    t, arm, _ = item
    return item if 0 <= t <= LAST_DECISION and 0 <= arm < NO_ARM else VOID


class Stream:
    """The prefix of a stream that one node knows."""

    def __init__(
        self, key: Key, retain: int, hops: int, chain: Chain | None = None, store: ItemStore | None = None
    ) -> None:
        self.key = key
        self.chain = chain
        """Its digest and signed points; None in a mesh without signatures."""
        self.hops = hops
        """The least number of hops it came by, 0 for the own; not on disk: neighbours send it again."""
        self.retained = RetainedItems(retain, store)
        self.head: Head | None = None
        self.skip_since: float | None = None
        """When a neighbour first reported that it no longer retains the next item."""
        self.skipped_at = 0.0

    @property
    def upto(self) -> int:
        """The number of the last known item."""
        return self.retained.last

    @property
    def floor(self) -> int:
        """Items up to here cannot be sent: not retained or, with signatures, before the first point."""
        if self.chain is None or self.retained.floor == 0:
            return self.retained.floor
        point = self.chain.above(self.retained.floor)
        return self.upto if point is None else point.upto

    def state(self) -> list[Any]:
        """As plain data, for snapshots."""
        head = None if self.head is None else self.head.plain()
        begin, packed, stored = self.retained.state()
        chain = None if self.chain is None else self.chain.state()
        state = [*self.key, begin, packed, head, chain, stored]
        return state[:7] if stored else state[:6] if chain else state[:5]

    def restore(self, state: Sequence[Any]) -> None:
        """Take over what `state` described."""
        _, _, begin, packed, head, chain, stored = [*state, None, None][:7]
        self.retained.restore(int(begin), packed, stored or ())
        self.head = head_from(head)
        if self.chain is not None:
            self.chain.restore(chain)


def is_newer(stream: Stream, head: Head | None) -> bool:
    """Whether a head is newer than the known one."""
    return head is not None and (stream.head is None or head.t > stream.head.t)


def is_valid_head(head: Head, n_arms: int) -> bool:
    """Whether decision number, arm and number of rows are in range."""
    return 0 <= head.t <= LAST_DECISION and 0 <= head.arm < n_arms and len(head.rows) in (0, n_arms)


def capped(head: Head, most: float) -> Head:
    """The head; rows with more than `most` samples, or without a valid mean, become rows without samples."""
    rows = tuple((mean, n) if _is_valid_row(mean, n, most) else (math.inf, 0.0) for mean, n in head.rows)
    return Head(head.t, head.arm, rows)


def _is_valid_row(mean: float, n: float, most: float) -> bool:
    """Whether a row is possible; a mean that is not defined yet is +inf."""
    return 0 <= n <= most and (n == 0 or mean == math.inf or -LARGEST_REWARD <= mean <= LARGEST_REWARD)


def most_samples(streams: Iterable[Stream], reach: Iterable[int]) -> float:
    """An upper bound on the samples in the streams that reach an origin, from what is known here.

    Streams arrive at different speeds, so the bound is twice the known number plus 1,024 per origin.
    """
    known: dict[int, int] = {}
    for stream in streams:
        if stream.upto:  # one without items leaves no record
            known[stream.key[0]] = known.get(stream.key[0], 0) + stream.upto
    most = max(known.values(), default=0)
    return sum(2.0 * known.get(v, most) + 1024 for v in reach)
