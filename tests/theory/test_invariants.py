"""Invariants of power graphs against brute force, and their certificates."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import Any

import networkx
import numpy as np
import pytest

import rumormill as rm
from rumormill.graphs import dominating_set
from rumormill.theory import Invariants, invariants
from rumormill.theory.invariants import fractional_domination

ATLAS = [graph for graph in networkx.graph_atlas_g() if len(graph)]


@cache
def brute(closed: tuple[int, ...]) -> tuple[int, int, int]:
    """(cover, independence, domination) from bit sets of closed neighbourhoods, over all subsets."""
    n = len(closed)
    everyone = (1 << n) - 1
    members = [[v for v in range(n) if s >> v & 1] for s in range(1 << n)]
    is_clique = [all(s & ~closed[v] == 0 for v in members[s]) for s in range(1 << n)]
    independence = max(
        len(members[s]) for s in range(1 << n) if all(closed[v] & s == 1 << v for v in members[s])
    )
    domination = n
    for s in range(1 << n):
        reached = 0
        for v in members[s]:
            reached |= closed[v]
        if reached == everyone:
            domination = min(domination, len(members[s]))
    least = [0] + [n] * everyone
    for s in range(1, 1 << n):
        first = s & -s
        part = s
        while part:  # every subset of s that holds its first agent
            if part & first and is_clique[part]:
                least[s] = min(least[s], 1 + least[s ^ part])
            part = (part - 1) & s
    return least[everyone], independence, domination


def closed_neighbourhoods(network: rm.Network, gamma: int) -> tuple[int, ...]:
    distances = network.distances()
    near = (distances >= 0) & (distances <= gamma)
    return tuple(int(sum(1 << w for w in np.flatnonzero(row).tolist())) for row in near)


def check_witnesses(network: rm.Network, found: Invariants) -> None:
    closed = closed_neighbourhoods(network, found.gamma)
    groups: Any = found.cover.witness
    assert sorted(v for group in groups for v in group) == list(range(network.n_agents))
    assert all(closed[v] >> w & 1 for group in groups for v in group for w in group)
    assert len(groups) == found.cover.upper
    alone: Any = found.independence.witness
    assert not any(closed[v] >> w & 1 for v in alone for w in alone if v != w)
    assert len(alone) == found.independence.lower
    reached = 0
    few: Any = found.domination.witness
    for v in few:
        reached |= closed[v]
    assert reached == (1 << network.n_agents) - 1
    assert len(found.domination.witness) == found.domination.upper


def check_against_brute_force(graph: networkx.Graph) -> None:
    network = rm.Network(graph)
    found = invariants(network, time_limit=300.0)
    assert [one.gamma for one in found] == list(range(network.diameter + 1))
    for one in found:
        expected = brute(closed_neighbourhoods(network, one.gamma))
        assert (one.cover.value, one.independence.value, one.domination.value) == expected, (
            graph.edges,
            one.gamma,
        )
        check_witnesses(network, one)


def test_all_graphs_of_up_to_six_agents() -> None:
    small = [graph for graph in ATLAS if len(graph) <= 6]
    assert len(small) == 208
    for graph in small:
        check_against_brute_force(graph)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_all_graphs_of_seven_agents(part: int) -> None:
    large = [graph for graph in ATLAS if len(graph) == 7]
    assert len(large) == 1044
    for graph in large[part::4]:
        check_against_brute_force(graph)


@pytest.mark.parametrize("graph", ATLAS[210::80], ids=lambda graph: graph.name)
def test_some_graphs_of_seven_agents(graph: Any) -> None:
    check_against_brute_force(graph)


def test_brute_force_by_hand() -> None:
    """The cycle of five: three cliques, two strangers, two dominators."""
    ring = tuple(1 << v | 1 << (v + 1) % 5 | 1 << (v - 1) % 5 for v in range(5))
    assert brute(ring) == (3, 2, 2)


def test_bounds_without_time_hold_and_more_time_only_narrows_them() -> None:
    network = rm.Network.barabasi_albert(40, 2, rng=3)
    quick, slow = invariants(network, time_limit=0), invariants(network, time_limit=60)
    for one, other in zip(quick, slow, strict=True):
        check_witnesses(network, one)
        check_witnesses(network, other)
        for name in ("cover", "independence", "domination"):
            rough, fine = getattr(one, name), getattr(other, name)
            assert rough.lower <= fine.lower <= fine.upper <= rough.upper
            assert (rough.value is None) == (not rough.optimal)
    for near, far in pairwise(slow):
        assert far.cover.upper <= near.cover.upper
        assert far.domination.upper <= near.domination.upper
        assert far.independence.lower <= near.independence.lower


def test_large_networks_get_bounds() -> None:
    for network in (rm.Network.erdos_renyi(200, 0.7, rng=1), rm.Network.barabasi_albert(200, 5, rng=1)):
        for one in invariants(network, time_limit=0):
            assert 1 <= one.domination.lower <= one.domination.upper
            assert 1 <= one.independence.lower <= one.independence.upper <= one.cover.upper
            check_witnesses(network, one)


def test_chosen_gammas_come_back_in_order() -> None:
    network = rm.Network.path(6)
    assert [one.gamma for one in invariants(network, [2, 0, 2, 99])] == [2, 0, 2, 5]
    assert str(invariants(network, [1])[0].cover) == "3"


def test_fractional_domination_by_hand() -> None:
    # Every agent of a ring reaches 3, so 7 agents need at least 7/3; a star needs one.
    assert fractional_domination(rm.Network.ring(7).power(1)) == 3
    assert fractional_domination(rm.Network.star(6).power(1)) == 1
    assert fractional_domination(rm.Network.path(5).power(0)) == 5


def test_the_fractional_bound_can_settle_domination_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a ring of 7 the heuristic's set of 3 is proven smallest before the exact solver is asked."""

    def heuristic_only(*args: Any, method: str = "greedy", **given: Any) -> Any:
        assert method == "greedy"
        return dominating_set(*args, **given)

    monkeypatch.setitem(invariants.__globals__, "dominating_set", heuristic_only)
    (found,) = invariants(rm.Network.ring(7), [1])
    assert found.domination.value == 3


def test_the_time_limit_must_be_a_time() -> None:
    for bad in (-1, float("inf"), float("nan"), "1"):
        with pytest.raises(rm.InputError, match="time_limit"):
            invariants(rm.Network.path(3), time_limit=bad)  # type: ignore[arg-type]


def test_independence_of_a_connected_power_graph_by_gamma() -> None:
    """alpha(G_gamma) <= M // (gamma // 2 + 1) if alpha >= 2; the printed 2M/(gamma+2) fails at odd gamma.

    Balls of radius gamma // 2 around agents that do not hear each other are disjoint and, in a connected
    graph with another such agent, hold at least gamma // 2 + 1 agents each.
    """
    broken = 0
    for graph in [graph for graph in ATLAS if len(graph) <= 6 and networkx.is_connected(graph)]:
        network = rm.Network(graph)
        m = network.n_agents
        for gamma in range(network.diameter + 1):
            alpha = brute(closed_neighbourhoods(network, gamma))[1]
            if alpha >= 2:
                assert alpha <= m // (gamma // 2 + 1)
            if alpha > -(-2 * m // (gamma + 2)):
                assert gamma % 2 == 1
                broken += 1
    assert broken > 0
