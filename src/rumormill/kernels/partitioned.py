"""Rounds of very many agents on a sparse network, part by part.

The kernel in block.py takes every sample to all its hearers, wherever their sums lie: with more agents than
the processor's caches hold, each delivery then waits for memory. Here the agents are cut into parts. The
sums of a part stay in the cache while everybody's samples go by in the order of their origins, and a tile of
agents after another decides and pulls at one go. Each agent adds its samples in the same order as
everywhere, so the sums have the same bits.

Parts do not depend on each other within a round and may be played by several threads. What agents say in
round t is written where nobody reads before round t + 1 (γ + 1 slots), so all parts must have finished round
t before any begins round t + 1, and that is all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from rumormill import formulas
from rumormill.kernels.jit import kernel, step
from rumormill.kernels.means_sums import add_doubtful, power_of_size, rank_needed, sure_size, take_out
from rumormill.kernels.state import Calendar, Floats, Ids, Ints, Law, Output, Rules, Trimming, shrinkage

upper_index = step(formulas.upper_index)

TILE = 256


class Said(NamedTuple):
    """The samples of the last rounds, [slot, agent]; round t is in slot t mod slots."""

    arm: Ids
    x: Floats
    need: Floats
    """The rank from which the sample surely stays to the end; 0: whatever its rank."""
    power: Floats
    """|x|^p, where `need` is above 0."""


class Told(NamedTuple):
    """What agents tell of all arms (KMP-UCB), [slot, arm, agent]."""

    mean: Floats
    row: Ints
    """The count and who has it, in one number that is larger where more is known: see below."""


class Part(NamedTuple):
    """What no other part touches. Agents are numbered from 0; [arm, agent] unless said otherwise."""

    number: int
    low: int
    """The first agent."""
    ptr: Ints
    """[hop]: what is heard over h hops is at ptr[h - 1] .. ptr[h]."""
    origin: Ids
    """Sorted, within a hop."""
    hearer: Ids
    n: Floats
    total: Floats
    heard: Ints
    """The best row ever heard of an arm, and how many hops away its agent is (KMP-UCB)."""
    heard_hop: Ids
    pulls: Ints
    """[agent, arm]."""
    mean: Floats
    """[arm, lane]: a tile at work, and below its (best informed) counts, indices and arms."""
    counts: Floats
    power: Floats
    best: Floats
    action: Ids
    sure_x: Floats
    """Per arm, a sample of at most this size stays to the end in everybody's mean."""


@cache
def crowd_kernel(rows: bool) -> Callable[..., None]:
    """Rounds of running sums, with or without KMP's rows."""

    @kernel
    def play_part(
        first: int,
        mark: int,
        draws: Floats,
        law: Law,
        rules: Rules,
        part: Part,
        calendar: Calendar,
        said: Said,
        told: Told,
        fewest: Floats,
        output: Output,
    ) -> None:
        """Rounds first .. first + len(draws) - 1 of one part; `mark` is the next checkpoint.

        fewest[t mod 2, part, arm]: how many samples the worst informed agent has.
        """
        n_arms, size = rules.n_arms, part.n.shape[1]
        trimming = Trimming(rules.u, rules.p, rules.L)
        last_L = rules.L[rules.horizon]
        for row in range(draws.shape[0]):
            t = first + row
            asked = min(max(t, n_arms + 1), rules.horizon)
            if rules.trims and t > n_arms:
                take_out(t, part.total, calendar)
            if rules.trims:
                find_sure_sizes(fewest[(t - 1) % 2], last_L, trimming, part.sure_x)
            if t > 1:
                listen(t, asked, trimming, part, said, calendar)
            if rows and t > n_arms + 1:
                hear_rows(t, n_arms, part, told)
            for arm in range(n_arms):
                fewest[t % 2, part.number, arm] = np.inf if t > n_arms else 0.0
            at_mark = mark < output.marks.shape[0] and t == output.marks[mark]
            for low in range(0, size, TILE):
                high = min(low + TILE, size)
                if t > n_arms:
                    know(low, high, rules, part, fewest[t % 2, part.number])
                    if rows:
                        publish(t, low, high, part, told)
                        best_informed(t, low, high, part, told)
                    choose(high - low, rules.scale[t], rules.least_n[t], rules, part)
                else:
                    for lane in range(TILE):
                        part.action[lane] = t - 1
                pull(t, low, high, draws[row], law, rules.trims, last_L, trimming, part, said)
                if output.actions.shape[0] > 0:
                    for j in range(low, high):
                        output.actions[t - 1, part.low + j] = part.action[j - low]
                if at_mark:
                    note_regret(mark, low, high, rules.gaps, part, output.agent_regret)
            mark += at_mark

    return play_part


@step
def back(slot: int, hop: int, slots: int) -> int:
    """The slot of so many rounds before; a division would cost more than what it is for."""
    return slot - hop if slot >= hop else slot - hop + slots


@step
def find_sure_sizes(fewest: Floats, last_L: float, trimming: Trimming, sure_x: Floats) -> None:
    """From the counts of a round ago: they only grow."""
    for arm in range(sure_x.shape[0]):
        least = np.inf
        for number in range(fewest.shape[0]):
            least = min(least, fewest[number, arm])
        sure_x[arm] = sure_size(least, trimming.u, trimming.p, last_L)


@step
def listen(t: int, asked: int, trimming: Trimming, part: Part, said: Said, calendar: Calendar) -> None:
    """What came at the end of round t - 1: own samples first, then the farthest hop first, by origin."""
    n, total = part.n, part.total
    slots = said.arm.shape[0]
    slot = t % slots
    then = back(slot, 1, slots)
    for j in range(n.shape[1]):
        v = part.low + j
        arm, x = said.arm[then, v], said.x[then, v]
        n[arm, j] += 1.0
        if n[arm, j] >= said.need[then, v]:
            total[arm, j] += x
        else:
            power = said.power[then, v]
            place = arm * total.shape[1] + j
            add_doubtful(x, power, n[arm, j], place, asked, trimming, total, calendar)
    for hop in range(min(part.ptr.shape[0] - 1, t - 1), 0, -1):
        then = back(slot, hop, slots)
        arms, xs, needs = said.arm[then], said.x[then], said.need[then]
        for i in range(part.ptr[hop - 1], part.ptr[hop]):
            origin, j = part.origin[i], part.hearer[i]
            arm, x = arms[origin], xs[origin]
            n[arm, j] += 1.0
            if n[arm, j] >= needs[origin]:
                total[arm, j] += x
            else:
                power = said.power[then, origin]
                place = arm * total.shape[1] + j
                add_doubtful(x, power, n[arm, j], place, asked, trimming, total, calendar)


@step
def know(low: int, high: int, rules: Rules, part: Part, fewest: Floats) -> None:
    """The means and counts of a tile, and the fewest samples in it."""
    for arm in range(part.n.shape[0]):
        n, total, mean, count = part.n[arm], part.total[arm], part.mean[arm], part.counts[arm]
        for lane in range(high - low):
            mean[lane] = total[low + lane] / n[low + lane]
        least = fewest[arm]
        for lane in range(high - low):
            count[lane] = n[low + lane]
            least = count[lane] if count[lane] < least else least
        fewest[arm] = least


@step
def choose(lanes: int, scale: float, least: float, rules: Rules, part: Part) -> None:
    """The arm of the largest index for every lane; the lowest arm on ties."""
    best, action, powers, size = part.best, part.action, rules.powers, rules.powers.shape[0]
    for lane in range(lanes):
        best[lane] = -np.inf
    for arm in range(part.n.shape[0]):
        mean, n, power = part.mean[arm], part.counts[arm], part.power
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
def pull(
    t: int,
    low: int,
    high: int,
    draws: Floats,
    law: Law,
    trims: bool,
    last_L: float,
    trimming: Trimming,
    part: Part,
    said: Said,
) -> None:
    """Everybody's reward, and from which rank it surely stays."""
    slot = t % said.arm.shape[0]
    for j in range(low, high):
        v, arm = part.low + j, part.action[j - low]
        x = law.loc[arm] + law.scale[arm] * draws[v, 0 if law.shared else arm]
        need = 0.0
        if trims and not abs(x) <= part.sure_x[arm]:
            said.power[slot, v] = power_of_size(x, trimming.p)
            need = rank_needed(said.power[slot, v], trimming.u, last_L)
        part.pulls[j, arm] += 1
        said.arm[slot, v] = arm
        said.x[slot, v] = x
        said.need[slot, v] = need


@step
def note_regret(mark: int, low: int, high: int, gaps: Floats, part: Part, agent_regret: Floats) -> None:
    """Every agent's regret so far."""
    for j in range(low, high):
        regret = 0.0
        for arm in range(gaps.shape[0]):
            regret += part.pulls[j, arm] * gaps[arm]
        agent_regret[mark, part.low + j] = regret


# --- KMP-UCB: the best informed row in reach; most samples win, the own on ties, then the smallest origin ---

# A row is n 2^24 + (2^24 - 1 - origin): the largest is the one that wins.
ORIGIN_BITS = 24
MOST_ORIGINS = 1 << ORIGIN_BITS
MOST_SAMPLES = 1 << (62 - ORIGIN_BITS)


@step
def publish(t: int, low: int, high: int, part: Part, told: Told) -> None:
    """What the agents of a tile know in round t."""
    slot = t % told.row.shape[0]
    for arm in range(part.n.shape[0]):
        rows, means = told.row[slot, arm], told.mean[slot, arm]
        for lane in range(high - low):
            v = part.low + low + lane
            rows[v] = (int(part.counts[arm, lane]) << ORIGIN_BITS) + (MOST_ORIGINS - 1 - v)
            means[v] = part.mean[arm, lane]


@step
def hear_rows(t: int, n_arms: int, part: Part, told: Told) -> None:
    """The best row ever heard of each arm: an origin's counts never shrink."""
    slots = told.row.shape[0]
    slot = t % slots
    for hop in range(1, min(part.ptr.shape[0] - 1, t - n_arms - 1) + 1):
        then = back(slot, hop, slots)
        for arm in range(n_arms):
            rows, heard, hops = told.row[then, arm], part.heard[arm], part.heard_hop[arm]
            for i in range(part.ptr[hop - 1], part.ptr[hop]):
                j = part.hearer[i]
                row, best = rows[part.origin[i]], heard[j]
                heard[j] = max(row, best)
                hops[j] = hop if row > best else hops[j]


@step
def best_informed(t: int, low: int, high: int, part: Part, told: Told) -> None:
    """Own mean and count, or those of the best informed row."""
    slots = told.row.shape[0]
    slot = t % slots
    for arm in range(part.n.shape[0]):
        mean, count = part.mean[arm], part.counts[arm]
        for lane in range(high - low):
            row = part.heard[arm, low + lane]
            n = float(row >> ORIGIN_BITS)
            if n > count[lane]:
                origin = MOST_ORIGINS - 1 - (row & (MOST_ORIGINS - 1))
                count[lane] = n
                mean[lane] = told.mean[back(slot, part.heard_hop[arm, low + lane], slots), arm, origin]
