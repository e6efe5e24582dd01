"""Leaders: independent, dominating, followed; exact ones equal brute force."""

from __future__ import annotations

import itertools
import math
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumormill.errors import InputError, SolverError
from rumormill.graphs import (
    Network,
    assign_followers,
    cover,
    dominating_set,
    independent_set,
    independent_sets,
    leaders,
)

ATLAS = nx.graph_atlas_g()[1:209:6]


def subsets(n: int) -> Any:
    return itertools.chain.from_iterable(itertools.combinations(range(n), k) for k in range(n + 1))


def is_independent(near: np.ndarray, chosen: Any) -> bool:
    return not near[np.ix_(chosen, chosen)].any()


def is_dominating(near: np.ndarray, chosen: Any) -> bool:
    return bool((near | np.eye(len(near), dtype=bool))[list(chosen)].any(axis=0).all())


def heaviest(near: np.ndarray, weights: np.ndarray) -> float:
    return max(weights[list(s)].sum() for s in subsets(len(near)) if is_independent(near, s))  # type: ignore[no-any-return]


@pytest.mark.parametrize("graph", ATLAS, ids=lambda g: g.name)
@pytest.mark.parametrize("gamma", [1, 2])
@pytest.mark.parametrize("share", [0.0, 2.0], ids=["by cliques", "by solvers"])
def test_exact_independent_equals_brute_force(
    graph: nx.Graph, gamma: int, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cover, "CLIQUE_SHARE", share)
    network = Network(graph)
    near = network.power(gamma).dense()
    weights = near.sum(axis=1) + 1.0
    found = independent_set(network, gamma, method="exact")
    best = heaviest(near, weights)
    assert (found.weight, found.bound, found.optimal) == (best, best, True)
    assert is_independent(near, found.leaders)
    greedy = independent_set(network, gamma, method="greedy")
    assert greedy.weight <= best <= greedy.bound


@pytest.mark.parametrize("graph", ATLAS, ids=lambda g: g.name)
@pytest.mark.parametrize("gamma", [1, 2])
def test_exact_dominating_equals_brute_force(graph: nx.Graph, gamma: int) -> None:
    network = Network(graph)
    near = network.power(gamma).dense()
    fewest = next(len(s) for s in subsets(network.n_agents) if is_dominating(near, s))
    found = dominating_set(network, gamma, method="exact")
    assert is_dominating(near, found.leaders)
    assert (len(found.leaders), found.weight, found.bound, found.optimal) == (fewest, fewest, fewest, True)
    greedy = dominating_set(network, gamma)
    assert greedy.bound <= fewest <= len(greedy.leaders)


@pytest.mark.parametrize("seed", range(4))
def test_the_solver_finds_the_best_for_any_weights(seed: int) -> None:
    network = Network.erdos_renyi(13, 0.3, rng=seed, connected=False)
    power = network.power(1)
    weights = np.random.default_rng(seed).uniform(0.5, 2, 13)
    best = heaviest(power.dense(), weights)
    cliques = cover._cliques_over_links(power)
    held = {frozenset(pair) for clique in cliques for pair in itertools.combinations(clique, 2)}
    assert held == {frozenset(edge) for edge in network.edges().tolist()}
    found, bound = cover.exact_independent(power, weights, [], 10.0)
    assert is_independent(power.dense(), found)
    assert weights[found].sum() == pytest.approx(best, rel=1e-9)
    assert bound == pytest.approx(best, rel=1e-6)
    assert bound >= best


@pytest.mark.parametrize("method", ["qubo", "search"])
@pytest.mark.parametrize("seed", range(4))
def test_the_best_of_small_networks_is_found(seed: int, method: Any) -> None:
    network = Network.erdos_renyi(13, 0.3, rng=seed, connected=False)
    near = network.power(1).dense()
    found = independent_set(network, 1, method=method, rng=seed)
    assert found.weight == heaviest(near, near.sum(axis=1) + 1.0)


ANNEALED = {
    "dense": Network.erdos_renyi(60, 0.7, rng=1),
    "hubs": Network.barabasi_albert(150, 3, rng=2),
    "sparse": Network.erdos_renyi(90, 0.03, rng=3, connected=False),
    "complete": Network.complete(20),
    "one link": Network.path(2),
}


@pytest.mark.parametrize("name", ANNEALED)
@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1])
def test_annealing_is_that_of_dwave_samplers(name: str, seed: int) -> None:
    """Every sample, bit by bit; weights are whole numbers, so that the order of additions does not matter."""
    import dimod
    from dwave.samplers import SimulatedAnnealingSampler

    power = ANNEALED[name].power(1)
    weights = (power.degrees + 1).astype(np.float64)
    low, high = power.edges().T
    model = dimod.BinaryQuadraticModel.from_numpy_vectors(
        -weights, (low, high, np.minimum(weights[low], weights[high]) + 1), 0.0, "BINARY"
    )
    theirs = SimulatedAnnealingSampler().sample(
        model,
        num_reads=12,
        num_sweeps=70,
        beta_range=(
            independent_sets.HOT / float(weights.max()),
            independent_sets.COLD / float(weights.min()),
        ),
        seed=seed,
    )
    columns = np.argsort(np.array(theirs.variables))
    ours, energies = independent_sets.samples(power, weights, seed, reads=12, sweeps=70)
    np.testing.assert_array_equal(ours, theirs.record.sample[:, columns])
    np.testing.assert_array_equal(energies, theirs.record.energy)


def test_without_links_everybody_leads() -> None:
    assert independent_set(Network.ring(7), 0, method="qubo").leaders == tuple(range(7))


def test_annealing_up_to_a_number_of_links_then_search(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network.erdos_renyi(40, 0.3, rng=1)
    annealed = independent_set(network, 1)
    assert annealed == independent_set(network, 1, method="qubo")
    assert annealed.method == "qubo"
    monkeypatch.setattr(leaders, "QUBO_LINKS", network.n_edges - 1)
    assert independent_set(network, 1) == independent_set(network, 1, method="search")
    assert independent_set(network, 1).method == "search"
    monkeypatch.setattr(leaders, "QUBO_LINKS", network.n_edges)
    assert independent_set(network, 1).method == "qubo"
    monkeypatch.setattr(leaders, "QUBO_AGENTS", 39)
    unbounded = independent_set(network, 1, bounded=False)
    assert (unbounded.method, unbounded.bound, unbounded.optimal) == ("search", math.inf, False)


def test_an_exchange_of_one_and_one_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(independent_sets, "MOST_PUSHES", 0)
    monkeypatch.setattr(independent_sets, "greedy_independent", lambda power, weights: [1])
    path = Network.path(3)
    assert independent_sets.search_independent(path.power(1), np.array([9.0, 1.0, 1.0])) == [0, 2]
    assert independent_sets.search_independent(path.power(1), np.array([2.0, 3.0, 2.0])) == [0, 2]
    assert independent_sets.search_independent(path.power(1), np.array([2.0, 4.0, 2.0])) == [1]
    triangle = Network.complete(3)  # 0 and 2 hear each other: no pair
    assert independent_sets.search_independent(triangle.power(1), np.array([2.0, 3.0, 2.0])) == [1]


@pytest.mark.parametrize("gamma", [1, 2])
def test_the_search_beats_its_start(gamma: int) -> None:
    network = Network.erdos_renyi(120, 0.05, rng=3)
    found, start = (independent_set(network, gamma, method=method) for method in ("search", "greedy"))
    assert found.weight > start.weight


@settings(deadline=None, max_examples=25)
@given(st.integers(1, 30), st.floats(0, 1), st.integers(0, 3), st.integers(0, 99))
def test_sets_are_independent_maximal_and_dominating(n: int, p: float, gamma: int, seed: int) -> None:
    network = Network.erdos_renyi(n, p, rng=seed, connected=False)
    near = network.power(gamma).dense()
    for method in ("qubo", "search", "greedy"):
        found = independent_set(network, gamma, method=method)
        assert list(found.leaders) == sorted(set(found.leaders))
        assert is_independent(near, found.leaders)
        assert is_dominating(near, found.leaders)  # an independent set is maximal iff it dominates
        assert found.weight == (near.sum(axis=1) + 1)[list(found.leaders)].sum() <= found.bound
        assert found == independent_set(network, gamma, method=method)
    few = dominating_set(network, gamma)
    assert is_dominating(near, few.leaders)
    for v in few.leaders:
        assert not is_dominating(near, [w for w in few.leaders if w != v])
    if network.resolve_gamma(gamma) == 0:
        assert few.leaders == found.leaders == tuple(range(n))


def test_samples_that_break_links_are_repaired() -> None:
    power = Network.complete(5).power(1)
    weights = np.array([1.0, 5, 2, 3, 4])
    assert independent_sets.complete(power, weights, np.arange(5)) == [1]
    path = Network.path(5).power(1)
    assert independent_sets.complete(path, np.ones(5), np.array([1, 2, 3])) == [1, 3]
    assert independent_sets.complete(path, np.ones(5), np.array([], np.int64)) == [0, 2, 4]


def test_weights_decide() -> None:
    star = Network.star(5)
    for method in ("qubo", "search", "greedy", "exact"):
        assert independent_set(star, 1, method=method, weights=[9, 1, 1, 1, 1]).leaders == (0,)
        assert independent_set(star, 1, method=method, weights=[0.5, 1, 1, 1, 1]).leaders == (1, 2, 3, 4)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ([1, 2], r"shape \(2,\) .* 3 agents"),
        ([1, 0, 1], "weight 0.0 of agent 1 .* above zero"),
        ([1, 1, float("nan")], "weight nan of agent 2"),
        ([1, float("inf"), 1], "weight inf of agent 1"),
        ("abc", "one number per agent"),
    ],
)
def test_bad_weights(weights: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        independent_set(Network.path(3), 1, weights=weights)


def test_bad_questions() -> None:
    network = Network.ring(7)
    with pytest.raises(InputError, match=r"method = 'best' .* 'qubo', 'search', 'greedy' or 'exact'"):
        independent_set(network, 1, method="best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"method = 'qubo' .* 'greedy' or 'exact'"):
        dominating_set(network, 1, method="qubo")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="time_limit = -1"):
        independent_set(network, 1, method="exact", time_limit=-1)
    with pytest.raises(InputError, match="rng = None"):
        independent_set(network, 1, rng=None)  # type: ignore[arg-type]


def test_wrong_answers_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network.path(4)
    monkeypatch.setattr(leaders, "anneal", lambda power, weights, seed: [0, 1, 3])
    with pytest.raises(SolverError, match="qubo independent set is wrong: agents 0 and 1 hear each other"):
        independent_set(network, 1)
    monkeypatch.setattr(leaders, "anneal", lambda power, weights, seed: [0])
    with pytest.raises(SolverError, match="agents 2, 3 could be added"):
        independent_set(network, 1)
    monkeypatch.setattr(leaders, "greedy_dominating", lambda power: [0])
    with pytest.raises(SolverError, match="agents 2, 3 hear no leader"):
        dominating_set(network, 1)


def test_what_the_solver_leaves_open_is_not_called_optimal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert independent_set(Network.path(30), 1, method="exact").optimal
    assert dominating_set(Network.ring(7), 1, method="exact").optimal
    hard = Network.erdos_renyi(12, 0.3, rng=1)
    monkeypatch.setattr(cover, "_milp", lambda cost, rows, between, limit: (None, float(cost.sum())))
    assert not independent_set(hard, 1, method="exact").optimal


def test_followers_take_the_best_linked_leader_then_the_nearest_then_the_first() -> None:
    # 0-1-2-3-4-5 with 6 on 4: within two hops, by hand,
    # 0: {1,2}, 1: {0,2,3}, 2: {0,1,3,4}, 3: {1,2,4,5,6}, 4: {2,3,5,6}, 5: {3,4,6}, 6: {3,4,5}.
    network = Network.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (4, 6)])
    found = assign_followers(network, 2, [0, 3, 4])
    assert found.leader_of.tolist() == [0, 3, 3, 3, 4, 3, 3]
    assert found.distance.tolist() == [0, 2, 1, 0, 0, 2, 2]
    # Equal degrees on a ring: the nearer one, then the smaller id.
    ring = assign_followers(Network.ring(8), 2, [7, 2, 4])
    assert ring.leader_of.tolist() == [7, 2, 2, 2, 4, 4, 7, 7]
    assert ring.distance.tolist() == [1, 1, 0, 1, 0, 1, 1, 0]


def test_followers_over_zero_hops_lead_themselves() -> None:
    found = assign_followers(Network.path(3), 0, [2, 0, 1])
    assert found.leader_of.tolist() == [0, 1, 2]
    assert found.distance.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        ([0], "agents 2, 3, 4 cannot hear any leader within gamma = 1 hops"),
        ([], "agents 0, 1, 2, 3, 4 cannot hear any leader"),
        ([1, 3, 1], "agent 1 is named twice"),
        ([1, 5], "agent = 5 is not allowed: the agents are 0 to 4"),
        ([1, -1], "agent = -1 is not allowed"),
        ([1.0, 3], "agent = 1.0 is not allowed"),
        ([True, 3], "agent = True is not allowed"),
    ],
)
def test_leaders_that_cannot_lead(chosen: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        assign_followers(Network.path(5), 1, chosen)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 25), st.floats(0, 0.5), st.integers(0, 3), st.integers(0, 99))
def test_followers_equal_the_definition(n: int, p: float, gamma: int, seed: int) -> None:
    network = Network.erdos_renyi(n, p, rng=seed, connected=False)
    chosen = dominating_set(network, gamma).leaders
    found = assign_followers(network, gamma, chosen)
    hops, degrees = network.distances(), network.power(gamma).degrees
    for v in range(n):
        expected = v
        if v not in chosen:
            heard = [w for w in chosen if 1 <= hops[v, w] <= gamma]
            expected = min(heard, key=lambda w: (-degrees[w], hops[v, w], w))
        assert (found.leader_of[v], found.distance[v]) == (expected, hops[v, expected])


@pytest.mark.parametrize("limit", [1e-9, 1e-2])
@pytest.mark.parametrize("whole", [True, False])
def test_running_out_of_time_still_gives_a_set_and_a_true_bound(limit: float, whole: bool) -> None:
    network = Network.erdos_renyi(120, 0.06, rng=1)
    weights = np.ones(120) if whole else np.random.default_rng(1).uniform(0.5, 2, 120)
    late = independent_set(network, 1, method="exact", weights=weights, time_limit=limit)
    annealed = independent_set(network, 1, weights=weights)
    assert annealed.weight <= late.weight <= late.bound
    few = dominating_set(network, 1, method="exact", time_limit=limit)
    assert few.bound <= few.weight <= dominating_set(network, 1).weight


def test_leaders_that_are_not_needed_are_dropped() -> None:
    power = Network.path(6).power(1)
    assert independent_sets._without_needless(power, [2, 0, 1, 4]) == [1, 4]
    assert independent_sets._without_needless(power, [1, 4]) == [1, 4]


def test_bounds_that_contradict_the_answer_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaders, "_clique_bound", lambda power, weights: 1.0)
    with pytest.raises(SolverError, match=r"weight 7\.0 above the bound 1\.0"):
        independent_set(Network.path(5), 1)
    monkeypatch.setattr(leaders, "disjoint_reaches", lambda power: 4)
    with pytest.raises(SolverError, match="2 leaders, yet 4 needed"):
        dominating_set(Network.path(5), 1)
