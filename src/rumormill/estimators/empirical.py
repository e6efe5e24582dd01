"""The empirical mean: the baseline that heavy tails defeat.

    mean = (1/n) sum X_i

No useful concentration holds for it when the variance is infinite, so it has no theory constant; with a
number c (or zeta) its radius uses the central moment rho.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rumormill.arms.base import Moments
from rumormill.errors import InputError
from rumormill.estimators.base import (
    Estimator,
    OnlineMean,
    Theory,
    check_kind,
    check_level,
    check_same_kind,
    check_sample,
)


@dataclass(frozen=True, kw_only=True)
class EmpiricalMean(Estimator):
    """The plain average, a baseline without a lemma.

    Examples
    --------
    >>> import rumormill as rm
    >>> rm.EmpiricalMean().has_lemma
    False

    References
    ----------
    Auer, Cesa-Bianchi and Fischer (2002), "Finite-time analysis of the multiarmed bandit problem".
    """

    has_lemma = False
    bounded_memory = True
    can_discount = True
    clips = False

    def moment(self, moments: Moments) -> float:
        return moments.rho

    def theory(self, moments: Moments) -> Theory:
        raise InputError(
            "c = 'theory' is not allowed with EmpiricalMean(): it is a baseline without a lemma; "
            "give a number c or a factor zeta"
        )

    def valid(self, n: float, L: float, moments: Moments) -> bool:
        return False

    def of(self, samples: Sequence[float], L: float, moments: Moments) -> float:
        check_level(L)
        return math.fsum(samples) / len(samples) if len(samples) else math.inf

    def of_rows(self, samples: NDArray[np.float64], L: float, moments: Moments) -> NDArray[np.float64]:
        mean: NDArray[np.float64] = samples.mean(axis=1)
        return mean

    def online(self, moments: Moments, *, last_L: float = math.inf) -> OnlineEmpirical:
        return OnlineEmpirical()


class OnlineEmpirical(OnlineMean):
    """A running sum."""

    def __init__(self) -> None:
        self._count = 0
        self._sum = 0.0

    @property
    def count(self) -> int:
        return self._count

    def update(self, x: float) -> None:
        x = check_sample(x)
        self._count += 1
        self._sum += x

    def mean(self, L: float) -> float:
        check_level(L)
        return self._sum / self._count if self._count else math.inf

    def merge(self, other: Self) -> None:
        """Append the other stream: counts and sums add."""
        check_same_kind(self, other)
        self._count += other._count
        self._sum += other._sum

    def state(self) -> dict[str, Any]:
        return {"kind": "empirical", "count": self._count, "sum": self._sum}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        check_kind(state, "empirical")
        stream = cls()
        stream._count = int(state["count"])
        stream._sum = float(state["sum"])
        return stream
