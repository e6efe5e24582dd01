"""One hop, without delays, on a dense network: who hears whom is a table of bits, made anew every round.

A message comes over one link or not at all, so nothing has to be remembered: the bits of the round are those
of the network without the links that fail, and all else is as on a perfect channel.
"""

from __future__ import annotations

import numpy as np

from rumormill.kernels.counter_rng import Keys, happens, key_with
from rumormill.kernels.jit import part, step
from rumormill.kernels.kmp import believe, rank_best
from rumormill.kernels.lossy_state import World
from rumormill.kernels.means_sums import add_dense, add_doubtful
from rumormill.kernels.rounds import sort_by_arm
from rumormill.kernels.simd.masked_add import LANES
from rumormill.kernels.state import Flags, Floats, Memory, Rules, Sums, Trimming, Words


@part
def listen_nearby(t: int, up: Flags, rules: Rules, memory: Memory, world: World) -> None:
    """End of round t: own samples, and what comes over the links that hold."""
    ring, state, present, nearby = memory.ring, memory.state, world.present, world.nearby
    slot = t % ring.told.shape[0]
    find_links(t, up, ring.told[slot], world)
    asked = min(t + 1 if rules.shared_start else max(t, rules.n_arms) + 1, rules.horizon)
    trimming = Trimming(rules.u, rules.p, rules.L)
    sums = Sums(state.n, state.total, state.changed)
    for v in range(up.shape[0]):
        arm = present.arm[v]
        if arm < 0:
            continue
        state.n[arm, v] += 1.0
        state.changed[arm] = True
        if state.n[arm, v] >= present.need[v]:
            state.total[arm, v] += present.x[v]
        else:
            x, power, place = present.x[v], present.power[v], arm * state.n.shape[1] + v
            add_doubtful(x, power, state.n[arm, v], place, asked, trimming, state.total, memory.calendar)
    sort_by_arm(ring.arm[slot], ring.told[slot], ring.order[slot], ring.start[slot])
    add_dense(nearby.words, slot, asked, trimming, ring, sums, memory.calendar)
    for v in range(up.shape[0]):
        leader = rules.leader_of[v]
        if leader >= 0 and ring.told[slot, leader] and hears(v, leader, nearby.words):
            present.heard_round[v] = t
            present.heard_arm[v] = ring.arm[slot, leader]
    if rules.shares_rows:
        hear_nearby(t, up, rules, memory, world)


@step
def hears(v: int, origin: int, words: Words) -> bool:
    """Whether agent v hears the origin."""
    return words[v // LANES, origin] & (np.uint64(1) << np.uint64(v % LANES)) != 0


@step
def find_links(t: int, up: Flags, told: Flags, world: World) -> None:
    """Who hears in round t whom of those who tell."""
    links, nearby, words = world.links, world.nearby, world.nearby.words
    for w in range(words.shape[0]):
        awake = np.uint64(0)
        for v in range(w * LANES, min((w + 1) * LANES, up.shape[0])):
            if up[v] and not world.falsehood.lies[v]:
                awake |= np.uint64(1) << np.uint64(v % LANES)
        for origin in range(words.shape[1]):
            words[w, origin] = nearby.base[w, origin] & awake
            if links.loses and told[origin]:
                words[w, origin] &= holding(np.uint64(t), links.limit, nearby.keys[origin, w])
    for outage in range(links.outages.shape[0]):
        if links.outages[outage, 2] <= t <= links.outages[outage, 3]:
            origin, v = links.indices[links.outages[outage, 0]], links.outages[outage, 1]
            words[v // LANES, origin] &= ~(np.uint64(1) << np.uint64(v % LANES))


@part
def holding(t: np.uint64, limit: np.uint64, keys: Keys) -> np.uint64:
    """Which of 64 links hold, several at a time."""
    word = np.uint64(0)
    for b in range(LANES):
        if happens(key_with(keys[b], t), limit):
            word |= np.uint64(1) << np.uint64(b)
    return word


@step
def hear_nearby(t: int, up: Flags, rules: Rules, memory: Memory, world: World) -> None:
    """The best informed rows: of those heard now only the best counts, and it is among the first few."""
    rows, told = memory.rows, memory.ring.told[t % memory.ring.told.shape[0]]
    slot, top = t % rows.n.shape[0], world.nearby.top
    for arm in range(rules.n_arms):
        n = rows.n[slot, arm]
        rank_best(n, top)
        for v in range(up.shape[0]):
            found = -1
            for i in range(top.shape[0]):
                if n[top[i]] < world.hearsay.n[arm, v]:
                    break
                if told[top[i]] and hears(v, top[i], world.nearby.words):
                    found = top[i]
                    break
                if i == top.shape[0] - 1:
                    found = best_of_all(v, n, told, world)
            if found >= 0:
                believe(t, v, arm, found, rows.mean[slot, arm, found], n[found], world.hearsay)


@step
def best_of_all(v: int, n: Floats, told: Flags, world: World) -> int:
    """The best informed of all that agent v hears; -1 if there is none."""
    found = -1
    for i in range(world.links.indptr[v], world.links.indptr[v + 1]):
        a = world.links.indices[i]
        if told[a] and hears(v, a, world.nearby.words) and (found < 0 or n[a] > n[found]):
            found = a
    return found
