"""Large logs: what is replayed of them, what is said about it, and that intervals still cover."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rumormill as rm
from helpers.synthetic_logs import log_of
from rumormill.advice import replay, reward_table
from rumormill.advice.advise import advise
from rumormill.advice.problem import TOGETHER, Candidate
from rumormill.advice.replay import LogProblem
from rumormill.advice.reward_table import RewardTable, build_reward_table, shortened
from rumormill.stats import row_means, winsorised_mean

sys.path.insert(0, str(Path(__file__).parents[2]))  # the scripts are no part of the package

from scripts.calibrate_advice import case_of, score

SHARED = Candidate("decentralized", 1, "median-of-means", 0.1)
CLIPPED = replace(SHARED, estimator="clipped")


def table_of(rounds: int, agents: int, arms: int) -> RewardTable:
    """A table in which every cell was recorded, with the number of its round."""
    values = np.arange(float(rounds))[:, None, None] + np.zeros((rounds, agents, arms))
    return build_reward_table(log_of(values), np.random.default_rng(0))


def stage_of(values: np.ndarray) -> LogProblem:
    agents = values.shape[1]
    return LogProblem(
        values, "maximise", {TOGETHER: rm.Network.complete(agents)}, rm.Moments(eps=1.0, u=4.0, rho=4.0),
        np.zeros(agents, np.int64), drifts=False, remembers=False, seed=np.random.SeedSequence(3), jobs=4,
    )  # fmt: skip


@pytest.fixture
def sixty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every log counts as large, and its games have 60 rounds."""
    for name, value in {"ORDINARY": 0, "MOST_SAMPLES": 0, "LEAST_SHORT": 60}.items():
        monkeypatch.setattr(reward_table, name, value)


# --- what is replayed -----------------------------------------------------------------------------------


def test_an_ordinary_log_is_replayed_as_it_is() -> None:
    """50,000 values of 100 agents; 10 agents may have any number of them."""
    ordinary, long = table_of(500, 100, 1), table_of(2_000, 10, 20)
    assert len(ordinary.log.value) == reward_table.ORDINARY < len(long.log.value)
    assert shortened(ordinary, 100) is ordinary
    assert shortened(long, 10) is long


def test_rounds_of_a_large_log_are_joined_until_the_samples_are_few_enough() -> None:
    table = table_of(501, 100, 4)
    short = shortened(table, 100)
    assert (short.rounds, len(short.log.value)) == (300, len(table.log.value))
    assert short.rounds * 100**2 <= reward_table.MOST_SAMPLES
    assert shortened(table, 1_000).rounds == reward_table.LEAST_SHORT
    np.testing.assert_array_equal(short.values[:, 0, 0], np.arange(300) * 501 // 300)
    # Every line of the log is in the round that its time was joined into.
    ends = np.arange(1, 301) * 501 // 300
    assert (table.slot < ends[short.slot]).all()
    assert (table.slot >= np.concatenate([[0], ends])[short.slot]).all()


@pytest.mark.usefixtures("sixty")
def test_of_several_recorded_values_the_first_is_kept_and_imputed_ones_only_for_want_of_it() -> None:
    table = table_of(150, 2, 2)
    recorded = table.recorded.copy()
    recorded[:149:5, 0, 0] = False  # of 2 and 3 rounds that are joined in turns, the first
    recorded[:, 1, 1] = False
    short = shortened(replace(table, recorded=recorded), 2)
    first = np.arange(60) * 150 // 60
    np.testing.assert_array_equal(short.values[:, 0, 0], first + (first % 5 == 0))
    np.testing.assert_array_equal(short.values[:, 1, 1], first)
    assert short.recorded[:, 0, 0].all()
    assert not short.recorded[:, 1, 1].any()


# --- what is said ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("sixty")
def test_the_report_says_what_was_replayed() -> None:
    case = case_of("stationary", 3)
    rounds = int(case.log.time[-1]) + 1
    advice = advise(case.log, estimators=["clipped"], jobs=1)
    said = advice.as_dict()
    assert (said["log"]["rounds"], said["log"]["first_part"], said["log"]["rest"]) == (60, 36, 24)
    assert said["log"]["values"] == len(case.log.value)
    (note,) = (note for note in said["notes"] if "games have" in note)
    assert (
        f"Of {len(case.log.value):,} values all were checked; games have 60 rounds instead of {rounds}"
        in note
    )
    assert "in games of 60 rounds" in said["gain"]["means"]
    # Tails are estimated from every value.
    assert sum(tail["values"] for tail in said["model"]["tails"]) == len(case.log.value)


def test_sharing_is_checked_over_all_rounds_unless_every_sample_is_stored() -> None:
    stage = stage_of(np.ones((40, 2, 2)))
    asked: list[str] = []

    class Game:
        def __init__(self, name: str) -> None:
            self.name = name

        def in_order(self, candidate: Candidate) -> tuple[float, float]:
            asked.append(self.name)
            return 1.0, 1.0

    stage.whole, stage.longer = Game("short"), Game("long")  # type: ignore[assignment]
    stage.worse_in_order(CLIPPED, CLIPPED)
    stage.worse_in_order(SHARED, CLIPPED)
    stage.longer = None
    stage.worse_in_order(CLIPPED, CLIPPED)
    assert asked == ["long", "long", "short", "short", "short", "short"]


@pytest.mark.usefixtures("sixty")
def test_gains_of_short_games_cover_what_comes_next() -> None:
    """The next 60 rounds, in at least 7 of 12 logs: coverage of 85 % fails that in 0.5 % of all cases."""
    rows = []
    for family in ("stationary", "heterogeneous"):
        for number in range(1, 13, 2):
            case = case_of(family, number)
            rows.append(score(replace(case, later=case.later[:60], expected=case.expected[:60])))
    covered = [row["gain"]["low"] <= row["saved_measured"] <= row["gain"]["high"] for row in rows]
    assert sum(covered) >= 7


# --- replays --------------------------------------------------------------------------------------------


def test_a_final_goes_on_from_the_look() -> None:
    values = np.random.default_rng(5).standard_normal((50, 3, 2)) + np.array([0.0, 0.4])
    candidates = [CLIPPED, Candidate("robust", 0, "clipped", 0.1)]
    at_once, looked = stage_of(values), stage_of(values)
    looked.play(candidates, look=True)
    for one, other in zip(at_once.play(candidates), looked.play(candidates), strict=True):
        np.testing.assert_array_equal(one.loss, other.loss)
        np.testing.assert_array_equal(one.paid, other.paid)
        np.testing.assert_array_equal(one.actions, other.actions)
        assert (one.messages, one.wire_bytes) == (other.messages, other.wire_bytes)
        assert one.recorded == other.recorded


def test_no_two_games_store_more_samples_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "AT_ONCE", 2 * 50 * 3**2 - 1)
    stage = stage_of(np.random.default_rng(5).standard_normal((50, 3, 2)))
    under_way, most, lock, played = 0, 0, threading.Lock(), LogProblem._replayed

    def counted(self: LogProblem, candidate: Candidate, *given: object) -> object:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        outcome = played(self, candidate, *given)  # type: ignore[arg-type]
        with lock:
            under_way -= 1
        return outcome

    monkeypatch.setattr(LogProblem, "_replayed", counted)
    stage.play([replace(SHARED, zeta=zeta) for zeta in (0.1, 0.3, 1.0, 3.0)])
    assert most == 1


@pytest.mark.parametrize("n", [6, 41, 240, 1_200])
def test_means_of_rows_are_those_of_single_samples_to_the_bit(n: int) -> None:
    rng = np.random.default_rng(n)
    table = np.concatenate([rng.pareto(1.5, (9, n)), rng.integers(2, size=(3, n)), np.ones((1, n))])
    np.testing.assert_array_equal(row_means(table), np.array([winsorised_mean(row) for row in table]).T)
