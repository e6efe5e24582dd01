"""Flooding over links that lose and delay messages, with bitmasks of origins: what arrives, in arrival order.

In round s an agent sends one bundle over each link: its own message, and what arrived at the end of round
s - 1 and is younger than the hop budget γ. A bundle is a bitmask of origins per round of origin, so it is
merged by a few operations for 64 origins at a time. Receivers pull from their links; senders write to no
other agent's arrays.
"""

from __future__ import annotations

import numpy as np

from rumormill.kernels.counter_rng import Keys, even_delay, geometric_delay, happens, key_with, uniform_at
from rumormill.kernels.jit import part
from rumormill.kernels.lossy_state import AT_ONCE, EVEN, LOST, Delays, InFlight, Links
from rumormill.kernels.simd.masked_add import lowest_bit, popcount
from rumormill.kernels.state import Flags

ONE = np.uint64(1)
NONE = np.uint64(0)


@part
def clear_seen(t: int, in_flight: InFlight) -> None:
    """Clear the `seen` bitmasks of round t except for the agent itself. (Lists are opened agent by agent.)"""
    seen = in_flight.seen
    slot = t % in_flight.arrived.shape[0]
    for v in range(seen.shape[0] if in_flight.pool.shape[1] == 0 else 0):
        for w in range(seen.shape[2]):
            seen[v, slot, w] = NONE
        seen[v, slot, v >> 6] = ONE << np.uint64(v & 63)


@part
def send_bundles(t: int, up: Flags, links: Links, delays: Delays) -> None:
    """Draw loss and delay of the bundle on every link in round t."""
    late = delays[t % delays.shape[0]]
    if links.loses and not links.per_copy:
        draw_losses(np.uint64(t), links.limit, links.loss, late)
    else:
        for i in range(late.shape[0]):
            late[i] = 0
    if links.delay != AT_ONCE:
        for i in range(late.shape[0]):
            if late[i] != LOST:
                u = uniform_at(key_with(links.delay_keys[i], np.uint64(t)))
                if links.delay == EVEN:
                    late[i] = even_delay(u, links.longest)
                else:
                    late[i] = geometric_delay(u, links.geometric_q, links.longest)
    for i in range(late.shape[0]):
        if not up[links.indices[i]]:
            late[i] = LOST
    for outage in range(links.outages.shape[0]):
        if links.outages[outage, 2] <= t <= links.outages[outage, 3]:
            late[links.outages[outage, 0]] = LOST


@part
def draw_losses(t: np.uint64, limit: np.uint64, loss: Keys, late: Delays) -> None:
    """LOST or 0 for every link, several at a time."""
    for i in range(late.shape[0]):
        late[i] = 0 if happens(key_with(loss[i], t), limit) else LOST


@part
def collect_arrivals(t: int, b: int, sent: Flags, links: Links, in_flight: InFlight) -> None:
    """Fill the bitmasks `arrived` with what is new to agent b at the end of round t."""
    slots, delays, at = sent.shape[0], in_flight.late.shape[0], b % max(in_flight.seen.shape[0], 1)
    for i in range(links.indptr[b], links.indptr[b + 1]):
        for tau in range(min(delays, t)):
            s = t - tau
            if in_flight.late[s % delays, i] != tau:
                continue
            a = links.indices[i]
            if sent[s % slots, a]:
                add_bits(at, s, s % slots, a >> 6, ONE << np.uint64(a & 63), i, links, in_flight)
            if links.gamma > 1 and in_flight.pool.shape[1] > 0:
                collect_from_pool(s, a, i, links, in_flight)
                continue
            for age in range(1, min(links.gamma, s)):
                when, row = s - age, in_flight.out[s % in_flight.out.shape[0], a, age - 1]
                slot = when % slots
                for w in range(row.shape[0]):
                    if row[w] != NONE:
                        add_bits(at, when, slot, w, row[w], i, links, in_flight)


@part
def add_bits(
    at: int, when: int, slot: int, w: int, word: np.uint64, i: int, links: Links, in_flight: InFlight
) -> None:
    """Messages of round `when` from the origins of one bitmask arrive over link i."""
    new = word & ~in_flight.arrived[slot, w]
    if in_flight.seen.shape[0] > 0:
        new &= ~in_flight.seen[at, slot, w]
    if links.loses and links.per_copy and new != NONE:
        new = surviving_copies(new, w, when, links.loss[i], links.limit)
    if new != NONE:
        in_flight.arrived[slot, w] |= new
        in_flight.filled[slot, w >> 6] |= ONE << np.uint64(w & 63)


@part
def surviving_copies(word: np.uint64, w: int, when: int, link: np.uint64, limit: np.uint64) -> np.uint64:
    """The bitmask of the copies that a link does not lose."""
    left = NONE
    while word != NONE:
        origin = (w << 6) + lowest_bit(word)
        if happens(key_with(key_with(link, np.uint64(origin)), np.uint64(when)), limit):
            left |= word & (~word + ONE)
        word &= word - ONE
    return left


@part
def list_arrivals(t: int, b: int, hold: int, links: Links, in_flight: InFlight) -> int:
    """List what arrived at agent b, oldest first, then by origin; store the bitmasks to forward.

    Returns how many messages are used. With `hold`, messages are used when they are so many rounds old,
    together with all of their round that arrived until then.
    """
    arrived, filled, seen = in_flight.arrived, in_flight.filled, in_flight.seen
    slots, at = arrived.shape[0], b % max(seen.shape[0], 1)
    lists = in_flight.pool.shape[1] > 0
    onward = in_flight.out[(t + 1) % in_flight.out.shape[0], b]
    count = forwards = 0
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
                word = arrived[slot, w]
                arrived[slot, w] = NONE
                if goes_on:
                    forwards += popcount(word)
                if lists and age + 1 < slots:
                    append_to_pool(when, w, word, in_flight)
                elif goes_on:
                    onward[age, w] = word
                if seen.shape[0] > 0:
                    seen[at, slot, w] |= word
                if age >= hold or hold == 1:
                    count = append_origins(count, when, w, word, in_flight)
        if age == hold - 1 and hold > 1:
            for w in range(seen.shape[2]):
                word = seen[at, slot, w]
                if w == b >> 6:
                    word &= ~(ONE << np.uint64(b & 63))
                count = append_origins(count, when, w, word, in_flight)
    in_flight.forwards[b] = forwards
    return count


@part
def append_origins(count: int, when: int, w: int, word: np.uint64, in_flight: InFlight) -> int:
    """Append the origins of one bitmask, ascending."""
    while word != NONE:
        in_flight.origin[count] = (w << 6) + lowest_bit(word)
        in_flight.when[count] = when
        word &= word - ONE
        count += 1
    return count


@part
def defer_forwarding(t: int, b: int, links: Links, in_flight: InFlight) -> None:
    """Agent b is absent in round t: the bitmasks it has to forward are kept, one round older."""
    out, slots = in_flight.out, in_flight.out.shape[0]
    now, later = out[t % slots, b], out[(t + 1) % slots, b]
    forwards = 0
    for age in range(links.gamma - 2, 0, -1):
        for w in range(now.shape[1]):
            later[age, w] = now[age - 1, w]
            forwards += popcount(now[age - 1, w])
    if links.gamma > 1:
        for w in range(later.shape[1]):
            later[0, w] = NONE
    in_flight.forwards[b] = forwards


# --- lists instead of bitmasks ------------------------------------------------------------------------------


@part
def open_lists(t: int, b: int, in_flight: InFlight) -> None:
    """Set the bitmasks of what agent b has seen in the last rounds, and begin its list of round t."""
    slots = in_flight.arrived.shape[0]
    for age in range(min(slots, t)):
        in_flight.seen[0, (t - age) % slots, b >> 6] |= ONE << np.uint64(b & 63)
    for s in range(max(1, t - slots + 1), t):
        for at in range(in_flight.begin[s % slots, b], in_flight.end[s % slots, b]):
            origin, when = pool_entry(at, in_flight)
            if when > t - slots:
                in_flight.seen[0, when % slots, origin >> 6] |= ONE << np.uint64(origin & 63)
    in_flight.begin[t % slots, b] = in_flight.written[0]


@part
def close_lists(t: int, b: int, count: int, in_flight: InFlight) -> None:
    """End the list of round t and clear the bitmasks; what is too old to arrive again is in no list."""
    slots = in_flight.arrived.shape[0]
    i = 0
    while i < count and in_flight.when[i] == t - slots + 1:
        in_flight.seen[0, (t + 1) % slots, in_flight.origin[i] >> 6] = NONE
        i += 1
    in_flight.end[t % slots, b] = in_flight.written[0]
    for slot in range(slots):
        in_flight.seen[0, slot, b >> 6] = NONE
    for s in range(max(1, t - slots + 1), t + 1):
        for at in range(in_flight.begin[s % slots, b], in_flight.end[s % slots, b]):
            origin, when = pool_entry(at, in_flight)
            in_flight.seen[0, when % slots, origin >> 6] = NONE


@part
def pool_entry(at: int, in_flight: InFlight) -> tuple[int, int]:
    """Origin and round of origin of an entry of the pool."""
    at &= in_flight.pool.shape[1] - 1
    return in_flight.pool[0, at], in_flight.pool[1, at]


@part
def append_to_pool(when: int, w: int, word: np.uint64, in_flight: InFlight) -> None:
    """Append the origins of one bitmask to the pool."""
    while word != NONE:
        at = in_flight.written[0] & (in_flight.pool.shape[1] - 1)
        in_flight.pool[0, at] = (w << 6) + lowest_bit(word)
        in_flight.pool[1, at] = when
        in_flight.written[0] += 1
        word &= word - ONE


@part
def collect_from_pool(s: int, a: int, i: int, links: Links, in_flight: InFlight) -> None:
    """What agent a forwarded in round s arrives over link i."""
    slots = in_flight.arrived.shape[0]
    before = (s - 1) % slots
    for at in range(in_flight.begin[before, a], in_flight.end[before, a]):
        origin, when = pool_entry(at, in_flight)
        if s - when < links.gamma:
            bit = ONE << np.uint64(origin & 63)
            add_bits(0, when, when % slots, origin >> 6, bit, i, links, in_flight)


@part
def defer_forwarding_listed(t: int, b: int, links: Links, in_flight: InFlight) -> None:
    """Agent b is absent: its list of the round before is used again, while any of it is young enough."""
    slots = in_flight.arrived.shape[0]
    begin, end = in_flight.begin[(t - 1) % slots, b], in_flight.end[(t - 1) % slots, b]
    forwards = 0
    for at in range(begin, end):
        if t + 1 - pool_entry(at, in_flight)[1] < links.gamma:
            forwards += 1
    in_flight.begin[t % slots, b] = begin
    in_flight.end[t % slots, b] = end if forwards > 0 else begin
    in_flight.forwards[b] = forwards
