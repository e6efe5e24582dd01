"""What agents do with what comes to them: own samples and those of others, words of leaders, rows."""

from __future__ import annotations

import numpy as np

from rumormill.kernels.counter_rng import happens, key_of_three, key_of_two
from rumormill.kernels.flooding import (
    arrive,
    close_lists,
    open_lists,
    set_out,
    sort_out,
    wait,
    wait_listed,
)
from rumormill.kernels.jit import part, step
from rumormill.kernels.kmp import believe
from rumormill.kernels.lossy_state import SCALED, SHIFTED, World
from rumormill.kernels.means_sketch import histogram_bin, take_in
from rumormill.kernels.means_stored import store
from rumormill.kernels.means_sums import add_doubtful, power_of_size, rank_needed
from rumormill.kernels.origins import note_row, take_of_origin
from rumormill.kernels.state import (
    CATONI,
    MEDIAN_BOUND,
    MEDIAN_OF_MEANS,
    ORIGIN_MEDIAN,
    RUNNING,
    Flags,
    Floats,
    Memory,
    Rules,
    Trimming,
)


@part
def judged(
    x: float, sure: float, last_L: float, trims: bool, kind: int, u: float, p: float, scale: float
) -> tuple[float, float]:
    """The rank from which a sample surely stays, and |x|^p (trimmed mean); its bin (histograms)."""
    if trims and abs(x) > sure:
        power = power_of_size(x, p)
        return rank_needed(power, u, last_L), power
    return float(histogram_bin(x, scale)) if kind == MEDIAN_BOUND else 0.0, 0.0


@step
def judge(x: float, arm: int, rules: Rules, sure_x: Floats) -> tuple[float, float]:
    """The same by the rules."""
    last_L, scale = rules.L[rules.horizon], rules.tuning.scale
    return judged(x, sure_x[arm], last_L, rules.trims, rules.kind, rules.u, rules.p, scale)


@part
def falsified(x: float, drawn: float, way: int, amount: float) -> float:
    """What is said in place of x."""
    if way == SHIFTED:
        return x + amount
    return amount * x if way == SCALED else drawn


@part
def listen(t: int, up: Flags, rules: Rules, memory: Memory, world: World) -> None:
    """End of round t: own samples, and what comes from others."""
    links, traffic, ring = world.links, world.traffic, memory.ring
    lists = traffic.pool.shape[1] > 0
    if traffic.seen.shape[0] > 0:
        set_out(t, traffic)
    for v in range(up.shape[0]):
        if not up[v]:
            if lists:
                wait_listed(t, v, links, traffic)
            else:
                wait(t, v, links, traffic)
            continue
        if lists:
            open_lists(t, v, traffic)
        arrive(t, v, ring.told, links, traffic)
        count = sort_out(t, v, world.ears.hold, links, traffic)
        if lists:
            close_lists(t, v, count, traffic)
        if not world.falsehood.lies[v]:
            hear(v, count, rules, memory, world)
            take(t, v, use(t, v, count, rules, memory, world), rules, memory, world)


@part
def hear(v: int, count: int, rules: Rules, memory: Memory, world: World) -> None:
    """Note what others decided and know: the leader's newest word, and the best informed rows."""
    present, traffic, rows, falsehood = world.present, world.traffic, memory.rows, world.falsehood
    slots, leader = memory.ring.arm.shape[0], rules.leader_of[v]
    if leader >= 0:
        for i in range(count):
            if traffic.origin[i] == leader and traffic.when[i] > present.heard_round[v]:
                present.heard_round[v] = traffic.when[i]
                present.heard_arm[v] = memory.ring.arm[traffic.when[i] % slots, leader]
    for i in range(count if rules.shares_rows else 0):
        origin, when = traffic.origin[i], traffic.when[i]
        slot = when % slots
        false = falsehood.rows and falsehood.at_receiver
        if false:
            false = happens(key_of_three(falsehood.key, v, origin, when), falsehood.limit)
        if rules.kind == ORIGIN_MEDIAN and when < world.origins.newest[v, origin]:
            continue
        for arm in range(rules.n_arms):
            mean = rows.mean[slot, arm, origin]
            if false and mean < np.inf:
                mean = falsified(mean, present.drawn[slot, origin], falsehood.way, falsehood.amount)
            if rules.kind == ORIGIN_MEDIAN:
                note_row(when, v, arm, origin, mean, rows.n[slot, arm, origin], world.origins)
            else:
                believe(when, v, arm, origin, mean, rows.n[slot, arm, origin], world.hearsay)


@part
def use(t: int, v: int, count: int, rules: Rules, memory: Memory, world: World) -> int:
    """The samples that agent v takes in, in order: its own, then of those it listens to. Returns how many."""
    ring, ears, falsehood = memory.ring, world.ears, world.falsehood
    present, traffic = world.present, world.traffic
    slots = ring.arm.shape[0]
    traffic.arm[0], traffic.x[0] = present.arm[v], present.x[v]
    traffic.need[0], traffic.power[0] = present.need[v], present.power[v]
    traffic.who[0] = v
    used = 1
    for i in range(count):
        origin, when = traffic.origin[i], traffic.when[i]
        if ears.group.shape[0] > 0 and ears.group[origin] != ears.group[v]:
            continue
        if ears.discards and not happens(key_of_two(ears.discard[v], origin, when), ears.kept[v]):
            continue
        slot = when % slots
        arm, x = ring.arm[slot, origin], ring.x[slot, origin]
        need, power = ring.need[slot, origin], ring.power[slot, origin]
        if falsehood.at_receiver and happens(key_of_three(falsehood.key, v, origin, when), falsehood.limit):
            x = falsified(x, present.drawn[slot, origin], falsehood.way, falsehood.amount)
            need, power = judge(x, arm, rules, memory.state.sure_x)
        traffic.arm[used], traffic.x[used], traffic.need[used], traffic.power[used] = arm, x, need, power
        traffic.who[used] = origin
        used += 1
    return used


@part
def take(t: int, v: int, count: int, rules: Rules, memory: Memory, world: World) -> None:
    """Samples into the means of agent v."""
    state, traffic = memory.state, world.traffic
    arms, xs, needs = traffic.arm, traffic.x, traffic.need
    n, total, changed = state.n, state.total, state.changed
    if rules.kind == RUNNING:
        asked = min(t + 1 if rules.shared_start else max(t, rules.n_arms) + 1, rules.horizon)
        trimming = Trimming(rules.u, rules.p, rules.L)
        for i in range(count):
            arm = arms[i]
            n[arm, v] += 1.0
            changed[arm] = True
            if n[arm, v] >= needs[i]:
                total[arm, v] += xs[i]
            else:
                power, place = traffic.power[i], arm * n.shape[1] + v
                add_doubtful(xs[i], power, n[arm, v], place, asked, trimming, total, memory.calendar)
    elif rules.kind <= CATONI:
        for i in range(count):
            store(xs[i], arms[i], v, rules.kind == MEDIAN_OF_MEANS, state)
    elif rules.kind == ORIGIN_MEDIAN:
        L, origins = rules.L[max(t, 2)], world.origins
        for i in range(count):
            take_of_origin(arms[i], v, traffic.who[i], xs[i], L, origins.root, rules.p, origins)
    else:
        take_in(rules.kind, count, arms, needs if rules.kind == MEDIAN_BOUND else xs, v, rules, memory)
