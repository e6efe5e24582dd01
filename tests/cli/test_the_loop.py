"""From a log to a mesh, to live nodes that play it, to their log, and back to advice."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from helpers.lockstep import Lockstep, RoundNode
from rumormill.live.core.node_config import node_config
from rumormill.live.core.records import Own
from rumormill.live.io.journal import Journal
from rumormill.mesh.file import Mesh, read_mesh, write_mesh

Cli = Callable[..., Any]
CLIENTS, ROUNDS, LATENCY = 6, 160, (10.0, 12.0)


def round_trips(seed: int, rounds: int = ROUNDS) -> np.ndarray:
    noise = np.random.default_rng(seed).gamma(2.0, 3.0, (rounds, CLIENTS, len(LATENCY)))
    return np.asarray(LATENCY) + noise - 6.0


def _next(clock: Iterator[int]) -> float:
    return float(next(clock))


def play(mesh: Mesh, game: str, values: np.ndarray, folder: Path) -> list[Path]:
    """The nodes of a mesh in lock step on these costs; what each observed is in its own folder."""
    names = list(mesh.ids)
    nodes = [RoundNode(node_config(mesh, name, epoch=1)) for name in names]
    linked = {mesh.ids[name]: [mesh.ids[other] for other in mesh.links[name]] for name in names}
    step = Lockstep(nodes, linked, game)
    rounds = [
        [arm for (arm,) in step.play_round(t, lambda v, t, k: -values[t - 1, v, k])]
        for t in range(1, len(values) + 1)
    ]
    folders = []
    for v, name in enumerate(names):
        clock = itertools.count()
        owner = f"mesh {mesh.file.name}, node {name}"
        journal = Journal(folder / name, owner, fresh_epoch=lambda: 1, clock=functools.partial(_next, clock))
        written = threading.Semaphore(0)
        journal.start(lambda n, written=written: written.release())  # type: ignore[misc]
        for t, arms in enumerate(rounds, 1):
            journal.write([Own(game, t, arms[v], -float(values[t - 1, v, arms[v]]), t)])
            assert written.acquire(timeout=60)
        assert journal.close()
        folders.append(folder / name)
    return folders


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
    folders = play(read_mesh(Path("mesh.toml")), "mirrors", round_trips(2), tmp_path)
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
