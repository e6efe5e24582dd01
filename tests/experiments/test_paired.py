"""Intervals of paired ratios: exact at their level for any law, however heavy its tails."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from helpers.fake_runs import Key, made_up
from rumormill.errors import InputError
from rumormill.experiments.analyse.claims import within
from rumormill.experiments.analyse.summary import compare_policies, pair_row, sentence_of
from rumormill.stats import Interval, least_trials, median_interval, order_of, ratios

LABELS = ("KMP", "Centralized", "Robust")
Array = NDArray[np.float64]
Law = Callable[[np.random.Generator, tuple[int, int]], Array]


def spec(claims: Any, *, trials: int = 30, **more: Any) -> dict[str, Any]:
    return {
        "name": "one",
        "seed": 7,
        "horizon": 50,
        "trials": trials,
        "network": {"kind": "erdos_renyi", "n": 6, "p": 0.7},
        "arms": {"law": "alpha-stable", "alpha": 1.9, "K": 3},
        "policies": [{"type": label.lower(), "label": label} for label in LABELS],
        "claims": claims,
        **more,
    }


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("n", [1, 4, 5, 6, 11, 30, 101])
def test_the_order_is_the_largest_that_keeps_the_level(n: int, confidence: float) -> None:
    j = order_of(n, confidence)
    if j:
        assert 2 * stats.binom.cdf(j - 1, n, 0.5) <= 1 - confidence + 1e-12
    assert 2 * stats.binom.cdf(j, n, 0.5) > 1 - confidence or j == n
    assert (j > 0) == (n >= least_trials(confidence))


def lost_trials(rng: np.random.Generator, size: tuple[int, int]) -> Array:
    """Ratios of two policies of which one loses a trial in ten by a factor of up to a thousand."""
    usual = np.exp(0.5 * rng.standard_normal(size))
    lost = rng.random(size) < 0.1
    return np.where(lost, usual * 1000 ** rng.random(size), usual)


LAWS: dict[str, tuple[Law, float]] = {
    # Median of usual * [lost]: found by its distribution function, see below.
    "lost trials": (lost_trials, math.nan),
    "Pareto without a mean": (lambda rng, size: 1 + rng.pareto(0.8, size), 2 ** (1 / 0.8)),
    "log-normal": (lambda rng, size: rng.lognormal(sigma=3, size=size), 1.0),
    "ties": (lambda rng, size: np.round(rng.exponential(size=size)), 1.0),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(("n", "confidence"), [(11, 0.95), (11, 1 - 0.05 / 40), (30, 0.9)])
def test_the_level_holds_on_heavy_tails(name: str, n: int, confidence: float) -> None:
    """20,000 intervals. At the stated level more misses than the limit have a probability below 1e-6."""
    draw, median = LAWS[name]
    rng = np.random.default_rng(17)
    if math.isnan(median):
        median = float(np.median(draw(np.random.default_rng(18), (2_000_000, 1))))
    values = np.sort(draw(rng, (20_000, n)), axis=1)
    j = order_of(n, confidence)
    assert j > 0
    low, high = values[:, j - 1], values[:, n - j]
    some = median_interval([values[0]], confidence)
    assert (some.low, some.high) == (low[0] - 1, high[0] - 1)
    misses = int(((low > median) | (high < median)).sum())
    assert misses <= stats.binom.isf(1e-6, 20_000, 1 - confidence)
    if name != "ties":  # and it is not wider than it need be: the level itself is that of a binomial law
        exact = 2 * stats.binom.cdf(j - 1, n, 0.5)
        assert misses >= stats.binom.ppf(1e-6, 20_000, exact)


def test_many_intervals_hold_together() -> None:
    """2,000 runs of eight comparisons; at 95 % over 150 with a false one have a probability below 1e-6."""
    rng = np.random.default_rng(3)
    confidence, wrong = 1 - 0.05 / 8, 0
    for _ in range(2_000):
        hard = rng.lognormal(sigma=2, size=(20, 1))
        regret = hard * rng.pareto(1.1, size=(20, 9))
        found = [median_interval([ratios(regret[:, i], regret[:, 8])], confidence) for i in range(8)]
        wrong += any(one.low > 0 or one.high < 0 for one in found)
    assert stats.binom.sf(150, 2_000, 0.05) < 1e-6
    assert wrong <= 150


def test_two_independent_samples() -> None:
    rng = np.random.default_rng(5)
    one, two = rng.lognormal(size=40) * 3, rng.lognormal(size=60)
    found = median_interval([one, two], 0.95)
    assert found.estimate == pytest.approx(np.median(one) / np.median(two) - 1)
    assert found.low < 2 < found.high
    first, second = median_interval([one], 0.975), median_interval([two], 0.975)
    assert found.low == pytest.approx((first.low + 1) / (second.high + 1) - 1)
    assert found.high == pytest.approx((first.high + 1) / (second.low + 1) - 1)


def test_nothing_divided_by_nothing_is_no_difference() -> None:
    assert ratios(np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 2.0])).tolist() == [1, math.inf, 0]


def test_at_least_as_good_is_decided_by_the_end_of_the_interval() -> None:
    judge = within(0.1)
    assert judge(Interval(-0.2, -0.5, 0.1)) == "holds"
    assert judge(Interval(0.05, 0.01, 0.09)) == "holds"  # a little worse, and by less than the margin
    assert judge(Interval(0.0, -0.5, 0.11)) == "not decided at this size"
    assert judge(Interval(0.3, 0.11, 0.5)) == "does not hold"


def test_a_policy_that_loses_a_few_trials_does_not_beat_the_others() -> None:
    """Better in 27 of 30 trials, and a hundred times worse in the mean."""
    claims = [{"kind": "beats", "policy": "KMP", "than": "Robust"}]
    regret: dict[Key, float] = {"KMP": 50, "Centralized": 60, "Robust": 100}
    run = made_up(spec(claims=claims), regret)
    run.of("KMP", {}).regret[:3] *= 1e4
    (found,) = run.verdicts
    assert found.high < 0 < found.mean
    assert found.word == "not decided at this size"
    assert "the mean over all says the opposite" in found.detail
    pair = compare_policies(run, baseline="Robust")[0]
    assert pair.words == "KMP is better than Robust in most trials, and worse in the mean"


@pytest.mark.parametrize(
    ("low", "high", "mean", "words"),
    [
        (-0.5, -0.2, -0.3, "A is better than B"),
        (0.2, 0.5, 0.3, "B is better than A"),
        (-0.05, -0.01, -0.02, "A is better than B, by less than 10%"),
        (-0.05, 0.05, 0.0, "A and B differ by less than 10%"),
        (-0.5, 0.05, 0.0, "A is at least as good as B"),
        (-0.05, 0.5, 0.0, "B is at least as good as A"),
        (-0.5, 0.5, 0.0, "not decided at this size"),
        (-0.5, -0.2, 0.7, "A is better than B in most trials, and worse in the mean"),
        (0.2, 0.5, -0.7, "B is better than A in most trials, and worse in the mean"),
    ],
)
def test_plain_words(low: float, high: float, mean: float, words: str) -> None:
    assert sentence_of("A", "B", Interval((low + high) / 2, low, high), mean, 0.1) == words


def test_every_pair_at_every_sweep_point() -> None:
    regret: dict[Key, float] = {
        (policy, gamma): base * gamma for policy, base in (("KMP", 100), ("Robust", 300)) for gamma in (1, 2)
    }
    two: dict[str, Any] = {
        "policies": [{"type": "kmp", "label": "KMP"}, {"type": "robust", "label": "Robust"}]
    }
    run = made_up(spec(claims=[], sweep={"gamma": [1, 2]}, **two), regret)
    assert [(pair.values, pair.first, pair.second) for pair in run.pairs] == [
        ({"gamma": 1}, "KMP", "Robust"),
        ({"gamma": 2}, "KMP", "Robust"),
    ]
    assert {pair.words for pair in run.pairs} == {"KMP is better than Robust"}
    assert pair_row(run.pairs[0])["policies"] == "KMP / Robust"
    declared = made_up(
        spec(claims=[], sweep={"gamma": [1, 2]}, verdicts={"baseline": "KMP", "margin": 0.2}, **two), regret
    )
    assert {(pair.first, pair.second) for pair in declared.pairs} == {("Robust", "KMP")}
    with pytest.raises(InputError, match=r"verdicts.baseline = 'KMQ' is not allowed: did you mean 'KMP'"):
        made_up(spec(claims=[], verdicts={"baseline": "KMQ"}), {})


def test_one_trial_has_no_band() -> None:
    run = made_up(spec(claims=[], trials=1), dict.fromkeys(LABELS, 50.0))
    assert {pair.words for pair in run.pairs} == {"one trial: no band, nothing can be said"}
    few = made_up(spec(claims=[], trials=5), dict.fromkeys(LABELS, 50.0))
    assert few.pairs[0].words == "too few trials: 7 trials would be needed"
