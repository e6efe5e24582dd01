"""Leaders: independent sets and dominating sets of the power graph, and which leader each agent follows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rumormill.errors import InputError, SolverError
from rumormill.graphs.adjacency import Adjacency, frozen
from rumormill.graphs.cover import exact_dominating, exact_independent, first_fit, some_agents
from rumormill.graphs.independent_sets import (
    anneal,
    disjoint_reaches,
    greedy_dominating,
    greedy_independent,
    linked_pair,
    not_reached,
    search_independent,
)
from rumormill.graphs.network import Network
from rumormill.seeds import RandomSource as Rng
from rumormill.seeds import fresh_seed, generator

Gamma = int | Literal["half-diameter"]

# On larger power graphs annealing takes many times longer than the search, and finds no more.
QUBO_AGENTS, QUBO_LINKS = 5_000, 200_000


@dataclass(frozen=True)
class LeaderSet:
    """A set of leaders with its weight (its size for a dominating set).

    bound is an upper bound on the weight of any independent set, or a lower bound on the size of any
    dominating set. optimal: this set attains it.
    """

    leaders: tuple[int, ...]
    weight: float
    bound: float
    optimal: bool
    method: str


@dataclass(frozen=True, eq=False)
class Assignment:
    """leader_of[v] is the leader that v follows (itself for a leader), distance[v] the hops to it."""

    leader_of: NDArray[np.int64]
    distance: NDArray[np.int64]


def independent_set(
    network: Network,
    gamma: Gamma,
    *,
    method: Literal["auto", "qubo", "search", "greedy", "exact"] = "auto",
    weights: ArrayLike | None = None,
    time_limit: float = 10.0,
    rng: Rng = 0,
    bounded: bool = True,
) -> LeaderSet:
    """Leaders out of reach of each other, of large total weight; no agent can be added.

    Parameters
    ----------
    gamma : int or "half-diameter"
        Hop budget.
    method : "auto" | "qubo" | "search" | "greedy" | "exact"
        "qubo" is simulated annealing (the paper's way), "search" iterated local search; "exact" proves
        optimality within time_limit or returns the best set and bound. "auto" is "qubo" where the power graph
        has at most 5,000 agents and 200,000 links, else "search".
    weights : array, optional
        Weight of every agent; by default its degree in the power graph plus one.
    time_limit : float
        Seconds.
    rng : source of randomness, default 0
        Seed of the annealing.
    bounded : bool
        Compute a bound on the weight, which takes as long as a search; else it is infinite.
    """
    power = network.power(gamma)
    value = _weights(power, weights)
    stream = generator(rng)
    if method == "auto":
        small = power.n_agents <= QUBO_AGENTS and power.n_edges <= QUBO_LINKS
        method = "qubo" if small else "search"
    if method == "qubo":
        chosen = anneal(power, value, fresh_seed(stream))
    elif method == "search":
        chosen = search_independent(power, value)
    elif method == "greedy":
        chosen = greedy_independent(power, value)
    elif method == "exact":
        chosen, bound = exact_independent(power, value, anneal(power, value, fresh_seed(stream)), time_limit)
        return _independent(power, value, chosen, min(bound, _clique_bound(power, value)), method)
    else:
        raise InputError(f"method = {method!r} is not allowed: 'auto', 'qubo', 'search', 'greedy' or 'exact'")
    return _independent(power, value, chosen, _clique_bound(power, value) if bounded else math.inf, method)


def dominating_set(
    network: Network, gamma: Gamma, *, method: Literal["greedy", "exact"] = "greedy", time_limit: float = 10.0
) -> LeaderSet:
    """Few leaders such that every agent is one or is within reach of one."""
    power = network.power(gamma)
    chosen = greedy_dominating(power)
    bound = disjoint_reaches(power)
    if method == "exact":
        if len(chosen) > bound:
            chosen, proven = exact_dominating(power, chosen, time_limit)
            bound = max(bound, proven)
    elif method != "greedy":
        raise InputError(f"method = {method!r} is not allowed: 'greedy' or 'exact'")
    missed = not_reached(power, chosen)
    if len(missed):
        raise SolverError(
            f"the {method} dominating set is wrong: {some_agents(missed.tolist())} hear no leader"
        )
    if bound > len(chosen):
        raise SolverError(f"the {method} dominating set is wrong: {len(chosen)} leaders, yet {bound} needed")
    return LeaderSet(tuple(chosen), float(len(chosen)), float(bound), len(chosen) == bound, method)


def assign_followers(network: Network, gamma: Gamma, leaders: Sequence[int]) -> Assignment:
    """Each agent follows the leader in reach of the largest degree in the power graph.

    Ties go to the smaller distance, then to the smaller id.
    """
    leading = np.zeros(network.n_agents, np.bool_)
    for v in leaders:
        if leading[network.check_agent(v)]:
            raise InputError(f"agent {v} is named twice among the leaders: name it once")
        leading[v] = True
    near = network.neighbourhoods(gamma)
    leader_of = np.where(leading, np.arange(network.n_agents), -1)
    distance = np.zeros(network.n_agents, np.int64)
    follower = np.repeat(np.arange(network.n_agents), np.diff(near.indptr))
    heard = np.flatnonzero(leading[near.indices] & ~leading[follower])
    # Rows are sorted by (distance, id), and stay so where degrees are equal: that settles the ties.
    heard = heard[np.lexsort((-near.sizes[near.indices[heard]], follower[heard]))]
    who, first = np.unique(follower[heard], return_index=True)
    leader_of[who], distance[who] = near.indices[heard[first]], near.distances[heard[first]]
    lost = np.flatnonzero(leader_of < 0)
    if len(lost):
        raise InputError(
            f"{some_agents(lost.tolist())} cannot hear any leader within gamma = {near.gamma} hops: add "
            "leaders or raise gamma"
        )
    return Assignment(frozen(leader_of), frozen(distance))


def _weights(power: Adjacency, weights: ArrayLike | None) -> NDArray[np.float64]:
    if weights is None:
        return (power.degrees + 1).astype(np.float64)
    try:
        value = np.asarray(weights, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"weights = {weights!r} is not allowed: one number per agent is expected") from None
    if value.shape != (power.n_agents,):
        raise InputError(
            f"weights of shape {value.shape} are not allowed: {power.n_agents} agents need one each"
        )
    if not (np.isfinite(value) & (value > 0)).all():
        worst = int(np.flatnonzero(~(np.isfinite(value) & (value > 0)))[0])
        raise InputError(f"the weight {value[worst]} of agent {worst} is not allowed: it must be above zero")
    return value


def _clique_bound(power: Adjacency, weights: NDArray[np.float64]) -> float:
    """An independent set takes at most one agent of each clique of a cover."""
    group_of = first_fit(power, np.argsort(-weights, kind="stable"))
    heaviest = np.zeros(power.n_agents)
    np.maximum.at(heaviest, group_of, weights)
    return float(heaviest.sum())


def _independent(
    power: Adjacency, weights: NDArray[np.float64], chosen: Sequence[int], bound: float, method: str
) -> LeaderSet:
    """The set with its weight, after checking that it is independent and maximal."""
    pair = linked_pair(power, chosen)
    if pair is not None:
        raise SolverError(
            f"the {method} independent set is wrong: agents {pair[0]} and {pair[1]} hear each other"
        )
    missed = not_reached(power, chosen)
    if len(missed):
        raise SolverError(
            f"the {method} independent set is wrong: {some_agents(missed.tolist())} could be added"
        )
    weight = float(weights[list(chosen)].sum())
    if weight > bound * (1 + 1e-9):
        raise SolverError(f"the {method} independent set is wrong: weight {weight} above the bound {bound}")
    return LeaderSet(tuple(chosen), weight, bound, weight >= bound * (1 - 1e-9), method)
