"""Lossy channels: own samples and arrivals into means, leaders' arms and rows, in arrival order.

With a hop budget of 1 and no delays on a dense network a message arrives over one link or not at all, so no
arrivals are stored: the bitmasks of the round are those of the network without the links that fail, and
delivery is that of a perfect channel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from rumormill import formulas
from rumormill.kernels.beliefs import add_all_to_beliefs
from rumormill.kernels.counter_rng import Keys, happens, key_of_three, key_of_two, key_with
from rumormill.kernels.flooding import (
    clear_seen,
    close_lists,
    collect_arrivals,
    defer_forwarding,
    defer_forwarding_listed,
    list_arrivals,
    open_lists,
)
from rumormill.kernels.jit import linked, part, step
from rumormill.kernels.kmp import top_by_count, update_best_row
from rumormill.kernels.lossy_state import SCALED, SHIFTED, LossyState
from rumormill.kernels.means_sketch import add_to_sketch, histogram_bin
from rumormill.kernels.means_stored import store
from rumormill.kernels.means_sums import add_dense, count_and_add, power_of_size, required_rank
from rumormill.kernels.origins import add_from_origin
from rumormill.kernels.rounds import sort_by_arm
from rumormill.kernels.simd.masked_add import LANES, lowest_bit
from rumormill.kernels.state import (
    ANY,
    CATONI,
    DEFAULT,
    DISCOUNT,
    MEDIAN_BOUND,
    MEDIAN_OF_MEANS,
    ORIGIN_MEDIAN,
    RESTART,
    RUNNING,
    WINDOW,
    Calendar,
    Flags,
    ForgetState,
    Memory,
    Rules,
    RunningSums,
    Trimming,
    Words,
)


@part
def rank_or_bin(
    x: float, sure: float, last_L: float, trims: bool, kind: int, u: float, p: float, scale: float
) -> tuple[float, float]:
    """The rank from which a sample surely stays, and |x|^p (trimmed mean); or its bin (histograms)."""
    if trims and abs(x) > sure:
        power = power_of_size(x, p)
        return required_rank(power, u, last_L), power
    return float(histogram_bin(x, scale)) if kind == MEDIAN_BOUND else 0.0, 0.0


@step
def rank_by_rules(kind: int, x: float, arm: int, rules: Rules, memory: Memory) -> tuple[float, float]:
    """The same with the rules of a trial."""
    last_L, scale = rules.L[rules.horizon], memory.general.constants.scale
    return rank_or_bin(x, memory.state.sure_x[arm], last_L, rules.trims, kind, rules.u, rules.p, scale)


@part
def corrupted_value(x: float, drawn: float, way: int, amount: float) -> float:
    """What is sent in place of x."""
    if way == SHIFTED:
        return x + amount
    return amount * x if way == SCALED else drawn


@cache
def delivery(only: int, forgets: int) -> Callable[..., None]:
    """What happens at the end of a round, for one kind of mean or any."""
    any_kind, default = only == ANY, only == DEFAULT

    @part
    def receive(t: int, v: int, count: int, rules: Rules, memory: Memory, lossy: LossyState) -> None:
        kind = rules.kind if any_kind else only
        update_leader_and_rows(kind, forgets, v, count, rules, memory, lossy)
        used = select_samples(kind, t, v, count, rules, memory, lossy)
        if forgets:
            add_remembered(kind, forgets, t, v, used, rules, memory, lossy)
        else:
            add_selected(kind, default, t, v, used, rules, memory, lossy)

    @part
    def deliver(t: int, up: Flags, rules: Rules, memory: Memory, lossy: LossyState) -> None:
        """End of round t: own samples, and what arrives from other agents."""
        links, in_flight = lossy.links, lossy.in_flight
        if in_flight.seen.shape[0] > 0:
            clear_seen(t, in_flight)
        for v in range(up.shape[0]):
            if up[v]:
                count = arrivals(t, v, lossy, memory)
                if not lossy.corruption.liars[v]:
                    receive(t, v, count, rules, memory, lossy)
            elif in_flight.pool.shape[1] > 0:
                defer_forwarding_listed(t, v, links, in_flight)
            else:
                defer_forwarding(t, v, links, in_flight)

    return deliver


@step
def arrivals(t: int, v: int, lossy: LossyState, memory: Memory) -> int:
    """How many messages arrive at an agent that is present; they are listed in arrival order."""
    links, in_flight = lossy.links, lossy.in_flight
    lists = in_flight.pool.shape[1] > 0
    if lists:
        open_lists(t, v, in_flight)
    collect_arrivals(t, v, memory.ring.sent, links, in_flight)
    count = list_arrivals(t, v, lossy.receive.hold, links, in_flight)
    if lists:
        close_lists(t, v, count, in_flight)
    return count


@step
def update_leader_and_rows(
    kind: int, forgets: int, v: int, count: int, rules: Rules, memory: Memory, lossy: LossyState
) -> None:
    """Store the leader's newest arm, and the rows with most samples."""
    now, in_flight, rows, corruption = lossy.now, lossy.in_flight, memory.rows, lossy.corruption
    slots, leader, origins = memory.ring.arm.shape[0], rules.leader_of[v], lossy.origins
    if leader >= 0:
        for i in range(count):
            if in_flight.origin[i] == leader and in_flight.when[i] > now.leader_round[v]:
                now.leader_round[v] = in_flight.when[i]
                now.leader_arm[v] = memory.ring.arm[in_flight.when[i] % slots, leader]
    for i in range(count if rules.shares_rows else 0):
        origin, when = in_flight.origin[i], in_flight.when[i]
        slot = when % slots
        corrupted = corruption.rows and corruption.at_receiver
        if corrupted:
            corrupted = happens(key_of_three(corruption.key, v, origin, when), corruption.limit)
        if forgets or kind == ORIGIN_MEDIAN:
            if when < origins.newest[v, origin]:
                continue
            origins.newest[v, origin] = when
        if forgets:  # the own sample is counted first, then one by one
            memory.general.forget.heard_at[v, origin] = memory.general.forget.taken[v] + 2.0 + i
        for arm in range(rules.n_arms):
            mean = rows.mean[slot, arm, origin]
            if corrupted and mean < np.inf:
                mean = corrupted_value(mean, now.drawn[slot, origin], corruption.way, corruption.amount)
            if forgets or kind == ORIGIN_MEDIAN:
                origins.row_mean[arm, v, origin] = mean
                origins.row_n[arm, v, origin] = rows.n[slot, arm, origin]
            else:
                update_best_row(when, v, arm, origin, mean, rows.n[slot, arm, origin], lossy.best_rows)


@step
def select_samples(
    kind: int, t: int, v: int, count: int, rules: Rules, memory: Memory, lossy: LossyState
) -> int:
    """The samples that agent v uses, in arrival order: its own, then others. Returns how many."""
    ring, receive, corruption = memory.ring, lossy.receive, lossy.corruption
    now, in_flight = lossy.now, lossy.in_flight
    slots = ring.arm.shape[0]
    in_flight.arm[0], in_flight.x[0] = now.arm[v], now.x[v]
    in_flight.need[0], in_flight.power[0] = now.need[v], now.power[v]
    in_flight.source[0] = v
    used = 1
    for i in range(count):
        origin, when = in_flight.origin[i], in_flight.when[i]
        if receive.group.shape[0] > 0 and receive.group[origin] != receive.group[v]:
            continue
        if receive.discards and not happens(key_of_two(receive.discard[v], origin, when), receive.kept[v]):
            continue
        slot = when % slots
        arm, x = ring.arm[slot, origin], ring.x[slot, origin]
        need, power = ring.need[slot, origin], ring.power[slot, origin]
        if corruption.at_receiver and happens(
            key_of_three(corruption.key, v, origin, when), corruption.limit
        ):
            x = corrupted_value(x, now.drawn[slot, origin], corruption.way, corruption.amount)
            need, power = rank_by_rules(kind, x, arm, rules, memory)
        in_flight.arm[used], in_flight.x[used] = arm, x
        in_flight.need[used], in_flight.power[used] = need, power
        in_flight.source[used] = origin
        used += 1
    return used


@step
def add_selected(
    kind: int, default: bool, t: int, v: int, count: int, rules: Rules, memory: Memory, lossy: LossyState
) -> None:
    """Add samples to the means of agent v."""
    state, in_flight = memory.state, lossy.in_flight
    arms, xs, needs = in_flight.arm, in_flight.x, in_flight.need
    n, total, changed = state.n, state.total, state.changed
    if default:
        for i in range(count):
            changed[arms[i]] = True
        sketches = memory.general.sketches
        add_all_to_beliefs(count, arms, xs, v, sketches.beliefs, sketches.level)
    elif kind == RUNNING:
        next_t = min(t + 1 if rules.shared_start else max(t, rules.first_rounds) + 1, rules.horizon)
        trimming = Trimming(rules.u, rules.p, rules.L)
        powers, calendar = in_flight.power, memory.calendar
        for i in range(count):
            changed[arms[i]] = True
            count_and_add(arms[i], v, xs[i], needs[i], powers, i, next_t, trimming, n, total, calendar)
    elif kind <= CATONI:
        for i in range(count):
            store(xs[i], arms[i], v, kind == MEDIAN_OF_MEANS, state, memory.general)
    elif kind == ORIGIN_MEDIAN:
        L, origins = rules.L[max(t, 2)], lossy.origins
        for i in range(count):
            memory.general.known[arms[i], v] = -1.0
            add_from_origin(arms[i], v, in_flight.source[i], xs[i], L, origins.root, rules.p, origins)
    else:
        add_to_sketch(kind, count, arms, needs if kind == MEDIAN_BOUND else xs, v, rules, memory)


discounted_sum = linked(
    formulas.discounted_sum, clip_level=part(formulas.clip_level), clipped=part(formulas.clipped)
)
cusum_step, cusum_middle = part(formulas.cusum_step), part(formulas.cusum_middle)
cusum_alarms = linked(formulas.cusum_alarms, cusum_step=cusum_step, cusum_middle=cusum_middle)


@step
def add_remembered(
    kind: int, forgets: int, t: int, v: int, count: int, rules: Rules, memory: Memory, lossy: LossyState
) -> None:
    """Add samples to the means of agent v, which forget others."""
    forget = rules.forget if forgets == ANY else forgets
    kept, new, calendar = memory.general.forget, lossy.in_flight, memory.calendar
    n, total, n_agents = kept.streams.state.n, kept.streams.state.total, kept.taken.shape[0]
    next_t = min(t + 1 if rules.shared_start else max(t, rules.first_rounds) + 1, rules.horizon)
    trimming = Trimming(rules.u, rules.p, rules.L)
    for i in range(count):
        arm, x = new.arm[i], new.x[i]
        kept.taken[v] += 1.0
        if forget == DISCOUNT:
            w, L, budget = math.pow(kept.discount, kept.taken[v] - kept.last[arm, v]), kept.L, kept.budget
            n[arm, v], total[arm, v] = discounted_sum(n[arm, v], total[arm, v], w, x, L, budget, rules.p)
            kept.last[arm, v] = kept.taken[v]
            continue
        if forget == WINDOW and (kept.taken[v] - 1.0) % ((kept.span + 1.0) // 2.0) == 0.0:
            for k in range(rules.n_arms):  # a new epoch: the older stream is dropped
                drop_stream(kind, k, kept.present[v], kept, calendar)
            kept.present[v] = (kept.present[v] + n_agents) % n.shape[1]
        for j in range(v, n.shape[1], n_agents):
            if kind == RUNNING:
                count_and_add(arm, j, x, new.need[i], new.power, i, next_t, trimming, n, total, calendar)
            else:
                arms, xs = kept.streams.general.sketches.arms, kept.streams.general.sketches.xs
                arms[0], xs[0] = arm, new.need[i] if kind == MEDIAN_BOUND else x
                add_to_sketch(kind, 1, arms, xs, j, rules, kept.streams)
        if forget == RESTART and cusum_alarms(x, int(n[arm, v]), kept.cusum[arm, v]):
            drop_stream(kind, arm, v, kept, calendar)


@step
def drop_stream(kind: int, arm: int, j: int, kept: ForgetState, calendar: Calendar) -> None:
    """Forget all samples of a stream."""
    state, general = kept.streams.state, kept.streams.general
    state.n[arm, j], state.total[arm, j], general.known[arm, j] = 0.0, 0.0, -1.0
    if kind == RUNNING:
        for i in range(calendar.spare[1]):  # nothing of it may expire later
            if calendar.place[i] == arm * state.n.shape[1] + j:
                calendar.x[i] = 0.0
    else:
        sketches, constants = general.sketches, general.constants
        sketches.filled[arm, j], sketches.centre[arm, j], sketches.counts[arm, j] = 0, 0.0, 0
        sketches.rest[arm, j], sketches.squares[arm, j] = 0.0, 0.0
        sketches.level[arm, j] = constants.lam * constants.scale if constants.lam > 0.0 else 1.0
        sketches.clip[arm, j] = constants.scale
        sketches.place[:, arm, j], sketches.below[:, arm, j] = 0, 0


@part
def deliver_one_hop(t: int, up: Flags, rules: Rules, memory: Memory, lossy: LossyState) -> None:
    """End of round t: own samples, and what arrives over the links that do not fail."""
    ring, state, now, one_hop = memory.ring, memory.state, lossy.now, lossy.one_hop
    slot = t % ring.sent.shape[0]
    build_link_bitmasks(t, up, ring.sent[slot], lossy)
    next_t = min(t + 1 if rules.shared_start else max(t, rules.first_rounds) + 1, rules.horizon)
    trimming = Trimming(rules.u, rules.p, rules.L)
    sums = RunningSums(state.n, state.total, state.changed)
    for v in range(up.shape[0]):
        arm, x, need = now.arm[v], now.x[v], now.need[v]
        if arm >= 0:
            n, total, calendar = state.n, state.total, memory.calendar
            state.changed[arm] = True
            count_and_add(arm, v, x, need, now.power, v, next_t, trimming, n, total, calendar)
    sort_by_arm(ring.arm[slot], ring.sent[slot], ring.order[slot], ring.start[slot])
    add_dense(one_hop.words, slot, next_t, trimming, ring, sums, memory.calendar)
    for v in range(up.shape[0]):
        leader = rules.leader_of[v]
        if leader >= 0 and ring.sent[slot, leader] and receives(v, leader, one_hop.words):
            now.leader_round[v] = t
            now.leader_arm[v] = ring.arm[slot, leader]
    if rules.shares_rows:
        update_best_rows(t, up, rules, memory, lossy)


@step
def receives(v: int, origin: int, words: Words) -> bool:
    """Whether agent v receives the message of the origin."""
    return words[v // LANES, origin] & (np.uint64(1) << np.uint64(v % LANES)) != 0


@step
def build_link_bitmasks(t: int, up: Flags, sent: Flags, lossy: LossyState) -> None:
    """The bitmasks of receivers in round t, per origin that sends."""
    links, one_hop, words = lossy.links, lossy.one_hop, lossy.one_hop.words
    for w in range(words.shape[0]):
        active = np.uint64(0)
        for v in range(w * LANES, min((w + 1) * LANES, up.shape[0])):
            if up[v] and not lossy.corruption.liars[v]:
                active |= np.uint64(1) << np.uint64(v % LANES)
        for origin in range(words.shape[1]):
            words[w, origin] = one_hop.base[w, origin] & active
            if links.loses and sent[origin]:
                words[w, origin] &= surviving_links(np.uint64(t), links.limit, one_hop.keys[origin, w])
    for outage in range(links.outages.shape[0]):
        if links.outages[outage, 2] <= t <= links.outages[outage, 3]:
            origin, v = links.indices[links.outages[outage, 0]], links.outages[outage, 1]
            words[v // LANES, origin] &= ~(np.uint64(1) << np.uint64(v % LANES))


@part
def surviving_links(t: np.uint64, limit: np.uint64, keys: Keys) -> np.uint64:
    """Bitmask of the links of 64 that do not fail."""
    word = np.uint64(0)
    for b in range(LANES):
        if happens(key_with(keys[b], t), limit):
            word |= np.uint64(1) << np.uint64(b)
    return word


@step
def update_best_rows(t: int, up: Flags, rules: Rules, memory: Memory, lossy: LossyState) -> None:
    """The rows with most samples: of those that arrive only the best counts, mostly one of the top few."""
    rows, sent, links = memory.rows, memory.ring.sent[t % memory.ring.sent.shape[0]], lossy.links
    slot, top, words = t % rows.n.shape[0], lossy.one_hop.top, lossy.one_hop.words
    for arm in range(rules.n_arms):
        n, mean, best = rows.n[slot, arm], rows.mean[slot, arm], lossy.best_rows
        top_by_count(n, top)
        for w in range(words.shape[0]):
            left = ~np.uint64(0) >> np.uint64(max((w + 1) * LANES - up.shape[0], 0))
            for i in range(top.shape[0]):
                word = words[w, top[i]] & left if sent[top[i]] else np.uint64(0)
                left ^= word
                while word != 0:
                    v = w * LANES + lowest_bit(word)
                    word &= word - np.uint64(1)
                    update_best_row(t, v, arm, top[i], mean[top[i]], n[top[i]], best)
            while left != 0:  # none of the top few arrived
                v = w * LANES + lowest_bit(left)
                left &= left - np.uint64(1)
                few = n[top[top.shape[0] - 1]] < best.n[arm, v]
                for i in range(links.indptr[v], links.indptr[v] if few else links.indptr[v + 1]):
                    a = links.indices[i]
                    if sent[a] and receives(v, a, words):
                        update_best_row(t, v, arm, a, mean[a], n[a], best)
