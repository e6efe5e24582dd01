"""Rounds of a log, imputation, replays and mesh files of advice, by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.synthetic_logs import log_of
from rumormill.advice import baselines, reward_table
from rumormill.advice.advise import FIRST, _network_of, log_problem
from rumormill.advice.baselines import BETWEEN_PARTS, OF_REPLAYS, _interval
from rumormill.advice.mesh_output import Recheck, read_setting
from rumormill.advice.model_checks import check_model
from rumormill.advice.problem import TOGETHER, Candidate, Outcome, case_of_spec, paired_excess
from rumormill.advice.reading.log import Log, read_log
from rumormill.advice.replay import (
    LogProblem,
    ReplayOutcome,
    interval_of_differences,
    resampled,
    shrunk_means,
)
from rumormill.advice.reward_table import build_reward_table, for_agents, with_support, without_agents
from rumormill.experiments.spec.reading import at_scale, decode
from rumormill.seeds import root_seed
from rumormill.stats import Interval, cell_means, clipped, winsorised, winsorised_mean

RNG = np.random.default_rng(0)
MOMENTS = rm.Moments(eps=1.0, u=1.0, rho=1.0)


def log_with(rows: list[tuple[float, int, int, float]], agents: int, arms: int, timed: bool = True) -> Log:
    """A log of rows (time, agent, arm, value)."""
    time, agent, arm, value = (np.array(column) for column in zip(*rows, strict=True))
    return Log(
        "log", tuple(f"arm{k}" for k in range(arms)), tuple(f"agent{v}" for v in range(agents)), "maximise",
        "", time.astype(float), agent.astype(np.int32), arm.astype(np.int32), value.astype(float), timed,
    )  # fmt: skip


# --- rounds ---------------------------------------------------------------------------------------------


def test_the_first_of_several_values_in_a_cell_is_kept() -> None:
    rows = [(float(t), 0, k, 10.0 * t + k) for t in range(50) for k in range(2)]
    rows += [(49.0, 0, 1, -1.0)]
    table = build_reward_table(log_with(rows, 1, 2), RNG)
    assert table.values[49, 0].tolist() == [490.0, 491.0]
    assert table.recorded.all()


def test_a_missing_value_comes_from_any_of_those_recorded_near_it() -> None:
    """Five per cent of 100 on either side; one of ten is missed with probability 10 · 0.9^2000 = 3e-91."""
    picked = reward_table._neighbours_in_time(np.arange(100), np.full(2_000, 50), np.random.default_rng(0))
    assert set(picked.tolist()) == set(range(45, 55))


def test_agents_with_hardly_any_values_are_left_out() -> None:
    rows = [(float(t), v, k, 1.0) for t in range(50) for v in range(2) for k in range(2)]
    rows += [(float(t), 2, 0, 1.0) for t in range(19)]
    table = build_reward_table(log_with(sorted(rows), 3, 2), RNG)
    assert table.log.agents == ("agent0", "agent1")
    assert "1 agent with fewer than 20 values left out: agent2" in table.notes[0]
    assert build_reward_table(log_with(sorted([*rows, (49.0, 2, 1, 1.0)]), 3, 2), RNG).n_agents == 3


def test_too_few_rounds_are_refused_and_too_many_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(rm.DataError, match="the log has 39 rounds"):
        build_reward_table(log_of(np.ones((39, 2, 2))), RNG)
    monkeypatch.setattr(reward_table, "MOST_ROUNDS", 50)
    values = np.arange(100.0)[:, None, None] + np.zeros((100, 2, 2))
    table = build_reward_table(log_of(values), RNG)
    assert table.values[:, 0, 0].tolist() == list(range(0, 100, 2))
    assert "100 times were joined into 50 rounds" in table.notes[0]


def test_without_times_the_nth_decision_makes_the_nth_round() -> None:
    rows = [(float(i), v, (i + v) % 2, float(i)) for v in range(2) for i in range(80)]
    table = build_reward_table(log_with(rows, 2, 2, timed=False), RNG)
    assert table.kind == "full"  # every agent has equally many of both arms
    assert table.rounds == 40
    assert table.values[:, 0, 0].tolist() == list(range(0, 80, 2))


def test_imputed_values_come_from_about_the_same_time() -> None:
    values = np.arange(200.0)[:, None, None] + np.zeros((200, 1, 2))
    log = log_of(values)
    table = build_reward_table(log.taken(~((log.arm == 1) & (log.time % 2 == 1))), np.random.default_rng(1))
    away = np.abs(table.values[:, 0, 1] - np.arange(200))
    assert (away[::2] == 0).all()
    assert 5 < away[40:160].max() <= 20  # of a hundred values, ten to either side
    assert not table.recorded[1::2, 0, 1].any()


def test_who_hardly_tried_an_arm() -> None:
    rows = [(float(t), v, k, v + 10.0 * k) for t in range(60) for v in range(4) for k in range(2)]
    rows = [row for row in rows if not (row[1] == 3 and row[2] == 1 and row[0] >= 4)]
    table = build_reward_table(log_with(rows, 4, 2), RNG)
    same, left_out, notes = with_support(table, False, np.random.default_rng(1))
    assert (left_out, same.n_agents) == (False, 4)
    assert set(same.values[4:, 3, 1].tolist()) <= {10.0, 11.0, 12.0, 13.0}
    assert len(set(same.values[4:, 3, 1].tolist())) > 1
    apart, left_out, notes = with_support(table, True, np.random.default_rng(1))
    assert (left_out, apart.n_agents, apart.log.agents) == (True, 3, ("agent0", "agent1", "agent2"))
    assert "1 agent (agent3) left out" in notes[0]
    enough = [*rows, (4.0, 3, 1, 13.0)]
    assert not with_support(build_reward_table(log_with(sorted(enough), 4, 2), RNG), True, RNG)[1]


def test_a_table_without_some_agents_is_whole() -> None:
    values = np.arange(240.0).reshape(40, 3, 2)
    table = without_agents(build_reward_table(log_of(values), RNG), np.array([False, True, False]))
    np.testing.assert_array_equal(table.values, values[:, [0, 2]])
    assert table.log.agents == ("agent0", "agent2")
    assert len(table.slot) == len(table.log.value) == 160
    assert set(table.log.agent.tolist()) == {0, 1}


def test_agents_of_a_log_without_agents_start_anywhere_in_their_part() -> None:
    log = replace(log_of(np.arange(100.0)[:, None, None] + np.zeros((100, 1, 2))), agents=None)
    made = for_agents(build_reward_table(log, RNG), 8, 60, np.random.default_rng(2))
    assert made.shape == (100, 8, 2)
    for v in range(8):
        assert sorted(made[:60, v, 0]) == list(range(60))
        assert sorted(made[60:, v, 0]) == list(range(60, 100))
        assert ((np.diff(made[:60, v, 0]) == 1).sum()) >= 58
    assert len({made[0, v, 0] for v in range(8)}) > 1


def test_who_is_linked_where_no_network_is_given() -> None:
    table = build_reward_table(log_of(np.ones((40, 3, 2))), RNG)
    assert _network_of(table, None).n_edges == 3
    assert _network_of(build_reward_table(log_of(np.ones((40, 1, 2))), RNG), None).n_agents == 1
    with pytest.raises(rm.InputError, match="the network has 4 agents, the log 3"):
        _network_of(table, rm.Network.ring(4))


# --- replays --------------------------------------------------------------------------------------------


def problem(values: np.ndarray, **given: object) -> LogProblem:
    agents = values.shape[1]
    settings = {"drifts": False, "remembers": False, "seed": np.random.SeedSequence(1), **given}
    objective = settings.pop("objective", "maximise")
    networks = {TOGETHER: rm.Network.complete(agents)}
    groups = np.zeros(agents, np.int64)
    return LogProblem(values, objective, networks, MOMENTS, groups, **settings)  # type: ignore[arg-type]


VALUES = np.tile(np.array([1.0, 3.0]), (40, 2, 1))
ACTIONS = np.where(np.arange(40)[:, None] < 10, 0, 1) + np.zeros((40, 2), int)


def test_losses_and_payments_by_hand() -> None:
    """The first quarter of the pulls are of the arm that is worse by 2."""
    stage = problem(VALUES)
    _, means, limits = stage.log(0, 0)
    assert means.shape == (1, 2, 2)
    assert stage._loss(ACTIONS, means) == pytest.approx(0.5)
    assert stage._paid(ACTIONS, VALUES, limits) == pytest.approx(2.5)
    assert stage._paid(ACTIONS, VALUES, np.array([[[0.0, 0.0]] * 2, [[9.0, 2.0]] * 2])) == 1.75
    late = problem(VALUES, count_from=10)
    assert (late._loss(ACTIONS, means), late._paid(ACTIONS, VALUES, limits)) == (0.0, 3.0)
    costs = problem(VALUES, objective="minimise")
    assert costs._loss(ACTIONS, means) == pytest.approx(1.5)


def test_drifting_logs_are_judged_by_quarter_and_resampled_nearby() -> None:
    values = np.concatenate([VALUES[:20], VALUES[:20, :, ::-1]])
    stage = problem(values, drifts=True)
    assert (stage.segments, stage.near, stage.block) == (4, 0.1, 7)
    means = stage.log(0, 0)[1]
    assert means[:, 0].tolist() == [[1.0, 3.0], [1.0, 3.0], [3.0, 1.0], [3.0, 1.0]]
    assert stage._loss(np.where(np.arange(40)[:, None] < 20, 1, 0) + np.zeros((40, 2), int), means) == 0.0
    assert problem(values, remembers=True).block == 7
    assert problem(values).block == 1


def test_resamples_are_the_same_for_all_and_differ_from_each_other() -> None:
    values = np.random.default_rng(1).random((60, 2, 2))
    stage, again = problem(values), problem(values)
    np.testing.assert_array_equal(stage.log(0, 0)[0], values)
    for key in ((1, 0), (1, 1), (2, 0)):
        np.testing.assert_array_equal(stage.log(*key)[0], again.log(*key)[0])
    assert not np.array_equal(stage.log(1, 0)[0], stage.log(2, 0)[0])
    assert not np.array_equal(stage.log(1, 0)[0], stage.log(1, 1)[0])
    # Resampled again: rounds of (1, 1) are all rounds of (1, 0).
    first = {float(x) for x in stage.log(1, 0)[0][:, 0, 0]}
    assert {float(x) for x in stage.log(1, 1)[0][:, 0, 0]} <= first


def test_large_tables_get_half_as_many_resamples() -> None:
    assert (problem(VALUES).look, problem(VALUES).logs) == (8, 24)
    assert (problem(np.ones((2_000, 2, 300))).look, problem(np.ones((2_000, 2, 300))).logs) == (4, 12)


def outcome(loss: list[list[float]], paid: list[list[float]]) -> ReplayOutcome:
    candidate = Candidate("robust", 0, "clipped", 0.1)
    return ReplayOutcome(candidate, np.array(loss), np.array(paid), 0.0, 0.0, 0.0, np.zeros((1, 1), int))


def test_paying_more_is_worse_for_costs_and_better_for_rewards() -> None:
    one, other = outcome([[1.0], [1.0]], [[5.0], [5.0]]), outcome([[1.0], [1.0]], [[3.0], [3.0]])
    assert problem(VALUES).excess(one, other, paid=True).estimate == -2.0
    assert problem(VALUES, objective="minimise").excess(one, other, paid=True).estimate == 2.0
    assert problem(VALUES).excess(one, other).estimate == 0.0


def test_the_recorded_order_contradicts_only_if_more_was_lost_and_paid() -> None:
    stage = problem(VALUES)
    alone, shared = Candidate("robust", 0, "clipped", 0.1), Candidate("kmp", 1, "clipped", 0.1)

    def judged(loss: float, paid: float, objective: str = "maximise") -> bool:
        stage.objective = objective  # type: ignore[assignment]
        whole = type("Whole", (), {"in_order": lambda self, c: (loss, paid) if c is shared else (1.0, 1.0)})()
        stage.whole = whole
        return stage.worse_in_order(shared, alone)

    assert judged(1.1, 0.9)
    assert not judged(1.1, 1.1)
    assert not judged(0.9, 0.9)
    assert not judged(1.0, 0.9)
    assert judged(1.1, 1.1, "minimise")
    assert not judged(1.1, 0.9, "minimise")


def test_intervals_of_few_logs_and_of_one() -> None:
    alone = interval_of_differences(np.array([[1.0, 3.0]]))
    assert (alone.estimate, alone.low, alone.high) == (2.0, -np.inf, np.inf)
    once = interval_of_differences(np.array([[1.0], [3.0]]))
    assert once.high - once.estimate == pytest.approx(12.706 * np.sqrt(2.0), rel=1e-3)


def test_resampled_rounds_stay_inside_the_log() -> None:
    for rounds, length, near in ((40, 7, 0.1), (41, 7, 1.0), (5, 7, 0.1), (100, 1, 0.05)):
        rows = resampled(rounds, length, near, np.random.default_rng(3))
        assert len(rows) == rounds
        assert rows.min() >= 0
        assert rows.max() < max(rounds, length)
    near_rows = resampled(1_000, 1, 0.05, np.random.default_rng(3))
    assert np.abs(near_rows - np.arange(1_000)).max() == 50


def test_shrinking_by_hand() -> None:
    """Variance 8 between two agents, of which chance explains 1: the own mean weighs 7/8."""
    means, errors = np.array([[[-2.0], [2.0]]]), np.ones((1, 2, 1))
    np.testing.assert_allclose(shrunk_means(means, errors)[0, :, 0], [-1.75, 1.75])
    np.testing.assert_allclose(shrunk_means(means[:, :1], errors[:, :1]), means[:, :1])
    # The errors of another arm are another matter.
    two_arms, noisy = np.concatenate([means, means], axis=2), np.array([[[1.0, 9.0], [1.0, 9.0]]])
    np.testing.assert_allclose(shrunk_means(two_arms, noisy)[0], [[-1.75, 0.0], [1.75, 0.0]])
    # Below two standard errors of a variance from two agents (2 √2), all of it counts as chance.
    np.testing.assert_allclose(shrunk_means(means / 2, errors)[0, :, 0], [0.0, 0.0])
    # Of three agents two standard errors are 2: of a variance of 4, 3 are more than that.
    three = shrunk_means(np.array([[[-2.0], [0.0], [2.0]]]), np.ones((1, 3, 1)))
    np.testing.assert_allclose(three[0, :, 0], [-1.5, 0.0, 1.5])


def test_intervals_join_the_spread_of_replays_and_the_difference_of_the_parts() -> None:
    here = np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
    alike, apart = _interval(here, np.full((2, 2), 2.0)), _interval(here, np.full((2, 2), 5.0))
    assert alike.estimate == apart.estimate == 2.0
    assert alike.high - 2.0 == pytest.approx(2.0 - alike.low) == OF_REPLAYS * here.std(ddof=1)
    assert apart.high - 2.0 == pytest.approx(np.hypot(alike.high - 2.0, BETWEEN_PARTS * 3.0))


def test_what_the_log_itself_did_comes_from_the_rounds_from_the_cut_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fifty rounds of two agents, one arm each: 20 to 49 here, 0 to 19 in the other part."""
    monkeypatch.setattr(baselines, "_played", lambda name, *given: name)
    rows = [(float(t), v, (t + v) % 2, float(t)) for t in range(50) for v in range(2)]
    table = build_reward_table(log_with(rows, agents=2, arms=2), RNG)
    assert table.kind == "chosen"
    start = SimpleNamespace(chosen=SimpleNamespace(candidate=0), cold=SimpleNamespace(candidate=1), ways=[])
    first: Any = SimpleNamespace(after=SimpleNamespace(known=object()))
    choice: Any = SimpleNamespace(start=start)
    *_, log = baselines.baselines_of(table, first, choice, cut=20)
    assert (log.name, log.mean, log.median) == ("what the log itself did", 34.5, 34.5)
    _, error = winsorised_mean(np.repeat(np.arange(20.0, 50.0), 2))
    assert log.high - 34.5 == pytest.approx(np.hypot(OF_REPLAYS * error, BETWEEN_PARTS * (34.5 - 9.5)))


def test_games_that_begin_with_what_is_known_are_as_long_as_the_log() -> None:
    rng = np.random.default_rng(4)
    table = build_reward_table(log_of(rng.standard_normal((100, 3, 2))), rng)
    values = for_agents(table, 3, 60, rng)
    network = rm.Network.complete(3)
    model = check_model(table, rng)
    first = log_problem(table, model, network, values, 60, root_seed(1), 1, lambda plays: None)
    assert first.rest is not None
    assert first.after is not None
    assert first.exchanged is not None
    assert [each.length for each in (first, first.rest, first.after, first.exchanged)] == [60, 40, 100, 100]


def test_pairs_are_made_over_the_trials_of_both() -> None:
    def spec_outcome(loss: list[float]) -> Outcome:
        return Outcome(Candidate("kmp", 1, "clipped", 1.0), np.array(loss), np.array(loss), 0, 0, 0.0)

    long, short = spec_outcome([5.0, 6.0, 7.0, 100.0]), spec_outcome([4.0, 5.0, 6.0])
    assert paired_excess(long, short) == Interval(1.0, 1.0, 1.0)


@pytest.mark.parametrize(("low", "right"), [(-1.0, True), (0.5, True), (0.6, False)])
def test_a_setting_is_wrong_when_it_surely_loses_more_than_the_margin(low: float, right: bool) -> None:
    found = Recheck(None, Candidate("kmp", 1), Interval(1.0, low, 2.0), margin=0.5)  # type: ignore[arg-type]
    assert found.still_right == right


def test_how_much_of_a_log_is_held_out() -> None:
    assert FIRST == 0.6


# --- winsorised means -----------------------------------------------------------------------------------


def test_winsorising_by_hand() -> None:
    """Five per cent of 40 values are two on either side; at most twelve."""
    values = np.arange(40.0)
    moved = winsorised(np.random.default_rng(1).permutation(values))
    assert sorted(moved) == [2.0, 2.0, 2.0, *range(3, 37), 37.0, 37.0, 37.0]
    assert winsorised(np.arange(19.0)).tolist() == list(range(19))
    many = winsorised(np.arange(1_000.0))
    assert (many.min(), many.max()) == (12.0, 987.0)
    mean, error = winsorised_mean(values)
    assert mean == 19.5
    assert error == pytest.approx(np.std(moved, ddof=1) / np.sqrt(40))
    assert winsorised_mean(np.array([3.0])) == (3.0, np.inf)


def test_means_by_cell() -> None:
    cell = np.array([2, 0, 2, 0])
    means, errors, counts = cell_means(np.array([1.0, 5.0, 3.0, 5.0]), cell, 4)
    np.testing.assert_array_equal(means, [5.0, np.nan, 2.0, np.nan])
    np.testing.assert_array_equal(errors, [0.0, np.inf, 1.0, np.inf])
    assert counts.tolist() == [2, 0, 2, 0]


def test_clipping_is_by_arm() -> None:
    values = np.concatenate([np.arange(101.0), 1_000 + np.arange(101.0)])
    made = clipped(values, np.repeat([0, 1], 101).astype(np.int32), 2, 0.05)
    assert (made[:101].min(), made[:101].max()) == (5.0, 95.0)
    assert (made[101:].min(), made[101:].max()) == (1_005.0, 1_095.0)


# --- mesh files -----------------------------------------------------------------------------------------

MESH = """
name = "m"
[[games]]
name = "g"
arms = ["a", "b"]
objective = "minimise"
[games.policy]
type = "kmp"
gamma = 2
estimator = "clipped"
zeta = 0.3
[games.moments]
eps = 0.5
u = 2.0
rho = 1.0
[[nodes]]
name = "n0"
id = 0
address = "n0:7400"
"""


def test_the_setting_of_a_mesh_file(tmp_path: Path) -> None:
    path = tmp_path / "mesh.toml"
    path.write_text(MESH)
    found = read_setting(path)
    assert found.setting == Candidate("kmp", 2, "clipped", 0.3)
    assert (found.moments.eps, found.moments.u, found.moments.rho) == (0.5, 2.0, 1.0)
    path.write_text(MESH.replace("zeta = 0.3\n", ""))
    with pytest.raises(rm.DataError, match=r"policy\.zeta: missing"):
        read_setting(path)
    path.write_text(MESH.replace('"kmp"', '"origin-median"').replace('estimator = "clipped"\n', ""))
    with pytest.raises(rm.InputError, match="'origin-median' is not allowed here"):
        read_setting(path)


# --- files ----------------------------------------------------------------------------------------------


def test_a_row_without_time_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = [f"{t if t != 7 else ''},{t % 5},{t % 3}" for t in range(120)]
    path.write_text("\n".join(["time,a,b", *rows]))
    with pytest.raises(rm.DataError, match="row 8 has no time"):
        read_log(path, objective="maximise")


def test_a_time_that_is_not_finite_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "\n".join(["time,a,b", *(f"{t if t != 9 else 'inf'},{t % 5},{t % 3}" for t in range(120))])
    )
    with pytest.raises(rm.DataError, match="row 10 has no time"):
        read_log(path, objective="maximise")


def test_a_file_that_is_no_table_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    path.write_bytes(b"no table at all" * 10)
    with pytest.raises(rm.DataError, match=r"log\.parquet cannot be read as a table: "):
        read_log(path, objective="maximise")


def test_a_counter_that_sometimes_stands_still_is_no_arm(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("\n".join(["a,b,requests", *(f"{t % 5},{t % 3},{t // 2}" for t in range(200))]))
    with pytest.raises(rm.DataError, match="column 'requests' only goes one way"):
        read_log(path, objective="maximise")
    path.write_text("\n".join(["a,b", *(f"{t % 5},{t // 100}" for t in range(200))]))
    assert read_log(path, objective="maximise").arms == ("a", "b")  # one that rises once does not count


def test_why_the_moments_of_a_spec_are_what_they_are() -> None:
    raw = {
        "name": "mine", "seed": 1, "horizon": 50, "trials": 2, "network": {"kind": "ring", "n": 6},
        "policies": [{"type": "kmp", "zeta": 1.0}],
    }  # fmt: skip
    for df, light, why in (
        (2.5, True, "variances are finite"),
        (1.5, False, "moments are finite below order 1.5"),
    ):
        arms = {"law": "student-t", "df": df, "means": [0.0, 1.0]}
        case = case_of_spec(at_scale(decode({**raw, "arms": arms})))
        assert case.light == light
        assert why in case.reasons[0]
        assert [tail.exact for tail in case.tails] == [df, df]
        assert [tail.mean for tail in case.tails] == [0.0, 1.0]
    # Coins with any means in [0, 1]: E X² is largest next to 1, the variance in the middle.
    coins = case_of_spec(at_scale(decode({**raw, "arms": {"law": "bernoulli", "K": 2}})))
    assert (coins.moments.u, coins.moments.rho) == pytest.approx((1.0, 0.25), abs=1e-8)
