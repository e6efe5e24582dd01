"""Samples that are all kept, in an array that grows, and when a costly question is worth asking again."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.estimators.base import OnlineMean, check_same_kind, check_sample

# A value over all samples is kept until their number (or L) has grown by 2 %: some 50 ln(n) evaluations.
SLACK = 0.02


class KeptSamples:
    """Samples in order of arrival."""

    def __init__(self, samples: Sequence[float] = ()) -> None:
        self.count = len(samples)
        self._room = np.empty(max(64, self.count))
        self._room[: self.count] = samples

    @property
    def values(self) -> NDArray[np.float64]:
        """All of them."""
        return self._room[: self.count]

    def add(self, x: float) -> None:
        """One more."""
        self._reserve(self.count + 1)
        self._room[self.count] = x
        self.count += 1

    def extend(self, other: KeptSamples) -> None:
        """The other's behind the own."""
        n = self.count + other.count
        self._reserve(n)
        self._room[self.count : n] = other.values
        self.count = n

    def _reserve(self, n: int) -> None:
        if n > len(self._room):
            wider = np.empty(2 * n)
            wider[: self.count] = self.values
            self._room = wider


class OnlineKept(OnlineMean):
    """A mean over samples that are all kept."""

    def __init__(self, samples: Sequence[float] = ()) -> None:
        self._samples = KeptSamples(samples)

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
    """Whether what was worked out at `last` is too old."""
    return now > (1.0 + slack) * last
