"""Propensities: the probability with which an agent's own draws of a round lead to an arm."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

# Normal quantiles are integrated from -8 to 8 in steps of 1/20.
GRID = np.linspace(-8.0, 8.0, 321)


def _normal(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The normal distribution function."""
    return 0.5 * np.fromiter(map(math.erfc, (-x / math.sqrt(2.0)).tolist()), float, len(x))


def argmax_chances(centre: Sequence[float], spread: Sequence[float], arms: Sequence[int]) -> dict[int, float]:
    """For each arm the probability that its draw centre + spread Z is the largest; Z independent normals.

    >>> chances = argmax_chances([0.0, 0.0], [1.0, 1.0], [0, 1])
    >>> round(chances[0], 6), round(sum(chances.values()), 6)
    (0.5, 1.0)
    """
    density = np.exp(-0.5 * GRID * GRID)
    found = {}
    for k in arms:
        below = density.copy()
        for j in arms:
            if j != k:
                gap = centre[k] + spread[k] * GRID - centre[j]
                # The gap ascends. Beyond 9 spreads the factor is 1 in floats: most arms of a settled game.
                if spread[j] == 0.0:
                    below *= (gap > 0.0) + 0.5 * (gap == 0.0)
                elif gap[0] < 9.0 * spread[j]:
                    below *= _normal(gap / spread[j])
        found[k] = float(below.sum())
    total = sum(found.values())
    return {k: value / total for k, value in found.items()}


def mixed(chances: Mapping[int, float], arm: int, rate: float) -> dict[int, float]:
    """The chances, if with probability `rate` the choice is this arm whatever was drawn."""
    return {k: (1.0 - rate) * chance + rate * (k == arm) for k, chance in chances.items()}
