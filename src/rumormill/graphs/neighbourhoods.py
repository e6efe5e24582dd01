"""Agents within gamma hops of each agent, and the diameter, by sparse products frontier by frontier.

In an undirected graph a neighbour of an agent at distance d is at distance d-1, d or d+1, so the next
frontier is the product of the last one with the adjacency matrix, less the last two frontiers. The cost
is that of the pairs in reach: no n x n matrix is needed. Only where a large share of all pairs is in reach
anyway, and the network is not too large, breadth-first searches into a full matrix are quicker.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rumormill.graphs.adjacency import Adjacency, frozen

# A full matrix is used up to this size: 300 MB while it is made.
MATRIX_AGENTS = 6_000
# Steps per pair of agents from which a frontier is too dear: beside a full matrix, and beside bit sets.
DEAR_FOR_ROWS = 2.0
DEAR_FOR_DIAMETER = 0.1
# Agents whose messages are followed together when only the diameter is asked for.
SOURCES_AT_ONCE = 1_024

Layer: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32]]


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
    layers: list[Layer] = []
    walk = frontiers(adjacency)
    while len(layers) < gamma:
        dear = layers and _steps_per_pair(adjacency, layers[-1]) > DEAR_FOR_ROWS
        if dear and adjacency.n_agents <= MATRIX_AGENTS:
            return _from_matrix(_distance_matrix(adjacency), gamma)
        layer = next(walk, None)
        if layer is None:
            break
        layers.append(layer)
    return _from_layers(adjacency.n_agents, layers, gamma)


def _from_layers(n: int, layers: list[Layer], gamma: int) -> Neighbourhoods:
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


def _from_matrix(full: NDArray[np.int16], gamma: int) -> Neighbourhoods:
    ids, hops, sizes = [], [], []
    for rows in np.array_split(full, len(full) // 500 + 1):
        order = np.argsort(rows, axis=1, kind="stable").astype(np.int32)
        sorted_hops = np.take_along_axis(rows, order, axis=1)
        near = (sorted_hops >= 1) & (sorted_hops <= gamma)
        ids.append(order[near])
        hops.append(sorted_hops[near].astype(np.int32))
        sizes.append(near.sum(axis=1))
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    return Neighbourhoods(gamma, frozen(indptr), frozen(np.concatenate(ids)), frozen(np.concatenate(hops)))


def frontiers(adjacency: Adjacency) -> Iterator[Layer]:
    """For distance 1, 2, ... the pairs at exactly that distance, as (indptr, sorted ids); ends when none."""
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


def _steps_per_pair(adjacency: Adjacency, layer: Layer) -> float:
    """What the next frontier costs, beside the number of all pairs."""
    return float(adjacency.degrees[layer[1]].sum() / adjacency.n_agents**2)


def _distance_matrix(adjacency: Adjacency) -> NDArray[np.int16]:
    """All hop distances; 0 also where there is no path."""
    import rustworkx

    graph = rustworkx.PyGraph()
    graph.add_nodes_from(range(adjacency.n_agents))
    graph.add_edges_from_no_data(list(map(tuple, adjacency.edges().tolist())))
    full: NDArray[np.int16] = rustworkx.distance_matrix(graph).astype(np.int16)
    return full


def hops_from(adjacency: Adjacency, v: int) -> NDArray[np.int64]:
    """Hop distance from v to every agent; -1 where there is no path."""
    from scipy.sparse.csgraph import dijkstra

    hops = dijkstra(adjacency.matrix(np.float64), indices=v, unweighted=True)
    return np.where(np.isinf(hops), -1, hops).astype(np.int64)


def longest_distance(adjacency: Adjacency) -> int:
    """The largest finite distance between two agents."""
    longest = 0
    for layer in frontiers(adjacency):
        longest += 1
        if _steps_per_pair(adjacency, layer) > DEAR_FOR_DIAMETER:
            return _longest_by_bits(adjacency)
    return longest


def _longest_by_bits(adjacency: Adjacency) -> int:
    """The same by spreading sets of agents, 64 to a machine word, until none grows any more."""
    linked = np.flatnonzero(adjacency.degrees)
    starts = adjacency.indptr[linked]
    longest = 0
    for sources in np.array_split(linked, len(linked) // SOURCES_AT_ONCE + 1):
        heard = np.zeros((adjacency.n_agents, len(sources) // 64 + 1), np.uint64)
        bit = np.arange(len(sources))
        heard[sources, bit // 64] = np.uint64(1) << (bit % 64).astype(np.uint64)
        for hops in itertools.count(1):
            fresh = np.bitwise_or.reduceat(heard[adjacency.indices], starts, axis=0) | heard[linked]
            if np.array_equal(fresh, heard[linked]):
                break
            heard[linked] = fresh
            longest = max(longest, hops)
    return longest
