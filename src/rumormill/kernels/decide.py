"""Kernels that decide: UCB index, argmax, shared start, and what is sent under quiet messaging.

The arm of the largest index, for all learners at once.

A power of every count in every round would take longer than all else. It is estimated from that of an
earlier count, with a known error, and mostly that tells which index is the largest (simd/argmax_index.py);
only where it does not are the indices themselves computed.
"""

from __future__ import annotations

import numpy as np

from rumormill import formulas
from rumormill.formulas import NEAR
from rumormill.kernels.jit import part, step
from rumormill.kernels.kmp import note_news, rank
from rumormill.kernels.simd.argmax_index import ABOVE, SLACK_OF_SUM, STRIP, argmax_by_bounds, shrinkage_near
from rumormill.kernels.simd.bitmask import lowest_bit
from rumormill.kernels.state import Bounds, Floats, Hearing, Ids, Memory, Output, Rules, shrinkage

upper_index = step(formulas.upper_index)
shrinkage_series = part(formulas.shrinkage_series)


@part
def to_power(n: float, powers: Floats, exponent: float) -> float:
    """n^-exponent."""
    return powers[int(n)] if n < powers.shape[0] else shrinkage(n, exponent)


@part
def choose(
    scale: float,
    least: float,
    mean: Floats,
    n: Floats,
    powers: Floats,
    exponent: float,
    bounds: Bounds,
    action: Ids,
) -> None:
    """The arm of the largest index for every learner; the lowest arm on ties."""
    power, inverse = bounds.power, bounds.inverse
    second, third, too_small = shrinkage_series(exponent)
    for lane in range(0, action.shape[0], STRIP):
        if least > 1.0:  # few estimators ask for that, and they take long anyway
            unclear = (np.uint64(1) << np.uint64(min(STRIP, action.shape[0] - lane))) - np.uint64(1)
        else:
            unclear = argmax_by_bounds(
                scale, exponent, second, third, too_small, mean, n, powers, power, inverse, action, lane
            )
        while unclear != 0:
            j = lane + lowest_bit(unclear)
            unclear &= unclear - np.uint64(1)
            choose_exactly(j, scale, least, exponent, mean, n, powers, power, inverse, action)


@part
def choose_exactly(
    j: int,
    scale: float,
    least: float,
    exponent: float,
    mean: Floats,
    n: Floats,
    powers: Floats,
    power: Floats,
    inverse: Floats,
    action: Ids,
) -> None:
    """The arm of one learner by the indices themselves, of all arms whose estimates leave it open."""
    second, third, too_small = shrinkage_series(exponent)
    low = -np.inf
    for arm in range(n.shape[0]):
        count = n[arm, j]
        h = count * inverse[arm, j] - 1.0
        if count > 0.0 and not 0.0 <= h <= NEAR:
            power[arm, j], inverse[arm, j] = to_power(count, powers, exponent), ABOVE / count
            h = 0.0
        index = upper_index(mean[arm, j], scale * power[arm, j], shrinkage_near(h, exponent, second, third))
        low = index if index > low else low
    best = -np.inf
    for arm in range(n.shape[0]):
        count = n[arm, j]
        index = np.inf
        if count >= least:
            h, radius = count * inverse[arm, j] - 1.0, scale * power[arm, j]
            index = upper_index(mean[arm, j], radius, shrinkage_near(h, exponent, second, third))
            doubt = radius * too_small + SLACK_OF_SUM * (abs(index) + abs(low))
            if not index + doubt < low:
                index = upper_index(mean[arm, j], scale, to_power(count, powers, exponent))
        if index > best:
            best = index
            action[j] = arm


shared_arm = part(formulas.shared_arm)
worth_telling = part(formulas.worth_telling)


@step
def begin(t: int, hearing: Hearing, memory: Memory) -> None:
    """Learners that have not heard of every arm pull one of those in round t <= K."""
    state = memory.state
    for j in range(hearing.learners.shape[0]):
        arm = shared_arm(t, hearing.learners[j], state.n[:, j])
        state.begins[j] = arm >= 0
        if arm >= 0:
            state.action[j] = arm


@step
def tell(t: int, hearing: Hearing, rules: Rules, memory: Memory) -> None:
    """Who tells of its pull of round t, and how many messages are sent in that round."""
    state, ring = memory.state, memory.ring
    slots = ring.arm.shape[0]
    told, arms = ring.told[t % slots], ring.arm[t % slots]
    for v in range(told.shape[0]):
        j = hearing.learner_of[v]
        told[v] = (
            t <= rules.n_arms
            or rules.always_tells[v]
            or worth_telling(arms[v], state.mean[:, j], state.n[:, j], rules.quiet)
        )
    for hop in range(min(hearing.gamma, t)):
        then = ring.told[(t - hop) % slots]
        for v in range(then.shape[0]):
            if then[v]:
                state.sent[0] += rules.copies[hop, v]


@step
def note_sent(t: int, memory: Memory, output: Output) -> None:
    """If round t is the next checkpoint, note the messages sent so far."""
    if t == output.marks[memory.state.mark[0]]:
        output.messages[memory.state.mark[0]] = memory.state.sent[0]


@step
def publish_told(t: int, values: Floats, rules: Rules, memory: Memory) -> None:
    """Rows of KMP-UCB where not everybody tells: whoever is silent is known by its last words."""
    state, rows = memory.state, memory.rows
    slots = rows.n.shape[0]
    slot, before = t % slots, (t - 1) % slots
    told = memory.ring.told[slot]
    for arm in range(values.shape[0]):
        for v in range(values.shape[1]):
            if not told[v]:
                rows.n[slot, arm, v] = rows.n[before, arm, v]
                rows.mean[slot, arm, v] = rows.mean[before, arm, v]
            elif t <= rules.n_arms and (state.begins[v] or not rules.shared_start):
                rows.n[slot, arm, v] = 0.0
            else:
                rows.n[slot, arm, v] = state.n[arm, v]
                rows.mean[slot, arm, v] = values[arm, v]
        rows.n_news[slot, arm] = note_news(rows.n[slot, arm], rows.n[before, arm], rows.news[slot, arm])
        rank(rows.n[slot, arm], rows.top[before, arm], rows.top[slot, arm])
