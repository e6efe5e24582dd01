"""Tail indices: by hand, against exact laws, and what must not be claimed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, gamma

import rumormill as rm
from rumormill.advice.model_checks import tails
from rumormill.advice.model_checks.tails import LEAST_FOR_LIGHT, LEAST_VALUES, estimate_tail, hill

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]
FALSE_ALARM = 1e-6

LIGHT: dict[str, Draw] = {
    "gaussian": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.random(n),
    "exponential": lambda rng, n: rng.standard_exponential(n),
    "coin": lambda rng, n: (rng.random(n) < 0.3).astype(float),
    "log-normal": lambda rng, n: np.exp(rng.standard_normal(n)),
}


def test_hill_by_hand() -> None:
    # ln 8 and ln 4 exceed ln 2 by 2 ln 2 and ln 2: on average by 1.5 ln 2.
    assert hill(np.array([8.0, 4.0, 2.0, 1.0]), 2) == pytest.approx(1 / (1.5 * math.log(2)))
    assert hill(np.array([3.0, 3.0, 3.0, 1.0]), 2) == math.inf


def test_the_index_is_that_of_the_outermost_distances_from_the_median() -> None:
    values = np.random.default_rng(9).standard_t(1.5, 1_001)
    tail = estimate_tail(values, np.random.default_rng(0))
    distances = sorted(abs(value - float(np.median(values))) for value in values)
    beyond = [math.log(far / distances[-tail.used - 1]) for far in distances[-tail.used :]]
    assert 10 <= tail.used <= 100
    assert tail.index == pytest.approx(1 / math.fsum(beyond) * tail.used)


@pytest.mark.parametrize("alpha", [0.7, 1.5, 3.0])
def test_hill_follows_its_exact_law_on_pareto_samples(alpha: float) -> None:
    k = 500
    values = np.sort(np.random.default_rng(1).pareto(alpha, 5_000) + 1)[::-1]
    # The log excesses of a Pareto law are exponential with mean 1/alpha, so their sum has a gamma law.
    low, high = gamma.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], k) / k
    assert low <= alpha / hill(values, k) <= high


def test_the_band_is_that_of_a_plain_bootstrap() -> None:
    k, rng = 100, np.random.default_rng(2)
    distances = np.sort(rng.pareto(1.5, 3_000) + 1)[::-1]
    low, high = tails._band(distances, k, rng)
    plain = [1 / hill(np.sort(rng.choice(distances, len(distances)))[::-1], k) for _ in range(1_000)]
    wanted_high, wanted_low = 1 / np.quantile(plain, [0.025, 0.975])
    # Each of the two quantiles has a standard error of 0.085 sd; sd is about 1/sqrt(k) of the index.
    slack = 5 * 0.085 * math.sqrt(2) / math.sqrt(k)
    assert low / (1 - tails.BIAS) == pytest.approx(wanted_low, rel=slack)
    assert high / (1 + tails.BIAS) == pytest.approx(wanted_high, rel=slack)


@settings(deadline=None, max_examples=20)
@given(
    shift=st.floats(-100, 100),
    scale=st.floats(0.01, 100),
    sign=st.sampled_from([-1, 1]),
    seed=st.integers(0, 99),
)
def test_units_do_not_matter(shift: float, scale: float, sign: int, seed: int) -> None:
    values = np.random.default_rng(seed).standard_t(2.0, 400)
    first = estimate_tail(values, np.random.default_rng(0))
    other = estimate_tail(sign * scale * values + shift, np.random.default_rng(0))
    assert (first.used, first.verdict) == (other.used, other.verdict)
    assert [first.index, first.low, first.high] == pytest.approx(
        [other.index, other.low, other.high], rel=1e-6
    )


@pytest.mark.parametrize("alpha", [1.2, 1.5, 1.9])
def test_the_band_covers_the_index_of_stable_laws(alpha: float) -> None:
    law, rng, samples = rm.AlphaStable(alpha=alpha, loc=0.4), np.random.default_rng(3), 60
    found = [estimate_tail(law.sample(rng, 6_000), rng) for _ in range(samples)]
    covered = sum(tail.low <= alpha <= tail.high for tail in found)
    # A nominal 95 % that bias brings down to 80 %: fewer than this many would be a false alarm of 1e-6.
    assert covered >= binom.ppf(FALSE_ALARM, samples, 0.8)
    # The variance is infinite: calling the tail light is allowed in at most one of seven samples.
    light = sum(tail.verdict == "light" for tail in found)
    assert light <= binom.ppf(1 - FALSE_ALARM, samples, 1 / 7)


def test_a_stable_law_of_index_1_2_is_recognised_as_heavy() -> None:
    rng = np.random.default_rng(4)
    tail = estimate_tail(rm.AlphaStable(alpha=1.2).sample(rng, 20_000), rng)
    assert tail.verdict == "heavy"
    assert 1 < tail.low < 1.2 < tail.high < 1.5
    assert "variance looks infinite" in tail.words


@pytest.mark.parametrize("law", LIGHT)
def test_light_tails_are_never_called_heavy(law: str) -> None:
    rng = np.random.default_rng(5)
    for n in (2_000, 5_000, 20_000):
        assert all(estimate_tail(LIGHT[law](rng, n), rng).verdict != "heavy" for _ in range(20))


@pytest.mark.parametrize("law", [name for name in LIGHT if name != "log-normal"])
def test_light_tails_are_called_light_on_enough_data(law: str) -> None:
    rng = np.random.default_rng(6)
    found = [estimate_tail(LIGHT[law](rng, 5_000), rng) for _ in range(20)]
    assert all(tail.verdict == "light" and tail.safe_index > 2 for tail in found)
    assert all(tail.words.startswith("light: ") for tail in found)


def test_little_data_prove_nothing() -> None:
    rng = np.random.default_rng(7)
    tail = estimate_tail(rng.standard_normal(LEAST_FOR_LIGHT - 1), rng)
    assert tail.low > 2
    assert tail.verdict == "cannot tell"
    assert "too few to call a tail light" in tail.words
    assert tail.safe_index < 2
    few = estimate_tail(rng.standard_normal(LEAST_VALUES - 1), rng)
    assert (few.verdict, few.words, few.safe_index) == (
        "cannot tell",
        "cannot tell: 99 values are too few",
        1.0,
    )


def test_a_column_that_hardly_varies() -> None:
    values = np.zeros(5_000)
    values[:5] = [1.0, 2.0, 3.0, 40.0, 500.0]
    tail = estimate_tail(values, np.random.default_rng(8))
    assert (tail.used, tail.verdict, tail.safe_index) == (0, "cannot tell", 1.0)
    assert "too few values differ" in tail.words
