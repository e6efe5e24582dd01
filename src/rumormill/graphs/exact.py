"""Exact independent and dominating sets, with a certificate where time allows.

Largest independent and smallest dominating sets, proven where time allows.

No one solver wins everywhere. Dense graphs: the heaviest clique of the complement. Others: SciPy's mixed
integer solver, strong on sparse graphs, gets half of the time; what it leaves open goes to OR-Tools.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import SolverError
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
        raise SolverError("method='exact' needs OR-Tools: pip install 'rumormill[exact]'") from None
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
    model = cp_model().CpModel()
    leads = [model.new_bool_var(str(v)) for v in range(power.n_agents)]
    for v in range(power.n_agents):
        model.add_bool_or([leads[v], *(leads[w] for w in power.row(v))])
    model.minimize(sum(leads))
    answer = solve(model, leads, known, time_limit)
    return list(answer.chosen), answer.at_least()


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
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    if not cliques:
        return list(range(power.n_agents)), float(weights.sum())
    rows = np.repeat(np.arange(len(cliques)), [len(clique) for clique in cliques])
    shape = (len(cliques), power.n_agents)
    held = csr_array((np.ones(len(rows)), (rows, np.concatenate(cliques))), shape=shape)
    result = milp(
        -weights,
        constraints=LinearConstraint(held, -np.inf, 1),
        integrality=np.ones(power.n_agents),
        bounds=Bounds(0, 1),
        options={"time_limit": time_limit, "mip_rel_gap": 0.0},
    )
    bound = float(weights.sum()) if result.mip_dual_bound is None else -float(result.mip_dual_bound)
    best = list(known)
    if result.x is not None:
        found = greedy_independent(power, weights, np.flatnonzero(result.x > 0.5).tolist())
        best = max(best, found, key=lambda c: float(weights[c].sum()))
    return best, _sharp(bound, weights)


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
