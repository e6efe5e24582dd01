"""Bootstrap bands and intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from rumormill.stats import (
    Interval,
    bootstrap_band,
    bootstrap_interval,
    relative_difference,
)

Array = NDArray[np.float64]


def mean_of_first(means: Sequence[Array]) -> Array:
    return np.asarray(means[0][..., 0])


def test_a_band_lies_around_the_mean_and_is_reproducible() -> None:
    values = np.random.default_rng(0).exponential(size=(40, 7))
    low, high = bootstrap_band(values)
    assert low.shape == high.shape == (7,)
    assert (low < values.mean(axis=0)).all()
    assert (values.mean(axis=0) < high).all()
    assert np.array_equal(bootstrap_band(values), (low, high))
    narrow = bootstrap_band(values, confidence=0.5)
    assert (narrow[0] > low).all()
    assert (narrow[1] < high).all()


def test_resamples_in_pieces_are_those_of_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(1).exponential(size=(12, 3))
    bands = []
    for piece in (300, 64):  # 300 = 4 * 64 + 44
        monkeypatch.setattr("rumormill.stats.PIECE", piece)
        bands.append(bootstrap_band(values, resamples=300))
    assert np.array_equal(bands[0], bands[1])


def test_one_trial_has_no_band() -> None:
    values = np.array([[1.0, 2.0, 5.0]])
    low, high = bootstrap_band(values)
    assert low.tolist() == high.tolist() == [1.0, 2.0, 5.0]


def test_an_interval_needs_some_trials() -> None:
    found = bootstrap_interval([np.arange(8.0).reshape(4, 2) + 1], relative_difference)
    assert found.estimate == pytest.approx(4 / 5 - 1)
    assert math.isnan(found.low)
    assert not found.known
    assert bootstrap_interval([np.arange(10.0).reshape(5, 2) + 1], relative_difference).known


@pytest.mark.parametrize("law", ["exponential", "lognormal", "normal"])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_interval_is_that_of_scipy(law: str, confidence: float) -> None:
    values = getattr(np.random.default_rng(5), law)(size=30)
    ours = bootstrap_interval([values[:, None]], mean_of_first, confidence)
    theirs = stats.bootstrap(
        (values,), np.mean, confidence_level=confidence, n_resamples=10_000, rng=np.random.default_rng(1)
    ).confidence_interval
    # Both draw their own resamples: a quantile of 10,000 strays by a few thousandths of the spread.
    spread = values.std() / math.sqrt(len(values))
    assert ours.low == pytest.approx(theirs.low, abs=0.15 * spread)
    assert ours.high == pytest.approx(theirs.high, abs=0.15 * spread)


def test_two_groups_are_resampled_apart() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.exponential(size=(25, 1)) + 1, rng.exponential(size=(60, 1))

    def difference(means: Sequence[Array]) -> Array:
        return np.asarray(means[0][..., 0] - means[1][..., 0])

    def of_scipy(a: Any, b: Any, axis: int) -> Any:
        return a.mean(axis=axis) - b.mean(axis=axis)

    ours = bootstrap_interval([first, second], difference)
    theirs = stats.bootstrap(
        (first[:, 0], second[:, 0]),
        of_scipy,
        n_resamples=10_000,
        vectorized=True,
        rng=np.random.default_rng(3),
    ).confidence_interval
    assert ours.estimate == pytest.approx(first.mean() - second.mean())
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.05)


def test_pairing_removes_what_both_share() -> None:
    rng = np.random.default_rng(4)
    shared = rng.lognormal(sigma=2, size=40)
    pair = np.column_stack([0.9 * shared, shared]) * (1 + 0.01 * rng.random((40, 2)))
    paired = bootstrap_interval([pair], relative_difference)
    assert -0.12 < paired.low < paired.high < -0.08
    apart = bootstrap_interval(
        [pair[:, :1], pair[:, 1:]], lambda means: np.asarray(means[0][..., 0] / means[1][..., 0] - 1)
    )
    assert apart.low < 0 < apart.high


def test_equal_columns_differ_by_exactly_nothing() -> None:
    column = np.random.default_rng(6).random(20) + 1
    found = bootstrap_interval([np.column_stack([column, column])], relative_difference)
    assert (found.estimate, found.low, found.high) == (0, 0, 0)


def test_a_share_of_nothing_is_infinite_without_a_warning() -> None:
    some, nothing = np.random.default_rng(8).random(20) + 1, np.zeros(20)
    found = bootstrap_interval([np.column_stack([some, nothing])], relative_difference)
    assert (found.estimate, found.low, found.high) == (math.inf, math.inf, math.inf)
    found = bootstrap_interval([np.column_stack([nothing, some])], relative_difference)
    assert (found.estimate, found.low, found.high) == (-1, -1, -1)
    assert not bootstrap_interval([np.column_stack([nothing, nothing])], relative_difference).known


def test_error_bars_reach_from_the_estimate() -> None:
    assert Interval(5.0, 3.0, 9.0).reach == (2.0, 4.0)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """500 samples of 30 from a skewed law, 90 % intervals.

    Were the coverage at least 0.82 (30 skewed values cost some percent), fewer than 360 hits had a
    probability below 1e-6; were it at most 0.95, more than 494 hits too.
    """
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(500):
        found = bootstrap_interval([rng.exponential(size=(30, 1))], mean_of_first, 0.9, resamples=1000)
        hits += found.low <= 1 <= found.high
    assert stats.binom.cdf(360, 500, 0.82) < 1e-6
    assert stats.binom.sf(494, 500, 0.95) < 1e-6
    assert 360 <= hits <= 494
