"""KMP-UCB: for each agent and arm, the best informed row in reach.

Most samples win; an agent's own on ties, then the smallest origin. Every agent is a learner here.
"""

from __future__ import annotations

from rumormill.kernels.jit import part, step
from rumormill.kernels.state import Floats, Hearing, Ids, Mask, Rows, State


@step
def publish_rows(t: int, first: bool, values: Floats, state: State, rows: Rows) -> None:
    """Note what every agent knows in round t, of which arms it knows more, and per arm who knows most."""
    n, changed = state.n, state.changed
    slots = rows.n.shape[0]
    slot, before = t % slots, (t - 1) % slots
    for arm in range(n.shape[0]):
        for v in range(n.shape[1]):
            rows.n[slot, arm, v] = n[arm, v]
            rows.mean[slot, arm, v] = values[arm, v]
        rows.n_news[slot, arm] = 0
        if changed[arm] or first:
            note_news(slot, before, arm, rows)
            rank_best(n[arm], rows.top[slot, arm])
        else:
            for i in range(rows.top.shape[2]):
                rows.top[slot, arm, i] = rows.top[before, arm, i]


@part
def note_news(slot: int, before: int, arm: int, rows: Rows) -> None:
    """The agents that know more of an arm than a round ago."""
    count = 0
    for v in range(rows.news.shape[2] - 1):
        rows.news[slot, arm, count] = v
        count += rows.n[slot, arm, v] != rows.n[before, arm, v]
    rows.n_news[slot, arm] = count


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


@step
def best_informed(t: int, since: int, values: Floats, hearing: Hearing, rows: Rows, state: State) -> None:
    """Fill best_mean and best_n for the decision of round t; rows were told in rounds after `since`.

    An origin is heard at one distance only and its counts never shrink: the best row ever heard of an arm
    stays the best until another beats it, so that it is enough to listen to those with news.
    """
    n, heard_n = state.n, state.heard_n
    n_arms, slots = n.shape[0], rows.n.shape[0]
    for hop in range(1, min(hearing.gamma, t - since - 1) + 1):
        slot = (t - hop) % slots
        if hearing.dense[hop - 1] >= 0:
            mask = hearing.masks[hearing.dense[hop - 1]]
            _from_dense_hop(slot, hop, mask, hearing, rows, state)
        else:
            for arm in range(n_arms):
                _from_news(slot, hop, arm, hearing, rows, state)
    for arm in range(n_arms):
        for v in range(n.shape[1]):
            if heard_n[arm, v] > n[arm, v]:
                slot = (t - state.heard_hop[arm, v]) % slots
                state.best_n[arm, v] = heard_n[arm, v]
                state.best_mean[arm, v] = rows.mean[slot, arm, state.heard_from[arm, v]]
            else:
                state.best_n[arm, v] = n[arm, v]
                state.best_mean[arm, v] = values[arm, v]


@part
def _from_news(slot: int, hop: int, arm: int, hearing: Hearing, rows: Rows, state: State) -> None:
    """Whoever knows more than a round ago tells those who are this many hops away."""
    heard_n, heard_from, heard_hop = state.heard_n[arm], state.heard_from[arm], state.heard_hop[arm]
    ptr, hearers = hearing.ptr[hop - 1], hearing.hearers
    for i in range(rows.n_news[slot, arm]):
        origin = rows.news[slot, arm, i]
        n = rows.n[slot, arm, origin]
        for place in range(ptr[origin], ptr[origin + 1]):
            v = hearers[place]
            if n > heard_n[v] or (n == heard_n[v] and origin < heard_from[v]):
                heard_n[v] = n
                heard_from[v] = origin
                heard_hop[v] = hop


@step
def _from_dense_hop(slot: int, hop: int, mask: Mask, hearing: Hearing, rows: Rows, state: State) -> None:
    """The best row of a hop is the first heard origin in order of n: a scan of a few, not of all."""
    heard_n, heard_from, heard_hop = state.heard_n, state.heard_from, state.heard_hop
    ranked = rows.top.shape[2]
    for arm in range(heard_n.shape[0]):
        for v in range(heard_n.shape[1]):
            i = 0
            while i < ranked:
                origin = rows.top[slot, arm, i]
                n = rows.n[slot, arm, origin]
                if n < heard_n[arm, v]:
                    break
                if mask[origin, v] != 0.0:
                    if n > heard_n[arm, v] or origin < heard_from[arm, v]:
                        heard_n[arm, v] = n
                        heard_from[arm, v] = origin
                        heard_hop[arm, v] = hop
                    break
                i += 1
            if i == ranked:  # none of the best is heard: look at all
                _from_sources(slot, hop, arm, v, hearing, rows, state)


@step
def _from_sources(slot: int, hop: int, arm: int, v: int, hearing: Hearing, rows: Rows, state: State) -> None:
    """The best row among all sources at exactly this many hops."""
    most, winner, told = state.heard_n[arm, v], state.heard_from[arm, v], rows.n[slot, arm]
    for i in range(hearing.source_ptr[v, hop - 1], hearing.source_ptr[v, hop]):
        origin = hearing.sources[i]
        n = told[origin]
        if n > most or (n == most and origin < winner):
            most, winner = n, origin
            state.heard_hop[arm, v] = hop
    state.heard_n[arm, v], state.heard_from[arm, v] = most, winner
