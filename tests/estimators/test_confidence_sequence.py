"""Confidence sequences: the supermartingale, the bookkeeping of the grids, coverage at all times, widths."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from numpy.typing import NDArray

import rumormill as rm
from rumormill.estimators.confidence_sequence import FIRST_POINTS, PILOT
from rumormill.formulas import bound_reach, catoni_curvature

Array = NDArray[np.float64]


def psi(y: Array, eps: float) -> Array:
    return np.sign(y) * np.log(1.0 + np.abs(y) + catoni_curvature(eps) * np.abs(y) ** (1.0 + eps))


@pytest.mark.parametrize("eps", [0.1, 0.3, 0.5, 0.8, 1.0])
def test_both_factors_are_supermartingales_for_every_two_point_law(eps: float) -> None:
    """Exact: no sampling. Laws at the edge of the class, rho = E|X - mean|^p."""
    p = 1.0 + eps
    worst = 0.0
    for chance in (1e-4, 1e-2, 0.1, 0.5, 0.9, 0.999):
        values = np.array([-chance, 1.0 - chance]) / (chance * (1.0 - chance)) ** 0.5
        chances = np.array([1.0 - chance, chance])
        rho = float(chances @ np.abs(values) ** p)
        for width in np.geomspace(1e-3, 1e3, 61):
            allowed = math.exp(min(catoni_curvature(eps) * rho * width**p, 600.0))
            for sign in (1.0, -1.0):
                factor = float(chances @ np.exp(sign * psi(width * values, eps)))
                assert factor <= allowed * (1.0 + 1e-12)
                worst = max(worst, math.log(factor) / math.log(allowed))
    # The curvature cannot be much smaller: the test would notice.
    assert worst > 0.5


def naive(xs: Array, moments: rm.Moments, alpha: float) -> tuple[float, float]:
    """The first grid alone, from all samples at every look; an independent script of docs/semantics.md."""
    eps, rho, p = moments.eps, moments.rho, moments.p
    curvature, root = catoni_curvature(eps), moments.rho ** (1.0 / moments.p)
    centre = float(np.median(xs[:PILOT]))
    points = np.linspace(centre - 16.0 * root, centre + 16.0 * root, FIRST_POINTS)
    r = min(2.0 ** (1.0 / eps), 4.0)
    count = 1 + math.ceil(math.log(64.0) / (eps * math.log(r)))
    widths = [(8.0 * root / (2.0 * p * curvature * rho)) ** (1.0 / eps) * r**-j for j in range(count)]
    low, high = -math.inf, math.inf
    for n in range(PILOT + 1, len(xs) + 1):
        used = xs[PILOT:n]
        up = np.zeros(len(points))
        down = np.zeros(len(points))
        for width in widths:
            total = psi(width * (used[None, :] - points[:, None]), eps).sum(axis=1)
            cost = len(used) * curvature * rho * width**p
            up += np.exp(total - cost) / count
            down += np.exp(-total - cost) / count
        below, above = points[up >= 2.0 / (alpha / 2.0)], points[down >= 2.0 / (alpha / 2.0)]
        low = max(low, below.max(initial=-math.inf))
        high = min(high, above.min(initial=math.inf))
    return low, high


@pytest.mark.parametrize(("eps", "rho"), [(1.0, 1.0), (0.5, 2.0)])
def test_equal_to_a_script_that_goes_through_all_samples(eps: float, rho: float) -> None:
    moments = rm.Moments(eps=eps, u=rho, rho=rho)
    rng = np.random.default_rng(5)
    for size in (PILOT, 13, 30):
        xs = rng.standard_t(3.0, size=size)
        sequence = rm.ConfidenceSequence(moments, confidence=0.5)
        for x in xs:
            sequence.update(float(x))
        assert sequence.interval == pytest.approx(naive(xs, moments, alpha=0.5), abs=1e-9)


def test_holds_at_all_times() -> None:
    """120 sequences of 400 Student samples, looked at after every eighth, at confidence 0.8.

    At most 24 misses are expected; P(Bin(120, 0.2) > 45) < 1e-5.
    """
    moments = rm.Moments(eps=1.0, u=5.0, rho=5.0)  # the variance of Student's t with 2.5 degrees of freedom
    misses = 0
    for seed in range(120):
        sequence = rm.ConfidenceSequence(moments, confidence=0.8)
        for x in np.random.default_rng((7, seed)).standard_t(2.5, size=400).reshape(50, 8):
            sequence.update(x)
            if not sequence.interval[0] < 0.0 < sequence.interval[1]:
                misses += 1
                break
    assert misses <= 45


@pytest.mark.parametrize(("eps", "n"), [(1.0, 200), (1.0, 3_000), (0.5, 1_000)])
def test_about_as_narrow_as_an_interval_for_one_fixed_number_of_samples(eps: float, n: int) -> None:
    moments = rm.Moments(eps=eps, u=1.0, rho=1.0)
    sequence = rm.ConfidenceSequence(moments, confidence=0.95)
    sequence.update(np.random.default_rng(2).normal(10.0, 0.7, size=n))
    fixed = 2.0 * bound_reach(n, math.log(40.0), eps, 1.0, catoni_curvature(eps))
    low, high = sequence.interval
    assert low < 10.0 < high
    # 3 times the samples of a fixed number, that is 3^(eps/p) of its width.
    assert high - low < 3.0 ** (eps / (1.0 + eps)) * fixed


def test_a_mean_outside_the_first_grid_is_found() -> None:
    sequence = rm.ConfidenceSequence(rm.Moments(eps=1.0, u=1.0, rho=1e-4), confidence=0.95)
    sequence.update([0.0] * PILOT)
    sequence.update(np.full(4_000, 1.0))
    low, high = sequence.interval
    assert 0.9 < low < 1.0 < high < 1.1


def test_samples_that_contradict_the_moments_are_said_to() -> None:
    sequence = rm.ConfidenceSequence(rm.Moments(eps=1.0, u=1.0, rho=1e-4), confidence=0.95)
    sequence.update(np.zeros(500))
    assert not sequence.refuted
    sequence.update(np.ones(5_000))
    assert sequence.refuted


def test_stops_and_goes_on() -> None:
    xs = np.random.default_rng(3).normal(size=900)
    moments = rm.Moments(eps=1.0, u=1.0, rho=1.0)
    whole, first, second = (rm.ConfidenceSequence(moments) for _ in range(3))
    for at in range(0, 900, 30):
        whole.update(xs[at : at + 30])
        (first if at < 450 else second).update(xs[at : at + 30])
        if at == 420:
            second.restore(json.loads(json.dumps(first.state())))
    assert second.interval == whole.interval
    assert second.state() == whole.state()


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e101])
def test_bad_samples_are_refused(bad: float) -> None:
    with pytest.raises(rm.InputError, match="finite"):
        rm.ConfidenceSequence(rm.Moments(eps=1.0, u=1.0, rho=1.0)).update(bad)


def test_bad_confidence_is_refused() -> None:
    with pytest.raises(rm.InputError, match=r"confidence = 1\.5"):
        rm.ConfidenceSequence(rm.Moments(eps=1.0, u=1.0, rho=1.0), confidence=1.5)
