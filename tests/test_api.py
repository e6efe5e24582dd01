"""The flat public API: `compare`, experiments and advice from files, names and objects."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rumormill as rm
from helpers.small_games import BANDIT, NETWORK, EpsilonGreedy
from rumormill.errors import SlowEngineNotice
from rumormill.stats import exact_median, least_trials

POLICIES = {"together": rm.KMPUCB(gamma=2), "alone": rm.RobustUCB(), "by name": "consensus"}
SPEC = {
    "name": "tiny",
    "seed": 1,
    "horizon": 10,
    "trials": 2,
    "network": {"kind": "ring", "n": 4},
    "arms": {"law": "gaussian", "K": 2},
    "policies": [{"type": "kmp"}, {"type": "robust"}],
}


# --- compare --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [1, 2])
def test_compare_equals_simulate_of_each(workers: int) -> None:
    size: dict[str, Any] = {"horizon": 40, "trials": 3, "rng": 7, "actions": True}
    found = rm.compare(BANDIT, NETWORK, POLICIES, workers=workers, **size)
    assert found.names == list(POLICIES)
    for name, policy in POLICIES.items():
        alone = rm.simulate(BANDIT, NETWORK, policy, **size)
        np.testing.assert_array_equal(found.results[name].actions, alone.actions)
        np.testing.assert_array_equal(found.results[name].regret, alone.regret)
        assert found.results[name].policy is policy


def test_compare_with_faults_and_a_random_network() -> None:
    size: dict[str, Any] = {
        "horizon": 40,
        "rng": 3,
        "actions": True,
        "channel": {"type": "imperfect", "p": 0.5},
    }
    network = {"kind": "erdos_renyi", "n": 6, "p": 0.5}
    found = rm.compare(BANDIT, network, {"a": rm.KMPUCB(gamma=2), "b": "robust"}, **size)
    alone = rm.simulate(BANDIT, network, rm.KMPUCB(gamma=2), **size)
    np.testing.assert_array_equal(found.results["a"].actions, alone.actions)


def test_both_engines_in_one_comparison() -> None:
    seen = []
    with pytest.warns(SlowEngineNotice):
        found = rm.compare(
            BANDIT,
            NETWORK,
            [EpsilonGreedy, "robust"],
            horizon=20,
            trials=3,
            rng=0,
            progress=lambda done, total: seen.append((done, total)),
        )
    assert [result.engine for result in found.results.values()] == ["reference", "fast"]
    assert seen[-1] == (120, 120)


def test_a_list_is_named_after_classes() -> None:
    policies = [rm.KMPUCB(gamma=1), rm.KMPUCB(gamma=2), "robust", {"type": "robust", "zeta": 2.0}]
    found = rm.compare(BANDIT, NETWORK, policies, horizon=20, rng=0)
    assert found.names == ["KMP (gamma=1)", "KMP (gamma=2)", "robust", "Robust"]
    twice = rm.compare(BANDIT, NETWORK, ["kmp", "kmp"], horizon=20, rng=0)
    assert twice.names == ["kmp", "kmp #2"]


def test_differences_and_ratios_are_paired_medians_with_exact_intervals() -> None:
    found = rm.compare(BANDIT, NETWORK, POLICIES, horizon=30, trials=12, rng=0, confidence=0.9)
    first, second = (found.results[name].regret[:, -1] for name in ("together", "alone"))
    each = 1 - 0.1 / 3  # three pairs
    assert found.difference("together", "alone") == exact_median(first - second, each)
    ratio = found.ratio("together", "alone")
    assert ratio == exact_median(first / second, each)
    assert ratio.low <= ratio.estimate <= ratio.high
    assert len(found.pairs()) == 3
    assert found.pairs()[0]["ratio"] == ratio.estimate
    rows = {row["policy"]: row for row in found.table()}
    assert rows[found.best]["ratio"] == 1
    assert rows["alone"]["regret"] == pytest.approx(second.mean())
    lines = repr(found).splitlines()
    assert lines[0].startswith("12 trials of 30 rounds")
    assert [line.split()[0] for line in lines[1:]] == [
        *("policy", "together", "alone", "by"),
        *(sentence.split()[0] for sentence in found.verdicts()),
    ]


def test_verdicts_name_the_winner_or_say_what_is_missing() -> None:
    found = rm.compare(BANDIT, NETWORK, ["robust", "kmp"], horizon=60, trials=12, rng=0)
    ratio = found.ratio("kmp", "robust")
    assert ratio.high < 1
    assert found.verdicts() == [
        f"kmp beats robust: {ratio.estimate:.2f} times its regret ({ratio.low:.2f} to {ratio.high:.2f})"
    ]
    few = rm.compare(BANDIT, NETWORK, ["robust", "kmp"], horizon=60, trials=3, rng=0)
    assert few.verdicts() == ["kmp against robust: not decided, 6 trials are needed, 3 trials played"]


def test_a_median_that_the_mean_contradicts_decides_nothing() -> None:
    """Twelve trials: the first is better in eleven of them and loses all in one."""
    size: dict[str, Any] = {"horizon": 20, "trials": 12, "rng": 0}
    result = rm.simulate(BANDIT, NETWORK, "kmp", **size)
    lost = np.ones_like(result.agent_regret)
    lost[0] = 1000
    results = {
        "a": replace(result, agent_regret=lost),
        "b": replace(result, agent_regret=2 * np.ones_like(lost)),
    }
    (said,) = rm.Comparison(results).verdicts()
    assert said.startswith("b against a: not decided, 2.00 times its regret")
    assert said.endswith("the mean and most trials disagree")


@pytest.mark.parametrize(("trials", "known"), [(least_trials(0.95) - 1, False), (least_trials(0.95), True)])
def test_too_few_trials_give_no_interval(trials: int, known: bool) -> None:
    found = rm.compare(BANDIT, NETWORK, ["kmp", "robust"], horizon=20, trials=trials, rng=0)
    assert found.ratio("kmp", "robust").known is known


def test_a_comparison_is_drawn() -> None:
    found = rm.compare(BANDIT, NETWORK, ["kmp", "robust"], horizon=20, trials=3, rng=0)
    axes = found.plot()
    assert {"KMP", "Robust"} <= set(axes.get_legend_handles_labels()[1])
    assert found.plot(axes) is axes


@pytest.mark.parametrize(
    ("policies", "said"),
    [
        ({}, "policies is empty"),
        ([], "policies is empty"),
        ("kmp", "a dict of names and policies, or a list"),
        ({1: "kmp"}, "named by text"),
        (["kmpp"], "did you mean 'kmp'"),
    ],
)
def test_wrong_policies(policies: Any, said: str) -> None:
    with pytest.raises(rm.InputError, match=said):
        rm.compare(BANDIT, NETWORK, policies, horizon=20, rng=0)


def test_wrong_names_and_confidence() -> None:
    found = rm.compare(BANDIT, NETWORK, ["kmp", "robust"], horizon=20, rng=0)
    with pytest.raises(rm.InputError, match="did you mean 'robust'"):
        found.ratio("kmp", "robst")
    with pytest.raises(rm.InputError, match="confidence = 1"):
        rm.compare(BANDIT, NETWORK, ["kmp"], horizon=20, rng=0, confidence=1)


# --- experiments and advice -----------------------------------------------------------------------------


def test_a_run_from_a_table_a_file_a_name_and_a_spec(tmp_path: Path) -> None:
    spec = rm.read_spec(SPEC)
    first = rm.run(spec, tmp_path / "spec")
    assert rm.run(SPEC, tmp_path / "table").frame.equals(first.frame)
    assert rm.open_run(tmp_path / "spec").frame.equals(first.frame)
    assert rm.load(tmp_path / "spec").equals(first.frame)
    assert rm.summarise(tmp_path / "spec").policies == rm.summarise(first).policies == ["KMP", "Robust"]
    small = rm.run("fig1a", tmp_path / "named", scale="quick", trials=1, horizon=10)
    assert (small.done, small.spec.size.horizon) == (True, 10)


def test_a_run_goes_to_the_folder_of_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rm.run(SPEC, trials=1).path == Path("runs/tiny-1x10")


def test_a_file_goes_before_a_shipped_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert rm.read_spec("fig1a").name == "fig1a"
    policies, arms = '[[policies]]\ntype = "kmp"\n', '[arms]\nlaw = "gaussian"\nK = 2\n'
    network = '[network]\nkind = "ring"\nn = 4\n'
    Path("fig1a").write_text(
        'name = "mine"\nseed = 1\nhorizon = 10\ntrials = 1\n' + network + arms + policies
    )
    assert rm.read_spec("fig1a").name == "mine"


def test_advice_on_a_log_its_file_and_a_spec(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    path = tmp_path / "mirrors.csv"
    rows = [f"{t},c{v},{20 + rng.gamma(2):.3f},{30 + rng.gamma(2):.3f}" for t in range(60) for v in range(3)]
    path.write_text("\n".join(["time,client,near,far", *rows]))
    log = rm.read_log(path, objective="minimise", unit="ms")
    assert (log.arms, log.n_agents) == (("near", "far"), 3)
    assert rm.read_log(path, objective="minimise", arms=["far", "near"]).n_arms == 2
    from_file: Any = rm.advise(path, objective="minimise", unit="ms", estimators=["trimmed"])
    from_log: Any = rm.advise(log, estimators=["trimmed"])
    assert from_file.as_dict() == from_log.as_dict()
    assert from_log.code.startswith("rm.")
    size: dict[str, Any] = {"estimators": ["trimmed"], "horizon": 20, "trials": 5}
    on_spec: Any = rm.advise(rm.read_spec(SPEC), **size)
    assert on_spec.as_dict() == rm.advise(rm.read_spec(SPEC), rm.Network.ring(4), **size).as_dict()
    with pytest.raises(rm.InputError, match="a log is replayed as it is"):
        rm.advise(log, horizon=20)
    anything: Any = 5
    with pytest.raises(rm.InputError, match="a log, a spec, or the path of one"):
        rm.advise(anything)


# --- imports --------------------------------------------------------------------------------------------


def test_the_import_loads_no_room() -> None:
    code = "import sys, rumormill; print(*sorted({'numpy', *dir(rumormill)} & set(sys.modules)))"
    code += "; print(*[name for name in sys.modules if name.startswith('rumormill')])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["rumormill"]
