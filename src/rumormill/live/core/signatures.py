"""Signatures of streams: a node cannot forge the observations of another, not even those it forwards.

Every stream is a hash chain: the digest of item n covers the digest of item n - 1. An origin signs *points*
of its chain: the number of items, their digest, its newest head. A receiver that has a prefix of a stream
verifies a longer prefix that ends at a point, from any sender. Nodes that forward items keep one point per
batch.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rumormill.live.core.frames import ITEM, Head, Item, Key, head_from

BEGIN = bytes(32)
"""The digest of a stream without items."""
FORGED = "seal"  # plain-words: allow
"""The kind of violation that counts wrong signatures, in status and metrics."""


class Point(NamedTuple):
    """Signed by an origin: the digest of its first `upto` items, and its newest head."""

    upto: int
    digest: bytes
    head: Head | None
    signature: bytes


@dataclass(frozen=True)
class Signer:
    """Signs points of the own streams and verifies those of others."""

    mesh: str
    sign: Callable[[bytes], bytes]
    verify: Callable[[int, bytes, bytes], bool]
    """(node, message, signature) -> whether it is that node's signature."""

    def sign_point(self, game: str, key: Key, upto: int, digest: bytes, head: Head | None) -> Point:
        """A signed point of an own stream."""
        return Point(upto, digest, head, self.sign(self._message(game, key, upto, digest, head)))

    def verifies(self, game: str, key: Key, point: Point) -> bool:
        """Whether the origin of the stream signed this point."""
        message = self._message(game, key, point.upto, point.digest, point.head)
        return self.verify(key[0], message, point.signature)

    def _message(self, game: str, key: Key, upto: int, digest: bytes, head: Head | None) -> bytes:
        """The signed bytes."""
        rows = [] if head is None else [[float(mean), float(n)] for mean, n in head.rows]
        newest = None if head is None else [head.t, head.arm, rows]
        return msgspec.msgpack.encode(["rumormill stream 1", self.mesh, game, *key, upto, digest, newest])


def chained(digest: bytes, items: Sequence[Item]) -> bytes:
    """The digest of a stream after more items."""
    packed, size = np.array(items, ITEM).tobytes(), ITEM.itemsize
    for at in range(0, len(packed), size):
        digest = hashlib.blake2b(digest + packed[at : at + size], digest_size=32).digest()
    return digest


class Chain:
    """The digest of one stream and its signed points."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self.digest = BEGIN
        """Of all known items."""
        self.points: list[Point] = []

    def add(self, point: Point, floor: int) -> None:
        """Append a point; drop those below the floor and those that no step of one batch needs."""
        points = self.points
        if points and point.upto <= points[-1].upto:
            points[-1] = point if point.upto == points[-1].upto else points[-1]
            return
        if len(points) > 1 and point.upto - points[-2].upto <= self._batch:
            points.pop()
        points.append(point)
        del points[: bisect_left(points, floor, key=lambda each: each.upto)]

    def truncate(self, upto: int, digest: bytes) -> None:
        """Drop the points after `upto`, where the digest is `digest`."""
        self.digest = digest
        del self.points[bisect_right(self.points, upto, key=lambda each: each.upto) :]

    def step(self, first: int, last: int) -> Point | None:
        """The furthest point, at most `last`, that one batch from item `first` reaches; None without one."""
        most = min(first - 1 + self._batch, last)
        at = bisect_right(self.points, most, key=lambda each: each.upto)
        return self.points[at - 1] if at and self.points[at - 1].upto >= first else None

    def above(self, floor: int) -> Point | None:
        """The first point at or above a floor."""
        at = bisect_left(self.points, floor, key=lambda each: each.upto)
        return self.points[at] if at < len(self.points) else None

    def state(self) -> list[Any]:
        """As plain data, for snapshots."""
        rows = [
            [point.upto, point.digest, None if point.head is None else point.head.plain(), point.signature]
            for point in self.points
        ]
        return [self.digest, rows]

    def restore(self, state: Sequence[Any]) -> None:
        """Take over what `state` described."""
        self.digest = bytes(state[0])
        self.points = [
            Point(int(upto), bytes(digest), head_from(head), bytes(signature))
            for upto, digest, head, signature in state[1]
        ]
