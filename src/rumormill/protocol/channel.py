"""Channels between neighbours: perfect, or lossy with delay. Policies do not depend on them.

Every directed link carries one batch per round: the sender's own message and all that it forwards. Its fate
is a counter-based uniform of the trial's seed, so it depends neither on the order of events nor on the
policy: the batch that a sends to b in round s is lost iff U(LOSS; a, b, s) >= p, and else arrives at the end
of round s + τ, with τ from U(DELAY; a, b, s). Batches may overtake each other.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from rumormill.counter_rng import DELAY, LOSS, even_delay, geometric_delay, key_of, key_with, uniform_at
from rumormill.graphs import Network
from rumormill.protocol.message import Message
from rumormill.seeds import seed_word
from rumormill.validate import NamedArguments, between, one_of, probability, refused, truth, whole


class Carrier(Protocol):
    """Transport of message batches over the edges during one trial. A lossy or slow one drops or delays them.

    Examples
    --------
    >>> import numpy as np
    >>> import rumormill as rm
    >>> carrier = rm.PerfectChannel().open(rm.Network.path(2), np.random.SeedSequence(1))
    >>> carrier.send(1, 0, 1, [rm.Message(0, 1, 0, 0.5)])
    >>> len(carrier.deliver(1, 1))
    1

    References
    ----------
    docs/tutorials/imperfect-channel.md: a channel step by step.
    """

    def send(self, t: int, sender: int, receiver: int, messages: Sequence[Message]) -> None:
        """The sender puts a batch on the edge to one neighbour during round t."""

    def deliver(self, t: int, receiver: int) -> list[Message]:
        """Everything that reaches the receiver at the end of round t, in any order, copies included."""


class Channel(metaclass=NamedArguments):
    """Description of a channel; `open` makes the carrier of one trial. The abstract class of all channels.

    A user-defined channel is a frozen dataclass; a spec names it as "module:Class". All randomness of a
    carrier comes from the seed it is given, which is the trial's own (Role.CHANNEL).

    Examples
    --------
    >>> import rumormill as rm
    >>> isinstance(rm.Imperfect(p=0.9), rm.Channel)
    True

    References
    ----------
    docs/tutorials/imperfect-channel.md: a channel step by step.
    """

    @abstractmethod
    def open(self, network: Network, seed: np.random.SeedSequence) -> Carrier:
        """The carrier of one trial on this network."""


@dataclass(frozen=True, kw_only=True)
class PerfectChannel(Channel):
    """Every batch sent in a round arrives at the end of that round.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.PerfectChannel()
    PerfectChannel()

    References
    ----------
    docs/tutorials/imperfect-channel.md: a channel step by step.
    """

    def open(self, network: Network, seed: np.random.SeedSequence) -> PerfectCarrier:
        return PerfectCarrier()


class PerfectCarrier:
    """A queue per receiver, emptied at the end of every round."""

    def __init__(self) -> None:
        self._boxes: dict[int, list[Message]] = {}

    def send(self, t: int, sender: int, receiver: int, messages: Sequence[Message]) -> None:
        self._boxes.setdefault(receiver, []).extend(messages)

    def deliver(self, t: int, receiver: int) -> list[Message]:
        return self._boxes.pop(receiver, [])


LEAST_Q = 2.0**-52  # below it 1 - q is 1

Delay = int | tuple[Literal["geometric"], float, int]


@dataclass(frozen=True, kw_only=True)
class Imperfect(Channel):
    """Lossy and delayed channel: a batch arrives with probability p, up to `delay` rounds late.

    Parameters
    ----------
    p : float, default 1.0
        Probability that a batch is not lost.
    per : "link" | "copy", default "link"
        Unit of loss: the whole batch ("link"), or every message of it by itself ("copy"), iff U(LOSS;
        a, b, origin, round of origin) >= p.
    symmetric : bool, default False
        Whether both directions of a link fail together.
    delay : int | ("geometric", q, D), default 0
        Delay in rounds. D: uniform on 0..D; ("geometric", q, D): one more round with probability 1 -
        q, at most D.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.Imperfect(p=0.7, delay=("geometric", 0.5, 8)).longest_delay
    8

    References
    ----------
    docs/tutorials/imperfect-channel.md: a channel step by step.
    """

    p: float = 1.0
    per: Literal["link", "copy"] = "link"
    symmetric: bool = False
    delay: Delay = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", probability("p", self.p))
        one_of("per", self.per, ("link", "copy"))
        truth("symmetric", self.symmetric)
        if isinstance(self.delay, list | tuple):
            if len(self.delay) != 3 or self.delay[0] != "geometric":
                raise refused("delay", self.delay, 'a whole number >= 0, or ("geometric", q, D)')
            q = between("delay q", self.delay[1], LEAST_Q, 1)
            object.__setattr__(self, "delay", ("geometric", q, whole("delay D", self.delay[2], 0)))
        else:
            object.__setattr__(self, "delay", whole("delay", self.delay, 0))

    @property
    def longest_delay(self) -> int:
        """D."""
        return self.delay if isinstance(self.delay, int) else self.delay[2]

    @property
    def going_on(self) -> float | None:
        """q of a geometric delay; None if it is uniform."""
        return None if isinstance(self.delay, int) else self.delay[1]

    @property
    def mean_delay(self) -> float:
        """E[τ], of batches that are not lost."""
        q, longest = self.going_on, self.longest_delay
        if q is None:
            return longest / 2.0
        return math.fsum((1.0 - q) ** k for k in range(1, longest + 1))

    @property
    def perfect(self) -> bool:
        """Whether nothing is ever lost or late."""
        return self.p >= 1.0 and self.longest_delay == 0

    def rounds_late(self, u: float) -> int:
        """τ for a uniform."""
        q = self.going_on
        return even_delay(u, self.longest_delay) if q is None else geometric_delay(u, q, self.longest_delay)

    def open(self, network: Network, seed: np.random.SeedSequence) -> ImperfectCarrier:
        return ImperfectCarrier(self, seed_word(seed))


class ImperfectCarrier:
    """Queues by round of arrival and receiver."""

    def __init__(self, channel: Imperfect, seed: int) -> None:
        self._channel = channel
        self._loss, self._delay = key_of(seed, LOSS), key_of(seed, DELAY)
        self._boxes: dict[tuple[int, int], list[Message]] = {}

    def send(self, t: int, sender: int, receiver: int, messages: Sequence[Message]) -> None:
        if not messages:
            return
        arrived = self._arrived(t, sender, receiver, messages)
        end = t
        if self._channel.longest_delay:
            key = key_with(key_with(key_with(self._delay, sender), receiver), t)
            end += self._channel.rounds_late(uniform_at(key))
        self._boxes.setdefault((end, receiver), []).extend(arrived)

    def _arrived(self, t: int, sender: int, receiver: int, messages: Sequence[Message]) -> Sequence[Message]:
        """The messages of a batch that are not lost."""
        channel = self._channel
        if channel.p >= 1.0:
            return messages
        if channel.symmetric:
            sender, receiver = min(sender, receiver), max(sender, receiver)
        link = key_with(key_with(self._loss, sender), receiver)
        if channel.per == "link":
            return messages if uniform_at(key_with(link, t)) < channel.p else ()
        return [m for m in messages if uniform_at(key_with(key_with(link, m.origin), m.round)) < channel.p]

    def deliver(self, t: int, receiver: int) -> list[Message]:
        return self._boxes.pop((t, receiver), [])
