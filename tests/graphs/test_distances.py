"""Distances, neighbourhoods, powers and diameters against networkx."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumormill.errors import InputError
from rumormill.graphs import Network
from rumormill.graphs import adjacency as rooms
from rumormill.graphs import network as networks


@st.composite
def graphs(draw: st.DrawFn, most: int = 14) -> nx.Graph:
    """Any small graph, often in several parts, with shuffled labels."""
    n = draw(st.integers(1, most))
    pairs = [(u, v) for u in range(n) for v in range(u)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=2 * n)) if pairs else []
    graph = nx.Graph()
    graph.add_nodes_from(draw(st.permutations(range(n))))
    graph.add_edges_from(edges)
    return graph


def hops_by_networkx(graph: nx.Graph) -> np.ndarray:
    ids = {label: i for i, label in enumerate(graph.nodes)}
    full = np.full((len(ids), len(ids)), -1)
    for u, row in nx.all_pairs_shortest_path_length(graph):
        for v, d in row.items():
            full[ids[u], ids[v]] = d
    return full


def check_rows(near: rooms.Neighbourhoods, full: np.ndarray, gamma: int) -> None:
    for v in range(len(full)):
        expected = sorted((int(d), w) for w, d in enumerate(full[v]) if 1 <= d <= gamma)
        ids, hops = near.row(v)
        assert list(zip(hops.tolist(), ids.tolist(), strict=True)) == expected
        assert near.sizes[v] == len(expected)


@settings(deadline=None, max_examples=150)
@given(graphs(), st.integers(0, 16))
def test_neighbourhoods_and_power_equal_networkx(graph: nx.Graph, gamma: int) -> None:
    network = Network(graph)
    full = hops_by_networkx(graph)
    assert network.diameter == full.max()
    assert network.resolve_gamma(gamma) == min(gamma, full.max())
    assert network.resolve_gamma("half-diameter") == -(-full.max() // 2)
    np.testing.assert_array_equal(network.distances(), full)
    check_rows(network.neighbourhoods(gamma), full, gamma)
    power = network.power(gamma)
    np.testing.assert_array_equal(power.dense(), (full >= 1) & (full <= gamma))
    np.testing.assert_array_equal(power.degrees, network.neighbourhoods(gamma).sizes)
    for v in range(network.n_agents):
        assert (np.diff(power.row(v)) > 0).all()


@settings(deadline=None, max_examples=60)
@given(graphs(), st.integers(1, 16))
def test_the_ways_through_a_full_matrix_and_bit_sets_agree(graph: nx.Graph, gamma: int) -> None:
    network = Network(graph)
    full = hops_by_networkx(graph)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rooms, "EXPENSIVE_FOR_ROWS", -1.0)
        patch.setattr(rooms, "EXPENSIVE_FOR_DIAMETER", -1.0)
        patch.setattr(rooms, "SOURCES_AT_ONCE", 3)
        check_rows(rooms.neighbourhoods(network.power(1), gamma), full, gamma)
        assert rooms.longest_distance(network.power(1)) == (full.max(), full.max())
        low, high = rooms.longest_distance(network.power(1), work=gamma)  # gives up sooner or later
        assert low <= full.max() <= high


@pytest.mark.parametrize("make", [lambda: Network.erdos_renyi(700, 0.5, rng=3), lambda: Network.ring(601)])
def test_large_dense_and_long_thin_networks(make: Any) -> None:
    network = make()
    full = hops_by_networkx(network.to_networkx())
    assert network.diameter == full.max()
    check_rows(network.neighbourhoods(4), full, 4)


def test_a_reach_beyond_memory_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    network = Network.barabasi_albert(300, 2, rng=1)
    monkeypatch.setattr(rooms, "available_bytes", lambda: 1e5)
    monkeypatch.setattr(rooms, "MATRIX_AGENTS", 0)
    network.neighbourhoods(1)
    with pytest.raises(InputError, match=r"gamma = 3 is not possible here: .* the 300 agents hears"):
        network.neighbourhoods(3)


def test_half_of_an_unknown_diameter_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(networks, "DIAMETER_WORK", 50.0)
    ring = Network.ring(41)
    with pytest.raises(InputError, match=r"diameter of these 41 agents lies between 20 and 40"):
        ring.resolve_gamma("half-diameter")
    assert ring.diameter == 20


def test_one_distance_at_a_time() -> None:
    near = Network.path(6).neighbourhoods(3)
    assert near.distance(0, 0) == 0
    assert near.distance(0, 3) == 3
    assert near.distance(0, 4) is None
    assert near.row(2)[0].tolist() == [1, 3, 0, 4, 5]


def test_no_hops_means_no_neighbours() -> None:
    near = Network.complete(4).neighbourhoods(0)
    assert near.gamma == 0
    assert near.sizes.tolist() == [0, 0, 0, 0]
    assert Network.complete(4).power(0).n_edges == 0


def test_the_full_matrix_is_only_for_networks_small_enough_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms, "EXPENSIVE_FOR_ROWS", -1.0)  # it would pay
    monkeypatch.setattr(rooms, "MATRIX_AGENTS", 5)
    monkeypatch.delattr(rooms, "_distance_matrix")
    assert Network.path(6).neighbourhoods(3).sizes.tolist() == [3, 4, 5, 5, 4, 3]


def test_neighbourhoods_are_kept_and_cannot_be_written() -> None:
    network = Network.ring(8)
    near = network.neighbourhoods(2)
    assert network.neighbourhoods(2) is near
    assert network.power(2) is network.power(2)
    assert network.neighbourhoods(4) is network.neighbourhoods(99)
    for array in (near.indptr, near.indices, near.distances, network.power(2).indices):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


@pytest.mark.parametrize("gamma", [-1, True, 1.0, None, np.float64(2), np.True_])
def test_gamma_must_be_a_whole_number(gamma: Any) -> None:
    with pytest.raises(InputError, match=r"gamma = .* whole number >= 0"):
        Network.path(3).resolve_gamma(gamma)


def test_gamma_by_an_unknown_name() -> None:
    with pytest.raises(InputError, match="'diameter' is not allowed: give a whole number or 'half-diameter'"):
        Network.path(3).resolve_gamma("diameter")  # type: ignore[arg-type]


def test_numpy_integers_are_numbers() -> None:
    assert Network.path(9).resolve_gamma(np.int64(3)) == 3  # type: ignore[arg-type]


def test_full_matrix_of_a_large_network_is_refused() -> None:
    with pytest.raises(InputError, match=r"distances\(\) of 10001 agents .* at most 10000"):
        Network.star(10_001).distances()
