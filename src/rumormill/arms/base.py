"""What every reward law offers: mean, tail, moments, samples."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError


class Arm(ABC):
    """The law of one arm's reward X. Subclasses are frozen and checked on construction."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """E X; an InputError where it does not exist."""

    @property
    @abstractmethod
    def tail_index(self) -> float:
        """E|X|^p is finite exactly for p below this order; `math.inf` when all are."""

    @abstractmethod
    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Independent rewards in an array of the given shape."""

    @abstractmethod
    def _moment(self, p: float, center: float) -> float:
        """E|X - center|^p for a finite order p > 0."""

    def moment(self, p: float, *, central: bool = False) -> float:
        """E|X|^p, or E|X - mean|^p if `central`: in closed form where there is one, else by quadrature."""
        if not (p > 0 and math.isfinite(p)):
            raise InputError(f"p = {p!r} is not an order of a moment: give a positive, finite number")
        if p >= self.tail_index:
            raise InputError(
                f"the moment of order p = {p!r} of {self!r} is infinite: give p below {self.tail_index!r}"
            )
        try:
            value = self._moment(p, self.mean if central else 0.0)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise InputError(
                f"the moment of order p = {p!r} of {self!r} is beyond the largest float: lower p"
            )
        return value

    def standard(self) -> tuple[Arm, float, float] | None:
        """(Z, loc, scale) with X = loc + scale Z, Z a law that can be compared; None without such a form.

        Arms with equal Z can share one draw per agent and round.
        """
        return None


def require_finite(law: str, **values: float) -> None:
    """Refuse parameters that are not finite real numbers."""
    for name, value in values.items():
        if not is_finite(value):
            raise InputError(f"{law}: {name} = {value!r} is not allowed: give a finite number")


def require_positive(law: str, **values: float) -> None:
    """Refuse parameters that are not finite real numbers above zero."""
    for name, value in values.items():
        if not (is_finite(value) and value > 0):
            raise InputError(f"{law}: {name} = {value!r} is not allowed: give a finite number above 0")


def is_finite(value: object) -> bool:
    """Whether the value is a finite real number (a bool or a text is not)."""
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    return number and math.isfinite(value)  # type: ignore[arg-type]
