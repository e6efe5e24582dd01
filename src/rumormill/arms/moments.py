"""The moment bounds that every policy needs and every bandit can give."""

from __future__ import annotations

from dataclasses import dataclass

from rumormill.validate import LARGEST_MOMENT, LEAST_MOMENT, NamedArguments, between
from rumormill.validate import eps as check_eps


@dataclass(frozen=True, kw_only=True)
class Moments(metaclass=NamedArguments):
    """Bounds that hold for every arm, with p = 1 + eps.

    u bounds the raw moment E|X|^p, rho the central moment E|X - mean|^p.
    """

    eps: float
    u: float
    rho: float

    def __post_init__(self) -> None:
        check_eps("eps", self.eps)
        for name in ("u", "rho"):
            between(name, getattr(self, name), LEAST_MOMENT, LARGEST_MOMENT)

    @property
    def p(self) -> float:
        """The order 1 + eps of the bounded moments."""
        return 1.0 + self.eps
