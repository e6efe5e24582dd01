"""Bandits and the streams of rewards drawn from them."""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rumormill.arms import (
    AlphaStable,
    Bandit,
    Empirical,
    Gaussian,
    Pareto,
    Replay,
    RewardSource,
    StudentT,
    TwoPoint,
)
from rumormill.arms.bandit import DRAW_ROUNDS
from rumormill.errors import InputError

SHARED = Bandit([AlphaStable(alpha=1.8, loc=m, scale=s) for m, s in ((0.2, 1.0), (0.9, 2.0), (0.5, 0.5))])
MIXED = Bandit([AlphaStable(alpha=1.8), Gaussian(loc=1.0), Empirical([0.0, 1.0, 5.0])])


def rewards(stream: Any, start: Any, stop: Any) -> Any:
    """What the arms pay, (rounds, agents, arms)."""
    return stream.loc + stream.scale * stream.block(start, stop)


def test_means_gaps_and_size() -> None:
    assert SHARED.n_arms == 3
    assert SHARED.means.tolist() == [0.2, 0.9, 0.5]
    assert SHARED.best_mean == 0.9
    assert SHARED.gaps.tolist() == pytest.approx([0.7, 0.0, 0.4])
    assert repr(MIXED) == (
        "Bandit([AlphaStable(alpha=1.8, loc=0.0, scale=1.0, beta=0.0), Gaussian(loc=1.0, scale=1.0), "
        "Empirical(3 values, mean 2)])"
    )


def test_both_sources_keep_the_protocol() -> None:
    assert isinstance(SHARED, RewardSource)
    assert isinstance(Replay(np.zeros((2, 1, 2))), RewardSource)
    assert not isinstance(SHARED.arms[0], RewardSource)


@pytest.mark.parametrize(
    ("arms", "tail", "eps"),
    [
        ([AlphaStable(alpha=1.9), AlphaStable(alpha=1.5, loc=1.0)], 1.5, 0.425),
        ([StudentT(df=2.0), StudentT(df=2.0, loc=1.0)], 2.0, 0.85),
        ([StudentT(df=2.5), Gaussian(loc=1.0)], 2.5, 1.0),
        ([AlphaStable(alpha=2), Gaussian(loc=1.0)], math.inf, 1.0),
    ],
)
def test_default_eps_follows_the_heaviest_tail(arms: Any, tail: Any, eps: Any) -> None:
    bandit = Bandit(arms)
    assert bandit.tail_index == tail
    assert bandit.default_eps() == pytest.approx(eps)
    assert bandit.moments().eps == pytest.approx(eps)


def test_moments_are_the_largest_over_the_arms() -> None:
    bandit = Bandit([Gaussian(loc=3.0, scale=1.0), Gaussian(loc=0.0, scale=2.0)])
    moments = bandit.moments(1.0)
    assert (moments.eps, moments.u, moments.rho) == pytest.approx((1.0, 10.0, 4.0))


def test_moments_of_the_papers_bandit() -> None:
    bandit = Bandit([AlphaStable(alpha=1.9), AlphaStable(alpha=1.9, loc=1.0)])
    moments = bandit.moments(0.8)
    assert moments.rho == pytest.approx(3.385, abs=5e-4)
    assert moments.u == pytest.approx(4.161, abs=5e-4)


@pytest.mark.parametrize("eps", [0.0, -0.5, 1.2, math.nan, math.inf])
def test_eps_outside_its_range(eps: Any) -> None:
    with pytest.raises(InputError, match=r"eps = .* a number from 0.001 to 1"):
        SHARED.moments(eps)


@pytest.mark.parametrize("eps", [0.8, 0.9, 1.0])
def test_eps_with_an_infinite_moment(eps: Any) -> None:
    with pytest.raises(InputError, match=r"below order 1\.8, so give eps below 0\.8$"):
        SHARED.moments(eps)


def test_too_few_arms() -> None:
    with pytest.raises(InputError, match="0 arm"):
        Bandit([])
    with pytest.raises(InputError, match="at least two"):
        Bandit([Gaussian()])


def test_arms_without_a_gap() -> None:
    with pytest.raises(InputError, match=r"all 2 arms have the same mean 0\.5"):
        Bandit([Gaussian(loc=0.5), StudentT(df=3.0, loc=0.5)])


@pytest.mark.parametrize(
    ("arm", "text"),
    [
        (AlphaStable(alpha=1.0), r"arm 1 .* alpha = 1\.0 has no mean: choose alpha in \(1, 2\]"),
        (AlphaStable(alpha=0.5, beta=1.0), r"arm 1 .* alpha = 0\.5 has no mean"),
        (StudentT(df=1.0), r"arm 1 .* df = 1\.0 has no mean"),
        (Pareto(tail=0.9), r"arm 1 .* tail = 0\.9 has no mean"),
    ],
    ids=repr,
)
def test_arms_without_a_mean(arm: Any, text: Any) -> None:
    with pytest.raises(InputError, match=text):
        Bandit([Gaussian(), arm])


@pytest.mark.parametrize("arm", [0.5, "gaussian", None, Gaussian])
def test_arms_that_are_no_laws(arm: Any) -> None:
    with pytest.raises(InputError, match=r"arm 1 is .* must be a reward law"):
        Bandit([Gaussian(), arm])


def test_one_family_shares_its_draws() -> None:
    stream = SHARED.stream(np.random.SeedSequence(1), agents=4, horizon=100)
    assert stream.shared
    assert stream.loc.tolist() == [0.2, 0.9, 0.5]
    assert stream.scale.tolist() == [1.0, 2.0, 0.5]
    assert stream.block(0, 100).shape == (100, 4, 1)
    z = (rewards(stream, 0, 100) - stream.loc) / stream.scale
    np.testing.assert_allclose(z[:, :, 0], z[:, :, 1], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("arms", "shared"),
    [
        ([Gaussian(), AlphaStable(alpha=2.0, loc=1.0)], True),
        ([Pareto(tail=2.0), Pareto.with_mean(0.0, tail=2.0)], True),
        ([TwoPoint(probability=0.3), TwoPoint(high=2.0, probability=0.3)], True),
        ([AlphaStable(alpha=1.5, beta=0.0), AlphaStable(alpha=1.5, beta=-0.0, loc=1.0)], True),
        ([AlphaStable(alpha=1.5, beta=0.5), AlphaStable(alpha=1.5, beta=-0.5, loc=1.0)], False),
        ([StudentT(df=3.0), StudentT(df=4.0, loc=1.0)], False),
        ([Gaussian(), StudentT(df=3.0, loc=1.0)], False),
        ([Empirical([0.0, 1.0]), Empirical([0.0, 2.0])], False),
    ],
)
def test_which_arms_share(arms: Any, shared: Any) -> None:
    assert Bandit(arms).stream(np.random.SeedSequence(0), 2, 5).shared is shared


def test_different_families_have_a_column_each() -> None:
    stream = MIXED.stream(np.random.SeedSequence(1), agents=4, horizon=100)
    assert not stream.shared
    assert stream.loc.tolist() == [0.0] * 3
    assert stream.scale.tolist() == [1.0] * 3
    block = stream.block(0, 100)
    assert block.shape == (100, 4, 3)
    assert set(np.unique(block[:, :, 2])) == {0.0, 1.0, 5.0}


@pytest.mark.parametrize("bandit", [SHARED, MIXED], ids=["shared", "mixed"])
@settings(deadline=None, max_examples=40)
@given(cuts=st.lists(st.integers(1, 299), max_size=8), seed=st.integers(0, 2**64), longer=st.integers(0, 500))
def test_rewards_depend_neither_on_blocks_nor_on_the_horizon(
    bandit: Any, cuts: Any, seed: Any, longer: Any
) -> None:
    seed = np.random.SeedSequence(seed, spawn_key=(3, 1))
    whole = bandit.stream(seed, 3, 300 + longer).block(0, 300)
    stream = bandit.stream(seed, 3, 300)
    edges = sorted({0, 300, *cuts})
    blocks = [stream.block(low, high) for low, high in pairwise(edges)]
    assert all(block.flags.c_contiguous and block.dtype == np.float64 for block in blocks)
    np.testing.assert_array_equal(np.concatenate(blocks), whole)


def test_a_block_keeps_its_values_when_the_next_is_asked_for() -> None:
    stream = SHARED.stream(np.random.SeedSequence(2), 3, 3 * DRAW_ROUNDS)
    first = stream.block(0, DRAW_ROUNDS)
    before = first.copy()
    stream.block(DRAW_ROUNDS, 3 * DRAW_ROUNDS)
    np.testing.assert_array_equal(first, before)


def test_seeds_and_chunks_give_different_rewards() -> None:
    one = SHARED.stream(np.random.SeedSequence(2, spawn_key=(0,)), 3, 200).block(0, 200)
    two = SHARED.stream(np.random.SeedSequence(2, spawn_key=(1,)), 3, 200).block(0, 200)
    assert np.unique(np.concatenate([one, two])).size == 2 * 200 * 3


def test_asking_for_a_stream_leaves_the_seed_alone() -> None:
    seed = np.random.SeedSequence(2)
    SHARED.stream(seed, 3, 200).block(0, 200)
    assert seed.n_children_spawned == 0


@pytest.mark.parametrize(("start", "stop"), [(-1, 3), (3, 3), (4, 2), (0, 11)])
def test_blocks_outside_the_horizon(start: Any, stop: Any) -> None:
    with pytest.raises(InputError, match=r"give 0 <= start < stop <= 10"):
        SHARED.stream(np.random.SeedSequence(0), 2, 10).block(start, stop)


@pytest.mark.parametrize(("agents", "horizon"), [(0, 5), (3, 0), (-1, 5)])
def test_empty_streams(agents: Any, horizon: Any) -> None:
    with pytest.raises(InputError, match="a whole number >= 1"):
        SHARED.stream(np.random.SeedSequence(0), agents, horizon)


@settings(deadline=None, max_examples=20)
@given(shift=st.floats(-100, 100), scale=st.floats(0.01, 100))
def test_moving_and_stretching_all_arms_moves_and_stretches_the_rewards(shift: Any, scale: Any) -> None:
    seed = np.random.SeedSequence(9)
    moved = Bandit([AlphaStable(alpha=1.8, loc=shift + scale * m, scale=scale) for m in (0.0, 1.0)])
    plain = Bandit([AlphaStable(alpha=1.8, loc=m) for m in (0.0, 1.0)])
    a, b = rewards(moved.stream(seed, 2, 20), 0, 20), rewards(plain.stream(seed, 2, 20), 0, 20)
    np.testing.assert_allclose(a, shift + scale * b, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moved.gaps, scale * plain.gaps, rtol=1e-9, atol=1e-12)
    assert moved.moments(0.5).rho == pytest.approx(scale**1.5 * plain.moments(0.5).rho, rel=1e-9)


def test_means_cannot_be_overwritten() -> None:
    with pytest.raises(ValueError, match="read-only"):
        SHARED.means[0] = 5.0
