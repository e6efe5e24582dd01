"""Outcomes that are missing, failed or cut off: counted, named, and valued where the user says how."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import rumormill as rm
from rumormill.advice.model_checks.failures import check_failures
from rumormill.advice.reading.log import Log
from rumormill.advice.report_text import alarms, headline
from rumormill.cli import main

ROUNDS, AGENTS = 200, 4
Outcome = Callable[[np.random.Generator, str, float], str]


def times_out(share: float) -> Outcome:
    """`quick` answers in 20 ms and fails often, `steady` in 30 ms and never."""

    def outcome(rng: np.random.Generator, arm: str, value: float) -> str:
        return "" if arm == "quick" and rng.random() < share else f"{value:.4f}"

    return outcome


def write(folder: Path, outcome: Outcome, form: str = "long") -> Path:
    """A log of two arms."""
    rng, path = np.random.default_rng(3), folder / "log.csv"
    rows = []
    for t in range(ROUNDS):
        for agent in range(AGENTS):
            quick, steady = 20 * rng.pareto(3.0) + 10, 20 * rng.pareto(3.0) + 20
            cells = [outcome(rng, "quick", quick), outcome(rng, "steady", steady)]
            if form == "wide":
                rows.append(f"{t},c{agent},{cells[0]},{cells[1]}")
            else:
                rows += [f"{t},c{agent},quick,{cells[0]}", f"{t},c{agent},steady,{cells[1]}"]
    header = "time,client,quick,steady\n" if form == "wide" else "time,client,arm,latency\n"
    path.write_text(header + "\n".join(rows))
    return path


def read(path: Path, **options: object) -> Log:
    return rm.read_log(path, objective="minimise", unit="ms", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["long", "wide"])
def test_missing_outcomes_are_counted_by_agent_and_arm(form: str, tmp_path: Path) -> None:
    log = read(write(tmp_path, times_out(0.3), form))
    assert log.missing is not None
    assert log.missing.shape == (AGENTS, 2)
    failures = check_failures(log)
    # A share of 800 draws with p = .3 lies within .05 with probability .998.
    assert abs(failures.shares[0] - 0.3) < 0.05
    assert failures.shares[1] == 0
    assert failures.differ
    assert failures.hides_order(0)
    assert not failures.hides_order(1)


@pytest.mark.parametrize("form", ["long", "wide"])
def test_a_failure_cost_turns_the_order_round(form: str, tmp_path: Path) -> None:
    path = write(tmp_path, times_out(0.3), form)
    plain, valued = read(path), read(path, failure_cost=500.0)
    means = [[log.value[log.arm == k].mean() for k in (0, 1)] for log in (plain, valued)]
    assert means[0][0] < means[0][1]
    assert means[1][0] > means[1][1]
    assert len(valued.value) == 2 * ROUNDS * AGENTS
    assert check_failures(valued).shares == pytest.approx(check_failures(plain).shares)
    assert not check_failures(valued).hides_order(0)
    worst = read(path, failure_cost="timeout")
    assert worst.failure_cost == plain.value.max()


def test_equal_shares_are_no_alarm(tmp_path: Path) -> None:
    def lost(rng: np.random.Generator, arm: str, value: float) -> str:
        return "" if rng.random() < 0.1 else f"{value:.4f}"

    failures = check_failures(read(write(tmp_path, lost)))
    assert not failures.differ
    assert not failures.hides_order(0)


def test_a_few_failures_are_no_alarm_even_if_they_are_certain(tmp_path: Path) -> None:
    counts = np.array([[10_000, 10_000]])
    log = read(write(tmp_path, times_out(0.0)))
    failures = check_failures(log)
    assert failures.p_value == 1.0
    object.__setattr__(failures, "missing", np.array([[90, 10]]))
    object.__setattr__(failures, "tries", counts)
    object.__setattr__(failures, "p_value", 1e-9)
    assert not failures.differ
    object.__setattr__(failures, "missing", np.array([[150, 10]]))
    assert failures.differ


def test_one_value_per_row_of_a_wide_log_is_the_choice_not_a_failure(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = [f"c{i % 3},{rng.normal()},," if i % 2 else f"c{i % 3},,{rng.normal()}," for i in range(400)]
    path = tmp_path / "log.csv"
    path.write_text("client,a,b\n" + "\n".join(row.rstrip(",") for row in rows))
    log = read(path)
    assert log.missing is None
    assert not check_failures(log).missing.any()
    with pytest.raises(rm.RumormillError, match="most rows hold one value"):
        read(path, failure_cost=9.0)


@pytest.mark.parametrize(
    ("good", "bad", "ok"),
    [("200", "504", ()), ("OK", "Timeout", ()), ("0", "1", ("0",)), ("won", "lost", ("won",))],
)
def test_a_status_column(good: str, bad: str, ok: tuple[str, ...], tmp_path: Path) -> None:
    rng, path = np.random.default_rng(2), tmp_path / "log.csv"
    rows = [
        f"{t},c{t % 4},{'ab'[t % 2]},{rng.random()},{bad if t % 2 and t % 3 == 0 else good}"
        for t in range(300)
    ]
    path.write_text("time,client,arm,latency,status\n" + "\n".join(rows))
    log = read(path, status="status", ok=ok)
    assert log.missing is not None
    assert log.missing.sum(axis=0).tolist() == [0, 50]
    assert len(log.value) == 250
    if ok:
        with pytest.raises(rm.InputError, match="a success\\? Name those of success with --ok"):
            read(path, status="status")
    with pytest.raises(rm.InputError, match="no row has the status 'fine'"):
        read(path, status="status", ok=("fine",))


def test_words_for_a_failure_are_missing_outcomes(tmp_path: Path) -> None:
    path = write(tmp_path, lambda rng, arm, value: "timeout" if rng.random() < 0.1 else f"{value:.4f}")
    log = read(path)
    assert log.missing is not None
    assert log.missing.sum() == 2 * ROUNDS * AGENTS - len(log.value) > 0


def test_values_cut_off_at_a_limit(tmp_path: Path) -> None:
    def capped(rng: np.random.Generator, arm: str, value: float) -> str:
        return f"{min(value, 40.0):.4f}"

    failures = check_failures(read(write(tmp_path, capped)))
    assert failures.limit == 40.0
    assert failures.at_limit.tolist() == sorted(failures.at_limit.tolist())
    assert not failures.hides_order(0)  # the better arm is cut off less
    assert failures.hides_order(1)
    assert check_failures(read(write(tmp_path, times_out(0.0)))).limit is None


@pytest.mark.parametrize("cost", ["much", "nan", "inf"])
def test_failure_costs_that_are_none(cost: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, times_out(0.1))
    with pytest.raises(SystemExit) as end:
        main(["advise", str(path), "--minimise", "--failure-cost", cost])
    assert end.value.code == 2
    assert "failure" in capsys.readouterr().err


def test_advice_says_that_it_cannot_tell_until_failures_have_a_cost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, times_out(0.3))
    advice = rm.advise(read(path), estimators=["clipped"])
    assert "quick looks best" in headline(advice)  # type: ignore[arg-type]
    assert "Until then the log cannot tell the best arm." in alarms(advice)[0]  # type: ignore[arg-type]
    with pytest.raises(SystemExit) as end:
        main(["advise", str(path), "--minimise", "--json", "--estimator", "clipped", "--failure-cost", "500"])
    assert end.value.code == 0
    said = json.loads(capsys.readouterr().out)
    assert said["model"]["enough"]["best_arm"] == "steady"
    assert said["failures"]["cost"] == 500
    assert said["failures"]["differ"] is True
    assert [row["missing"] > 0 for row in said["failures"]["arms"]] == [True, False]
    assert "steady is the best arm" in said["headline"]
