"""Validation of messages: one that no honest agent could have sent is dropped."""

from __future__ import annotations

import operator
from collections.abc import Collection
from dataclasses import dataclass

from rumormill.protocol.message import CheckedRows, Message, sound
from rumormill.validate import LARGEST_REWARD, is_whole

Rows = tuple[tuple[float, float], ...]
_count = operator.itemgetter(1)


@dataclass(frozen=True, kw_only=True)
class MessageValidator:
    """What an agent knows of the messages it may receive; None: not known."""

    n_arms: int
    origins: dict[int, int] | Collection[int] | None = None
    """Origins within reach; as a dict, the number of agents within reach of each, itself included."""
    n_agents: int | None = None
    oldest: int | None = None
    """Messages of this age in rounds, or older, are invalid."""
    rows: bool | None = None
    """Whether every message has a row for each arm; None: it may have them or not."""
    signed_counts: bool = False
    """Whether the second number of a row may be negative: it is a count, or part of one."""

    def accepts(self, message: Message, now: int) -> bool:
        """Whether the message is valid at the end of round `now`."""
        try:  # every message that is news comes by here: one expression, the likely types first
            origin, round_, arm, rows = message.origin, message.round, message.arm, message.rows
            return (
                (
                    type(origin) is type(round_) is type(arm) is int
                    or (is_whole(origin) and is_whole(round_) and is_whole(arm))
                )
                and 0 < round_ <= now
                and (self.oldest is None or round_ > now - self.oldest)
                and 0 <= arm < self.n_arms
                and -LARGEST_REWARD <= message.reward <= LARGEST_REWARD  # NaN fails every comparison
                and (origin in self.origins if self.origins is not None else self._may_be(origin))
                and (self._rows_are_sound(rows) if rows else rows == () and not self.rows)
            )
        except (TypeError, ValueError, OverflowError):  # not even numbers
            return False

    def _may_be(self, origin: int) -> bool:
        return origin >= 0 and (self.n_agents is None or origin < self.n_agents)

    def _rows_are_sound(self, rows: Rows) -> bool:
        if self.rows is False or len(rows) != self.n_arms:
            return False
        return type(rows) is CheckedRows or sound(rows, -LARGEST_REWARD if self.signed_counts else 0.0)

    def overclaims(self, message: Message) -> bool:
        """Whether a row claims more samples than its origin can have.

        As of round r an agent has at most r samples of an arm from each agent within its reach.
        """
        if type(self.origins) is not dict:
            return False
        most = message.round * self.origins[message.origin]
        rows = message.rows
        return bool((rows.claim if type(rows) is CheckedRows else max(rows, key=_count)[1]) > most)
