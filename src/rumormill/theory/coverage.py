"""How often the true mean is outside the radius of an estimator, against the delta of its lemma."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rumormill.arms import Arm, Moments
from rumormill.estimators import Estimator, Radius
from rumormill.stats import clopper_pearson
from rumormill.validate import eps as check_eps
from rumormill.validate import inside, positive, refused, whole

# Samples drawn at a time: 32 MB.
BLOCK = 4_000_000


@dataclass(frozen=True)
class CoverageRow:
    """One estimator on one law with n samples at L = ln(1/delta).

    above counts lists whose estimate exceeds the mean by more than the radius, below the converse. A lemma
    promises that either has probability at most delta. `low`..`high` is the exact (Clopper-Pearson) interval
    of the worse of the two rates at the given confidence.
    """

    estimator: str
    law: str
    eps: float
    n: int
    L: float
    delta: float
    radius: float
    valid: bool
    repeats: int
    above: int
    below: int
    confidence: float
    low: float
    high: float

    @property
    def rate(self) -> float:
        """The share of failures on the side that fails more often."""
        return max(self.above, self.below) / self.repeats

    @property
    def refuted(self) -> bool:
        """Whether the failures are too many for a rate of at most delta."""
        return self.low > self.delta


def coverage(
    estimator: Estimator,
    law: Arm,
    *,
    n: int | Sequence[int],
    L: float | Sequence[float],
    repeats: int = 2_000,
    seed: int = 0,
    eps: float | None = None,
    moments: Moments | None = None,
    c: float | Literal["theory"] | None = None,
    zeta: float | None = None,
    confidence: float = 0.999,
    on_row: Callable[[], None] = lambda: None,
) -> list[CoverageRow]:
    """Failure rates of a confidence radius: a row for every n and L, from `repeats` lists of n samples each.

    Parameters
    ----------
    n, L : int or float, or sequences of them
        Numbers of samples, and confidence levels ln(1/delta).
    repeats, seed : int
        Number of lists per row, and the seed; rows are independent of each other.
    eps, moments : float, Moments, optional
        Moment bounds, by default those of the law at eps, by default the eps that a bandit would take.
    c, zeta : float, optional
        Constant or factor of the radius; by default c = "theory".
    confidence : float, default 0.999
        Confidence of the interval of a rate.
    on_row : callable, optional
        Called after every row.

    Returns
    -------
    list of CoverageRow
        Counts of failures with exact intervals.

    Examples
    --------
    >>> import rumormill as rm
    >>> (row,) = rm.theory.coverage(rm.ClippedMean(), rm.Gaussian(), n=20, L=2.0, repeats=200)
    >>> row.refuted
    False
    """
    sizes = [whole("n", size) for size in _several(n)]
    levels = [positive("L", level) for level in _several(L)]
    repeats, confidence = whole("repeats", repeats), inside("confidence", confidence, 0, 1)
    moments = moments if moments is not None else _moments(law, eps)
    radius = Radius.build(estimator, moments, c="theory" if c is None and zeta is None else c, zeta=zeta)
    rows = []
    for size, level in itertools.product(sizes, levels):
        rows.append(_row(radius, law, size, level, repeats, seed, confidence))
        on_row()
    return rows


def _row(
    radius: Radius, law: Arm, n: int, L: float, repeats: int, seed: int, confidence: float
) -> CoverageRow:
    """The failures of one n and L."""
    estimator, moments, reach = radius.estimator, radius.moments, radius.at(n, L)
    above, below = _failures(estimator, law, moments, n, L, reach, repeats, seed)
    low, high = clopper_pearson(max(above, below), repeats, confidence)
    return CoverageRow(
        estimator=repr(estimator),
        law=repr(law),
        eps=moments.eps,
        n=n,
        L=L,
        delta=math.exp(-L),
        radius=reach,
        valid=estimator.valid(n, L, moments),
        repeats=repeats,
        above=above,
        below=below,
        confidence=confidence,
        low=low,
        high=high,
    )


def _failures(
    estimator: Estimator, law: Arm, moments: Moments, n: int, L: float, reach: float, repeats: int, seed: int
) -> tuple[int, int]:
    if not math.isfinite(reach):  # below the lemma's range the arm is pulled, whatever the estimate
        return 0, 0
    rng = np.random.default_rng([seed, n, *np.frombuffer(np.float64(L).tobytes(), np.uint32).tolist()])
    above = below = 0
    at_once = max(1, BLOCK // n)
    for start in range(0, repeats, at_once):
        samples = law.sample(rng, (min(at_once, repeats - start), n))
        error = estimator.of_rows(samples, L, moments) - law.mean
        above += int((error > reach).sum())
        below += int((error < -reach).sum())
    return above, below


def _moments(law: Arm, eps: float | None) -> Moments:
    eps = check_eps("eps", law.default_eps() if eps is None else eps)
    if 1 + eps >= law.tail_index:
        order = f"{law!r} has finite moments below order {law.tail_index:g} only"
        raise refused("eps", eps, f"a number below {law.tail_index - 1:.12g}, since {order}")
    return Moments(eps=eps, u=law.moment(1 + eps), rho=law.moment(1 + eps, central=True))


def _several(given: Any) -> list[Any]:
    """One or several values as a list."""
    return list(given) if np.ndim(given) > 0 else [given]
