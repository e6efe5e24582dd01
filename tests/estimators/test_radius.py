"""The radius: the formula, its constants, where it is infinite."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumormill.arms.base import Moments
from rumormill.errors import InputError
from rumormill.estimators import Catoni, EmpiricalMean, MedianOfMeans, Radius, TrimmedMean

ONE = Moments(eps=1.0, u=9.0, rho=4.0)
HALF = Moments(eps=0.5, u=8.0, rho=27.0)
SPECS = [TrimmedMean(), MedianOfMeans(), Catoni(), EmpiricalMean()]


def test_values_by_hand() -> None:
    # m^(1/p) (c L / n)^(eps/p)
    assert Radius.build(TrimmedMean(), ONE, c=2.0).at(8, 1.0) == pytest.approx(3 * 0.5)
    assert Radius.build(TrimmedMean(), HALF, c=2.0).at(54, 4.0) == pytest.approx(4 * (8 / 54) ** (1 / 3))
    assert Radius.build(MedianOfMeans(), ONE, c=2.0).at(8, 1.0) == pytest.approx(2 * 0.5)  # no shift
    assert Radius.build(EmpiricalMean(), HALF, c=1.0).at(8, 1.0) == pytest.approx(9 * 0.5)
    assert Radius.build(TrimmedMean(), HALF, zeta=0.5).at(8, 1.0) == pytest.approx(0.5 * 4 * 0.5)
    # theory: trimmed 4 u^(1/p) (L/n)^(eps/p), median of means (12 v)^(1/p) (16 (L + 1/8) / n)^(eps/p)
    assert Radius.build(TrimmedMean(), HALF, c="theory").at(8, 1.0) == pytest.approx(4 * 4 * 0.5)
    assert Radius.build(MedianOfMeans(), ONE, c="theory").at(18, 1.0) == pytest.approx(
        math.sqrt(48 * 18 / 18)
    )
    assert Radius.build(Catoni(), ONE, c="theory").at(16, 4.0) == pytest.approx(2 * math.sqrt(4 * 4 / 16))


@given(
    eps=st.floats(0.05, 1.0),
    zeta=st.floats(0.1, 4.0),
    n=st.integers(1, 10**7),
    L=st.floats(0.0, 60.0),
    spec=st.sampled_from([TrimmedMean(), MedianOfMeans(), EmpiricalMean()]),
)
@settings(deadline=None)
def test_zeta_is_c_in_other_words(eps: float, zeta: float, n: int, L: float, spec: TrimmedMean) -> None:
    moments = Moments(eps=eps, u=3.0, rho=2.0)
    factor = Radius.build(spec, moments, zeta=zeta)
    constant = Radius.build(spec, moments, c=factor.constant)
    assert constant.at(n, L) == pytest.approx(factor.at(n, L), rel=1e-12)


@given(n=st.integers(1, 10**7), L=st.floats(0.0, 60.0), eps=st.floats(0.05, 1.0), mean=st.floats(-1e6, 1e6))
@settings(deadline=None)
def test_the_two_factors_give_the_same_bits(n: int, L: float, eps: float, mean: float) -> None:
    moments = Moments(eps=eps, u=3.0, rho=2.0)
    for radius in (
        Radius.build(TrimmedMean(), moments, c=1.7),
        Radius.build(TrimmedMean(), moments, zeta=1.7),
    ):
        assert radius.exponent == eps / (1 + eps)
        assert radius.at(n, L) == radius.scale(L) * math.pow(n, -radius.exponent)
        assert radius.index(mean, n, L) == mean + radius.at(n, L)


def test_theory_is_infinite_outside_its_range() -> None:
    for spec, enough, L in ((MedianOfMeans(), 34, 2.0), (Catoni(), 8, 2.0), (TrimmedMean(), 1, 2.0)):
        radius = Radius.build(spec, ONE, c="theory")
        assert radius.theory
        assert math.isfinite(radius.at(enough, L))
        assert radius.at(enough - 1, L) == radius.index(0.3, enough - 1, L) == math.inf
    small = Radius.build(Catoni(), HALF, c="theory")
    n = next(n for n in range(1, 10**6) if math.isfinite(small.at(n, 1.0)))
    # The first finite radius is the first one below (0.1 p v)^(1/p).
    edge = (0.1 * 1.5 * 27.0) ** (2 / 3)
    assert small.scale(1.0) * n ** (-1 / 3) <= edge < small.scale(1.0) * (n - 1) ** (-1 / 3)


def test_numbers_serve_every_n_where_the_mean_exists() -> None:
    for spec in SPECS:
        for moments in (ONE, HALF):
            radius = Radius.build(spec, moments, c=1.0)
            assert not radius.theory
            assert radius.at(0, 1.0) == math.inf
            first = 3 if spec == Catoni() and moments is ONE else 1
            assert math.isfinite(radius.at(first, 1.0))
            if first == 3:
                assert radius.at(2, 1.0) == radius.index(0.0, 2, 1.0) == math.inf


def test_at_the_first_round_the_radius_is_zero() -> None:
    assert Radius.build(TrimmedMean(), ONE, c="theory").at(3, 0.0) == 0.0
    assert Radius.build(TrimmedMean(), HALF, zeta=1.0).index(0.25, 3, 0.0) == 0.25


@pytest.mark.parametrize("bad", [0, -1.0, math.inf, math.nan, "1", "Theory", True])
def test_bad_constants(bad: object) -> None:
    with pytest.raises(InputError, match="c = "):
        Radius.build(TrimmedMean(), ONE, c=bad)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="zeta = "):
        Radius.build(TrimmedMean(), ONE, zeta=bad)  # type: ignore[arg-type]


def test_exactly_one_constant() -> None:
    with pytest.raises(InputError, match="exactly one"):
        Radius.build(TrimmedMean(), ONE)
    with pytest.raises(InputError, match="exactly one"):
        Radius.build(TrimmedMean(), ONE, c="theory", zeta=1.0)
    with pytest.raises(InputError, match="baseline"):
        Radius.build(EmpiricalMean(), ONE, c="theory")


def test_it_can_be_compared_and_hashed() -> None:
    assert Radius.build(Catoni(), ONE, c=4) == Radius.build(Catoni(), ONE, c=4.0)
    assert hash(Radius.build(Catoni(), ONE, c=4)) == hash(Radius.build(Catoni(), ONE, c=4.0))
    assert Radius.build(Catoni(), ONE, c="theory") != Radius.build(Catoni(), ONE, c=4.0)


def test_a_huge_zeta_has_an_infinite_c_but_a_finite_radius() -> None:
    tiny = Moments(eps=0.001, u=1.0, rho=1.0)
    radius = Radius.build(TrimmedMean(), tiny, zeta=4.0)
    assert radius.constant == math.inf
    assert radius.at(10, 1.0) == pytest.approx(4 * 10 ** (-0.001 / 1.001))
