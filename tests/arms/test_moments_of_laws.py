"""Means and moments: by hand, against densities, against a second formula."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from rumormill.arms import (
    AlphaStable,
    Empirical,
    Gaussian,
    LogNormal,
    Pareto,
    StudentT,
    TwoPoint,
    two_point_pair,
)


@pytest.mark.parametrize(
    ("alpha", "eps", "rho"), [(1.9, 0.8, 3.385), (1.7, 0.6, 5.509), (1.5, 0.425, 8.626), (1.3, 0.25, 13.57)]
)
def test_stable_central_moments_have_the_published_values(alpha: Any, eps: Any, rho: Any) -> None:
    law = AlphaStable(alpha=alpha, loc=0.7)
    # Four digits are given: half a unit of the last one is the tolerance.
    assert law.moment(1 + eps, central=True) == pytest.approx(rho, abs=0.005 if rho > 10 else 0.0005)


def test_stable_raw_moment_has_the_published_value() -> None:
    assert AlphaStable(alpha=1.9, loc=1.0).moment(1.8) == pytest.approx(4.161, abs=5e-4)


@pytest.mark.parametrize("alpha", [0.4, 1.0, 1.2, 1.9])
@pytest.mark.parametrize("share", [0.1, 0.6, 0.97])
def test_stable_central_moment_equals_the_other_closed_form(alpha: Any, share: Any) -> None:
    q = share * alpha
    other = (
        2**q
        * math.gamma((1 + q) / 2)
        * math.gamma(1 - q / alpha)
        / math.gamma(1 - q / 2)
        / math.sqrt(math.pi)
    )
    assert AlphaStable(alpha=alpha, scale=3.0).moment(q) == pytest.approx(3.0**q * other, rel=1e-12)


def moment_by_characteristic_function(p: Any, alpha: Any, beta: Any, loc: Any) -> Any:
    """(2/pi) sin(pi p/2) Gamma(1+p) ∫ (1 - Re phi(s)) s^(-1-p) ds, as it stands."""
    tangent = math.tan(math.pi * alpha / 2)

    def integrand(y: Any) -> Any:
        s = math.exp(y)
        phase = loc * s + beta * tangent * s**alpha
        one_less_wave = -math.expm1(-(s**alpha)) + math.exp(-(s**alpha)) * 2 * math.sin(phase / 2) ** 2
        return one_less_wave * math.exp(-p * y)

    # Below the first corner next to nothing is left, beyond the last one phi is zero.
    corners = np.concatenate([np.arange(-80.0, -2.0), np.log(np.arange(1, 301) * 0.15)])
    total = math.exp(-p * corners[-1]) / p
    for low, high in pairwise(corners):
        total += quad(integrand, low, high, epsabs=1e-14, epsrel=1e-9, limit=200)[0]
    return 2 / math.pi * math.sin(math.pi * p / 2) * math.gamma(1 + p) * total


@pytest.mark.parametrize(
    ("alpha", "beta", "loc", "p"),
    [
        (1.9, 0.0, 1.0, 1.5),
        (1.5, 0.7, 3.0, 1.1),
        (1.5, -1.0, 0.3, 1.0),
        (1.6, 0.4, -15.0, 1.2),
        (1.3, 1.0, 0.0, 0.9),
    ],
)
def test_stable_raw_moment_equals_its_integral_representation(
    alpha: Any, beta: Any, loc: Any, p: Any
) -> None:
    expected = moment_by_characteristic_function(p, alpha, beta, loc)
    assert AlphaStable(alpha=alpha, beta=beta, loc=loc).moment(p) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("loc", [-0.2, 0.3, 5.0])
def test_stable_with_the_density_of_levy(loc: Any) -> None:
    """alpha = 1/2, beta = 1 is Lévy's law on the positive half line."""
    p = 0.3
    expected = sum(
        quad(
            lambda y: abs(math.exp(y) + loc) ** p * stats.levy.pdf(math.exp(y)) * math.exp(y),
            *ends,
            limit=500,
        )[0]
        for ends in ((-7, math.log(0.2)), (math.log(0.2), 10), (10, 150))
    )
    assert AlphaStable(alpha=0.5, beta=1.0, loc=loc).moment(p) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("loc", [0.1, 1.0, 9.0, 11.0, -300.0, 1e5])
def test_stable_moment_of_a_shifted_cauchy_law(loc: Any) -> None:
    """For alpha = 1 and p < 1, contour integration gives E|X|^p in closed form."""
    p = 0.7
    angle = math.atan2(1, loc)
    expected = (1 + loc**2) ** (p / 2) * (math.sin(p * (math.pi - angle)) + math.sin(p * angle))
    expected /= math.sin(math.pi * p)
    assert AlphaStable(alpha=1.0, loc=loc).moment(p) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("loc", [0.0, 0.5, 8.0, 40.0, 1e4])
@pytest.mark.parametrize("beta", [0.0, 0.9])
def test_stable_moments_near_alpha_two_join_the_gaussian(loc: Any, beta: Any) -> None:
    nearly = AlphaStable(alpha=2 - 1e-12, loc=loc, beta=beta)
    assert nearly.moment(1.3) == pytest.approx(Gaussian(loc=loc, scale=math.sqrt(2)).moment(1.3), rel=1e-10)


def test_stable_with_alpha_two_is_gaussian() -> None:
    law = AlphaStable(alpha=2, loc=1.0, scale=3.0, beta=0.4)
    assert law.tail_index == math.inf
    assert law.mean == 1.0
    assert law.moment(2, central=True) == pytest.approx(18.0, rel=1e-12)
    assert law.moment(2) == pytest.approx(19.0, rel=1e-12)
    assert law.moment(5) == pytest.approx(Gaussian(loc=1.0, scale=math.sqrt(18)).moment(5), rel=1e-12)


@pytest.mark.parametrize("loc", [1e-3, 0.5, 6.0, 1e4])
def test_fourth_moment_of_a_gaussian(loc: Any) -> None:
    expected = loc**4 + 6 * loc**2 * 2.0**2 + 3 * 2.0**4
    assert Gaussian(loc=loc, scale=2.0).moment(4) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("loc", [0.0, 0.7, 20.0])
def test_a_student_law_with_many_degrees_of_freedom_is_gaussian(loc: Any) -> None:
    assert StudentT(df=1e9, loc=loc).moment(1.5) == pytest.approx(Gaussian(loc=loc).moment(1.5), rel=1e-7)


def test_a_skewed_law_mirrors() -> None:
    law = AlphaStable(alpha=1.4, beta=0.6, loc=2.0)
    mirror = AlphaStable(alpha=1.4, beta=-0.6, loc=-2.0)
    assert law.moment(1.2) == pytest.approx(mirror.moment(1.2), rel=1e-11)


def test_stretching_a_skewed_law_with_alpha_one_moves_it() -> None:
    law = AlphaStable(alpha=1.0, beta=0.5, scale=2.0, loc=0.3)
    standard, loc, scale = law.standard()
    assert (standard, scale) == (AlphaStable(alpha=1.0, beta=0.5), 2.0)
    assert loc == pytest.approx(0.3 + 0.5 * 2 / math.pi * 2 * math.log(2))


DENSITIES = [
    (Gaussian(loc=0.4, scale=2.0), stats.norm(0.4, 2.0)),
    (Gaussian(loc=-30.0, scale=0.5), stats.norm(-30.0, 0.5)),
    (StudentT(df=2.5, loc=0.4, scale=2.0), stats.t(2.5, 0.4, 2.0)),
    (StudentT(df=30, loc=-5.0), stats.t(30, -5.0)),
    (Pareto(tail=2.5, scale=2.0, shift=-3.0), stats.pareto(2.5, -3.0, 2.0)),
    (Pareto(tail=2.5, scale=0.5, shift=1.0), stats.pareto(2.5, 1.0, 0.5)),
    (Pareto(tail=4.0, scale=1.0, shift=-0.5), stats.pareto(4.0, -0.5, 1.0)),
    (LogNormal(mu=0.3, sigma=0.8), stats.lognorm(0.8, 0.0, math.exp(0.3))),
    (LogNormal(mu=-0.5, sigma=1.3, shift=-1.0), stats.lognorm(1.3, -1.0, math.exp(-0.5))),
    (LogNormal(mu=0.0, sigma=0.2, shift=2.0), stats.lognorm(0.2, 2.0, 1.0)),
]


def by_quantiles(p: Any, law: Any, center: Any) -> Any:
    """E|X - center|^p as an integral over x = quantile(1 / (1 + exp(-z))): every tail becomes exponential."""

    def integrand(z: Any) -> Any:
        x = law.ppf(1 / (1 + math.exp(-z))) if z < 0 else law.isf(1 / (1 + math.exp(z)))
        return abs(x - center) ** p * math.exp(-abs(z)) / (1 + math.exp(-abs(z))) ** 2

    corners = np.linspace(-120, 120, 41)
    pairs = pairwise(corners)
    return sum(quad(integrand, *pair, epsabs=1e-13, epsrel=1e-8, limit=300)[0] for pair in pairs)


@pytest.mark.parametrize(("law", "reference"), DENSITIES, ids=[repr(law) for law, _ in DENSITIES])
def test_moments_agree_with_scipy(law: Any, reference: Any) -> None:
    assert law.mean == pytest.approx(reference.mean(), rel=1e-12)
    assert law.moment(1.6) == pytest.approx(by_quantiles(1.6, reference, 0.0), rel=1e-6)
    assert law.moment(1.6, central=True) == pytest.approx(by_quantiles(1.6, reference, law.mean), rel=1e-6)


@pytest.mark.parametrize(("law", "reference"), DENSITIES, ids=[repr(law) for law, _ in DENSITIES])
def test_second_moments_agree_with_the_variance(law: Any, reference: Any) -> None:
    assert law.moment(2, central=True) == pytest.approx(reference.var(), rel=1e-10)
    assert law.moment(2) == pytest.approx(reference.var() + reference.mean() ** 2, rel=1e-10)


@pytest.mark.parametrize("shift", [1e-3, 1.0, 1e3, 1e7])
@pytest.mark.parametrize("sign", [-1, 1])
def test_moments_stay_exact_far_from_the_origin(shift: Any, sign: Any) -> None:
    move = sign * shift
    for law in (
        StudentT(df=3.0, loc=move),
        Pareto(tail=3.0, shift=move),
        LogNormal(sigma=0.7, shift=move),
        Gaussian(loc=move),
    ):
        expected = law.moment(2, central=True) + law.mean**2
        assert law.moment(2) == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(
    "law",
    [
        AlphaStable(alpha=1.6, beta=0.3, loc=0.5),
        StudentT(df=2.2, loc=0.5),
        Pareto(tail=1.9, shift=0.5),
        LogNormal(mu=0.2, sigma=0.9, shift=0.5),
        TwoPoint(low=-1.0, high=2.0, probability=0.3),
        Gaussian(loc=0.5),
    ],
    ids=repr,
)
def test_standard_form_carries_mean_and_central_moment(law: Any) -> None:
    standard, loc, scale = law.standard()
    assert law.mean == pytest.approx(loc + scale * standard.mean, rel=1e-12)
    assert law.moment(1.3, central=True) == pytest.approx(
        scale**1.3 * standard.moment(1.3, central=True), rel=1e-9
    )
    again, zero, one = standard.standard()
    assert (again, zero, one) == (standard, 0.0, 1.0)
    assert hash(again) == hash(standard)


def test_two_point_by_hand() -> None:
    law = TwoPoint(low=-1.0, high=3.0, probability=0.25)
    assert law.mean == 0.0
    assert law.moment(2) == law.moment(2, central=True) == 0.75 * 1 + 0.25 * 9
    assert law.tail_index == math.inf


def test_lower_bound_pair_by_hand() -> None:
    """gap 1/8, eps 1/2: g = (1/4)^2 = 1/16, so 16 with probability g^(3/2) = 1/64, or half of it."""
    better, worse = two_point_pair(gap=0.125, eps=0.5)
    assert (better.low, better.high, better.probability) == (0.0, 16.0, 1 / 64)
    assert (worse.low, worse.high, worse.probability) == (0.0, 16.0, 1 / 128)
    assert (better.mean, worse.mean) == (0.25, 0.125)
    assert (better.moment(1.5), worse.moment(1.5)) == (1.0, 0.5)


@pytest.mark.parametrize("gap", [0.01, 0.2, 0.45])
@pytest.mark.parametrize("eps", [0.2, 0.7, 1.0])
def test_lower_bound_pair_is_the_papers(gap: Any, eps: Any) -> None:
    g = (2 * gap) ** (1 / eps)
    better, worse = two_point_pair(gap, eps)
    assert better.probability == pytest.approx(g ** (1 + eps), rel=1e-12)
    assert worse.probability == pytest.approx(g ** (1 + eps) - gap * g, rel=1e-12)
    assert better.high == worse.high == pytest.approx(1 / g, rel=1e-12)
    assert better.mean - worse.mean == pytest.approx(gap, rel=1e-12)
    assert max(better.moment(1 + eps), worse.moment(1 + eps)) <= 1 + 1e-12


def test_empirical_by_hand() -> None:
    law = Empirical([1.0, 2.0, 6.0])
    assert law.mean == 3.0
    assert law.moment(1) == 3.0
    assert law.moment(2, central=True) == pytest.approx((4 + 1 + 9) / 3)
    assert law.standard() is None
    assert repr(law) == "Empirical(3 values, mean 3)"


def test_empirical_keeps_its_own_copy() -> None:
    data = np.array([1.0, 3.0])
    law = Empirical(data)
    data[0] = 100.0
    assert law.mean == 2.0


@pytest.mark.parametrize(
    ("law", "tail"),
    [
        (AlphaStable(alpha=1.5), 1.5),
        (StudentT(df=4), 4.0),
        (Pareto(tail=2.5), 2.5),
        (Gaussian(), math.inf),
        (LogNormal(), math.inf),
        (Empirical([0.0, 1.0]), math.inf),
    ],
    ids=repr,
)
def test_tail_index(law: Any, tail: Any) -> None:
    assert law.tail_index == tail


def test_pareto_with_a_wanted_mean() -> None:
    law = Pareto.with_mean(0.4, tail=1.5, scale=2.0)
    assert law.mean == pytest.approx(0.4, rel=1e-14)
    assert (law.tail, law.scale) == (1.5, 2.0)


def log_mgf_of_coin(law: TwoPoint, s: float) -> float:
    """ln E exp(s (X - mean)) in closed form."""
    q, low, high = law.probability, law.low - law.mean, law.high - law.mean
    return float(np.logaddexp(math.log(1 - q) + s * low, math.log(q) + s * high))


@pytest.mark.parametrize("q", [0.001, 0.002, 0.1, 0.3, 0.499, 0.5, 0.501, 0.8, 0.998])
def test_the_sub_gaussian_scale_of_a_coin_is_the_smallest(q: float) -> None:
    law = TwoPoint(probability=q, low=-3.0, high=7.0)
    scale = law.sub_gaussian_scale
    # Kearns and Saul: equality at s = 2 ln((1 - q)/q) / (high - low).
    at = 2 * math.log((1 - q) / q) / 10.0
    for s in (*np.linspace(-5, 5, 201), at, 0.9 * at, 1.1 * at):
        assert log_mgf_of_coin(law, float(s)) <= s**2 * scale**2 / 2 * (1 + 1e-9) + 1e-12
    if abs(at) > 1e-2:
        assert log_mgf_of_coin(law, at) > at**2 * (0.999 * scale) ** 2 / 2


def test_sub_gaussian_scales() -> None:
    assert TwoPoint(probability=0.002, high=100.0).sub_gaussian_scale == pytest.approx(28.31, abs=0.01)
    assert Gaussian(scale=3.0).sub_gaussian_scale == 3.0
    assert AlphaStable(alpha=2.0, scale=1.5).sub_gaussian_scale == pytest.approx(1.5 * math.sqrt(2))
    assert Empirical(data=[1.0, 2.0, 5.0]).sub_gaussian_scale == 2.0
    assert Empirical(data=[1.0, 2.0, 5.0]).at_mean(0.0).sub_gaussian_scale == 2.0
    for law in (LogNormal(), StudentT(df=30.0), Pareto(tail=9.0), AlphaStable(alpha=1.9)):
        assert law.sub_gaussian_scale is None
