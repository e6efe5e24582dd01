"""Off-policy estimates: coverage under heavy tails, refusals, and propensities that fit the choices."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import rumormill as rm
from rumormill.advice.off_policy import evaluate
from rumormill.cli import main
from rumormill.errors import DataError, InputError
from rumormill.policies.base import argmax_chances

ROWS, LOGS = 4_800, 100


def log_of(rng: np.random.Generator, law: str) -> tuple[Any, Any, Any]:
    """Arms 0 to 2 by probabilities that change; arm 2 has the mean 3."""
    p = rng.dirichlet([4.0, 2.0, 1.0], 16).clip(0.03)
    p = (p / p.sum(axis=1, keepdims=True))[np.arange(ROWS) * 16 // ROWS]
    arm = (rng.random(ROWS)[:, None] > p.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    noise = {
        "pareto 1.6": rng.pareto(1.6, ROWS) - 1 / 0.6,
        "pareto 2.5": rng.pareto(2.5, ROWS) - 1 / 1.5,
        "log-normal": rng.lognormal(0.0, 1.5, ROWS) - np.exp(1.125),
        "t 2.5": rng.standard_t(2.5, ROWS),
    }[law]
    return arm, 1.0 + arm + noise, p[np.arange(ROWS), arm]


@pytest.mark.parametrize("law", ["pareto 1.6", "pareto 2.5", "log-normal", "t 2.5"])
def test_intervals_hold_for_heavy_tails(law: str) -> None:
    """Both miss 5 % of the time at most; an interval that does exceeds the limit with probability 1e-6."""
    rng = np.random.default_rng(11)
    misses = np.zeros(2, int)
    for _ in range(LOGS):
        arm, x, p = log_of(rng, law)
        found = evaluate(arm, x, p, "0=0.2,2=0.8")
        truth = 0.2 * 1.0 + 0.8 * 3.0
        misses += [not each.low <= truth <= each.high for each in (found.ips, found.doubly_robust)]
    assert (misses <= binom.ppf(1 - 1e-6, LOGS, 0.05)).all(), misses


def test_the_doubly_robust_one_is_narrower_where_values_are_far_from_zero() -> None:
    arm, x, p = log_of(np.random.default_rng(3), "t 2.5")
    found = evaluate(arm, x + 50.0, p, "always=2")
    ips, robust = found.ips, found.doubly_robust
    assert robust.high - robust.low < 0.5 * (ips.high - ips.low)
    assert abs(robust.estimate - 53.0) < 1.0


def test_what_the_log_cannot_tell() -> None:
    arm, x, p = log_of(np.random.default_rng(5), "t 2.5")
    cases: list[tuple[str, Any, str]] = [
        ("no choice of", (arm, x, p), "always=7"),
        ("that were drawn, 240", (np.where(np.arange(ROWS) < 40, arm, 0), x, p), "always=2"),
        ("deterministic", (arm, x, np.ones(ROWS)), "always=2"),
        ("do not fit", (arm, x, np.full(ROWS, 0.9)), "always=2"),
        ("taken with less than 1 %", (arm, x, np.full(ROWS, 1e-3)), "always=2"),
        ("not allowed", (arm, x, p), "0=0.5,1=0.4"),
    ]
    for words, given, policy in cases:
        with pytest.raises(InputError, match=words):
            evaluate(given[0], given[1], given[2], policy)
    with pytest.raises(DataError, match="propensities above 0"):
        evaluate(arm, x, np.zeros(ROWS), "uniform")


def test_choices_that_were_fixed_are_left_out() -> None:
    """As if they were not in the log, but for what was paid; else the weights would not average 1."""
    arm, x, p = log_of(np.random.default_rng(7), "t 2.5")
    begin = np.arange(ROWS) < 600
    mixed = evaluate(np.where(begin, 0, arm).tolist(), x, np.where(begin, 1.0, p), "always=2")
    alone = evaluate(arm[~begin], x[~begin], p[~begin], "always=2")
    assert (mixed.fixed, alone.fixed) == (600, 0)
    assert (mixed.ips, mixed.doubly_robust, mixed.rows) == (alone.ips, alone.doubly_robust, alone.rows)
    assert mixed.logged.estimate == pytest.approx(x.mean())


def test_chances_of_normal_draws() -> None:
    """By hand: two arms, P(first is larger) = Φ(gap/√(s² + s′²)); Φ(1) = 0.841345."""
    found = argmax_chances([1.0, 9.9, 0.0], [0.6, 1.0, 0.8], [0, 2])
    assert found[0] == pytest.approx(0.841345, abs=1e-6)
    assert argmax_chances([1.0, 0.0], [0.0, 0.0], [0, 1]) == {0: 1.0, 1: 0.0}


@pytest.mark.parametrize(
    "policy",
    [
        rm.EpsilonGreedy(gamma=1, rate=0.3),
        rm.ThompsonKMP(gamma=1),
        rm.Default(gamma=1),
        rm.AlphaStableTS(gamma=1, moments=rm.Moments(eps=0.8, u=3.0, rho=3.0)),
        rm.DPE2(gamma=1, zeta=1.0, leaders=[0], moments=rm.Moments(eps=0.8, u=3.0, rho=3.0)),
    ],
    ids=lambda policy: policy.label,
)
def test_propensities_are_the_frequencies_of_choices(policy: Any) -> None:
    """One agent with 40 samples of every arm decides 800 times; 5 standard deviations: 1e-6 each."""
    rng = np.random.default_rng(2)
    agent = policy.agent(rm.Seat(agent=0, n_arms=3, part=policy.plan(rm.Network.path(2)).part(0)))
    for t, (arm, x) in enumerate(zip(np.arange(120) % 3, rng.standard_t(3.0, 120), strict=True), 1):
        agent.choose(t)
        agent.observe(t, int(arm), float(x) + 0.1 * arm)
    for start, allowed in ((1_000, None), (2_000, [0, 2])):
        counts, chances = np.zeros(3), np.zeros(3)
        for t in range(start, start + 800):
            counts[agent.rank(t, allowed)[0]] += 1
            assert agent.drawn is not None
            for arm, chance in agent.drawn().items():
                chances[arm] += chance / 800
        assert chances.sum() == pytest.approx(1.0)
        deviation = np.sqrt(np.maximum(chances * (1 - chances), 1e-3) * 800)
        assert (np.abs(counts - 800 * chances) < 5 * deviation).all(), (counts, chances)


@pytest.mark.filterwarnings("ignore::rumormill.SlowEngineNotice")
def test_from_a_simulation_to_an_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bandit = rm.Bandit([rm.StudentT(df=3.0, loc=loc) for loc in (0.0, 1.0)])
    given: Any = {"horizon": 1_000, "rng": 4, "actions": True, "rewards": True, "propensities": True}
    played = rm.simulate(bandit, rm.Network.ring(4), rm.EpsilonGreedy(gamma=1, rate=0.4), **given)
    assert played.actions is not None
    assert played.rewards is not None
    assert played.propensities is not None
    assert set(np.round(played.propensities[0, 5:].ravel(), 9)) == {0.2, 0.8}
    rows = zip(
        *(each[0].ravel().tolist() for each in (played.actions, played.rewards, played.propensities)),
        strict=True,
    )
    with (tmp_path / "log.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("arm", "reward", "propensity"), *rows])
    with pytest.raises(SystemExit) as left:
        main(["evaluate", str(tmp_path / "log.csv"), "--policy", "always=0", "--policy", "uniform", "--json"])
    assert left.value.code == 0
    worst, uniform = json.loads(capsys.readouterr().out)
    assert worst["doubly_robust"]["low"] < 0.0 < worst["doubly_robust"]["high"] < 0.5
    assert uniform["ips"]["low"] < 0.5 < uniform["ips"]["high"]
    with pytest.raises(InputError, match="without propensities"):
        rm.evaluate(tmp_path / "log.csv", "uniform", propensity="p")
    deterministic = rm.simulate(bandit, rm.Network.ring(3), "kmp", horizon=20, rng=1, propensities=True)
    assert deterministic.propensities is not None
    assert (deterministic.propensities == 1.0).all()
