"""Quick independent and dominating sets, and the bounds that go with them."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rumormill.graphs.adjacency import Adjacency


def greedy_independent(
    power: Adjacency, weights: NDArray[np.float64], start: Iterable[int] = ()
) -> list[int]:
    """Extend an independent set until it is maximal: most weight per link lost first, then fewest links."""
    chosen = list(start)
    free = np.ones(power.n_agents, np.bool_)
    for v in chosen:
        free[v] = False
        free[power.row(v)] = False
    links = power.degrees.copy()
    if chosen:
        for v in np.flatnonzero(free).tolist():
            links[v] = free[power.row(v)].sum()
    queue = [(-weights[v] / (links[v] + 1), int(links[v]), int(v)) for v in np.flatnonzero(free)]
    heapq.heapify(queue)
    while queue:
        _, at, v = heapq.heappop(queue)
        if not free[v] or at != links[v]:
            continue
        chosen.append(v)
        gone = [v, *power.row(v)[free[power.row(v)]].tolist()]
        free[gone] = False
        touched = set()
        for w in gone:
            near = power.row(w)
            links[near] -= 1
            touched.update(near[free[near]].tolist())
        for w in touched:
            heapq.heappush(queue, (-weights[w] / (links[w] + 1), int(links[w]), w))
    return sorted(chosen)


def greedy_dominating(power: Adjacency) -> list[int]:
    """Take the agent that reaches the most agents not yet reached; then drop agents that are not needed."""
    n = power.n_agents
    reached = np.zeros(n, np.bool_)
    chosen: list[int] = []
    queue = [(-int(d) - 1, v) for v, d in enumerate(power.degrees)]
    heapq.heapify(queue)
    while not reached.all():
        promised, v = heapq.heappop(queue)
        gain = int(not reached[v]) + int((~reached[power.row(v)]).sum())
        if gain < -promised:
            heapq.heappush(queue, (-gain, v))
            continue
        chosen.append(v)
        reached[v] = True
        reached[power.row(v)] = True
    return _without_needless(power, chosen)


def _without_needless(power: Adjacency, chosen: list[int]) -> list[int]:
    times = np.zeros(power.n_agents, np.int64)
    for v in chosen:
        times[v] += 1
        times[power.row(v)] += 1
    kept = []
    for v in chosen:
        if times[v] > 1 and (times[power.row(v)] > 1).all():
            times[v] -= 1
            times[power.row(v)] -= 1
        else:
            kept.append(v)
    return sorted(kept)


def disjoint_reaches(power: Adjacency) -> int:
    """How many agents were found with no listener in common: each needs a dominator of its own."""
    taken = np.zeros(power.n_agents, np.bool_)
    count = 0
    for v in np.argsort(power.degrees, kind="stable"):
        if not taken[v] and not taken[power.row(v)].any():
            taken[v] = True
            taken[power.row(v)] = True
            count += 1
    return count


def linked_pair(power: Adjacency, chosen: Iterable[int]) -> tuple[int, int] | None:
    """Two of these agents that hear each other, or None if the set is independent."""
    inside = np.zeros(power.n_agents, np.bool_)
    members = list(chosen)
    inside[members] = True
    for v in members:
        near = power.row(v)[inside[power.row(v)]]
        if len(near):
            return v, int(near[0])
    return None


def not_reached(power: Adjacency, chosen: Iterable[int]) -> NDArray[np.int64]:
    """The agents that are neither in the set nor hear one of it."""
    reached = np.zeros(power.n_agents, np.bool_)
    for v in chosen:
        reached[v] = True
        reached[power.row(v)] = True
    return np.flatnonzero(~reached)
