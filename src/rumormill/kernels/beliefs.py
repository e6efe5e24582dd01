"""The rule of `rm.Default()` (default_rule.py), compiled: samples of all learners, and their choices.

Most samples change sums alone: up to `bar` (the size from which a sketch lists a sample; -1 while samples are
stored) they are added for eight learners at a time. Locations, shares and draws are computed in loops over
learners; only fits and means are worked out learner by learner.
"""

from __future__ import annotations

import math

import numpy as np

from rumormill import default_rule as rule
from rumormill import formulas
from rumormill.default_rule import Beliefs
from rumormill.kernels.jit import linked, part, step
from rumormill.kernels.simd.masked_add import lowest_bit
from rumormill.kernels.simd.strip_sums import CLIPPED_STRIP, MASK_BITS, Arriving, ClippedSums, add_clipped
from rumormill.kernels.state import DrawState, Flags, Floats, Ids, Ints, MessageRing, Reach
from rumormill.kernels.thompson import choose_largest_draws, extend_keys, fill_uniforms

huber_scale = part(formulas.huber_scale)
sketch_add = part(formulas.sketch_add)
sketch_clipsum = part(formulas.sketch_clipsum)
sketch_clipsquares = part(formulas.sketch_clipsquares)
sketch_root = part(formulas.sketch_root)


@part
def insert_sorted(store: Floats, filled: int, x: float) -> None:
    """As in the rule, but all numbers are gone through, without branches: eight at a time."""
    before = x
    for i in range(filled):
        here, moved = store[i], before if before > x else x
        store[i] = here if here <= x else moved
        before = here
    store[filled] = before if before > x else x


median_of = part(rule.median_of)
middle_distance = part(rule.middle_distance)
pilot_size = part(rule.pilot_size)
pilot_arm = part(rule.pilot_arm)
scarce_arm = part(rule.scarce_arm)
add_to_sketch = linked(rule.add_to_sketch, sketch_add=sketch_add)
add_sample = linked(rule.add_sample, insert_sorted=insert_sorted, add_to_sketch=add_to_sketch)
numbers_within = part(rule.numbers_within)
pooled_scale = linked(
    rule.pooled_scale, median_of=median_of, middle_distance=middle_distance, huber_scale=huber_scale
)
pooled_clip = linked(
    rule.pooled_clip, pooled_scale=pooled_scale, median_of=median_of, numbers_within=numbers_within
)
fit_location = linked(rule.fit_location, median_of=median_of)
smooth_score = part(rule.smooth_score)
aligned_score = linked(rule.aligned_score, median_of=median_of, smooth_score=smooth_score)
octile_skewness = linked(rule.octile_skewness, median_of=median_of)
skews = {"octile_skewness": octile_skewness}
location_value = part(rule.location_value)
location_spread = part(rule.location_spread)
locate = linked(rule.locate, location_value=location_value, location_spread=location_spread)
update_mean = linked(
    rule.update_mean,
    sketch_root=sketch_root,
    sketch_clipsum=sketch_clipsum,
    sketch_clipsquares=sketch_clipsquares,
    tail_error=part(rule.tail_error),
)
update_values = linked(rule.update_values, update_mean=update_mean, locate=locate)
skewed, arm_skewed = linked(rule.skewed, **skews), linked(rule.arm_skewed, **skews)
deciding = {"locate": locate, "update_mean": update_mean, "aligned_score": aligned_score}
test_shapes = linked(rule.test_shapes, skewed=skewed, arm_skewed=arm_skewed, **deciding)
fit = linked(
    rule.fit,
    pooled_clip=pooled_clip,
    fit_location=fit_location,
    median_of=median_of,
    add_to_sketch=add_to_sketch,
    bounded=part(rule.bounded),
    test_shapes=test_shapes,
)


@part
def beliefs_of(j: int, b: Beliefs) -> Beliefs:
    """The beliefs of one learner, of those of all."""
    return Beliefs(
        b.n[:, j],
        b.store[j],
        b.centre[:, j],
        b.psi[:, j],
        b.square[:, j],
        b.inside[:, j],
        b.origin[:, j],
        b.top[j],
        b.filled[:, j],
        b.rest[:, j],
        b.squares[:, j],
        b.fitted_n[:, j],
        b.known[:, j],
        b.value[:, j],
        b.spread[:, j],
        b.share[:, j],
        b.now[:, j],
    )


# --- samples ------------------------------------------------------------------------------------------------


@part
def add_slowly(arm: int, j: int, x: float, beliefs: Beliefs, bar: Floats) -> None:
    """A sample that is stored, or listed in a sketch."""
    add_sample(beliefs_of(j, beliefs), arm, x)
    set_bar(arm, j, beliefs, bar)


@part
def set_bar(arm: int, j: int, beliefs: Beliefs, bar: Floats) -> None:
    """The size up to which a sample of an arm changes sums alone."""
    bar[arm, j] = -1.0
    if beliefs.now[rule.FITTED, j] > 0.0 and beliefs.n[arm, j] >= beliefs.store.shape[2]:
        bar[arm, j] = abs(beliefs.top[j, arm, rule.TOP - 1])


@step
def rows_of(arm: int, beliefs: Beliefs, bar: Floats) -> ClippedSums:
    """What most samples of an arm change, [learner]."""
    k = np.uint32(arm)  # unsigned: no check for an index from the end
    return ClippedSums(
        beliefs.n[k],
        beliefs.psi[k],
        beliefs.square[k],
        beliefs.inside[k],
        beliefs.rest[k],
        beliefs.squares[k],
        beliefs.centre[k],
        beliefs.now[rule.CLIP],
        beliefs.origin[k],
        bar[k],
    )


@step
def add_to_beliefs(arm: int, j: int, x: float, sums: ClippedSums, beliefs: Beliefs, bar: Floats) -> None:
    """A sample of learner j, sums those of the arm."""
    i = np.uint32(j)
    about = x - sums.origin[i]
    if abs(about) <= sums.bar[i]:
        sums.n[i] += 1.0
        sums.rest[i] += about
        sums.squares[i] += about * about
        y, c = x - sums.centre[i], sums.c[i]
        psi = min(max(y, -c), c)
        sums.psi[i] += psi
        sums.square[i] += psi * psi
        sums.inside[i] += 1.0 if psi == y else 0.0
    else:
        add_slowly(arm, j, x, beliefs, bar)


@part
def add_all_to_beliefs(count: int, arms: Ids, xs: Floats, j: int, beliefs: Beliefs, bar: Floats) -> None:
    """Samples of learner j, in this order."""
    for i in range(count):
        add_to_beliefs(arms[i], j, xs[i], rows_of(arms[i], beliefs, bar), beliefs, bar)


@part
def deliver_to_beliefs(
    t: int, reach: Reach, ring: MessageRing, beliefs: Beliefs, bar: Floats, changed: Flags
) -> None:
    """End of round t: own samples, then the farthest hop first, by origin."""
    slots = ring.arm.shape[0]
    slot = t % slots
    for j in range(reach.learners.shape[0]):
        v = reach.learners[j]
        arm = ring.arm[slot, v]
        changed[arm] = True
        add_to_beliefs(arm, j, ring.x[slot, v], rows_of(arm, beliefs, bar), beliefs, bar)
    for hop in range(min(reach.gamma, t), 0, -1):
        slot, dense = (t - hop + 1) % slots, reach.dense[hop - 1]
        if dense >= 0:
            arriving = Arriving(reach.words[dense], ring.order[slot], ring.x[slot])
            add_dense_to_beliefs(arriving, ring.start[slot], beliefs, bar, changed)
        else:
            add_sparse_to_beliefs(reach.ptr[hop - 1], reach.receivers, slot, ring, beliefs, bar, changed)


@part
def add_sparse_to_beliefs(
    ptr: Ints, receivers: Ids, slot: int, ring: MessageRing, beliefs: Beliefs, bar: Floats, changed: Flags
) -> None:
    """One hop of all samples by CSR list, origin by origin."""
    for origin in range(ptr.shape[0] - 1):
        if ring.sent[slot, origin] and ptr[origin] < ptr[origin + 1]:
            arm, x = ring.arm[slot, origin], ring.x[slot, origin]
            changed[arm] = True
            sums = rows_of(arm, beliefs, bar)
            for i in range(ptr[origin], ptr[origin + 1]):
                add_to_beliefs(arm, receivers[i], x, sums, beliefs, bar)


@part
def add_dense_to_beliefs(
    arriving: Arriving, start: Ids, beliefs: Beliefs, bar: Floats, changed: Flags
) -> None:
    """One hop of all samples by bitmask, arm by arm, in ascending order of origin."""
    for arm in range(start.shape[0] - 1):
        first, last = start[arm] + 0, start[arm + 1] + 0
        if first == last:
            continue
        changed[arm] = True
        sums = rows_of(arm, beliefs, bar)
        for lane in range(0, bar.shape[1], CLIPPED_STRIP):
            at = first
            while at < last:
                found = add_clipped(arriving, at, last, sums, lane)
                at = found >> MASK_BITS
                missed = np.uint64(found & ((1 << CLIPPED_STRIP) - 1))
                while missed != 0:
                    j = lane + lowest_bit(missed)
                    missed &= missed - np.uint64(1)
                    add_slowly(arm, j, arriving.xs[arriving.order[at]], beliefs, bar)
                at += 1


# --- choices ------------------------------------------------------------------------------------------------


@part
def choose_by_beliefs(
    t: int,
    needed: Flags,
    groups: Floats,
    changed: Flags,
    draws: DrawState,
    beliefs: Beliefs,
    bar: Floats,
    action: Ids,
) -> None:
    """The arm of every learner in round t; learners are agents."""
    n_arms, due = beliefs.n.shape[0], draws.forced
    count_samples(beliefs.n, draws.total)
    find_due(draws.total, beliefs.now[rule.NEXT_FIT], beliefs.now[rule.MEANS], due)
    for arm in range(n_arms):
        if changed[arm]:
            locate_all(beliefs.n[arm], beliefs.inside[arm], arm, beliefs)
            find_outdated(beliefs.n[arm], beliefs.known[arm], due)
    for j in range(action.shape[0]):
        forced = -1
        if needed[j] and due[j] > 1:
            forced = prepare_one(t, j, draws.total[j], beliefs_of(j, beliefs))
            for arm in range(n_arms):
                set_bar(arm, j, beliefs, bar)
        draws.forced[j] = forced
    extend_keys(np.uint64(t), draws.keys, draws.now)
    find_short(beliefs.share, beliefs.n, draws)
    fill_uniforms(n_arms, draws.now, draws.u)
    for j in range(action.shape[0]):
        if draws.forced[j] < 0 and needed[j] and draws.u[j] * groups[j] < draws.short[j]:
            draws.forced[j] = scarce_arm(beliefs_of(j, beliefs), beliefs.n[:, j], groups[j], draws.u[j])
    choose_largest_draws(beliefs.value, beliefs.spread, draws, action)
    for j in range(action.shape[0]):
        if draws.forced[j] >= 0:
            action[j] = draws.forced[j]


@part
def prepare_one(t: int, agent: int, total: float, beliefs: Beliefs) -> int:
    """A fit, if it is time, and the values of one learner; or the arm that it pulls before its first fit."""
    if beliefs.now[rule.FITTED] == 0.0:
        arm = pilot_arm(t, agent, beliefs.n, pilot_size(beliefs.n.shape[0]))
        if arm >= 0:
            return arm
    if total >= beliefs.now[rule.NEXT_FIT]:
        fit(beliefs)
    update_values(beliefs)
    return -1


@part
def count_samples(n: Floats, total: Floats) -> None:
    """N of every learner."""
    for j in range(total.shape[0]):
        total[j] = n[0, j]
    for arm in range(1, n.shape[0]):
        for j in range(total.shape[0]):
            total[j] += n[arm, j]


@part
def find_due(total: Floats, next_fit: Floats, means: Floats, due: Ids) -> None:
    """2 where it is time for a fit; else 1 where learners go by means."""
    for j in range(due.shape[0]):
        due[j] = 2 if total[j] >= next_fit[j] else 1 if means[j] > 0.0 else 0


@part
def find_outdated(n: Floats, known: Floats, due: Ids) -> None:
    """2 where the mean of an arm has to be worked out again, too."""
    for j in range(due.shape[0]):
        due[j] += due[j] == 1 and n[j] > rule.MEAN_GROWTH * known[j]


@part
def locate_all(n: Floats, inside: Floats, arm: int, beliefs: Beliefs) -> None:
    """Locations of an arm and their standard deviations, for all learners that go by them."""
    means, pooled = beliefs.now[rule.MEANS], beliefs.now[rule.POOLED_INSIDE]
    value, centre, psi = beliefs.value[arm], beliefs.centre[arm], beliefs.psi[arm]
    for j in range(n.shape[0]):
        found = location_value(centre[j], psi[j], n[j], inside[j], pooled[j])
        value[j] = found if means[j] == 0.0 else value[j]
    spread, square, pooled_square = beliefs.spread[arm], beliefs.square[arm], beliefs.now[rule.POOLED_SQUARE]
    for j in range(n.shape[0]):
        found = location_spread(square[j], n[j], inside[j], pooled_square[j], pooled[j])
        spread[j] = found if means[j] == 0.0 else spread[j]


@part
def find_short(share: Floats, n: Floats, draws: DrawState) -> None:
    """A little more than what any arm misses of its share: ln(1 + N) lies below its tangents."""
    total, at, level, most = draws.total, draws.level_at, draws.level, draws.best
    for j in range(most.shape[0]):
        if total[j] > 1.01 * at[j] or at[j] == 0.0:
            at[j] = total[j]
            level[j] = math.log(1.0 + total[j])
        most[j] = level[j] + (total[j] - at[j]) / (1.0 + at[j])
        draws.short[j] = 0.0
    for arm in range(n.shape[0]):
        raise_short(share[arm], n[arm], most, draws.short)


@part
def raise_short(share: Floats, n: Floats, level: Floats, short: Floats) -> None:
    """The largest of what arms miss, one arm more; rounding cannot make it too small."""
    for j in range(short.shape[0]):
        misses = share[j] * level[j] - n[j] + 1e-9
        short[j] = misses if misses > short[j] else short[j]
