"""Rounds of very many agents on a sparse network, partition by partition.

The kernel in rounds.py delivers every sample to all its receivers, wherever their sums are in memory: with
more agents than the processor's caches hold, each delivery waits for memory. Here each agent fetches what it
receives, tile by tile: sums are changed, decided on and left behind while they are in the cache, and samples
on their way are few bytes each. An agent adds its samples in the same order as in rounds.py, so its sums have
the same bits.

Partitions are independent within a round and may be played by several threads. The samples of round t are
written to a slot that is not read before round t + 1 (γ + 1 slots): all partitions must have finished round t
before any begins round t + 1.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from rumormill import formulas
from rumormill.kernels.counter_rng import draw_rewards
from rumormill.kernels.jit import kernel, step
from rumormill.kernels.means_sums import add_with_expiry, power_of_size, remove_expired
from rumormill.kernels.simd.own_samples import fetch
from rumormill.kernels.state import (
    Calendar,
    Floats,
    Ids,
    Ints,
    Output,
    RewardLaw,
    Rules,
    Sources,
    Trimming,
    compute_regret,
    shrinkage,
)

upper_index = step(formulas.upper_index)

TILE = 256
# Numbers of origins so far ahead are fetched.
AHEAD = 32


class Sent(NamedTuple):
    """What agents send, [slot, agent] or, of KMP-UCB, [slot, agent, arm]; round t is in slot t mod slots."""

    sources: Sources
    trimming: Trimming
    sure_x: Floats
    """[n]: a sample of at most this size stays to the end as the n-th of a mean, or a later one."""
    arm: Ids
    x: Floats
    mean: Floats
    n: Ids
    """Counts; then, in place of one more arm, by how much they grow in a round at most."""
    due: Ids
    """As Sources.ids: the first round in which the row of that origin may be the best one of an arm."""


class Partition(NamedTuple):
    """What no other partition writes. Agents are numbered from 0; [arm, agent] unless said otherwise."""

    low: int
    """The first agent."""
    n: Floats
    total: Floats
    pulls: Ints
    """[agent, arm]."""
    mean: Floats
    """[arm, lane]: of the current tile; so are the counts in use, powers, indices and arms."""
    counts: Floats
    power: Floats
    best: Floats
    action: Ids
    row: Ints
    """[lane, arm]: the best row received (KMP-UCB)."""


@cache
def partition_kernel(rows: bool) -> Callable[..., None]:
    """Rounds of running sums, with or without the rows of KMP-UCB."""

    @kernel
    def play_partition(
        t: int,
        mark: int,
        draws: Floats,
        law: RewardLaw,
        rules: Rules,
        partition: Partition,
        calendar: Calendar,
        sent: Sent,
        output: Output,
    ) -> None:
        """Round t of one partition; `mark` is the next checkpoint."""
        n_arms, size = rules.n_arms, partition.n.shape[1]
        next_t = min(max(t, n_arms + 1), rules.horizon)
        if rules.trims and t > n_arms:
            remove_expired(t, partition.total, calendar)
        at_mark = mark < output.marks.shape[0] and t == output.marks[mark]
        for low in range(0, size, TILE):
            high = min(low + TILE, size)
            if t > 1:
                deliver(t, next_t, low, high, rows, partition, sent, calendar)
            if t > n_arms:
                estimate_tile(low, high, partition)
                if rows:
                    publish_tile(t, low, high, partition, sent)
                    receive_rows(t, low, high, partition, sent)
                    select_best_rows(t, low, high, partition, sent)
                choose_tile(high - low, rules.scale[t], rules.least_n[t], rules, partition)
            else:
                partition.action[:] = t - 1
            pull_tile(t, low, high, draws, law, partition, sent)
            if output.actions.shape[0] > 0:
                for j in range(low, high):
                    output.actions[t - 1, partition.low + j] = partition.action[j - low]
            if at_mark:
                regret = output.agent_regret[mark, partition.low + low : partition.low + high]
                compute_regret(partition.pulls[low:high], rules.gaps, regret)

    return play_partition


@step
def back(slot: int, hop: int, slots: int) -> int:
    """The slot of so many rounds before, without a division."""
    return slot - hop if slot >= hop else slot - hop + slots


@step
def deliver(
    t: int, next_t: int, low: int, high: int, rows: bool, partition: Partition, sent: Sent, calendar: Calendar
) -> None:
    """The arrivals at the end of round t - 1: own samples first, then the farthest hop first, by origin."""
    ids, ptr, slots = sent.sources.ids, sent.sources.ptr, sent.arm.shape[0]
    slot = t % slots
    then = back(slot, 1, slots)
    arms, xs = sent.arm[then], sent.x[then]
    for j in range(low, high):
        v = partition.low + j
        add(arms[v], j, xs[v], next_t, partition, sent, calendar)
    for hop in range(min(ptr.shape[1], t) - 1, 0, -1):
        then = back(slot, hop, slots)
        arms, xs, counts = sent.arm[then], sent.x[then], sent.n[then if rows else 0]
        for j in range(low, high):
            for i in range(ptr[partition.low + j, hop - 1], ptr[partition.low + j, hop]):
                later = np.uint64(min(i + AHEAD, ids.shape[0] - 1))
                fetch(arms, ids[later])
                fetch(xs, ids[later])
                if rows:
                    fetch(counts, ids[later] * counts.shape[1] if sent.due[later] <= t else 0)
                origin = np.uint32(ids[np.uint64(i)])
                add(arms[origin], j, xs[origin], next_t, partition, sent, calendar)


@step
def add(
    arm: int, j: int, x: float, next_t: int, partition: Partition, sent: Sent, calendar: Calendar
) -> None:
    """Count a sample of agent j and add it, with an expiry where it may not stay to the end."""
    n, total, sure_x = partition.n, partition.total, sent.sure_x
    a, b = np.uint32(arm), np.uint32(j)  # unsigned: no check for an index from the end
    rank = n[a, b] + 1.0
    n[a, b] = rank
    if abs(x) <= sure_x[np.uint32(min(rank, sure_x.shape[0] - 1.0))]:
        total[a, b] += x
    else:
        power, place = power_of_size(x, sent.trimming.p), arm * n.shape[1] + j
        add_with_expiry(x, power, rank, place, next_t, sent.trimming, total, calendar)


@step
def estimate_tile(low: int, high: int, partition: Partition) -> None:
    """The means and counts of a tile."""
    for arm in range(partition.n.shape[0]):
        n, total = partition.n[arm], partition.total[arm]
        mean, count = partition.mean[arm], partition.counts[arm]
        for lane in range(high - low):
            mean[lane] = total[low + lane] / n[low + lane]
            count[lane] = n[low + lane]


@step
def choose_tile(lanes: int, scale: float, least: float, rules: Rules, partition: Partition) -> None:
    """The arm of the largest UCB index for every lane; the lowest arm on ties."""
    best, action, powers, size = partition.best, partition.action, rules.powers, rules.powers.shape[0]
    for lane in range(lanes):
        best[lane] = -np.inf
    for arm in range(partition.n.shape[0]):
        mean, n, power = partition.mean[arm], partition.counts[arm], partition.power
        for lane in range(lanes):
            power[lane] = powers[int(n[lane])] if n[lane] < size else shrinkage(n[lane], rules.exponent)
        for lane in range(lanes):
            index = upper_index(mean[lane], scale, power[lane])
            if n[lane] < least:
                index = np.inf
            better = index > best[lane]
            best[lane] = index if better else best[lane]
            action[lane] = arm if better else action[lane]


@step
def pull_tile(
    t: int, low: int, high: int, draws: Floats, law: RewardLaw, partition: Partition, sent: Sent
) -> None:
    """The rewards of a tile."""
    slot, begin, end = t % sent.arm.shape[0], partition.low + low, partition.low + high
    arms, xs = sent.arm[slot, begin:end], sent.x[slot, begin:end]
    for lane in range(high - low):
        arms[lane] = partition.action[lane]
    draw_rewards(draws[begin:end], law, arms, xs, partition.pulls[low:high])


# --- KMP-UCB: the row with most samples in reach; on ties the own, then the smallest origin -----------------

# A row is a number: the count, then the origin from the last one down, then its distance. The largest wins.
ORIGIN_BITS, HOP_BITS = 24, 7
MOST_ORIGINS, MOST_HOPS, MOST_SAMPLES = 1 << ORIGIN_BITS, 1 << HOP_BITS, 1 << 31
LAST, COUNT_AT = MOST_ORIGINS - 1, ORIGIN_BITS + HOP_BITS


@step
def publish_tile(t: int, low: int, high: int, partition: Partition, sent: Sent) -> None:
    """Store the rows of the agents of a tile in round t."""
    slot, begin = t % sent.n.shape[0], partition.low + low
    for lane in range(high - low):
        for arm in range(partition.n.shape[0]):
            sent.n[slot, begin + lane, arm] = partition.counts[arm, lane]
            sent.mean[slot, begin + lane, arm] = partition.mean[arm, lane]


@step
def receive_rows(t: int, low: int, high: int, partition: Partition, sent: Sent) -> None:
    """The best row of each arm that was received: an origin's counts never shrink, so older rows lose.

    A row that is behind in every arm is read again when it may have caught up: most are far behind.
    """
    ids, ptr, means, due = sent.sources.ids, sent.sources.ptr, sent.mean, sent.due
    n_arms, slots = np.uint64(partition.n.shape[0]), sent.n.shape[0]
    slot, hops = t % slots, min(ptr.shape[1], t - partition.n.shape[0])
    for lane in range(high - low):
        best, v = partition.row[lane], partition.low + low + lane
        for arm in range(n_arms):
            best[arm] = 0
        for hop in range(1, hops):
            counts = sent.n[back(slot, hop, slots)]
            for i in range(np.uint64(ptr[v, hop - 1]), np.uint64(ptr[v, hop])):
                if due[i] > t:
                    continue
                origin, lead = np.uint32(ids[i]), MOST_SAMPLES
                tail = ((LAST - int(ids[i])) << HOP_BITS) + hop
                for arm in range(n_arms):
                    n = int(counts[origin, arm])
                    lead = min(lead, (best[arm] >> COUNT_AT) - n)
                    best[arm] = max(best[arm], (n << COUNT_AT) + tail)
                if lead > 0:
                    due[i] = t + 1 + np.uint32(lead - 1) // np.uint32(counts[origin, n_arms])
        for arm in range(partition.n.shape[0]):
            hop, v = best[arm] & (MOST_HOPS - 1), LAST - ((best[arm] >> HOP_BITS) & LAST)
            fetch(means, (back(slot, hop, slots) * means.shape[1] + v) * means.shape[2] + arm)


@step
def select_best_rows(t: int, low: int, high: int, partition: Partition, sent: Sent) -> None:
    """Own mean and count, or those of the row with most samples."""
    slots = sent.n.shape[0]
    slot = t % slots
    for arm in range(partition.n.shape[0]):
        mean, count = partition.mean[arm], partition.counts[arm]
        for lane in range(high - low):
            row = partition.row[lane, arm]
            n = float(row >> COUNT_AT)
            if n > count[lane]:
                hop, origin = row & (MOST_HOPS - 1), LAST - ((row >> HOP_BITS) & LAST)
                count[lane] = n
                mean[lane] = sent.mean[back(slot, hop, slots), origin, arm]
