"""Means that a few outliers cannot move, for whole tables at once.

The outermost values to either side are moved in to the next one (Lugosi and Mendelson 2021: some multiple of
ln(1/δ) of them, however many values there are). The share that is moved vanishes as the log grows, so this is
an estimate of the mean itself, not of some other middle.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

OUTERMOST = 12
MOST_SHARE = 0.05
ROUNDING = 1e-9


def robust_mean(values: Array) -> tuple[float, float]:
    """The mean and its standard error, after the outermost values were moved in."""
    n = len(values)
    if n == 0:
        return float("nan"), float("inf")
    moved = moved_in(values)
    spread = float(moved.std(ddof=1)) if n > 1 else float("inf")
    return float(moved.mean()), spread / np.sqrt(n)


def moved_in(values: Array) -> Array:
    """The values with the outermost ones moved in."""
    n = len(values)
    k = min(OUTERMOST, int(MOST_SHARE * n))
    if k == 0:
        return values
    ends = np.partition(values, [k, n - 1 - k])
    return np.clip(values, ends[k], ends[n - 1 - k])


def cell_means(
    values: Array, cell: NDArray[np.int64], n_cells: int
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Robust mean, standard error and count of every cell; NaN and infinity where a cell is empty."""
    order = np.argsort(cell, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=n_cells))
    sorted_values = values[order]
    means, errors = np.full(n_cells, np.nan), np.full(n_cells, np.inf)
    for i in range(n_cells):
        means[i], errors[i] = robust_mean(sorted_values[(ends[i - 1] if i else 0) : ends[i]])
    return means, errors, np.diff(ends, prepend=0)


def moved_in_cells(values: Array, cell: NDArray[np.int64], n_cells: int) -> Array:
    """The values with the outermost ones of every cell moved in, in their own order."""
    order = np.argsort(cell, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=n_cells))
    made, ordered = np.empty(len(values)), values[order]
    for i in range(n_cells):
        here = slice(ends[i - 1] if i else 0, ends[i])
        ordered[here] = moved_in(ordered[here])
    made[order] = ordered
    return made


def clipped(values: Array, arm: NDArray[np.int32], n_arms: int, share: float) -> Array:
    """Values clipped at the quantiles share and 1 - share of their arm: for tests only."""
    made = np.empty(len(values))
    for k in range(n_arms):
        here = arm == k
        if here.any():
            low, high = np.quantile(values[here], [share, 1 - share])
            made[here] = np.clip(values[here], low, high)
    return made


def only_rounding(distances: Array, values: Array) -> bool:
    """Whether what is left of the values, once their means are taken off, is rounding alone."""
    return float(np.abs(distances).max()) <= ROUNDING * float(np.abs(values).max())
