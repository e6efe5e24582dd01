"""What a node knows of one link: who is at the other end, what it has, what is to be told."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from rumormill.live.frames import Obs
from rumormill.live.seals import Point
from rumormill.live.streams import Key


@dataclass
class Shared:
    """One game over one link."""

    answered: bool = False
    """Whether the peer has said what it has."""
    has: dict[Key, int] = field(default_factory=dict)
    """How far the peer is in every stream, as it said, or as was told since."""
    hops: dict[Key, int] = field(default_factory=dict)
    """By how many hops the peer has every stream, as it said."""
    claims: dict[Key, int] = field(default_factory=dict)
    """How far the peer is by its own words alone."""
    floors: dict[Key, int] = field(default_factory=dict)
    """Up to where the peer said it no longer keeps a stream."""
    proofs: dict[Key, Point] = field(default_factory=dict)
    """In a mesh with signatures: the origin's word on that floor."""
    told_skip: dict[Key, int] = field(default_factory=dict)
    """Up to where it was told that a stream is no longer kept here; nothing more of it until it answers."""
    news: dict[Key, None] = field(default_factory=dict)
    """Streams of which there may be something to tell, in order."""


@dataclass
class Link:
    """One connection to a neighbour."""

    peer: int
    opened: float
    heard: float
    pinged: float
    next_have: float
    counted: float
    """When the allowance was counted."""
    allowance: float
    """Frames that may come at once."""
    epoch: int | None = None
    """None until the peer has said hello."""
    games: dict[str, Shared] = field(default_factory=dict)
    control: deque[bytes] = field(default_factory=deque)
    """Frames that go before everything else."""
    asked: bool = False
    """Whether the peer waits for something in `control`."""
    closing: str | None = None
    """Why the driver should close it."""
    pause_until: float = 0.0
    """Until when the driver should not read from it."""
    round: int = 0
    """Lock step: the last round that the peer has ended."""
    held: list[tuple[int, Obs]] = field(default_factory=list)
    """Lock step: (round, frame) that came before the round's end."""
