"""Clique covers: a partition of the agents into groups whose members are within gamma hops of each other.

A clique cover is a colouring of the complement graph: agents of one colour are one group. Its least size, the
clique cover number, is at least the size of any independent set.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rumormill.errors import InputError, SolverError
from rumormill.graphs.adjacency import Adjacency, frozen
from rumormill.graphs.exact import exact_cover
from rumormill.graphs.independent_sets import anneal, greedy_independent
from rumormill.graphs.network import Network
from rumormill.seeds import RandomSource as Rng
from rumormill.seeds import fresh_seed, generator

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
