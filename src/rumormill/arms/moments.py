"""The moment bounds that every policy needs and every bandit can give."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rumormill.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Moments:
    """Bounds that hold for every arm, with p = 1 + eps.

    u bounds the raw moment E|X|^p, rho the central moment E|X - mean|^p.
    """

    eps: float
    u: float
    rho: float

    def __post_init__(self) -> None:
        if not 0 < self.eps <= 1:
            raise InputError(f"eps = {self.eps!r} is not allowed: it must lie in (0, 1]")
        for name in ("u", "rho"):
            value = getattr(self, name)
            if not (value > 0 and math.isfinite(value)):
                raise InputError(f"{name} = {value!r} is not allowed: a moment bound is positive and finite")

    @property
    def p(self) -> float:
        """The order 1 + eps of the bounded moments."""
        return 1.0 + self.eps
