"""Heads: the newest decision of an origin, and how much of what it says of its samples is believed."""

from __future__ import annotations

import math
from collections.abc import Iterable

from rumormill.live.frames import Head
from rumormill.live.setup import LAST_DECISION
from rumormill.live.streams import Stream
from rumormill.validate import LARGEST_REWARD


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
