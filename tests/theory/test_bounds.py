"""Upper bounds: worked examples by hand, and what must hold between them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from rumormill.policies import CliquePlan
from rumormill.theory import Form, individual_bound, regret_bound
from rumormill.theory.bounds import BOUNDS, UNBOUNDED

# Two coins with P(1) = 1/4 and 3/4: one gap of 1/2.
COINS = rm.Bandit([rm.TwoPoint(probability=0.25), rm.TwoPoint(probability=0.75)])


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-9)


def test_worked_example_1_decentralized_on_a_path() -> None:
    """Three agents in a row, one hop: two cliques. Trimmed mean, eps = 1, u = 1: c = 16, delta = 1/(3 t^3).

    L = ln(3 * 100^3) = 14.9141; samples 16 L (2/0.5)^2 = 256 L; regret until known 0.5 * 2 * 256 L.
    """
    policy = rm.DecentralizedMPUCB(
        gamma=1, c="theory", confidence="anytime", moments=rm.Moments(eps=1.0, u=1.0, rho=0.25)
    )
    network = rm.Network.path(3)
    L = math.log(3e6)
    bound = regret_bound(COINS, network, policy, 100)
    assert dict(bound.terms) == {
        "learning": near(256 * L),
        "delay": 0.0,  # one hop costs no round
        "start": near(0.5 * (2 + 6)),
        "failures": near(0.5 * 3 * math.pi**2 / 3),
    }
    assert round(bound.value, 2) == 3826.95  # 3818.015 + 4 + 4.935
    assert bound.ceiling == 100 * 3 * 0.5
    assert bound.vacuous
    assert bound.dominant == "learning"

    # Printed: 4 * 16 * 1 * 2 cliques * (2 * 0.5)^-1 ln 100, then (3 * 3 + 1 * 2 * 2) * 0.5.
    printed = regret_bound(COINS, network, policy, 100, "printed")
    assert dict(printed.terms) == {
        "learning": near(128 * math.log(100)),
        "delay": near(2.0),
        "start": near(4.5),
    }
    assert round(printed.value, 2) == 595.96


def test_worked_example_2_centralized_on_a_path_and_its_followers() -> None:
    """Five in a row, two hops, the middle one leads all. eps = 1/2, u = 1: c = 64, delta = t^-2, T = 50.

    L = 2 ln 50; samples 64 L (2/0.5)^3 = 4096 L. The leader hears 5 agents: failures in rounds 3..50 are
    6 (rounds 3..8, where 10 (t-1)/t^2 > 1) + 10 (H50 - H8) - 10 (sum of 1/t^2) = 22.8364.
    """
    policy = rm.CentralizedMPUCB(
        gamma=2, leaders="dominating", c="theory", moments=rm.Moments(eps=0.5, u=1.0, rho=1.0)
    )
    network = rm.Network.path(5)
    L = 2 * math.log(50)
    failed = 6 + sum(10 / t - 10 / t**2 for t in range(9, 51))
    assert round(failed, 4) == 22.8364
    bound = regret_bound(COINS, network, policy, 50)
    assert dict(bound.terms) == {
        "learning": near(0.5 * 4096 * L),
        "delay": near(0.5 * 4 * 1),
        "start": near(0.5 * (1 + 10)),
        "following": near(0.5 * 4 * 2),
        "failures": near(0.5 * 5 * failed),
    }
    assert round(bound.value, 1) == 16092.2

    # Printed: 2^3 * 64 * 0.5^-2 ln 50, then (1 * 5 * 2 + 5 + 1) * 0.5.
    printed = regret_bound(COINS, network, policy, 50, "printed")
    assert dict(printed.terms) == {
        "learning": near(2048 * math.log(50)),
        "delay": near(5.0),
        "start": near(3.0),
    }

    leader = individual_bound(COINS, network, policy, 50, 2)
    follower = individual_bound(COINS, network, policy, 50, 0)
    assert dict(follower.terms) == {
        "learning": near(0.5 * 4096 * L / 5),
        "delay": near(0.5 * 3),
        "following": near(0.5 * 2),
        "start": near(0.5 * 2),
        "failures": near(0.5 * failed),
    }
    assert follower.value - leader.value == near(1.0)
    assert follower.ceiling == 25.0
    alone = individual_bound(COINS, network, policy, 50, 0, "printed")
    assert alone.value == near(2048 * math.log(50) / 5 + 5 * 1.5)


def test_worked_example_3_kmp_on_a_star() -> None:
    """Five agents, one hop: the hub reaches all (1 centre), four leaves are independent. Median of means,
    eps = 1, rho = 1/4: c = 192 with L + 1/8. T = 1000, L = ln(5 * 10^9) = 22.3327; samples
    192 (L + 1/8) (1/4) 16 = 768 (L + 1/8). The hub is heard by 5, each leaf by 2: 13 in all.
    """
    policy = rm.KMPUCB(
        gamma=1,
        estimator=rm.MedianOfMeans(),
        c="theory",
        confidence="anytime",
        moments=rm.Moments(eps=1.0, u=1.0, rho=0.25),
    )
    network = rm.Network.star(5)
    L = math.log(5e9)
    bound = regret_bound(COINS, network, policy, 1000)
    assert dict(bound.terms) == {
        "learning": near(0.5 * 768 * (L + 0.125)),
        "delay": near(0.5 * 5),
        "start": near(0.5 * (1 + 10)),
        "failures": near(0.5 * 13 * math.pi**2 / 3),
    }
    assert round(bound.value, 1) == 8653.1
    # Printed: 2 * 192 * (1/4) * 4 leaves * 0.5^-1 ln 1000, then 4 (1 + 2 + 5) * 0.5.
    printed = regret_bound(COINS, network, policy, 1000, "printed")
    assert dict(printed.terms) == {
        "learning": near(768 * math.log(1000)),
        "delay": near(2.0),
        "start": near(14.0),
    }


def test_worked_example_4_consensus_of_two() -> None:
    """Two linked agents average everything at once: the second eigenvalue is 0, nothing is lost in mixing."""
    policy = rm.ConsensusUCB(moments=rm.Moments(eps=1.0, u=1.0, rho=0.25))
    network = rm.Network.complete(2)
    bound = regret_bound(COINS, network, policy, 1000)
    failed = sum(min(1.0, 2 / 3 * (math.floor(math.log2(2 * t)) + 1) * t ** (-2 / 3)) for t in range(3, 1001))
    assert dict(bound.terms) == {
        "learning": near(0.5 * 6 * 0.25 * 100 * 16),
        "mixing": pytest.approx(0.0, abs=1e-9),
        "start": near(0.5 * 4),
        "failures": near(0.5 * 2 * failed),
    }
    printed = regret_bound(COINS, network, policy, 1000, "printed")
    assert dict(printed.terms) == {
        "learning": near(100 * 6 * 0.25 / 0.5),
        "mixing": pytest.approx(0.0, abs=1e-9),
        "start": near(1.0),
        "failures": near(100.0),
    }


def test_worked_example_5_consensus_with_heavy_tails() -> None:
    """Below eps = 1 the printed radius is smaller than "moment": it learns sooner and fails more often."""
    moments, network = rm.Moments(eps=0.8, u=1.0, rho=0.1), rm.Network.complete(2)
    bound = regret_bound(COINS, network, rm.ConsensusUCB(moments=moments), 1000)
    wider = regret_bound(COINS, network, rm.ConsensusUCB(moments=moments, radius="moment"), 1000)
    odds = {t: 4 / 3 * (math.floor(math.log2(t * 2**0.8)) + 1) * t ** (-2 / 3) for t in range(3, 1001)}
    more = {t: odds[t] * (6 * 0.1 * 2 * t ** (5 / 3)) ** 0.1 for t in odds}
    assert more[500] < 1  # else nothing could be told from this
    assert bound.terms["learning"] == near(0.5 * 6 * 0.1 * 100 * 4**2)
    assert bound.terms["failures"] == near(0.5 * 2 * sum(min(1.0, each) for each in more.values()))
    assert wider.terms["learning"] == near(0.5 * (6 * 0.1 * 100) ** 1.25 * 4**2.25)
    assert wider.terms["failures"] == near(0.5 * 2 * sum(min(1.0, each) for each in odds.values()))


@pytest.mark.parametrize(("radius", "eps"), [("printed", 1 / 5), ("moment", 2 / 3)])
def test_where_the_bound_of_consensus_never_says_anything(radius: Any, eps: float) -> None:
    for off, silent in ((0.0, True), (0.01, False)):
        policy = rm.ConsensusUCB(radius=radius, moments=rm.Moments(eps=eps + off, u=10.0, rho=10.0))
        bound = regret_bound(COINS, rm.Network.path(3), policy, 100)
        assert any("never says anything" in each.text for each in bound.assumptions) is silent


def test_robust_is_m_times_one_agent() -> None:
    policy = rm.RobustUCB(c="theory", confidence="paper")
    one = regret_bound(COINS, rm.Network.complete(1), policy, 500)
    many = regret_bound(COINS, rm.Network.ring(7), policy, 500)
    assert many.value == near(7 * one.value)


def test_without_the_filter_the_cover_still_counts() -> None:
    policy = rm.DecentralizedMPUCB(gamma=1, c="theory", confidence="anytime")
    loose = rm.DecentralizedMPUCB(gamma=1, c="theory", confidence="anytime", clique_filter=False)
    network = rm.Network.ring(6)
    assert regret_bound(COINS, network, policy, 500).terms == regret_bound(COINS, network, loose, 500).terms


@pytest.mark.parametrize("form", ["corrected", "printed"])
@pytest.mark.parametrize(
    "policy",
    [
        rm.DecentralizedMPUCB(gamma=1, c="theory"),
        rm.CentralizedMPUCB(gamma=1, c="theory"),
        rm.KMPUCB(gamma=1, c="theory"),
        rm.RobustUCB(c="theory"),
        rm.ConsensusUCB(),
    ],
    ids=lambda policy: type(policy).__name__,
)
def test_terms_add_up_and_grow(policy: rm.Policy, form: Form) -> None:
    network = rm.Network.path(5)
    values = []
    for horizon in (10, 100, 1000):
        bound = regret_bound(COINS, network, policy, horizon, form)
        assert bound.value == near(math.fsum(bound.terms.values()))
        assert min(bound.terms.values()) >= 0
        assert bound.form == form
        assert bound.vacuous == (bound.value > horizon * 5 * 0.5)
        assert bound.describe().startswith(f"{form} bound")
        assert ("vacuous" in bound.describe()) == bound.vacuous
        values.append(bound.value)
    assert values == sorted(values)


def test_the_first_rounds_are_exact() -> None:
    bandit = rm.Bandit([rm.Gaussian(loc=m) for m in (0.0, 0.3, 1.0)])
    policy = rm.KMPUCB(gamma=1)
    network = rm.Network.ring(4)
    for horizon in (1, 2, 3):
        bound = regret_bound(bandit, network, policy, horizon)
        played = rm.simulate(bandit, network, policy, horizon=horizon, rng=1)
        assert bound.value == near(float(played.regret[0, -1]))


def test_it_says_what_is_not_covered() -> None:
    network = rm.Network.path(3)
    by_constant = {
        c: regret_bound(COINS, network, rm.DecentralizedMPUCB(gamma=1, c=c), 100)
        for c in ("theory", 1.0, 16.0, 17.0)
    }
    assert [c for c, bound in by_constant.items() if not bound.covered] == [1.0]
    (missing,) = [each for each in by_constant[1.0].assumptions if not each.holds]
    assert missing.text.startswith("No lemma of TrimmedMean covers the radius with c = 1 ")
    for estimator in (rm.MedianOfMeans(), rm.Catoni(), rm.EmpiricalMean()):
        policy = rm.RobustUCB(estimator=estimator, c=1e6)
        assert not regret_bound(COINS, network, policy, 100).covered
    wrong = regret_bound(
        COINS, network, rm.RobustUCB(c="theory", moments=rm.Moments(eps=1.0, u=0.1, rho=0.1)), 100
    )
    assert [each.text for each in wrong.assumptions if not each.holds] == [
        "The moment bounds given (eps = 1) do not hold for these arms."
    ]
    literal = rm.RobustUCB(estimator=rm.TrimmedMean(variant="literal"), c="theory")
    assert not regret_bound(COINS, network, literal, 100).covered


def test_moments_that_do_not_exist_do_not_hold() -> None:
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.5, loc=m) for m in (0.0, 1.0)])
    policy = rm.ConsensusUCB(moments=rm.Moments(eps=0.9, u=10.0, rho=10.0))
    bound = regret_bound(bandit, rm.Network.path(3), policy, 100)
    assert not bound.covered


@pytest.mark.parametrize("gamma", [0, 1, 2])
@pytest.mark.parametrize("estimator", [rm.TrimmedMean(), rm.MedianOfMeans(), rm.Catoni()], ids=repr)
def test_ranked_samples_are_independent_at_every_gamma(estimator: rm.Estimator, gamma: int) -> None:
    """No sample is ranked before one that its choice depended on, so that no hop has to be assumed away."""
    policy = rm.KMPUCB(gamma=gamma, estimator=estimator, c="theory")
    assert regret_bound(COINS, rm.Network.path(3), policy, 100).covered


@pytest.mark.parametrize("policy", [rm.KMPUCB(gamma=1, c="theory"), rm.ConsensusUCB()], ids=repr)
def test_a_printed_bound_is_no_promise(policy: rm.Policy) -> None:
    assert regret_bound(COINS, rm.Network.path(3), policy, 100).covered
    assert not regret_bound(COINS, rm.Network.path(3), policy, 100, "printed").covered


def test_every_policy_of_the_catalogue_has_its_bounds() -> None:
    assert set(rm.catalogue.POLICIES.values()) == {*BOUNDS, *UNBOUNDED}
    assert not set(BOUNDS) & set(UNBOUNDED)


def test_arms_below_the_range_of_the_lemma_are_pulled() -> None:
    """With hardly any noise Catoni's lemma starts at n >= 4 L, and that is what costs."""
    bandit = rm.Bandit([rm.Gaussian(loc=m, scale=1e-3) for m in (0.0, 1.0)])
    policy = rm.RobustUCB(estimator=rm.Catoni(), c="theory")
    bound = regret_bound(bandit, rm.Network.complete(1), policy, 1000)
    assert bound.terms["learning"] == math.ceil(8 * math.log(1000)) - 1


def test_constants_beyond_the_floats_are_infinite() -> None:
    bandit = rm.Bandit([rm.Gaussian(loc=m) for m in (0.0, 1e-3)])
    policy = rm.RobustUCB(zeta=4.0, moments=rm.Moments(eps=0.004, u=3.0, rho=3.0))
    bound = regret_bound(bandit, rm.Network.complete(2), policy, 100)
    assert bound.value == math.inf
    assert bound.vacuous


def test_refusals() -> None:
    network = rm.Network.path(3)
    policy = rm.RobustUCB()
    with pytest.raises(rm.InputError, match="form"):
        regret_bound(COINS, network, policy, 10, "wrong")  # type: ignore[arg-type]
    with pytest.raises(rm.InputError, match="horizon"):
        regret_bound(COINS, network, policy, 0)
    with pytest.raises(rm.InputError, match="built-in"):
        regret_bound(COINS, network, lambda seat: None, 10)  # type: ignore[arg-type]
    with pytest.raises(rm.InputError, match="single agents"):
        individual_bound(COINS, network, policy, 10, 0)
    with pytest.raises(rm.InputError, match="same mean"):
        regret_bound(rm.Replay(np.ones((3, 3, 2))), network, policy, 10)


def test_a_given_plan_is_used() -> None:
    network = rm.Network.path(4)
    policy = rm.DecentralizedMPUCB(gamma=1, c="theory")
    plan = CliquePlan(1, ((0,), (1,), (2,), (3,)))
    alone = regret_bound(COINS, network, policy, 100, plan=plan)
    assert alone.terms["learning"] == near(2 * regret_bound(COINS, network, policy, 100).terms["learning"])
    with pytest.raises(rm.InputError, match="plan"):
        regret_bound(COINS, network, policy, 100, plan=rm.CentralizedMPUCB(gamma=1).plan(network))


def test_rivals() -> None:
    network = rm.Network.ring(6)
    policy = rm.DDUCB(sigma=0.5)
    bound = regret_bound(COINS, network, policy, 1000)
    stage, gap = policy.plan(network).stage, float(COINS.gaps.max())
    learning = 16 * 2 * (1 + 1 / 44) * 0.25 * math.log(6000) / gap
    assert bound.terms["learning"] == near(learning)
    assert bound.value == near(learning + gap * (6 * (6 * stage + 1) + stage + 4))
    assert bound.covered
    assert not regret_bound(COINS, network, rm.DDUCB(sigma=0.5, eta=1.01), 1000).covered
    heavy = rm.Bandit([rm.AlphaStable(alpha=1.6, loc=loc) for loc in (0.0, 1.0)])
    assert not regret_bound(heavy, network, rm.DDUCB(), 1000).covered
    # All moments of a log-normal law are finite, yet it is not sub-Gaussian at any scale.
    skewed = rm.Bandit([rm.LogNormal(mu=mu, sigma=2.0) for mu in (0.0, 1.0)])
    assert not regret_bound(skewed, network, rm.DDUCB(), 1000).covered
    assert not regret_bound(skewed, network, rm.DDUCB(sigma=1e6), 1000).covered
    gaussian = rm.Bandit([rm.Gaussian(loc=loc, scale=2.0) for loc in (0.0, 1.0)])
    assert regret_bound(gaussian, network, rm.DDUCB(), 1000).covered
    assert not regret_bound(gaussian, network, rm.DDUCB(sigma=1.9), 1000).covered
    rare = rm.Bandit([rm.TwoPoint(probability=0.002, high=100.0), rm.TwoPoint(probability=0.004, high=100.0)])
    assert not regret_bound(rare, network, rm.DDUCB(), 1000).covered  # sigma is the standard deviation there
    for rival in (rm.CoopUCB2(), rm.RobustGossip()):
        with pytest.raises(rm.InputError, match=f"no bound for {type(rival).__name__}"):
            regret_bound(COINS, network, rival, 1000)
    with pytest.raises(rm.InputError, match="brings an index of its own"):
        regret_bound(COINS, network, rm.KMPUCB(estimator=rm.SelfTuned()), 1000)


def test_other_radii_of_consensus_are_not_covered() -> None:
    network = rm.Network.path(3)
    assert regret_bound(COINS, network, rm.ConsensusUCB(), 100).covered
    assert regret_bound(COINS, network, rm.ConsensusUCB(radius="moment"), 100).covered
    for policy in (rm.ConsensusUCB(radius="logarithmic"), rm.ConsensusUCB(zeta=0.5)):
        assert not regret_bound(COINS, network, policy, 100).covered


def test_the_clipped_mean_has_the_small_constant() -> None:
    network = rm.Network.path(3)
    clipped, trimmed = (
        regret_bound(COINS, network, rm.RobustUCB(estimator=estimator, c="theory"), 1000)
        for estimator in (rm.ClippedMean(), rm.TrimmedMean())
    )
    assert clipped.covered
    assert clipped.terms["learning"] < 0.2 * trimmed.terms["learning"]


def test_quiet_talk_and_a_shared_start_are_paid_for() -> None:
    network = rm.Network.path(3)
    plain, quiet, shared = (
        regret_bound(COINS, network, rm.DecentralizedMPUCB(gamma=1, c="theory", **extra), 1000)
        for extra in ({}, {"quiet": 0.25}, {"start": "shared"})
    )
    alone = regret_bound(COINS, network, rm.RobustUCB(c="theory"), 1000)
    assert quiet.value == near(plain.value + alone.terms["learning"])
    assert shared.terms["failures"] >= plain.terms["failures"]
    first = regret_bound(COINS, network, rm.KMPUCB(gamma=1, start="shared"), 1)
    assert first.value == near(3 * COINS.gaps.max())
