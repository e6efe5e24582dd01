"""Every command with sizes that a user may type: it works, or refuses in one line."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rumormill.cli.app import COMMANDS

SETTINGS = settings(
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
NUMBERS = itertools.count()  # of folders: examples of one test share a directory

horizons, trials = st.integers(6, 230), st.integers(1, 6)  # experiments refuse horizons below K
agents, arms, seeds = st.integers(3, 12), st.integers(2, 6), st.integers(0, 99)


def spec_text(horizon: int, trials: int, n: int, k: int, checkpoints: int | None = None) -> str:
    marks = "" if checkpoints is None else f"checkpoints = {checkpoints}"
    return f"""
name = "any"
seed = 5
horizon = {horizon}
trials = {trials}
{marks}

[network]
kind = "ring"
n = {n}

[arms]
law = "gaussian"
K = {k}

[[policies]]
type = "kmp"
zeta = 1.0

[[policies]]
type = "robust"
zeta = 1.0
"""


def succeeds(cli: Any, *words: object) -> str:
    """The command works; what it printed."""
    answer = cli(*map(str, words))
    assert answer.code == 0, answer.err
    return str(answer.out)


def works_or_refuses(cli: Any, *words: object) -> None:
    answer = cli(*map(str, words))
    assert answer.code in (0, 2), answer.err
    assert "a defect" not in answer.err
    if answer.code == 2:
        assert [line.startswith("error: ") for line in answer.err.splitlines()[-1:]] == [True]


def new_run(cli: Any, horizon: int, trials: int, n: int, k: int, checkpoints: int | None = None) -> Path:
    number = next(NUMBERS)
    file, folder = Path(f"any{number}.toml"), Path(f"run{number}")
    file.write_text(spec_text(horizon, trials, n, k, checkpoints))
    succeeds(cli, "run", file, "--out", folder, "--no-report")
    frame = pl.read_parquet(folder / "results.parquet")
    assert frame["t"].max() == horizon
    assert frame["t"].n_unique() == min(checkpoints or 200, horizon)
    return folder


@settings(SETTINGS, max_examples=6)
@example(horizon=218, trials=13, n=7, k=2, checkpoints=None)
@given(
    horizon=horizons,
    trials=trials,
    n=agents,
    k=arms,
    checkpoints=st.one_of(st.none(), st.integers(1, 300)),
)
def test_run_show_compare(cli: Any, horizon: int, trials: int, n: int, k: int, checkpoints: int) -> None:
    first = new_run(cli, horizon, trials, n, k, checkpoints)
    assert "KMP" in succeeds(cli, "show", first)
    second = new_run(cli, horizon, trials, n + 1, k, checkpoints)
    assert "KMP" in succeeds(cli, "compare", first, second)


@settings(SETTINGS, max_examples=1)
@example(horizon=2, trials=1, n=3, k=2)
@given(horizon=horizons, trials=trials, n=agents, k=arms)
def test_report_and_figure(cli: Any, horizon: int, trials: int, n: int, k: int) -> None:
    folder = new_run(cli, horizon, trials, n, k)
    succeeds(cli, "report", folder, "--no-figures", "--bounds")
    succeeds(cli, "figure", folder, "--only", "regret")
    assert (folder / "report.html").is_file()


@settings(SETTINGS, max_examples=3)
@example(horizon=218, trials=1)
@given(horizon=horizons, trials=st.integers(1, 2))
def test_reproduce(cli: Any, horizon: int, trials: int) -> None:
    folder = f"reproduced{next(NUMBERS)}"
    words = ("--horizon", horizon, "--trials", trials, "--out", folder, "--no-report")
    assert "The claims" in succeeds(cli, "reproduce", "fig1a", *words)


@settings(SETTINGS, max_examples=6)
@example(horizon=218, trials=13, n=7, k=2, seed=1)
@given(horizon=horizons, trials=trials, n=agents, k=arms, seed=seeds)
def test_simulate(cli: Any, horizon: int, trials: int, n: int, k: int, seed: int) -> None:
    words = ("--network", f"ring n={n}", "--arms", f"gaussian K={k}", "--horizon", horizon)
    assert "Robust" in succeeds(cli, "simulate", *words, "--trials", trials, "--seed", seed)


@settings(SETTINGS, max_examples=4)
@given(horizon=horizons, n=st.integers(3, 40), k=arms, rounds=st.integers(1, 40), shown=st.integers(2, 40))
def test_watch(cli: Any, horizon: int, n: int, k: int, rounds: int, shown: int) -> None:
    file = Path(f"watched{next(NUMBERS)}.toml")
    file.write_text(spec_text(horizon, 1, n, k))
    page = file.with_suffix(".html")
    succeeds(cli, "watch", file, "--rounds", rounds, "--agents", shown, "-o", page)
    assert page.is_file()


@settings(SETTINGS, max_examples=25)
@given(
    kind=st.sampled_from(["ring", "path", "star", "complete", "erdos_renyi", "barabasi_albert", "grid"]),
    n=st.integers(0, 14),
    other=st.integers(0, 6),
    seed=seeds,
)
def test_network(cli: Any, kind: str, n: int, other: int, seed: int) -> None:
    more = {"erdos_renyi": ["p=0.5"], "barabasi_albert": [f"m={other}"]}
    words = [f"rows={n}", f"cols={other}"] if kind == "grid" else [f"n={n}", *more.get(kind, [])]
    works_or_refuses(cli, "network", kind, *words, "--seed", seed)


@settings(SETTINGS, max_examples=3)
@example(n=1, repeats=1, delta=0.1, law="gaussian")
@given(
    n=st.integers(1, 150),
    repeats=st.integers(1, 50),
    delta=st.floats(0.001, 0.5),
    law=st.sampled_from(["gaussian", "alpha-stable alpha=1.9", "pareto tail=2.5"]),
)
def test_coverage(cli: Any, n: int, repeats: int, delta: float, law: str) -> None:
    out = f"coverage{next(NUMBERS)}"
    words = ("--n", n, "--repeats", repeats, "--delta", delta, "--law", law, "--out", out)
    works_or_refuses(cli, "coverage", *words, "--estimator", "trimmed", "--estimator", "median-of-means")


@settings(SETTINGS, max_examples=3)
@example(rounds=1, n=1, k=1, seed=1)
@given(rounds=st.integers(1, 60), n=st.integers(1, 4), k=st.integers(1, 3), seed=seeds)
def test_advise(cli: Any, rounds: int, n: int, k: int, seed: int) -> None:
    values = np.random.default_rng(seed).gamma(2.0, 2.0, (rounds * n, k)) + np.arange(k)
    table: dict[str, Any] = {
        "time": np.repeat(np.arange(rounds), n),
        "agent": np.tile([f"a{v}" for v in range(n)], rounds),
    }
    number = next(NUMBERS)
    log = Path(f"log{number}.csv")
    pl.DataFrame(table | {f"arm{i}": values[:, i] for i in range(k)}).write_csv(log)
    works_or_refuses(cli, "advise", log, "--minimise", "--estimator", "trimmed", "--out", f"advice{number}")


@settings(SETTINGS, max_examples=3)
@given(nodes=st.integers(0, 5), k=st.integers(1, 4), gamma=st.integers(0, 4))
def test_mesh(cli: Any, nodes: int, k: int, gamma: int) -> None:
    folder = Path(f"mesh{next(NUMBERS)}")
    named = [word for i in range(k) for word in ("--arm", f"arm{i}")]
    works_or_refuses(cli, "mesh", "init", "any", *named, "--gamma", gamma, "--folder", folder)
    file = folder / "mesh.toml"
    if not file.exists():
        return
    for v in range(nodes):
        linked = ("--link", f"n{v - 1}") if v else ()
        succeeds(cli, "mesh", "add", f"n{v}", f"127.0.0.1:{7000 + v}", *linked, "--mesh", file)
    works_or_refuses(cli, "mesh", "plan", "--mesh", file)
    works_or_refuses(cli, "mesh", "show", "--mesh", file)


@pytest.mark.parametrize("horizon", [1, 2, 3])
def test_horizons_below_the_number_of_arms(cli: Any, horizon: int) -> None:
    succeeds(cli, "simulate", "--arms", "gaussian K=4", "--network", "ring n=3", "--horizon", str(horizon))


# Sizes of the arena: tests/arena/test_arena.py.
@pytest.mark.parametrize(
    "words",
    [
        ("list", "specs"),
        ("data",),
        ("node", "--name", "n0"),
        ("arena", "--suite", "nothing.toml"),
        ("evaluate", "nothing.csv"),
    ],
)
def test_commands_without_sizes(cli: Any, words: tuple[str, ...]) -> None:
    works_or_refuses(cli, *words)


def test_every_command_is_here() -> None:
    text = Path(__file__).read_text()
    assert [name for name in COMMANDS if f'"{name}"' not in text] == []
