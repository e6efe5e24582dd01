"""Channels that only tests use: every one an instance with open(network, seed), as a user would write it."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

import rumormill as rm
from rumormill.protocol import PerfectCarrier


@dataclass(frozen=True, kw_only=True)
class Muddled(rm.Channel):
    """Perfect, but everything comes several times and in any order."""

    copies: int = 2

    def open(self, network: rm.Network, seed: np.random.SeedSequence) -> "MuddledCarrier":
        return MuddledCarrier(self.copies, np.random.default_rng(seed))


class MuddledCarrier(PerfectCarrier):
    def __init__(self, copies: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.copies, self.rng = copies, rng

    def deliver(self, t: int, receiver: int) -> list[rm.Message]:
        messages = super().deliver(t, receiver) * self.copies
        return [messages[i] for i in self.rng.permutation(len(messages))]


@dataclass(frozen=True, kw_only=True)
class Unreliable(rm.Channel):
    """Every bundle takes up to `longest` rounds more than it should, or is lost; bundles overtake each other.

    What happens to a bundle follows from `salt`, whoever asks: the oracle can be told the same.
    """

    longest: int = 3
    lost: float = 0.0
    salt: int = 0

    def late(self, a: int, b: int, s: int) -> float:
        """How many rounds more than it should the bundle takes that a sends to b in round s."""
        draw = random.Random(f"{self.salt} {a} {b} {s}")
        return inf if draw.random() < self.lost else draw.randint(0, self.longest)

    def open(self, network: rm.Network, seed: np.random.SeedSequence) -> "UnreliableCarrier":
        return UnreliableCarrier(self)


class UnreliableCarrier:
    def __init__(self, channel: Unreliable) -> None:
        self.channel = channel
        self.boxes: dict[tuple[float, int], list[rm.Message]] = {}

    def send(self, t: int, sender: int, receiver: int, messages: Sequence[rm.Message]) -> None:
        end = t + self.channel.late(sender, receiver, t)
        self.boxes.setdefault((end, receiver), []).extend(messages)

    def deliver(self, t: int, receiver: int) -> list[rm.Message]:
        return self.boxes.pop((t, receiver), [])


@dataclass(frozen=True, kw_only=True)
class Deaf(rm.Channel):
    """Nothing arrives."""

    def open(self, network: rm.Network, seed: np.random.SeedSequence) -> "DeafCarrier":
        return DeafCarrier()


class DeafCarrier:
    def send(self, t: int, sender: int, receiver: int, messages: Sequence[rm.Message]) -> None:
        pass

    def deliver(self, t: int, receiver: int) -> list[rm.Message]:
        return []
