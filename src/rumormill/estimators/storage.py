"""Storage of samples: all of them in arrival order, or a sketch of the largest ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.estimators.base import OnlineMean, check_same_kind, check_sample
from rumormill.formulas import sketch_add, sketch_clipsum, sketch_root

# A value over all samples is kept until their number (or L) has grown by 2 %: some 50 ln(n) evaluations.
SLACK = 0.02


class StoredSamples:
    """All samples in arrival order, in an array that doubles when it is full."""

    def __init__(self, samples: Sequence[float] = ()) -> None:
        self.count = len(samples)
        self._room = np.empty(max(64, self.count))
        self._room[: self.count] = samples

    @property
    def values(self) -> NDArray[np.float64]:
        """The samples."""
        return self._room[: self.count]

    def add(self, x: float) -> None:
        """Append one sample."""
        self._reserve(self.count + 1)
        self._room[self.count] = x
        self.count += 1

    def extend(self, other: StoredSamples) -> None:
        """Append the samples of another store."""
        n = self.count + other.count
        self._reserve(n)
        self._room[self.count : n] = other.values
        self.count = n

    def _reserve(self, n: int) -> None:
        if n > len(self._room):
            wider = np.empty(2 * n)
            wider[: self.count] = self.values
            self._room = wider


class StoreAllMean(OnlineMean):
    """Stream of an estimator that stores every sample."""

    def __init__(self, samples: Sequence[float] = ()) -> None:
        self._samples = StoredSamples(samples)

    @property
    @abstractmethod
    def parameters(self) -> dict[str, float]:
        """What two streams must have in common to be merged."""

    @property
    def count(self) -> int:
        return self._samples.count

    def update(self, x: float) -> None:
        self._samples.add(check_sample(x))

    def merge(self, other: Self) -> None:
        """Append the other stream."""
        check_same_kind(self, other)
        if self.parameters != other.parameters:
            names = ", ".join(self.parameters)
            mine, others = (tuple(each.parameters.values()) for each in (self, other))
            raise InputError(
                f"streams with ({names}) = {mine} and {others} cannot be merged: both must have the same"
            )
        self._samples.extend(other._samples)


def outgrown(now: float, last: float, slack: float = SLACK) -> bool:
    """Whether n or L has grown by more than the slack since the last computation."""
    return now > (1.0 + slack) * last


class TopSketch:
    """Clipped sums for any threshold, O(1) amortised per sample, bounded memory.

    Stores the m samples of largest |y| (m is `room`) and the sums of y and y² over all others. A clipped sum
    is exact for every threshold above the least stored sample; so is the M that solves sum min(y²/M², 1) = c,
    while c < m. Mergeable, and independent of the arrival order up to rounding.
    """

    def __init__(self, room: int) -> None:
        self.count = 0
        self._top = [0.0] * room
        self._filled = 0
        self._rest = 0.0
        self._squares = 0.0

    def add(self, y: float) -> None:
        """Add one sample."""
        self.count += 1
        self._filled, self._rest, self._squares = sketch_add(
            self._top, self._filled, y, self._rest, self._squares
        )

    def clipsum(self, low: float, high: float) -> float:
        """The sum of all samples clipped to [-low, high]."""
        return sketch_clipsum(self._top, self._filled, self._rest, low, high)

    def trimmed(self, level: float) -> tuple[float, float]:
        """The sums of y and y² over all |y| <= level; a full sketch trims nothing up to its least sample."""
        if self._filled == len(self._top):
            level = max(level, abs(self._top[-1]))
        kept = [y for y in self._top[: self._filled] if abs(y) <= level]
        return self._rest + sum(kept), self._squares + sum(y * y for y in kept)

    def root(self, c: float) -> float:
        """The M > 0 with sum min(y²/M², 1) = c; 0 if no more than c samples differ from zero."""
        return sketch_root(self._top, self._filled, self._squares, c)

    def merge(self, other: TopSketch) -> None:
        """Add the samples of another sketch with the same centre and room."""
        count = self.count + other.count
        self._rest += other._rest
        self._squares += other._squares
        for y in other._top[: other._filled]:
            self.add(y)
        self.count = count

    def state(self) -> dict[str, Any]:
        """The state as plain data."""
        return {
            "room": len(self._top),
            "count": self.count,
            "top": self._top[: self._filled],
            "rest": self._rest,
            "squares": self._squares,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> TopSketch:
        """The sketch that `state()` described."""
        sketch = cls(int(state["room"]))
        listed = [float(y) for y in state["top"]]
        sketch._top[: len(listed)] = listed
        sketch._filled = len(listed)
        sketch.count = int(state["count"])
        sketch._rest, sketch._squares = float(state["rest"]), float(state["squares"])
        return sketch
