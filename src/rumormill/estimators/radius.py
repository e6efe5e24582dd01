"""The confidence radius.

    radius(n, L) = m^(1/p) (c (L + shift) / n)^(eps/p)      with a constant c (shift = 0 unless c is theory's)
                 = zeta m^(1/p) (L / n)^(eps/p)             with a factor zeta, that is c = zeta^(p/eps)

It is computed as scale(L) * n^(-eps/p), in this order and with `math.pow`, so that lookup tables of the two
factors give the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from rumormill.arms.base import Moments
from rumormill.errors import InputError
from rumormill.estimators.base import Estimator
from rumormill.formulas import factor_scale, radius_scale, shrinkage, upper_index
from rumormill.validate import LARGEST_CONSTANT, LEAST_CONSTANT, is_number, refused


@dataclass(frozen=True, kw_only=True)
class Radius:
    """The confidence radius of one estimator for given moment bounds; make it with `Radius.build`.

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
        if isinstance(c, str) and c == "theory":
            constants = estimator.theory(moments)
            return cls(
                estimator=estimator,
                moments=moments,
                c=constants.c,
                zeta=None,
                shift=constants.shift,
                theory=True,
            )
        allowed = f"from {LEAST_CONSTANT:g} to {LARGEST_CONSTANT:g}"
        if c is not None:
            if not is_number(c) or not LEAST_CONSTANT <= c <= LARGEST_CONSTANT:
                raise refused("c", c, f"'theory' or a number {allowed}")
            return cls(estimator=estimator, moments=moments, c=float(c), zeta=None)
        if not is_number(zeta) or not LEAST_CONSTANT <= zeta <= LARGEST_CONSTANT:  # type: ignore[operator]
            raise refused("zeta", zeta, f"a number {allowed}")
        return cls(estimator=estimator, moments=moments, c=None, zeta=float(zeta))  # type: ignore[arg-type]

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
    def root(self) -> float:
        """m^(1/p)."""
        return math.pow(self.estimator.moment(self.moments), 1.0 / self.moments.p)

    def scale(self, L: float) -> float:
        """The radius at n = 1, without regard to where it may be used."""
        if self.zeta is not None:
            return factor_scale(L, self.root, self.zeta, self.exponent)
        assert self.c is not None
        return radius_scale(L, self.root, self.c, self.shift, self.exponent)

    @cached_property
    def _limited(self) -> bool:
        """Whether some sample is not enough for an index."""
        return self.theory or type(self.estimator).defined is not Estimator.defined

    @property
    def covered(self) -> bool:
        """Whether a lemma stands behind the radius wherever it is used."""
        if self.theory:
            return self.estimator.has_lemma
        return self.estimator.lemma_covers(self.constant, self.moments)

    def usable(self, n: float, L: float) -> bool:
        """Whether n samples are enough for an index at L; if not, the arm must be pulled."""
        if not self.estimator.defined(n, L, self.moments):
            return False
        return not self.theory or self.estimator.valid(n, L, self.moments)

    def least_usable(self, L: float, *, start: float = 1.0, most: float = 2.0**60) -> float:
        """The fewest samples, from `start` on, that are enough for an index at L; +inf beyond `most`.

        More is always enough too, and as L grows never fewer.
        """
        if self.usable(start, L):
            return start
        low, high = start, 2.0 * start
        while not self.usable(high, L):
            if high > most:
                return math.inf
            low, high = high, 2.0 * high
        while high - low > 1:
            middle = math.floor((low + high) / 2)
            low, high = (low, middle) if self.usable(middle, L) else (middle, high)
        return high

    def at(self, n: float, L: float) -> float:
        """The confidence radius of n samples at L; +inf where the arm must be pulled."""
        if not self.usable(n, L):
            return math.inf
        return self.scale(L) * shrinkage(n, self.exponent)

    def index(self, mean: float, n: float, L: float) -> float:
        """The upper confidence index mean + radius; +inf where the arm must be pulled."""
        if not self.usable(n, L):
            return math.inf
        return upper_index(mean, self.scale(L), shrinkage(n, self.exponent))

    def indices(self, rows: Sequence[tuple[float, float]], out: Sequence[float], L: float) -> list[float]:
        """`index` of every arm from its (mean, n) and the pulls that are out; the scale is computed once."""
        scale, exponent, found = self.scale(L), self.exponent, []
        for (mean, n), more in zip(rows, out, strict=True):
            n += more
            usable = self.usable(n, L) if self._limited else n > 0
            found.append(upper_index(mean, scale, shrinkage(n, exponent)) if usable else math.inf)
        return found
