"""Laws that hold for every list of samples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rumormill.arms.base import Moments
from rumormill.estimators import Catoni, EmpiricalMean, Estimator, MedianOfMeans, TrimmedMean
from rumormill.formulas import catoni_curvature, catoni_width

# Whole numbers bring ties and zeros, the rest bring outliers.
VALUES = st.one_of(
    st.integers(-5, 5).map(float),
    st.floats(-1e3, 1e3).map(lambda x: round(x, 6)),
    st.sampled_from([1e12, -1e12, 1e-9, -7e15, 3e30]),
)
LISTS = st.lists(VALUES, min_size=1, max_size=60)
TAME = st.lists(st.floats(-1e3, 1e3).map(lambda x: round(x, 6)), min_size=1, max_size=60)
EPS = st.sampled_from([1.0, 0.8, 0.425, 0.1])
LEVELS = st.one_of(st.just(0.0), st.floats(0.01, 20.0))
SPECS = [TrimmedMean(), TrimmedMean(variant="literal"), MedianOfMeans(), Catoni(), EmpiricalMean()]
CENTRED = [MedianOfMeans(), Catoni(), EmpiricalMean()]


def catoni_grain(samples: list[float], L: float, moments: Moments, root: float) -> float:
    """To what a root can be told apart: 1e-12 of its value, of the width 1/a, of the typical distance."""
    width = catoni_width(len(samples), L, moments.eps, moments.rho, catoni_curvature(moments.eps))
    distance = float(np.median(np.abs(np.array(samples) - root)))
    return 1e-12 * max(abs(root), 1 / width if width else 0.0, distance)


def spread(samples: list[float]) -> float:
    return max(map(abs, samples))


@pytest.mark.parametrize("spec", SPECS, ids=repr)
@given(samples=LISTS, eps=EPS, L=LEVELS)
@settings(deadline=None)
def test_mirrored_samples_have_the_mirrored_mean(
    spec: Estimator, samples: list[float], eps: float, L: float
) -> None:
    moments = Moments(eps=eps, u=30.0, rho=20.0)
    assume(spec.defined(len(samples), L, moments))
    want = -spec.of(samples, L, moments)
    grain = catoni_grain(samples, L, moments, want) if isinstance(spec, Catoni) else 1e-12
    assert spec.of([-x for x in samples], L, moments) == pytest.approx(want, rel=1e-12, abs=grain)


@pytest.mark.parametrize("spec", [TrimmedMean(), *CENTRED], ids=repr)
@given(samples=LISTS, eps=EPS, L=LEVELS, power=st.integers(-6, 6))
@settings(deadline=None)
def test_scale(spec: Estimator, samples: list[float], eps: float, L: float, power: int) -> None:
    """Twice the rewards, 2^p times the moment bounds: twice the mean."""
    scale = 2.0**power  # exact, so that no sample moves across a threshold by rounding
    p = 1 + eps
    moments = Moments(eps=eps, u=30.0, rho=20.0)
    scaled = Moments(eps=eps, u=30.0 * scale**p, rho=20.0 * scale**p)
    assume(spec.defined(len(samples), L, moments))
    if isinstance(spec, TrimmedMean):
        levels = [30.0 * i / abs(x) ** p for i, x in enumerate(samples, 1) if x]
        assume(all(abs(h - L) > 1e-9 * L for h in levels))
    want = spec.of(samples, L, moments)
    grain = catoni_grain(samples, L, moments, want) if isinstance(spec, Catoni) else 1e-11
    got = spec.of([scale * x for x in samples], L, scaled)
    assert got == pytest.approx(scale * want, rel=1e-11, abs=scale * grain)


def test_the_printed_algorithm_has_no_scale() -> None:
    """Its exponents do not fit together: the same rewards in cents give another mean."""
    samples, spec = [1.0, 2.0, 3.0, 4.0], TrimmedMean(variant="literal")
    euros = spec.of(samples, 2.0, Moments(eps=1.0, u=7.5, rho=1.25))
    cents = spec.of([100 * x for x in samples], 2.0, Moments(eps=1.0, u=7.5e4, rho=1.25e4))
    assert cents != pytest.approx(100 * euros, rel=0.1)


@pytest.mark.parametrize("spec", CENTRED, ids=repr)
@given(samples=TAME, eps=EPS, L=LEVELS, shift=st.floats(-100, 100).map(lambda x: round(x, 4)))
@settings(deadline=None)
def test_shift(spec: Estimator, samples: list[float], eps: float, L: float, shift: float) -> None:
    moments = Moments(eps=eps, u=30.0, rho=20.0)
    assume(spec.defined(len(samples), L, moments))
    got = spec.of([x + shift for x in samples], L, moments)
    want = spec.of(samples, L, moments) + shift
    assert got == pytest.approx(want, abs=1e-12 * (1 + abs(shift) + spread(samples)))


@pytest.mark.parametrize("spec", CENTRED, ids=repr)
@given(samples=LISTS, eps=EPS, L=LEVELS)
@settings(deadline=None)
def test_between_the_smallest_and_the_largest(
    spec: Estimator, samples: list[float], eps: float, L: float
) -> None:
    moments = Moments(eps=eps, u=30.0, rho=20.0)
    assume(spec.defined(len(samples), L, moments))
    slack = 1e-12 * spread(samples)
    assert min(samples) - slack <= spec.of(samples, L, moments) <= max(samples) + slack


@given(samples=LISTS, eps=EPS, L=LEVELS, seed=st.integers(0, 99))
@settings(deadline=None)
def test_catoni_does_not_see_the_order(samples: list[float], eps: float, L: float, seed: int) -> None:
    moments = Moments(eps=eps, u=30.0, rho=20.0)
    assume(Catoni().defined(len(samples), L, moments))
    shuffled = np.random.default_rng(seed).permutation(samples).tolist()
    want = Catoni().of(samples, L, moments)
    grain = catoni_grain(samples, L, moments, want)
    assert Catoni().of(shuffled, L, moments) == pytest.approx(want, rel=0, abs=grain)


@given(samples=LISTS, eps=EPS, L=st.floats(0.01, 20.0), start=VALUES)
@settings(deadline=None)
def test_catoni_forgets_where_it_started(samples: list[float], eps: float, L: float, start: float) -> None:
    """A first sample far away pulls the warm start away; the later root does not know."""
    moments = Moments(eps=eps, u=30.0, rho=20.0)
    online = Catoni().online(moments)
    everything = [start, *samples]
    online.update(start)
    online.mean(0.01)
    for x in samples:
        online.update(x)
    assume(Catoni().defined(len(everything), L, moments))
    want = Catoni().of(everything, L, moments)
    assert online.mean(L) == pytest.approx(want, rel=0, abs=catoni_grain(everything, L, moments, want))


@given(samples=LISTS, eps=EPS, levels=st.lists(LEVELS, min_size=1, max_size=8))
@settings(deadline=None)
def test_trimmed_samples_only_leave(samples: list[float], eps: float, levels: list[float]) -> None:
    """With positive samples the mean can only fall as L grows; the printed rule lets it rise."""
    moments = Moments(eps=eps, u=30.0, rho=20.0)
    sizes = [abs(x) for x in samples]
    exact = [TrimmedMean().of(sizes, L, moments) for L in sorted(levels)]
    literal = [TrimmedMean(variant="literal").of(sizes, L, moments) for L in sorted(levels)]
    assert exact == sorted(exact, reverse=True)
    assert literal == sorted(literal)


@given(samples=LISTS, eps=EPS, levels=st.lists(LEVELS, min_size=1, max_size=8))
@settings(deadline=None)
def test_trimmed_is_the_printed_definition(samples: list[float], eps: float, levels: list[float]) -> None:
    """|x|^p L <= u i, except within rounding of equality."""
    u, p = 30.0, 1 + eps
    for L in levels:
        sides = [(abs(x) ** p * L, u * i) for i, x in enumerate(samples, 1)]
        assume(all(abs(left - right) > 1e-9 * right for left, right in sides))
        kept = [x for x, (left, right) in zip(samples, sides, strict=True) if left <= right]
        want = math.fsum(kept) / len(samples)
        assert TrimmedMean().of(samples, L, Moments(eps=eps, u=u, rho=1.0)) == want


@given(
    samples=st.lists(VALUES, min_size=1, max_size=40),
    eps=EPS,
    spec=st.sampled_from(SPECS),
    asked=st.lists(st.booleans(), min_size=40, max_size=40),
)
@settings(deadline=None)
def test_online_is_the_definition(
    samples: list[float], eps: float, spec: Estimator, asked: list[bool]
) -> None:
    moments = Moments(eps=eps, u=30.0, rho=20.0)
    online = spec.online(moments)
    largest_inside = 0.0
    for t, x in enumerate(samples, 1):
        online.update(x)
        if asked[t - 1]:
            L = 0.1 + 2 * math.log(t)
            want = spec.of(samples[:t], L, moments)
            # A running sum is as good as the largest partial sum it went through; prefix sums of
            # two floats are as good with 1e-16 of that.
            if isinstance(spec, TrimmedMean):
                inside = spec.of([abs(y) for y in samples[:t]], L, moments) * t
                largest_inside = max(largest_inside, inside)
            elif isinstance(spec, MedianOfMeans):
                largest_inside = 1e-16 * sum(map(abs, samples[:t]))
            elif isinstance(spec, EmpiricalMean):
                largest_inside = max(largest_inside, sum(map(abs, samples[:t])))
            grain = 1e-12 * max(1.0, largest_inside / t)
            if isinstance(spec, Catoni) and want < math.inf:
                grain = catoni_grain(samples[:t], L, moments, want)
            assert online.mean(L) == pytest.approx(want, rel=1e-12, abs=grain)
