"""The confidence radius: the one place where its formula is written.

    radius(n, L) = m^(1/p) (c (L + shift) / n)^(eps/p)      with a constant c (shift = 0 unless c is theory's)
                 = zeta m^(1/p) (L / n)^(eps/p)             with a factor zeta, that is c = zeta^(p/eps)

It is computed as scale(L) * n^(-eps/p), in this order and with `math.pow`, so that whoever tabulates the
two factors gets the same bits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.arms.moments import Moments, is_number
from rumormill.errors import InputError
from rumormill.estimators.base import Estimator


@dataclass(frozen=True, kw_only=True)
class Radius:
    """The radius of one estimator under one set of moment bounds; make it with `Radius.build`.

    theory: c and shift are those of the estimator's lemma, and outside the lemma's range the radius is +inf.
    """

    estimator: Estimator
    moments: Moments
    c: float | None
    zeta: float | None
    shift: float = 0.0
    theory: bool = False

    @classmethod
    def build(
        cls,
        estimator: Estimator,
        moments: Moments,
        c: float | Literal["theory"] | None = None,
        zeta: float | None = None,
    ) -> Radius:
        """The radius with the lemma's constant (c="theory"), a number c, or a factor zeta: exactly one."""
        if (c is None) == (zeta is None):
            raise InputError(f"c = {c!r} with zeta = {zeta!r} is not allowed: give exactly one of c and zeta")
        if c == "theory":
            constants = estimator.theory(moments)
            return cls(
                estimator=estimator,
                moments=moments,
                c=constants.c,
                zeta=None,
                shift=constants.shift,
                theory=True,
            )
        if c is not None:
            _check_positive("c", c, "'theory' or a positive finite number")
            return cls(estimator=estimator, moments=moments, c=float(c), zeta=None)
        assert zeta is not None
        _check_positive("zeta", zeta, "a positive finite number")
        return cls(estimator=estimator, moments=moments, c=None, zeta=float(zeta))

    @cached_property
    def exponent(self) -> float:
        """eps/p, the rate at which the radius shrinks with n."""
        return self.moments.eps / self.moments.p

    @cached_property
    def constant(self) -> float:
        """c, also where zeta was given: zeta^(p/eps) (+inf beyond the floats)."""
        if self.c is not None:
            return self.c
        assert self.zeta is not None
        try:
            return math.pow(self.zeta, self.moments.p / self.moments.eps)
        except OverflowError:
            return math.inf

    @cached_property
    def _root(self) -> float:
        return math.pow(self.estimator.moment(self.moments), 1.0 / self.moments.p)

    def scale(self, L: float) -> float:
        """The radius at n = 1, without regard to where it may be used."""
        if self.zeta is not None:
            return self.zeta * self._root * math.pow(L, self.exponent)
        assert self.c is not None
        return self._root * math.pow(self.c * (L + self.shift), self.exponent)

    def scales(self, levels: NDArray[np.float64]) -> NDArray[np.float64]:
        """`scale` of many levels, with the same bits."""
        root, exponent, power = self._root, self.exponent, math.pow
        if self.zeta is not None:
            factor = self.zeta * root
            return np.array([factor * power(L, exponent) for L in levels.tolist()])
        assert self.c is not None
        c, shift = self.c, self.shift
        return np.array([root * power(c * (L + shift), exponent) for L in levels.tolist()])

    def usable(self, n: float, L: float) -> bool:
        """Whether n samples are enough for an index at L; if not, the arm must be pulled."""
        if not self.estimator.defined(n, L, self.moments):
            return False
        return not self.theory or self.estimator.valid(n, L, self.moments)

    def at(self, n: float, L: float) -> float:
        """The radius of n samples at confidence L; +inf where the arm must be pulled."""
        if not self.usable(n, L):
            return math.inf
        return self.scale(L) * math.pow(n, -self.exponent)

    def index(self, mean: float, n: float, L: float) -> float:
        """The upper confidence index mean + radius; +inf where the arm must be pulled."""
        if not self.usable(n, L):
            return math.inf
        return mean + self.scale(L) * math.pow(n, -self.exponent)


def _check_positive(name: str, value: object, allowed: str) -> None:
    if not (is_number(value) and 0 < value < math.inf):  # type: ignore[operator]
        raise InputError(f"{name} = {value!r} is not allowed: it must be {allowed}")
