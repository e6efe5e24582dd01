"""Scores by hand: floor, ratio, lost trials, intervals, and the leader."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rumormill as rm
from rumormill.arena.entries import CellRecord, Entry, Played
from rumormill.arena.score import as_plain, cell_score, floor_of, leaderboard, uniform_regret
from rumormill.arena.suite import Suite, read_suite
from rumormill.experiments.spec.schema import PolicyPart


def gauss(*means: float) -> rm.Bandit:
    return rm.Bandit([rm.Gaussian(loc=mean) for mean in means])


def test_the_floor_by_hand() -> None:
    # 2/Δ ln T for the arm at distance 1; the arm at distance 0.01 cannot cost more than Δ M T.
    found = floor_of(gauss(0.0, 0.99, 1.0), 3, 100)
    assert found == pytest.approx(2 * math.log(100) + 0.01 * 3 * 100)


def test_the_floor_starts_again_after_a_change() -> None:
    changed = rm.Piecewise([(1, gauss(0.0, 1.0)), (61, gauss(1.0, 0.0))])
    assert floor_of(changed, 50, 100) == pytest.approx(2 * math.log(60) + 2 * math.log(40))
    assert floor_of(changed, 50, 50) == pytest.approx(2 * math.log(50))
    assert uniform_regret(changed, 50, 100) == pytest.approx(0.5 * 50 * 100)


def test_every_worse_arm_is_pulled_at_least_once() -> None:
    hopeless = rm.Bandit([rm.TwoPoint(probability=0.5), rm.Gaussian(loc=3.0)])  # no coin has the mean 3
    assert rm.theory.lower_bound(hopeless).coefficient == 0
    assert floor_of(hopeless, 5, 100) == pytest.approx(2.5)


def test_arms_without_a_floor_are_refused() -> None:
    with pytest.raises(rm.InputError, match="no floor is known"):
        floor_of(rm.Seasonal(gauss(0.0, 1.0), amplitude=1.0, period=9.0), 5, 100)


def played(*regrets: float, floor: float = 10.0) -> list[Played]:
    return [Played(regret, floor, 100.0, 40, 400) for regret in regrets]


def test_a_cell_by_hand() -> None:
    # Median 10: 101 is lost (> 10 × 10), 100 is not.
    cell = cell_score(played(10, 10, 10, 8, 100, 101))
    assert cell.ratio == pytest.approx(239 / 60)
    assert cell.lost == 1
    assert cell.worst == pytest.approx(10.1)
    assert (cell.median.low, cell.median.estimate, cell.median.high) == (0.8, 1.0, 10.1)
    assert (cell.messages, cell.wire_bytes, cell.good) == (40, 400, False)
    assert not cell_score(played(1, 1, 1, 99, floor=10.0)).lost  # below 10 × the floor
    assert cell_score([*played(10), *played(10, floor=30.0)]).ratio == 0.5  # of means, not the mean of ratios
    assert math.isnan(cell_score(played(1, 2)).median.low)  # too few trials for an interval


def entry(label: str, suite: Suite, *regrets: list[float] | str) -> Entry:
    records = {}
    for cell, given in zip(suite.cells, regrets, strict=True):
        record = CellRecord(cell.key)
        if isinstance(given, str):
            record.refused = given
        else:
            record.trials = dict(enumerate(played(*given)))
        records[cell.name] = record
    return Entry(label, PolicyPart(type="robust", label=label), None, "", "fast", records)


@pytest.fixture
def suite(suite_file: Path) -> Suite:
    return read_suite(str(suite_file), "quick", "published")


def test_the_leaderboard_by_hand(suite: Suite) -> None:
    good = entry("good", suite, [10.0] * 6, [40.0] * 6)
    bad = entry("bad", suite, [20.0] * 6, [160.0] * 6)
    picky = entry("picky", suite, [5.0] * 6, "needs a fault-free channel")
    board = leaderboard(suite, [bad, good, picky])
    assert [each.label for each in board.entries] == ["picky", "good", "bad", "Uniform (expected)"]
    assert board.leader == "good"  # picky did not play everywhere
    assert [each.score for each in board.entries] == pytest.approx([0.5, 2.0, math.sqrt(32), 10.0])
    assert board.common == ["ring/gauss/perfect"]
    plain = as_plain(board)
    first, second, third, _ = plain["entries"]
    assert first["not_played"] == {"ring/gauss/lossy": "needs a fault-free channel"}
    assert (first["cells"], second["cells"]) == (1, 2)
    assert second["against_leader"] is None
    assert third["against_leader"] == pytest.approx(math.sqrt(8))  # √(2 · 4), in every trial
    assert (third["worst_cell"], third["worst_ratio"]) == ("ring/gauss/lossy", 16.0)
    assert third["score_common"] == pytest.approx(2.0)
    assert plain["sha256"] == as_plain(leaderboard(suite, [good, picky, bad]))["sha256"]
    good.cells["ring/gauss/lossy"].trials[5] = Played(40.1, 10.0, 100.0, 40, 400)
    assert plain["sha256"] != as_plain(leaderboard(suite, [good, picky, bad]))["sha256"]


def test_pairs_are_compared_within_trials(suite: Suite) -> None:
    regrets = [3.0, 5.0, 7.0, 11.0, 13.0, 17.0]
    one = entry("one", suite, regrets, regrets)
    other = entry("other", suite, [2 * r for r in regrets], [2 * r for r in regrets])
    (against,) = [each.against for each in leaderboard(suite, [one, other]).entries if each.label == "other"]
    assert against is not None
    assert [against.low, against.estimate, against.high] == pytest.approx([2.0, 2.0, 2.0])


def test_unfinished_cells_do_not_count(suite: Suite) -> None:
    board = leaderboard(suite, [entry("late", suite, [10.0] * 6, [10.0] * 5)])
    assert list(board.entries[0].cells) == ["ring/gauss/perfect"]
    assert board.entries[0].refused == {"ring/gauss/lossy": "5 trials of 6 played"}
    assert not leaderboard(replace(suite, trials=9), [entry("late", suite, [1.0] * 6, [1.0] * 6)]).entries


def test_the_interval_of_the_median_covers_it() -> None:
    """Of 400 samples of 8 heavy-tailed ratios at most 20 + 4 σ miss the median: 95 % or more hold it."""
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(400):
        cell = cell_score(played(*np.exp(rng.standard_cauchy(8).clip(-20, 20)).tolist(), floor=1.0))
        missed += not cell.median.low <= 1 <= cell.median.high
    assert missed <= 20 + 4 * math.sqrt(400 * 0.05 * 0.95)
