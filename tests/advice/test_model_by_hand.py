"""The model's checks, piece by piece: what each leaves alone, and the numbers they rest on."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import rumormill as rm
from helpers.synthetic_logs import log_of, two_clusters
from rumormill.advice.model_checks import (
    DataSufficiency,
    _moments,
    _safe_index,
    _without_common_shocks,
    check_model,
    homogeneity,
    tails,
)
from rumormill.advice.model_checks import drift as drift_check
from rumormill.advice.model_checks.dependence import Dependence, check_dependence
from rumormill.advice.model_checks.drift import PIECES, Drift, check_drift
from rumormill.advice.model_checks.homogeneity import (
    Homogeneity,
    check_homogeneity,
    combined_p,
    folded,
    group_agents,
    groups_of_table,
)
from rumormill.advice.model_checks.tails import Tail, choose_depth, depths_of, estimate_tail
from rumormill.advice.reading.log import Log
from rumormill.advice.reward_table import RewardTable, build_reward_table


def table_of(log: Log) -> RewardTable:
    return build_reward_table(log, np.random.default_rng(0))


def homogeneity_of(log: Log) -> Homogeneity:
    return check_homogeneity(table_of(log), np.random.default_rng(0))


def drift_of(values: np.ndarray) -> Drift:
    return check_drift(table_of(log_of(values)), np.random.default_rng(0))


# --- homogeneity ----------------------------------------------------------------------------------------


def test_what_hits_all_agents_alike_leaves_the_test_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block of time is centred by all agents: shifts of a block and arm cancel."""
    monkeypatch.setattr(homogeneity, "CLIP", 0.0)
    values = np.random.default_rng(3).standard_normal((240, 6, 4)) + np.arange(4)
    shift = np.random.default_rng(1).normal(0, 5, (24, 1, 4)).repeat(10, axis=0)
    plain, shifted = homogeneity_of(log_of(values)), homogeneity_of(log_of(values + shift))
    assert shifted.p_value == plain.p_value
    assert round(1000 * plain.p_value, 9).is_integer()  # 999 permutations, and what was seen
    assert shifted.statistic == pytest.approx(plain.statistic, rel=1e-3)


def test_levels_of_agents_leave_the_test_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(3).standard_normal((240, 6, 4)) + np.arange(4)
    levels = 100.0 * np.arange(6)[None, :, None]
    monkeypatch.setattr(homogeneity, "CLIP", 0.0)
    plain, apart = homogeneity_of(log_of(values)), homogeneity_of(log_of(values + levels))
    assert apart.p_value == plain.p_value
    monkeypatch.undo()
    # Clipping comes after: it must not see the levels.
    clipped, apart = homogeneity_of(log_of(values)), homogeneity_of(log_of(values + levels))
    assert apart.statistic == pytest.approx(clipped.statistic, rel=0.05)


def test_the_p_value_by_hand() -> None:
    """Of nine permutations one is as large as what was seen: (1 + 1) / (1 + 9)."""
    drawn = np.arange(9.0)[:, None]
    assert combined_p(np.array([8.0]), drawn) == pytest.approx(0.2)
    assert combined_p(np.array([8.1]), drawn) == pytest.approx(0.1)
    assert combined_p(np.array([-5.0]), drawn) == 1.0
    # The largest of two statistics, each in its own units.
    both = np.column_stack([np.arange(9.0), 1000 * np.arange(9.0)[::-1]])
    assert combined_p(np.array([4.0, 9000.0]), both) == pytest.approx(0.1)


def test_the_statistics_of_contrasts_by_hand() -> None:
    """Two agents that differ by ±1 from their level, with eight values of variance 2: ±1 is two errors."""
    means = np.array([[[11.0, 9.0], [-1.0, 1.0]]])
    found = homogeneity._sizes(8 * means, np.full(means.shape, 8.0), np.array([2.0, 2.0]))
    assert found[0] == pytest.approx([4 * 2.0**2, 4 * 2.0**2])  # all of it in one direction


def test_a_fold_is_every_sixth_block() -> None:
    block = np.arange(12)
    agent, arm = np.zeros(12, np.int32), np.ones(12, np.int32)
    sums, n = folded(np.arange(12.0), agent, arm, block, (1, 2))
    assert n[:, 0, 1].tolist() == [2.0] * 6
    assert n[:, 0, 0].tolist() == [0.0] * 6
    assert sums[:, 0, 1].tolist() == [6.0, 8.0, 10.0, 12.0, 14.0, 16.0]


def test_one_more_arm_must_gain_more_than_chance() -> None:
    """Agent 1 gains 1 on each of two folds, with an error of √(2 folds · 2 folds' noise)."""
    means = np.array([[3.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    sums, n = np.stack([10 * means] * 2), np.full((2, 3, 2), 10.0)
    # The gain is 2, its standard error √(2 · 2 · 2 e²) = √8 e: 1.28 standard errors are reached at e = 0.552.
    for error, groups in ((0.54, 2), (0.56, 1)):
        assert len(group_agents(sums, n, np.full((3, 2), error))[0]) == groups


def test_groups_of_a_table_know_which_way_is_better() -> None:
    values = two_clusters(agents=4, rounds=120).table(1)
    assert groups_of_table(values, 1.0) == ((0, 1), (2, 3))
    assert groups_of_table(-values, -1.0) == ((0, 1), (2, 3))


def test_the_gain_of_the_own_arm_is_measured_on_the_other_half() -> None:
    """Chosen and measured on the same values, chance alone would look like a gain."""
    same = homogeneity_of(log_of(np.random.default_rng(2).standard_normal((240, 8, 4))))
    assert abs(same.value) < 0.06
    costs = homogeneity_of(log_of(two_clusters().table(3), objective="minimise", sign=-1.0))
    assert costs.value == pytest.approx(0.5, abs=0.1)


# --- drift ----------------------------------------------------------------------------------------------


def test_a_drift_common_to_all_arms_does_not_change_the_best_arm() -> None:
    """Two arms nearly alike: one or the other leads in a segment by chance, never by three errors."""
    rng = np.random.default_rng(4)
    values = rng.standard_normal((300, 12, 2)) + np.array([0.0, 0.03])
    values[150:] += 2.0
    drift = drift_of(values)
    assert drift.drifts
    assert len(set(drift.segment_best)) == 2
    assert not drift.best_changes


def test_a_season_is_found_with_its_length() -> None:
    values = np.random.default_rng(3).normal(0, 0.3, (384, 4, 2))
    values[:, :, 0] += np.sin(2 * np.pi * np.arange(384) / 48)[:, None]
    drift = drift_of(values)
    assert drift.period == pytest.approx(1 / 8)
    assert round(1000 * drift.p_value, 9).is_integer()


def test_the_periodogram_of_a_pure_wave_by_hand() -> None:
    """|4|² over a sum of squares of 4, for each of two arms, whatever their units."""
    wave = np.cos(2 * np.pi * np.arange(8) / 8)
    pieces = np.column_stack([wave, 10 * wave])[None]
    assert drift_check._common(pieces)[0, 1] == pytest.approx(2 * 4**2 / 4)


def test_without_drift_no_best_arm_changes() -> None:
    rng = np.random.default_rng(5)
    values = rng.standard_normal((300, 6, 2)) + np.array([0.0, 5.0])
    drift = drift_of(values)
    assert not drift.drifts
    assert not drift.best_changes
    assert drift.segment_best == (1,) * 6


def test_what_the_test_does_not_show_changes_no_best_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    half = np.where(np.arange(300)[:, None, None] < 150, [1.0, 0.0], [0.0, 1.0])
    values = np.random.default_rng(7).normal(0, 0.1, (300, 6, 2)) + half
    assert drift_of(values).best_changes
    monkeypatch.setattr(drift_check, "LEVEL", 0.0)
    assert not drift_of(values).best_changes


def test_where_a_change_is() -> None:
    values = np.random.default_rng(6).standard_normal((384, 6, 2)) * 0.1
    values[96:] += 1.0
    drift = drift_of(values)
    assert drift.at == 0.25  # 24 of 96 pieces
    assert drift.period is None


def test_following_is_worth_nothing_where_nothing_changes() -> None:
    """Chosen and measured on the same rounds, chance alone would be worth a third here."""
    gains = []
    for seed in range(20):
        table = table_of(log_of(np.random.default_rng(seed).standard_normal((60, 2, 4))))
        segment = table.slot.astype(np.int64) * 6 // 60
        gains.append(drift_check._gain_of_following(table, table.log.value, segment, 0))
    assert abs(np.mean(gains)) < 0.1
    half = np.where(np.arange(300)[:, None, None] < 150, [1.0, 0.0], [0.0, 1.0])
    swapped = drift_of(np.random.default_rng(7).normal(0, 0.1, (300, 6, 2)) + half)
    assert swapped.value == pytest.approx(0.5, abs=0.02)


# --- dependence -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "error", "seen"),
    [(0.06, 0.01, True), (0.04, 0.001, False), (0.06, 0.021, False), (0.0, math.inf, False)],
)
def test_dependence_counts_above_three_errors_and_five_per_cent(
    size: float, error: float, seen: bool
) -> None:
    assert Dependence(size, error, 0.0, 1.0).remembers == seen
    assert Dependence(-size, error, 0.0, 1.0).remembers == seen
    assert Dependence(0.0, 1.0, size, error).shocks == seen
    assert not Dependence(0.0, 1.0, -size, error).shocks


def test_resemblance_is_within_an_agent_and_arm() -> None:
    """Agents and arms apart, each without memory: neighbours in the table are not neighbours in time."""
    rng = np.random.default_rng(8)
    values = rng.standard_normal((300, 3, 2)) + 0.5 * np.arange(6).reshape(3, 2)
    near = check_dependence(table_of(log_of(values)))
    assert not near.remembers
    assert not near.shocks
    assert near.lag_error == pytest.approx(1 / math.sqrt(299 * 6))


def test_a_slow_drift_is_not_taken_for_memory() -> None:
    values = np.random.default_rng(9).standard_normal((800, 8, 2))
    values += np.linspace(0, 4, 800)[:, None, None]
    near = check_dependence(table_of(log_of(values)))
    assert not near.remembers
    assert not near.shocks


def test_how_far_the_outermost_twentieth_lies_does_not_matter() -> None:
    """On either side of every arm; of what lies further inside, every value counts."""
    values = np.random.default_rng(9).standard_normal((200, 3, 2))
    rank = values.reshape(-1, 2).argsort(axis=0).argsort(axis=0).reshape(values.shape) / 600
    beyond, inside = (rank > 0.955) | (rank < 0.045), (rank > 0.91) & (rank < 0.94)
    found = check_dependence(table_of(log_of(values)))
    assert check_dependence(table_of(log_of(np.where(beyond, 100 * values, values)))) == found
    level = values[inside].max()
    assert check_dependence(table_of(log_of(np.where(inside, level, values)))) != found


def test_from_four_rounds_a_piece_on_slow_drift_is_removed() -> None:
    steep = np.linspace(0, 4, 4 * PIECES)[:, None, None] + np.zeros((1, 4, 2))
    noise = 0.2 * np.random.default_rng(9).standard_normal(steep.shape)
    assert abs(check_dependence(table_of(log_of(steep + noise))).lag_one) < 0.1
    assert check_dependence(table_of(log_of((steep + noise)[:-1]))).lag_one > 0.9


# --- tails ----------------------------------------------------------------------------------------------


def test_the_band_is_three_per_cent_wider_at_either_end(monkeypatch: pytest.MonkeyPatch) -> None:
    distances = np.sort(np.random.default_rng(2).pareto(1.5, 3_000) + 1)[::-1]
    low, high = tails._band(distances, 100, np.random.default_rng(3))
    monkeypatch.setattr(tails, "BIAS", 0.0)
    plain_low, plain_high = tails._band(distances, 100, np.random.default_rng(3))
    assert low == pytest.approx(0.97 * plain_low, rel=1e-12)
    assert high == pytest.approx(1.03 * plain_high, rel=1e-12)


def test_depths_by_hand() -> None:
    assert depths_of(100) == [10]
    assert depths_of(8_000) == [20, 40, 80, 160, 320, 640]
    assert depths_of(100_000)[0] == 79  # a quarter of the root: a vanishing part of much data
    assert depths_of(200) == [10, 20]


def test_how_deep_to_look_by_hand() -> None:
    """Exact Pareto quantiles agree at every depth: one step before the last. Light ones stay outermost."""
    n = 8_000
    places = (np.arange(1, n + 1) / n) ** -1.0
    heavy, light = places ** (1 / 1.2), places ** (1 / 3.0)
    depths = depths_of(n)
    assert choose_depth(heavy, depths) == depths[-2]
    assert choose_depth(light, depths) == depths[0]
    # Heavy only inside the outermost two per cent: the outermost part alone is believed.
    bent = np.where(np.arange(n) < 40, heavy[40] * (places / places[40]) ** (1 / 4.0), heavy)
    assert choose_depth(bent, depths) == depths[0]
    # Heavy only inside one per cent: 160 of 8,000 values, two per cent exactly, already disagree.
    assert choose_depth(np.where(np.arange(n) <= 80, heavy, heavy / 100), depths) == depths[0]


@pytest.mark.parametrize(
    ("verdict", "low", "safe"), [("light", 3.0, 3.0), ("cannot tell", 3.0, 1.9), ("heavy", 1.3, 1.3)]
)
def test_the_index_to_rely_on(verdict: tails.Verdict, low: float, safe: float) -> None:
    assert Tail(5_000, 10, 3.5, low, 4.0, verdict).safe_index == safe


@pytest.mark.parametrize(
    ("tail", "said"),
    [
        (Tail(99, 0, math.nan, 1.0, math.inf, "cannot tell"), "cannot tell: 99 values are too few"),
        (
            Tail(5_000, 0, math.nan, 1.0, math.inf, "cannot tell"),
            "cannot tell: too few values differ from the median",
        ),
        (Tail(5_000, 10, 3.0, 2.58, 4.0, "light"), "light: at least 2.5, the variance is finite"),
        (Tail(5_000, 10, math.inf, math.inf, math.inf, "light"), "light: bounded, the variance is finite"),
        (Tail(5_000, 10, 1.2, 1.1, 1.3, "heavy"), "heavy: the variance looks infinite"),
        (
            Tail(5_000, 10, 1.0, 0.9, 1.3, "heavy"),
            "heavy: the variance looks infinite, perhaps even the mean",
        ),
        (
            Tail(3_999, 10, 3.0, 2.1, 4.0, "cannot tell"),
            "cannot tell: 3,999 values are too few to call a tail light",
        ),
        (
            Tail(4_000, 10, 3.0, 2.1, 4.0, "cannot tell"),
            "cannot tell: at least 2.1, the variance may be infinite",
        ),
        (Tail(5_000, 10, 1.0, 1.0, 3.0, "cannot tell"), "cannot tell: not even that there is a mean"),
        (
            Tail(5_000, 10, 1.5, 1.239, 3.0, "cannot tell"),
            "cannot tell: at least 1.23, the variance may be infinite",
        ),
        (
            Tail(5_000, 10, 3.0, 2.5, 4.0, "cannot tell", True),
            "cannot tell: the outermost values are a few events that many agents saw at once",
        ),
    ],
)
def test_what_is_said_of_a_tail(tail: Tail, said: str) -> None:
    assert tail.words == said


def test_a_light_tail_needs_its_band_above_two_and_enough_values() -> None:
    rng = np.random.default_rng(6)
    values = rng.standard_normal(tails.LEAST_FOR_LIGHT)
    assert estimate_tail(values, rng).verdict == "light"
    assert estimate_tail(values[:-1], rng).verdict == "cannot tell"
    spread = estimate_tail(rng.standard_t(2.3, 6_000), rng)
    assert spread.low < 2 < spread.high
    assert spread.verdict == "cannot tell"


# --- moments and enough data ----------------------------------------------------------------------------


def test_enough_data_is_three_standard_errors() -> None:
    assert DataSufficiency(0, 1, gap=3.0, error=1.0).is_enough
    assert not DataSufficiency(0, 1, gap=2.99, error=1.0).is_enough
    assert DataSufficiency(0, 1, gap=1.0, error=1.0).times_more == pytest.approx(9.0)
    assert DataSufficiency(0, 1, gap=1.0, error=0.0).ratio == math.inf


def of_verdict(verdict: tails.Verdict, low: float, high: float = 9.0) -> Tail:
    return Tail(5_000, 100, (low + high) / 2, low, high, verdict)


def test_moments_by_hand() -> None:
    rng = np.random.default_rng(10)
    values = rng.standard_normal((300, 4, 2)) + np.array([0.0, 3.0])
    table = table_of(log_of(values))
    residuals = [values[:, :, k].ravel() for k in range(2)]
    raw, central = float((values[:, :, 1] ** 2).mean()), max(float(each.var()) for each in residuals)
    light, _ = _moments(table, (of_verdict("light", 3.0), of_verdict("light", 4.0)), residuals, rng)
    assert (light.eps, light.u, light.rho) == pytest.approx((1.0, 1.25 * raw, 1.25 * central))
    apart = (of_verdict("heavy", 1.4, 1.6), of_verdict("light", 4.0))
    heavy, why = _moments(table, apart, residuals, rng)
    assert heavy.eps == pytest.approx(0.85 * 0.4)
    order = 1 + heavy.eps
    assert heavy.u == pytest.approx(2 * max(float((np.abs(each) ** order).mean()) for each in residuals))
    assert "'arm0', the heaviest arm" in why[0]
    none, why = _moments(table, (of_verdict("heavy", 1.01, 1.05), of_verdict("light", 4.0)), residuals, rng)
    assert none.eps == 0.05
    assert "the least" in why[0]


def test_bands_that_overlap_are_pooled() -> None:
    rng = np.random.default_rng(11)
    residuals = [rng.standard_t(1.5, 4_000), rng.standard_t(1.5, 4_000)]
    alone = tuple(estimate_tail(each, rng) for each in residuals)
    safe, whose = _safe_index(("a", "b"), alone, residuals, np.random.default_rng(1))
    assert "all arms together" in whose
    assert min(tail.low for tail in alone) < safe < 1.5
    scaled = [residuals[0], 1_000 * residuals[1]]  # the unit of an arm does not matter
    other, _ = _safe_index(("a", "b"), alone, scaled, np.random.default_rng(1))
    assert other == pytest.approx(safe, rel=1e-9)
    apart = (of_verdict("heavy", 1.2, 1.4), of_verdict("cannot tell", 1.5, 3.0))
    assert _safe_index(("a", "b"), apart, residuals, rng) == (1.2, "'a', the heaviest arm,")


def test_few_common_events_are_no_light_tail() -> None:
    """Ten outermost values: of five rounds they may be a tail, of four they are shocks."""
    for rounds, verdict in ((5, "light"), (4, "cannot tell")):
        values = np.zeros((60, 10, 1)) + 0.01 * np.arange(10)[None, :, None]
        values[np.arange(10) % rounds, np.arange(10), 0] = 100.0 + np.arange(10)
        table = table_of(log_of(np.concatenate([values, values], axis=2)))
        tail = replace(of_verdict("light", 3.0), used=10)
        assert _without_common_shocks(tail, table, 0, values.ravel()).verdict == verdict


def test_an_arm_of_few_values_and_arms_of_one_mean_are_refused() -> None:
    rng = np.random.default_rng(12)
    log = log_of(rng.standard_normal((60, 3, 2)) + np.arange(2))
    rows = np.flatnonzero(log.arm == 1)
    few = log.taken(~np.isin(np.arange(len(log.arm)), rows[19:]))
    with pytest.raises(rm.DataError, match="arm 'arm1' has 19 values: too few"):
        check_model(table_of(few), rng)
    with pytest.raises(rm.DataError, match="every value of the log is 0: no arm is better"):
        check_model(table_of(log_of(np.zeros((60, 3, 2)))), rng)
    rare = np.zeros((60, 3, 2))
    rare[3, :, 0] = 1.0
    with pytest.raises(rm.DataError, match=r"too few values differ from 0 .*\(arm0 3, arm1 0\)"):
        check_model(table_of(log_of(rare)), rng)
