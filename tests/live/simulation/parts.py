"""What a simulated mesh is made of: disks, machines, connections, and what applications know."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from rumormill.live.core.node import Node, Token
from rumormill.live.core.records import Record
from rumormill.live.core.streams import MemoryItems

N_ARMS = 3


class Broken(AssertionError):
    """An invariant does not hold."""


@dataclass
class Disk:
    """Safe records, and those that a crash may or may not keep (any prefix of them)."""

    safe: list[Record] = field(default_factory=list)
    rest: list[Record] = field(default_factory=list)
    state: bytes | None = None  # the snapshot, behind which `safe` begins
    waiting: tuple[int, bytes, int, set[int]] | None = None
    """(records before it, snapshot, epoch, segments that it does not name) not on disk yet"""
    segments: dict[int, bytes] = field(default_factory=dict)  # of retained items
    full: bool = False
    log: list[Record] = field(default_factory=list)  # all safe ones ever: not on the disk, for the checks
    first_epoch: int = 1  # when it was empty
    state_epoch: int = 1  # as of the snapshot
    epochs: dict[str, int] = field(
        default_factory=dict
    )  # per game, if it changed, as of the last safe record

    def epoch(self, game: str) -> int:
        return self.epochs.get(game, self.first_epoch)


class StoredItems(MemoryItems):
    """Segments on a disk: deleted with a snapshot that does not name them."""

    def __init__(self, disk: Disk) -> None:
        self.segments, self._next = disk.segments, 1 + max(disk.segments, default=0)

    def drop(self, number: int) -> None:
        pass


@dataclass
class Sent:
    """What an application knows of a decision."""

    token: Token
    reward: float
    weight: int = 1
    answer: tuple[int, int] | None = None  # (seq, record)
    acked: bool = False


@dataclass(frozen=True)
class File:
    """One revision of the mesh file."""

    members: frozenset[int]
    edges: frozenset[tuple[int, int]]
    keys: tuple[int, ...]
    """Per node, how often it was rotated."""
    revoked: frozenset[str] = frozenset()

    def linked(self, v: int) -> frozenset[int]:
        return frozenset(w for edge in self.edges if v in edge for w in edge if w != v)


@dataclass
class Host:
    """One machine: its disk stays, its node comes and goes."""

    disk: Disk
    epoch: int
    retain: int
    node: Node | None = None
    offset: float = 0.0
    written: int = 0  # records of this process handed to the disk
    safe: int = 0  # of those, on disk
    sent: dict[int, Sent] = field(default_factory=dict)
    side: int | None = None  # which arms the second game has in its mesh file; None: it is not in it
    file: int = 0  # which revision of the mesh file it has applied
    key: int = 0  # which of its keys it has
    backup: Disk | None = None  # a copy of its disk as it was at some time
    backup_items: int = 0  # own items in it
    class_items: int = 0  # own items of request classes so far, and in the copy
    backup_class_items: int = 0
    unsure: dict[str, list[tuple[int, int, float]]] = field(default_factory=dict)
    """Per game, own items on disk since an old copy was put in its place, until it is known to be one."""
    away: bool = False  # it is no part of the mesh yet, or any more


@dataclass
class Wire:
    """One connection: frames on the way in both directions."""

    ends: tuple[int, int]
    ways: dict[int, deque[bytes]]  # by sender
    hostile: bool
    stalled: bool = False  # it is up, but nothing comes through
