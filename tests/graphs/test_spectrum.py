"""The consensus constants against a plain loop over the definition."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from rumormill.errors import InputError
from rumormill.graphs import Network, consensus_epsilon, consensus_weights, spectrum


def epsilon_by_loops(graph: nx.Graph, kappa: float) -> list[float]:
    laplacian = nx.laplacian_matrix(graph).toarray().astype(float)
    n, largest = len(laplacian), max(d for _, d in graph.degree)
    values, vectors = np.linalg.eigh(np.eye(n) - kappa / largest * laplacian)
    values, vectors = values[::-1], vectors[:, ::-1]
    result = []
    for v in range(n):
        total = 0.0
        for p in range(n):
            for j in range(1, n):
                product = values[p] * values[j]
                b = vectors[:, p] * vectors[:, j]
                plus, minus = b[b > 0].sum(), b[b < 0].sum()
                if product >= 0:
                    a = plus * b[v] if b[v] >= 0 else minus * b[v]
                else:
                    a = max(plus, abs(minus)) * abs(b[v])
                total += abs(product) / (1 - abs(product)) * a
        result.append(n * total)
    return result


# Graphs with simple spectra: with repeated eigenvalues the answer depends on the basis that is returned.
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kappa", [None, 0.3, 1.0])
def test_epsilon_equals_the_definition(seed: int, kappa: float | None) -> None:
    graph = nx.gnp_random_graph(9, 0.5, seed=seed)
    graph.add_edges_from(nx.path_graph(9).edges)
    largest = max(d for _, d in graph.degree)
    values = np.linalg.eigvalsh(nx.laplacian_matrix(graph).toarray().astype(float))
    assert np.diff(values).min() > 1e-6
    expected = epsilon_by_loops(graph, largest / (largest + 1) if kappa is None else kappa)
    np.testing.assert_allclose(consensus_epsilon(Network(graph), kappa), expected, rtol=1e-9)


def test_two_agents_by_hand() -> None:
    # P = [[1-w, w], [w, 1-w]] with w = 1/2: eigenvalues 1 and 0, so every product with j = 2 is zero.
    np.testing.assert_allclose(consensus_epsilon(Network.path(2)), [0, 0], atol=1e-12)
    # w = 1/4: eigenvalues 1 and 1/2. p = 1: b = (1/2, -1/2), ratio 1; a = 1/4 for both.
    # p = 2: b = (1/2, 1/2), ratio 1/3; a = 1 * 1/2. epsilon = 2 (1/4 + 1/6) = 5/6.
    np.testing.assert_allclose(consensus_epsilon(Network.path(2), 0.25), [5 / 6, 5 / 6], rtol=1e-12)


def test_weights() -> None:
    assert consensus_weights(Network.star(5)) == (0.8, 0.2)
    assert consensus_weights(Network.star(5), 1) == (1.0, 0.25)
    assert consensus_weights(Network.path(1)) == (0.0, 0.0)
    assert consensus_epsilon(Network.path(1)).tolist() == [0.0]


@pytest.mark.parametrize("kappa", [0, -0.5, 1.01, float("nan"), True, "1"])
def test_bad_kappa(kappa: Any) -> None:
    with pytest.raises(InputError, match=r"kappa = .* is not allowed"):
        consensus_weights(Network.ring(5), kappa)


def test_networks_without_consensus(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="connected network, this one has 2 parts"):
        consensus_epsilon(Network.from_edges([(0, 1), (2, 3)]))
    with pytest.raises(InputError, match=r"kappa = 1\.0 .* never settles"):
        consensus_epsilon(Network.ring(6), 1.0)
    monkeypatch.setattr(spectrum, "MOST_AGENTS", 5)
    with pytest.raises(InputError, match=r"6 agents .* give epsilon="):
        consensus_epsilon(Network.ring(6))
