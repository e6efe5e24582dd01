"""What a network keeps of the graph it is made from, in numbers and words."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import networkx as nx
import numpy as np
import pytest

from rumormill.errors import InputError, SimplifiedGraphNotice
from rumormill.graphs import Network


def test_labels_keep_their_order() -> None:
    graph = nx.Graph()
    graph.add_nodes_from(["d", "a", (1, 2), 7])
    graph.add_edges_from([("a", 7), ("d", 7)])
    network = Network(graph)
    assert network.labels == ("d", "a", (1, 2), 7)
    assert (network.n_agents, network.n_edges) == (4, 2)
    assert network.neighbours(3).tolist() == [0, 1]
    assert network.degrees.tolist() == [1, 1, 0, 2]
    assert network.indptr.tolist() == [0, 1, 2, 2, 4]
    assert network.indices.tolist() == [3, 3, 0, 1]
    assert network.edges().tolist() == [[0, 3], [1, 3]]
    assert (network.indptr.dtype, network.indices.dtype) == (np.int64, np.int32)  # type: ignore[comparison-overlap]


def test_directions_loops_and_repeats_are_dropped_and_counted() -> None:
    graph = nx.MultiDiGraph([(0, 1), (1, 0), (0, 1), (2, 2), (1, 2), (2, 2)])
    with pytest.warns(SimplifiedGraphNotice, match="directed.*parallel"):
        network = Network(graph)
    assert network.edges().tolist() == [[0, 1], [1, 2]]
    assert (network.dropped_self_loops, network.dropped_repeats) == (2, 2)
    assert "dropped 2 self-loops and 2 repeated links" in network.describe()


def test_to_networkx_and_back() -> None:
    graph = nx.karate_club_graph()
    with pytest.warns(SimplifiedGraphNotice, match="weights"):
        network = Network(graph)
    assert nx.utils.graphs_equal(network.to_networkx(), nx.Graph(list(graph.edges())))
    assert Network(network.to_networkx()).labels == network.labels
    assert network.diameter == nx.diameter(graph)
    assert repr(network) == "Network(n_agents=34, n_edges=78)"


def test_parts_are_listed_largest_first() -> None:
    graph = nx.Graph([("a", "b"), ("x", "y"), ("y", "z")])
    graph.add_node("alone")
    network = Network(graph)
    assert not network.connected
    assert [part.tolist() for part in network.components] == [[2, 3, 4], [0, 1], [5]]
    assert network.diameter == 2
    assert network.describe() == (
        "6 agents, 3 links, degrees 0 to 2, diameter 2\n"
        "not connected: 3 parts cannot hear each other\n"
        "  3 agents: 'x', 'y', 'z'\n"
        "  2 agents: 'a', 'b'\n"
        "  1 agent: 'alone'"
    )


def test_many_parts_are_not_all_listed() -> None:
    graph = nx.empty_graph(8)
    graph.add_edges_from((8, v) for v in range(9, 16))
    words = Network(graph).describe()
    assert "9 parts" in words
    assert "  8 agents: 8, 9, 10, 11, 12, ..." in words
    assert "and 4 more parts, none larger" in words


def test_a_single_agent() -> None:
    network = Network.path(1)
    assert (network.n_agents, network.n_edges, network.diameter, network.connected) == (1, 0, 0, True)
    assert network.resolve_gamma(5) == network.resolve_gamma("half-diameter") == 0
    assert network.neighbourhoods(5).sizes.tolist() == [0]
    assert network.distances().tolist() == [[0]]
    assert network.describe().startswith("1 agent, 0 links, degrees 0 to 0, diameter 0\nconnected")


def test_links_only_to_itself_make_an_isolated_agent() -> None:
    network = Network(nx.Graph([(5, 5)]))
    assert (network.n_agents, network.n_edges, network.dropped_self_loops) == (1, 0, 1)


def test_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="without agents"):
        Network(nx.Graph())
    with pytest.raises(InputError, match="without agents"):
        Network.from_edges([])


@pytest.mark.parametrize("thing", ["edges.txt", None])
def test_other_things_are_no_graphs(thing: Any) -> None:
    with pytest.raises(InputError, match=r"takes a graph, a matrix or pairs.*from_edges"):
        Network(thing)


def test_a_network_cannot_be_changed() -> None:
    graph = nx.path_graph(4)
    network = Network(graph)
    graph.add_edge(0, 3)
    assert network.n_edges == 3
    for name in ("n_agents", "labels", "indptr", "dropped_repeats", "connected"):
        with pytest.raises(AttributeError):
            setattr(network, name, 1)
    for array in (network.indptr, network.indices, network.degrees, network.components[0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_networks_travel_between_processes() -> None:
    network = Network.ring(7)
    network.neighbourhoods(2)
    copy = pickle.loads(pickle.dumps(network))
    assert copy.labels == network.labels
    assert copy.edges().tolist() == network.edges().tolist()


@pytest.mark.parametrize("agent", [-1, 3, 1.0, True, "a"])
def test_unknown_agents(agent: Any) -> None:
    with pytest.raises(InputError, match=r"agent = .* is not allowed"):
        Network.path(3).neighbours(agent)


def test_pairs_of_any_labels() -> None:
    network = Network.from_edges([("b", "a"), ("a", "b"), ("c", "b")])
    assert network.labels == ("b", "a", "c")
    assert network.edges().tolist() == [[0, 1], [0, 2]]
    assert network.dropped_repeats == 1


@pytest.mark.parametrize("bad", [(1, 2, 3), (1,), 7, ([1], [2])])
def test_pairs_that_are_not(bad: Any) -> None:
    with pytest.raises(InputError, match="is not an edge: a pair of two hashable labels"):
        Network.from_edges([(0, 1), bad])


def test_the_room_opens_without_heavy_libraries() -> None:
    heavy = "{'networkx', 'scipy', 'rustworkx', 'dimod', 'dwave', 'numba', 'matplotlib'}"
    code = f"import sys, rumormill.graphs; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
