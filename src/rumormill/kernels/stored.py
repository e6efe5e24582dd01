"""Means that need every sample: median of means (prefix sums) and Catoni (a root)."""

from __future__ import annotations

import math

import numpy as np

from rumormill.kernels.jit import inlined, kernel
from rumormill.kernels.state import MEDIAN_OF_MEANS, Floats, Ints, Rules, State


@inlined
def store(x: float, arm: int, j: int, rules: Rules, state: State) -> None:
    """Append a sample; for the median of means as a prefix sum in two floats, as the readable form does."""
    n = int(state.n[arm, j])
    at = state.pool_start[arm, j] + n
    if rules.kind == MEDIAN_OF_MEANS:
        hi, lo = state.pool[0, at], state.pool[1, at]
        total = hi + x
        part = total - hi
        lo += (hi - (total - part)) + (x - part)
        hi = total + lo
        state.pool[0, at + 1] = hi
        state.pool[1, at + 1] = lo - (hi - total)
    else:
        state.pool[0, at] = x
    state.n[arm, j] += 1.0
    state.changed[arm] = True


@inlined
def median_of_means(arm: int, j: int, L: float, state: State) -> None:
    """Refresh the mean if the samples or the number of groups changed."""
    n = state.n[arm, j]
    groups = max(1.0, math.floor(min(1.0 + 8.0 * L, n / 2.0)))
    if state.known[arm, j] == n and state.groups[arm, j] == groups:
        return
    state.known[arm, j] = n
    state.groups[arm, j] = groups
    k = int(groups)
    size = int(n) // k
    start = state.pool_start[arm, j]
    for g in range(k):
        low, high = start + g * size, start + (g + 1) * size
        step_hi = state.pool[0, high] - state.pool[0, low]
        step_lo = state.pool[1, high] - state.pool[1, low]
        state.scratch[g] = (step_hi + step_lo) / size
    upper = _select(state.scratch, k, k // 2)
    if k % 2:
        state.mean[arm, j] = upper
    else:
        lower = state.scratch[0]  # _select leaves the smaller ones in front
        for g in range(1, k // 2):
            lower = max(lower, state.scratch[g])
        state.mean[arm, j] = (lower + upper) / 2.0


@inlined
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


@inlined
def catoni(arm: int, j: int, L: float, rules: Rules, state: State) -> None:
    """The root of sum psi(a (x - theta)), by Newton inside a bracket, from the last root."""
    n = int(state.n[arm, j])
    eps = rules.p - 1.0
    if eps == 1.0 and n <= 2.0 * L:
        state.mean[arm, j] = np.inf
        return
    start = state.pool_start[arm, j]
    x = state.pool[0, start : start + n]
    curvature = (eps / rules.p) ** (rules.p / 2.0) * ((1.0 - eps) / eps) ** (1.0 - rules.p / 2.0)
    if eps == 1.0:
        a = math.sqrt(2.0 * L * (n - 2.0 * L) / rules.rho) / n
    else:
        a = (L / (n * eps * 2.0**eps * curvature * rules.rho)) ** (1.0 / rules.p)
    guess = state.mean[arm, j] if state.known[arm, j] > 0.0 else np.median(x)
    state.known[arm, j] = n
    state.mean[arm, j] = _root(x, a, eps, curvature, guess)


@inlined
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
