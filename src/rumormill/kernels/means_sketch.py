"""Means that keep a few numbers per arm and learner: clipped, self-tuned, median bound, MOSS, Huber.

The samples of a learner in a round are collected first, in arrival order, and then added in one pass, by the
same formulas as the streams of the reference engine.
"""

from __future__ import annotations

import math

import numpy as np

from rumormill import formulas
from rumormill.kernels.counter_rng import count_tries
from rumormill.kernels.jit import part, step
from rumormill.kernels.means_stored import select
from rumormill.kernels.simd.masked_add import lowest_bit
from rumormill.kernels.simd.strip_sums import HUBER_STRIP, MASK_BITS, Arriving, HuberSteps, add_huber
from rumormill.kernels.state import (
    CLIPPED,
    HUBER_SGD,
    MEDIAN_BOUND,
    ROBUST_MOSS,
    SELF_TUNED,
    EstimatorConstants,
    Flags,
    Floats,
    Ids,
    Memory,
    MessageRing,
    Reach,
    Rules,
    SketchState,
    State,
)

clip_level = step(formulas.clip_level)
clipped = step(formulas.clipped)
histogram_bin = step(formulas.histogram_bin)
huber_reach = step(formulas.huber_reach)
huber_scale = step(formulas.huber_scale)
huber_step = step(formulas.huber_step)
moss_clip = step(formulas.moss_clip)
moss_phi = step(formulas.moss_phi)
moss_reach = step(formulas.moss_reach)
sketch_add = part(formulas.sketch_add)
sketch_clipsum = part(formulas.sketch_clipsum)
sketch_root = part(formulas.sketch_root)
tuned_reach = step(formulas.tuned_reach)
upper_rank = step(formulas.upper_rank)


# --- adding samples ---------------------------------------------------------------------------------------


@step
def deliver_to_sketches(kind: int, t: int, k: int, reach: Reach, rules: Rules, memory: Memory) -> None:
    """End of round t: the samples of every learner."""
    ring, constants, sketches = memory.ring, memory.general.constants, memory.general.sketches
    arms, xs = sketches.arms, sketches.xs
    if kind == HUBER_SGD:
        deliver_to_huber(t, k, constants.lam, reach, ring, memory.state, sketches)
        return
    if kind == MEDIAN_BOUND:
        slot = t % ring.x.shape[0]
        for v in range(ring.x.shape[1]):
            ring.need[slot, v] = histogram_bin(ring.x[slot, v], constants.scale)
    values = ring.need if kind == MEDIAN_BOUND else ring.x
    for j in range(reach.learners.shape[0]):
        count = collect_samples(t, j, k, reach, values, memory)
        add_to_sketch(kind, count, arms, xs, j, rules, memory)


@step
def add_to_sketch(kind: int, count: int, arms: Ids, xs: Floats, j: int, rules: Rules, memory: Memory) -> None:
    """Samples (or their bins) into the means of learner j, in this order."""
    n, sketches, constants = memory.state.n, memory.general.sketches, memory.general.constants
    for i in range(count):
        memory.state.changed[arms[i]] = True
    if kind == CLIPPED:
        add_to_tops(count, arms, xs, j, n, 0, sketches)
    elif kind == SELF_TUNED:
        add_to_tops(count, arms, xs, j, n, constants.pilot, sketches)
    elif kind == MEDIAN_BOUND:
        add_to_histograms(count, arms, xs, j, n, sketches.counts, sketches.place, sketches.below)
    elif kind == ROBUST_MOSS:
        add_to_moss(count, arms, xs, j, rules.p, memory)
    elif kind == HUBER_SGD:
        for i in range(count):
            add_huber_step(arms[i], j, xs[i], n, constants.lam, sketches)


@step
def collect_samples(t: int, j: int, k: int, reach: Reach, values: Floats, memory: Memory) -> int:
    """The samples of learner j in round t: own first, then the oldest, then by origin. Returns how many."""
    ring, slots, sources = memory.ring, memory.ring.arm.shape[0], memory.general.sources
    arms, xs = memory.general.sketches.arms, memory.general.sketches.xs
    first, slot = reach.learners[j] * k, t % slots
    count = count_tries(ring.arm[slot], first, k)
    for i in range(count):
        arms[i], xs[i] = ring.arm[slot, first + i], values[slot, first + i]
    for hop in range(min(reach.gamma, t), 0, -1):
        slot = (t - hop + 1) % slots
        for i in range(sources.ptr[j, hop - 1], sources.ptr[j, hop]):
            origin = sources.ids[i]
            if ring.sent[slot, origin]:
                arms[count] = ring.arm[slot, origin]
                xs[count] = values[slot, origin]
                count += 1
    return count


@part
def add_to_tops(
    count: int, arms: Ids, xs: Floats, j: int, n: Floats, pilot: int, sketches: SketchState
) -> None:
    """Samples into the sketches, about a centre once the pilot is over."""
    top, filled, rest, squares = sketches.top, sketches.filled, sketches.rest, sketches.squares
    last = top.shape[2] - 1
    for i in range(count):
        arm = arms[i]
        n[arm, j] += 1.0
        if n[arm, j] <= pilot:
            _add_to_pilot(xs[i], int(n[arm, j]), arm, j, pilot, sketches)
            continue
        y = xs[i] - sketches.centre[arm, j]
        if filled[arm, j] > last and abs(y) <= abs(top[arm, j, last]):  # nearly always, in the end
            rest[arm, j] += y
            squares[arm, j] += y * y
        else:
            _sketch(y, arm, j, sketches)


@part
def _add_to_pilot(x: float, n: int, arm: int, j: int, pilot: int, sketches: SketchState) -> None:
    pilot_samples = sketches.pilot[arm, j]
    pilot_samples[n - 1] = x
    if n == pilot:
        centre = middle(pilot_samples, 0.0, False, sketches.room)
        sketches.centre[arm, j] = centre
        for i in range(pilot):
            _sketch(pilot_samples[i] - centre, arm, j, sketches)


@part
def middle(values: Floats, centre: float, sizes: bool, room: Floats) -> float:
    """The median of an odd number of values about a centre, or of their sizes."""
    for i in range(values.shape[0]):
        room[i] = abs(values[i] - centre) if sizes else values[i] - centre
    return select(room, values.shape[0], values.shape[0] // 2)


@part
def _sketch(y: float, arm: int, j: int, sketches: SketchState) -> None:
    filled, rest, squares = sketch_add(
        sketches.top[arm, j], sketches.filled[arm, j], y, sketches.rest[arm, j], sketches.squares[arm, j]
    )
    sketches.filled[arm, j] = filled
    sketches.rest[arm, j] = rest
    sketches.squares[arm, j] = squares


@part
def add_to_histograms(
    count: int, arms: Ids, bins: Floats, j: int, n: Floats, counts: Ids, place: Ids, below: Ids
) -> None:
    """Samples into the histograms."""
    for i in range(count):
        arm, at = arms[i], int(bins[i])
        n[arm, j] += 1.0
        counts[arm, j, at] += 1
        for which in range(2):
            if at < place[which, arm, j]:
                below[which, arm, j] += 1


@part
def add_to_moss(count: int, arms: Ids, xs: Floats, j: int, p: float, memory: Memory) -> None:
    """Samples clipped by their rank, into sums."""
    state, sketches, constants = memory.state, memory.general.sketches, memory.general.constants
    n, total, levels, clips = state.n, state.total, sketches.level, sketches.clip
    for i in range(count):
        arm = arms[i]
        rank = n[arm, j] + 1.0
        n[arm, j] = rank
        level = levels[arm, j]
        if level <= rank:
            while level <= rank:
                level *= constants.growth
            levels[arm, j] = level
            clips[arm, j] = moss_clip(moss_phi(level, constants.budgets[j]), constants.root, p)
        total[arm, j] += clipped(xs[i], clips[arm, j], clips[arm, j])


@part
def add_huber_step(arm: int, j: int, x: float, n: Floats, lam: float, sketches: SketchState) -> None:
    """A sample: into the pilot, or a step of the iterate."""
    theta, scale, reach, pilot = sketches.centre, sketches.clip, sketches.level, sketches.pilot.shape[2]
    rank = n[arm, j] + 1.0
    n[arm, j] = rank
    if reach[arm, j] > 0.0:
        theta[arm, j] = huber_step(theta[arm, j], x, rank, reach[arm, j])
        return
    if rank > pilot:  # every sample so far was the same
        scale[arm, j] = huber_scale(0.0, abs(x - theta[arm, j]), rank)
        theta[arm, j] = huber_step(theta[arm, j], x, rank, lam * scale[arm, j])
    else:
        sketches.pilot[arm, j, int(rank) - 1] = x
        if rank == pilot:
            theta[arm, j], scale[arm, j] = start_from_pilot(sketches.pilot[arm, j], lam, sketches.room)
    if rank >= pilot:
        reach[arm, j] = lam * scale[arm, j]


@part
def deliver_to_huber(
    t: int, k: int, lam: float, reach: Reach, ring: MessageRing, state: State, sketches: SketchState
) -> None:
    """End of round t: own samples, then the farthest hop first, by origin."""
    slots, n, changed = ring.arm.shape[0], state.n, state.changed
    slot = t % slots
    for j in range(reach.learners.shape[0]):
        first = reach.learners[j] * k
        for v in range(first, first + count_tries(ring.arm[slot], first, k)):
            changed[ring.arm[slot, v]] = True
            add_huber_step(ring.arm[slot, v], j, ring.x[slot, v], n, lam, sketches)
    for hop in range(min(reach.gamma, t), 0, -1):
        slot, dense = (t - hop + 1) % slots, reach.dense[hop - 1]
        if dense >= 0:
            arriving = Arriving(reach.words[dense], ring.order[slot], ring.x[slot])
            add_dense_to_huber(arriving, ring.start[slot], changed, n, lam, sketches)
            continue
        ptr = reach.ptr[hop - 1]
        for origin in range(ring.x.shape[1]):
            if ring.sent[slot, origin] and ptr[origin] < ptr[origin + 1]:
                arm, x = ring.arm[slot, origin], ring.x[slot, origin]
                changed[arm] = True
                for i in range(ptr[origin], ptr[origin + 1]):
                    add_huber_step(arm, reach.receivers[i], x, n, lam, sketches)


@part
def add_dense_to_huber(
    arriving: Arriving, start: Ids, changed: Flags, n: Floats, lam: float, sketches: SketchState
) -> None:
    """One hop of all samples by bitmask, arm by arm, in ascending order of origin."""
    for arm in range(n.shape[0]):
        first, last = start[arm] + 0, start[arm + 1] + 0
        if first == last:
            continue
        changed[arm] = True
        steps = HuberSteps(n[arm], sketches.centre[arm], sketches.level[arm])
        for lane in range(0, n.shape[1], HUBER_STRIP):
            at = first
            while at < last:
                found = add_huber(arriving, at, last, steps, lane)
                at = found >> MASK_BITS
                missed = np.uint64(found & ((1 << HUBER_STRIP) - 1))
                while missed != 0:
                    j = lane + lowest_bit(missed)
                    missed &= missed - np.uint64(1)
                    add_huber_step(arm, j, arriving.xs[arriving.order[at]], n, lam, sketches)
                at += 1


@part
def start_from_pilot(pilot_samples: Floats, lam: float, room: Floats) -> tuple[float, float]:
    """The iterate after the pilot, and the scale."""
    centre = middle(pilot_samples, 0.0, False, room)
    total = 0.0
    for i in range(pilot_samples.shape[0]):
        total += abs(pilot_samples[i] - centre)
    spread = huber_scale(middle(pilot_samples, centre, True, room), total, float(pilot_samples.shape[0]))
    for i in range(pilot_samples.shape[0]):
        centre = huber_step(centre, pilot_samples[i], i + 1.0, lam * spread)
    return centre, spread


# --- means and indices ------------------------------------------------------------------------------------


@step
def estimate_sketches(kind: int, t: int, rules: Rules, memory: Memory) -> None:
    """The mean of every arm and learner, and the index where the estimator computes its own."""
    L, state = rules.L[t], memory.state
    sketches, constants = memory.general.sketches, memory.general.constants
    n, mean, upper = state.n, state.mean, sketches.upper
    if kind == CLIPPED:
        clip_means(L, rules.p, constants.clip_budget, n, mean, memory.general.known, sketches)
    elif kind == SELF_TUNED:
        estimate_self_tuned(L, constants, n, mean, sketches)
    elif kind == MEDIAN_BOUND:
        find_medians(L, rules.quiet >= 0.0 or rules.has_prior, constants.edges, n, mean, sketches)
    elif kind == ROBUST_MOSS:
        for arm in range(n.shape[0]):
            for j in range(n.shape[1]):
                mean[arm, j] = upper[arm, j] = np.inf
                if n[arm, j] > 0.0:
                    phi = moss_phi(n[arm, j], constants.budgets[j])
                    mean[arm, j] = state.total[arm, j] / n[arm, j]
                    upper[arm, j] = mean[arm, j] + moss_reach(phi, constants.factor_root, rules.exponent)
    else:
        least = float(max(constants.pilot, 1))
        for arm in range(n.shape[0]):
            take_centres(least, n[arm], sketches.centre[arm], mean[arm])
            if rules.width == 0.0:
                for j in range(n.shape[1]):
                    upper[arm, j] = np.inf
                    if n[arm, j] >= least:
                        reach = huber_reach(L, n[arm, j], constants.coeff * sketches.clip[arm, j])
                        upper[arm, j] = mean[arm, j] + reach


@part
def take_centres(least: float, n: Floats, centre: Floats, mean: Floats) -> None:
    """The iterates of an arm, +inf with too few samples."""
    for j in range(mean.shape[0]):
        mean[j] = centre[j] if n[j] >= least else np.inf


@part
def clip_means(
    L: float, p: float, budget: float, n: Floats, mean: Floats, known: Floats, sketches: SketchState
) -> None:
    """Clipped means; unchanged where no sample arrived and none was or is clipped."""
    clear = sketches.level
    top, filled, rest = sketches.top, sketches.filled, sketches.rest
    for arm in range(n.shape[0]):
        for j in range(n.shape[1]):
            count = n[arm, j]
            if count == 0.0:
                mean[arm, j] = np.inf
                continue
            level = clip_level(count, L, budget, p)
            fits = level >= abs(top[arm, j, 0])
            if known[arm, j] == count and fits and clear[arm, j] == 1.0:
                continue
            mean[arm, j] = sketch_clipsum(top[arm, j], filled[arm, j], rest[arm, j], level, level) / count
            known[arm, j] = count
            clear[arm, j] = 1.0 if fits else 0.0


@part
def estimate_self_tuned(
    L: float, constants: EstimatorConstants, n: Floats, mean: Floats, sketches: SketchState
) -> None:
    """Self-tuned means and indices."""
    top, filled, rest, squares = sketches.top, sketches.filled, sketches.rest, sketches.squares
    upper, centre = sketches.upper, sketches.centre
    for arm in range(n.shape[0]):
        for j in range(n.shape[1]):
            mean[arm, j] = upper[arm, j] = np.inf
            count = n[arm, j]
            if count == 0.0 or count < constants.pilot or count <= constants.guard * L:
                continue
            threshold = sketch_root(top[arm, j], filled[arm, j], squares[arm, j], constants.kappa * L)
            if threshold == 0.0:
                continue
            total = sketch_clipsum(
                top[arm, j], filled[arm, j], rest[arm, j], threshold, constants.omega * threshold
            )
            mean[arm, j] = centre[arm, j] + total / count
            upper[arm, j] = mean[arm, j] + tuned_reach(constants.C, threshold, L, count)


@part
def find_medians(
    L: float, means_too: bool, edges: Floats, n: Floats, mean: Floats, sketches: SketchState
) -> None:
    """Median bounds; the medians themselves only if `means_too`."""
    counts, place, below, upper = sketches.counts, sketches.place, sketches.below, sketches.upper
    for arm in range(n.shape[0]):
        for j in range(n.shape[1]):
            mean[arm, j] = upper[arm, j] = np.inf
            if n[arm, j] == 0.0:
                continue
            if means_too:
                middle = math.ceil(n[arm, j] / 2.0)
                at = _quantile(0, middle, arm, j, counts, place, below)
                mean[arm, j] = edges[min(at, edges.shape[0] - 2)]
            rank = upper_rank(n[arm, j], L)
            if rank <= n[arm, j]:
                upper[arm, j] = edges[_quantile(1, rank, arm, j, counts, place, below)]


@part
def _quantile(which: int, rank: float, arm: int, j: int, counts: Ids, place: Ids, below: Ids) -> int:
    """The bin of the sample of that rank; the stored position moves by whole bins."""
    at, under = place[which, arm, j], below[which, arm, j]
    while under >= rank:
        at -= 1
        under -= counts[arm, j, at]
    while under + counts[arm, j, at] < rank:
        under += counts[arm, j, at]
        at += 1
    place[which, arm, j] = at
    below[which, arm, j] = under
    return at


@part
def choose_by_index(index: Floats, best: Floats, action: Ids) -> None:
    """The arm of the largest index for every learner; the lowest arm on ties."""
    for j in range(best.shape[0]):
        best[j] = -np.inf
    for arm in range(index.shape[0]):
        for j in range(best.shape[0]):
            if index[arm, j] > best[j]:
                best[j] = index[arm, j]
                action[j] = arm
