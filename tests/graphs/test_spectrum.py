"""The consensus constants against a plain loop over the definition."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

import rumormill as rm
from rumormill.errors import InputError
from rumormill.graphs import (
    Network,
    consensus_epsilon,
    consensus_matrix,
    consensus_weights,
    second_size,
    spectrum,
)


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
    monkeypatch.setattr(spectrum, "EXACT_AGENTS", 5)
    with pytest.raises(InputError, match=r"kappa = 1\.0 .* never settles"):
        consensus_epsilon(Network.ring(6), 1.0)
    assert (consensus_epsilon(Network.ring(7), 1.0) > 0).all()  # not bipartite: it settles


def bound_of(network: Network) -> np.ndarray:
    """M times the sum of h(l_p) x_p², from all eigenvectors."""
    values, vectors = np.linalg.eigh(consensus_matrix(network))
    sizes = np.abs(values)
    ratio = np.outer(sizes, sizes)
    ratio[:, -1] = 0.0
    ratio /= 1 - ratio
    height = np.diag(ratio) / 2 + (ratio.sum(axis=0) + ratio.sum(axis=1)) / 4
    bound: np.ndarray = len(values) * (vectors**2 @ height)
    return bound


MANY = {
    "er": Network.erdos_renyi(300, 0.05, rng=1),
    "dense": Network.erdos_renyi(150, 0.7, rng=2),
    "ba": Network.barabasi_albert(400, 3, rng=1),
    "grid": Network.grid(15, 15),
    "star": Network.star(60),
    "ring": Network.ring(150),
    "complete": Network.complete(30),
    "path": Network.path(80),
}


@pytest.mark.parametrize("name", MANY)
def test_the_bound_holds_whatever_eigenvectors_are_taken(name: str) -> None:
    """Repeated eigenvalues leave them open; then some others of the same spaces are tried too."""
    network = MANY[name]
    n, bound = network.n_agents, bound_of(network)
    values, vectors = np.linalg.eigh(consensus_matrix(network))
    rng = np.random.default_rng(4)
    for _ in range(3):
        epsilon = n * spectrum._spread(values, vectors)
        assert (epsilon <= bound * (1 + 1e-9) + 1e-9).all()
        groups = np.split(np.arange(n), np.flatnonzero(np.diff(values) > 1e-9) + 1)
        for group in groups:
            turn = np.linalg.qr(rng.standard_normal((len(group), len(group))))[0]
            vectors[:, group] = vectors[:, group] @ turn


@pytest.mark.parametrize("name", ["er", "dense", "ba", "grid", "star"])
def test_the_estimate_is_near_the_bound_where_there_is_a_gap(name: str) -> None:
    """The mean to a tenth; nearly all agents to a third, and those of few or many links are told apart."""
    bound, estimate = bound_of(MANY[name]), spectrum.estimated_epsilon(MANY[name])
    assert estimate.mean() == pytest.approx(bound.mean(), rel=0.1)
    assert (np.abs(np.log(estimate / bound)) < np.log(4 / 3)).mean() > 0.9
    np.testing.assert_array_equal(estimate, spectrum.estimated_epsilon(MANY[name]))


def test_a_long_ring_is_estimated_from_below() -> None:
    network = Network.ring(1000)
    bound, estimate = bound_of(network), spectrum.estimated_epsilon(network)
    assert np.ptp(estimate) == 0
    assert 0.7 < estimate[0] / bound.mean() < 1
    assert (spectrum.estimated_epsilon(MANY["complete"]) < 1e-9).all()


def test_the_second_eigenvalue_of_many_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("er", "dense", "ba", "grid", "star", "complete")
    exact = [second_size(MANY[name]) for name in names]
    monkeypatch.setattr(spectrum, "EXACT_AGENTS", 5)
    for name, size in zip(names, exact, strict=True):
        assert 1 - second_size(MANY[name]) == pytest.approx(1 - size, rel=0.1)
    with pytest.raises(InputError, match=r"gap of P on this network of 3000 agents is too small to be found"):
        second_size(Network.ring(3000))


def test_the_second_eigenvalue_by_its_size() -> None:
    """K(4,4) has the eigenvalues 1, 0.2 and -0.6: the slowest wave is the one that swings."""
    bipartite = Network(nx.complete_bipartite_graph(4, 4))
    assert second_size(bipartite) == pytest.approx(0.6)
    # Stages of DDUCB: ceil(ln(2 · 8 · 22) / sqrt(2 ln(1 / 0.6))), and 4 of them for 0.2.
    assert rm.DDUCB().plan(bipartite).stage == 6
    assert second_size(Network.complete(5)) == pytest.approx(0.0, abs=1e-12)
    assert second_size(Network.path(1)) == 0.0


def test_a_plan_says_how_epsilon_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    network = MANY["er"]
    assert rm.ConsensusUCB().plan(network).ways == {"epsilon_v": "exact"}
    assert rm.ConsensusUCB(epsilon=1.0).plan(network).ways == {"epsilon_v": "given"}
    monkeypatch.setattr(spectrum, "EXACT_AGENTS", 5)
    plan = rm.ConsensusUCB().plan(network)
    assert plan.ways == {"epsilon_v": "estimated"}
    np.testing.assert_array_equal(plan.epsilon, spectrum.estimated_epsilon(network))
