"""The own decisions: their numbers, the open ones, and the rewards of the last ones."""

from __future__ import annotations

import struct
import zlib
from collections import deque
from collections.abc import Iterable
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
    """An accepted reward: its number in the own stream, the record that holds it, a checksum of both."""

    check: int
    seq: int
    record: int


def check_of(arm: int, reward: float) -> int:
    """The checksum by which a repeated reward is told from another one."""
    return zlib.crc32(struct.pack("<Hd", arm, reward))


# Decisions whose rewards are stored in full; of earlier ones within the window the checksum is.
RECENT = 100_000
# Seconds between two decisions of which the time is stored.
MARK_EVERY = 60.0
_OLDER = np.dtype([("t", "<u4"), ("check", "<u4"), ("seq", "<i8")])
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
        self.others: dict[int, dict[int, Known | None]] = {}
        """Of the newest decisions for several arms: the further arms, and their rewards once accepted."""
        self.propensities: dict[int, float] = {}
        """Of the newest decisions that wait for a reward, in time or late, where they are recorded."""
        self._recent = min(limits.window, RECENT)
        self._known = np.zeros(min(64, self._recent), _SLOT)
        # Of decisions before those; pages of it take memory when they are used.
        self._older = np.zeros(limits.window if limits.window > RECENT else 0, _OLDER)
        self._marks: deque[tuple[int, float]] = (
            deque()
        )  # (t, time) of a decision in every minute, oldest first
        # Numbers taken since a time, and the rate before it, per second.
        self._taken, self._since, self._rate = 0, 0.0, 0.0
        self._records: dict[int, int] = {}  # by decision, the record of an older reward that is not on disk

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
        if not self._marks or now - self._marks[-1][1] >= MARK_EVERY:
            self._marks.append((self.next_t, now))
        self.next_t += 1
        return self.next_t - 1

    def add(
        self, t: int, arm: int, expires: float, others: Iterable[int] = (), propensity: float | None = None
    ) -> None:
        """Open a decision: a pending pull of its (first) arm."""
        self.open[t] = Open(arm, expires)
        self.pending[arm] += 1
        if others:
            self.others[t] = dict.fromkeys(others)
            if len(self.others) > self._limits.max_open:
                del self.others[next(iter(self.others))]
        if propensity is not None:
            self.propensities[t] = propensity
            if len(self.propensities) > self._limits.max_open:
                del self.propensities[next(iter(self.propensities))]

    def close(self, t: int) -> Open | None:
        """Close a decision; None if it was not open."""
        found = self.open.pop(t, None)
        if found is not None:
            self.pending[found.arm] -= 1
        return found

    def overdue(self, now: float) -> list[int]:
        """Open decisions that have expired or left the window."""
        while self._marks and self._marks[0][1] < now - self._limits.window_seconds:
            self.first_t = max(self.first_t, self._marks.popleft()[0])
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
        if slot["t"] == t:
            return Known(check_of(slot["arm"], slot["reward"]), int(slot["seq"]), int(slot["record"]))
        if len(self._older):
            slot = self._older[t % len(self._older)]
            if slot["t"] == t & 0xFFFFFFFF:
                return Known(int(slot["check"]), int(slot["seq"]), self._records.get(t, 0))
        return None

    def remember(self, t: int, arm: int, reward: float, seq: int, record: int) -> None:
        """Store the accepted reward of a decision."""
        self._reserve()
        place = t % len(self._known)
        held = self._known[place]
        if held["t"] < t:  # a slot never goes back to an older decision
            if held["t"]:
                self._store_older(int(held["t"]), held["arm"], held["reward"], held["seq"])
            self._known[place] = (t, arm, reward, seq, record)
        else:
            self._store_older(t, arm, reward, seq)
            self._records[t] = record

    def _store_older(self, t: int, arm: int, reward: float, seq: int) -> None:
        if len(self._older):
            self._older[t % len(self._older)] = (t & 0xFFFFFFFF, check_of(arm, reward), seq)

    def committed(self, record: int) -> None:
        """Records up to this one are on disk."""
        if self._records:
            self._records = {t: at for t, at in self._records.items() if at > record}

    def _reserve(self) -> None:
        """Grow, up to the recent ones, until no two decisions among them share a slot."""
        size = len(self._known)
        if self.next_t <= size or size == self._recent:
            return
        held = self._known[self._known["t"] > 0]
        self._known = np.zeros(min(max(4 * size, self.next_t), self._recent), _SLOT)
        held = held[np.argsort(held["t"])]
        self._known[held["t"] % len(self._known)] = held

    def restart(self) -> None:
        """Continue behind the reserved block: which of its numbers were used is not known."""
        self.next_t = self.reserved + 1
        self.requested = self.reserved

    def state(self) -> dict[str, Any]:
        """As plain data, for snapshots."""
        least = max(1, self.next_t - self._limits.window)
        held = self._known[self._known["t"] >= least]
        older = self._older[self._older["t"] > 0]
        older = older[self._whole(older["t"]) >= least]
        state: dict[str, Any] = {
            "next_t": self.next_t,
            "first_t": self.first_t,
            "reserved": self.requested,  # its record reaches the disk before this snapshot
            "open": [[t, each.arm, each.expires] for t, each in self.open.items()],
            "known": held.tobytes(),
        }
        if len(older):
            state["older"] = older.tobytes()
        if self.others:
            state["others"] = [
                [t, [[arm, *((known.check, known.seq) if known else ())] for arm, known in arms.items()]]
                for t, arms in self.others.items()
            ]
        if self.propensities:
            state["propensities"] = [list(each) for each in self.propensities.items()]
        if self._marks:
            state["marks"] = [list(each) for each in self._marks]
        return state

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
        for t, arms in state.get("others", ()):
            self.others[t] = {arm: Known(known[0], known[1], 0) if known else None for arm, *known in arms}
        self.propensities = {int(t): float(chance) for t, chance in state.get("propensities", ())}
        self._marks.extend((int(t), float(when)) for t, when in state.get("marks", ()))
        older = np.frombuffer(state.get("older", b""), _OLDER)
        if len(self._older):
            self._older[self._whole(older["t"]) % len(self._older)] = older

    def _whole(self, t: Any) -> Any:
        """Decision numbers of which the last 32 bits are given."""
        return self.next_t - ((self.next_t - t.astype(np.int64)) & 0xFFFFFFFF)
