"""Exact clique covers, independent and dominating sets: integer programs for SciPy's solver (HiGHS).

An independent set of a dense graph is the heaviest clique of the complement instead. Why this solver:
docs/decisions/014-exact-solver.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError
from rumormill.graphs.adjacency import Adjacency
from rumormill.graphs.independent_sets import greedy_independent
from rumormill.validate import positive

# From this share of linked pairs on, cliques of the complement are quickest, up to a size where their
# search, which cannot be stopped, stays short.
CLIQUE_SHARE = 0.6
CLIQUE_AGENTS = 300
# Maximal cliques, the columns of the program of a cover; with more it is not solved in minutes.
MOST_CLIQUES = 20_000


def exact_independent(
    power: Adjacency, weights: NDArray[np.float64], known: Sequence[int], time_limit: float
) -> tuple[list[int], float]:
    """The heaviest independent set found, starting from a known one, and a bound on the weight of any."""
    positive("time_limit", time_limit)
    n = power.n_agents
    if _all_whole(weights) and n <= CLIQUE_AGENTS and 2 * power.n_edges >= CLIQUE_SHARE * n * (n - 1):
        chosen: list[int] | None = _heaviest_clique_of_complement(power, weights)
        assert chosen is not None
        return chosen, float(weights[chosen].sum())
    cliques = _cliques_over_links(power)
    if not cliques:
        return list(range(n)), float(weights.sum())
    chosen, bound = _milp(-weights, _membership(cliques, n), (-np.inf, 1), time_limit)
    best = list(known)
    if chosen is not None:
        found = greedy_independent(power, weights, chosen)
        best = max(best, found, key=lambda c: float(weights[c].sum()))
    return best, _sharp(-bound, weights)


def exact_dominating(power: Adjacency, known: Sequence[int], time_limit: float) -> tuple[list[int], int]:
    """The smallest dominating set found, starting from a known one, and a size that none can undercut."""
    from scipy.sparse import eye_array

    closed = power.matrix(np.float64) + eye_array(power.n_agents)
    chosen, bound = _milp(np.ones(power.n_agents), closed, (1, np.inf), time_limit)
    best = list(known) if chosen is None or len(chosen) >= len(known) else chosen
    return best, math.ceil(bound - 1e-6)


def exact_cover(
    power: Adjacency, colours: NDArray[np.int64], alone: Sequence[int], time_limit: float
) -> tuple[NDArray[np.int64], int]:
    """The smallest clique cover found, starting from a known one, and a lower bound on the size of any.

    Every clique is part of a maximal one, so a cover is a set of maximal cliques that hold all agents; an
    agent of several belongs to the first.

    Parameters
    ----------
    colours : the group of every agent in the known cover.
    alone : agents of an independent set; each needs a group of its own.
    time_limit : seconds.
    """
    import networkx

    found = networkx.find_cliques(networkx.from_numpy_array(power.dense()))
    cliques = list(itertools.islice(found, MOST_CLIQUES + 1))
    if len(cliques) > MOST_CLIQUES:
        raise InputError(
            f"an exact cover of {power.n_agents} agents is out of reach: more than {MOST_CLIQUES:,} maximal "
            "cliques; use method='greedy'"
        )
    held = _membership(cliques, power.n_agents).T.tocsr()
    chosen, bound = _milp(np.ones(len(cliques)), held, (1, np.inf), time_limit)
    if chosen is not None and len(chosen) < int(colours.max()) + 1:
        colours = np.asarray(held[:, chosen].argmax(axis=1)).ravel().astype(np.int64)
    return np.unique(colours, return_inverse=True)[1], max(len(alone), math.ceil(bound - 1e-6))


def _membership(sets: Sequence[Sequence[int]], n: int) -> Any:
    """The 0/1 matrix with a row for every set and a column for every agent."""
    from scipy.sparse import csr_array

    rows = np.repeat(np.arange(len(sets)), [len(each) for each in sets])
    return csr_array((np.ones(len(rows)), (rows, np.concatenate(sets))), shape=(len(sets), n))


def _milp(
    cost: NDArray[np.float64], rows: Any, between: tuple[float, float], time_limit: float
) -> tuple[list[int] | None, float]:
    """Minimise cost x over 0/1 vectors x with low <= rows x <= high: the ones of the best x, and a bound.

    The first is None, and the bound that of taking all negative costs, if time ran out before any solution.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    result = milp(
        cost,
        constraints=LinearConstraint(rows, *between),
        integrality=np.ones(len(cost)),
        bounds=Bounds(0, 1),
        options={"time_limit": positive("time_limit", time_limit), "mip_rel_gap": 0.0},
    )
    worst = float(np.minimum(cost, 0).sum())
    bound = worst if result.mip_dual_bound is None else max(worst, float(result.mip_dual_bound))
    return None if result.x is None else np.flatnonzero(result.x > 0.5).tolist(), bound


def _heaviest_clique_of_complement(power: Adjacency, weights: NDArray[np.float64]) -> list[int]:
    import networkx

    graph: Any = networkx.from_numpy_array(~power.dense() & ~np.eye(power.n_agents, dtype=np.bool_))
    networkx.set_node_attributes(graph, {v: int(w) for v, w in enumerate(weights)}, "weight")
    clique, _ = networkx.max_weight_clique(graph)
    return sorted(clique)


def _cliques_over_links(power: Adjacency) -> list[list[int]]:
    """Cliques that together hold every link: far tighter for a solver than the links one by one."""
    near = [set(power.row(v).tolist()) for v in range(power.n_agents)]
    open_links = [set(row) for row in near]
    cliques = []
    for v in range(power.n_agents):
        while open_links[v]:
            clique, fits = [v], near[v]
            while fits:
                w = min(fits & open_links[v] or fits)
                clique.append(w)
                fits = fits & near[w]
            for u in clique:
                open_links[u].difference_update(clique)
            cliques.append(clique)
    return cliques


def _sharp(bound: float, weights: NDArray[np.float64]) -> float:
    """The bound free of solver rounding: whole weights have whole sums."""
    if _all_whole(weights):
        return float(np.floor(bound + 1e-6))
    return bound + 1e-9 * abs(bound)


def _all_whole(weights: NDArray[np.float64]) -> bool:
    return bool((weights == np.rint(weights)).all())
