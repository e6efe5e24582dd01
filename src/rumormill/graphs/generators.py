"""The usual families of graphs, drawn by networkx and rustworkx and checked in the caller's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.graphs.checks import Rng, fresh_seed, generator, probability, whole

Edges = NDArray[np.int64]

# How many draws a caller waits for a connected one before being told that it is hopeless.
DRAWS = 100


def pairs(edges: Any) -> Edges:
    """Any iterable of pairs of ids as an (m, 2) array, also when there are none."""
    return np.array(list(edges), np.int64).reshape(-1, 2)


def erdos_renyi(n: int, p: float, rng: Rng, connected: bool) -> tuple[int, Edges]:
    """Every pair is an edge with probability p."""
    import rustworkx

    n, p = whole("n", n, 1), probability("p", p)

    def draw(seed: int) -> Edges:
        return pairs(rustworkx.undirected_gnp_random_graph(n, p, seed=seed).edge_list())

    return n, _draw(n, draw, rng, connected, f"Erdős–Rényi(n={n}, p={p})", "raise p")


def barabasi_albert(n: int, m: int, rng: Rng) -> tuple[int, Edges]:
    """Each new agent links to m earlier ones, by their degree; always connected."""
    import networkx

    n, m = whole("n", n, 2), whole("m", m, 1)
    if m >= n:
        raise InputError(f"m = {m} is not allowed for n = {n}: a new agent links to 1 to n - 1 earlier ones")
    return n, pairs(networkx.barabasi_albert_graph(n, m, seed=fresh_seed(generator(rng))).edges)


def watts_strogatz(n: int, k: int, p: float, rng: Rng, connected: bool) -> tuple[int, Edges]:
    """A ring where each agent knows k nearest ones, each link rewired with probability p."""
    import networkx

    n, k, p = whole("n", n, 3), whole("k", k, 2), probability("p", p)
    if k % 2 or k >= n:
        raise InputError(f"k = {k} is not allowed for n = {n}: it must be even and below n")

    def draw(seed: int) -> Edges:
        return pairs(networkx.watts_strogatz_graph(n, k, p, seed=seed).edges)

    return n, _draw(n, draw, rng, connected, f"Watts–Strogatz(n={n}, k={k}, p={p})", "raise k")


def random_regular(n: int, d: int, rng: Rng, connected: bool) -> tuple[int, Edges]:
    """Every agent has exactly d neighbours."""
    import networkx

    n, d = whole("n", n, 1), whole("d", d, 0)
    if d >= n or (n * d) % 2:
        raise InputError(f"d = {d} is not allowed for n = {n}: it must be below n, and n times d even")

    def draw(seed: int) -> Edges:
        if d > (n - 1) // 2:  # the complement is regular too, and quicker to draw
            return pairs(networkx.complement(networkx.random_regular_graph(n - 1 - d, n, seed=seed)).edges)
        return pairs(networkx.random_regular_graph(d, n, seed=seed).edges)

    return n, _draw(n, draw, rng, connected, f"random regular(n={n}, d={d})", "raise d")


def ring(n: int) -> tuple[int, Edges]:
    """A closed chain."""
    ids = np.arange(whole("n", n, 3))
    return n, np.column_stack([ids, np.roll(ids, -1)])


def path(n: int) -> tuple[int, Edges]:
    """An open chain."""
    ids = np.arange(whole("n", n, 1))
    return n, np.column_stack([ids[:-1], ids[1:]])


def star(n: int) -> tuple[int, Edges]:
    """Agent 0 is the hub of all others."""
    leaves = np.arange(1, whole("n", n, 1))
    return n, np.column_stack([np.zeros_like(leaves), leaves])


def complete(n: int) -> tuple[int, Edges]:
    """Everyone hears everyone."""
    return n, np.column_stack(np.triu_indices(whole("n", n, 1), k=1))


def grid(rows: int, cols: int) -> tuple[list[tuple[int, int]], Edges]:
    """A chequerboard; labels are (row, column)."""
    ids = np.arange(whole("rows", rows, 1) * whole("cols", cols, 1)).reshape(rows, cols)
    across = np.column_stack([ids[:, :-1].ravel(), ids[:, 1:].ravel()])
    down = np.column_stack([ids[:-1].ravel(), ids[1:].ravel()])
    return [(r, c) for r in range(rows) for c in range(cols)], np.concatenate([across, down])


def balanced_tree(branching: int, height: int) -> tuple[int, Edges]:
    """A rooted tree: every agent above the last level has the same number of children."""
    branching, height = whole("branching", branching, 1), whole("height", height, 0)
    n = sum(branching**level for level in range(height + 1))
    children = np.arange(1, n)
    return n, np.column_stack([(children - 1) // branching, children])


def _draw(n: int, draw: Callable[[int], Edges], rng: Rng, connected: bool, name: str, advice: str) -> Edges:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    stream = generator(rng)
    for _ in range(DRAWS):
        edges = draw(fresh_seed(stream))
        if not connected:
            return edges
        links = coo_array((np.ones(len(edges), np.int8), (edges[:, 0], edges[:, 1])), shape=(n, n))
        if connected_components(links, directed=False, return_labels=False) == 1:
            return edges
    raise InputError(f"{name} gave no connected graph in {DRAWS} draws: {advice}, or pass connected=False")
