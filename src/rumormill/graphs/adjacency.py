"""CSR adjacency, the agents within gamma hops of each agent, and the diameter.

In an undirected graph a neighbour of an agent at distance d is at distance d-1, d or d+1, so the next
frontier is the product of the last one with the adjacency matrix, less the last two frontiers. The cost
is that of the pairs in reach: no n x n matrix is needed. Only where a large share of all pairs is in reach
and the network is not too large, breadth-first searches into a full matrix are faster.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.system_memory import available_bytes
from rumormill.text import amount, memory

IntArray = NDArray[np.integer[Any]]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """The same array, made read-only."""
    array.setflags(write=False)
    return array


@dataclass(frozen=True, eq=False)
class Adjacency:
    """An undirected graph without loops: row v is indices[indptr[v]:indptr[v + 1]], sorted."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]

    @property
    def n_agents(self) -> int:
        """Number of rows."""
        return len(self.indptr) - 1

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return len(self.indices) // 2

    @property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbours of every agent."""
        return np.diff(self.indptr)

    def row(self, v: int) -> NDArray[np.int32]:
        """The neighbours of v, sorted."""
        return self.indices[self.indptr[v] : self.indptr[v + 1]]

    def edges(self) -> NDArray[np.int64]:
        """Every edge once, as rows (smaller id, larger id)."""
        tails = np.repeat(np.arange(self.n_agents), self.degrees)
        once = tails < self.indices
        return np.column_stack([tails[once], self.indices[once].astype(np.int64)])

    @cached_property
    def masks(self) -> list[int]:
        """The rows as bitmasks: bit w of masks[v] is set iff v and w are linked. For some thousand agents."""
        packed = np.packbits(self.dense(), axis=1, bitorder="little")
        return [int.from_bytes(row.tobytes(), "little") for row in packed]

    def matrix(self, dtype: Any = np.int8) -> Any:
        """The 0/1 adjacency matrix as a SciPy sparse array."""
        from scipy.sparse import csr_array

        shape = (self.n_agents, self.n_agents)
        return csr_array((np.ones(len(self.indices), dtype), self.indices, self.indptr), shape=shape)

    def dense(self, dtype: Any = np.bool_) -> NDArray[Any]:
        """The adjacency matrix as a full array; only for small or dense graphs."""
        full = np.zeros((self.n_agents, self.n_agents), dtype)
        full[np.repeat(np.arange(self.n_agents), self.degrees), self.indices] = 1
        return full


def from_edges(n_agents: int, edges: NDArray[np.int64]) -> tuple[Adjacency, int, int]:
    """The graph of these pairs of ids; also how many self-loops and how many repeats were dropped."""
    low, high = edges.min(axis=1), edges.max(axis=1)
    proper = low != high
    keys = np.unique(low[proper] * n_agents + high[proper])
    loops = len(edges) - int(proper.sum())
    repeats = int(proper.sum()) - len(keys)
    low, high = np.divmod(keys, n_agents)
    tails, heads = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.lexsort((heads, tails))
    indptr = np.zeros(n_agents + 1, np.int64)
    np.cumsum(np.bincount(tails, minlength=n_agents), out=indptr[1:])
    return Adjacency(frozen(indptr), frozen(heads[order].astype(np.int32))), loops, repeats


# A full matrix is used up to this size: 300 MB while it is made.
MATRIX_AGENTS = 6_000
# Steps per pair of agents from which a frontier is too expensive, beside a full matrix and bit sets.
EXPENSIVE_FOR_ROWS = 2.0
EXPENSIVE_FOR_DIAMETER = 0.1
# More steps than these in one frontier take longer than spreading bits from the outermost agents.
STEPS_FOR_DIAMETER = 3_000_000
# What a pair in reach takes while the frontiers are made and put together.
BYTES_PER_PAIR = 50
# Number of agents sampled to estimate the size of neighbourhoods; the seed is fixed.
SAMPLED, SEED = 16, 1
# Number of sources per breadth-first sweep when only the diameter is computed.
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
        """Number of agents within reach of each agent; this is its degree in the power graph."""
        return np.diff(self.indptr)

    def row(self, v: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The agents within reach of v and their distances."""
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
        """The power graph: an edge between any two agents within reach of each other."""
        rows = np.repeat(np.arange(len(self.sizes)), self.sizes)
        order = np.lexsort((self.indices, rows))
        return Adjacency(self.indptr, frozen(self.indices[order]))


def neighbourhoods(adjacency: Adjacency, gamma: int) -> Neighbourhoods:
    """The gamma-neighbourhoods of every agent."""
    _refuse_without_memory(adjacency, gamma)
    layers: list[Layer] = []
    walk = frontiers(adjacency)
    while len(layers) < gamma:
        expensive = layers and _steps_per_pair(adjacency, layers[-1]) > EXPENSIVE_FOR_ROWS
        if expensive and adjacency.n_agents <= MATRIX_AGENTS:
            return _from_matrix(_distance_matrix(adjacency), gamma)
        layer = next(walk, None)
        if layer is None:
            break
        layers.append(layer)
    return _from_layers(adjacency.n_agents, layers, gamma)


def _refuse_without_memory(adjacency: Adjacency, gamma: int) -> None:
    """Refuse a gamma whose neighbourhoods would not fit into memory, estimated from a sample of agents."""
    n = adjacency.n_agents
    if gamma < 2 or n <= MATRIX_AGENTS:
        return
    some = np.random.default_rng(SEED).integers(0, n, SAMPLED)
    reach = [int(((hops := hops_from(adjacency, int(v))) >= 1).sum() - (hops > gamma).sum()) for v in some]
    pairs = n * float(np.mean(reach))
    needed, there = BYTES_PER_PAIR * pairs, available_bytes()
    if needed > there:
        raise InputError(
            f"gamma = {gamma} is not possible here: so far each of the {n:,} agents hears about "
            f"{amount(pairs / n)} others, which takes about {memory(needed)} of memory, {memory(there)} are "
            "there; take a smaller gamma or fewer agents"
        )


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


def _steps(adjacency: Adjacency, layer: Layer) -> int:
    """What the next frontier costs."""
    return int(adjacency.degrees[layer[1]].sum())


def _steps_per_pair(adjacency: Adjacency, layer: Layer) -> float:
    """The same beside the number of all pairs."""
    return _steps(adjacency, layer) / adjacency.n_agents**2


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


def longest_distance(adjacency: Adjacency, work: float = math.inf) -> tuple[int, int]:
    """The largest finite distance between two agents: it lies between these two, which are mostly the same.

    They differ only where finding it out would take more than so many operations.
    """
    longest, most = 0, min(EXPENSIVE_FOR_DIAMETER * adjacency.n_agents**2, STEPS_FOR_DIAMETER)
    for layer in frontiers(adjacency):
        longest += 1
        steps = _steps(adjacency, layer)
        work -= steps
        if steps > most or work <= 0:
            return _longest_from_outside(adjacency, work)
    return longest, longest


def _longest_from_outside(adjacency: Adjacency, work: float) -> tuple[int, int]:
    """The same, part by part, from the agents outermost around one in the middle.

    When all farther than i hops from it are looked at, any two others are within 2 i hops of each other: as
    soon as a distance as long as that is known, it is the longest (Crescenzi et al. 2013).
    """
    from scipy.sparse.csgraph import connected_components

    count, part = connected_components(adjacency.matrix(), directed=False)
    sizes = np.bincount(part, minlength=count)
    longest = at_most = 0
    for one in np.argsort(-sizes, kind="stable").tolist():
        if sizes[one] - 1 <= longest:
            break
        found, hops = _around_the_middle(adjacency, np.flatnonzero(part == one))
        longest = max(longest, found)
        outside = np.argsort(-hops, kind="stable")
        first, step = 0, min(64, SOURCES_AT_ONCE)  # then twice as many at a time
        while first < len(outside) and longest < 2 * hops[outside[first]]:
            if work <= 0:
                at_most = max(at_most, 2 * int(hops[outside[first]]))
                break
            sources = outside[first : first + step]
            longest = max(longest, reached := _farthest(adjacency, sources))
            work -= float(len(adjacency.indices)) * -(-len(sources) // 64) * (reached + 1)
            first, step = first + step, min(2 * step, SOURCES_AT_ONCE)
    return longest, max(longest, at_most)


def _around_the_middle(adjacency: Adjacency, part: NDArray[np.int64]) -> tuple[int, NDArray[np.int64]]:
    """A long distance within this part, and all hops from an agent in the middle of it.

    That is one with many links, or one halfway between two agents far apart: whichever is nearer to all.
    """
    hub = hops_from(adjacency, int(part[np.argmax(adjacency.degrees[part])]))
    one = hops_from(adjacency, int(np.argmax(hub)))
    other = hops_from(adjacency, int(np.argmax(one)))
    found = int(one.max())
    between = np.flatnonzero((one + other == found) & (one == found // 2))
    halfway = hops_from(adjacency, int(between[len(between) // 2]))
    return max(found, int(other.max())), min(hub, halfway, key=lambda hops: int(hops.max()))


def _farthest(adjacency: Adjacency, sources: NDArray[np.int64]) -> int:
    """The longest distance from these agents: sets of them, 64 to a machine word, spread until none grows."""
    linked = np.flatnonzero(adjacency.degrees)
    starts = adjacency.indptr[linked]
    heard = np.zeros((adjacency.n_agents, -(-len(sources) // 64)), np.uint64)
    bit = np.arange(len(sources))
    heard[sources, bit // 64] = np.uint64(1) << (bit % 64).astype(np.uint64)
    hops = 0
    while True:
        fresh = np.bitwise_or.reduceat(heard[adjacency.indices], starts, axis=0) | heard[linked]
        if np.array_equal(fresh, heard[linked]):
            return hops
        heard[linked] = fresh
        hops += 1
