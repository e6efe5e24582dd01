"""Which messages an agent lets in. What could not have been said honestly is dropped, whoever says it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from rumormill.protocol.message import Message
from rumormill.validate import LARGEST_REWARD, is_whole


@dataclass(frozen=True, kw_only=True)
class Gate:
    """What an agent knows of the messages it may get; None where it does not know."""

    n_arms: int
    origins: Mapping[int, int] | Collection[int] | None = None
    """Whose messages can reach the agent; as a mapping, how many agents each hears, itself included."""
    n_agents: int | None = None
    oldest: int | None = None
    """Messages of this age in rounds, or older, cannot come."""
    rows: bool | None = None
    """Whether every message has a row for each arm; None: it may have them or not."""
    signed_counts: bool = False
    """Whether the second number of a row may be negative: it is a count, or part of one."""

    def admits(self, message: Message, now: int) -> bool:
        """Whether the message may be believed at the end of round `now`."""
        try:
            return self._head_is_sound(message, now) and self._rows_are_sound(message)
        except (TypeError, ValueError, OverflowError):  # not even numbers
            return False

    def _head_is_sound(self, message: Message, now: int) -> bool:
        origin, round_, arm = message.origin, message.round, message.arm
        if not (is_whole(origin) and is_whole(round_) and is_whole(arm)):
            return False
        known = origin >= 0 and (self.n_agents is None or origin < self.n_agents)
        if self.origins is not None:
            known = origin in self.origins
        timely = 1 <= round_ <= now and (self.oldest is None or round_ > now - self.oldest)
        # NaN fails every comparison.
        return known and timely and 0 <= arm < self.n_arms and abs(message.reward) <= LARGEST_REWARD

    def _rows_are_sound(self, message: Message) -> bool:
        rows = message.rows
        if not rows:
            return not self.rows
        if self.rows is False or len(rows) != self.n_arms:
            return False
        least = -LARGEST_REWARD if self.signed_counts else 0.0
        return all(
            (abs(mean) <= LARGEST_REWARD or mean == math.inf) and least <= count < math.inf
            for mean, count in rows
        )

    def overclaims(self, message: Message) -> bool:
        """Whether a row speaks of more samples than its origin can have.

        As of round r nobody knows of more samples of an arm than r pulls of each agent that it hears.
        """
        if not isinstance(self.origins, Mapping):
            return False
        most = message.round * self.origins[message.origin]
        return any(count > most for _, count in message.rows)
