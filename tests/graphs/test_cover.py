"""Clique covers: always partitions into cliques, exact ones as small as brute force finds."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumormill.errors import InputError, SolverError
from rumormill.graphs import Network, clique_cover, cover, verify_cover

ATLAS = nx.graph_atlas_g()[1:209:6]  # every sixth graph of one to six nodes


def fewest_cliques(network: Network, gamma: int) -> int:
    """By trying every partition, agent after agent, with groups opened in order."""
    near = network.power(gamma).dense()
    best = network.n_agents

    def place(v: int, groups: list[list[int]]) -> None:
        nonlocal best
        if len(groups) >= best:
            return
        if v == network.n_agents:
            best = len(groups)
            return
        for group in groups:
            if near[v, group].all():
                group.append(v)
                place(v + 1, groups)
                group.pop()
        place(v + 1, [*groups, [v]])

    place(0, [])
    return best


@pytest.mark.parametrize("graph", ATLAS, ids=lambda g: g.name)
@pytest.mark.parametrize("gamma", [1, 2])
def test_exact_equals_brute_force(graph: nx.Graph, gamma: int) -> None:
    network = Network(graph)
    fewest = fewest_cliques(network, gamma)
    exact = clique_cover(network, gamma, method="exact")
    assert (len(exact.groups), exact.lower_bound, exact.optimal) == (fewest, fewest, True)
    greedy = clique_cover(network, gamma)
    assert greedy.lower_bound <= fewest <= len(greedy.groups)


def test_exact_beats_a_bad_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover, "_greedy", lambda power, stream, bound: np.arange(power.n_agents))
    graph = nx.gnp_random_graph(9, 0.5, seed=4)
    exact = clique_cover(Network(graph), 1, method="exact")
    assert len(exact.groups) == exact.lower_bound == fewest_cliques(Network(graph), 1)


def test_a_bound_below_the_cover_number_is_not_called_optimal() -> None:
    # A ring of five: two agents are strangers, but three cliques are needed; only the exact way proves it.
    greedy, exact = (clique_cover(Network.ring(5), 1, method=m) for m in ("greedy", "exact"))
    assert (len(greedy.groups), greedy.lower_bound, greedy.optimal) == (3, 2, False)
    assert (len(exact.groups), exact.lower_bound, exact.optimal) == (3, 3, True)


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 40), st.floats(0, 1), st.integers(0, 3), st.integers(0, 99))
def test_covers_are_in_order(n: int, p: float, gamma: int, seed: int) -> None:
    network = Network.erdos_renyi(n, p, rng=seed, connected=False)
    found = clique_cover(network, gamma)
    verify_cover(network, gamma, found.groups)
    assert all(list(group) == sorted(group) for group in found.groups)
    assert [group[0] for group in found.groups] == sorted(group[0] for group in found.groups)
    assert all(found.group_of[v] == i for i, group in enumerate(found.groups) for v in group)
    assert found.groups == clique_cover(network, gamma).groups
    if network.resolve_gamma(gamma) == 0:
        assert found.groups == tuple((v,) for v in range(n))
        assert found.optimal


@given(st.integers(1, 14), st.floats(0.0, 1.0), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_saturation_is_that_of_the_complement(n: int, p: float, seed: int) -> None:
    """The rule by its definition: most colours among those one does not hear, then fewest links, then id."""
    power = Network.erdos_renyi(n, p, rng=seed, connected=False).power(1)
    strangers = [set(range(n)) - {v} - set(power.row(v).tolist()) for v in range(n)]
    colour: dict[int, int] = {}
    while len(colour) < n:
        seen = {v: {colour[w] for w in strangers[v] if w in colour} for v in range(n) if v not in colour}
        v = min(seen, key=lambda v: (-len(seen[v]), int(power.degrees[v]), v))
        colour[v] = min(set(range(n)) - seen[v])
    assert cover.saturated(power).tolist() == [colour[v] for v in range(n)]


@given(st.integers(1, 40), st.floats(0.0, 1.0), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_first_fit_is_the_same_by_masks_and_by_counts(n: int, p: float, seed: int) -> None:
    """By the definition too: the first group whose members all hear the agent."""
    power = Network.erdos_renyi(n, p, rng=seed, connected=False).power(1)
    order = np.random.default_rng(seed).permutation(n)
    groups: list[set[int]] = []
    for v in order.tolist():
        near = set(power.row(v).tolist())
        joined = next((group for group in groups if group <= near), None)
        if joined is None:
            groups.append({v})
        else:
            joined.add(v)
    expected = [next(g for g, group in enumerate(groups) if v in group) for v in range(n)]
    assert cover.fit_by_masks(power, order).tolist() == expected
    assert cover.fit_by_counts(power, order).tolist() == expected


def test_known_covers() -> None:
    assert clique_cover(Network.complete(9), 1).groups == (tuple(range(9)),)
    assert len(clique_cover(Network.path(9), 1).groups) == 5
    assert len(clique_cover(Network.path(9), 2).groups) == 3
    assert len(clique_cover(Network.star(9), "half-diameter").groups) == 8
    assert clique_cover(Network.star(9), 50).groups == (tuple(range(9)),)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([[0, 1], [2]], "leaves out agent 3"),
        ([[0, 1], [1, 2], [3]], "agent 1 is in group 0 and again in group 1"),
        ([[0, 1, 0], [2, 3]], "agent 0 is in group 0 and again in group 0"),
        ([[0, 2], [1], [3]], "agents 0 and 2 are both in group 0 .* more than gamma = 1 hops apart"),
        ([[0, 1], [], [2, 3]], "group 1 of the cover is empty"),
        ([[0, 1], [2, 3, 4]], "agent = 4 is not allowed: the agents are 0 to 3"),
        ([[0, 1], [2, "3"]], "agent = '3' is not allowed"),
        ([[0, 1], [2, True]], "agent = True is not allowed"),
        ([], "leaves out agents 0, 1, 2, 3"),
    ],
)
def test_groups_that_are_no_cover(groups: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        verify_cover(Network.path(4), 1, groups)


def test_many_missing_agents_are_not_all_named() -> None:
    with pytest.raises(InputError, match="leaves out agents 1, 2, 3, 4, 5 and 4 more"):
        verify_cover(Network.path(10), 1, [[0]])


def test_wrong_answers_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover, "_greedy", lambda power, stream, bound: np.zeros(power.n_agents, np.int64))
    with pytest.raises(SolverError, match="greedy clique cover is wrong: agents 0 and 2"):
        clique_cover(Network.path(4), 1)


def test_bad_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network.ring(5)
    with pytest.raises(InputError, match="method = 'best' is not allowed"):
        clique_cover(network, 1, method="best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"time_limit = 0 .* above 0"):
        clique_cover(network, 1, method="exact", time_limit=0)
    with pytest.raises(InputError, match="rng = 'x'"):
        clique_cover(network, 1, rng="x")  # type: ignore[arg-type]
    monkeypatch.setattr(cover, "MOST_CLIQUES", 0)
    with pytest.raises(InputError, match="exact cover of 5 agents is out of reach"):
        clique_cover(network, 1, method="exact")


@pytest.mark.parametrize("seed", range(3))
def test_exact_covers_of_sparse_networks_are_proven(seed: int) -> None:
    """As large as `invariants` asks for: 80 agents with four links each."""
    cover = clique_cover(Network.random_regular(80, 4, rng=seed), 1, method="exact", time_limit=60)
    assert cover.optimal


def test_running_out_of_time_still_gives_a_cover_and_a_true_bound() -> None:
    network = Network.erdos_renyi(60, 0.2, rng=1)
    late = clique_cover(network, 1, method="exact", time_limit=1e-9)
    verify_cover(network, 1, late.groups)
    assert late.lower_bound <= len(late.groups) <= len(clique_cover(network, 1).groups)


def test_a_bound_that_contradicts_the_cover_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover, "greedy_independent", lambda power, weights: [0, 1, 2, 3])
    with pytest.raises(SolverError, match="2 groups, yet 4 needed"):
        clique_cover(Network.path(4), 1)
