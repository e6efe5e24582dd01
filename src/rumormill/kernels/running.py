"""Deliveries into running sums: the empirical and the trimmed mean.

A sample of rank i stays while L <= h = u i / |x|^p. Nearly all have h >= L_T when they come, so they are
added and forgotten; `need` is the rank from which that is sure. The others go to a calendar.
"""

from __future__ import annotations

import numpy as np

from rumormill.kernels.jit import inlined
from rumormill.kernels.state import FREE, HIGH_WATER, Floats, Hearing, Ids, Rules, State

# Margin on `need`, so that rounding can never make a sample sure that the exact rule would drop.
SURE = 1.0 + 1e-9


@inlined
def rank_needed(x: float, arm: int, rules: Rules, state: State) -> float:
    """The rank from which a sample surely stays to the end; 0 if every learner is past it."""
    if abs(x) <= state.sure_x[arm]:
        return 0.0
    return abs(x) ** rules.p * rules.L[rules.horizon] / rules.u * SURE


@inlined
def sure_size(fewest: float, rules: Rules) -> float:
    """A sample of at most this size stays to the end wherever there are `fewest` samples or more."""
    if not rules.trims:
        return np.inf
    return (fewest * rules.u / (rules.L[rules.horizon] * SURE)) ** (1.0 / rules.p) / SURE


@inlined
def take_out(t: int, state: State) -> None:
    """Samples whose last round was t - 1 leave their means."""
    i = state.leaving_head[t]
    total = state.total.reshape(-1)
    while i >= 0:
        total[state.leaving_slot[i]] -= state.leaving_x[i]
        after = state.leaving_next[i]
        state.leaving_next[i] = state.counters[FREE]
        state.counters[FREE] = i
        i = after
    state.leaving_head[t] = -1


@inlined
def add_doubtful(x: float, arm: int, j: int, t: int, rules: Rules, state: State) -> None:
    """A sample that may be out for its rank, now or later; the next question is asked in round t."""
    h = rules.u * state.n[arm, j] / abs(x) ** rules.p
    if h < rules.L[t]:
        return
    state.total[arm, j] += x
    if h >= rules.L[rules.horizon]:
        return
    low, high = t, rules.horizon  # L[low] <= h < L[high]: find the first round with L > h
    while high - low > 1:
        middle = (low + high) // 2
        if rules.L[middle] <= h:
            low = middle
        else:
            high = middle
    item = state.counters[FREE]
    if item >= 0:
        state.counters[FREE] = state.leaving_next[item]
    else:
        item = state.counters[HIGH_WATER]
        state.counters[HIGH_WATER] += 1
    state.leaving_slot[item] = arm * state.n.shape[1] + j
    state.leaving_x[item] = x
    state.leaving_next[item] = state.leaving_head[high]
    state.leaving_head[high] = item


@inlined
def add_one(x: float, need: float, arm: int, j: int, t: int, rules: Rules, state: State) -> None:
    state.n[arm, j] += 1.0
    if state.n[arm, j] >= need:
        state.total[arm, j] += x
    else:
        add_doubtful(x, arm, j, t, rules, state)


@inlined
def add_dense(mask: np.ndarray, slot: int, t: int, rules: Rules, state: State) -> None:  # type: ignore[type-arg]
    """One hop of everybody's samples, arm by arm, four origins at a time, vectorised over the hearers.

    Within an arm the samples are added in ascending order of origin, as the readable agents do.
    """
    for arm in range(rules.n_arms):
        i, end = state.ring_start[slot, arm], state.ring_start[slot, arm + 1]
        if i < end:
            state.changed[arm] = True
        while i < end:
            run = i
            while run < end and run < i + 4 and state.ring_need[slot, state.ring_order[slot, run]] == 0.0:
                run += 1
            if run == i:
                _add_doubtful_origin(mask, slot, state.ring_order[slot, i], arm, t, rules, state)
                i += 1
            elif run == i + 4:
                _add_four(mask, state.ring_order[slot, i:run], state.ring_x[slot], state.n[arm], state.total[arm])
                i = run
            else:
                while i < run:
                    origin = state.ring_order[slot, i]
                    _add_single(mask[origin], state.ring_x[slot, origin], state.n[arm], state.total[arm])
                    i += 1


@inlined
def _add_four(mask: np.ndarray, origins: Ids, xs: Floats, n: Floats, total: Floats) -> None:  # type: ignore[type-arg]
    a, b, c, d = origins[0], origins[1], origins[2], origins[3]
    xa, xb, xc, xd = xs[a], xs[b], xs[c], xs[d]
    ma, mb, mc, md = mask[a], mask[b], mask[c], mask[d]
    for j in range(n.shape[0]):
        n[j] += (ma[j] + mb[j]) + (mc[j] + md[j])
        total[j] = (((total[j] + xa * ma[j]) + xb * mb[j]) + xc * mc[j]) + xd * md[j]


@inlined
def _add_single(mask: np.ndarray, x: float, n: Floats, total: Floats) -> None:  # type: ignore[type-arg]
    for j in range(n.shape[0]):
        n[j] += mask[j]
        total[j] += x * mask[j]


@inlined
def _add_doubtful_origin(
    mask: np.ndarray,  # type: ignore[type-arg]
    slot: int,
    origin: int,
    arm: int,
    t: int,
    rules: Rules,
    state: State,
) -> None:
    x, need = state.ring_x[slot, origin], state.ring_need[slot, origin]
    for j in range(mask.shape[1]):
        if mask[origin, j] != 0.0:
            add_one(x, need, arm, j, t, rules, state)


@inlined
def add_sparse(hearing: Hearing, hop: int, slot: int, t: int, rules: Rules, state: State) -> None:
    """One hop of everybody's samples, origin by origin."""
    for origin in range(state.ring_arm.shape[1]):
        start, end = hearing.ptr[hop - 1, origin], hearing.ptr[hop - 1, origin + 1]
        if start == end:
            continue
        arm, x = state.ring_arm[slot, origin], state.ring_x[slot, origin]
        need = state.ring_need[slot, origin]
        state.changed[arm] = True
        n, total = state.n[arm], state.total[arm]
        for i in range(start, end):
            j = hearing.hearers[i]
            n[j] += 1.0
            if n[j] >= need:
                total[j] += x
            else:
                add_doubtful(x, arm, j, t, rules, state)
