"""Bounds on networks of three agents and more, term by term, where factors of M show."""

from __future__ import annotations

import math

import pytest

import rumormill as rm
from rumormill.stats import clopper_pearson
from rumormill.theory import Bound, Verification, coverage, regret_bound

# Two coins with P(1) = 1/4 and 3/4: one gap of 1/2.
COINS = rm.Bandit([rm.TwoPoint(probability=0.25), rm.TwoPoint(probability=0.75)])


def test_mixing_of_consensus_on_a_path_of_three() -> None:
    """P has the eigenvalues 1, 2/3 and 0: an agent's count is off by at most √3 · (2/3) / (1/3)."""
    policy = rm.ConsensusUCB(moments=rm.Moments(eps=1.0, u=1.0, rho=0.25), epsilon=1.0)
    bound = regret_bound(COINS, rm.Network.path(3), policy, 1000)
    assert bound.terms["mixing"] == pytest.approx(0.5 * 3 * (1.0 + 2 * math.sqrt(3)))
    printed = regret_bound(COINS, rm.Network.path(3), policy, 1000, "printed")
    assert printed.terms["mixing"] == pytest.approx(0.5 * 3 * 2 * math.sqrt(3))
    assert printed.terms["learning"] == pytest.approx(100 * 6 * 0.25 * (1 + 1 / 3) / 0.5)


def test_mixing_of_consensus_by_the_size_of_an_eigenvalue() -> None:
    """K(3,3) has the eigenvalues 1, 1/4 (four times) and -1/2: the largest size counts, or all of them."""
    import networkx as nx

    policy = rm.ConsensusUCB(moments=rm.Moments(eps=1.0, u=1.0, rho=0.25), epsilon=1.0)
    network = rm.Network(nx.complete_bipartite_graph(3, 3))
    bound = regret_bound(COINS, network, policy, 1000)
    assert bound.terms["mixing"] == pytest.approx(0.5 * 6 * (1.0 + math.sqrt(6)))
    printed = regret_bound(COINS, network, policy, 1000, "printed")
    assert printed.terms["mixing"] == pytest.approx(0.5 * 6 * math.sqrt(6) * (4 / 3 + 1))


def test_both_moments_must_hold() -> None:
    """The coins have E|X|² = 3/4 and a variance of 3/16."""
    for u, rho, holds in ((0.75, 0.1875, True), (0.74, 0.1875, False), (0.75, 0.18, False)):
        policy = rm.KMPUCB(moments=rm.Moments(eps=1.0, u=u, rho=rho), c="theory", gamma=1)
        assert regret_bound(COINS, rm.Network.path(3), policy, 1000).covered == holds


def test_with_a_shared_start_agents_may_err_from_the_second_round_on() -> None:
    """An agent that hears r agents fails in round 2 with probability at most 2 r (2 - 1) / 4, at most 1."""
    usual = rm.DecentralizedMPUCB(gamma=1, c="theory", clique_filter=False)
    shared = rm.DecentralizedMPUCB(gamma=1, c="theory", clique_filter=False, start="shared")
    bounds = [regret_bound(COINS, rm.Network.path(3), policy, 1000) for policy in (usual, shared)]
    more = bounds[1].terms["failures"] - bounds[0].terms["failures"]
    assert more == pytest.approx(0.5 * 3 * 1.0)


def test_samples_needed_below_a_second_moment() -> None:
    """Twice the radius is the gap at n = c L u^(1/eps) (2 / gap)^(1 + 1/eps): here u², and a power of 3."""
    policy = rm.RobustUCB(c=2.0, moments=rm.Moments(eps=0.5, u=3.0, rho=3.0))
    bound = regret_bound(COINS, rm.Network.complete(1), policy, 1000)
    assert bound.terms["learning"] == pytest.approx(0.5 * 2.0 * 2 * math.log(1000) * 3.0**2 * 4.0**3)


def test_what_is_held_back_is_delay() -> None:
    """Nothing is used before it could have come as many hops as it is held for rounds."""
    for gamma, hold, rounds in ((1, 1, 0), (2, 1, 1), (1, 4, 3), (3, 2, 2)):
        policy = rm.DecentralizedMPUCB(gamma=gamma, hold=hold, c="theory", clique_filter=False)
        bound = regret_bound(COINS, rm.Network.path(9), policy, 1000)
        if hold > 1:
            assert bound.terms["delay"] == pytest.approx(0.5 * 8 * rounds)


def test_loss_over_two_hops_and_delay_over_more_than_one() -> None:
    """Both links of two must work: p² = 1/4, so 3 · 3/4 + 1/4 groups on a network that one clique covers."""
    policy = rm.DecentralizedMPUCB(gamma=2, c="theory", clique_filter=False, confidence="anytime")
    network = rm.Network.path(3)
    whole = regret_bound(COINS, network, policy, 1000)
    lossy = regret_bound(COINS, network, policy, 1000, world=rm.World(channel=rm.Imperfect(p=0.5)))
    assert lossy.terms["learning"] == pytest.approx((3 * 0.75 + 0.25) * whole.terms["learning"])
    late = regret_bound(COINS, network, policy, 1000, world=rm.World(channel=rm.Imperfect(delay=2)))
    assert whole.covered
    assert lossy.covered
    assert not late.covered


def test_the_interval_of_coverage_is_that_of_the_worse_side() -> None:
    (row,) = coverage(
        rm.EmpiricalMean(), rm.TwoPoint(high=100.0, probability=0.001), n=10, L=1.0, repeats=200, zeta=0.001
    )
    assert row.below > row.above
    assert (row.low, row.high) == clopper_pearson(row.below, 200, 0.999)


def test_a_bound_is_passed_with_five_standard_errors_to_spare() -> None:
    bound = Bound.of({"a": 100.0}, form="corrected", horizon=10, ceiling=1000.0, assumptions=[])
    assert Verification(95.0, 1.0, 10, bound).passed
    assert not Verification(95.1, 1.0, 10, bound).passed
    assert Verification(45.0, 1.0, 10, bound).false_alarm == pytest.approx(math.exp(-20 * 0.05**2))
    assert Verification(120.0, 1.0, 10, bound).false_alarm == 1.0
    assert not bound.vacuous
    assert Bound.of({"a": 1000.1}, form="corrected", horizon=10, ceiling=1000.0, assumptions=[]).vacuous
