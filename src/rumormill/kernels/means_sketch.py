"""Means that keep a few numbers per arm and learner: clipped, self-tuned, median bound, MOSS, Huber.

What a learner hears in a round is gathered first, in order of arrival, and then taken in at one go, by the
same formulas as the readable streams.
"""

from __future__ import annotations

import math

import numpy as np

from rumormill import formulas
from rumormill.kernels.jit import part, step
from rumormill.kernels.means_stored import select
from rumormill.kernels.state import (
    CLIPPED,
    HUBER_SGD,
    MEDIAN_BOUND,
    ROBUST_MOSS,
    SELF_TUNED,
    Floats,
    Hearing,
    Ids,
    Memory,
    Ring,
    Rules,
    State,
    Streams,
    Tuning,
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


# --- taking samples in ------------------------------------------------------------------------------------


@step
def deliver_streams(kind: int, t: int, hearing: Hearing, rules: Rules, memory: Memory) -> None:
    """End of round t: whatever every learner hears."""
    ring, tuning, arms, xs = memory.ring, rules.tuning, memory.streams.arms, memory.streams.xs
    if kind == MEDIAN_BOUND:
        slot = t % ring.x.shape[0]
        for v in range(ring.x.shape[1]):
            ring.need[slot, v] = histogram_bin(ring.x[slot, v], tuning.scale)
    values = ring.need if kind == MEDIAN_BOUND else ring.x
    for j in range(hearing.learners.shape[0]):
        count = gather(t, j, hearing, ring, values, arms, xs)
        take_in(kind, count, arms, xs, j, rules, memory)


@step
def take_in(kind: int, count: int, arms: Ids, xs: Floats, j: int, rules: Rules, memory: Memory) -> None:
    """Samples (or their bins) into the means of learner j, in this order."""
    n, streams, tuning = memory.state.n, memory.streams, rules.tuning
    for i in range(count):
        memory.state.changed[arms[i]] = True
    if kind == CLIPPED:
        take_sketched(count, arms, xs, j, n, 0, streams)
    elif kind == SELF_TUNED:
        take_sketched(count, arms, xs, j, n, tuning.pilot, streams)
    elif kind == MEDIAN_BOUND:
        take_counted(count, arms, xs, j, n, streams.counts, streams.place, streams.below)
    elif kind == ROBUST_MOSS:
        take_moss(count, arms, xs, j, rules.p, tuning, memory.state, streams)
    elif kind == HUBER_SGD:
        take_huber(count, arms, xs, j, n, tuning, streams)


@step
def gather(t: int, j: int, hearing: Hearing, ring: Ring, values: Floats, arms: Ids, xs: Floats) -> int:
    """What learner j gets in round t: own first, then the oldest, then by origin. Returns how much."""
    slots = ring.arm.shape[0]
    v, slot = hearing.learners[j], t % slots
    arms[0], xs[0], count = ring.arm[slot, v], values[slot, v], 1
    for hop in range(min(hearing.gamma, t), 0, -1):
        slot = (t - hop + 1) % slots
        for i in range(hearing.source_ptr[j, hop - 1], hearing.source_ptr[j, hop]):
            origin = hearing.sources[i]
            if ring.told[slot, origin]:
                arms[count] = ring.arm[slot, origin]
                xs[count] = values[slot, origin]
                count += 1
    return count


@part
def take_sketched(count: int, arms: Ids, xs: Floats, j: int, n: Floats, pilot: int, streams: Streams) -> None:
    """Samples into the sketches, about a centre once the pilot is over."""
    top, filled, rest, squares = streams.top, streams.filled, streams.rest, streams.squares
    last = top.shape[2] - 1
    for i in range(count):
        arm = arms[i]
        n[arm, j] += 1.0
        if n[arm, j] <= pilot:
            _take_pilot(xs[i], int(n[arm, j]), arm, j, pilot, streams)
            continue
        y = xs[i] - streams.centre[arm, j]
        if filled[arm, j] > last and abs(y) <= abs(top[arm, j, last]):  # nearly always, in the end
            rest[arm, j] += y
            squares[arm, j] += y * y
        else:
            _sketch(y, arm, j, streams)


@part
def _take_pilot(x: float, n: int, arm: int, j: int, pilot: int, streams: Streams) -> None:
    early = streams.pilot[arm, j]
    early[n - 1] = x
    if n == pilot:
        centre = middle(early, 0.0, False, streams.room)
        streams.centre[arm, j] = centre
        for i in range(pilot):
            _sketch(early[i] - centre, arm, j, streams)


@part
def middle(values: Floats, centre: float, sizes: bool, room: Floats) -> float:
    """The median of an odd number of values about a centre, or of their sizes."""
    for i in range(values.shape[0]):
        room[i] = abs(values[i] - centre) if sizes else values[i] - centre
    return select(room, values.shape[0], values.shape[0] // 2)


@part
def _sketch(y: float, arm: int, j: int, streams: Streams) -> None:
    filled, rest, squares = sketch_add(
        streams.top[arm, j], streams.filled[arm, j], y, streams.rest[arm, j], streams.squares[arm, j]
    )
    streams.filled[arm, j] = filled
    streams.rest[arm, j] = rest
    streams.squares[arm, j] = squares


@part
def take_counted(
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
def take_moss(
    count: int, arms: Ids, xs: Floats, j: int, p: float, tuning: Tuning, state: State, streams: Streams
) -> None:
    """Samples clipped by their rank, into sums."""
    n, total, levels, clips = state.n, state.total, streams.level, streams.clip
    for i in range(count):
        arm = arms[i]
        rank = n[arm, j] + 1.0
        n[arm, j] = rank
        level = levels[arm, j]
        if level <= rank:
            while level <= rank:
                level *= tuning.growth
            levels[arm, j] = level
            clips[arm, j] = moss_clip(moss_phi(level, tuning.budgets[j]), tuning.root, p)
        total[arm, j] += clipped(xs[i], clips[arm, j], clips[arm, j])


@part
def take_huber(
    count: int, arms: Ids, xs: Floats, j: int, n: Floats, tuning: Tuning, streams: Streams
) -> None:
    """One clipped step per sample, once the scale is known."""
    theta, scale, lam, pilot = streams.centre, streams.clip, tuning.lam, tuning.pilot
    for i in range(count):
        arm = arms[i]
        rank = n[arm, j] + 1.0
        n[arm, j] = rank
        if rank > pilot:
            if scale[arm, j] == 0.0:  # every sample so far was the same
                scale[arm, j] = huber_scale(0.0, abs(xs[i] - theta[arm, j]), rank)
            theta[arm, j] = huber_step(theta[arm, j], xs[i], rank, lam * scale[arm, j])
            continue
        early = streams.pilot[arm, j]
        early[int(rank) - 1] = xs[i]
        if rank == pilot:
            _walk_pilot(arm, j, lam, theta, scale, streams)


@part
def _walk_pilot(arm: int, j: int, lam: float, theta: Floats, scale: Floats, streams: Streams) -> None:
    early = streams.pilot[arm, j]
    centre = middle(early, 0.0, False, streams.room)
    total = 0.0
    for i in range(early.shape[0]):
        total += abs(early[i] - centre)
    spread = huber_scale(middle(early, centre, True, streams.room), total, float(early.shape[0]))
    for i in range(early.shape[0]):
        centre = huber_step(centre, early[i], i + 1.0, lam * spread)
    theta[arm, j] = centre
    scale[arm, j] = spread


# --- means and indices ------------------------------------------------------------------------------------


@step
def estimate_streams(kind: int, t: int, rules: Rules, memory: Memory) -> None:
    """The mean of every arm and learner, and the index where the estimator brings its own."""
    L, state, streams, tuning = rules.L[t], memory.state, memory.streams, rules.tuning
    n, mean, upper = state.n, state.mean, streams.upper
    if kind == CLIPPED:
        clip_means(L, rules.p, tuning.clip_budget, state, streams)
    elif kind == SELF_TUNED:
        tune(L, tuning, n, mean, streams)
    elif kind == MEDIAN_BOUND:
        find_medians(L, rules.quiet >= 0.0, tuning.edges, n, mean, streams)
    elif kind == ROBUST_MOSS:
        for arm in range(n.shape[0]):
            for j in range(n.shape[1]):
                mean[arm, j] = upper[arm, j] = np.inf
                if n[arm, j] > 0.0:
                    phi = moss_phi(n[arm, j], tuning.budgets[j])
                    mean[arm, j] = state.total[arm, j] / n[arm, j]
                    upper[arm, j] = mean[arm, j] + moss_reach(phi, tuning.reach, rules.exponent)
    else:
        for arm in range(n.shape[0]):
            for j in range(n.shape[1]):
                mean[arm, j] = upper[arm, j] = np.inf
                if n[arm, j] > 0.0 and n[arm, j] >= tuning.pilot:
                    reach = huber_reach(L, n[arm, j], tuning.coeff * streams.clip[arm, j])
                    mean[arm, j] = streams.centre[arm, j]
                    upper[arm, j] = mean[arm, j] + reach


@part
def clip_means(L: float, p: float, budget: float, state: State, streams: Streams) -> None:
    """Clipped means; nothing to do where no sample came and none was or is clipped."""
    n, mean, known, clear = state.n, state.mean, state.known, streams.level
    top, filled, rest = streams.top, streams.filled, streams.rest
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
def tune(L: float, tuning: Tuning, n: Floats, mean: Floats, streams: Streams) -> None:
    """Self-tuned means and indices."""
    top, filled, rest, squares = streams.top, streams.filled, streams.rest, streams.squares
    upper, centre = streams.upper, streams.centre
    for arm in range(n.shape[0]):
        for j in range(n.shape[1]):
            mean[arm, j] = upper[arm, j] = np.inf
            count = n[arm, j]
            if count == 0.0 or count < tuning.pilot or count <= tuning.guard * L:
                continue
            threshold = sketch_root(top[arm, j], filled[arm, j], squares[arm, j], tuning.kappa * L)
            if threshold == 0.0:
                continue
            total = sketch_clipsum(
                top[arm, j], filled[arm, j], rest[arm, j], threshold, tuning.omega * threshold
            )
            mean[arm, j] = centre[arm, j] + total / count
            upper[arm, j] = mean[arm, j] + tuned_reach(tuning.C, threshold, L, count)


@part
def find_medians(L: float, means_too: bool, edges: Floats, n: Floats, mean: Floats, streams: Streams) -> None:
    """Median bounds; the medians themselves only where somebody asks for them."""
    counts, place, below, upper = streams.counts, streams.place, streams.below, streams.upper
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
    """The bin of the sample of that rank; a place in the histogram moves by whole bins."""
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
