"""Seals: a member of a mesh cannot speak for another, also not through those who pass its words on.

Every stream is a chain: the digest of item n covers the digest of item n - 1. An origin signs a few *points*
of its chain: how many items, their digest, its newest head. Whoever knows a prefix of a stream can check a
longer one that ends at a point, whoever brought it; those who pass items on keep one point for every batch.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np

from rumormill.live.core.frames import Head, Item
from rumormill.live.core.streams import ITEM, Key, head_from, plain

BEGIN = bytes(32)
"""The digest of a stream without items."""


class Point(NamedTuple):
    """An origin's word that its first `upto` items have this digest, and that this was its newest head."""

    upto: int
    digest: bytes
    head: Head | None
    seal: bytes


@dataclass(frozen=True)
class Sealer:
    """The own key, and everybody's public ones."""

    mesh: str
    sign: Callable[[bytes], bytes]
    verify: Callable[[int, bytes, bytes], bool]
    """(node, words, seal) -> whether it is that node's."""

    def seal(self, game: str, key: Key, upto: int, digest: bytes, head: Head | None) -> Point:
        """A point of an own stream."""
        return Point(upto, digest, head, self.sign(self._words(game, key, upto, digest, head)))

    def holds(self, game: str, key: Key, point: Point) -> bool:
        """Whether the origin said so."""
        words = self._words(game, key, point.upto, point.digest, point.head)
        return self.verify(key[0], words, point.seal)

    def _words(self, game: str, key: Key, upto: int, digest: bytes, head: Head | None) -> bytes:
        rows = [] if head is None else [[float(mean), float(n)] for mean, n in head.rows]
        said = None if head is None else [head.t, head.arm, rows]
        return msgspec.msgpack.encode(["rumormill stream 1", self.mesh, game, *key, upto, digest, said])


def chained(digest: bytes, items: Sequence[Item]) -> bytes:
    """The digest of a stream after more items."""
    packed, size = np.array(items, ITEM).tobytes(), ITEM.itemsize
    for at in range(0, len(packed), size):
        digest = hashlib.blake2b(digest + packed[at : at + size], digest_size=32).digest()
    return digest


class Chain:
    """What a node knows of the seals of one stream."""

    def __init__(self, batch: int) -> None:
        self._batch = batch
        self.digest = BEGIN
        """Of all items up to the last one known."""
        self.points: list[Point] = []

    def add(self, point: Point, floor: int) -> None:
        """One more point, behind all others; those that no step of a batch needs are forgotten."""
        points = self.points
        if points and point.upto <= points[-1].upto:
            points[-1] = point if point.upto == points[-1].upto else points[-1]
            return
        if len(points) > 1 and point.upto - points[-2].upto <= self._batch:
            points.pop()
        points.append(point)
        del points[: bisect_left(points, floor, key=lambda each: each.upto)]

    def step(self, first: int, last: int) -> Point | None:
        """The furthest point that items first, first + 1, ... reach in one batch, at most to `last`."""
        most = min(first - 1 + self._batch, last)
        at = bisect_right(self.points, most, key=lambda each: each.upto)
        return self.points[at - 1] if at and self.points[at - 1].upto >= first else None

    def above(self, floor: int) -> Point | None:
        """The first point at or above a floor."""
        at = bisect_left(self.points, floor, key=lambda each: each.upto)
        return self.points[at] if at < len(self.points) else None

    def state(self) -> list[Any]:
        return [self.digest, [[p.upto, p.digest, plain(p.head), p.seal] for p in self.points]]

    def restore(self, state: Sequence[Any]) -> None:
        self.digest = bytes(state[0])
        self.points = [
            Point(int(upto), bytes(digest), head_from(head), bytes(seal))
            for upto, digest, head, seal in state[1]
        ]
