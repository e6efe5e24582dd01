"""KMP-UCB: for each agent and arm, the best informed row in reach.

Most samples win; an agent's own on ties, then the smallest origin. Every agent is a learner here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rumormill.kernels.jit import part, step
from rumormill.kernels.lossy_state import Hearsay
from rumormill.kernels.simd.bitmask import lowest_bit
from rumormill.kernels.simd.masked_add import LANES, lanes_up_to
from rumormill.kernels.state import Flags, Floats, Hearing, Ids, Ints, Rows, Words


class Heard(NamedTuple):
    """The largest count ever heard of an arm, from whom, and how many hops away that agent is."""

    n: Floats
    origin: Ids
    hop: Ids


# Rows told between two looks at who could still hear of more.
LOOK_AGAIN = 8


@part
def publish_rows(t: int, first: bool, values: Floats, n: Floats, changed: Flags, rows: Rows) -> None:
    """Note what every agent knows in round t, of which arms it knows more, and per arm who knows most."""
    slots = rows.n.shape[0]
    slot, before = t % slots, (t - 1) % slots
    for arm in range(n.shape[0]):
        for v in range(n.shape[1]):
            rows.n[slot, arm, v] = n[arm, v]
            rows.mean[slot, arm, v] = values[arm, v]
        rows.n_news[slot, arm] = 0
        if changed[arm] or first:
            rows.n_news[slot, arm] = note_news(rows.n[slot, arm], rows.n[before, arm], rows.news[slot, arm])
            rank(n[arm], rows.top[before, arm], rows.top[slot, arm])
        else:
            for i in range(rows.top.shape[2]):
                rows.top[slot, arm, i] = rows.top[before, arm, i]


@part
def note_news(n: Floats, before: Floats, news: Ids) -> int:
    """The agents that know more of an arm than a round ago; how many they are, or 1 if nobody asks who."""
    if news.shape[0] == 0:
        return 1
    count = 0
    for v in range(n.shape[0]):
        news[count] = v
        count += n[v] != before[v]
    return count


@part
def rank(n: Floats, before: Ids, order: Ids) -> None:
    """Agents by n, most first, equal ones by id, from the order of a round ago: few have to move."""
    last, least = -1, np.inf  # who stands last so far, and what it knows
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
def rank_best(n: Floats, top: Ids) -> None:
    """The agents with most samples, most first, equal ones by id (insertion into a short list)."""
    filled, room = 0, top.shape[0]
    bar = -1.0  # what it takes to enter a full list
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
def best_informed(
    t: int,
    since: int,
    values: Floats,
    n: Floats,
    hearing: Hearing,
    rows: Rows,
    heard: Heard,
    best_mean: Floats,
    best_n: Floats,
) -> None:
    """Fill best_mean and best_n for the decision of round t; rows were told in rounds after `since`.

    An origin is heard at one distance only and its counts never shrink: the best row ever heard of an arm
    stays the best until another beats it, so that it is enough to listen to those with news.
    """
    n_arms, slots = n.shape[0], rows.n.shape[0]
    for hop in range(1, min(hearing.gamma, t - since - 1) + 1):
        slot = (t - hop) % slots
        dense, ptr = hearing.dense[hop - 1], hearing.ptr[hop - 1]
        for arm in range(n_arms):
            of_arm = Heard(heard.n[arm], heard.origin[arm], heard.hop[arm])
            told, count = rows.n[slot, arm], rows.n_news[slot, arm]
            if count > 0 and dense >= 0:
                _from_dense_hop(hop, told, rows.top[slot, arm], hearing.by_origin[dense], rows.left, of_arm)
            elif count > 0:
                _from_news(hop, told, rows.news[slot, arm, :count], ptr, hearing.hearers, of_arm)
    now = t % slots
    for arm in range(n_arms):
        for v in range(n.shape[1]):
            slot = now - heard.hop[arm, v]
            slot += slots if slot < 0 else 0
            heard_mean = rows.mean[slot, arm, heard.origin[arm, v]]  # looked up in vain if the own is better
            if heard.n[arm, v] > n[arm, v]:
                best_n[arm, v] = heard.n[arm, v]
                best_mean[arm, v] = heard_mean
            else:
                best_n[arm, v] = n[arm, v]
                best_mean[arm, v] = values[arm, v]


@part
def _from_news(hop: int, told: Floats, news: Ids, ptr: Ints, hearers: Ids, heard: Heard) -> None:
    """Whoever knows more than a round ago tells those who are this many hops away."""
    for i in range(news.shape[0]):
        origin = news[i]
        n = told[origin]
        for place in range(ptr[origin], ptr[origin + 1]):
            v = hearers[place]
            if n > heard.n[v] or (n == heard.n[v] and origin < heard.origin[v]):
                heard.n[v] = n
                heard.origin[v] = origin
                heard.hop[v] = hop


@part
def _from_dense_hop(hop: int, told: Floats, order: Ids, words: Words, left: Words, heard: Heard) -> None:
    """Who knows most tells all its hearers, the next one those who heard nobody yet, and so on.

    Whoever has heard of more already is not asked again; mostly that is everybody after a few rows.
    """
    for w in range(left.shape[0]):
        left[w] = ~np.uint64(0)
    for i in range(order.shape[0]):
        origin = order[i]
        n = told[origin]
        if i % LOOK_AGAIN == 0:
            some = np.uint64(0)
            for w in range(left.shape[0]):
                left[w] &= lanes_up_to(heard.n, n, w * LANES)
                some |= left[w]
            if some == 0:
                return
        for w in range(left.shape[0]):
            word = words[origin, w] & left[w]
            left[w] ^= word
            while word != 0:
                v = w * LANES + lowest_bit(word)
                word &= word - np.uint64(1)
                if n > heard.n[v] or (n == heard.n[v] and origin < heard.origin[v]):
                    heard.n[v] = n
                    heard.origin[v] = origin
                    heard.hop[v] = hop


@step
def believe(when: int, v: int, arm: int, origin: int, mean: float, n: float, hearsay: Hearsay) -> None:
    """Agent v hears of an arm what the origin knew in round `when`.

    Most samples win, then the smallest origin, and of one origin its newest word. What an origin counts never
    shrinks, so what was heard of it before cannot beat its newest word, and need not be kept.
    """
    best, known = hearsay.n[arm, v], hearsay.origin[arm, v]
    newer = origin == known and when > hearsay.when[arm, v]
    if n > best or (n == best and (origin < known or newer)):
        hearsay.n[arm, v] = n
        hearsay.mean[arm, v] = mean
        hearsay.origin[arm, v] = origin
        hearsay.when[arm, v] = when
