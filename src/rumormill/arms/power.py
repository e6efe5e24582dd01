"""Rewards whose tails fall like a power: Student t and shifted Pareto."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rumormill.arms.base import Arm, require_finite, require_positive
from rumormill.arms.quadrature import integrate
from rumormill.errors import InputError


@dataclass(frozen=True, kw_only=True)
class StudentT(Arm):
    """loc + scale T with T of Student's law with df degrees of freedom (any number above 0).

    E|X|^p is finite for p < df; for df <= 1 there is no mean.
    """

    df: float
    """The degrees of freedom, above 1: the tail index."""
    loc: float = 0.0
    """The mean."""
    scale: float = 1.0
    """The scale."""

    def __post_init__(self) -> None:
        require_positive("StudentT", df=self.df, scale=self.scale)
        require_finite("StudentT", loc=self.loc)

    def at_mean(self, mean: float) -> StudentT:
        return replace(self, loc=mean)

    @property
    def mean(self) -> float:
        if self.df <= 1:
            raise InputError(f"a Student law with df = {self.df!r} has no mean: choose df above 1")
        return float(self.loc)

    @property
    def tail_index(self) -> float:
        return float(self.df)

    def standard(self) -> tuple[Arm, float, float]:
        return StudentT(df=float(self.df)), float(self.loc), float(self.scale)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        draws = rng.standard_t(self.df, size)
        draws *= self.scale
        draws += self.loc
        return draws

    def _moment(self, p: float, center: float) -> float:
        from scipy.special import poch

        df, shift = self.df, abs(self.loc - center) / self.scale
        centred = df ** (p / 2) * math.gamma((1 + p) / 2) / math.sqrt(math.pi) / poch((df - p) / 2, p / 2)
        peak = poch(df / 2, 0.5) / math.sqrt(df * math.pi)
        total = float(centred)
        if shift:
            # E|T + shift|^p - E|T|^p, folded on the positive half line: it converges faster than
            # either moment alone.
            def difference(x: float) -> float:
                density = peak * math.exp(-(df + 1) / 2 * math.log1p(x**2 / df))
                return float((abs(x + shift) ** p + abs(x - shift) ** p - 2 * x**p) * density)

            def in_log(y: float) -> float:
                return difference(math.exp(y)) * math.exp(y)

            # The difference falls like x^(-2) at least, and 1e-20 of it is left beyond the last corner.
            size = centred + shift**p
            corners = sorted({1.0, shift, 2 * shift, 1e10 * max(1.0, shift)})
            total += integrate(difference, 0.0, corners[0], size=size)
            for low, high in pairwise(corners):
                total += integrate(in_log, math.log(low), math.log(high), size=size)
        return float(self.scale**p * total)


@dataclass(frozen=True, kw_only=True)
class Pareto(Arm):
    """shift + scale V, where V >= 1 and P(V > x) = x^(-tail).

    E|X|^p is finite for p < tail; for tail <= 1 there is no mean. The mean is
    shift + scale tail / (tail - 1); `Pareto.with_mean` chooses the shift for a wanted mean.

    >>> Pareto.with_mean(0.5, tail=3.0).shift
    -1.0
    """

    tail: float
    """The tail index, above 1."""
    scale: float = 1.0
    """The smallest value, before the shift."""
    shift: float = 0.0
    """Added to every draw."""

    def __post_init__(self) -> None:
        require_positive("Pareto", tail=self.tail, scale=self.scale)
        require_finite("Pareto", shift=self.shift)

    def at_mean(self, mean: float) -> Pareto:
        return replace(self, shift=mean - replace(self, shift=0.0).mean)

    @classmethod
    def with_mean(cls, mean: float, *, tail: float, scale: float = 1.0) -> Self:
        """The Pareto law that is shifted so as to have the given mean."""
        require_finite("Pareto", mean=mean)
        return cls(tail=tail, scale=scale, shift=mean - cls(tail=tail, scale=scale).mean)

    @property
    def mean(self) -> float:
        if self.tail <= 1:
            raise InputError(f"a Pareto law with tail = {self.tail!r} has no mean: choose tail above 1")
        return self.shift + self.scale * self.tail / (self.tail - 1)

    @property
    def tail_index(self) -> float:
        return float(self.tail)

    def standard(self) -> tuple[Arm, float, float]:
        return Pareto(tail=float(self.tail)), float(self.shift), float(self.scale)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        draws = rng.standard_exponential(size)
        draws /= self.tail
        np.exp(draws, out=draws)
        draws *= self.scale
        draws += self.shift
        return draws

    def _moment(self, p: float, center: float) -> float:
        root = (center - self.shift) / self.scale
        return float(self.scale**p * _pareto_moment(p, self.tail, root))


def _pareto_moment(p: float, tail: float, root: float) -> float:
    """E|V - root|^p for P(V > x) = x^(-tail), x >= 1."""
    if root == 0:
        return tail / (tail - p)
    if root <= 1:
        # w = 1/V turns it into tail ∫ (1 - root w)^p w^(tail-p-1) dw over (0, 1).
        return tail * integrate(
            lambda w: math.pow(1 - root * w, p), 0, 1, weight="alg", wvar=(tail - p - 1, 0)
        )
    from scipy.special import beta

    # Above the root in closed form, below it with x = ln V.
    above = float(root ** (p - tail) * beta(tail - p, p + 1))

    def below(x: float) -> float:
        return math.pow(abs(root - math.exp(x)), p) * math.exp(-tail * x)

    return tail * (above + integrate(below, 0, math.log(root), size=above + root**p / tail))
