"""AdaR-UCB (Genalti, Marsigli, Gatti and Metelli 2024): a trimmed mean that knows neither eps nor u.

The samples of an arm are taken in pairs, in order of arrival: the first of each pair, X_i, enters the mean,
the second, Y_i, sets the level of trimming. With n of the Y_i and L = 3 ln t, M > 0 solves Σ min(Y_i²/M²,
1) = L, and

    index = mean + zeta ( √(2 V L / n) + 10 M L / n )

with mean and V the average and the variance of X_i 1{|X_i| <= M}; +inf while no more than L of the Y_i
differ from zero.

Under the assumption of truncated non-positivity (E[X 1{|X| > M}] <= 0 for all M, of the best arm) regret is
that of Robust-UCB with known eps and u, Σ (u/Δ)^(1/eps) ln T, up to constants; without some assumption no
policy reaches it (both from the abstract and from memory).

What differs from the printed text: the equation and the bonus are quoted from memory. An agent pulls once a
round, not twice, and pairs are made of all that it has, own and heard. A sketch keeps the 128 largest |X|
and |Y|: M is exact (L < 128), and if more than 128 of the |X| exceed M the least of those kept stands for
M.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from rumormill.estimators.base import (
    SLACK,
    OnlineMean,
    TopSketch,
    check_kind,
    check_level,
    check_sample,
    outgrown,
)
from rumormill.policies.base import Seat
from rumormill.policies.decentralized import DecentralizedAgent
from rumormill.policies.message_passing_agent import Samples
from rumormill.policies.message_passing_policy import FloodingPolicy
from rumormill.validate import LARGEST_CONSTANT, LEAST_CONSTANT, between

ROOM = 128
# L = 3 ln t, where the schedule of the UCB policies has 2 ln t.
LEVEL = 1.5


@dataclass(frozen=True, kw_only=True)
class AdaRUCB(FloodingPolicy):
    """No moments, no scale; half of the samples choose where the other half is trimmed.

    Parameters
    ----------
    zeta : float, default 1.0
        Factor on the bonus.
    gamma : int | "half-diameter", default "half-diameter"
        Hop budget of messages; "half-diameter" is ⌈diameter/2⌉.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.AdaRUCB().needs_moments
    False

    References
    ----------
    Genalti, Marsigli, Gatti and Metelli (2024), "(ε, u)-adaptive regret minimization in
    heavy-tailed bandits".
    """

    label: ClassVar[str] = "AdaR-UCB"
    zeta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        between("zeta", self.zeta, LEAST_CONSTANT, LARGEST_CONSTANT)

    def agent(self, seat: Seat) -> DecentralizedAgent:
        samples = Samples.of([OnlineAdaR(float(self.zeta)) for _ in range(seat.n_arms)])
        return DecentralizedAgent(self, seat, self.hops(seat), samples=samples)


class OnlineAdaR(OnlineMean):
    """Two sketches, and what was computed last; computed again once n or L has grown by more than 2 %."""

    def __init__(self, zeta: float) -> None:
        self._zeta = zeta
        self._mean_half, self._level_half = TopSketch(ROOM), TopSketch(ROOM)
        self._n, self._L = 0, 0.0
        self._found = (math.inf, math.inf)

    @property
    def count(self) -> int:
        return self._mean_half.count + self._level_half.count

    def update(self, x: float) -> None:
        half = self._mean_half if self._mean_half.count == self._level_half.count else self._level_half
        half.add(check_sample(x))

    def mean(self, L: float) -> float:
        return self._estimate(L)[0]

    def index(self, L: float) -> float:
        return self._estimate(L)[1]

    def _estimate(self, L: float) -> tuple[float, float]:
        """The mean and the index."""
        check_level(L)
        n, L = self._level_half.count, LEVEL * L
        if not (n and (self._n == 0 or outgrown(n, self._n, SLACK) or outgrown(L, self._L, SLACK))):
            return self._found
        self._n, self._L, self._found = n, L, (math.inf, math.inf)
        threshold = self._level_half.root(L)
        if threshold > 0.0:
            firsts = float(self._mean_half.count)
            total, squares = self._mean_half.trimmed(threshold)
            mean = total / firsts
            variance = max(0.0, squares / firsts - mean * mean)
            bonus = math.sqrt(2.0 * variance * L / n) + 10.0 * threshold * L / n
            self._found = mean, mean + self._zeta * bonus
        return self._found

    def state(self) -> dict[str, Any]:
        halves = [self._mean_half.state(), self._level_half.state()]
        found = list(self._found) if self._found[0] < math.inf else None
        return {
            "kind": "adar-ucb",
            "zeta": self._zeta,
            "halves": halves,
            "n": self._n,
            "L": self._L,
            "found": found,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "adar-ucb")
        stream = cls(float(state["zeta"]))
        stream._mean_half, stream._level_half = (TopSketch.from_state(half) for half in state["halves"])
        stream._n, stream._L = int(state["n"]), float(state["L"])
        if state["found"] is not None:
            stream._found = float(state["found"][0]), float(state["found"][1])
        return stream
