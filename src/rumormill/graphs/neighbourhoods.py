"""Agents within gamma hops of each agent, and the diameter, by sparse products frontier by frontier.

In an undirected graph a neighbour of an agent at distance d is at distance d-1, d or d+1, so the next
frontier is the product of the last one with the adjacency matrix, less the last two frontiers. The cost
is that of the pairs in reach: no n x n matrix is needed. Only graphs that are themselves dense go
through full matrices, where one BLAS product is far quicker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.graphs.adjacency import Adjacency, frozen

# A full matrix is used up to this size, and only when the graph holds this share of all pairs.
DENSE_AGENTS = 10_000
DENSE_SHARE = 0.02


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """Row v holds the agents at distance 1..gamma of v, sorted by (distance, id)."""

    gamma: int
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    distances: NDArray[np.int32]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many agents each agent hears; this is its degree in the power graph."""
        return np.diff(self.indptr)

    def row(self, v: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The agents that v hears and their distances."""
        span = slice(self.indptr[v], self.indptr[v + 1])
        return self.indices[span], self.distances[span]

    def distance(self, v: int, w: int) -> int | None:
        """Hops from v to w: 0 for itself, None beyond gamma."""
        if v == w:
            return 0
        ids, distances = self.row(v)
        found = np.flatnonzero(ids == w)
        return int(distances[found[0]]) if len(found) else None

    def power(self) -> Adjacency:
        """The power graph: an edge between any two agents that hear each other."""
        rows = np.repeat(np.arange(len(self.sizes)), self.sizes)
        order = np.lexsort((self.indices, rows))
        return Adjacency(self.indptr, frozen(self.indices[order]))


def neighbourhoods(adjacency: Adjacency, gamma: int) -> Neighbourhoods:
    """The gamma-neighbourhoods of every agent."""
    n = adjacency.n_agents
    layers = [(row_ptr, ids) for _, (row_ptr, ids) in zip(range(gamma), frontiers(adjacency), strict=False)]
    indptr = np.zeros(n + 1, np.int64)
    for row_ptr, _ in layers:
        indptr += row_ptr
    indices = np.empty(indptr[-1], np.int32)
    distances = np.empty(indptr[-1], np.int32)
    start = indptr[:-1].copy()
    for distance, (row_ptr, ids) in enumerate(layers, start=1):
        sizes = np.diff(row_ptr)
        # The k-th entry of row v of this layer goes to start[v] + k.
        place = np.arange(len(ids)) + np.repeat(start - row_ptr[:-1], sizes)
        indices[place] = ids
        distances[place] = distance
        start += sizes
    return Neighbourhoods(gamma, frozen(indptr), frozen(indices), frozen(distances))


def frontiers(adjacency: Adjacency) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """For distance 1, 2, ... the pairs at exactly that distance, as (indptr, sorted ids); ends when none."""
    n = adjacency.n_agents
    if n <= DENSE_AGENTS and len(adjacency.indices) > DENSE_SHARE * n * n:
        return _dense_frontiers(adjacency)
    return _sparse_frontiers(adjacency)


def _sparse_frontiers(adjacency: Adjacency) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    from scipy.sparse import eye_array

    step = adjacency.matrix(np.bool_)
    before = eye_array(adjacency.n_agents, dtype=np.bool_, format="csr")
    frontier = step
    while frontier.nnz:
        frontier.sort_indices()
        yield frontier.indptr.astype(np.int64), frontier.indices.astype(np.int32)
        reached = frontier @ step
        before, frontier = frontier, _without(_without(reached, frontier), before)


def _without(pairs: Any, gone: Any) -> Any:
    """The entries of one 0/1 matrix that are not entries of the other."""
    rest = pairs > gone
    rest.eliminate_zeros()
    return rest


def _dense_frontiers(adjacency: Adjacency) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    step = adjacency.dense(np.float32)
    frontier = step > 0
    reached = frontier | np.eye(adjacency.n_agents, dtype=np.bool_)
    while frontier.any():
        indptr = np.zeros(adjacency.n_agents + 1, np.int64)
        np.cumsum(frontier.sum(axis=1), out=indptr[1:])
        yield indptr, np.nonzero(frontier)[1].astype(np.int32)
        if reached.all():
            return
        frontier = (frontier.astype(np.float32) @ step > 0) & ~reached
        reached |= frontier


def hops_from(adjacency: Adjacency, v: int) -> NDArray[np.int64]:
    """Hop distance from v to every agent; -1 where there is no path."""
    from scipy.sparse.csgraph import dijkstra

    hops = dijkstra(adjacency.matrix(np.float64), indices=v, unweighted=True)
    return np.where(np.isinf(hops), -1, hops).astype(np.int64)


def longest_distance(adjacency: Adjacency) -> int:
    """The largest finite distance between two agents."""
    return sum(1 for _ in frontiers(adjacency))
