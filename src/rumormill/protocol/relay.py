"""Flooding with a hop budget: which messages an agent forwards, and which are new to it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rumormill.protocol.message import Message
from rumormill.protocol.validation import MessageValidator
from rumormill.validate import is_whole


class Relay:
    """Flooding with a hop budget for one agent. No transport: messages in, messages out.

    A message made in round t' is sent in round s iff s - t' < gamma, so it travels gamma hops and
    reaches an agent at distance d at the end of round t' + d - 1. Copies along several paths, and the
    agent's own messages, are dropped: each (origin, round) is accepted once.

    Parameters
    ----------
    agent : int
        Own id.
    gamma : int
        Hop budget.

    Examples
    --------
    >>> import rumormill as rm
    >>> relay = rm.Relay(agent=0, gamma=2)
    >>> message = rm.Message(origin=1, round=1, arm=0, reward=0.5)
    >>> len(relay.accept([message, message])), relay.outgoing(2) == [message], relay.outgoing(3)
    (1, True, [])

    References
    ----------
    docs/semantics.md: messages and their hop budget.
    """

    def __init__(self, agent: int, gamma: int) -> None:
        self._agent = agent
        self._gamma = gamma
        self._seen = _Seen()
        self._to_send: list[Message] = []
        self.refused = 0
        """Number of messages that the validator rejected."""

    def post(self, message: Message) -> None:
        """Queue the own message of this round."""
        self._to_send.append(message)

    def outgoing(self, t: int) -> list[Message]:
        """Messages to send to every neighbour in round t."""
        sending = [m for m in self._to_send if t - m.round < self._gamma]
        self._to_send = []
        return sending

    def accept(
        self, messages: Iterable[Message], validator: MessageValidator | None = None, now: int = 0
    ) -> list[Message]:
        """New messages among those that arrived in this round: by round of origin, then by origin.

        In this order every sample follows those that its choice depended on. Messages that the validator
        rejects at the end of round `now` are counted in `refused`, not stored and not forwarded.
        """
        news, agent, seen = [], self._agent, self._seen
        for m in in_order(messages):
            if m.origin == agent or seen.has(m.origin, m.round):
                continue
            if validator is not None and not validator.accepts(m, now):
                self.refused += 1
                continue
            seen.add(m.origin, m.round)
            news.append(m)
        self._to_send.extend(news)
        return news

    def state(self) -> dict[str, Any]:
        """Accepted (origin, round) pairs and queued messages, as plain data."""
        to_send = [message.plain() for message in self._to_send]
        return {"seen": self._seen.state(), "to_send": to_send, "refused": self.refused}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state()` described."""
        self._seen.restore(state["seen"])
        self._to_send = [Message.from_plain(each) for each in state["to_send"]]
        self.refused = int(state.get("refused", 0))


def in_order(messages: Iterable[Message]) -> list[Message]:
    """By round, then by origin; messages whose fields are not numbers come first."""
    messages = list(messages)
    try:
        return sorted(messages, key=_place)
    except TypeError:
        numbers = [m for m in messages if is_whole(m.round) and is_whole(m.origin)]
        others = [m for m in messages if not (is_whole(m.round) and is_whole(m.origin))]
        return others + sorted(numbers, key=_place)


def _place(message: Message) -> tuple[int, int]:
    return message.round, message.origin


class _Seen:
    """Which (origin, round) pairs have been accepted. Consecutive rounds cost one number per origin."""

    def __init__(self) -> None:
        self._all_up_to: dict[int, int] = {}
        self._beyond: dict[int, set[int]] = {}

    def has(self, origin: int, round_: int) -> bool:
        """Whether the pair has been accepted; False for fields that are not numbers."""
        try:
            if round_ <= self._all_up_to.get(origin, 0):
                return round_ > 0
            return bool(self._beyond) and round_ in self._beyond.get(origin, ())
        except TypeError:
            return False

    def add(self, origin: int, round_: int) -> None:
        """Add a pair that is new."""
        floor = self._all_up_to.get(origin, 0)
        if round_ == floor + 1 and origin not in self._beyond:  # the common case: the next in sequence
            self._all_up_to[origin] = round_
            return
        beyond = self._beyond.setdefault(origin, set())
        beyond.add(round_)
        while floor + 1 in beyond:
            floor += 1
            beyond.remove(floor)
        self._all_up_to[origin] = floor
        if not beyond:
            del self._beyond[origin]

    def state(self) -> list[list[Any]]:
        origins = sorted({*self._all_up_to, *self._beyond})
        return [[v, self._all_up_to.get(v, 0), sorted(self._beyond.get(v, ()))] for v in origins]

    def restore(self, state: Iterable[Iterable[Any]]) -> None:
        self._all_up_to, self._beyond = {}, {}
        for origin, floor, beyond in state:
            self._all_up_to[origin] = floor
            if beyond:
                self._beyond[origin] = set(beyond)
