"""The moment bounds that every policy needs and every bandit can give."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real

from rumormill.errors import InputError


def is_number(value: object) -> bool:
    """Whether a value is a real number, Python's or numpy's; truth values are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Bounds that hold for every arm, with p = 1 + eps.

    u bounds the raw moment E|X|^p, rho the central moment E|X - mean|^p.
    """

    eps: float
    u: float
    rho: float

    def __post_init__(self) -> None:
        if not (is_number(self.eps) and 0 < self.eps <= 1):
            raise InputError(f"eps = {self.eps!r} is not allowed: it must lie in (0, 1]")
        for name in ("u", "rho"):
            value = getattr(self, name)
            if not (is_number(value) and 0 < value < math.inf):
                raise InputError(f"{name} = {value!r} is not allowed: a moment bound is positive and finite")

    @property
    def p(self) -> float:
        """The order 1 + eps of the bounded moments."""
        return 1.0 + self.eps
