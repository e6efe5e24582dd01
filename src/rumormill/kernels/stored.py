"""Means that need every sample: median of means (prefix sums) and Catoni (a root)."""

from __future__ import annotations

import math

import numpy as np

from rumormill.kernels.jit import kernel, part
from rumormill.kernels.state import Flags, Floats, Ints


@part
def store(
    x: float, arm: int, j: int, prefix_sums: bool, n: Floats, pool: Floats, pool_start: Ints, changed: Flags
) -> None:
    """Append a sample; for the median of means as a prefix sum in two floats, as the readable form does."""
    at = pool_start[arm, j] + int(n[arm, j])
    if prefix_sums:
        hi, lo = pool[0, at], pool[1, at]
        total = hi + x
        part = total - hi
        lo += (hi - (total - part)) + (x - part)
        hi = total + lo
        pool[0, at + 1] = hi
        pool[1, at + 1] = lo - (hi - total)
    else:
        pool[0, at] = x
    n[arm, j] += 1.0
    changed[arm] = True


@part
def median_of_means(n: float, k: int, start: int, pool: Floats, scratch: Floats) -> float:
    """The median over k groups of the list that begins at `start`."""
    size = int(n) // k
    for g in range(k):
        low, high = start + g * size, start + (g + 1) * size
        scratch[g] = ((pool[0, high] - pool[0, low]) + (pool[1, high] - pool[1, low])) / size
    upper = _select(scratch, k, k // 2)
    if k % 2:
        return upper
    lower = scratch[0]  # _select leaves the smaller ones in front
    for g in range(1, k // 2):
        lower = max(lower, scratch[g])
    return (lower + upper) / 2.0


@part
def _select(values: Floats, k: int, rank: int) -> float:
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
    if eps == 1.0 and n <= 2.0 * L:
        return np.inf
    curvature = (eps / p) ** (p / 2.0) * ((1.0 - eps) / eps) ** (1.0 - p / 2.0)
    if eps == 1.0:
        a = math.sqrt(2.0 * L * (n - 2.0 * L) / rho) / n
    else:
        a = (L / (n * eps * 2.0**eps * curvature * rho)) ** (1.0 / p)
    return _root(x, a, eps, curvature, guess if has_guess else x[n // 2])


@part
def _root(x: Floats, a: float, eps: float, curvature: float, guess: float) -> float:
    if a == 0.0:
        return float(x.sum() / x.shape[0])
    low, high = x[0], x[0]
    for value in x:
        low, high = min(low, value), max(high, value)
    theta = min(max(guess, low), high)
    while low < high:
        f, size, slope = 0.0, 0.0, 0.0
        for value in x:
            y = a * (value - theta)
            near = min(abs(y), 1e100)  # beyond, 1 + |y| + C|y|^p is C|y|^p to the last digit
            tail = curvature * (near if eps == 1.0 else near**eps)
            rise = near + tail * near
            psi = math.log1p(rise)
            if abs(y) > near:
                psi += (1.0 + eps) * math.log(abs(y) / near)
            f += math.copysign(psi, y)
            size += psi
            slope += (1.0 + (1.0 + eps) * tail) / (1.0 + rise)
        if f > 0.0:
            low = theta
        elif f < 0.0:
            high = theta
        else:
            break
        step = f / (a * slope)
        if abs(step) <= 1e-16 * (abs(theta) + size / (a * slope)):
            return min(max(theta + step, low), high)
        target = theta + step
        theta = target if low < target < high else low + (high - low) / 2.0
        if theta in (low, high):
            break
    return theta


@kernel
def move_pool(old: Floats, old_start: Ints, new: Floats, new_start: Ints, n: Floats, extra: int) -> None:
    """Copy every list of samples to its place in a larger pool; `extra` more entries than samples."""
    for arm in range(n.shape[0]):
        for j in range(n.shape[1]):
            count = int(n[arm, j]) + extra
            a, b = old_start[arm, j], new_start[arm, j]
            for row in range(old.shape[0]):
                new[row, b : b + count] = old[row, a : a + count]
