"""KMP-UCB: for each agent and arm, the row (mean, count) with most samples in reach.

On ties the agent's own row, then the smallest origin. Every agent is a learner here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rumormill.kernels.jit import part, step
from rumormill.kernels.lossy_state import BestRows
from rumormill.kernels.simd.masked_add import LANES, lowest_bit
from rumormill.kernels.state import Flags, Floats, Ids, Ints, Reach, SentRows, State, Words


class BestReceived(NamedTuple):
    """The largest count ever received of an arm, its origin, and how many hops away that is."""

    n: Floats
    origin: Ids
    hop: Ids


# Rows delivered between two checks which receivers may still get a larger count.
RECHECK_EVERY = 8


@part
def publish_rows(t: int, first: bool, values: Floats, n: Floats, changed: Flags, rows: SentRows) -> None:
    """Store the rows of round t, the agents whose counts grew, and per arm the agents by count."""
    slots = rows.n.shape[0]
    slot, before = t % slots, (t - 1) % slots
    for arm in range(n.shape[0]):
        for v in range(n.shape[1]):
            rows.n[slot, arm, v] = n[arm, v]
            rows.mean[slot, arm, v] = values[arm, v]
        rows.n_updated[slot, arm] = 0
        if changed[arm] or first:
            rows.n_updated[slot, arm] = list_updated(
                rows.n[slot, arm], rows.n[before, arm], rows.updated[slot, arm]
            )
            sort_by_count(n[arm], rows.top[before, arm], rows.top[slot, arm])
        else:
            for i in range(rows.top.shape[2]):
                rows.top[slot, arm, i] = rows.top[before, arm, i]


@part
def list_updated(n: Floats, before: Floats, updated: Ids) -> int:
    """List the agents whose count grew since the round before; returns how many, or 1 if there is no list."""
    if updated.shape[0] == 0:
        return 1
    count = 0
    for v in range(n.shape[0]):
        updated[count] = v
        count += n[v] != before[v]
    return count


@part
def sort_by_count(n: Floats, before: Ids, order: Ids) -> None:
    """Sort agents by count, largest first, ties by id; insertion into last round's order, few move."""
    last, least = -1, np.inf  # the last agent so far, and its count
    for i in range(order.shape[0]):
        v, place = before[i], i
        if n[v] < least or (n[v] == least and v > last):
            order[i] = last = v
            least = n[v]
            continue
        while place > 0 and (
            n[order[place - 1]] < n[v] or (n[order[place - 1]] == n[v] and order[place - 1] > v)
        ):
            order[place] = order[place - 1]
            place -= 1
        order[place] = v


@part
def top_by_count(n: Floats, top: Ids) -> None:
    """The agents with most samples, largest count first, ties by id (insertion into a short list)."""
    filled, room = 0, top.shape[0]
    bar = -1.0  # the count to exceed to enter a full list
    for v in range(n.shape[0] if room > 0 else 0):
        if n[v] <= bar:
            continue
        i = min(filled, room - 1)
        while i > 0 and n[top[i - 1]] < n[v]:
            top[i] = top[i - 1]
            i -= 1
        top[i] = v
        filled = min(filled + 1, room)
        if filled == room:
            bar = n[top[room - 1]]


@part
def select_best_rows(
    t: int, since: int, values: Floats, n: Floats, reach: Reach, rows: SentRows, state: State
) -> None:
    """Fill best_mean and best_n for the decision of round t; rows were sent in rounds after `since`.

    An origin is received at one distance only and its counts never shrink: the best row ever received of an
    arm stays the best until another beats it, so only origins whose counts grew are delivered.
    """
    n_arms, slots, best_mean, best_n = n.shape[0], rows.n.shape[0], state.best_mean, state.best_n
    received_n, received_from, received_hop = state.received_n, state.received_from, state.received_hop
    for hop in range(1, min(reach.gamma, t - since - 1) + 1):
        slot = (t - hop) % slots
        dense, ptr = reach.dense[hop - 1], reach.ptr[hop - 1]
        for arm in range(n_arms):
            of_arm = BestReceived(received_n[arm], received_from[arm], received_hop[arm])
            counts, count = rows.n[slot, arm], rows.n_updated[slot, arm]
            if count > 0 and dense >= 0:
                _receive_dense(hop, counts, rows.top[slot, arm], reach.by_origin[dense], rows.left, of_arm)
            elif count > 0:
                _receive_updated(hop, counts, rows.updated[slot, arm, :count], ptr, reach.receivers, of_arm)
    now = t % slots
    for arm in range(n_arms):
        for v in range(n.shape[1]):
            slot = now - received_hop[arm, v]
            slot += slots if slot < 0 else 0
            received_mean = rows.mean[slot, arm, received_from[arm, v]]  # unused if the own row is better
            if received_n[arm, v] > n[arm, v]:
                best_n[arm, v] = received_n[arm, v]
                best_mean[arm, v] = received_mean
            else:
                best_n[arm, v] = n[arm, v]
                best_mean[arm, v] = values[arm, v]


@part
def _receive_updated(
    hop: int, counts: Floats, updated: Ids, ptr: Ints, receivers: Ids, received: BestReceived
) -> None:
    """Origins whose count grew deliver their row to the receivers this many hops away (CSR)."""
    for i in range(updated.shape[0]):
        origin = updated[i]
        n = counts[origin]
        for place in range(ptr[origin], ptr[origin + 1]):
            v = receivers[place]
            if n > received.n[v] or (n == received.n[v] and origin < received.origin[v]):
                received.n[v] = n
                received.origin[v] = origin
                received.hop[v] = hop


@part
def _receive_dense(
    hop: int, counts: Floats, order: Ids, words: Words, left: Words, received: BestReceived
) -> None:
    """Origins by count deliver their row to the receivers (bitmasks) that have none yet in this round.

    Receivers with a larger count from earlier rounds drop out; mostly a few rows are enough.
    """
    for i in range(order.shape[0]):
        origin = order[i]
        n = counts[origin]
        if i % RECHECK_EVERY == 0:
            some = np.uint64(0)
            for w in range(left.shape[0]):
                left[w] = (
                    lanes_up_to(received.n, n, w * LANES)
                    if i == 0
                    else keep_up_to(received.n, n, w * LANES, left[w])
                )
                some |= left[w]
            if some == 0:
                return
        for w in range(left.shape[0]):
            word = words[origin, w] & left[w]
            left[w] ^= word
            while word != 0:
                v = w * LANES + lowest_bit(word)
                word &= word - np.uint64(1)
                if n > received.n[v] or (n == received.n[v] and origin < received.origin[v]):
                    received.n[v] = n
                    received.origin[v] = origin
                    received.hop[v] = hop


@step
def update_best_row(
    when: int, v: int, arm: int, origin: int, mean: float, n: float, best_rows: BestRows
) -> None:
    """Agent v receives the row that an origin had of an arm in round `when`.

    Most samples win, then the smallest origin, and of one origin its newest row. Counts of an origin never
    shrink, so an older row of it cannot beat its newest one and is not kept.
    """
    best, known = best_rows.n[arm, v], best_rows.origin[arm, v]
    newer = origin == known and when > best_rows.when[arm, v]
    if n > best or (n == best and (origin < known or newer)):
        best_rows.n[arm, v] = n
        best_rows.mean[arm, v] = mean
        best_rows.origin[arm, v] = origin
        best_rows.when[arm, v] = when


@part
def lanes_up_to(values: Floats, limit: float, lane: int) -> np.uint64:
    """Bitmask of the values from `lane` on that are at most the limit; 0 beyond the last one."""
    word = np.uint64(0)
    for j in range(lane, min(lane + LANES, values.shape[0])):
        word |= np.uint64(values[j] <= limit) << np.uint64(j - lane)
    return word


@part
def keep_up_to(values: Floats, limit: float, lane: int, word: np.uint64) -> np.uint64:
    """The bits of values that are at most the limit, where few are left: one by one."""
    kept = word
    while word != 0:
        bit = word & (~word + np.uint64(1))
        if values[lane + lowest_bit(word)] > limit:
            kept ^= bit
        word ^= bit
    return kept
