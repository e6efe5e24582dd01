"""Lossy channels with a hop budget of 1 and no delays on a dense network: bitmasks of receivers per round.

A message arrives over one link or not at all, so no arrivals are stored: the bitmasks of the round are those
of the network without the links that fail, and delivery is that of a perfect channel.
"""

from __future__ import annotations

import numpy as np

from rumormill.kernels.counter_rng import Keys, happens, key_with
from rumormill.kernels.jit import part, step
from rumormill.kernels.kmp import top_by_count, update_best_row
from rumormill.kernels.lossy_state import LossyState
from rumormill.kernels.means_sums import add_dense, count_and_add
from rumormill.kernels.rounds import sort_by_arm
from rumormill.kernels.simd.masked_add import LANES
from rumormill.kernels.state import Flags, Floats, Memory, Rules, RunningSums, Trimming, Words


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
    rows, sent = memory.rows, memory.ring.sent[t % memory.ring.sent.shape[0]]
    slot, top = t % rows.n.shape[0], lossy.one_hop.top
    for arm in range(rules.n_arms):
        n = rows.n[slot, arm]
        top_by_count(n, top)
        for v in range(up.shape[0]):
            found = -1
            for i in range(top.shape[0]):
                if n[top[i]] < lossy.best_rows.n[arm, v]:
                    break
                if sent[top[i]] and receives(v, top[i], lossy.one_hop.words):
                    found = top[i]
                    break
                if i == top.shape[0] - 1:
                    found = best_neighbour(v, n, sent, lossy)
            if found >= 0:
                update_best_row(t, v, arm, found, rows.mean[slot, arm, found], n[found], lossy.best_rows)


@step
def best_neighbour(v: int, n: Floats, sent: Flags, lossy: LossyState) -> int:
    """The neighbour with most samples whose message agent v receives; -1 if there is none."""
    found = -1
    for i in range(lossy.links.indptr[v], lossy.links.indptr[v + 1]):
        a = lossy.links.indices[i]
        if sent[a] and receives(v, a, lossy.one_hop.words) and (found < 0 or n[a] > n[found]):
            found = a
    return found
