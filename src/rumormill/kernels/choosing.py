"""The arm of the largest index, for all learners at once.

A power of every count in every round would take longer than all else. It is estimated from that of an
earlier count, with a known error, and mostly that tells which index is the largest (kernels/leading.py);
only where it does not are the indices themselves computed.
"""

from __future__ import annotations

import numpy as np

from rumormill import formulas
from rumormill.formulas import NEAR
from rumormill.kernels.bits import lowest_bit
from rumormill.kernels.jit import part, step
from rumormill.kernels.leading import ABOVE, SLACK_OF_SUM, STRIP, lead
from rumormill.kernels.state import Bounds, Floats, Ids, shrinkage

upper_index = step(formulas.upper_index)
shrinkage_near, shrinkage_series = step(formulas.shrinkage_near), part(formulas.shrinkage_series)


@part
def to_power(n: float, powers: Floats, exponent: float) -> float:
    """n^-exponent."""
    return powers[int(n)] if n < powers.shape[0] else shrinkage(n, exponent)


@part
def choose(
    scale: float,
    least: float,
    mean: Floats,
    n: Floats,
    powers: Floats,
    exponent: float,
    bounds: Bounds,
    action: Ids,
) -> None:
    """The arm of the largest index for every learner; the lowest arm on ties."""
    power, inverse = bounds.power, bounds.inverse
    second, third, too_small = shrinkage_series(exponent)
    for lane in range(0, action.shape[0], STRIP):
        if least > 1.0:  # few estimators ask for that, and they take long anyway
            unclear = (np.uint64(1) << np.uint64(min(STRIP, action.shape[0] - lane))) - np.uint64(1)
        else:
            unclear = lead(
                scale, exponent, second, third, too_small, mean, n, powers, power, inverse, action, lane
            )
        while unclear != 0:
            j = lane + lowest_bit(unclear)
            unclear &= unclear - np.uint64(1)
            choose_exactly(j, scale, least, exponent, mean, n, powers, power, inverse, action)


@part
def choose_exactly(
    j: int,
    scale: float,
    least: float,
    exponent: float,
    mean: Floats,
    n: Floats,
    powers: Floats,
    power: Floats,
    inverse: Floats,
    action: Ids,
) -> None:
    """The arm of one learner by the indices themselves, of all arms whose estimates leave it open."""
    second, third, too_small = shrinkage_series(exponent)
    low = -np.inf
    for arm in range(n.shape[0]):
        count = n[arm, j]
        h = count * inverse[arm, j] - 1.0
        if count > 0.0 and not 0.0 <= h <= NEAR:
            power[arm, j], inverse[arm, j] = to_power(count, powers, exponent), ABOVE / count
            h = 0.0
        index = upper_index(mean[arm, j], scale * power[arm, j], shrinkage_near(h, exponent, second, third))
        low = index if index > low else low
    best = -np.inf
    for arm in range(n.shape[0]):
        count = n[arm, j]
        index = np.inf
        if count >= least:
            h, radius = count * inverse[arm, j] - 1.0, scale * power[arm, j]
            index = upper_index(mean[arm, j], radius, shrinkage_near(h, exponent, second, third))
            doubt = radius * too_small + SLACK_OF_SUM * (abs(index) + abs(low))
            if not index + doubt < low:
                index = upper_index(mean[arm, j], scale, to_power(count, powers, exponent))
        if index > best:
            best = index
            action[j] = arm
