"""How each mean is kept by the kernels: the one table for this room."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rumormill.estimators import Catoni, EmpiricalMean, Estimator, MedianOfMeans, TrimmedMean
from rumormill.kernels.state import CATONI, MEDIAN_OF_MEANS, RUNNING


@dataclass(frozen=True)
class MeanLayout:
    """One kind of mean."""

    kind: int
    """The kernel's number for it."""
    trims: bool = False
    """Whether samples leave: they are judged by rank, and listed by the round in which they go."""
    pool_rows: int = 0
    """Floats kept per sample; none where sums are enough."""
    prefix_sums: bool = False
    """Whether the kept samples are prefix sums, which begin with a zero."""
    slow: int = 1
    """About how many times a plain delivery costs: decides how many rounds are played at a time."""
    knows: Callable[[Any], bool] = lambda estimator: True
    """Whether the kernels know this very setting of the estimator."""


MEANS: dict[type[Estimator], MeanLayout] = {
    TrimmedMean: MeanLayout(RUNNING, trims=True, knows=lambda estimator: estimator.variant == "exact"),
    EmpiricalMean: MeanLayout(RUNNING),
    MedianOfMeans: MeanLayout(MEDIAN_OF_MEANS, pool_rows=2, prefix_sums=True, slow=16),
    Catoni: MeanLayout(CATONI, pool_rows=1, slow=16),
}
