"""RMM-UCB (Tamás, Szentpéteri and Csáji 2024): a resampled median of means, for symmetric laws; no moment,
any tail.

If X is symmetric about μ, residuals X - μ keep their law when their signs are flipped. The samples of an
arm are added up in order of arrival in C chunks of s; chunk c belongs to block c mod 7. With signs α_jc,

    S_j(θ) = median over blocks of the average of α_jc (mean of chunk c - θ)          α_0 = +1 everywhere

and the index is the largest θ with S_0(θ) >= min over j = 1 … B of S_j(θ). All B + 1 statistics have one
law at θ = μ, so that P(index < μ) <= 1/(B + 1) at every n, for any tail, over the draw of the signs; S_0 -
S_j does not increase in θ, so that the index is a root. It is +inf while some j >= 1 has the signs of j = 0
in four or more blocks.

The paper proves a regret bound that is optimal up to logarithms, for a level that falls with t. Here B is
fixed, and so is the level 1/(B + 1): beyond some B rounds no logarithmic bound is claimed.

What differs from the printed text, of which the abstract was available: signs are flipped by chunk, not by
sample (as exact, and bounded memory): 64 chunks at most, then neighbours are joined in pairs; samples of an
unfinished chunk wait. Blocks, B and the one-sided rule are ours. For skewed laws it compares something else
than means.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rumormill.counter_rng import THOMPSON, uniform
from rumormill.estimators.base import OnlineMean, check_kind, check_level, check_sample
from rumormill.policies.base import Seat
from rumormill.policies.decentralized import DecentralizedAgent
from rumormill.policies.message_passing_agent import Samples
from rumormill.policies.message_passing_policy import FloodingPolicy
from rumormill.validate import refused, whole

BLOCKS, CHUNKS, MOST_RESAMPLES = 7, 64, 4096
# Halvings of the bracket; fewer where it has no number inside.
STEPS = 40


@dataclass(frozen=True, kw_only=True)
class RMMUCB(FloodingPolicy):
    """An exact upper confidence bound by random signs.

    Parameters
    ----------
    resamples : int, default 200
        Number B of resampled statistics; the bound fails with probability at most 1/(B + 1).
    gamma : int | "half-diameter", default "half-diameter"
        Hop budget of messages; "half-diameter" is ⌈diameter/2⌉.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.RMMUCB(resamples=100).needs_moments
    False

    References
    ----------
    Tamás, Szentpéteri and Csáji (2024), "Data-driven upper confidence bounds with near-optimal regret for
    heavy-tailed bandits".
    """

    label: ClassVar[str] = "RMM-UCB"
    resamples: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        if whole("resamples", self.resamples) > MOST_RESAMPLES:
            raise refused("resamples", self.resamples, f"a whole number from 1 to {MOST_RESAMPLES}")

    def agent(self, seat: Seat) -> DecentralizedAgent:
        samples = Samples.of([OnlineRMM(int(self.resamples)) for _ in range(seat.n_arms)])
        return DecentralizedAgent(self, seat, self.hops(seat), samples=samples)


@functools.cache
def signs(resamples: int) -> NDArray[np.float64]:
    """α_jc for j = 0 … B and 64 chunks: -1 where U(0; THOMPSON; j, c) < 1/2; the same in every game."""
    drawn = [
        [-1.0 if uniform(0, THOMPSON, j, c) < 0.5 else 1.0 for c in range(CHUNKS)]
        for j in range(1, resamples + 1)
    ]
    return np.array([[1.0] * CHUNKS, *drawn])


class OnlineRMM(OnlineMean):
    """Sums of chunks, and the bound over those that are complete."""

    def __init__(self, resamples: int) -> None:
        self._resamples = resamples
        self._count, self._size = 0, 1
        self._sums: list[float] = []
        self._open, self._waiting = 0.0, 0
        self._bound: tuple[float, float] | None = None

    @property
    def count(self) -> int:
        return self._count

    def update(self, x: float) -> None:
        self._count += 1
        self._open += check_sample(x)
        self._waiting += 1
        if self._waiting < self._size:
            return
        self._sums.append(self._open)
        self._open, self._waiting, self._bound = 0.0, 0, None
        if len(self._sums) == CHUNKS:
            self._sums = [a + b for a, b in zip(self._sums[::2], self._sums[1::2], strict=True)]
            self._size *= 2

    def mean(self, L: float) -> float:
        return self._found(L)[0]

    def index(self, L: float) -> float:
        return self._found(L)[1]

    def _found(self, L: float) -> tuple[float, float]:
        """(S_0's root, the index)."""
        check_level(L)
        if self._bound is None:
            self._bound = self._compute() if len(self._sums) >= BLOCKS else (math.inf, math.inf)
        return self._bound

    def _compute(self) -> tuple[float, float]:
        C = len(self._sums)
        means = np.array(self._sums) / self._size
        block = np.arange(C) % BLOCKS
        members = np.bincount(block, minlength=BLOCKS)
        onto = np.zeros((C, BLOCKS))
        onto[np.arange(C), block] = 1.0
        alpha = signs(self._resamples)[:, :C]
        level, slope = (alpha * means) @ onto / members, alpha @ onto / members
        middle = float(np.median(level[0]))
        if int((slope[1:] == 1.0).sum(axis=1).max()) > BLOCKS // 2:
            return middle, math.inf
        low, high = float(means.min()), float(means.max())
        for _ in range(STEPS):
            theta = low + (high - low) / 2.0
            if not low < theta < high:
                break
            values = np.sort(level - slope * theta, axis=1)[:, BLOCKS // 2]
            low, high = (theta, high) if values[0] >= values[1:].min() else (low, theta)
        return middle, max(middle, high)

    def state(self) -> dict[str, Any]:
        names = ("resamples", "count", "size", "sums", "open", "waiting")
        return {"kind": "rmm-ucb", **{name: getattr(self, f"_{name}") for name in names}}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "rmm-ucb")
        stream = cls(int(state["resamples"]))
        stream._count, stream._size = int(state["count"]), int(state["size"])
        stream._waiting = int(state["waiting"])
        stream._sums, stream._open = [float(x) for x in state["sums"]], float(state["open"])
        return stream
