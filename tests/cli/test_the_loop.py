"""From a log to a mesh, to live nodes that play it, to their log, and back to advice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from helpers.played_mesh import play_mesh, play_rounds
from rumormill.mesh.file import read_mesh, write_mesh

Cli = Callable[..., Any]
CLIENTS, ROUNDS, LATENCY = 6, 160, (10.0, 12.0)


def round_trips(seed: int, rounds: int = ROUNDS) -> np.ndarray:
    noise = np.random.default_rng(seed).gamma(2.0, 3.0, (rounds, CLIENTS, len(LATENCY)))
    return np.asarray(LATENCY) + noise - 6.0


def test_from_a_log_to_live_nodes_and_back(cli: Cli, tmp_path: Path) -> None:
    values = round_trips(1)
    columns: dict[str, Any] = {
        "time": np.repeat(np.arange(ROUNDS), CLIENTS),
        "client": [f"c{v}" for v in range(CLIENTS)] * ROUNDS,
        "south": values[:, :, 0].ravel(),  # not in the order of the alphabet
        "north": values[:, :, 1].ravel(),
    }
    pl.DataFrame(columns).write_csv("mirrors.csv")
    told = cli(
        *[
            "advise",
            "mirrors.csv",
            "--minimise",
            "--unit",
            "ms",
            "--estimator",
            "clipped",
            "--write",
            "mesh.toml",
        ]
    )
    assert told.code == 0, told.err
    assert "rumormill mesh adopt --mesh mesh.toml" in told.err
    simulated = cli(
        *[
            "simulate",
            "--mesh",
            "mesh.toml",
            "--arms",
            "gaussian",
            "--horizon",
            "40",
            "--trials",
            "2",
            "--json",
        ]
    )
    assert simulated.code == 0, simulated.err
    shown = cli("mesh", "show", "--mesh", "mesh.toml")
    assert shown.code == 0, shown.err
    assert "game mirrors: minimise over south, north" in shown.out
    if any(read_mesh(Path("mesh.toml")).links.values()):
        assert cli("mesh", "plan", "--mesh", "mesh.toml").code == 0

    file = read_mesh(Path("mesh.toml")).file
    file.games[0].prior = None  # nodes that know the arms would hardly try the worse one again
    write_mesh(Path("mesh.toml"), file)
    costs = round_trips(2)

    def pay(v: int, t: int, arm: int) -> float:
        return -float(costs[t - 1, v, arm])

    folders = play_mesh(read_mesh(Path("mesh.toml")), "mirrors", pay, ROUNDS, tmp_path)
    assert cli("mesh", "export", *map(str, folders), "--mesh", "mesh.toml", "--out", "log.csv").code == 0
    log = pl.read_csv("log.csv")
    assert set(log["arm"]) == {"north", "south"}
    assert log["cost"].to_numpy().mean() > 5  # costs come out as costs
    asked = cli("advise", "log.csv")
    assert asked.code == 2
    assert "--minimise" in asked.err
    fresh = cli("advise", "log.csv", "--minimise")
    assert fresh.code == 0, fresh.err
    again = cli("advise", "--like", "mesh.toml", "log.csv")
    assert again.code == 0, again.err
    assert "The setting in the file is still right" in " ".join(again.out.split())
    # The next mesh starts where this one ended: with its prior, and with the better mirror.
    carried = cli("mesh", "adopt", "--mesh", "mesh.toml", "--from", *map(str, folders))
    assert carried.code == 0, carried.err
    assert f"game mirrors: a prior for {CLIENTS} nodes from {CLIENTS * ROUNDS:,} observations" in carried.out
    costs = round_trips(3)
    firsts = play_rounds(read_mesh(Path("mesh.toml")), "mirrors", pay, 3)
    assert firsts == [[0] * CLIENTS] * 3  # without it all try the other one in round 2
