"""The own decisions: their numbers, the open ones, and the rewards of the last ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rumormill.mesh.file import Limits

# Seconds of decisions, at the rate of the last ones, that are reserved ahead of need: a commit takes less.
AHEAD = 2.0


class NotReady(Exception):
    """No decision can be made now: no number is reserved on disk."""


class Open(NamedTuple):
    """A decision without a reward."""

    arm: int
    expires: float


@dataclass(frozen=True)
class Known:
    """An accepted reward: its number in the own stream, and the record that holds it."""

    arm: int
    reward: float
    seq: int
    record: int


_SLOT = np.dtype([("t", "<i8"), ("arm", "<u2"), ("reward", "<f8"), ("seq", "<i8"), ("record", "<i8")])


class Decisions:
    """Decision numbers, reserved on disk before use: no crash makes one number serve twice.

    They are reserved ahead by the rate at which they are taken, so that `choose` does not wait for the disk.
    """

    def __init__(self, n_arms: int, limits: Limits) -> None:
        self._limits = limits
        self.next_t = 1
        self.first_t = 1
        """Decisions before this one belong to an earlier game of the same name."""
        self.reserved = 0
        """The last number reserved on disk."""
        self.requested = 0
        """The last number of which a reservation was logged, on disk or not."""
        self.open: dict[int, Open] = {}
        self.pending = [0] * n_arms
        self._known = np.zeros(min(64, limits.window), _SLOT)
        # Numbers taken since a time, and the rate before it, per second.
        self._taken, self._since, self._rate = 0, 0.0, 0.0

    @property
    def ready(self) -> bool:
        """Whether a decision can be made now."""
        return self.next_t <= self.reserved

    def to_reserve(self) -> int | None:
        """The last number that should be reserved now; None while enough are."""
        limits, rate = self._limits, max(self._rate, self._taken)
        # A restart uses up what is reserved: not much of the window.
        ahead = max(limits.block, min(int(AHEAD * rate), limits.window // 8))
        if self.requested - self.next_t + 1 >= ahead:
            return None
        return max(self.requested, self.next_t - 1 + 2 * ahead)

    def take_number(self, now: float) -> int:
        """The next decision number; NotReady if there is none."""
        if self.next_t > self.reserved:
            raise NotReady("no decision numbers are reserved on disk yet")
        if now - self._since >= 1.0:
            self._rate, self._taken, self._since = self._taken / (now - self._since), 0, now
        self._taken += 1
        self.next_t += 1
        return self.next_t - 1

    def add(self, t: int, arm: int, expires: float) -> None:
        """Open a decision: a pending pull of its arm."""
        self.open[t] = Open(arm, expires)
        self.pending[arm] += 1

    def close(self, t: int) -> Open | None:
        """Close a decision; None if it was not open."""
        found = self.open.pop(t, None)
        if found is not None:
            self.pending[found.arm] -= 1
        return found

    def overdue(self, now: float) -> list[int]:
        """Open decisions that have expired or left the window."""
        return [t for t, each in self.open.items() if each.expires <= now or self.too_old(t)]

    def outdated(self) -> list[int]:
        """Open decisions that have left the window, and the oldest ones if one more would be too many."""
        found: list[int] = []
        spare = len(self.open) + 1 - self._limits.max_open
        for t in self.open:
            if len(found) >= spare and not self.too_old(t):
                break  # they are in order
            found.append(t)
        return found

    def too_old(self, t: int) -> bool:
        """Whether a decision has left the window in which rewards are accepted."""
        return t < max(self.first_t, self.next_t - self._limits.window)

    def begin_after(self, t: int) -> None:
        """Continue behind the numbers of an earlier game."""
        self.reserved = self.requested = t
        self.first_t = self.next_t = t + 1

    def known(self, t: int) -> Known | None:
        """The accepted reward of a decision within the window; None if there is none."""
        slot = self._known[t % len(self._known)]
        if slot["t"] != t:
            return None
        return Known(int(slot["arm"]), float(slot["reward"]), int(slot["seq"]), int(slot["record"]))

    def remember(self, t: int, known: Known) -> None:
        """Store the accepted reward of a decision."""
        self._reserve()
        place = t % len(self._known)
        if self._known[place]["t"] < t:  # a slot never goes back to an older decision
            self._known[place] = (t, known.arm, known.reward, known.seq, known.record)

    def _reserve(self) -> None:
        """Grow, up to the window, until no two decisions within it share a slot."""
        size = len(self._known)
        if self.next_t <= size or size == self._limits.window:
            return
        held = self._known[self._known["t"] > 0]
        self._known = np.zeros(min(max(4 * size, self.next_t), self._limits.window), _SLOT)
        held = held[np.argsort(held["t"])]
        self._known[held["t"] % len(self._known)] = held

    def restart(self) -> None:
        """Continue behind the reserved block: which of its numbers were used is not known."""
        self.next_t = self.reserved + 1
        self.requested = self.reserved

    def state(self) -> dict[str, Any]:
        """As plain data, for snapshots."""
        held = self._known[self._known["t"] >= max(1, self.next_t - self._limits.window)]
        return {
            "next_t": self.next_t,
            "first_t": self.first_t,
            "reserved": self.requested,  # its record reaches the disk before this snapshot
            "open": [[t, each.arm, each.expires] for t, each in self.open.items()],
            "known": held.tobytes(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over what `state` described."""
        self.next_t, self.reserved = int(state["next_t"]), int(state["reserved"])
        self.first_t = int(state.get("first_t", 1))
        self.requested = self.reserved
        for t, arm, expires in state["open"]:
            self.add(int(t), int(arm), float(expires))
        held = np.frombuffer(state["known"], _SLOT).copy()
        held["record"] = 0
        self._reserve()
        self._known[held["t"] % len(self._known)] = held
