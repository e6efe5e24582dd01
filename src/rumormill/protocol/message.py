"""The message, its encoding in bytes, and validation: one that no honest agent could have sent is dropped."""

from __future__ import annotations

import math
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from msgspec import Struct

from rumormill.errors import DataError, InputError
from rumormill.text import shown
from rumormill.validate import LARGEST_REWARD, is_whole

_HEAD = struct.Struct("<IIHHd")  # origin, round, arm, number of rows, reward
_ROW = struct.Struct("<dd")
_count = itemgetter(1)


class Message(Struct, frozen=True):
    """⟨origin, round, arm, reward⟩, and for some policies one row of two numbers per arm.

    KMP-UCB fills `rows` with (mean, count), Consensus-UCB with (sum, count); other policies send no rows. The
    size of a message is therefore O(1) or O(K), as the paper counts it.

    Parameters
    ----------
    origin : int
        Agent that pulled.
    round : int
        Round of the pull, from 1.
    arm : int
        Arm that was pulled, from 0.
    reward : float
        Reward of the pull.
    rows : tuple[tuple[float, float], ...], default ()
        Two numbers for every arm, or none.

    Examples
    --------
    >>> import rumormill as rm
    >>> message = rm.Message(origin=3, round=7, arm=1, reward=0.5)
    >>> rm.Message.decode(message.encode()) == message, message.wire_size
    (True, 20)

    References
    ----------
    docs/semantics.md: messages and hops.
    """

    origin: int
    round: int
    arm: int
    reward: float
    rows: tuple[tuple[float, float], ...] = ()

    @property
    def wire_size(self) -> int:
        """Bytes of `encode()`, without encoding."""
        return wire_size(len(self.rows))

    def encode(self) -> bytes:
        """A fixed little-endian layout: a head of 20 bytes, then 16 bytes per row."""
        try:
            head = _HEAD.pack(self.origin, self.round, self.arm, len(self.rows), self.reward)
            return head + b"".join(_ROW.pack(*row) for row in self.rows)
        except (struct.error, TypeError):
            raise InputError(
                f"{shown(self)} has no encoding: origin and round are whole numbers below 2^32, arm and the "
                "number of rows below 2^16, the reward and both numbers of a row are floats"
            ) from None

    def plain(self) -> list[Any]:
        """The message as plain numbers and lists, for the state of an agent."""
        return [self.origin, self.round, self.arm, self.reward, plain_rows(self.rows)]

    @classmethod
    def from_plain(cls, values: Sequence[Any]) -> Message:
        """The message that `plain()` described."""
        origin, round_, arm, reward, rows = values
        return cls(int(origin), int(round_), int(arm), float(reward), rows_from_plain(rows))

    @classmethod
    def decode(cls, data: bytes) -> Message:
        """The message that `encode()` wrote; damaged bytes raise DataError."""
        if len(data) < _HEAD.size:
            raise DataError(f"a message of {len(data)} bytes is cut off: the head alone has {_HEAD.size}")
        origin, round_, arm, n_rows, reward = _HEAD.unpack_from(data)
        if len(data) != wire_size(n_rows):
            raise DataError(f"a message with {n_rows} rows has {wire_size(n_rows)} bytes, not {len(data)}")
        return cls(origin, round_, arm, reward, tuple(_ROW.iter_unpack(data[_HEAD.size :])))


def wire_size(n_rows: int) -> int:
    """Bytes of a message that carries n_rows rows."""
    return _HEAD.size + n_rows * _ROW.size


class CheckedRows(tuple[tuple[float, float], ...]):
    """Sound rows: every receiver of a message need not look at each number again; see `checked_rows`."""

    claim: float
    """The largest count."""


def checked_rows(rows: tuple[tuple[float, float], ...]) -> tuple[tuple[float, float], ...]:
    """The rows, marked as sound if they are."""
    if not sound(rows):
        return rows
    made = CheckedRows(rows)
    made.claim = max(rows, key=_count)[1]
    return made


def sound(rows: Sequence[tuple[float, float]], least: float = 0.0) -> bool:
    """Whether all means are numbers (or +inf: there is none) and all counts numbers >= least."""
    for mean, count in rows:
        if not (
            least <= count < math.inf and (-LARGEST_REWARD <= mean <= LARGEST_REWARD or mean == math.inf)
        ):
            return False
    return True


def plain_rows(rows: Sequence[tuple[float, float]]) -> list[list[float | None]]:
    """Rows as plain lists; JSON has no infinity, so None stands for it."""
    return [[None if value == math.inf else value for value in row] for row in rows]


def rows_from_plain(rows: Sequence[Sequence[Any]]) -> tuple[tuple[float, float], ...]:
    """The rows that `plain_rows` described."""
    a_and_b = [[math.inf if value is None else float(value) for value in row] for row in rows]
    return tuple((a, b) for a, b in a_and_b)


Rows = tuple[tuple[float, float], ...]


class SentRound:
    """The messages of a round in which every agent sent its own: checked once, not by every receiver."""

    def __init__(self, t: int, n_arms: int, messages: list[Message]) -> None:
        self.t, self.n_arms, self.messages = t, n_arms, messages
        self.arms, self.rewards = [m.arm for m in messages], [m.reward for m in messages]
        rows = [m.rows for m in messages]
        self.shares_rows = rows.count(()) < len(rows)
        self.sound = (
            [m.origin for m in messages] == list(range(len(messages)))
            and [m.round for m in messages].count(t) == len(messages)
            and {type(field) for m in messages for field in (m.origin, m.round, m.arm)} == {int}
            and 0 <= min(self.arms) <= max(self.arms) < n_arms
            and sum(map(abs, self.rewards)) <= LARGEST_REWARD
            and (not self.shares_rows or {(type(row), len(row)) for row in rows} == {(CheckedRows, n_arms)})
        )
        checked: list[Any] = rows if self.sound and self.shares_rows else []
        self.claims: list[float] = [each.claim for each in checked]

    @classmethod
    def of(cls, batches: Sequence[Sequence[Message]], t: int, n_arms: int) -> SentRound | None:
        """The round, if every agent sent one message, its own, and all are valid."""
        try:
            made = cls(t, n_arms, [message for (message,) in batches])
        except (TypeError, ValueError, OverflowError):  # not one message, or fields that are no numbers
            return None
        return made if made.sound else None


class Line:
    """Some origins, ascending, and what they have in a column that has all agents."""

    def __init__(self, origins: Sequence[int]) -> None:
        self.origins = tuple(origins)
        self.of: Any = itemgetter(*origins) if len(origins) > 1 else lambda all_: [all_[v] for v in origins]


class Heard(list[Message]):
    """The messages of a line in a `SentRound`."""

    def __init__(self, sent: SentRound, line: Line) -> None:
        super().__init__(line.of(sent.messages))
        self.sent, self.line = sent, line


def columns(news: Sequence[Message]) -> tuple[Sequence[int], Sequence[float]]:
    """The arms and the rewards."""
    if type(news) is Heard:
        return news.line.of(news.sent.arms), news.line.of(news.sent.rewards)
    return [m.arm for m in news], [m.reward for m in news]


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

    def accepts_round(self, sent: SentRound, now: int) -> bool:
        """Whether every message of a round is valid at the end of round `now`, if its origin is in reach."""
        rows = self.rows is not False if sent.shares_rows else not self.rows
        return rows and sent.t == now > 0 != self.oldest and sent.n_arms == self.n_arms

    def in_reach(self, origins: Sequence[int]) -> bool:
        """Whether all these are known origins."""
        known = self.origins
        return all(map(self._may_be, origins) if known is None else [origin in known for origin in origins])

    def _may_be(self, origin: int) -> bool:
        return origin >= 0 and (self.n_agents is None or origin < self.n_agents)

    def _rows_are_sound(self, rows: Rows) -> bool:
        if self.rows is False or len(rows) != self.n_arms:
            return False
        return type(rows) is CheckedRows or sound(rows, -LARGEST_REWARD if self.signed_counts else 0.0)

    def claims_hold(self, heard: Heard) -> bool:
        """Whether no message overclaims."""
        line, sent, known = heard.line, heard.sent, self.origins
        claims = zip(line.origins, line.of(sent.claims), strict=True)
        return type(known) is not dict or all([claim <= sent.t * known[v] for v, claim in claims])  # noqa: C419

    def overclaims(self, message: Message) -> bool:
        """Whether a row claims more samples than its origin can have.

        As of round r an agent has at most r samples of an arm from each agent within its reach.
        """
        if type(self.origins) is not dict:
            return False
        most = message.round * self.origins[message.origin]
        rows = message.rows
        return bool((rows.claim if type(rows) is CheckedRows else max(rows, key=_count)[1]) > most)
