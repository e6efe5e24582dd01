"""Winsorised means: outliers cannot move them; whole tables at once.

To winsorise is to replace the outermost values on either side by the next one inside. A fixed number of
values is replaced (a multiple of ln(1/δ), Lugosi and Mendelson, "Robust multivariate mean estimation: the
optimality of trimmed mean", Annals of Statistics 2021), so the share vanishes as the sample grows, and the
mean itself is estimated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

OUTERMOST = 12
MOST_SHARE = 0.05
ROUNDING = 1e-9


def winsorised_mean(values: Array) -> tuple[float, float]:
    """The mean of the winsorised values and its standard error; NaN and infinity of an empty sample.

    >>> mean, error = winsorised_mean(np.array([1.0, 2.0, 3.0] * 20 + [1e9]))
    >>> 1.9 < mean < 2.1
    True
    """
    n = len(values)
    if n == 0:
        return float("nan"), float("inf")
    moved = winsorised(values)
    spread = float(moved.std(ddof=1)) if n > 1 else float("inf")
    return float(moved.mean()), spread / np.sqrt(n)


def winsorised(values: Array) -> Array:
    """The values, the outermost 12 on either side (at most 5 %) replaced by the next one inside.

    A sample of two values (clicks) has no outliers: it stays as it is.
    """
    return np.clip(values, *winsor_limits(values[None])[:, 0])


def winsor_limits(table: Array) -> Array:
    """[low or high, row]: what every row of a table is clipped at; infinite where nothing is replaced."""
    rows, n = table.shape
    k = min(OUTERMOST, int(MOST_SHARE * n))
    limits = np.array([[-np.inf] * rows, [np.inf] * rows])
    if k > 0:
        ends = np.partition(table, [k, n - 1 - k], axis=1)
        limits = np.array([ends[:, k], ends[:, n - 1 - k]])
        for row in np.flatnonzero(limits[0] == limits[1]):
            if len(np.unique(table[row])) <= 2:
                limits[:, row] = -np.inf, np.inf
    return limits


def cell_means(
    values: Array, cell: NDArray[np.int64], n_cells: int
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Winsorised mean, standard error and count of every cell; NaN and infinity where a cell is empty."""
    order = np.argsort(cell, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=n_cells))
    sorted_values = values[order]
    means, errors = np.full(n_cells, np.nan), np.full(n_cells, np.inf)
    for i in range(n_cells):
        means[i], errors[i] = winsorised_mean(sorted_values[(ends[i - 1] if i else 0) : ends[i]])
    return means, errors, np.diff(ends, prepend=0)


def winsorised_cells(values: Array, cell: NDArray[np.int64], n_cells: int) -> Array:
    """The values, winsorised within every cell, in their own order."""
    order = np.argsort(cell, kind="stable")
    ends = np.cumsum(np.bincount(cell, minlength=n_cells))
    made, ordered = np.empty(len(values)), values[order]
    for i in range(n_cells):
        here = slice(ends[i - 1] if i else 0, ends[i])
        ordered[here] = winsorised(ordered[here])
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


def within_rounding_error(residuals: Array, values: Array) -> bool:
    """Whether residuals of the values are rounding errors only."""
    return float(np.abs(residuals).max()) <= ROUNDING * float(np.abs(values).max())
