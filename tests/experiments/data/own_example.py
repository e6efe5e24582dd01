"""Own classes of every kind, as a user would write them beside a spec."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import rumormill as rm
from rumormill.estimators.empirical import OnlineEmpirical


class Greedy:
    """An agent, made from its seat: the best mean so far, now and then another arm."""

    def __init__(self, seat: rm.Seat, rate: float = 0.1, share: bool = True) -> None:
        self.seat, self.rate, self.share = seat, rate, share
        self.sums = [0.0] * seat.n_arms
        self.counts = [0] * seat.n_arms
        self.relay = rm.Relay(seat.agent, 1)

    def choose(self, t: int) -> int:
        if t <= self.seat.n_arms:
            return t - 1
        if self.seat.rng.random() < self.rate:
            return int(self.seat.rng.integers(self.seat.n_arms))
        means = [s / n for s, n in zip(self.sums, self.counts, strict=True)]
        return means.index(max(means))

    def add(self, arm: int, reward: float) -> None:
        self.sums[arm] += reward
        self.counts[arm] += 1

    def observe(self, t: int, arm: int, reward: float) -> None:
        self.add(arm, reward)
        if self.share:
            self.relay.post(rm.Message(self.seat.agent, t, arm, reward))

    def outgoing(self, t: int) -> list[rm.Message]:
        return self.relay.outgoing(t)

    def receive(self, messages: Sequence[rm.Message]) -> None:
        for message in self.relay.accept(messages):
            self.add(message.arm, message.reward)


@dataclass(frozen=True, kw_only=True)
class GreedyPolicy(rm.Policy):
    """The same as a policy with parameters."""

    rate: float = 0.1

    def agent(self, seat: rm.Seat) -> Greedy:
        return Greedy(seat, self.rate)


@dataclass(frozen=True, kw_only=True)
class Clipped(rm.EmpiricalMean):
    """The plain mean of samples cut off at a limit."""

    limit: float = 5.0

    def online(self, moments: rm.Moments, *, last_L: float = float("inf")) -> ClippedStream:
        return ClippedStream(self.limit)


class ClippedStream(OnlineEmpirical):
    def __init__(self, limit: float = 5.0) -> None:
        super().__init__()
        self.limit = limit

    def update(self, x: float) -> None:
        super().update(max(-self.limit, min(self.limit, x)))


@dataclass(frozen=True)
class Uniform(rm.Arm):
    """Uniform on an interval of the given width."""

    width: float = 1.0

    @property
    def mean(self) -> float:
        return 0.0

    @property
    def tail_index(self) -> float:
        return float("inf")

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        return self.width * (rng.random(size) - 0.5)

    def _moment(self, p: float, center: float) -> float:
        grid = (np.arange(1000) + 0.5) / 1000 - 0.5
        return float(np.mean(np.abs(self.width * grid - center) ** p))


@dataclass(frozen=True)
class Wheel(rm.Topology):
    """A ring with a hub, and perhaps a few random links."""

    random = True
    spokes: int
    extra: int = 0

    def build(self, rng: np.random.Generator) -> rm.Network:
        ring = [(v, (v + 1) % self.spokes) for v in range(self.spokes)]
        hub = [(v, self.spokes) for v in range(self.spokes)]
        more = [tuple(sorted(rng.choice(self.spokes, 2, replace=False).tolist())) for _ in range(self.extra)]
        return rm.Network.from_edges([*ring, *hub, *more])


@dataclass(frozen=True)
class Lossy(rm.Channel):
    """Every batch is lost with the given probability."""

    loss: float

    def open(self, network: rm.Network, seed: np.random.SeedSequence) -> LossyCarrier:
        return LossyCarrier(self.loss, np.random.default_rng(seed))


class LossyCarrier:
    def __init__(self, loss: float, rng: np.random.Generator) -> None:
        self.loss, self.rng = loss, rng
        self.boxes: dict[int, list[rm.Message]] = {}

    def send(self, t: int, sender: int, receiver: int, messages: Sequence[rm.Message]) -> None:
        if self.rng.random() >= self.loss:
            self.boxes.setdefault(receiver, []).extend(messages)

    def deliver(self, t: int, receiver: int) -> list[rm.Message]:
        return self.boxes.pop(receiver, [])
