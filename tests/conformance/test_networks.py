"""Every kind of network in the catalogue: drawn by its generator alone, of the size it says."""

import pickle
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.catalogue_samples import every, made
from rumormill import catalogue

each = pytest.mark.parametrize(("name", "table"), every("network"))


def built(table: dict[str, Any], seed: int = 0) -> rm.Network:
    network = made("network", table).build(np.random.default_rng(seed))
    assert isinstance(network, rm.Network)
    return network


@each
def test_is_plain_data(name: str, table: dict[str, Any]) -> None:
    topology = made("network", table)
    assert pickle.loads(pickle.dumps(topology)) == topology == made("network", table)
    assert catalogue.name_of("network", type(topology)) == name


@each
def test_depends_on_the_generator_alone(name: str, table: dict[str, Any]) -> None:
    topology = made("network", table)
    np.testing.assert_array_equal(built(table).edges(), built(table).edges())
    if not topology.random:
        rng = np.random.default_rng(5)
        before = rng.bit_generator.state
        topology.build(rng)
        assert rng.bit_generator.state == before  # nothing was drawn
        np.testing.assert_array_equal(built(table, 1).edges(), built(table).edges())


@pytest.mark.parametrize(
    "name", [name for name, cls in catalogue.NETWORKS.items() if vars(cls).get("random")]
)
def test_random_kinds_do_vary(name: str) -> None:
    def seen(table: dict[str, Any]) -> int:
        return len({built(table, seed).edges().tobytes() for seed in range(10)})

    assert max(seen(param.values[1]) for param in every("network") if param.values[0] == name) > 1


@each
def test_is_of_the_size_it_says(name: str, table: dict[str, Any]) -> None:
    network, (agents, links) = built(table), made("network", table).size()
    if agents:  # 0 where it is not known before it is read
        assert agents / 2 <= network.n_agents <= 2 * agents
        assert network.n_edges <= 2 * links


@each
def test_is_a_simple_graph_of_numbered_agents(name: str, table: dict[str, Any]) -> None:
    network = built(table)
    edges = network.edges()
    assert edges.min(initial=0) >= 0
    assert edges.max(initial=0) < network.n_agents
    assert (edges[:, 0] != edges[:, 1]).all()
    assert len(np.unique(np.sort(edges, axis=1), axis=0)) == len(edges) == network.n_edges
    for v in range(network.n_agents):
        for w in network.neighbours(v).tolist():
            assert v in network.neighbours(w)
    assert str(network.n_agents) in network.describe()


@each
def test_can_be_played_on_by_name(name: str, table: dict[str, Any]) -> None:
    bandit = rm.Bandit([rm.Gaussian(loc=0.0), rm.Gaussian(loc=1.0)])
    result = rm.simulate(bandit, table, "kmp", horizon=20, rng=1)
    again = rm.simulate(bandit, table, "kmp", horizon=20, rng=1)
    np.testing.assert_array_equal(result.regret, again.regret)
