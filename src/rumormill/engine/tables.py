"""What the kernels look up instead of computing: per round, and per number of samples."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from rumormill.estimators import EmpiricalMean, Radius, TrimmedMean
from rumormill.policies import log_confidence
from rumormill.policies.samples import Confidence


@lru_cache(maxsize=8)
def confidence_levels(schedule: Confidence, horizon: int, n_agents: int) -> NDArray[np.float64]:
    """L of rounds 0..horizon (round 0 is never played)."""
    return np.array([0.0, *(log_confidence(schedule, t, n_agents) for t in range(1, horizon + 1))])


@lru_cache(maxsize=4)
def powers_table(exponent: float, size: int) -> NDArray[np.float64]:
    """n^-exponent for n < size."""
    from rumormill.kernels.state import fill_powers

    powers = np.empty(size)
    fill_powers(powers, exponent)
    return powers


def least_samples(radius: Radius, levels: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Per round, the fewest samples with which an arm need not be pulled; more is always enough too."""
    least = np.zeros(len(levels))
    if type(radius.estimator) in (TrimmedMean, EmpiricalMean):
        return least
    n = 1
    for t, L in enumerate(levels[1:], 1):
        if not radius.usable(n, L):  # L grows, so the bound does
            low, high = n, 2 * n
            while high <= most and not radius.usable(high, L):
                low, high = high, 2 * high
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if radius.usable(middle, L) else (middle, high)
            n = high
        least[t] = n
    return least
