"""Streams: the observations of one origin in one epoch, numbered without holes.

A node knows a prefix of a stream: every item up to `upto` was accepted or skipped, so one number removes
duplicates. The last items are retained, packed, for neighbours that reconnect.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from rumormill.live.core.frames import Head, Item, Key, head_from
from rumormill.live.core.node_config import LAST_DECISION
from rumormill.live.core.retained import ItemStore, RetainedItems
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
