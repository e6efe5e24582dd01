"""Flooding with a hop budget: which messages an agent forwards, and which are new to it."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from rumormill.protocol.message import Heard, Message, MessageValidator
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
    several : bool, default False
        Whether an origin may send several arms of one round, together; each is accepted once.

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

    def __init__(self, agent: int, gamma: int, several: bool = False) -> None:
        self._agent, self._several = agent, several
        self._gamma = gamma
        self._seen = _Seen()
        self._to_send: list[Message] = []
        self._line: tuple[int, ...] = ()
        """Origins in reach from which one message arrives in every round, or did."""
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
        if type(messages) is Heard and self._gamma == 1 and validator is not None and not self._several:
            origins = messages.line.origins
            if origins is not self._line and self._agent not in origins and validator.in_reach(origins):
                self._line = origins
            valid = origins is self._line and validator.accepts_round(messages.sent, now)
            if valid and self._seen.add_next(origins, now):
                return messages
        self._seen.settle()
        if self._several:
            together: dict[tuple[int, int], dict[int, Message]] = {}
            for m in messages:
                together.setdefault((m.origin, m.round), {}).setdefault(m.arm, m)
            first = self._new([next(iter(arms.values())) for arms in together.values()], validator, now)
            news = [
                each
                for m in first
                for each in together[m.origin, m.round].values()
                if each is m or validator is None or validator.accepts(each, now)
            ]
        else:
            news = self._new(messages, validator, now)
        news = in_order(news)
        if self._gamma > 1:
            self._to_send.extend(news)
        return news

    def _new(
        self, messages: Iterable[Message], validator: MessageValidator | None, now: int
    ) -> list[Message]:
        """The messages whose (origin, round) is new."""
        news, agent, seen = [], self._agent, self._seen
        all_up_to, beyond = seen.all_up_to, seen.beyond
        for m in messages:
            origin, round_ = m.origin, m.round
            try:
                last = all_up_to.get(origin, 0)
                if 0 < round_ <= last:  # most copies end here
                    continue
            except TypeError:
                last = -1  # fields that are not numbers
            if origin == agent or (beyond and seen.has_beyond(origin, round_)):
                continue
            if validator is not None and not validator.accepts(m, now):
                self.refused += 1
                continue
            if round_ == last + 1 and not beyond:  # the next in sequence
                all_up_to[origin] = round_
            else:
                seen.add(origin, round_)
            news.append(m)
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
    try:  # two sorts by whole numbers take less time than one by pairs
        return sorted(sorted(messages, key=_origin), key=_round)
    except TypeError:
        messages = list(messages)
        numbers = [m for m in messages if is_whole(m.round) and is_whole(m.origin)]
        others = [m for m in messages if not (is_whole(m.round) and is_whole(m.origin))]
        return others + in_order(numbers)


_origin, _round = operator.attrgetter("origin"), operator.attrgetter("round")


class _Seen:
    """Which (origin, round) pairs have been accepted. Consecutive rounds cost one number per origin."""

    def __init__(self) -> None:
        self.all_up_to: dict[int, int] = {}
        self.beyond: dict[int, set[int]] = {}
        self._line: tuple[tuple[int, ...], int] = (), 0
        """Origins and a round, up to which all of theirs are accepted, once `settle` has been called."""

    def add_next(self, origins: tuple[int, ...], round_: int) -> bool:
        """Add this round of several origins, if it is the next of each."""
        line, last = self._line
        if line is not origins or last != round_ - 1:
            self.settle()
            if self.beyond or any(self.all_up_to.get(origin, 0) != round_ - 1 for origin in origins):
                return False
        self._line = origins, round_
        return True

    def settle(self) -> None:
        """Write down what `add_next` left to be written."""
        self.all_up_to.update(dict.fromkeys(*self._line))
        self._line = (), 0

    def has_beyond(self, origin: int, round_: int) -> bool:
        """Whether the pair was accepted after a gap; False for fields that are not numbers."""
        try:
            return round_ in self.beyond.get(origin, ())
        except TypeError:
            return False

    def add(self, origin: int, round_: int) -> None:
        """Add a pair that is new."""
        floor = self.all_up_to.get(origin, 0)
        beyond = self.beyond.setdefault(origin, set())
        beyond.add(round_)
        while floor + 1 in beyond:
            floor += 1
            beyond.remove(floor)
        self.all_up_to[origin] = floor
        if not beyond:
            del self.beyond[origin]

    def state(self) -> list[list[Any]]:
        self.settle()
        origins = sorted({*self.all_up_to, *self.beyond})
        return [[v, self.all_up_to.get(v, 0), sorted(self.beyond.get(v, ()))] for v in origins]

    def restore(self, state: Iterable[Iterable[Any]]) -> None:
        self.all_up_to, self.beyond, self._line = {}, {}, ((), 0)
        for origin, floor, beyond in state:
            self.all_up_to[origin] = floor
            if beyond:
                self.beyond[origin] = set(beyond)
