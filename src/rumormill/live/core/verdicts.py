"""Verdicts of a running game: which arm is proven to be best, by confidence sequences that hold at any time.

Every arm has a confidence sequence at 1 - alpha/K over all samples that the node holds, own and others', in
arrival order: all intervals hold together, at all times, with probability 1 - alpha. So the verdict may be
read after every sample. It assumes the moments of the mesh file, and that when a reward arrives does not
depend on how large it is; of latencies at most the open decisions are missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rumormill.arms.base import Moments
from rumormill.estimators.confidence_sequence import ConfidenceSequence

CONFIDENCE = 0.95
# Samples of an arm that wait to be added together, unless a verdict is asked for.
BATCH = 64

Interval = tuple[float, float]


@dataclass(frozen=True)
class Proof:
    """An arm that is proven to be the best."""

    arm: int
    margin: float
    """It is better than every other arm by at least this much."""
    samples: int
    """Samples of all arms when this was first seen."""
    at: float
    """When this was first seen, in seconds since 1970; 0: not known."""


class Verdicts:
    """Intervals of all arms of a game, and the arm that they prove to be best; nothing without moments."""

    def __init__(self, n_arms: int, moments: Moments | None) -> None:
        self.moments = moments
        share = (1.0 - CONFIDENCE) / n_arms
        self._sequences = (
            [] if moments is None else [ConfidenceSequence(moments, 1.0 - share) for _ in range(n_arms)]
        )
        self._waiting: list[list[float]] = [[] for _ in range(n_arms)]
        self._proven = (-1, 0, 0.0)  # (arm, samples, time) of the last proof

    def add(self, arm: int, reward: float) -> None:
        """Add a sample, once: further copies of a weighted reward tell nothing new."""
        if self._sequences:
            waiting = self._waiting[arm]
            waiting.append(reward)
            if len(waiting) >= BATCH:
                self._flush(arm)

    def _flush(self, arm: int) -> None:
        if self._waiting[arm]:
            self._sequences[arm].update(self._waiting[arm])
            self._waiting[arm].clear()

    @property
    def intervals(self) -> list[Interval]:
        """The interval of every arm's mean; empty without moments."""
        for arm in range(len(self._sequences)):
            self._flush(arm)
        return [sequence.interval for sequence in self._sequences]

    @property
    def refuted(self) -> list[int]:
        """Arms whose samples contradict the moments, or whose mean has changed."""
        return [arm for arm, sequence in enumerate(self._sequences) if sequence.refuted]

    def proof(self, now: float = 0.0) -> Proof | None:
        """The arm that is proven best; None if none is, or if an interval is refuted."""
        found = proven_best(self.intervals)
        if found is None or self.refuted:
            return None
        arm, margin = found
        if self._proven[0] != arm:
            self._proven = (arm, sum(sequence.count for sequence in self._sequences), now)
        return Proof(arm, margin, *self._proven[1:])

    def state(self) -> dict[str, Any]:
        """As plain data, for snapshots."""
        return {
            "sequences": [sequence.state() for sequence in self._sequences],
            "waiting": [list(each) for each in self._waiting],
            "proven": list(self._proven),
            "moments": None if self.moments is None else [self.moments.eps, self.moments.rho],
        }

    def restore(self, state: dict[str, Any] | None) -> None:
        """Continue where `state` was taken; begin anew if there is none or its moments were others."""
        if state is None or state["moments"] != self.state()["moments"]:
            return
        for sequence, each in zip(self._sequences, state["sequences"], strict=True):
            sequence.restore(each)
        self._waiting = [list(each) for each in state["waiting"]]
        arm, samples, *at = state["proven"]  # snapshots of before 0.3 have no time
        self._proven = (int(arm), int(samples), float(at[0]) if at else 0.0)


def proven_best(intervals: Sequence[Interval]) -> tuple[int, float] | None:
    """The arm whose lower bound exceeds all other upper bounds, and by how much; None if there is none."""
    if len(intervals) < 2:
        return None
    best = max(range(len(intervals)), key=lambda arm: intervals[arm][0])
    others = max(high for arm, (_, high) in enumerate(intervals) if arm != best)
    margin = intervals[best][0] - others
    return (best, margin) if margin > 0.0 and math.isfinite(margin) else None
