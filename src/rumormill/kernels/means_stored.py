"""Means that need every sample: median of means (prefix sums) and Catoni (a root)."""

from __future__ import annotations

import math

import numpy as np

from rumormill import formulas
from rumormill.kernels.jit import kernel, part, step
from rumormill.kernels.state import Floats, GeneralState, Ints, State

group_count = part(formulas.group_count)
add_to_prefix = part(formulas.add_to_prefix)
catoni_curvature = part(formulas.catoni_curvature)
catoni_defined = part(formulas.catoni_defined)
catoni_psi = part(formulas.catoni_psi)
catoni_step = part(formulas.catoni_step)
catoni_width = part(formulas.catoni_width)


@step
def store(x: float, arm: int, j: int, prefix_sums: bool, state: State, general: GeneralState) -> None:
    """Append a sample; for the median of means as a prefix sum in two floats."""
    n, pool = state.n, general.pool
    at = general.pool_start[arm, j] + int(n[arm, j])
    if prefix_sums:
        pool[0, at + 1], pool[1, at + 1] = add_to_prefix(pool[0, at], pool[1, at], x)
    else:
        pool[0, at] = x
    n[arm, j] += 1.0
    state.changed[arm] = True


@part
def median_of_means(n: float, k: int, start: int, pool: Floats, scratch: Floats) -> float:
    """The median over k groups of the list that begins at `start`."""
    size = int(n) // k
    for g in range(k):
        low, high = start + g * size, start + (g + 1) * size
        scratch[g] = ((pool[0, high] - pool[0, low]) + (pool[1, high] - pool[1, low])) / size
    upper = select(scratch, k, k // 2)
    if k % 2:
        return upper
    lower = scratch[0]  # select leaves the smaller ones in front
    for g in range(1, k // 2):
        lower = max(lower, scratch[g])
    return (lower + upper) / 2.0


@part
def select(values: Floats, k: int, rank: int) -> float:
    """The value of that rank among the first k; smaller ones end up in front of it (quickselect)."""
    low, high = 0, k - 1
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return values[rank]


@part
def catoni(x: Floats, L: float, p: float, rho: float, has_guess: bool, guess: float) -> float:
    """The root of sum psi(a (x - theta)), by Newton inside a bracket, from the last root."""
    n = x.shape[0]
    eps = p - 1.0
    if not catoni_defined(n, L, eps):
        return np.inf
    curvature = catoni_curvature(eps)
    a = catoni_width(n, L, eps, rho, curvature)
    if a == 0.0:
        return float(x.sum() / n)
    low, high = x[0], x[0]
    for value in x:
        low, high = min(low, value), max(high, value)
    theta, steps, found = min(max(guess if has_guess else x[n // 2], low), high), 0, False
    while low < high and not found:
        f, size, slope = 0.0, 0.0, 0.0
        for value in x:
            y = a * (value - theta)
            psi, rise = catoni_psi(abs(y), eps, curvature)
            f += math.copysign(psi, y)
            size += psi
            slope += rise
        theta, low, high, found = catoni_step(theta, low, high, a, f, size, slope, steps)
        steps += 1
    return theta


@kernel
def move_pool(old: Floats, old_start: Ints, new: Floats, new_start: Ints, n: Floats, extra: int) -> None:
    """Copy every list of samples to its place in a larger pool; `extra` more entries than samples."""
    for arm in range(n.shape[0]):
        for j in range(n.shape[1]):
            count = int(n[arm, j]) + extra
            a, b = old_start[arm, j], new_start[arm, j]
            for row in range(old.shape[0]):
                for i in range(count):
                    new[row, b + i] = old[row, a + i]
