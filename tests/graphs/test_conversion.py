"""Networks from graphs of other libraries, matrices and pairs; what is simplified is said."""

from __future__ import annotations

import warnings
from typing import Any

import networkx as nx
import numpy as np
import pytest
import rustworkx as rx
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import rumormill as rm

LINKS = [(0, 1), (1, 2), (2, 3)]
MATRIX = nx.to_numpy_array(nx.path_graph(4))


def undirected(edges: Any = LINKS, nodes: Any = range(4), weights: Any = None) -> Any:
    graph = rx.PyGraph()
    graph.add_nodes_from(list(nodes))
    graph.add_edges_from([(u, v, None if weights is None else weights[i]) for i, (u, v) in enumerate(edges)])
    return graph


@pytest.mark.parametrize(
    "graph",
    [
        nx.path_graph(4),
        MATRIX,
        MATRIX.astype(bool),
        sp.csr_matrix(MATRIX),
        sp.coo_array(MATRIX),
        undirected(),
        undirected(weights=[1.0, 1, 1.0]),
        LINKS,
        np.array(LINKS),
        iter(LINKS),
    ],
    ids=["networkx", "matrix", "truth", "csr", "coo", "rustworkx", "ones", "list", "array", "iterator"],
)
def test_the_same_network(graph: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network = rm.Network(graph)
    assert network.labels == (0, 1, 2, 3)
    assert all(type(label) is int for label in network.labels)
    assert network.edges().tolist() == [list(link) for link in LINKS]
    assert network.notes == ()


def test_two_columns_of_whole_numbers_are_pairs() -> None:
    assert rm.Network(np.array([[0, 1], [1, 2]])).n_agents == 3
    assert rm.Network(np.array([[0.0, 1.0], [1.0, 0.0]])).n_edges == 1
    assert rm.Network(np.eye(2)).dropped_self_loops == 2


def test_labels_of_rustworkx_and_gaps() -> None:
    graph = undirected(nodes=["a", "b", "c", "d"])
    graph.remove_node(0)
    network = rm.Network(graph)
    assert network.labels == ("b", "c", "d")
    assert network.edges().tolist() == [[0, 1], [1, 2]]
    same = undirected(nodes=["a", "a", "b", None])
    assert rm.Network(same).labels == (0, 1, 2, 3)


DIRECTED = "links are directed"
WEIGHTED = "link weights play no part"
PARALLEL = "parallel links are merged"


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (nx.DiGraph(LINKS), DIRECTED),
        (np.triu(MATRIX), DIRECTED),
        (sp.csr_array(np.triu(MATRIX)), DIRECTED),
        (0.5 * MATRIX, WEIGHTED),
        (nx.Graph([(0, 1, {"weight": 2}), (1, 2, {}), (2, 3, {})]), WEIGHTED),
        (undirected(weights=[1.0, 2.0, 1.0]), WEIGHTED),
        (nx.MultiGraph([*LINKS, (1, 0)]), PARALLEL),
        (undirected([*LINKS, (1, 0)]), PARALLEL),
    ],
)
def test_what_is_simplified_is_said(graph: Any, said: str) -> None:
    with pytest.warns(rm.SimplifiedGraphNotice, match=said) as caught:
        network = rm.Network(graph)
    assert network.edges().tolist() == [list(link) for link in LINKS]
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert said in "\n".join(network.notes)


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (np.ones((3, 4)), "as many rows as columns"),
        (np.array([[0, np.nan, 0], [np.nan, 0, 0], [0, 0, 0]]), "not finite"),
        (np.array([["a", "b", "c"]] * 3), "adjacency matrix of <U1"),
        ("edges.txt", "use Network.from_edges"),
        (7, "not int"),
        ([(1, 2, 3)], "is not an edge"),
        ([], "a network without agents"),
    ],
)
def test_what_is_no_graph(graph: Any, said: str) -> None:
    with pytest.raises(rm.InputError, match=said):
        rm.Network(graph)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(3, 12), seed=st.integers(0, 1000))
def test_every_form_of_a_random_graph(n: int, seed: int) -> None:
    graph = nx.gnp_random_graph(n, 0.5, seed=seed)
    matrix = nx.to_numpy_array(graph)
    expected = rm.Network(graph)
    for form in (matrix, sp.csr_array(matrix), rx.networkx_converter(graph)):
        assert rm.Network(form).edges().tolist() == expected.edges().tolist()
        assert rm.Network(form).n_agents == n
