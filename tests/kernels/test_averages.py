"""The parts of the kernel that averages: series for powers, shared sums, and the choice they lead to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from rumormill.engine import prepare
from rumormill.engine.compiled.layout_consensus import empty_table, neighbour_sums
from rumormill.engine.result import Opening
from rumormill.formulas import SERIES_ERROR, SERIES_RANGE, power_series
from rumormill.kernels import consensus
from rumormill.kernels.jit import alone
from rumormill.kernels.simd import row_sums as rows
from rumormill.kernels.simd.row_sums import RowSums
from rumormill.policies.averaging import heard_sums

add_up = alone(rows.add_up)
choose_by_consensus = alone(consensus.choose_by_consensus)
exact_choice = alone(consensus.exact_choice)

NETWORKS = [
    rm.Network.path(1),
    rm.Network.path(2),
    rm.Network.ring(7),
    rm.Network.star(13),
    rm.Network.complete(9),
    rm.Network.barabasi_albert(60, 3, rng=1),
    rm.Network.erdos_renyi(50, 0.7, rng=2),
]


def test_the_series_of_a_power_is_as_near_as_the_choice_relies_on() -> None:
    for exponent in (1e-6, 0.1, 0.444, 0.5, 1.0):
        for h in np.linspace(-SERIES_RANGE, SERIES_RANGE, 201).tolist():
            exact = math.pow(1.0 + h, -exponent)
            assert abs(power_series(h, exponent) - exact) <= 0.5 * SERIES_ERROR * exact


@pytest.mark.parametrize("columns", [1, 4, 5, 10, 13, 16, 17, 20, 40])
def test_rows_are_added_from_left_to_right(columns: int) -> None:
    rng = np.random.default_rng(columns)
    lists = [rng.integers(0, 5 + i, rng.integers(0, 9)) for i in range(12)]  # each of rows further up
    sums = RowSums(
        first=5,
        ptr=np.cumsum([0, *map(len, lists)]),
        ids=np.concatenate(lists).astype(np.int32),
    )
    table = empty_table(columns, 5, sums)
    slices, _, width = table.shape
    assert columns <= slices * width < columns + 4 * slices
    table[:, :5] = rng.standard_cauchy((slices, 5, width))
    expected = table.copy()
    for i, ids in enumerate(lists):
        for row in ids:
            expected[:, 5 + i] += expected[:, row]
    add_up(table, sums)
    np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize("network", NETWORKS, ids=repr)
def test_what_is_heard_has_the_bits_of_the_agents_sums(network: rm.Network) -> None:
    sums = neighbour_sums(network)
    table = empty_table(2, network.n_agents, sums)
    said = np.random.default_rng(3).standard_cauchy((network.n_agents, 2))
    table[0, : network.n_agents, :2] = said
    add_up(table, sums)
    for v in range(network.n_agents):
        near = network.indices[network.indptr[v] : network.indptr[v + 1]].tolist()
        expected = heard_sums({w: ((float(said[w, 0]), float(said[w, 1])),) for w in near}, 0)
        assert tuple(table[0, v - network.n_agents, :2]) == expected


def test_shared_sums_save_most_additions_of_a_dense_network() -> None:
    network = rm.Network.erdos_renyi(200, 0.7, rng=1)
    assert len(neighbour_sums(network).ids) < 0.45 * 2 * network.n_edges
    sparse = rm.Network.ring(1000)
    assert len(neighbour_sums(sparse).ids) <= 2 * 2 * sparse.n_edges


@pytest.mark.parametrize("n_arms", [2, 5, 9])
@pytest.mark.parametrize("seed", range(3))
def test_the_quick_choice_is_the_exact_one(n_arms: int, seed: int) -> None:
    """From rounds with equal arms, arms a few bits apart, arms nobody knows, and counts that leap."""
    network, rng = rm.Network.ring(40), np.random.default_rng([seed, n_arms])
    bandit = rm.Bandit([rm.Gaussian(loc=float(k)) for k in range(n_arms)])
    layout: Any = prepare(rm.ConsensusUCB(), network, n_arms, engine="fast").layout
    trial = layout.start(Opening(bandit, 100, np.array([100]), False, np.random.SeedSequence(1)))
    rules, state = trial.rules, trial.state
    for t in range(n_arms + 1, 101):
        sums = rng.standard_normal((network.n_agents, n_arms)) * rng.choice([1e-3, 1.0, 1e3])
        counts = rng.uniform(0.01, 0.02, (network.n_agents, n_arms)) + t / n_arms
        twin = rng.random(network.n_agents) < 0.5  # two arms alike, or off by some bits of their sum
        off = rng.choice([0.0, 1e-15, -1e-15, 1e-11, -1e-11], network.n_agents)
        sums[twin, 1] = (sums[twin, 0] + 3.0) * (1.0 + off[twin]) - 3.0
        counts[twin, 1] = counts[twin, 0]
        counts[rng.random(counts.shape) < 0.02] = 0.0
        for place, numbers in zip(state.place.T, np.hstack([sums, counts]).T, strict=True):
            state.table[place[0], : network.n_agents, place[1]] = numbers
        choose_by_consensus(t, rules, state)
        scale, drift, exponent = rules.scale[t], rules.drift[t], rules.exponent
        expected = [
            exact_choice(
                v, n_arms, network.n_agents, epsilon + drift, scale, exponent, state.place, state.table
            )
            for v, epsilon in enumerate(rules.epsilon)
        ]
        assert state.action.tolist() == expected
