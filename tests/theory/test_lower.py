"""Lower bounds: divergences in closed form, by integration, and the two-point construction."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

import rumormill as rm
from rumormill.theory import divergence, lower_bound, two_point_coefficient
from rumormill.theory.lower import DIVERGENCES, location_divergence


def test_gaussian_and_coins_by_hand() -> None:
    wide = rm.Bandit([rm.Gaussian(loc=m, scale=2.0) for m in (0.0, 1.0, 0.0)])
    assert lower_bound(wide).coefficient == pytest.approx(2 * 1 / (1 / 8))
    coins = rm.Bandit([rm.TwoPoint(probability=p) for p in (0.25, 0.75)])
    bound = lower_bound(coins)
    assert bound.arms[0].divergence == pytest.approx(0.5 * math.log(3))
    assert bound.coefficient == pytest.approx(0.5 / (0.5 * math.log(3)))
    assert bound.at(100) == pytest.approx(bound.coefficient * math.log(100))
    assert [term.arm for term in bound.arms] == [0]
    assert bound.assumptions[0].text.startswith("Asymptotic")
    assert all(assumption.holds for assumption in bound.assumptions)


def test_a_scaled_coin_is_a_coin() -> None:
    for low, high in ((0.0, 1.0), (-3.0, 5.0)):
        arm = rm.TwoPoint(low=low, high=high, probability=0.2)
        target = low + 0.6 * (high - low)
        expected = 0.2 * math.log(0.2 / 0.6) + 0.8 * math.log(0.8 / 0.4)
        assert divergence(arm, target).value == pytest.approx(expected)
    assert divergence(rm.TwoPoint(probability=0.2), 1.0).value == math.inf


@pytest.mark.parametrize("gap", [0.01, 0.5, 3.0, 40.0])
def test_cauchy_has_a_closed_form(gap: float) -> None:
    """KL of two Cauchy laws a distance d apart is ln(1 + d^2/4)."""
    value = location_divergence(lambda x: 1 / (math.pi * (1 + x**2)), gap)
    assert value == pytest.approx(math.log(1 + gap**2 / 4), rel=1e-5)


def test_student_against_an_integrator_and_the_gaussian_limit() -> None:
    from scipy.stats import t

    arm = rm.StudentT(df=2.5, loc=1.0, scale=0.5)
    expected, _ = quad(
        lambda x: t.pdf(x, 2.5) * (t.logpdf(x, 2.5) - t.logpdf(x - 1.4, 2.5)), -np.inf, np.inf, limit=500
    )
    assert divergence(arm, 1.7).value == pytest.approx(expected, rel=1e-6)
    assert divergence(rm.StudentT(df=1e6), 0.7).value == pytest.approx(0.7**2 / 2, rel=1e-4)


def test_stable_near_and_at_the_gaussian() -> None:
    assert divergence(rm.AlphaStable(alpha=2.0, scale=0.5), 1.0).value == pytest.approx(1 / (4 * 0.25))
    near = divergence(rm.AlphaStable(alpha=1.9), 1.0).value
    heavy = divergence(rm.AlphaStable(alpha=1.3), 1.0).value
    # Both are smooth location families: about half the Fisher information times the squared gap.
    assert 0.15 < heavy < near < 0.25
    # Scale and place do not matter, only the gap in units of the scale.
    moved = divergence(rm.AlphaStable(alpha=1.3, loc=-2.0, scale=3.0), 1.0).value
    assert moved == pytest.approx(heavy, rel=1e-6)
    # Fully skewed, one tail is too thin for floats; the other still tells the laws apart.
    assert 0.05 < divergence(rm.AlphaStable(alpha=1.5, beta=1.0), 0.8).value < 0.3


def test_stable_against_the_definition() -> None:
    from scipy.stats import levy_stable

    step = 0.2
    density = levy_stable.pdf(step * np.arange(-205, 201), 1.5, 0.0)
    here, there = density[5:], density[:-5]  # five steps are the gap
    expected = float(step * (here * np.log(here / there)).sum())
    # What the plain sum leaves out beyond 40 is below 1e-3 of it.
    assert divergence(rm.AlphaStable(alpha=1.5), 1.0).value == pytest.approx(expected, rel=1e-3)


def test_pareto_and_lognormal_against_a_search() -> None:
    arm = rm.Pareto(tail=2.5, scale=0.7, shift=-0.2)
    target = arm.mean + 0.4

    def from_tail(tail: float) -> float:
        def integrand(x: float) -> float:
            here, there = 2.5 * math.pow(x, -3.5), tail * math.pow(x, -tail - 1)
            return here * math.log(here / there)

        return float(quad(integrand, 1, np.inf)[0])

    best = minimize_scalar(
        lambda tail: (
            from_tail(tail) + 1e6 * max(0.0, target - rm.Pareto(tail=tail, scale=0.7, shift=-0.2).mean)
        ),
        bounds=(1.05, 2.5),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert divergence(arm, target).value == pytest.approx(best.fun, rel=1e-4)

    arm2 = rm.LogNormal(mu=0.1, sigma=0.8, shift=0.3)
    mu = math.log(arm2.mean + 0.5 - 0.3) - 0.32
    assert rm.LogNormal(mu=mu, sigma=0.8, shift=0.3).mean == pytest.approx(arm2.mean + 0.5)
    assert divergence(arm2, arm2.mean + 0.5).value == pytest.approx((mu - 0.1) ** 2 / (2 * 0.64))


def test_empirical_dual_equals_the_coin_and_a_search_over_three_values() -> None:
    coin = rm.Empirical([0.0] * 8 + [1.0] * 2)
    assert divergence(coin, 0.6).value == pytest.approx(divergence(rm.TwoPoint(probability=0.2), 0.6).value)
    data = [0.0, 1.0, 1.0, 4.0]
    # Laws (a, b, 1-a-b) on 0, 1, 4 with mean 2.5: b + 4 (1 - a - b) = 2.5, so a = (1.5 - 3 b) / 4.
    best = min(
        0.25 * math.log(0.25 / a) + 0.5 * math.log(0.5 / b) + 0.25 * math.log(0.25 / (1 - a - b))
        for b in np.linspace(0.001, 0.499, 4981)
        for a in [(1.5 - 3 * b) / 4]
        if a > 0 and a + b < 1
    )
    assert divergence(rm.Empirical(data), 2.5).value == pytest.approx(best, rel=1e-5)
    assert divergence(rm.Empirical(data), 4.0).value == math.inf


def test_an_arm_that_cannot_be_best_costs_nothing_in_the_long_run() -> None:
    bandit = rm.Bandit([rm.TwoPoint(probability=0.5), rm.Gaussian(loc=2.0)])
    assert lower_bound(bandit).coefficient == 0.0


@pytest.mark.parametrize("eps", [1.0, 0.5, 0.3])
@pytest.mark.parametrize("gap", [0.02, 0.125, 0.24])
def test_the_closed_two_point_bound_is_below_the_exact_one(gap: float, eps: float) -> None:
    better, worse = rm.two_point_pair(gap, eps)
    exact = lower_bound(rm.Bandit([better, worse, worse])).coefficient
    assert 0 < two_point_coefficient(gap, eps, 3) <= exact


def test_the_printed_two_point_bound_exceeds_what_is_possible() -> None:
    """Two arms, gap 1/8, eps = 1. By hand: corrected 0.125 (64 - 4) = 7.5, printed 2 * 8 = 16. The exact
    coefficient, which KL-UCB attains, is 12.37: no lower bound can be 16.
    """
    assert two_point_coefficient(0.125, 1.0, 2) == pytest.approx(7.5)
    assert two_point_coefficient(0.125, 1.0, 2, "printed") == pytest.approx(16.0)
    exact = lower_bound(rm.Bandit(rm.two_point_pair(0.125, 1.0))).coefficient
    assert exact == pytest.approx(12.371, abs=1e-3)


def test_every_law_of_the_catalogue_has_a_family() -> None:
    assert set(rm.catalogue.LAWS.values()) == set(DIVERGENCES)


def test_refusals() -> None:
    with pytest.raises(rm.InputError, match="another one than the mean"):
        divergence(rm.Gaussian(), 0.0)
    with pytest.raises(rm.InputError, match="Bandit"):
        lower_bound(rm.Replay(np.array([[[0.0, 1.0]]])))
    for gap, eps, arms in ((0.25, 1.0, 2), (0.1, 0.0, 2), (0.1, 1.0, 1)):
        with pytest.raises(rm.InputError):
            two_point_coefficient(gap, eps, arms)


def test_a_law_of_ones_own_has_no_known_family() -> None:
    class Own(rm.Gaussian):
        """It may have any density: that it derives from a known law proves nothing."""

    with pytest.raises(rm.InputError, match="no family"):
        divergence(Own(), 1.0)
