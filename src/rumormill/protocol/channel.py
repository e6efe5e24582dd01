"""What lies between two neighbours. Policies never see it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rumormill.graphs import Network
from rumormill.protocol.message import Message
from rumormill.validate import NamedArguments


class Carrier(Protocol):
    """Carries batches over edges during one trial. A lossy or slow one drops or holds back."""

    def send(self, t: int, sender: int, receiver: int, messages: Sequence[Message]) -> None:
        """The sender puts a batch on the edge to one neighbour during round t."""

    def deliver(self, t: int, receiver: int) -> list[Message]:
        """Everything that reaches the receiver at the end of round t, in any order, repeats included."""


class Channel(metaclass=NamedArguments):
    """A description of what happens to messages; `open` makes the carrier of one trial.

    Own ones are frozen dataclasses; a spec names them as "module:Class". Whatever is random in a carrier
    comes from the seed it is given, which is the trial's own (Role.CHANNEL).
    """

    @abstractmethod
    def open(self, network: Network, seed: np.random.SeedSequence) -> Carrier:
        """The carrier of one trial on this network."""


@dataclass(frozen=True, kw_only=True)
class PerfectChannel(Channel):
    """Every batch sent in a round arrives at the end of that round."""

    def open(self, network: Network, seed: np.random.SeedSequence) -> PerfectCarrier:
        return PerfectCarrier()


class PerfectCarrier:
    """A box per receiver, emptied at the end of every round."""

    def __init__(self) -> None:
        self._boxes: dict[int, list[Message]] = {}

    def send(self, t: int, sender: int, receiver: int, messages: Sequence[Message]) -> None:
        self._boxes.setdefault(receiver, []).extend(messages)

    def deliver(self, t: int, receiver: int) -> list[Message]:
        return self._boxes.pop(receiver, [])
