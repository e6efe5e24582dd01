"""`rumormill coverage`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Cli = Callable[..., Any]


def test_coverage_as_table_and_figure(cli: Cli, tmp_path: Path) -> None:
    said = cli("coverage", "--n", "60", "--repeats", "300", "--delta", "0.1", "--law", "student-t df=1.8")
    assert said.code == 0
    assert "theory constants" in said.out
    assert "at most δ" in said.out
    assert "empirical" not in said.out  # it has no lemma
    for suffix in ("png", "svg"):
        assert (tmp_path / "runs" / "coverage" / f"coverage.{suffix}").stat().st_size > 1_000


def test_coverage_says_how_far_it_is(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rumormill.experiments.run.progress.LINE_EVERY_S", -1.0)
    words = ("--estimator", "trimmed", "--n", "10", "--n", "20", "--delta", "0.1", "--repeats", "50")
    said = cli("coverage", *words)
    assert said.code == 0
    assert said.err.splitlines()[:2] == ["1 of 2 rows, 0 s left", "2 of 2 rows, 0 s left"]


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
