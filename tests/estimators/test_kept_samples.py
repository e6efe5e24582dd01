"""Catoni's bound and MR-UCB: by hand, the rule of 2 %, coverage, and where they are refused."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import rumormill as rm
from helpers.oracle import Rules, catoni_bound, mr_bonus, mr_mean
from rumormill.checks import check_estimator
from rumormill.estimators import Terms
from rumormill.formulas import bound_phi, catoni_curvature, mr_curvature

MOMENTS = rm.Moments(eps=1.0, u=1.0, rho=1.0)
LEVEL = 3.0


def fed(estimator: Any, samples: Any, terms: Terms | None = None) -> Any:
    stream = estimator.stream_for(terms or Terms(moments=MOMENTS, horizon=20, n_arms=2, group=3))
    for x in samples:
        stream.update(x)
    return stream


@pytest.mark.parametrize(
    "estimator", [rm.CatoniBound(), rm.MRUCB(), rm.MRUCB(c=0.3, p=1.5), rm.Catoni(slack=0.02)], ids=repr
)
def test_they_keep_the_contract(estimator: rm.Estimator) -> None:
    check_estimator(estimator)


# --- by hand ----------------------------------------------------------------------------------------------


def test_catonis_bound_of_one_sample_by_hand() -> None:
    """One sample 0, rho = 1, p = 2, L = 1: with z = lambda theta it says 1 + z + z²/2 = (1 + L) e^L."""
    z = math.sqrt(1 + 2 * (2 * math.e - 1)) - 1
    stream = fed(rm.CatoniBound(), [0.0])
    assert stream.index(1.0) == pytest.approx(z / math.sqrt(2), rel=1e-12)
    assert stream.mean(1.0) == pytest.approx((z - 2) / math.sqrt(2), rel=1e-12)
    assert fed(rm.CatoniBound(), []).index(1.0) == math.inf
    assert fed(rm.CatoniBound(), [1.0, 4.0]).index(0.0) == 2.5  # without confidence there is only the mean
    # A large reward counts as the largest phi, ln 2; so does any that is larger still.
    twice = [fed(rm.CatoniBound(), [0.0, x]).index(1.0) for x in (100.0, 1e9)]
    assert twice[0] == pytest.approx(twice[1], rel=1e-12)


def test_mr_by_hand() -> None:
    """p = 2, c = 1, T group / K = 30: samples are seen in units of the square root of two."""
    stream = fed(rm.MRUCB(), [2.0, -1.0])
    mean = (math.log(2 + math.sqrt(2)) - math.log(1.25 + math.sqrt(0.5))) / math.sqrt(2)
    assert stream.mean(1.0) == pytest.approx(mean, rel=1e-12)
    assert stream.index(1.0) == pytest.approx(mean + math.log(15) / math.sqrt(2), rel=1e-12)
    assert fed(rm.MRUCB(), [0.0] * 40).index(1.0) == 0.0  # more than a fair share: no bonus
    assert fed(rm.MRUCB(), []).index(1.0) == math.inf


def test_constants() -> None:
    assert mr_curvature(2.0) == 0.5
    assert mr_curvature(2 - 1e-9) == pytest.approx(0.5, abs=1e-6)
    assert mr_curvature(1.5) == pytest.approx(3 ** (-0.75), rel=1e-12)  # (2 - p)/(p - 1) = 1
    for eps in (0.05, 0.4, 1.0):
        y = np.linspace(-50, 50, 20_001)
        value, slope = bound_phi(y, eps, catoni_curvature(eps))
        assert (np.exp(-value) <= 1 - y + catoni_curvature(eps) * np.abs(y) ** (1 + eps) + 1e-9).all()
        assert (np.diff(value) >= -1e-12).all()
        assert (slope >= -1e-12).all()


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0])
def test_a_second_writing_says_the_same(eps: float) -> None:
    rng = np.random.default_rng(int(100 * eps))
    moments = rm.Moments(eps=eps, u=3.0, rho=2.0)
    rules = Rules("robust", eps=eps, u=3.0, rho=2.0)
    for n in (1, 2, 9, 200):
        x = (rng.standard_cauchy(n) + 5).tolist()
        for L in (0.5, 4.0, 20.0):
            bound = fed(rm.CatoniBound(), x, Terms(moments=moments))
            expected = catoni_bound(x, L, rules)
            assert (bound.mean(L), bound.index(L)) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        terms = Terms(moments=moments, horizon=300, n_arms=3, group=2)
        own = fed(rm.MRUCB(c=0.7), x, terms)
        assert own.mean(1.0) == pytest.approx(mr_mean(x, rules, c=0.7), rel=1e-9)
        assert own.index(1.0) - own.mean(1.0) == pytest.approx(mr_bonus(n, rules, 200.0, c=0.7), abs=1e-9)


# --- the rule of 2 % --------------------------------------------------------------------------------------


def test_a_bound_is_kept_until_n_or_l_has_grown_by_two_per_cent() -> None:
    x = np.random.default_rng(3).standard_normal(103).tolist()
    stream = fed(rm.CatoniBound(), x[:100])
    first = stream.index(5.0)
    assert stream.index(5.1) == first  # 5.1 is not more than 1.02 times 5
    assert stream.index(5.11) > first
    second = stream.index(5.11)
    for late in x[100:102]:
        stream.update(late)
        assert stream.index(5.11) == second
    stream.update(x[102])
    assert stream.index(5.11) != second
    assert stream.index(5.11) == pytest.approx(fed(rm.CatoniBound(), x).index(5.11), rel=1e-12)


def test_a_mean_of_mr_is_kept_from_fifty_samples_on_while_the_bonus_is_fresh() -> None:
    x = np.random.default_rng(4).standard_normal(103).tolist()
    terms = Terms(moments=MOMENTS, horizon=1000, n_arms=2)
    stream = fed(rm.MRUCB(), x[:100], terms)
    first, index = stream.mean(1.0), stream.index(1.0)
    for late in x[100:102]:
        stream.update(late)
        assert stream.mean(9.0) == first  # L does not matter
    assert stream.index(1.0) < index
    stream.update(x[102])
    assert stream.mean(1.0) == fed(rm.MRUCB(), x, terms).mean(1.0) != first
    few = fed(rm.MRUCB(), x[:48], terms)
    few.mean(1.0)
    few.update(x[48])
    assert few.mean(1.0) == fed(rm.MRUCB(), x[:49], terms).mean(1.0)


def test_catonis_mean_is_kept_only_with_slack() -> None:
    x = np.random.default_rng(5).standard_normal(103).tolist()
    for slack in (0.0, 0.02):
        stream, fresh = (fed(rm.Catoni(slack=s), x[:100]) for s in (slack, 0.0))
        first = stream.mean(5.0)
        assert (stream.mean(5.1) == first) == (slack > 0)
        assert stream.mean(5.11) != first
        second = stream.mean(5.11)
        for late in x[100:102]:
            stream.update(late)
            assert (stream.mean(5.11) == second) == (slack > 0)
        stream.update(x[102])
        for late in x[100:]:
            fresh.update(late)
        assert stream.mean(5.11) == pytest.approx(fresh.mean(5.11), rel=1e-12) != second


def test_a_kept_root_is_given_up_where_there_is_none() -> None:
    """eps = 1 and n <= 2 L: no root. What was kept before does not come back when L is small again."""
    stream = fed(rm.Catoni(slack=1.0), [0.0, 1.0, 5.0])
    stream.mean(1.0)
    assert stream.mean(1.5) == math.inf
    assert stream.mean(0.7) == pytest.approx(fed(rm.Catoni(), [0.0, 1.0, 5.0]).mean(0.7), rel=1e-12)


@pytest.mark.parametrize(
    "arms", [(rm.Gaussian(), 0.8), (rm.AlphaStable(alpha=1.5), 0.6)], ids=["eps 1", "eps < 1"]
)
@pytest.mark.parametrize("policy", [rm.DecentralizedMPUCB, rm.KMPUCB])
def test_both_engines_keep_a_root_as_long(arms: tuple[rm.Arm, float], policy: Any) -> None:
    law, gap = arms
    bandit = rm.Bandit([law.at_mean(0.0), law.at_mean(gap), law.at_mean(gap / 2)])
    estimator = rm.Catoni(slack=0.1)
    ring, made = rm.Network.ring(5), policy(gamma=1, estimator=estimator, c=0.5)
    fast = rm.simulate(bandit, ring, made, horizon=120, rng=2, engine="fast", actions=True)
    slow = rm.simulate(bandit, ring, made, horizon=120, rng=2, engine="reference", actions=True)
    assert fast.actions is not None
    assert slow.actions is not None
    assert np.array_equal(fast.actions, slow.actions)


def test_medians_of_means_stay_while_their_groups_do() -> None:
    x = np.random.default_rng(6).standard_cauchy(400).tolist()
    stream, moments = rm.MedianOfMeans().online(MOMENTS), MOMENTS
    for n, value in enumerate(x, 1):
        stream.update(value)
        for L in (0.3, 2.0):
            expected = rm.MedianOfMeans().of(x[:n], L, moments)
            assert stream.mean(L) == pytest.approx(expected, rel=1e-12, abs=1e-12)


# --- coverage ---------------------------------------------------------------------------------------------

ALARM = 1e-6  # chance that one of these rows fails although the claim is true
REPEATS = 1_000
LAWS: list[tuple[rm.Arm, float]] = [
    (rm.AlphaStable(alpha=1.5, loc=0.7), 0.425),
    (rm.Pareto(tail=1.8), 0.6),
    (rm.LogNormal(sigma=1.5), 1.0),
    (rm.TwoPoint(probability=0.01, high=50.0), 1.0),
    (rm.TwoPoint(probability=0.01, low=-50.0, high=0.0), 1.0),
]


def failures(estimator: rm.CatoniBound, law: rm.Arm, eps: float, n: int, share: float = 1.0) -> int:
    """How often the index is below the mean; `share` is the part of the true moment that it is told."""
    p = 1 + eps
    moments = rm.Moments(eps=eps, u=law.moment(p), rho=share * law.moment(p, central=True))
    rows = law.sample(np.random.default_rng([n, int(1000 * eps)]), (REPEATS, n)).tolist()
    return sum(estimator.index_of(row, LEVEL, Terms(moments=moments)) < law.mean for row in rows)


@pytest.mark.parametrize(("law", "eps"), LAWS, ids=repr)
@pytest.mark.parametrize("n", [1, 5, 60])
def test_catonis_bound_covers_every_law(law: rm.Arm, eps: float, n: int) -> None:
    found = failures(rm.CatoniBound(), law, eps, n)
    assert not binom.sf(found - 1, REPEATS, math.exp(-LEVEL)) < ALARM


def test_a_moment_that_is_too_small_is_seen() -> None:
    """The same count with a hundredth of the true moment: coverage is lost, and the test would say so."""
    found = failures(rm.CatoniBound(), *LAWS[3], 60, share=0.01)
    assert binom.sf(found - 1, REPEATS, math.exp(-LEVEL)) < ALARM


def test_what_they_claim() -> None:
    assert rm.CatoniBound().has_lemma
    assert rm.CatoniBound().valid(1, 50.0, MOMENTS)
    assert not rm.CatoniBound().symmetric_only
    assert not rm.MRUCB().has_lemma
    assert not rm.MRUCB().valid(10**6, 1.0, MOMENTS)
    assert rm.MRUCB().needs_moments
    assert not rm.MRUCB(p=1.5).needs_moments


def test_a_node_that_runs_for_ever_cannot_have_them() -> None:
    assert not rm.CatoniBound().bounded_memory
    assert rm.MRUCB().needs_horizon
