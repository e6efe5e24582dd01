"""What the kernels look up instead of computing: per round, and per number of samples."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rumormill.estimators import Radius
from rumormill.formulas import Confidence, log_confidence
from rumormill.kernels.state import fill_factor_scales, fill_powers, fill_radius_scales

# Smaller tables than 2^16 are not worth a size of their own.
SMALLEST_TABLE = 16


@lru_cache(maxsize=8)
def confidence_levels(schedule: Confidence, horizon: int, n_agents: int) -> NDArray[np.float64]:
    """L of rounds 0..horizon (round 0 is never played)."""
    return np.array([0.0, *(log_confidence(schedule, t, n_agents) for t in range(1, horizon + 1))])


def powers_table(exponent: float, size: int) -> NDArray[np.float64]:
    """n^-exponent for n < size at least.

    Every trial on a network of its own asks for another size, so sizes are rounded up to a few: a table of
    two million powers takes as long as some trials do.
    """
    return _powers(exponent, 1 << max(SMALLEST_TABLE, (size - 1).bit_length()))


@lru_cache(maxsize=16)
def _powers(exponent: float, size: int) -> NDArray[np.float64]:
    powers = np.empty(size)
    fill_powers(powers, exponent)
    return powers


def radius_scales(radius: Radius, levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """The radius at n = 1 in every round: `radius.scale` of each level, with the same bits."""
    scales = np.empty(len(levels))
    if radius.zeta is not None:
        fill_factor_scales(scales, levels, radius.root, radius.zeta, radius.exponent)
    else:
        fill_radius_scales(scales, levels, radius.root, radius.constant, radius.shift, radius.exponent)
    return scales


def least_samples(radius: Radius, levels: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Per round, the fewest samples with which an arm need not be pulled; more is always enough too."""
    if radius.usable(1.0, float(levels[-1])):  # L grows, so what is enough at the end always was
        return np.ones(len(levels))
    least, n = np.ones(len(levels)), 1.0
    for t, L in enumerate(levels.tolist()):
        n = radius.least_usable(L, start=n, most=most)
        least[t:] = n
        if n > most:  # never within this game
            break
    return least
