"""One small game that several tests play, and a user's own policy in it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import rumormill as rm

BANDIT = rm.Bandit([rm.AlphaStable(alpha=1.5, loc=loc) for loc in (0.0, 0.5, 1.0)])
NETWORK = rm.Network.path(4)
IN_PARTS = rm.Network.from_edges([(0, 1), (2, 3)])
TABLE = np.random.default_rng(0).standard_normal((20, 4, 3))


def simulate(bandit: Any = BANDIT, network: Any = NETWORK, policy: Any = None, **options: Any) -> rm.Result:
    """Twenty rounds of three arms on a path of four, unless told otherwise."""
    options = {"horizon": 20, "trials": 1, "rng": 0, **options}
    return rm.simulate(bandit, network, policy or rm.RobustUCB(), **options)


class EpsilonGreedy:
    """A user's own policy: four methods, a seat, no base class. It listens to its neighbours."""

    played = 0

    def __init__(self, seat: rm.Seat) -> None:
        self.rng, self.agent, self.n_arms = seat.rng, seat.agent, seat.n_arms
        self.sums, self.counts = np.zeros(seat.n_arms), np.zeros(seat.n_arms)

    def choose(self, t: int) -> Any:
        type(self).played += 1
        if t <= self.n_arms:
            return t - 1
        if self.rng.random() < 0.2:
            return self.rng.integers(self.n_arms)  # a numpy integer is fine
        return np.argmax(self.sums / self.counts)

    def observe(self, t: int, arm: int, reward: float) -> None:
        self.sums[arm] += reward
        self.counts[arm] += 1
        self.message = rm.Message(self.agent, t, int(arm), reward)

    def outgoing(self, t: int) -> list[rm.Message]:
        return [self.message]

    def receive(self, messages: Sequence[rm.Message]) -> None:
        for message in messages:
            self.sums[message.arm] += message.reward
            self.counts[message.arm] += 1
