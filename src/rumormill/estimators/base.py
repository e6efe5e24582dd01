"""What every robust mean offers: a definition over a list, an online form, its theory constants."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from rumormill.arms.moments import Moments


@dataclass(frozen=True)
class Theory:
    """Constants of a concentration lemma: |mean - mu| <= m^(1/p) (c (L + shift) / n)^(eps/p)."""

    c: float
    shift: float = 0.0


class OnlineMean(ABC):
    """One stream of samples. L = ln(1/delta) is given with each question and must never shrink."""

    @property
    @abstractmethod
    def count(self) -> int:
        """How many samples came in, kept or not."""

    @abstractmethod
    def update(self, x: float) -> None:
        """Take the next sample, in order of arrival."""

    @abstractmethod
    def mean(self, L: float) -> float:
        """The estimate at confidence L; +inf where the estimator is not defined."""

    def merge(self, other: Self) -> None:
        """Append the other stream behind this one. Not every law allows it."""
        raise TypeError(f"{type(self).__name__} cannot be merged")

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Everything needed to go on later, as plain numbers and lists."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """The stream that `state()` described."""


class Estimator(ABC):
    """A robust mean as a frozen description; `online` starts a stream, `of` is the definition."""

    name: ClassVar[str]

    @abstractmethod
    def moment(self, moments: Moments) -> float:
        """The bound m that enters the radius: u or rho."""

    @abstractmethod
    def theory(self, moments: Moments) -> Theory:
        """The constants of the concentration lemma."""

    @abstractmethod
    def valid(self, n: int, L: float, moments: Moments) -> bool:
        """Whether the concentration lemma covers n samples at confidence L."""

    def defined(self, n: int, L: float, moments: Moments) -> bool:
        """Whether the estimate itself exists for n samples at confidence L."""
        return n >= 1

    @abstractmethod
    def of(self, samples: Sequence[float], L: float, moments: Moments) -> float:
        """The definition, over samples in order of arrival; +inf where it is not defined."""

    @abstractmethod
    def online(self, moments: Moments, *, last_L: float = float("inf")) -> OnlineMean:
        """A fresh stream. No question will be asked beyond last_L: storage may rely on it."""
