"""The arm of the largest index, for all learners at once.

A power of every count in every round would take longer than all else. Bounds on it hold for many rounds, and
mostly they tell which index is the largest; only where they do not are the indices themselves computed.
"""

from __future__ import annotations

import numpy as np

from rumormill import formulas
from rumormill.kernels.jit import part, step
from rumormill.kernels.state import Bounds, Floats, Ids, shrinkage

upper_index = step(formulas.upper_index)

# Bounds on n^-exponent hold until n has grown by this share.
WIDTH = 1 / 64


@part
def to_power(n: float, powers: Floats, exponent: float) -> float:
    """n^-exponent."""
    return powers[int(n)] if n < powers.shape[0] else shrinkage(n, exponent)


@part
def enclose_powers(
    n: Floats,
    least: float,
    powers: Floats,
    exponent: float,
    power: Floats,
    least_power: Floats,
    since: Floats,
    until: Floats,
) -> bool:
    """Bounds on the n^-exponent of an arm, anew where n has grown out of them.

    Returns whether everybody has enough samples of the arm.
    """
    outgrown, few = 0, 0
    for j in range(n.shape[0]):
        outgrown += n[j] > until[j]
        few += n[j] < least
    for j in range(n.shape[0] if outgrown > 0 else 0):
        if n[j] > until[j]:
            since[j], until[j] = n[j], n[j] + np.floor(n[j] * WIDTH)
            power[j] = to_power(since[j], powers, exponent)
            least_power[j] = to_power(until[j], powers, exponent)
    return few == 0


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
    """The arm of the largest index for every learner; the lowest arm on ties.

    Rounding keeps the order of unequal numbers, so that an arm whose upper bound is below another's lower
    bound has the smaller index.
    """
    power, least_power, since, until, first, second, low = bounds
    enough = True
    for j in range(action.shape[0]):
        first[j] = second[j] = low[j] = -np.inf
    for arm in range(n.shape[0]):
        p, q = power[arm], least_power[arm]
        enough &= enclose_powers(n[arm], least, powers, exponent, p, q, since[arm], until[arm])
        lead(arm, scale, mean[arm], p, q, first, second, low, action)
    for j in range(action.shape[0]):
        if enough and low[j] > second[j]:
            continue
        best = -np.inf
        for arm in range(n.shape[0]):
            if n[arm, j] != since[arm, j]:
                since[arm, j], power[arm, j] = n[arm, j], to_power(n[arm, j], powers, exponent)
            index = upper_index(mean[arm, j], scale, power[arm, j]) if n[arm, j] >= least else np.inf
            if index > best:
                best = index
                action[j] = arm


@part
def lead(
    arm: int,
    scale: float,
    mean: Floats,
    power: Floats,
    least_power: Floats,
    first: Floats,
    second: Floats,
    low: Floats,
    action: Ids,
) -> None:
    """Per learner, the arm of the largest upper bound so far, its lower bound, and the second largest."""
    for j in range(action.shape[0]):
        upper, lower = upper_index(mean[j], scale, power[j]), upper_index(mean[j], scale, least_power[j])
        leads = upper > first[j]
        other = first[j] if leads else upper
        second[j] = other if other > second[j] else second[j]
        first[j] = upper if leads else first[j]
        low[j] = lower if leads else low[j]
        action[j] = arm if leads else action[j]
