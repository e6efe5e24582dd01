"""Clique covers: a partition of the agents into groups whose members are within gamma hops of each other.

A clique cover is a colouring of the complement graph: agents of one colour are one group. Its least size, the
clique cover number, is at least the size of any independent set.

Exact clique covers, independent and dominating sets are integer programs for SciPy's solver (HiGHS). An
independent set of a dense graph is the heaviest clique of the complement instead. Why this solver:
docs/decisions/014-exact-solver.md.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError, SolverError
from rumormill.graphs.adjacency import Adjacency, frozen
from rumormill.graphs.independent_sets import anneal, greedy_independent
from rumormill.graphs.network import Network
from rumormill.seeds import RandomSource as Rng
from rumormill.seeds import fresh_seed, generator
from rumormill.validate import positive

Groups = tuple[tuple[int, ...], ...]

# Up to here rows of the power graph are bit sets (Python integers): 2 MB, and several times faster.
MASKED_AGENTS = 4_096
# Up to here, counting into all groups is quicker than sorting the few that are near.
FEW_GROUPS = 500
# Rounds of regrouping after the first colouring: gains fade after a dozen; fewer on many agents.
MOST_REGROUPINGS = 20
REGROUPED_AGENTS = 200_000


@dataclass(frozen=True, eq=False)
class Cover:
    """A partition of the agents into cliques of the power graph.

    groups hold sorted ids and come in the order of their first members; group_of[v] is the index of v's
    group. No cover has fewer than lower_bound groups; optimal says that this one has no more.
    """

    groups: Groups
    group_of: NDArray[np.int64]
    lower_bound: int
    optimal: bool
    method: str


def clique_cover(
    network: Network,
    gamma: int | Literal["half-diameter"],
    *,
    method: Literal["greedy", "exact"] = "greedy",
    time_limit: float = 10.0,
    rng: Rng | None = None,
) -> Cover:
    """Partition the agents into few groups whose members are within gamma hops of each other.

    Parameters
    ----------
    gamma : int or "half-diameter"
        Hop budget.
    method : "greedy" | "exact"
        "greedy" keeps the best of several colourings; "exact" solves an integer program.
    time_limit : float
        Seconds after which "exact" returns the best cover found.
    rng : source of randomness, default 0
        Orders the greedy attempts.
    """
    power = network.power(gamma)
    if method not in ("greedy", "exact"):
        raise InputError(f"method = {method!r} is not allowed: 'greedy' or 'exact'")
    stream = generator(0 if rng is None else rng)
    ones = np.ones(power.n_agents)
    alone = greedy_independent(power, ones)
    if method == "exact":
        alone = max(alone, anneal(power, ones, fresh_seed(stream)), key=len)
    colours = _greedy(power, stream, len(alone))
    bound = len(alone)
    if method == "exact" and len(np.unique(colours)) > bound:
        colours, bound = exact_cover(power, colours, alone, time_limit)
    groups = _as_groups(colours)
    try:
        verify_cover(network, gamma, groups)
    except InputError as error:
        raise SolverError(f"the {method} clique cover is wrong: {error}") from error
    if bound > len(groups):
        raise SolverError(f"the {method} clique cover is wrong: {len(groups)} groups, yet {bound} needed")
    group_of = np.empty(power.n_agents, np.int64)
    for index, group in enumerate(groups):
        group_of[list(group)] = index
    return Cover(groups, frozen(group_of), bound, len(groups) == bound, method)


def verify_cover(
    network: Network, gamma: int | Literal["half-diameter"], groups: Iterable[Iterable[int]]
) -> None:
    """Refuse groups that are not a partition of the agents into cliques of the power graph."""
    power = network.power(gamma)
    seen: dict[int, int] = {}
    for index, group in enumerate(groups):
        members = [network.check_agent(v) for v in group]
        if not members:
            raise InputError(f"group {index} of the cover is empty: leave it out")
        for v in members:
            if v in seen:
                raise InputError(
                    f"agent {v} is in group {seen[v]} and again in group {index} of the cover: each agent "
                    "belongs to one group"
                )
            seen[v] = index
    group_of = np.full(power.n_agents, -1, np.int64)
    group_of[list(seen)] = list(seen.values())
    _check_cliques(power, group_of, network.resolve_gamma(gamma))
    missing = np.flatnonzero(group_of < 0).tolist()
    if missing:
        raise InputError(f"the cover leaves out {some_agents(missing)}: each agent belongs to one group")


def _check_cliques(power: Adjacency, group_of: NDArray[np.int64], gamma: int) -> None:
    """Refuse groups with two members that are not linked: in a clique every degree is its size minus one."""
    tails = np.repeat(np.arange(power.n_agents), power.degrees)
    heard = np.bincount(tails[group_of[tails] == group_of[power.indices]], minlength=power.n_agents)
    size = np.bincount(group_of + 1)[group_of + 1]
    short = np.flatnonzero((group_of >= 0) & (heard < size - 1))
    if len(short):
        v = int(short[np.argmin(group_of[short])])  # of the first group
        members = np.flatnonzero(group_of == group_of[v])
        deaf = np.setdiff1d(members, [*power.row(v), v], assume_unique=True)
        raise InputError(
            f"agents {v} and {deaf[0]} are both in group {group_of[v]} of the cover but more than "
            f"gamma = {gamma} hops apart: a group holds agents that all hear each other"
        )


def some_agents(agents: Sequence[int]) -> str:
    """A few ids and how many more."""
    shown = ", ".join(str(v) for v in agents[:5])
    more = f" and {len(agents) - 5} more" if len(agents) > 5 else ""
    return f"agent{'s' if len(agents) > 1 else ''} {shown}{more}"


def _as_groups(colours: NDArray[np.int64]) -> Groups:
    order = np.argsort(colours, kind="stable")
    cuts = np.flatnonzero(np.diff(colours[order])) + 1
    return tuple(sorted(tuple(group.tolist()) for group in np.split(order, cuts)))


def _greedy(power: Adjacency, stream: np.random.Generator, bound: int) -> NDArray[np.int64]:
    """The better cover of two rules, then regrouped while that helps."""
    best = min(saturated(power), first_fit(power, np.argsort(power.degrees, kind="stable")), key=_n_groups)
    for _ in range(min(MOST_REGROUPINGS, REGROUPED_AGENTS // power.n_agents)):
        if _n_groups(best) == bound:
            break
        # Taking old groups one after another never needs more groups, and often saves one.
        rank = stream.permutation(_n_groups(best))
        attempt = first_fit(power, np.argsort(rank[best], kind="stable"))
        if _n_groups(attempt) <= _n_groups(best):
            best = attempt
    return best


def _n_groups(colours: NDArray[np.int64]) -> int:
    return int(colours.max()) + 1


def first_fit(power: Adjacency, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each agent, in this order, joins the first group whose members are all linked to it, or opens one."""
    return (fit_by_masks if power.n_agents <= MASKED_AGENTS else fit_by_counts)(power, order)


def fit_by_masks(power: Adjacency, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """first_fit where every group stores, as a bit set, the agents linked to all its members."""
    hears, degree = power.masks, power.degrees.tolist()
    group_of = [-1] * power.n_agents
    common: list[int] = []
    for v in order.tolist():
        groups: Iterable[int] = range(len(common))
        if len(common) > degree[v]:  # only a group with a neighbour in it can fit
            groups = sorted({group_of[w] for w in power.row(v).tolist()} - {-1})
        bit = 1 << v
        for group in groups:
            if common[group] & bit:
                common[group] &= hears[v]
                break
        else:
            group = len(common)
            common.append(hears[v])
        group_of[v] = group
    return np.array(group_of, np.int64)


def fit_by_counts(power: Adjacency, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """first_fit where each agent counts its neighbours in every group."""
    group_of = np.full(power.n_agents, -1, np.int64)
    sizes = np.zeros(power.n_agents, np.int64)
    n_groups = 0
    for v in order:
        near = group_of[power.row(v)]
        if n_groups < FEW_GROUPS:
            heard = np.bincount(near + 1, minlength=n_groups + 1)[1:]
            fits = np.flatnonzero(heard == sizes[:n_groups])
        else:
            groups, heard = np.unique(near[near >= 0], return_counts=True)
            fits = groups[heard == sizes[groups]]
        group = int(fits[0]) if len(fits) else n_groups
        n_groups = max(n_groups, group + 1)
        group_of[v] = group
        sizes[group] += 1
    return group_of


def saturated(power: Adjacency) -> NDArray[np.int64]:
    """Agents that fit into few groups come first, then those of low degree; each joins the first it fits.

    This is colouring by saturation of the complement, which is dense where the network is sparse: groups
    remember who still fits instead, so that the work grows with the links.
    """
    n, degree = power.n_agents, power.degrees.tolist()
    group_of = np.full(n, -1, np.int64)
    fits: list[set[int]] = [set() for _ in range(n)]  # groups whose members are all linked to the agent
    candidates: list[set[int]] = []  # per group, agents without one that fit into it
    queue = [(0, degree[v], v) for v in range(n)]
    heapq.heapify(queue)
    while queue:
        at, _, v = heapq.heappop(queue)
        if group_of[v] >= 0 or at != len(fits[v]):
            continue
        near = set(power.row(v).tolist())
        if fits[v]:
            group = min(fits[v])
            touched = candidates[group] - near - {v}
            candidates[group] &= near
            for w in touched:
                fits[w].discard(group)
        else:
            group = len(candidates)
            touched = {w for w in near if group_of[w] < 0}
            candidates.append(set(touched))
            for w in touched:
                fits[w].add(group)
        for w in touched:
            heapq.heappush(queue, (len(fits[w]), degree[w], w))
        group_of[v] = group
        for other in fits[v]:
            candidates[other].discard(v)
    return group_of


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
