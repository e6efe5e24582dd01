"""Flooding over links that lose and delay: what comes to an agent in a round, in order.

In round s an agent puts one bundle on each link: its own message, and what came to it at the end of round
s - 1 and is younger than γ rounds. Origins are bits of words, so that a bundle is taken in by a few
operations for 64 origins at a time. A receiver asks its links: nothing is put into other agents' boxes.
"""

from __future__ import annotations

import numpy as np

from rumormill.kernels.counter_rng import Keys, even_delay, geometric_delay, happens, key_with, uniform_at
from rumormill.kernels.jit import part
from rumormill.kernels.lossy_state import AT_ONCE, EVEN, LOST, Late, Links, Traffic
from rumormill.kernels.simd.bitmask import lowest_bit, popcount
from rumormill.kernels.state import Flags

ONE = np.uint64(1)
NONE = np.uint64(0)


@part
def set_out(t: int, traffic: Traffic) -> None:
    """Room for what is said in round t; nobody listens to itself. (Lists are set out agent by agent.)"""
    seen = traffic.seen
    slot = t % traffic.got.shape[0]
    for v in range(seen.shape[0] if traffic.pool.shape[1] == 0 else 0):
        for w in range(seen.shape[2]):
            seen[v, slot, w] = NONE
        seen[v, slot, v >> 6] = ONE << np.uint64(v & 63)


@part
def send(t: int, up: Flags, links: Links, lateness: Late) -> None:
    """What becomes of the bundle on every link in round t."""
    late = lateness[t % lateness.shape[0]]
    if links.loses and not links.per_copy:
        lose(np.uint64(t), links.limit, links.loss, late)
    else:
        for i in range(late.shape[0]):
            late[i] = 0
    if links.delay != AT_ONCE:
        for i in range(late.shape[0]):
            if late[i] != LOST:
                u = uniform_at(key_with(links.lateness[i], np.uint64(t)))
                if links.delay == EVEN:
                    late[i] = even_delay(u, links.longest)
                else:
                    late[i] = geometric_delay(u, links.going_on, links.longest)
    for i in range(late.shape[0]):
        if not up[links.indices[i]]:
            late[i] = LOST
    for outage in range(links.outages.shape[0]):
        if links.outages[outage, 2] <= t <= links.outages[outage, 3]:
            late[links.outages[outage, 0]] = LOST


@part
def lose(t: np.uint64, limit: np.uint64, loss: Keys, late: Late) -> None:
    """LOST or 0 for every link, several at a time."""
    for i in range(late.shape[0]):
        late[i] = 0 if happens(key_with(loss[i], t), limit) else LOST


@part
def arrive(t: int, b: int, told: Flags, links: Links, traffic: Traffic) -> None:
    """Fill `got` with the news that come to agent b at the end of round t."""
    slots, delays, at = told.shape[0], traffic.late.shape[0], b % max(traffic.seen.shape[0], 1)
    for i in range(links.indptr[b], links.indptr[b + 1]):
        for tau in range(min(delays, t)):
            s = t - tau
            if traffic.late[s % delays, i] != tau:
                continue
            a = links.indices[i]
            if told[s % slots, a]:
                take_bits(at, s, s % slots, a >> 6, ONE << np.uint64(a & 63), i, links, traffic)
            if links.gamma > 1 and traffic.pool.shape[1] > 0:
                arrive_listed(s, a, i, links, traffic)
                continue
            for age in range(1, min(links.gamma, s)):
                when, row = s - age, traffic.out[s % traffic.out.shape[0], a, age - 1]
                slot = when % slots
                for w in range(row.shape[0]):
                    if row[w] != NONE:
                        take_bits(at, when, slot, w, row[w], i, links, traffic)


@part
def take_bits(
    at: int, when: int, slot: int, w: int, word: np.uint64, i: int, links: Links, traffic: Traffic
) -> None:
    """Messages of round `when` from the origins of one word come over link i."""
    new = word & ~traffic.got[slot, w]
    if traffic.seen.shape[0] > 0:
        new &= ~traffic.seen[at, slot, w]
    if links.loses and links.per_copy and new != NONE:
        new = not_lost(new, w, when, links.loss[i], links.limit)
    if new != NONE:
        traffic.got[slot, w] |= new
        traffic.filled[slot, w >> 6] |= ONE << np.uint64(w & 63)


@part
def not_lost(word: np.uint64, w: int, when: int, link: np.uint64, limit: np.uint64) -> np.uint64:
    """The copies of one word that a link does not lose."""
    left = NONE
    while word != NONE:
        origin = (w << 6) + lowest_bit(word)
        if happens(key_with(key_with(link, np.uint64(origin)), np.uint64(when)), limit):
            left |= word & (~word + ONE)
        word &= word - ONE
    return left


@part
def sort_out(t: int, b: int, hold: int, links: Links, traffic: Traffic) -> int:
    """List what came to agent b, oldest first, then by origin; what is to be passed on is kept.

    Returns how much there is to use. What is held back is used when it is old enough, with all the rest of
    its round that has come by then.
    """
    got, filled, seen = traffic.got, traffic.filled, traffic.seen
    slots, at = got.shape[0], b % max(seen.shape[0], 1)
    lists = traffic.pool.shape[1] > 0
    onward = traffic.out[(t + 1) % traffic.out.shape[0], b]
    count = passes = 0
    for age in range(min(slots, t) - 1, -1, -1):
        when = t - age
        slot = when % slots
        goes_on = age + 1 < links.gamma
        if goes_on and not lists:
            for w in range(onward.shape[1]):
                onward[age, w] = NONE
        for block in range(filled.shape[1]):
            words = filled[slot, block]
            filled[slot, block] = NONE
            while words != NONE:
                w = (block << 6) + lowest_bit(words)
                words &= words - ONE
                word = got[slot, w]
                got[slot, w] = NONE
                if goes_on:
                    passes += popcount(word)
                if lists and age + 1 < slots:
                    keep_listed(when, w, word, traffic)
                elif goes_on:
                    onward[age, w] = word
                if seen.shape[0] > 0:
                    seen[at, slot, w] |= word
                if age >= hold or hold == 1:
                    count = listed(count, when, w, word, traffic)
        if age == hold - 1 and hold > 1:
            for w in range(seen.shape[2]):
                word = seen[at, slot, w]
                if w == b >> 6:
                    word &= ~(ONE << np.uint64(b & 63))
                count = listed(count, when, w, word, traffic)
    traffic.passes[b] = passes
    return count


@part
def listed(count: int, when: int, w: int, word: np.uint64, traffic: Traffic) -> int:
    """The origins of one word, ascending, behind the others."""
    while word != NONE:
        traffic.origin[count] = (w << 6) + lowest_bit(word)
        traffic.when[count] = when
        word &= word - ONE
        count += 1
    return count


@part
def wait(t: int, b: int, links: Links, traffic: Traffic) -> None:
    """Agent b is away in round t: what it has to pass on waits, and grows older."""
    now, later = traffic.out[t % traffic.out.shape[0], b], traffic.out[(t + 1) % traffic.out.shape[0], b]
    passes = 0
    for age in range(links.gamma - 2, 0, -1):
        for w in range(now.shape[1]):
            later[age, w] = now[age - 1, w]
            passes += popcount(now[age - 1, w])
    if links.gamma > 1:
        for w in range(later.shape[1]):
            later[0, w] = NONE
    traffic.passes[b] = passes


# --- lists instead of rows of bits --------------------------------------------------------------------------


@part
def open_lists(t: int, b: int, traffic: Traffic) -> None:
    """Set the bits of what agent b has seen in the last rounds, and begin its list of round t."""
    slots = traffic.got.shape[0]
    for age in range(min(slots, t)):
        traffic.seen[0, (t - age) % slots, b >> 6] |= ONE << np.uint64(b & 63)
    for s in range(max(1, t - slots + 1), t):
        for at in range(traffic.begin[s % slots, b], traffic.end[s % slots, b]):
            origin, when = place(at, traffic)
            if when > t - slots:
                traffic.seen[0, when % slots, origin >> 6] |= ONE << np.uint64(origin & 63)
    traffic.begin[t % slots, b] = traffic.written[0]


@part
def close_lists(t: int, b: int, count: int, traffic: Traffic) -> None:
    """End the list of round t, and forget the bits; what is too old to come again stands in no list."""
    slots = traffic.got.shape[0]
    i = 0
    while i < count and traffic.when[i] == t - slots + 1:
        traffic.seen[0, (t + 1) % slots, traffic.origin[i] >> 6] = NONE
        i += 1
    traffic.end[t % slots, b] = traffic.written[0]
    for slot in range(slots):
        traffic.seen[0, slot, b >> 6] = NONE
    for s in range(max(1, t - slots + 1), t + 1):
        for at in range(traffic.begin[s % slots, b], traffic.end[s % slots, b]):
            origin, when = place(at, traffic)
            traffic.seen[0, when % slots, origin >> 6] = NONE


@part
def place(at: int, traffic: Traffic) -> tuple[int, int]:
    """Origin and round of origin of a place in the pool."""
    at &= traffic.pool.shape[1] - 1
    return traffic.pool[0, at], traffic.pool[1, at]


@part
def keep_listed(when: int, w: int, word: np.uint64, traffic: Traffic) -> None:
    """Write the origins of one word into the pool."""
    while word != NONE:
        at = traffic.written[0] & (traffic.pool.shape[1] - 1)
        traffic.pool[0, at] = (w << 6) + lowest_bit(word)
        traffic.pool[1, at] = when
        traffic.written[0] += 1
        word &= word - ONE


@part
def arrive_listed(s: int, a: int, i: int, links: Links, traffic: Traffic) -> None:
    """What agent a had to pass on in round s comes over link i."""
    slots = traffic.got.shape[0]
    before = (s - 1) % slots
    for at in range(traffic.begin[before, a], traffic.end[before, a]):
        origin, when = place(at, traffic)
        if s - when < links.gamma:
            bit = ONE << np.uint64(origin & 63)
            take_bits(0, when, when % slots, origin >> 6, bit, i, links, traffic)


@part
def wait_listed(t: int, b: int, links: Links, traffic: Traffic) -> None:
    """The list of the round before stands for this one too, as long as there is anything young in it."""
    slots = traffic.got.shape[0]
    begin, end = traffic.begin[(t - 1) % slots, b], traffic.end[(t - 1) % slots, b]
    passes = 0
    for at in range(begin, end):
        if t + 1 - place(at, traffic)[1] < links.gamma:
            passes += 1
    traffic.begin[t % slots, b] = begin
    traffic.end[t % slots, b] = end if passes > 0 else begin
    traffic.passes[b] = passes
