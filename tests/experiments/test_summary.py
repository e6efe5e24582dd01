"""One summary per run: taken apart once, every band resampled once, the numbers those of the table."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from helpers.fake_runs import Key, made_up
from rumormill import catalogue
from rumormill.cli import main
from rumormill.errors import InputError
from rumormill.experiments import plan
from rumormill.experiments.analyse import measured
from rumormill.experiments.analyse import summary as summary_module
from rumormill.experiments.analyse.summary import compare, differences, summarise
from rumormill.experiments.figures import draw_all
from rumormill.experiments.report.html_page import write_report
from rumormill.experiments.run import manifest
from rumormill.experiments.run.runner import run
from rumormill.experiments.run.store import RunFolder
from rumormill.experiments.spec import reading
from rumormill.files import to_toml
from rumormill.stats import bootstrap_band

SPEC: dict[str, Any] = {
    "name": "counted",
    "seed": 3,
    "horizon": 40,
    "trials": 6,
    "network": {"kind": "ring", "n": 6},
    "arms": {"law": "alpha-stable", "alpha": 1.9, "K": 3},
    "policies": [{"type": kind} for kind in ("kmp", "decentralized", "robust")],
    "sweep": {"gamma": [1, 2]},
    "claims": [
        {"kind": "beats", "policy": "KMP", "than": "Robust"},
        {"kind": "matters", "policy": "KMP", "parameter": "gamma"},
    ],
}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    return run(reading.decode(SPEC), tmp_path_factory.mktemp("summary") / "run", 1)


def counted(monkeypatch: pytest.MonkeyPatch, calls: Counter[str], owner: Any, name: str) -> None:
    real: Callable[..., Any] = getattr(owner, name)

    def counting(*given: Any, **named: Any) -> Any:
        calls[name] += 1
        return real(*given, **named)

    monkeypatch.setattr(owner, name, counting)


@pytest.mark.parametrize("bounds", [False, True])
def test_everything_is_worked_out_once(
    swept: RunFolder, bounds: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terminal, figures and page of one run: 2 points of 3 policies, 3 claims (one at both points)."""
    calls: Counter[str] = Counter()
    counted(monkeypatch, calls, measured, "bootstrap_band")
    counted(monkeypatch, calls, manifest, "restore")
    counted(monkeypatch, calls, reading, "decode")
    counted(monkeypatch, calls, summary_module, "own_verdicts")
    makes: Counter[str] = Counter()
    real_make = catalogue.make

    def make(kind: str, *given: Any, **named: Any) -> Any:
        makes[kind] += 1
        return real_make(kind, *given, **named)

    monkeypatch.setattr(catalogue, "make", make)
    monkeypatch.setattr(plan, "_plans", OrderedDict())
    summary = summarise(RunFolder(swept.path, swept.manifest), bounds=bounds)
    assert len(summary.rows) == 6
    assert len(summary.verdicts) == 3
    draw_all(summary, tmp_path / "figures")
    write_report(summary, tmp_path / "report.html")
    assert summary.rows is summary.rows
    assert calls == {"bootstrap_band": 6, "restore": 1, "own_verdicts": 1}
    # Three play once more, to be watched; bounds need KMP and Decentralized at both points, Robust once.
    assert makes["policy"] == (5 if bounds else 3)


def test_a_command_reads_its_spec_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """From the file to figures and report: read and checked once, taken back from the manifest once."""
    (tmp_path / "counted.toml").write_text(to_toml({**SPEC, "trials": 2}))
    calls: Counter[str] = Counter()
    counted(monkeypatch, calls, measured, "bootstrap_band")
    counted(monkeypatch, calls, manifest, "restore")
    counted(monkeypatch, calls, reading, "decode")
    with pytest.raises(SystemExit) as end:
        main(["run", str(tmp_path / "counted.toml"), "--out", str(tmp_path / "run"), "--jobs", "1"])
    assert end.value.code == 0, capsys.readouterr().err
    assert (tmp_path / "run" / "report.html").exists()
    assert calls == {"bootstrap_band": 6, "restore": 1, "decode": 1}


def test_rows_are_those_of_the_table(swept: RunFolder) -> None:
    summary = summarise(swept)
    assert summary.points == [{"gamma": 1}, {"gamma": 2}] == swept.manifest.points
    assert [(row["gamma"], row["policy"]) for row in summary.rows] == [
        (gamma, policy) for gamma in (1, 2) for policy in swept.policies
    ]
    for row in summary.rows:
        last = swept.frame.filter(
            pl.col("policy") == row["policy"], pl.col("gamma") == row["gamma"], pl.col("t") == 40
        )
        assert row["trials"] == 6
        assert row["regret"] == pytest.approx(last["regret"].mean(), rel=1e-12)
        low, high = bootstrap_band(last.sort("trial")["regret"].to_numpy()[:, None])
        assert (row["low"], row["high"]) == pytest.approx((low[0], high[0]), rel=1e-12)
        assert row["median_agent"] == pytest.approx(last["agent_q50"].mean())
        assert row["worst_agent"] == pytest.approx(last["agent_max"].mean())
        assert row["messages_per_round"] == pytest.approx(last["messages"].to_numpy().mean() / 40)
        assert row["bytes_per_round"] == pytest.approx(last["wire_bytes"].to_numpy().mean() / 40)


def test_series_keep_trials_apart(swept: RunFolder) -> None:
    series = summarise(swept).of("KMP", {"gamma": 2})
    assert series.trials == list(range(6))
    assert series.regret.shape == (6, len(series.rounds))
    rows = swept.frame.filter(pl.col("policy") == "KMP", pl.col("gamma") == 2, pl.col("trial") == 3)
    np.testing.assert_array_equal(series.regret[3], rows.sort("t")["regret"].to_numpy())
    assert series.by_trial()[3] == series.regret[3, -1]


def test_a_run_under_way_counts_what_is_done(swept: RunFolder) -> None:
    half = RunFolder(swept.path, swept.manifest)
    rows = swept.frame.filter((pl.col("gamma") == 1) & (pl.col("trial") != 0))
    object.__setattr__(half, "frame", rows)  # fills the cache of the property
    summary = summarise(half)
    assert summary.points == [{"gamma": 1}]
    assert [row["trials"] for row in summary.rows] == [5, 5, 5]
    assert [verdict.claim for verdict in summary.verdicts] == ["KMP beats Robust at γ = 1"]


def test_a_sweep_of_words_and_numbers(tmp_path: Path) -> None:
    spec = {**SPEC, "sweep": {"gamma": [1, "half-diameter"]}, "claims": [], "trials": 2}
    summary = summarise(run(reading.decode(spec), tmp_path / "mixed", 1), bounds=True)
    assert summary.points == [{"gamma": "1"}, {"gamma": "half-diameter"}]
    assert summary.bounds is not None
    assert [game.values for game in summary.bounds.games] == summary.points


# --- two runs -------------------------------------------------------------------------------------------


def plain(**more: Any) -> dict[str, Any]:
    return {**{key: value for key, value in SPEC.items() if key not in ("sweep", "claims")}, **more}


def test_two_runs_are_compared_trial_by_trial() -> None:
    regret: dict[Key, float] = {"KMP": 100, "Decentralized": 200, "Robust": 300}
    first = made_up(plain(trials=12), regret, noise=0.01)
    second = made_up(plain(name="other", trials=12), {**regret, "KMP": 150}, noise=0.02)
    rows = compare(first, second)
    assert [row["policy"] for row in rows] == ["KMP", "Decentralized", "Robust"]
    assert rows[0]["change"] == pytest.approx(0.5, abs=0.02)
    assert rows[0]["low"] < rows[0]["change"] < rows[0]["high"]
    assert all(row["paired"] for row in rows)
    apart = compare(first, made_up(plain(seed=4, trials=12), {**regret, "KMP": 150}, noise=0.01))
    assert not any(row["paired"] for row in apart)
    assert apart[0]["high"] - apart[0]["low"] > 10 * (rows[0]["high"] - rows[0]["low"])
    assert differences(first, second) == [{"key": "name", "first": "counted", "second": "other"}]


def test_runs_of_different_experiments_have_nothing_to_compare(swept: RunFolder) -> None:
    regret: dict[Key, float] = {"KMP": 100, "Decentralized": 200, "Robust": 300}
    with pytest.raises(InputError, match="no policy at the same sweep point in common"):
        compare(summarise(swept), made_up(plain(), regret))
    assert differences(summarise(swept), summarise(swept)) == []


def test_constants_are_said_once_where_a_parameter_does_not_change_them(tmp_path: Path) -> None:
    spec = reading.decode(
        {
            "name": "few",
            "seed": 1,
            "horizon": 10,
            "trials": 1,
            "network": {"kind": "ring", "n": 6},
            "arms": {"law": "alpha-stable", "alpha": 1.9, "K": 2},
            "policies": [{"type": "kmp"}, {"type": "robust"}],
            "sweep": {"gamma": [1, 2], "confidence": ["paper", "anytime"]},
        }
    )
    found = summarise(run(spec, tmp_path / "run", 1))
    assert len(found.constants) == 8
    short = [(row["policy"], row["gamma"], row["confidence"]) for row in found.constants_in_short]
    assert short == [
        ("KMP", 1, "paper"),
        ("KMP", 1, "anytime"),
        ("KMP", 2, "paper"),
        ("KMP", 2, "anytime"),
        ("Robust", "any", "paper"),
        ("Robust", "any", "anytime"),
    ]
