"""Means that keep a few numbers per arm and learner: clipped, self-tuned, median bound, MOSS, Huber.

Every sample is taken in as it comes, by the same formulas and in the same order as the readable streams.
"""

from __future__ import annotations

import math

import numpy as np

from rumormill import formulas
from rumormill.kernels.jit import part
from rumormill.kernels.state import (
    CATONI,
    CLIPPED,
    HUBER_SGD,
    MEDIAN_BOUND,
    MEDIAN_OF_MEANS,
    ROBUST_MOSS,
    SELF_TUNED,
    Floats,
    Hearing,
    Memory,
    Rules,
    State,
    Streams,
    Tuning,
)
from rumormill.kernels.stored import store

clip_level = part(formulas.clip_level)
clipped = part(formulas.clipped)
histogram_bin = part(formulas.histogram_bin)
huber_reach = part(formulas.huber_reach)
huber_step = part(formulas.huber_step)
moss_clip = part(formulas.moss_clip)
moss_phi = part(formulas.moss_phi)
moss_reach = part(formulas.moss_reach)
sketch_add = part(formulas.sketch_add)
sketch_clipsum = part(formulas.sketch_clipsum)
sketch_root = part(formulas.sketch_root)
tuned_reach = part(formulas.tuned_reach)
upper_rank = part(formulas.upper_rank)

# Makes the median distance of Gaussian samples their standard deviation.
GAUSSIAN = 1.4826


@part
def deliver_each(t: int, hearing: Hearing, rules: Rules, memory: Memory) -> None:
    """End of round t, sample by sample: own first, then the oldest, then by origin."""
    ring = memory.ring
    slots = ring.arm.shape[0]
    for j in range(hearing.learners.shape[0]):
        v = hearing.learners[j]
        slot = t % slots
        take(ring.x[slot, v], ring.arm[slot, v], j, rules, memory)
        for hop in range(min(hearing.gamma, t), 0, -1):
            slot = (t - hop + 1) % slots
            for i in range(hearing.source_ptr[j, hop - 1], hearing.source_ptr[j, hop]):
                origin = hearing.sources[i]
                if ring.told[slot, origin]:
                    take(ring.x[slot, origin], ring.arm[slot, origin], j, rules, memory)


@part
def take(x: float, arm: int, j: int, rules: Rules, memory: Memory) -> None:
    """One more sample of a learner."""
    state, streams, tuning = memory.state, memory.streams, rules.tuning
    kind = rules.kind
    if kind in (MEDIAN_OF_MEANS, CATONI):
        store(x, arm, j, kind == MEDIAN_OF_MEANS, state)
        return
    n = state.n[arm, j] + 1.0
    state.n[arm, j] = n
    state.changed[arm] = True
    if kind == CLIPPED:
        _sketch(x, arm, j, streams)
    elif kind == SELF_TUNED:
        _take_tuned(x, n, arm, j, tuning, streams)
    elif kind == MEDIAN_BOUND:
        at = histogram_bin(x, tuning.scale)
        streams.counts[arm, j, at] += 1
        for which in range(2):
            if at < streams.place[which, arm, j]:
                streams.below[which, arm, j] += 1
    elif kind == ROBUST_MOSS:
        _take_moss(x, n, arm, j, rules, state, streams)
    elif kind == HUBER_SGD:
        _take_huber(x, n, arm, j, tuning, streams)


@part
def _sketch(y: float, arm: int, j: int, streams: Streams) -> None:
    filled, rest, squares = sketch_add(
        streams.top[arm, j], streams.filled[arm, j], y, streams.rest[arm, j], streams.squares[arm, j]
    )
    streams.filled[arm, j] = filled
    streams.rest[arm, j] = rest
    streams.squares[arm, j] = squares


@part
def _take_tuned(x: float, n: float, arm: int, j: int, tuning: Tuning, streams: Streams) -> None:
    if n > tuning.pilot:
        _sketch(x - streams.centre[arm, j], arm, j, streams)
        return
    early = streams.pilot[arm, j]
    early[int(n) - 1] = x
    if n == tuning.pilot:
        centre = np.sort(early)[tuning.pilot // 2]
        streams.centre[arm, j] = centre
        for i in range(tuning.pilot):
            _sketch(early[i] - centre, arm, j, streams)


@part
def _take_moss(x: float, n: float, arm: int, j: int, rules: Rules, state: State, streams: Streams) -> None:
    tuning = rules.tuning
    if n == 1.0:
        streams.level[arm, j] = 1.0
    if streams.level[arm, j] <= n:
        level = streams.level[arm, j]
        while level <= n:
            level *= tuning.growth
        streams.level[arm, j] = level
        streams.clip[arm, j] = moss_clip(moss_phi(level, tuning.budgets[j]), tuning.root, rules.p)
    state.total[arm, j] += clipped(x, streams.clip[arm, j], streams.clip[arm, j])


@part
def _take_huber(x: float, n: float, arm: int, j: int, tuning: Tuning, streams: Streams) -> None:
    if n > tuning.pilot:
        scale = streams.clip[arm, j]
        streams.centre[arm, j] = huber_step(streams.centre[arm, j], x, n, tuning.lam * scale)
        return
    early = streams.pilot[arm, j]
    early[int(n) - 1] = x
    if n == tuning.pilot:
        theta = np.sort(early)[tuning.pilot // 2]
        scale = GAUSSIAN * np.sort(np.abs(early - theta))[tuning.pilot // 2]
        for i in range(tuning.pilot):
            theta = huber_step(theta, early[i], i + 1.0, tuning.lam * scale)
        streams.centre[arm, j] = theta
        streams.clip[arm, j] = scale


@part
def estimate_streams(t: int, rules: Rules, memory: Memory) -> None:
    """The mean of every arm and learner, and the index where the estimator brings its own."""
    state, streams = memory.state, memory.streams
    mean, index, n, L = state.mean, streams.upper, state.n, rules.L[t]
    for arm in range(n.shape[0]):
        for j in range(n.shape[1]):
            if n[arm, j] == 0.0:
                mean[arm, j] = np.inf
                if rules.own_index:
                    index[arm, j] = np.inf
            elif rules.kind == CLIPPED:
                _clip_mean(L, arm, j, rules, state, streams)
            elif rules.kind == SELF_TUNED:
                _tune(L, arm, j, rules.tuning, state, streams)
            elif rules.kind == MEDIAN_BOUND:
                if rules.quiet >= 0.0:
                    mean[arm, j] = _quantile(0, math.ceil(n[arm, j] / 2.0), arm, j, rules.tuning, streams)
                rank = upper_rank(n[arm, j], L)
                index[arm, j] = np.inf
                if rank <= n[arm, j]:
                    index[arm, j] = _quantile(1, rank, arm, j, rules.tuning, streams)
            elif rules.kind == ROBUST_MOSS:
                mean[arm, j] = state.total[arm, j] / n[arm, j]
                phi = moss_phi(n[arm, j], rules.tuning.budgets[j])
                index[arm, j] = mean[arm, j] + moss_reach(phi, rules.tuning.reach, rules.exponent)
            else:
                mean[arm, j] = index[arm, j] = np.inf
                if n[arm, j] >= rules.tuning.pilot:
                    mean[arm, j] = streams.centre[arm, j]
                    reach = huber_reach(L, n[arm, j], rules.tuning.coeff * streams.clip[arm, j])
                    index[arm, j] = mean[arm, j] + reach


@part
def _clip_mean(L: float, arm: int, j: int, rules: Rules, state: State, streams: Streams) -> None:
    """The clipped mean; nothing to do where no sample came and none was or is clipped."""
    n, top = state.n[arm, j], streams.top[arm, j]
    level = clip_level(n, L, rules.tuning.clip_budget, rules.p)
    clear = level >= abs(top[0])
    if state.known[arm, j] == n and clear and streams.level[arm, j] == 1.0:
        return
    total = sketch_clipsum(top, streams.filled[arm, j], streams.rest[arm, j], level, level)
    state.mean[arm, j] = total / n
    state.known[arm, j] = n
    streams.level[arm, j] = 1.0 if clear else 0.0


@part
def _tune(L: float, arm: int, j: int, tuning: Tuning, state: State, streams: Streams) -> None:
    n, top, filled = state.n[arm, j], streams.top[arm, j], streams.filled[arm, j]
    state.mean[arm, j] = streams.upper[arm, j] = np.inf
    if n < tuning.pilot or n <= tuning.guard * L:
        return
    threshold = sketch_root(top, filled, streams.squares[arm, j], tuning.kappa * L)
    if threshold == 0.0:
        return
    total = sketch_clipsum(top, filled, streams.rest[arm, j], threshold, tuning.omega * threshold)
    mean = streams.centre[arm, j] + total / n
    state.mean[arm, j] = mean
    streams.upper[arm, j] = mean + tuned_reach(tuning.C, threshold, L, n)


@part
def _quantile(which: int, rank: float, arm: int, j: int, tuning: Tuning, streams: Streams) -> float:
    """The upper edge of the bin of the sample of that rank; a place in the histogram moves by whole bins."""
    counts = streams.counts[arm, j]
    place, below = streams.place[which, arm, j], streams.below[which, arm, j]
    while below >= rank:
        place -= 1
        below -= counts[place]
    while below + counts[place] < rank:
        below += counts[place]
        place += 1
    streams.place[which, arm, j] = place
    streams.below[which, arm, j] = below
    return tuning.edges[place]


@part
def choose_by_index(index: Floats, state: State) -> None:
    """The arm of the largest index for every learner; the lowest arm on ties."""
    best, action = state.best_index, state.action
    for j in range(best.shape[0]):
        best[j] = -np.inf
    for arm in range(index.shape[0]):
        for j in range(best.shape[0]):
            if index[arm, j] > best[j]:
                best[j] = index[arm, j]
                action[j] = arm
