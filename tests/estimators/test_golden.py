"""Values worked out by hand, and what is refused."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from rumormill.arms.base import Moments
from rumormill.errors import DataError, InputError
from rumormill.estimators import Catoni, EmpiricalMean, Estimator, MedianOfMeans, Theory, TrimmedMean

ONE = Moments(eps=1.0, u=4.0, rho=1.0)
HALF = Moments(eps=0.5, u=1.0, rho=2.0)
ALL = [TrimmedMean(), TrimmedMean(variant="literal"), MedianOfMeans(), Catoni(), EmpiricalMean()]


def test_trimmed_keeps_by_rank() -> None:
    # h_i = 4 i / x^2: 4, 8/9, 12, 1, inf  ->  the samples leave in the order 3, -4, 2, 1.
    samples = [1.0, 3.0, 1.0, -4.0, 0.0]
    spec = TrimmedMean()
    assert spec.of(samples, 0.0, ONE) == pytest.approx(1.0 / 5)
    assert spec.of(samples, 8 / 9, ONE) == pytest.approx(1.0 / 5)
    assert spec.of(samples, 0.9, ONE) == pytest.approx(-2.0 / 5)
    assert spec.of(samples, 1.0, ONE) == pytest.approx(-2.0 / 5)  # equality stays
    assert spec.of(samples, 1.1, ONE) == pytest.approx(2.0 / 5)
    assert spec.of(samples, 4.1, ONE) == pytest.approx(1.0 / 5)
    assert spec.of(samples, 12.1, ONE) == 0.0


def test_online_trimmed_at_equality() -> None:
    """L = h stays in, whether the sample is new or has been in for long; h = last_L is not stored."""
    stream = TrimmedMean().online(ONE, last_L=4.0)
    for x in (1.0, 2.0, 0.0):  # h = 4, 2, inf
        stream.update(x)
    assert stream.mean(2.0) == 3.0 / 3  # new, and L = h
    assert stream.stored == 1
    assert stream.mean(2.0) == 3.0 / 3  # in for long, and L = h
    assert stream.mean(2.5) == 1.0 / 3
    assert stream.stored == 0
    assert stream.mean(4.0) == 1.0 / 3


def test_online_literal_at_equality() -> None:
    stream = TrimmedMean(variant="literal").online(ONE, last_L=4.0)
    for x in (1.0, 3.0, 1.0, -4.0):  # in from L = 1/4, 81/16, 1/36, 4
        stream.update(x)
    assert stream.stored == 3  # the second can never enter
    assert stream.mean(0.25) == 2.0 / 4
    assert stream.mean(4.0) == -2.0 / 4
    assert stream.stored == 0


def test_rank_matters_and_not_only_the_value() -> None:
    assert TrimmedMean().of([3.0, 1.0, 1.0], 1.0, ONE) == pytest.approx(2 / 3)  # 9 > 4 * 1
    assert TrimmedMean().of([1.0, 1.0, 3.0], 1.0, ONE) == pytest.approx(5 / 3)  # 9 <= 4 * 3


def test_literal_lets_samples_enter() -> None:
    # (x^2 / i)^2 / 4: 1/4, 81/16, 1/36, 4, 0.
    samples = [1.0, 3.0, 1.0, -4.0, 0.0]
    spec = TrimmedMean(variant="literal")
    assert spec.of(samples, 0.0, ONE) == 0.0
    assert spec.of(samples, 0.2, ONE) == pytest.approx(1.0 / 5)
    assert spec.of(samples, 1.0, ONE) == pytest.approx(2.0 / 5)
    assert spec.of(samples, 4.0, ONE) == pytest.approx(-2.0 / 5)
    assert spec.of(samples, 6.0, ONE) == pytest.approx(1.0 / 5)
    assert spec.of_rows(np.array([samples, samples]), 4.0, ONE) == pytest.approx([-2.0 / 5] * 2)


def test_median_of_means_groups() -> None:
    nine = [1.0, 3.0, 10.0, 20.0, -4.0, 6.0, 5.0, 5.0, 1000.0]
    spec = MedianOfMeans()
    assert spec.of(nine[:1], 5.0, ONE) == 1.0  # k = max(1, 0)
    assert spec.of(nine[:3], 5.0, ONE) == pytest.approx(14 / 3)  # k = 1
    # n = 9, 1 + 8 L >= 4.5: k = 4 groups of 2, means 2, 15, 1, 5; the ninth sample is unused.
    assert spec.of(nine, 1.0, ONE) == pytest.approx((2 + 5) / 2)
    # 1 + 8/4 = 3 groups of 3: means 14/3, 22/3, 1010/3.
    assert spec.of(nine, 0.25, ONE) == pytest.approx(22 / 3)
    assert spec.of(nine, 0.0, ONE) == pytest.approx(1046 / 9)


def test_catoni_with_three_samples() -> None:
    # psi is odd, so a symmetric list has its root in the middle, whatever a.
    for moments in (ONE, HALF):
        assert Catoni().of([1.0, 2.0, 3.0], 1.0, moments) == pytest.approx(2.0, abs=1e-14)
        assert Catoni().of([-50.0, 2.0, 54.0], 1.0, moments) == pytest.approx(2.0, abs=1e-13)


def test_catoni_solves_its_equation() -> None:
    # eps = 1, n = 4, L = 1, v = 1: a = sqrt(2 * (4 - 2)) / 4 = 1/2. With theta = 0 and the samples
    # -2, -2, x, 0: 2 ln(1 + 1 + 1/2) = ln(1 + y + y^2/2) where y = x/2, so 1 + y + y^2/2 = 6.25.
    y = -1 + math.sqrt(1 + 2 * 5.25)
    assert Catoni().of([-2.0, -2.0, 2 * y, 0.0], 1.0, ONE) == pytest.approx(0.0, abs=1e-14)
    # eps = 1/2: C_p = (1/3)^(3/4) * 1, a = (1 / (4 * (1/2) sqrt(2) C_p * 2))^(2/3).
    c_p = 3 ** (-0.75)
    a = (1 / (4 * math.sqrt(2) * c_p)) ** (2 / 3)
    theta = Catoni().of([0.0, 1.0, 2.0, 30.0], 1.0, HALF)
    total = sum(
        math.copysign(math.log(1 + abs(z) + c_p * abs(z) ** 1.5), z)
        for z in (a * (x - theta) for x in (0.0, 1.0, 2.0, 30.0))
    )
    assert abs(total) < 1e-14
    assert 1.0 < theta < 8.25  # drawn by the large sample, less than the average is


def test_catoni_meets_the_average_as_a_vanishes() -> None:
    samples = [1.0, 2.0, 30.0]
    for moments in (ONE, HALF):
        assert Catoni().of(samples, 0.0, moments) == pytest.approx(11.0, rel=1e-15)
        assert Catoni().of(samples, 1e-14, moments) == pytest.approx(11.0, rel=1e-3)


def test_theory_constants() -> None:
    assert TrimmedMean().theory(ONE) == Theory(c=16.0)
    assert TrimmedMean().theory(HALF) == Theory(c=64.0)
    assert MedianOfMeans().theory(ONE) == Theory(c=192.0, shift=0.125)
    assert MedianOfMeans().theory(HALF) == Theory(c=16 * 144.0, shift=0.125)
    assert Catoni().theory(ONE) == Theory(c=4.0)
    # C = 1.1 (sqrt(2) 3^(-3/4))^(2/3) (3/2) 2^(1/3) = 1.65 * 2^(2/3) * 3^(-1/2)
    C = 1.65 * 2 ** (2 / 3) / math.sqrt(3)
    assert Catoni().theory(HALF).c == pytest.approx(C**3, rel=1e-14)
    with pytest.raises(InputError, match="baseline"):
        EmpiricalMean().theory(ONE)


def test_theory_constant_beyond_floats_is_refused() -> None:
    for spec in (TrimmedMean(), MedianOfMeans()):
        with pytest.raises(InputError, match="zeta"):
            spec.theory(Moments(eps=0.001, u=1.0, rho=1.0))


def test_moment_that_enters() -> None:
    two = Moments(eps=0.5, u=3.0, rho=2.0)
    assert [spec.moment(two) for spec in ALL] == [3.0, 3.0, 2.0, 2.0, 2.0]


def test_ranges() -> None:
    assert TrimmedMean().valid(1, 50.0, ONE)
    assert not TrimmedMean().valid(0, 0.0, ONE)
    assert MedianOfMeans().valid(18, 1.0, ONE)
    assert not MedianOfMeans().valid(17, 1.0, ONE)
    assert Catoni().valid(8, 2.0, ONE)
    assert not Catoni().valid(7, 2.0, ONE)
    assert Catoni().defined(5, 2.0, ONE)
    assert not Catoni().defined(4, 2.0, ONE)
    assert Catoni().defined(1, 2.0, HALF)
    # eps < 1: C (L/n)^(1/3) <= 0.15^(2/3)  <=>  n >= L C^3 / 0.15^2 = 153.7 L, C as above
    assert Catoni().valid(154, 1.0, HALF)
    assert not Catoni().valid(153, 1.0, HALF)
    assert not EmpiricalMean().valid(10**9, 1.0, ONE)


@pytest.mark.parametrize("spec", ALL, ids=repr)
def test_frozen_hashable_keyword_only(spec: Estimator) -> None:
    assert hash(spec) == hash(dataclasses.replace(spec))  # type: ignore[type-var]
    assert spec == dataclasses.replace(spec)  # type: ignore[type-var]
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.variant = "exact"  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        type(spec)("exact")  # type: ignore[call-arg]


@pytest.mark.parametrize("spec", ALL, ids=repr)
def test_empty_is_undefined(spec: Estimator) -> None:
    assert spec.of([], 1.0, ONE) == math.inf
    assert spec.online(ONE).mean(1.0) == math.inf
    assert spec.online(ONE).count == 0
    assert not spec.defined(0, 1.0, ONE)


@pytest.mark.parametrize("spec", ALL, ids=repr)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_bad_samples_are_refused(spec: Estimator, bad: float) -> None:
    stream = spec.online(ONE)
    stream.update(1.0)
    with pytest.raises(InputError, match="finite"):
        stream.update(bad)
    assert stream.count == 1


@pytest.mark.parametrize("spec", ALL, ids=repr)
@pytest.mark.parametrize("bad", [math.nan, -0.1])
def test_bad_levels_are_refused(spec: Estimator, bad: float) -> None:
    stream = spec.online(ONE)
    stream.update(1.0)
    with pytest.raises(InputError, match="L = "):
        stream.mean(bad)
    with pytest.raises(InputError, match="L = "):
        spec.of([1.0], bad, ONE)


@pytest.mark.parametrize("variant", ["exact", "literal"])
def test_ranked_streams_refuse_what_would_be_wrong(variant: str) -> None:
    spec = TrimmedMean(variant=variant)  # type: ignore[arg-type]
    stream = spec.online(ONE, last_L=3.0)
    stream.update(1.0)
    stream.mean(2.0)
    stream.mean(2.0)
    with pytest.raises(InputError, match="shrink"):
        stream.mean(1.9)
    with pytest.raises(InputError, match="last_L"):
        stream.mean(3.1)
    with pytest.raises(InputError, match="rank"):
        stream.merge(spec.online(ONE))  # type: ignore[arg-type]


def test_unknown_variant() -> None:
    with pytest.raises(InputError, match="'exact' or 'literal'"):
        TrimmedMean(variant="printed")  # type: ignore[arg-type]


def test_streams_of_different_kinds_do_not_merge() -> None:
    with pytest.raises(InputError, match="one kind"):
        EmpiricalMean().online(ONE).merge(MedianOfMeans().online(ONE))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="both must have the same"):
        Catoni().online(ONE).merge(Catoni().online(HALF))


def test_state_of_another_kind_is_refused() -> None:
    streams = [spec.online(ONE) for spec in ALL]
    for writer in streams:
        for reader in streams:
            if type(writer) is not type(reader):
                with pytest.raises(DataError, match="kind"):
                    type(reader).from_state(writer.state())
