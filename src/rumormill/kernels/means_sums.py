"""Deliveries into running sums: the empirical and the trimmed mean.

A sample of rank i stays in a trimmed mean while L <= h = u i / |x|^p. Nearly all have h >= L_T on arrival:
they are added and not stored; `need` is the rank from which that is certain. The others are added with an
expiry, the round in which they leave, kept in a calendar.
"""

from __future__ import annotations

import numpy as np

from rumormill import formulas
from rumormill.kernels.counter_rng import count_tries
from rumormill.kernels.jit import part, step
from rumormill.kernels.simd.masked_add import LANES, MOST, add_lanes, lowest_bit
from rumormill.kernels.simd.own_samples import STRIP, add_strip
from rumormill.kernels.state import Calendar, Floats, Ids, Ints, MessageRing, RunningSums, Trimming, Words

leaving_level = step(formulas.leaving_level)
power_of_size = step(formulas.power_of_size)

# Margin on `need`, so that rounding can never make a sample sure that the exact rule would drop.
SURE = 1.0 + 1e-9


@part
def required_rank(power: float, u: float, last_L: float) -> float:
    """The rank from which a sample surely stays to the end."""
    return power * last_L / u * SURE


@part
def compute_required_ranks(
    arms: Ids, xs: Floats, sure_x: Floats, last_L: float, trimming: Trimming, needs: Floats, powers: Floats
) -> None:
    """The ranks from which the samples of a round surely stay; 0 where every learner is past it."""
    for v in range(arms.shape[0]):
        x = xs[v]
        needs[v] = 0.0
        if not abs(x) <= sure_x[np.uint32(arms[v])]:  # unsigned: no check for an index from the end
            powers[v] = power_of_size(x, trimming.p)
            needs[v] = required_rank(powers[v], trimming.u, last_L)


@part
def sure_size(fewest: float, u: float, p: float, last_L: float) -> float:
    """A sample of at most this size stays to the end wherever there are `fewest` samples or more."""
    return (fewest * u / (last_L * SURE)) ** (1.0 / p) / SURE


@part
def remove_expired(t: int, total: Floats, calendar: Calendar) -> bool:
    """Remove the samples that expire in round t from their means; returns whether there are any."""
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
def add_with_expiry(
    x: float,
    power: float,
    n: float,
    place: int,
    next_t: int,
    trimming: Trimming,
    total: Floats,
    calendar: Calendar,
) -> None:
    """Add the n-th sample of a mean and store its expiry, unless its rank is too low in round `next_t`.

    `next_t` is the round of the next decision, `place` is arm * learners + learner.
    """
    L = trimming.L
    h = leaving_level(power, n, trimming.u)
    if h < L[next_t]:
        return
    total[place // total.shape[1], place % total.shape[1]] += x
    low, high = next_t, L.shape[0] - 1
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


@step
def count_and_add(
    arm: int,
    j: int,
    x: float,
    need: float,
    powers: Floats,
    i: int,
    next_t: int,
    trimming: Trimming,
    n: Floats,
    total: Floats,
    calendar: Calendar,
) -> None:
    """Count a sample of learner j, then add it, or defer to its expiry where its rank is below `need`.

    powers[i] is |x|^p, read only where the rank is below `need`.
    """
    n_k, total_k = n[arm], total[arm]
    n_k[j] += 1.0
    if n_k[j] >= need:
        total_k[j] += x
    else:
        place = arm * n.shape[1] + j
        add_with_expiry(x, powers[i], n_k[j], place, next_t, trimming, total, calendar)


@part
def add_own(
    slot: int,
    next_t: int,
    k: int,
    learners: Ids,
    trimming: Trimming,
    ring: MessageRing,
    sums: RunningSums,
    calendar: Calendar,
) -> None:
    """Every learner's own samples, at most k."""
    n, total, changed = sums
    arms, xs, needs, powers = ring.arm[slot], ring.x[slot], ring.need[slot], ring.power[slot]
    if learners.shape[0] < arms.shape[0]:
        for j in range(learners.shape[0]):
            first = learners[j] * k
            for v in range(first, first + count_tries(arms, first, k)):
                changed[arms[v]] = True
                count_and_add(arms[v], j, xs[v], needs[v], powers, v, next_t, trimming, n, total, calendar)
        return
    for lane in range(0, learners.shape[0], STRIP):
        deferred = add_strip(arms, xs, needs, n, total, changed, lane)
        while deferred != 0:
            j = lane + lowest_bit(deferred)
            deferred &= deferred - np.uint64(1)
            place = arms[j] * n.shape[1] + j
            add_with_expiry(xs[j], powers[j], n[arms[j], j], place, next_t, trimming, total, calendar)


@part
def add_dense(
    words: Words,
    slot: int,
    next_t: int,
    trimming: Trimming,
    ring: MessageRing,
    sums: RunningSums,
    calendar: Calendar,
) -> None:
    """One hop of all samples by bitmask, arm by arm; those that surely stay for 64 receivers at a time.

    Within an arm the samples are added in ascending order of origin, as the reference agents do.
    """
    n, total, changed = sums
    order, xs, needs, powers = ring.order[slot], ring.x[slot], ring.need[slot], ring.power[slot]
    for arm in range(n.shape[0]):
        # Adding 0 makes them as wide as i + 1: one version of _add_sure is compiled.
        i, end = ring.start[slot, arm] + 0, ring.start[slot, arm + 1] + 0
        changed[arm] |= i < end
        while i < end:
            sure = i
            while sure < end and needs[order[sure]] == 0.0:
                sure += 1
            _add_sure(words, order, i, sure, xs, n[arm], total[arm])
            i = sure
            if i < end:
                _add_to_receivers(words, order[i], arm, next_t, xs, needs, powers, trimming, sums, calendar)
                i += 1


@part
def _add_sure(words: Words, order: Ids, first: int, last: int, xs: Floats, n: Floats, total: Floats) -> None:
    """Samples that stay to the end for every receiver."""
    for i in range(first, last, MOST):
        add_lanes(words, order, i, min(i + MOST, last), xs, n, total)


@part
def _add_to_receivers(
    words: Words,
    origin: int,
    arm: int,
    next_t: int,
    xs: Floats,
    needs: Floats,
    powers: Floats,
    trimming: Trimming,
    sums: RunningSums,
    calendar: Calendar,
) -> None:
    """A sample that some receivers may drop, now or later."""
    x, need, n, total = xs[origin], needs[origin], sums.n, sums.total
    for w in range(words.shape[0]):
        word = words[w, origin]
        while word != 0:
            j = w * LANES + lowest_bit(word)
            word &= word - np.uint64(1)
            count_and_add(arm, j, x, need, powers, origin, next_t, trimming, n, total, calendar)


@part
def add_sparse(
    ptr: Ints,
    receivers: Ids,
    slot: int,
    next_t: int,
    trimming: Trimming,
    ring: MessageRing,
    sums: RunningSums,
    calendar: Calendar,
) -> None:
    """One hop of all samples by CSR list, origin by origin."""
    n, total, changed = sums
    powers = ring.power[slot]
    for origin in range(ptr.shape[0] - 1):
        start, end = ptr[origin], ptr[origin + 1]
        if start == end or not ring.sent[slot, origin]:
            continue
        arm, x, need = ring.arm[slot, origin], ring.x[slot, origin], ring.need[slot, origin]
        changed[arm] = True
        if need == 0.0:  # it stays to the end for every receiver
            n_k, total_k = n[arm], total[arm]
            for i in range(start, end):
                n_k[receivers[i]] += 1.0
                total_k[receivers[i]] += x
            continue
        for i in range(start, end):
            count_and_add(arm, receivers[i], x, need, powers, origin, next_t, trimming, n, total, calendar)
