"""Exact clique covers, independent and dominating sets: SciPy's MILP solver (HiGHS) and OR-Tools' CP-SAT.

Neither solver wins everywhere (docs/decisions/014-exact-solver.md has the measurement):

- dominating sets: HiGHS;
- independent sets: the heaviest clique of the complement for dense graphs; else HiGHS for half of the time,
  then CP-SAT for what is still open;
- clique covers: CP-SAT.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError, SolverError
from rumormill.graphs.adjacency import Adjacency
from rumormill.graphs.independent_sets import greedy_independent
from rumormill.validate import positive


@dataclass(frozen=True)
class SolverAnswer:
    """The variables that are true in the best solution; a proven bound, None if time ran out before any."""

    chosen: tuple[int, ...]
    bound: float | None

    def at_least(self) -> int:
        """The bound of a count that was made small."""
        return 0 if self.bound is None else math.ceil(self.bound - 1e-6)


def cp_model() -> Any:
    """OR-Tools' constraint solver."""
    try:
        from ortools.sat.python import cp_model
    except ImportError:
        raise SolverError("an exact clique cover needs OR-Tools: pip install 'rumormill[exact]'") from None
    return cp_model


def solve(model: Any, variables: Sequence[Any], hint: Iterable[int], time_limit: float) -> SolverAnswer:
    """Solve a model over 0/1 variables, starting from a known solution given as its true variables.

    One worker, so that the same question gets the same answer unless time runs out first.
    """
    known = set(hint)
    for i, variable in enumerate(variables):
        model.add_hint(variable, i in known)
    cp = cp_model()
    solver = cp.CpSolver()
    solver.parameters.max_time_in_seconds = positive("time_limit", time_limit)
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 0
    status = solver.solve(model)
    if status in (cp.OPTIMAL, cp.FEASIBLE):
        chosen = tuple(i for i, variable in enumerate(variables) if solver.boolean_value(variable))
        return SolverAnswer(chosen, float(solver.best_objective_bound))
    if status == cp.UNKNOWN:  # no time even to look at the hint: it still stands
        return SolverAnswer(tuple(sorted(known)), None)
    raise SolverError(f"the exact solver ended with status {solver.status_name(status)}; use method='greedy'")


# From this share of linked pairs on, cliques of the complement are quickest, up to a size where their
# search, which cannot be stopped, stays short.
CLIQUE_SHARE = 0.6
CLIQUE_AGENTS = 300
# Clauses of the model of a cover; more do not fit into memory.
MOST_CLAUSES = 5_000_000


def exact_independent(
    power: Adjacency, weights: NDArray[np.float64], known: Sequence[int], time_limit: float
) -> tuple[list[int], float]:
    """The heaviest independent set found, starting from a known one, and a bound that none can pass."""
    n = power.n_agents
    half = positive("time_limit", time_limit) / 2
    if _all_whole(weights) and n <= CLIQUE_AGENTS and 2 * power.n_edges >= CLIQUE_SHARE * n * (n - 1):
        chosen = _heaviest_clique_of_complement(power, weights)
        return chosen, float(weights[chosen].sum())
    cliques = _cliques_over_links(power)
    best, bound = _by_scipy(power, weights, cliques, known, half)
    if float(weights[best].sum()) < bound:
        try:
            found, proven = _by_ortools(power, weights, cliques, best, half)
        except SolverError:  # not installed: what SciPy proved stands
            return best, bound
        best, bound = max(best, found, key=lambda c: float(weights[c].sum())), min(bound, proven)
    return best, bound


def exact_dominating(power: Adjacency, known: Sequence[int], time_limit: float) -> tuple[list[int], int]:
    """The smallest dominating set found, starting from a known one, and a size that none can undercut."""
    from scipy.sparse import eye_array

    closed = power.matrix(np.float64) + eye_array(power.n_agents)
    chosen, bound = _milp(np.ones(power.n_agents), closed, (1, np.inf), time_limit)
    best = list(known) if chosen is None or len(chosen) >= len(known) else chosen
    return best, math.ceil(bound - 1e-6)


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


def _by_scipy(
    power: Adjacency,
    weights: NDArray[np.float64],
    cliques: list[list[int]],
    known: Sequence[int],
    time_limit: float,
) -> tuple[list[int], float]:
    from scipy.sparse import csr_array

    if not cliques:
        return list(range(power.n_agents)), float(weights.sum())
    rows = np.repeat(np.arange(len(cliques)), [len(clique) for clique in cliques])
    shape = (len(cliques), power.n_agents)
    held = csr_array((np.ones(len(rows)), (rows, np.concatenate(cliques))), shape=shape)
    chosen, bound = _milp(-weights, held, (-np.inf, 1), time_limit)
    best = list(known)
    if chosen is not None:
        found = greedy_independent(power, weights, chosen)
        best = max(best, found, key=lambda c: float(weights[c].sum()))
    return best, _sharp(-bound, weights)


def _by_ortools(
    power: Adjacency,
    weights: NDArray[np.float64],
    cliques: list[list[int]],
    known: Sequence[int],
    time_limit: float,
) -> tuple[list[int], float]:
    model = cp_model().CpModel()
    leads = [model.new_bool_var(str(v)) for v in range(power.n_agents)]
    for clique in cliques:
        model.add_at_most_one(leads[v] for v in clique)
    # The solver counts in whole numbers; rounding up keeps its bound a bound.
    scale = 1.0 if _all_whole(weights) else 2.0**40 / float(weights.sum())
    value = np.ceil(weights * scale).astype(np.int64).tolist()
    model.maximize(sum(w * x for w, x in zip(value, leads, strict=True)))
    answer = solve(model, leads, known, time_limit)
    bound = np.inf if answer.bound is None else answer.bound / scale
    return greedy_independent(power, weights, answer.chosen), _sharp(bound, weights)


def _sharp(bound: float, weights: NDArray[np.float64]) -> float:
    """The bound free of solver rounding: whole weights have whole sums."""
    if _all_whole(weights):
        return float(np.floor(bound + 1e-6))
    return bound + 1e-9 * abs(bound)


def _all_whole(weights: NDArray[np.float64]) -> bool:
    return bool((weights == np.rint(weights)).all())


def _strangers(power: Adjacency) -> tuple[NDArray[Any], NDArray[Any]]:
    """Every pair of agents that do not hear each other, smaller id first."""
    apart = ~power.dense()
    low, high = np.nonzero(np.triu(apart, k=1))
    return low, high


def exact_cover(
    power: Adjacency, colours: NDArray[np.int64], alone: Sequence[int], time_limit: float
) -> tuple[NDArray[np.int64], int]:
    """The smallest clique cover found, starting from a known one, and a size that no cover can undercut.

    Parameters
    ----------
    colours : the group of every agent in the known cover.
    alone : agents of an independent set; each needs a group of its own.
    time_limit : seconds.
    """
    cp = cp_model()
    n, most = power.n_agents, int(colours.max()) + 1
    # Agents that are pairwise strangers open groups 0, 1, ...: only their listeners may join them.
    may_join = np.ones((n, most), np.bool_)
    for g, v in enumerate(alone):
        may_join[:, g] = False
        may_join[power.row(v), g] = True
        may_join[v] = False
        may_join[v, g] = True
    low, high = _strangers(power)
    n_clauses = sum(int((may_join[low, g] & may_join[high, g]).sum()) for g in range(most))
    if n_clauses > MOST_CLAUSES:
        raise InputError(
            f"an exact cover of {n} agents is out of reach: {n_clauses} clauses, at most {MOST_CLAUSES} are "
            "allowed; use method='greedy'"
        )
    model = cp.CpModel()
    pairs = [(v, g) for v, g in np.argwhere(may_join).tolist()]
    joins = {pair: model.new_bool_var(f"{pair}") for pair in pairs}
    used = [model.new_bool_var(f"{g} used") for g in range(most)]
    for v in range(n):
        model.add_exactly_one(joins[v, g] for g in np.flatnonzero(may_join[v]).tolist())
    for (_, g), join in joins.items():
        model.add_implication(join, used[g])
    for g in range(most):
        both = may_join[low, g] & may_join[high, g]
        for v, w in zip(low[both].tolist(), high[both].tolist(), strict=True):
            model.add_bool_or(~joins[v, g], ~joins[w, g])
    for g in range(most - 1):
        model.add_implication(used[g + 1], used[g])
    model.minimize(sum(used))
    # A known cover, its groups renumbered to match, is where the search starts.
    known = _alone_first(colours, alone)[colours]
    hint = [i for i, (v, g) in enumerate(pairs) if known[v] == g] + [len(pairs) + g for g in range(most)]
    answer = solve(model, [*joins.values(), *used], hint, time_limit)
    found = np.array([pairs[i][1] for i in answer.chosen if i < len(pairs)])
    return np.unique(found, return_inverse=True)[1], max(len(alone), answer.at_least())


def _alone_first(colours: NDArray[np.int64], alone: Sequence[int]) -> NDArray[np.int64]:
    """New numbers for the groups, so that the i-th agent of `alone` is in group i."""
    first = colours[list(alone)]
    rest = np.setdiff1d(np.arange(int(colours.max()) + 1), first)
    rank = np.empty(int(colours.max()) + 1, np.int64)
    rank[np.concatenate([first, rest])] = np.arange(len(rank))
    return rank
