"""What a node is told before it starts: its name and neighbours, its games, its limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rumormill.policies import Agent

if TYPE_CHECKING:
    from rumormill.live.core.signatures import Sealer

# No decision number exceeds this, so a trimmed mean knows which samples can never leave and forgets them.
LAST_DECISION = 1 << 40
# A frame's arm must fit two bytes where it is stored; one number is left over for items that are no samples.
MOST_ARMS = 65_534


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Every bound on memory, and every waiting time in seconds."""

    retain: int = 100_000
    """Items of each stream kept for others."""
    window: int = 100_000
    """Decisions for which a late reward is still taken."""
    max_open: int = 10_000
    """Choices without a reward at one time."""
    block: int = 1_024
    """Decision numbers reserved at a time."""
    batch: int = 512
    """Items in one frame."""
    epochs: int = 8
    """Streams of one origin: it may lose its disk that often, less one."""
    have_every: float = 10.0
    skip_after: float = 30.0
    ping_every: float = 1.0
    silence: float = 5.0
    rate: float = 10_000.0
    """Items of one origin taken in per second."""
    frames: float = 10_000.0
    """Frames of one link taken in per second."""


@dataclass(frozen=True, kw_only=True)
class GameSetup:
    """One game as a node plays it."""

    name: str
    n_arms: int
    gamma: int
    fingerprint: str
    """Neighbours exchange a game only if theirs is equal."""
    make_agent: Callable[[], Agent]
    leader: int | None = None
    """Whose newest decision is copied; None for agents that decide for themselves."""
    patience: float = 30.0
    """Seconds of the leader's silence after which a follower decides for itself."""
    reach: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """For every member those whose samples it can have; bounds what its rows may claim."""


@dataclass(frozen=True, kw_only=True)
class NodeSetup:
    """One node."""

    node: int
    mesh: str
    epoch: int
    """Drawn when a node starts with an empty disk, larger each time."""
    neighbours: frozenset[int]
    members: frozenset[int]
    games: tuple[GameSetup, ...]
    limits: Limits = Limits()
    sealer: Sealer | None = None
    """Signs and checks, in a mesh with signatures."""
    lockstep: bool = False
    """Play in rounds, for comparison with the simulator."""
