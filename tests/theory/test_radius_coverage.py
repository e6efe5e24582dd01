"""The table of failures: exact intervals, vectorised estimates, rows that can be refuted."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

import rumormill as rm
from rumormill.stats import clopper_pearson
from rumormill.theory import coverage

LAWS: dict[str, rm.Arm] = {
    "stable": rm.AlphaStable(alpha=1.7, loc=0.4),
    "pareto": rm.Pareto.with_mean(0.0, tail=2.2),
    "two-point": rm.two_point_pair(0.1, 0.5)[0],
    "gaussian": rm.Gaussian(loc=1.0, scale=2.0),
}
ESTIMATORS: list[rm.Estimator] = [rm.TrimmedMean(), rm.MedianOfMeans(), rm.Catoni(), rm.EmpiricalMean()]


@pytest.mark.parametrize("estimator", [*ESTIMATORS, rm.TrimmedMean(variant="literal")], ids=repr)
@pytest.mark.parametrize("n", [1, 7, 50])
def test_whole_arrays_equal_the_definition(estimator: rm.Estimator, n: int) -> None:
    moments = rm.Moments(eps=0.5, u=4.0, rho=3.0)
    samples = LAWS["stable"].sample(np.random.default_rng(n), (20, n))
    for L in (0.3, 2.0):
        expected = [estimator.of(row.tolist(), L, moments) for row in samples]
        assert estimator.of_rows(samples, L, moments) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("count", "trials"), [(0, 10), (3, 10), (10, 10), (17, 2000)])
def test_intervals_are_exact(count: int, trials: int) -> None:
    expected = binomtest(count, trials).proportion_ci(0.999, "exact")
    assert clopper_pearson(count, trials, 0.999) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("law", LAWS.values(), ids=list(LAWS))
@pytest.mark.parametrize("estimator", ESTIMATORS[:3], ids=repr)
def test_theory_radii_are_not_refuted(estimator: rm.Estimator, law: rm.Arm) -> None:
    """A false alarm is an exact interval wholly above delta: 24 rows at 1e-8 / 2 each, 1.2e-7."""
    rows = coverage(estimator, law, n=300, L=[1.0, 3.0], repeats=400, seed=5, eps=0.5, confidence=1 - 1e-8)
    assert [row.delta for row in rows] == [math.exp(-1.0), math.exp(-3.0)]
    for row in rows:
        assert not row.refuted
        assert row.low <= row.rate <= row.high
        assert row.valid == estimator.valid(300, row.L, rm.Moments(eps=0.5, u=1.0, rho=1.0))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_a_radius_far_too_small_is_refuted(estimator: rm.Estimator) -> None:
    (row,) = coverage(estimator, LAWS["gaussian"], n=100, L=3.0, repeats=500, seed=1, zeta=0.01)
    assert row.refuted
    assert row.above + row.below > 400


def test_both_sides_are_counted() -> None:
    """A law with all its mass left of the mean but for rare large values: the mean is missed from below."""
    (row,) = coverage(
        rm.EmpiricalMean(), rm.TwoPoint(high=100.0, probability=0.001), n=10, L=1.0, repeats=200, zeta=0.001
    )
    assert row.below > row.above
    assert row.rate == row.below / 200


def test_rows_repeat_and_do_not_depend_on_each_other() -> None:
    law = LAWS["pareto"]
    both = coverage(rm.TrimmedMean(), law, n=[5, 40], L=[0.5, 1.0], repeats=300, seed=9, zeta=0.1)
    assert [(row.n, row.L) for row in both] == [(5, 0.5), (5, 1.0), (40, 0.5), (40, 1.0)]
    assert coverage(rm.TrimmedMean(), law, n=40, L=0.5, repeats=300, seed=9, zeta=0.1) == [both[2]]
    assert both[0].eps == 1.0
    other = coverage(rm.TrimmedMean(), law, n=40, L=0.5, repeats=300, seed=10, zeta=0.1)
    assert other != [both[2]]


class Watched(rm.Gaussian):
    """A law that notes how each of its draws begins."""

    def sample(self, rng: np.random.Generator, size: Any = None) -> Any:
        BEGINNINGS.append(str(rng.bit_generator.state))
        return super().sample(rng, size)


BEGINNINGS: list[str] = []


def test_every_row_has_draws_of_its_own() -> None:
    BEGINNINGS.clear()
    coverage(rm.TrimmedMean(), Watched(loc=0.0), n=[5, 40], L=[0.5, 1.0], repeats=3, seed=9, zeta=0.1)
    assert len(set(BEGINNINGS)) == len(BEGINNINGS) == 4


@pytest.mark.parametrize(("low", "high", "refuted"), [(0.1, 0.3, False), (0, 0.1, False), (0.21, 0.3, True)])
def test_a_row_is_refuted_by_the_lower_end(low: float, high: float, refuted: bool) -> None:
    (row,) = coverage(rm.TrimmedMean(), LAWS["gaussian"], n=10, L=1.0, repeats=10)
    assert replace(row, delta=0.2, low=low, high=high).refuted is refuted


def test_below_the_range_of_the_lemma_nothing_fails() -> None:
    (row,) = coverage(rm.Catoni(), LAWS["gaussian"], n=10, L=5.0, repeats=50)
    assert (row.radius, row.valid, row.rate) == (math.inf, False, 0.0)


@pytest.mark.parametrize(
    "change",
    [
        {"n": 0},
        {"L": 0.0},
        {"L": math.inf},
        {"repeats": 0},
        {"confidence": 1.0},
        {"eps": 1.5},
        {"n": np.array(3.5)},
        {"L": "high"},
    ],
    ids=repr,
)
def test_refusals(change: dict[str, Any]) -> None:
    given: dict[str, Any] = {"n": 10, "L": 1.0, "repeats": 10} | change
    with pytest.raises(rm.InputError):
        coverage(rm.TrimmedMean(), LAWS["gaussian"], **given)


def test_an_order_that_the_law_does_not_have_is_refused_in_terms_of_eps() -> None:
    with pytest.raises(rm.InputError, match=r"^eps = 1\.0 is not allowed: a number below 0\.7, since"):
        coverage(rm.TrimmedMean(), LAWS["stable"], n=10, L=1.0, eps=1)
