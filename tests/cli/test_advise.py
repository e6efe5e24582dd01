"""`rumormill advise`: logs and specs, words and JSON, mesh files, and one line for every wrong question."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rumormill as rm
from rumormill.advice.mesh_output import read_setting

Cli = Callable[..., Any]
# A third of the settings, for what does not depend on how many are tried.
CLIPPED = ("--minimise", "--estimator", "clipped")
SMALL = ("--network", "ring n=6", "--horizon", "40", "--trials", "5")


def values_of(seed: int, swapped: bool = False) -> np.ndarray:
    """Round-trip times of six clients to three mirrors; for half of the clients another mirror is near."""
    rng = np.random.default_rng(seed)
    near = np.array([[20.0, 30.0, 40.0]] * 3 + [[30.0, 20.0, 40.0]] * 3)
    return (near[::-1] if swapped else near) + rng.gamma(2.0, 2.0, (120, 6, 3))


def write_log(path: Path, values: np.ndarray) -> Path:
    rounds, agents, arms = values.shape
    columns: dict[str, Any] = {
        "time": np.repeat(np.arange(rounds), agents),
        "client": [f"c{v}" for _ in range(rounds) for v in range(agents)],
        "region": ["eu"] * (rounds * agents),
    }
    columns |= {f"mirror{k}": values[:, :, k].ravel() for k in range(arms)}
    pl.DataFrame(columns).write_csv(path)
    return path


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "mirrors.csv", values_of(1))


def test_advice_on_a_log(cli: Cli, log: Path, tmp_path: Path) -> None:
    said = cli("advise", str(log), "--minimise", "--unit", "ms", "--write", "mesh.toml")
    assert said.code == 0, said.err
    words = " ".join(said.out.split())
    for sentence in (
        "mirrors: 2,160 values, 6 agents, 3 arms",
        "Less is better (minimise).",
        "there are 2 groups of agents with different best arms",
        "group 1: best mirror0, 3 agents: c0, c1, c2",
        "Nothing changes over time",
        "Ignored 1 column: 'region'.",
        "always the own best arm:",
        "ms per request",
        "Recommended: ",
    ):
        assert sentence in words
    assert max(len(line) for line in said.out.splitlines()) <= 80
    code = words.split("In Python: ")[1]
    assert isinstance(eval(code, {"rm": rm}).moments, rm.Moments)
    for name in ("model.png", "price.svg", "advice.html"):
        assert (tmp_path / "runs" / "advice-mirrors" / name).stat().st_size > 1_000
    mesh = tomllib.loads((tmp_path / "mesh.toml").read_text())
    assert mesh["games"][0]["arms"] == ["mirror0", "mirror1", "mirror2"]
    assert (mesh["games"][0]["objective"], mesh["games"][0]["unit"]) == ("minimise", "ms")
    assert [node["name"] for node in mesh["nodes"]] == [f"c{v}" for v in range(6)]
    again = read_setting(tmp_path / "mesh.toml")
    assert again.network.n_agents == 6
    if again.setting.cooperates:
        assert not set(mesh["nodes"][0]["neighbours"]) & {"c3", "c4", "c5"}


def test_forty_columns_are_enough(cli: Cli, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    said = cli("advise", str(log), "--minimise")
    assert said.code == 0
    assert max(len(line) for line in said.out.splitlines()) <= 40


def test_advice_as_json_is_the_same_every_time(cli: Cli, log: Path) -> None:
    words = ("advise", str(log), *CLIPPED, "--json", "--out", "here")
    first = cli(*words)
    assert first.code == 0
    advice = json.loads(first.out)
    assert advice["objective"] == "minimise"
    assert advice["model"]["same_arms"]["best_arm_differs"] is True
    assert [group["best_arm"] for group in advice["model"]["same_arms"]["groups"]] == ["mirror0", "mirror1"]
    assert advice["model"]["drift"]["drifts"] is False
    assert set(advice["settings"][0]) <= set(advice["recommendation"])
    assert sum(row["recommended"] for row in advice["candidates"]) == 1
    assert set(advice["gain"]) == {"value", "low", "high", "unit", "means"}
    assert "here/advice.html" in advice["files"]
    assert cli(*words).out == first.out


def test_the_advice_is_printed_even_if_nothing_can_be_written(cli: Cli, log: Path, tmp_path: Path) -> None:
    (tmp_path / "full").write_text("a file where a folder should be")
    said = cli("advise", str(log), *CLIPPED, "--out", "full")
    assert said.code == 0
    assert "Recommended: " in said.out
    assert "not written: full" in said.err


def test_yesterdays_setting_on_new_logs(cli: Cli, log: Path, tmp_path: Path) -> None:
    assert cli("advise", str(log), *CLIPPED, "--write", "mesh.toml").code == 0
    write_log(tmp_path / "today.csv", values_of(2))
    same = cli("advise", "--like", "mesh.toml", "today.csv")
    assert same.code == 0, same.err
    assert "The setting in the file is still right" in " ".join(same.out.split())
    answer = json.loads(cli("advise", "--like", "mesh.toml", "today.csv", "--json").out)
    assert answer["still_right"] is True
    assert answer["advice"]["objective"] == "minimise"
    fewer = pl.read_csv("today.csv").filter(pl.col("client") != "c4")
    fewer.write_csv("fewer.csv")
    other = cli("advise", "--like", "mesh.toml", "today.csv", "--maximise")
    assert other.code == 2
    assert "mesh.toml says minimise: leave --maximise out" in other.err
    lost = cli("advise", "--like", "mesh.toml", "fewer.csv")
    assert lost.code == 2
    assert "the log has nothing of node 'c4'" in lost.err


def test_advice_on_a_spec_with_its_own_network(cli: Cli, spec_file: Path) -> None:
    said = cli("advise", str(spec_file), "--horizon", "40", "--trials", "5", "--json")
    assert said.code == 0
    advice = json.loads(said.out)
    assert advice["network"]["agents"] == 6
    assert advice["moments"] == pytest.approx({"eps": 1.0, "u": 2.0, "rho": 1.0})
    assert {row["tail"] for row in advice["tails"]} == {"known from the law: every moment is finite"}


def test_advice_on_a_named_spec_elsewhere(cli: Cli) -> None:
    said = cli("advise", "fig1a", *SMALL)
    assert said.code == 0
    assert "Tails: fig1a" in said.out
    assert "6 agents, diameter 3" in said.out
    assert "ε = 0.765: moments are finite below order 1.9." in said.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gone.csv", "--minimise"], "gone.csv: there is no such file"),
        (["sheet.xlsx", "--minimise"], "sheet.xlsx is no table: its name must end in .csv"),
        (["fig9"], "there is no experiment 'fig9'"),
        (["mirrors.csv"], "is more better, or less? Say --maximise for rewards, --minimise for costs"),
        (["latency.csv"], "'latency' suggests that less is better: say so with --minimise"),
        (["mirrors.csv", "--minimise", "--column", "east"], "has no column 'east'"),
        (["mirrors.csv", "--minimise", "--column", "mirror1"], "'mirror1' is the only arm"),
        (["mirrors.csv", "--minimise", "--estimator", "mode"], "estimator 'mode' is unknown"),
        (["mirrors.csv", "--minimise", "--estimator", "empirical"], "the empirical mean alone cannot be"),
        (["mirrors.csv", "--minimise", "--network", "rings n=6"], "'rings' is not allowed"),
        (["mirrors.csv", "--minimise", "--network", "ring n=7"], "the network has 7 agents, the log 6"),
        (["mirrors.csv", "--minimise", "--horizon", "50"], "--horizon, --trials and --scale are for specs"),
        (["mirrors.csv", "--like", "gone.toml"], "gone.toml: there is no such file"),
        (["mirrors.csv", "--like", "gone.toml", "--write", "new.toml"], "--unit are not for --like"),
        (["fig1a", "--column", "north"], "are for logs: a spec says all itself"),
        (["fig1f"], "fig1f sweeps"),
        (["short.csv", "--minimise"], "short.csv has 6 values: too few to learn from, give at least 100"),
        (["words.csv", "--minimise"], "words.csv: column 'b', row 2 holds 'often'"),
    ],
)
def test_wrong_questions_get_one_line(
    words: list[str], message: str, cli: Cli, log: Path, tmp_path: Path
) -> None:
    (tmp_path / "short.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    (tmp_path / "words.csv").write_text("a,b\n1,2\n3,often\n5,6\n")
    (tmp_path / "latency.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    said = cli("advise", *words)
    assert said.code == 2, said.out
    assert message in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_simulate_plays_a_mesh(cli: Cli, log: Path) -> None:
    assert cli("advise", str(log), *CLIPPED, "--write", "mesh.toml").code == 0
    said = cli(
        "simulate", "--mesh", "mesh.toml", "--arms", "gaussian", "--horizon", "60", "--trials", "2", "--json"
    )
    assert said.code == 0, said.err
    assert "the mesh" in said.out


def test_simulate_plays_a_mesh_without_moments_and_says_that_its_prior_is_left_out(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "hand.toml").write_text(
        'name = "m"\n[[games]]\nname = "g"\narms = ["x", "y"]\n[games.policy]\ntype = "kmp"\ngamma = 1\n'
        "[games.prior]\nmean = [1, 2]\nn = [3, 4]\n[games.scales]\na = 2.0\n"
        '[[nodes]]\nname = "a"\nid = 0\naddress = "h:1"\n'
    )
    said = cli("simulate", "--mesh", "hand.toml", "--horizon", "3", "--trials", "1", "--json")
    assert said.code == 0, said.err
    assert "the prior of the mesh file is left out" in said.err
    assert "offsets and scales of the mesh file are left out" in said.err
