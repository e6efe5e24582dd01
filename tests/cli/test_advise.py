"""`rumormill advise` and `rumormill coverage`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import rumormill as rm
from rumormill.advice.tails import LEAST_VALUES

Cli = Callable[..., Any]
SMALL = ("--network", "ring n=6", "--horizon", "40", "--trials", "5")


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    laws = {name: rm.AlphaStable(alpha=1.5, loc=mean) for name, mean in (("north", 0.0), ("south", 2.0))}
    pl.DataFrame({name: law.sample(rng, 400) for name, law in laws.items()}).write_csv(
        tmp_path / "mirrors.csv"
    )
    return tmp_path / "mirrors.csv"


def test_advice_on_traces(cli: Cli, traces: Path, tmp_path: Path) -> None:
    said = cli("advise", str(traces), *SMALL)
    assert said.code == 0
    for words in ("Tails: mirrors", "north", "cannot tell", "recommended", "messages / round", "- ε = "):
        assert words in said.out
    code = said.out.strip().splitlines()[-1].removeprefix("Recommended: ")
    assert isinstance(eval(code, {"rm": rm}).moments, rm.Moments)
    for suffix in ("png", "svg"):
        assert (tmp_path / "runs" / "advice-mirrors" / f"pareto.{suffix}").stat().st_size > 1_000


def test_advice_as_json_is_the_same_every_time(cli: Cli, traces: Path) -> None:
    first = cli("advise", str(traces), *SMALL, "--json", "--out", "here")
    assert first.code == 0
    advice = json.loads(first.out)
    assert advice["network"] == {"agents": 6, "links": 6, "diameter": 3}
    assert [tail["arm"] for tail in advice["tails"]] == ["north", "south"]
    assert set(advice["moments"]) == {"eps", "u", "rho"}
    assert [row for row in advice["settings"] if row["recommended"]] == [
        {key: value for key, value in advice["recommendation"].items() if key != "code"}
    ]
    assert advice["figures"] == ["here/pareto.png", "here/pareto.svg"]
    assert cli("advise", str(traces), *SMALL, "--json", "--out", "here").out == first.out


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
        (["gone.csv", *SMALL], "gone.csv: there is no such file"),
        (["sheet.xlsx", *SMALL], "sheet.xlsx is no table: its name must end in .csv"),
        (["fig9"], "there is no experiment 'fig9'"),
        (["mirrors.csv"], 'come without a network: add for example --network "erdos_renyi n=50 p=0.1"'),
        (["mirrors.csv", *SMALL, "--column", "east"], "has no column 'east'"),
        (["mirrors.csv", *SMALL, "--column", "north"], "'north' is the only column"),
        (["mirrors.csv", *SMALL, "--estimator", "mode"], "estimator 'mode' is unknown"),
        (["mirrors.csv", "--network", "rings n=6"], "network.kind = 'rings' is not allowed"),
        (["fig1a", "--column", "north"], "--column is for recorded rewards"),
        (["fig1f"], "fig1f sweeps"),
        (["short.csv", *SMALL], f"short.csv has 3 rows: too few to learn from, give at least {LEAST_VALUES}"),
        (["holes.csv", *SMALL], "holes.csv: column 'b', row 2 holds 'NaN'"),
    ],
)
def test_wrong_questions_get_one_line(
    words: list[str], message: str, cli: Cli, traces: Path, tmp_path: Path
) -> None:
    (tmp_path / "short.csv").write_text("a,b\n1,2\n3,4\n5,6\n")
    (tmp_path / "holes.csv").write_text("a,b\n1,2\n3,NaN\n5,6\n")
    said = cli("advise", *words)
    assert said.code == 2
    assert message in said.err
    assert len(said.err.strip().splitlines()) == 1
    assert not (tmp_path / "runs").exists()


def test_coverage_as_table_and_figure(cli: Cli, tmp_path: Path) -> None:
    said = cli("coverage", "--n", "60", "--repeats", "300", "--delta", "0.1", "--law", "student-t df=1.8")
    assert said.code == 0
    assert "theory constants" in said.out
    assert "at most δ" in said.out
    assert "empirical" not in said.out  # it has no lemma
    for suffix in ("png", "svg"):
        assert (tmp_path / "runs" / "coverage" / f"coverage.{suffix}").stat().st_size > 1_000


def test_coverage_as_json(cli: Cli) -> None:
    said = cli(
        *("coverage", "--n", "20", "--delta", "0.01", "--zeta", "0.05", "--repeats", "400", "--json"),
        *(
            "--law",
            "gaussian scale=2.0",
            "--mean",
            "1.5",
            "--estimator",
            "empirical",
            "--estimator",
            "trimmed",
        ),
    )
    assert said.code == 0
    answer = json.loads(said.out)
    assert answer["law"] == "Gaussian(loc=1.5, scale=2.0)"
    assert [row["estimator"] for row in answer["rows"]] == ["empirical", "trimmed"]
    plain = answer["rows"][0]
    # A radius of 0.05 sqrt(4 ln 100 / 20) is a tenth of a standard deviation of the mean: about 46 % on each
    # side are outside.
    assert plain["radius"] == pytest.approx(0.05 * np.sqrt(4 * np.log(100) / 20))
    assert plain["low"] < 0.457 < plain["high"]
    assert plain["rate"] == max(plain["above"], plain["below"]) / 400
    assert plain["failures"] == "above δ"


def test_where_there_is_no_radius(cli: Cli) -> None:
    said = cli("coverage", "--n", "5", "--delta", "0.01", "--repeats", "10", "--estimator", "catoni")
    assert said.code == 0
    assert "no radius" in said.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--delta", "1.5"], "--delta = 1.5 is not allowed: a number between 0 and 1"),
        (["--estimator", "mode"], "estimator = 'mode' is not allowed"),
        (["--estimator", "empirical"], "it is a baseline without a lemma"),
        (["--law", "cauchy"], "arms.law = 'cauchy' is not allowed"),
        (["--law", "pareto tail=1.5", "--eps", "0.7"], "eps = 0.7 is not allowed"),
        (["--eps", "1"], "eps = 1.0 is not allowed: a number below 0.9"),
        (["--eps", "0"], "eps = 0.0 is not allowed"),
        (["--zeta", "1", "--c", "1"], "give exactly one of c and zeta"),
        (["--confidence", "2"], "confidence = 2.0 is not allowed"),
    ],
)
def test_wrong_questions_about_coverage(words: list[str], message: str, cli: Cli) -> None:
    said = cli("coverage", "--repeats", "10", *words)
    assert said.code == 2
    assert message in said.err
    assert len(said.err.strip().splitlines()) == 1
