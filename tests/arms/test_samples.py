"""Draws against distribution functions.

The tests of Kolmogorov and Smirnov have fixed seeds and reject at 1e-6 each by the exact distribution.
"""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from rumormill.arms import AlphaStable, Empirical, Gaussian, LogNormal, Pareto, StudentT, TwoPoint
from rumormill.arms.stable import PIECE

FALSE_ALARM = 1e-6


def agrees(draws: Any, cdf: Any) -> Any:
    return stats.kstest(draws, cdf, method="exact" if len(draws) <= 5000 else "auto").pvalue > FALSE_ALARM


IN_SCIPY = [
    (Gaussian(loc=1.0, scale=3.0), stats.norm(1.0, 3.0)),
    (StudentT(df=1.7, loc=-1.0, scale=0.5), stats.t(1.7, -1.0, 0.5)),
    (Pareto(tail=1.4, scale=2.0, shift=-3.0), stats.pareto(1.4, -3.0, 2.0)),
    (LogNormal(mu=0.5, sigma=1.5, shift=-1.0), stats.lognorm(1.5, -1.0, math.exp(0.5))),
    (AlphaStable(alpha=1.0, loc=2.0, scale=3.0), stats.cauchy(2.0, 3.0)),
    (AlphaStable(alpha=2.0, loc=2.0, scale=3.0), stats.norm(2.0, 3.0 * math.sqrt(2))),
    (AlphaStable(alpha=0.5, beta=1.0, loc=1.0, scale=2.0), stats.levy(1.0, 2.0)),
    (AlphaStable(alpha=0.5, beta=-1.0), stats.levy_l()),
]


@pytest.mark.parametrize(("law", "reference"), IN_SCIPY, ids=[repr(law) for law, _ in IN_SCIPY])
def test_draws_follow_scipys_distribution(law: Any, reference: Any) -> None:
    rng = np.random.default_rng(20240)
    assert agrees(law.sample(rng, 100_000), reference.cdf)


@pytest.mark.parametrize(
    ("alpha", "beta", "loc", "scale"),
    [
        (1.9, 0.0, 0.0, 1.0),
        (1.5, 0.0, 0.5, 2.0),
        (1.1, 0.0, 0.0, 1.0),
        (0.7, 0.0, 0.0, 1.0),
        (1.5, 0.8, 0.5, 2.0),
        (1.8, -1.0, 0.0, 1.0),
        (1.0, 0.5, 0.3, 1.0),
        (1.0, 0.5, 0.3, 2.0),
        (0.7, -0.6, 0.0, 1.0),
    ],
)
def test_stable_draws_follow_scipys_distribution(alpha: Any, beta: Any, loc: Any, scale: Any) -> None:
    """SciPy's function costs milliseconds per value: the sample is small and the test still sharp
    enough to tell apart parametrisations (another one would move the law by |beta tan(pi alpha/2)|)."""
    rng = np.random.default_rng(7)
    draws = AlphaStable(alpha=alpha, beta=beta, loc=loc, scale=scale).sample(rng, 1500)
    # SciPy's default parametrisation is S1, the one used here.
    assert agrees(draws, stats.levy_stable(alpha, beta, loc, scale).cdf)


@pytest.mark.parametrize("alpha", [0.8, 1.3, 1.9, 1.999])
def test_the_sum_of_two_stable_draws_is_stable(alpha: Any) -> None:
    """Large samples, no distribution function needed: (X + Y) / 2^(1/alpha) has the law of X if beta = 0."""
    rng = np.random.default_rng(11)
    law = AlphaStable(alpha=alpha)
    x, y, fresh = law.sample(rng, (3, 400_000))
    assert stats.ks_2samp((x + y) / 2 ** (1 / alpha), fresh, method="asymp").pvalue > FALSE_ALARM


@pytest.mark.parametrize("alpha", [0.6, 1.2, 1.9])
def test_fast_draws_equal_the_formula_with_library_functions(alpha: Any) -> None:
    """The symmetric sampler computes its sines itself: same generator, textbook formula."""
    n = 5000
    rng = np.random.default_rng(3)
    u = np.pi * (rng.random(n) - (0.5 - 2.0**-54))
    w = rng.standard_exponential(n)
    textbook = np.sin(alpha * u) / np.cos(u) ** (1 / alpha)
    textbook *= (np.cos((1 - alpha) * u) / w) ** ((1 - alpha) / alpha)
    draws = AlphaStable(alpha=alpha).sample(np.random.default_rng(3), n)
    np.testing.assert_allclose(draws, textbook, rtol=1e-9)


def test_stable_tails_have_their_index() -> None:
    """P(|X| > x) x^alpha tends to 2 Gamma(alpha) sin(pi alpha/2) / pi: an exact binomial test far out."""
    alpha, far, n = 1.5, 100.0, 2_000_000
    draws = AlphaStable(alpha=alpha).sample(np.random.default_rng(5), n)
    probability = 2 * math.gamma(alpha) * math.sin(math.pi * alpha / 2) / math.pi * far**-alpha
    count = int((np.abs(draws) > far).sum())
    assert stats.binomtest(count, n, probability).pvalue > FALSE_ALARM


@pytest.mark.parametrize("alpha", [1.0, 1.1, 1.5, 1.999, 2 - 1e-15])
def test_extreme_uniforms_give_finite_draws(alpha: Any) -> None:
    """The smallest, middle and largest numbers a generator can give."""

    class Extremes:
        def random(self, out: Any) -> None:
            out[:] = np.resize([0.0, 0.5 - 2.0**-53, 0.5, 1 - 2.0**-53], out.shape)

        def standard_exponential(self, out: Any) -> Any:
            out[:] = np.resize(np.repeat([1e-17, 1.0, 40.0], 4), out.shape)
            return out

    assert np.isfinite(AlphaStable(alpha=alpha).sample(Extremes(), 12)).all()  # type: ignore[arg-type]


def test_tiny_alpha_overflows_quietly() -> None:
    draws = AlphaStable(alpha=0.02).sample(np.random.default_rng(1), 1000)
    assert not np.isnan(draws).any()


def test_two_point_frequencies() -> None:
    n = 200_000
    draws = TwoPoint(low=-1.0, high=4.0, probability=0.03).sample(np.random.default_rng(1), n)
    assert set(np.unique(draws)) == {-1.0, 4.0}
    assert stats.binomtest(int((draws == 4.0).sum()), n, 0.03).pvalue > FALSE_ALARM


def test_empirical_draws_its_data_evenly() -> None:
    draws = Empirical([5.0, -1.0, 5.5]).sample(np.random.default_rng(1), 90_000)
    values, counts = np.unique(draws, return_counts=True)
    assert values.tolist() == [-1.0, 5.0, 5.5]
    assert stats.chisquare(counts).pvalue > FALSE_ALARM


LAWS = [
    Gaussian(loc=0.5, scale=2.0),
    StudentT(df=2.2, loc=0.5, scale=2.0),
    Pareto(tail=1.9, shift=0.5, scale=2.0),
    LogNormal(mu=0.2, sigma=0.9, shift=0.5),
    TwoPoint(low=-1.0, high=2.0, probability=0.3),
    AlphaStable(alpha=1.6, loc=0.5, scale=2.0),
    AlphaStable(alpha=1.6, beta=0.3, loc=0.5, scale=2.0),
    AlphaStable(alpha=1.0, beta=0.3, loc=0.5, scale=2.0),
    AlphaStable(alpha=2.0, loc=0.5, scale=2.0),
]


@pytest.mark.parametrize("law", LAWS, ids=repr)
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_draw_is_the_moved_and_stretched_standard_draw(law: Any, seed: Any) -> None:
    standard, loc, scale = law.standard()
    draws = law.sample(np.random.default_rng(seed), 50)
    moved = loc + scale * standard.sample(np.random.default_rng(seed), 50)
    np.testing.assert_allclose(draws, moved, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("law", [*LAWS, Empirical([1.0, 2.0])], ids=repr)
@pytest.mark.parametrize("size", [0, 1, 7, (3, 4), (2, 0), (2, 3, 2)])
def test_sizes(law: Any, size: Any) -> None:
    draws = law.sample(np.random.default_rng(0), size)
    assert draws.shape == np.empty(size).shape
    assert draws.dtype == np.float64
    assert draws.flags.c_contiguous


@pytest.mark.parametrize("law", [AlphaStable(alpha=1.5), AlphaStable(alpha=1.0)], ids=repr)
def test_pieces_do_not_repeat_each_other(law: Any) -> None:
    draws = law.sample(np.random.default_rng(0), 2 * PIECE + 5)
    assert np.unique(draws).size == draws.size
