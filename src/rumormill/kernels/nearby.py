"""One hop, without delays, on a dense network: who hears whom in a round is a mask, made anew every round.

A message comes over one link or not at all, so nothing has to be remembered: the mask of the round is that of
the network without the links that fail, and all else is as on a perfect channel.
"""

from __future__ import annotations

import numpy as np

from rumormill.kernels.block import sort_by_arm
from rumormill.kernels.hearsay import believe
from rumormill.kernels.jit import part, step
from rumormill.kernels.keyed import Keys, happens, key_with
from rumormill.kernels.kmp import rank_best
from rumormill.kernels.running import add_dense, add_doubtful
from rumormill.kernels.state import Flags, Floats, Mask, Memory, Rules, Sums, Trimming
from rumormill.kernels.world import World


@part
def listen_nearby(t: int, up: Flags, rules: Rules, memory: Memory, world: World) -> None:
    """End of round t: own samples, and what comes over the links that hold."""
    ring, state, present, nearby = memory.ring, memory.state, world.present, world.nearby
    slot = t % ring.told.shape[0]
    mask_links(t, up, ring.told[slot], world)
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
            x, power = present.x[v], present.power[v]
            add_doubtful(x, power, state.n[arm, v], arm, v, asked, trimming, state.total, memory.calendar)
    sort_by_arm(ring.arm[slot], ring.told[slot], ring.order[slot], ring.start[slot])
    add_dense(nearby.mask, slot, asked, trimming, ring, sums, memory.calendar)
    for v in range(up.shape[0]):
        leader = rules.leader_of[v]
        if leader >= 0 and ring.told[slot, leader] and nearby.mask[leader, v] != 0.0:
            present.heard_round[v] = t
            present.heard_arm[v] = ring.arm[slot, leader]
    if rules.shares_rows:
        hear_nearby(t, up, rules, memory, world)


@step
def mask_links(t: int, up: Flags, told: Flags, world: World) -> None:
    """The mask of round t, in the rows of those who tell."""
    links, nearby = world.links, world.nearby
    if links.loses:
        fill_mask(np.uint64(t), links.limit, told, nearby.keys, nearby.base, nearby.mask)
    else:
        for a in range(up.shape[0]):
            for b in range(up.shape[0]):
                nearby.mask[a, b] = nearby.base[a, b]
    for v in range(up.shape[0]):
        if not up[v] or world.falsehood.lies[v]:
            for a in range(up.shape[0]):
                nearby.mask[a, v] = 0.0
    for outage in range(links.outages.shape[0]):
        if links.outages[outage, 2] <= t <= links.outages[outage, 3]:
            nearby.mask[links.indices[links.outages[outage, 0]], links.outages[outage, 1]] = 0.0


@part
def fill_mask(t: np.uint64, limit: np.uint64, told: Flags, keys: Keys, base: Mask, mask: Mask) -> None:
    """The hearers of every origin, several at a time."""
    for a in range(mask.shape[0]):
        if told[a]:
            for b in range(mask.shape[1]):
                mask[a, b] = base[a, b] if happens(key_with(keys[a, b], t), limit) else np.float32(0.0)


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
                if told[top[i]] and world.nearby.mask[top[i], v] != 0.0:
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
        if told[a] and world.nearby.mask[a, v] != 0.0 and (found < 0 or n[a] > n[found]):
            found = a
    return found
