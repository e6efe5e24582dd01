"""The own decisions: their numbers, those still open, and the rewards of the last ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rumormill.mesh.file import Limits


class NotReady(Exception):
    """No decision can be made now: numbers are not on disk yet, or too many choices are open."""


class Open(NamedTuple):
    """A choice whose reward is still out."""

    arm: int
    expires: float


@dataclass(frozen=True)
class Known:
    """A reward that was taken: where it stands in the own stream, and which record holds it."""

    arm: int
    reward: float
    seq: int
    record: int


_SLOT = np.dtype([("t", "<i8"), ("arm", "<u2"), ("reward", "<f8"), ("seq", "<i8"), ("record", "<i8")])


class Choices:
    """Numbers are reserved in blocks on disk before they are used: no crash makes one serve twice."""

    def __init__(self, n_arms: int, limits: Limits) -> None:
        self._limits = limits
        self.next_t = 1
        self.first_t = 1
        """Decisions before this one were of an earlier game of the same name."""
        self.reserved = 0
        """The last number that is reserved on disk."""
        self.asked = 0
        """The last number for which a reservation was written, on disk or not."""
        self.open: dict[int, Open] = {}
        self.pending = [0] * n_arms
        self._known = np.zeros(min(64, limits.window), _SLOT)

    @property
    def ready(self) -> bool:
        return self.next_t <= self.reserved and len(self.open) < self._limits.max_open

    def wants_reserve(self) -> bool:
        """Whether the next block should be reserved: early, so that nobody waits for the disk."""
        return self.asked - self.next_t + 1 < self._limits.block // 2

    def take_number(self) -> int:
        """The next decision number."""
        if self.next_t > self.reserved:
            raise NotReady("no decision numbers are reserved on disk yet")
        if len(self.open) >= self._limits.max_open:
            raise NotReady(f"{len(self.open):,} choices are open, which is all that is allowed")
        self.next_t += 1
        return self.next_t - 1

    def add(self, t: int, arm: int, expires: float) -> None:
        self.open[t] = Open(arm, expires)
        self.pending[arm] += 1

    def close(self, t: int) -> Open | None:
        """The choice is no longer open."""
        found = self.open.pop(t, None)
        if found is not None:
            self.pending[found.arm] -= 1
        return found

    def overdue(self, now: float) -> list[int]:
        """Open choices whose time is over, or that are too old for any reward to be taken."""
        return [t for t, each in self.open.items() if each.expires <= now or self.too_old(t)]

    def outdated(self) -> list[int]:
        """Open choices that are too old for any reward to be taken."""
        found = []
        for t in self.open:
            if not self.too_old(t):
                break  # they are in order
            found.append(t)
        return found

    def too_old(self, t: int) -> bool:
        return t < max(self.first_t, self.next_t - self._limits.window)

    def begin_after(self, t: int) -> None:
        """Numbers up to here were used by an earlier game: they are not used again."""
        self.reserved = self.asked = t
        self.first_t = self.next_t = t + 1

    def known(self, t: int) -> Known | None:
        """The reward that was taken for a decision within the window."""
        slot = self._known[t % len(self._known)]
        if slot["t"] != t:
            return None
        return Known(int(slot["arm"]), float(slot["reward"]), int(slot["seq"]), int(slot["record"]))

    def remember(self, t: int, known: Known) -> None:
        self._reserve()
        place = t % len(self._known)
        if self._known[place]["t"] < t:  # a slot never goes back to an older decision
            self._known[place] = (t, known.arm, known.reward, known.seq, known.record)

    def _reserve(self) -> None:
        """Grow, up to the window, until no two decisions that can still be asked for share a slot."""
        size = len(self._known)
        if self.next_t <= size or size == self._limits.window:
            return
        held = self._known[self._known["t"] > 0]
        self._known = np.zeros(min(max(4 * size, self.next_t), self._limits.window), _SLOT)
        held = held[np.argsort(held["t"])]
        self._known[held["t"] % len(self._known)] = held

    def restart(self) -> None:
        """After a restart nobody knows which numbers of the block were used: go on behind it."""
        self.next_t = self.reserved + 1
        self.asked = self.reserved

    def state(self) -> dict[str, Any]:
        held = self._known[self._known["t"] >= max(1, self.next_t - self._limits.window)]
        return {
            "next_t": self.next_t,
            "first_t": self.first_t,
            "reserved": self.asked,  # the record of it comes to the disk before this does
            "open": [[t, each.arm, each.expires] for t, each in self.open.items()],
            "known": held.tobytes(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.next_t, self.reserved = int(state["next_t"]), int(state["reserved"])
        self.first_t = int(state.get("first_t", 1))
        self.asked = self.reserved
        for t, arm, expires in state["open"]:
            self.add(int(t), int(arm), float(expires))
        held = np.frombuffer(state["known"], _SLOT).copy()
        held["record"] = 0
        self._reserve()
        self._known[held["t"] % len(self._known)] = held
