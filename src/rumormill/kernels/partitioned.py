"""Rounds of very many agents on a sparse network, partition by partition.

The kernel in rounds.py delivers every sample to all its receivers, wherever their sums are in memory: with
more agents than the processor's caches hold, each delivery waits for memory. Here the agents are partitioned.
The sums of a partition stay in the cache while all samples are read in the order of their origins, and agents
decide and pull tile by tile. Each agent adds its samples in the same order as in rounds.py and by the same
parts, so the sums have the same bits.

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
from rumormill.kernels.means_sums import compute_required_ranks, count_and_add, remove_expired, sure_size
from rumormill.kernels.state import (
    Calendar,
    Floats,
    Ids,
    Ints,
    Output,
    RewardLaw,
    Rules,
    Trimming,
    compute_regret,
    shrinkage,
)

upper_index = step(formulas.upper_index)

TILE = 256


class SentSamples(NamedTuple):
    """The samples of the last rounds, [slot, agent]; round t is in slot t mod slots."""

    arm: Ids
    x: Floats
    need: Floats
    """The rank from which the sample surely stays to the end; 0: at any rank."""
    power: Floats
    """|x|^p, where `need` is above 0."""


class PackedRows(NamedTuple):
    """Means and counts of all arms that agents send (KMP-UCB), [slot, arm, agent]."""

    mean: Floats
    row: Ints
    """The count and its agent, packed into one number that is larger for the better row: see below."""


class Partition(NamedTuple):
    """What no other partition writes. Agents are numbered from 0; [arm, agent] unless said otherwise."""

    number: int
    low: int
    """The first agent."""
    ptr: Ints
    """[hop]: the pairs (origin, receiver) h hops apart are at ptr[h - 1] .. ptr[h]."""
    origin: Ids
    """Sorted, within a hop."""
    receiver: Ids
    n: Floats
    total: Floats
    best_packed: Ints
    """The best row ever received of an arm, and how many hops away its agent is (KMP-UCB)."""
    received_hop: Ids
    pulls: Ints
    """[agent, arm]."""
    mean: Floats
    """[arm, lane]: of the current tile; so are the counts in use, powers, indices and arms."""
    counts: Floats
    power: Floats
    best: Floats
    action: Ids
    sure_x: Floats
    """Per arm, a sample of at most this size stays to the end in every agent's mean."""


@cache
def partition_kernel(rows: bool) -> Callable[..., None]:
    """Rounds of running sums, with or without the rows of KMP-UCB."""

    @kernel
    def play_partition(
        first: int,
        mark: int,
        draws: Floats,
        law: RewardLaw,
        rules: Rules,
        partition: Partition,
        calendar: Calendar,
        samples: SentSamples,
        packed: PackedRows,
        fewest: Floats,
        output: Output,
    ) -> None:
        """Rounds first .. first + len(draws) - 1 of one partition; `mark` is the next checkpoint.

        fewest[t mod 2, partition, arm]: the smallest sample count of any agent.
        """
        n_arms, size = rules.n_arms, partition.n.shape[1]
        trimming = Trimming(rules.u, rules.p, rules.L)
        last_L = rules.L[rules.horizon]
        for row in range(draws.shape[0]):
            t = first + row
            next_t = min(max(t, n_arms + 1), rules.horizon)
            if rules.trims and t > n_arms:
                remove_expired(t, partition.total, calendar)
            if rules.trims:
                update_sure_sizes(fewest[(t - 1) % 2], last_L, trimming, partition.sure_x)
            if t > 1:
                deliver(t, next_t, trimming, partition, samples, calendar)
            if rows and t > n_arms + 1:
                receive_rows(t, n_arms, partition, packed)
            for arm in range(n_arms):
                fewest[t % 2, partition.number, arm] = np.inf if t > n_arms else 0.0
            at_mark = mark < output.marks.shape[0] and t == output.marks[mark]
            for low in range(0, size, TILE):
                high = min(low + TILE, size)
                if t > n_arms:
                    estimate_tile(low, high, partition, fewest[t % 2, partition.number])
                    if rows:
                        publish_tile(t, low, high, partition, packed)
                        select_best_rows(t, low, high, partition, packed)
                    choose_tile(high - low, rules.scale[t], rules.least_n[t], rules, partition)
                else:
                    for lane in range(TILE):
                        partition.action[lane] = t - 1
                pull_tile(t, low, high, draws[row], law, rules, trimming, partition, samples)
                if output.actions.shape[0] > 0:
                    for j in range(low, high):
                        output.actions[t - 1, partition.low + j] = partition.action[j - low]
                if at_mark:
                    regret = output.agent_regret[mark, partition.low + low : partition.low + high]
                    compute_regret(partition.pulls[low:high], rules.gaps, regret)
            mark += at_mark

    return play_partition


@step
def back(slot: int, hop: int, slots: int) -> int:
    """The slot of so many rounds before, without a division."""
    return slot - hop if slot >= hop else slot - hop + slots


@step
def update_sure_sizes(fewest: Floats, last_L: float, trimming: Trimming, sure_x: Floats) -> None:
    """The sizes up to which samples surely stay, from the counts of the round before: they only grow."""
    for arm in range(sure_x.shape[0]):
        least = np.inf
        for number in range(fewest.shape[0]):
            least = min(least, fewest[number, arm])
        sure_x[arm] = sure_size(least, trimming.u, trimming.p, last_L)


@step
def deliver(
    t: int, next_t: int, trimming: Trimming, partition: Partition, samples: SentSamples, calendar: Calendar
) -> None:
    """The arrivals at the end of round t - 1: own samples first, then the farthest hop first, by origin."""
    n, total = partition.n, partition.total
    slots = samples.arm.shape[0]
    slot = t % slots
    then = back(slot, 1, slots)
    arms, xs, needs, powers = samples.arm[then], samples.x[then], samples.need[then], samples.power[then]
    for j in range(n.shape[1]):
        v = partition.low + j
        count_and_add(arms[v], j, xs[v], needs[v], powers, v, next_t, trimming, n, total, calendar)
    for hop in range(min(partition.ptr.shape[0] - 1, t - 1), 0, -1):
        then = back(slot, hop, slots)
        arms, xs, needs, powers = samples.arm[then], samples.x[then], samples.need[then], samples.power[then]
        for i in range(partition.ptr[hop - 1], partition.ptr[hop]):
            v, j = partition.origin[i], partition.receiver[i]
            count_and_add(arms[v], j, xs[v], needs[v], powers, v, next_t, trimming, n, total, calendar)


@step
def estimate_tile(low: int, high: int, partition: Partition, fewest: Floats) -> None:
    """The means and counts of a tile, and the fewest samples in it."""
    for arm in range(partition.n.shape[0]):
        n, total = partition.n[arm], partition.total[arm]
        mean, count = partition.mean[arm], partition.counts[arm]
        for lane in range(high - low):
            mean[lane] = total[low + lane] / n[low + lane]
        least = fewest[arm]
        for lane in range(high - low):
            count[lane] = n[low + lane]
            least = count[lane] if count[lane] < least else least
        fewest[arm] = least


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
    t: int,
    low: int,
    high: int,
    draws: Floats,
    law: RewardLaw,
    rules: Rules,
    trimming: Trimming,
    partition: Partition,
    samples: SentSamples,
) -> None:
    """The rewards of a tile, and the ranks from which they surely stay."""
    slot, begin, end = t % samples.arm.shape[0], partition.low + low, partition.low + high
    arms, xs = samples.arm[slot, begin:end], samples.x[slot, begin:end]
    for lane in range(high - low):
        arms[lane] = partition.action[lane]
    draw_rewards(draws[begin:end], law, arms, xs, partition.pulls[low:high])
    if rules.trims:
        needs, powers = samples.need[slot, begin:end], samples.power[slot, begin:end]
        compute_required_ranks(arms, xs, partition.sure_x, rules.L[rules.horizon], trimming, needs, powers)


# --- KMP-UCB: the row with most samples in reach; on ties the own, then the smallest origin -----------------

# A row is n 2^24 + (2^24 - 1 - origin): the largest is the one that wins.
ORIGIN_BITS = 24
MOST_ORIGINS = 1 << ORIGIN_BITS
MOST_SAMPLES = 1 << (62 - ORIGIN_BITS)


@step
def publish_tile(t: int, low: int, high: int, partition: Partition, packed: PackedRows) -> None:
    """Store the rows of the agents of a tile in round t."""
    slot = t % packed.row.shape[0]
    for arm in range(partition.n.shape[0]):
        rows, means = packed.row[slot, arm], packed.mean[slot, arm]
        for lane in range(high - low):
            v = partition.low + low + lane
            rows[v] = (int(partition.counts[arm, lane]) << ORIGIN_BITS) + (MOST_ORIGINS - 1 - v)
            means[v] = partition.mean[arm, lane]


@step
def receive_rows(t: int, n_arms: int, partition: Partition, packed: PackedRows) -> None:
    """The best row ever received of each arm: an origin's counts never shrink."""
    slots = packed.row.shape[0]
    slot = t % slots
    for hop in range(1, min(partition.ptr.shape[0] - 1, t - n_arms - 1) + 1):
        then = back(slot, hop, slots)
        for arm in range(n_arms):
            rows, best_packed, hops = (
                packed.row[then, arm],
                partition.best_packed[arm],
                partition.received_hop[arm],
            )
            for i in range(partition.ptr[hop - 1], partition.ptr[hop]):
                j = partition.receiver[i]
                row, best = rows[partition.origin[i]], best_packed[j]
                best_packed[j] = max(row, best)
                hops[j] = hop if row > best else hops[j]


@step
def select_best_rows(t: int, low: int, high: int, partition: Partition, packed: PackedRows) -> None:
    """Own mean and count, or those of the row with most samples."""
    slots = packed.row.shape[0]
    slot = t % slots
    for arm in range(partition.n.shape[0]):
        mean, count = partition.mean[arm], partition.counts[arm]
        for lane in range(high - low):
            row = partition.best_packed[arm, low + lane]
            n = float(row >> ORIGIN_BITS)
            if n > count[lane]:
                origin = MOST_ORIGINS - 1 - (row & (MOST_ORIGINS - 1))
                count[lane] = n
                mean[lane] = packed.mean[
                    back(slot, partition.received_hop[arm, low + lane], slots), arm, origin
                ]
