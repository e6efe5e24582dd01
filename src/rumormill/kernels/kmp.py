"""KMP-UCB: for each agent and arm, the best informed row in reach.

Most samples win; an agent's own on ties, then the smallest origin. Every agent is a learner here.
"""

from __future__ import annotations

from rumormill.kernels.jit import part, step
from rumormill.kernels.state import Floats, Hearing, Ids, Mask, Rows, State


@step
def publish_rows(t: int, first: bool, values: Floats, state: State, rows: Rows) -> None:
    """Note what every agent knows in round t, and per arm who knows most."""
    n, changed = state.n, state.changed
    slots = rows.n.shape[0]
    slot, before = t % slots, (t - 1) % slots
    for arm in range(n.shape[0]):
        for v in range(n.shape[1]):
            rows.n[slot, arm, v] = n[arm, v]
            rows.mean[slot, arm, v] = values[arm, v]
        if changed[arm] or first:
            rank_best(n[arm], rows.top[slot, arm])
        else:
            for i in range(rows.top.shape[2]):
                rows.top[slot, arm, i] = rows.top[before, arm, i]


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
    """Fill best_mean and best_n for the decision of round t; rows were told in rounds after `since`."""
    n = state.n
    best_n, best_mean, best_from = state.best_n, state.best_mean, state.best_from
    for arm in range(n.shape[0]):
        for v in range(n.shape[1]):
            best_n[arm, v] = n[arm, v]
            best_mean[arm, v] = values[arm, v]
            best_from[arm, v] = -1
    n_arms, slots = n.shape[0], rows.n.shape[0]
    for hop in range(1, min(hearing.gamma, t - since - 1) + 1):
        slot = (t - hop) % slots
        if hearing.dense[hop - 1] >= 0:
            mask = hearing.masks[hearing.dense[hop - 1]]
            _from_dense_hop(slot, hop, mask, hearing, rows, state)
        else:
            for arm in range(n_arms):
                for v in range(n.shape[1]):
                    _from_sources(slot, hop, arm, v, hearing, rows, state)


@step
def _from_dense_hop(slot: int, hop: int, mask: Mask, hearing: Hearing, rows: Rows, state: State) -> None:
    """The best row of a hop is the first heard origin in order of n: a scan of a few, not of all."""
    best_n, best_mean, best_from = state.best_n, state.best_mean, state.best_from
    ranked = rows.top.shape[2]
    for arm in range(best_n.shape[0]):
        for v in range(best_n.shape[1]):
            i = 0
            while i < ranked:
                origin = rows.top[slot, arm, i]
                n = rows.n[slot, arm, origin]
                if n < best_n[arm, v]:
                    break
                if mask[origin, v] != 0.0:
                    if n > best_n[arm, v] or origin < best_from[arm, v]:
                        best_n[arm, v] = n
                        best_mean[arm, v] = rows.mean[slot, arm, origin]
                        best_from[arm, v] = origin
                    break
                i += 1
            if i == ranked:  # none of the best is heard: look at all
                _from_sources(slot, hop, arm, v, hearing, rows, state)


@step
def _from_sources(slot: int, hop: int, arm: int, v: int, hearing: Hearing, rows: Rows, state: State) -> None:
    """The best row among all sources at exactly this many hops."""
    best_n, best_mean, best_from = state.best_n, state.best_mean, state.best_from
    most, winner = best_n[arm, v], best_from[arm, v]
    told = rows.n[slot, arm]
    for i in range(hearing.source_ptr[v, hop - 1], hearing.source_ptr[v, hop]):
        origin = hearing.sources[i]
        n = told[origin]
        if n > most or (n == most and origin < winner):
            most, winner = n, origin
    if winner != best_from[arm, v]:
        best_n[arm, v] = most
        best_mean[arm, v] = rows.mean[slot, arm, winner]
        best_from[arm, v] = winner
