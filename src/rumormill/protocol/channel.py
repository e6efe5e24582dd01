"""What lies between two neighbours. Policies never see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rumormill.protocol.message import Message


class Channel(Protocol):
    """Carries batches over edges. A lossy or slow one drops or holds back; a perfect one does not."""

    def send(self, t: int, sender: int, receiver: int, messages: Sequence[Message]) -> None:
        """The sender puts a batch on the edge to one neighbour during round t."""

    def deliver(self, t: int, receiver: int) -> list[Message]:
        """Everything that reaches the receiver at the end of round t, in any order, repeats included."""


class PerfectChannel:
    """Every batch sent in a round arrives at the end of that round."""

    def __init__(self) -> None:
        self._boxes: dict[int, list[Message]] = {}

    def send(self, t: int, sender: int, receiver: int, messages: Sequence[Message]) -> None:
        self._boxes.setdefault(receiver, []).extend(messages)

    def deliver(self, t: int, receiver: int) -> list[Message]:
        return self._boxes.pop(receiver, [])
