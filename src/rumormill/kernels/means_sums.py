"""Deliveries into running sums: the empirical and the trimmed mean.

A sample of rank i stays while L <= h = u i / |x|^p. Nearly all have h >= L_T when they come, so they are
added and forgotten; `need` is the rank from which that is sure. The others go to a calendar.
"""

from __future__ import annotations

import numpy as np

from rumormill import formulas
from rumormill.kernels.jit import part, step
from rumormill.kernels.simd.bitmask import lowest_bit
from rumormill.kernels.simd.masked_add import LANES, MOST, add_lanes
from rumormill.kernels.simd.own_samples import STRIP, add_strip
from rumormill.kernels.state import Calendar, Floats, Ids, Ints, Ring, Sums, Trimming, Words

leaving_level = step(formulas.leaving_level)
power_of_size = step(formulas.power_of_size)

# Margin on `need`, so that rounding can never make a sample sure that the exact rule would drop.
SURE = 1.0 + 1e-9


@part
def rank_needed(power: float, u: float, last_L: float) -> float:
    """The rank from which a sample surely stays to the end."""
    return power * last_L / u * SURE


@part
def note_ranks(slot: int, sure_x: Floats, last_L: float, trimming: Trimming, ring: Ring) -> None:
    """The ranks from which the samples of a round surely stay; 0 where every learner is past it."""
    arms, xs, needs, powers = ring.arm[slot], ring.x[slot], ring.need[slot], ring.power[slot]
    for v in range(arms.shape[0]):
        x = xs[v]
        needs[v] = 0.0
        if not abs(x) <= sure_x[np.uint32(arms[v])]:  # without a sign no place is counted from the end
            powers[v] = power_of_size(x, trimming.p)
            needs[v] = rank_needed(powers[v], trimming.u, last_L)


@part
def sure_size(fewest: float, u: float, p: float, last_L: float) -> float:
    """A sample of at most this size stays to the end wherever there are `fewest` samples or more."""
    return (fewest * u / (last_L * SURE)) ** (1.0 / p) / SURE


@part
def take_out(t: int, total: Floats, calendar: Calendar) -> bool:
    """Samples whose last round was t - 1 leave their means; whether there are any."""
    i = calendar.head[t]
    some = i >= 0
    n_learners = total.shape[1]
    while i >= 0:
        place = calendar.place[i]
        total[place // n_learners, place % n_learners] -= calendar.x[i]
        after = calendar.after[i]
        calendar.after[i] = calendar.spare[0]
        calendar.spare[0] = i
        i = after
    calendar.head[t] = -1
    return some


@part
def add_doubtful(
    x: float,
    power: float,
    n: float,
    place: int,
    asked: int,
    trimming: Trimming,
    total: Floats,
    calendar: Calendar,
) -> None:
    """The n-th sample, which may be out for its rank now or later; the next question is in round `asked`.

    `place` is arm * learners + learner.
    """
    L = trimming.L
    h = leaving_level(power, n, trimming.u)
    if h < L[asked]:
        return
    total[place // total.shape[1], place % total.shape[1]] += x
    low, high = asked, L.shape[0] - 1
    if h >= L[high]:
        return
    while high - low > 1:  # L[low] <= h < L[high]: find the first round with L > h
        middle = (low + high) // 2
        if L[middle] <= h:
            low = middle
        else:
            high = middle
    i = calendar.spare[0]
    if i >= 0:
        calendar.spare[0] = calendar.after[i]
    else:
        i = calendar.spare[1]
        calendar.spare[1] += 1
    calendar.place[i] = place
    calendar.x[i] = x
    calendar.after[i] = calendar.head[high]
    calendar.head[high] = i


@part
def add_own(
    slot: int, asked: int, learners: Ids, trimming: Trimming, ring: Ring, sums: Sums, calendar: Calendar
) -> None:
    """Every learner's own sample."""
    n, total, changed = sums
    arms, xs, needs = ring.arm[slot], ring.x[slot], ring.need[slot]
    if learners.shape[0] < arms.shape[0]:
        for j in range(learners.shape[0]):
            v = learners[j]
            arm = arms[v]
            n[arm, j] += 1.0
            changed[arm] = True
            if n[arm, j] >= needs[v]:
                total[arm, j] += xs[v]
            else:
                power, place = ring.power[slot, v], arm * n.shape[1] + j
                add_doubtful(xs[v], power, n[arm, j], place, asked, trimming, total, calendar)
        return
    for lane in range(0, learners.shape[0], STRIP):
        doubtful = add_strip(arms, xs, needs, n, total, changed, lane)
        while doubtful != 0:
            j = lane + lowest_bit(doubtful)
            doubtful &= doubtful - np.uint64(1)
            arm = arms[j]
            power, place = ring.power[slot, j], arm * n.shape[1] + j
            add_doubtful(xs[j], power, n[arm, j], place, asked, trimming, total, calendar)


@part
def add_dense(
    words: Words, slot: int, asked: int, trimming: Trimming, ring: Ring, sums: Sums, calendar: Calendar
) -> None:
    """One hop of everybody's samples, arm by arm; those that surely stay for 64 hearers at a time.

    Within an arm the samples are added in ascending order of origin, as the readable agents do.
    """
    n, total, changed = sums
    order, xs, need = ring.order[slot], ring.x[slot], ring.need[slot]
    for arm in range(n.shape[0]):
        # Adding 0 makes them as wide as i + 1 is: there is one version of _add_sure to compile.
        i, end = ring.start[slot, arm] + 0, ring.start[slot, arm + 1] + 0
        changed[arm] |= i < end
        while i < end:
            sure = i
            while sure < end and need[order[sure]] == 0.0:
                sure += 1
            _add_sure(words, order, i, sure, xs, n[arm], total[arm])
            i = sure
            if i < end:
                _add_to_hearers(words, order[i], slot, arm, asked, trimming, ring, sums, calendar)
                i += 1


@part
def _add_sure(words: Words, order: Ids, first: int, last: int, xs: Floats, n: Floats, total: Floats) -> None:
    """Samples that stay to the end, whoever hears them."""
    for i in range(first, last, MOST):
        add_lanes(words, order, i, min(i + MOST, last), xs, n, total)


@part
def _add_to_hearers(
    words: Words,
    origin: int,
    slot: int,
    arm: int,
    asked: int,
    trimming: Trimming,
    ring: Ring,
    sums: Sums,
    calendar: Calendar,
) -> None:
    """A sample that some hearer may have to drop."""
    n, total = sums.n, sums.total
    x, need, power = ring.x[slot, origin], ring.need[slot, origin], ring.power[slot, origin]
    for w in range(words.shape[0]):
        word = words[w, origin]
        while word != 0:
            j = w * LANES + lowest_bit(word)
            word &= word - np.uint64(1)
            n[arm, j] += 1.0
            if n[arm, j] >= need:
                total[arm, j] += x
            else:
                place = arm * n.shape[1] + j
                add_doubtful(x, power, n[arm, j], place, asked, trimming, total, calendar)


@part
def add_sparse(
    ptr: Ints,
    hearers: Ids,
    slot: int,
    asked: int,
    trimming: Trimming,
    ring: Ring,
    sums: Sums,
    calendar: Calendar,
) -> None:
    """One hop of everybody's samples, origin by origin."""
    n, total, changed = sums
    for origin in range(ptr.shape[0] - 1):
        start, end = ptr[origin], ptr[origin + 1]
        if start == end or not ring.told[slot, origin]:
            continue
        arm, x = ring.arm[slot, origin], ring.x[slot, origin]
        need, power = ring.need[slot, origin], ring.power[slot, origin]
        changed[arm] = True
        n_k, total_k = n[arm], total[arm]
        if need == 0.0:  # it stays to the end, whoever hears it
            for i in range(start, end):
                n_k[hearers[i]] += 1.0
                total_k[hearers[i]] += x
            continue
        for i in range(start, end):
            j = hearers[i]
            n_k[j] += 1.0
            if n_k[j] >= need:
                total_k[j] += x
            else:
                place = arm * n.shape[1] + j
                add_doubtful(x, power, n_k[j], place, asked, trimming, total, calendar)
