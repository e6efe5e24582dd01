"""Streams: the observations of one origin in one epoch, numbered without holes.

A node knows a prefix of a stream: every item up to `upto` was accepted or skipped, so one number removes
duplicates. The last items are retained, packed, for neighbours that reconnect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rumormill.live.core.frames import ITEM, Head, Item, Key, head_from
from rumormill.live.core.node_config import LAST_DECISION
from rumormill.live.core.signatures import Chain
from rumormill.validate import LARGEST_REWARD

NO_ARM = 65_535
UNKNOWN = 1 << 30
"""Hops of a stream whose path is not known since a restart: more than any hop budget."""
VOID: Item = (0, NO_ARM, 0.0)
"""Stored in place of an item that is no sample."""


def packable(item: Item) -> Item:
    """The item if it can be stored, else VOID."""
    t, arm, _ = item
    return item if 0 <= t <= LAST_DECISION and 0 <= arm < NO_ARM else VOID


class RetainedItems:
    """The last items of a stream, numbers floor + 1 .. last, in a ring buffer that grows up to a limit."""

    def __init__(self, limit: int, floor: int = 0) -> None:
        self._limit = limit
        self._ring = np.zeros(min(16, limit), ITEM)
        self.floor = floor
        self.last = floor

    def append(self, items: Sequence[Item]) -> None:
        """Append items; drop the oldest beyond the limit."""
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
        """Items first .. first + count - 1, all of which must be retained."""
        size = len(self._ring)
        start, stop = (first - 1) % size, (first - 1 + count) % size
        if count == 0:
            return []
        if start < stop:
            found: list[Item] = self._ring[start:stop].tolist()
            return found
        return [*self._ring[start:].tolist(), *self._ring[:stop].tolist()]

    def restart(self, floor: int) -> None:
        """Drop all items; the next one is floor + 1."""
        self.floor = self.last = floor

    def truncate(self, last: int) -> None:
        """Drop the items after `last`."""
        self.last, self.floor = last, min(self.floor, last)

    def _reserve(self, count: int) -> None:
        if count <= len(self._ring) or len(self._ring) == self._limit:
            return
        held = self.between(self.floor + 1, self.last - self.floor)
        self._ring = np.zeros(min(max(2 * len(self._ring), count), self._limit), ITEM)
        if held:
            places = (self.floor + np.arange(len(held))) % len(self._ring)
            self._ring[places] = np.array(held, ITEM)

    def packed(self) -> bytes:
        """All retained items as bytes."""
        order = (self.floor + np.arange(self.last - self.floor)) % len(self._ring)
        return self._ring[order].tobytes()

    def unpack(self, data: bytes, floor: int) -> None:
        """Take over the bytes of `packed()`."""
        items = np.frombuffer(data, ITEM)[-self._limit :]
        self.last = floor + len(data) // ITEM.itemsize
        self.floor = self.last - len(items)
        self._ring = np.zeros(max(len(items), min(16, self._limit)), ITEM)
        self._ring[(self.floor + np.arange(len(items))) % len(self._ring)] = items


class Stream:
    """The prefix of a stream that one node knows."""

    def __init__(self, key: Key, retain: int, hops: int, chain: Chain | None = None) -> None:
        self.key = key
        self.chain = chain
        """Its digest and signed points; None in a mesh without signatures."""
        self.hops = hops
        """The least number of hops it came by, 0 for the own; not on disk: neighbours send it again."""
        self.retained = RetainedItems(retain)
        self.head: Head | None = None
        self.skip_since: float | None = None
        """When a neighbour first reported that it no longer retains the next item."""

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
        state = [*self.key, self.retained.floor, self.retained.packed(), head]
        return state if self.chain is None else [*state, self.chain.state()]

    @classmethod
    def from_state(cls, state: Sequence[Any], retain: int, hops: int, chain: Chain | None = None) -> Stream:
        """The stream that `state` described."""
        origin, epoch, floor, packed, head, *signatures = state
        stream = cls((int(origin), int(epoch)), retain, hops, chain)
        stream.retained.unpack(packed, int(floor))
        stream.head = head_from(head)
        if chain is not None:
            chain.restore(*signatures)
        return stream


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
