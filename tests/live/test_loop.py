"""The loop closes: a log, its advice as a mesh file, nodes that play it, their log, and advice on that."""

from __future__ import annotations

import csv
import random
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from scripts.ports import free_ports

from live.processes import COMMAND, wait_until
from rumormill.live.io.client import Client, NodeError
from rumormill.mesh.edit import move
from rumormill.mesh.file import read_mesh, write_mesh

ARMS = {"fra": 20.0, "ams": 22.0, "waw": 24.0}
NODES = ["c0", "c1", "c2"]
ROUNDS = 120


def cost(arm: str, rng: random.Random) -> float:
    return ARMS[arm] + rng.gammavariate(2.0, 2.0)


def call(folder: Path, *words: str) -> str:
    """The command line; what it says."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def write_log(path: Path) -> None:
    rng = random.Random(1)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "client", *ARMS])
        for t in range(60):
            writer.writerows([t, name, *(cost(arm, rng) for arm in ARMS)] for name in NODES)


def explore(path: Path) -> None:
    """A mesh that has settled leaves too few values of the other arms to say anything about them.

    Followers of a leader hardly try some arms themselves, so everybody decides.
    With zeta = 1 the radius is m (2 ln t / n)^(eps/p), m = (E|cost|^p)^(1/p). Here eps = 0.76 and m = 42: of
    360 samples the slowest arm gets about 85 before its index is that of the others (160 and 115).
    """
    file = read_mesh(path).file
    advised = file.games[0].policy
    kept: dict[str, Any] = {key: advised[key] for key in ("estimator", "gamma") if key in advised}
    file.games[0].policy = {"type": "decentralized", "clique_filter": False, "zeta": 1.0, **kept}
    assert file.games[0].prior is not None  # the log knows; here everything is to be tried again
    file.games[0].prior = None
    write_mesh(path, file)


def play(ports: list[int], rounds: int) -> list[str]:
    """In turns: a follower copies what its leader does meanwhile. The arms that were chosen."""
    rng, arms = random.Random(2), []
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(f"http://127.0.0.1:{port}", timeout=60.0)) for port in ports]
        for _ in range(rounds):
            for client in clients:
                choice = client.choose()
                client.observe(choice, cost(choice.arm, rng))
                arms.append(choice.arm)
    return arms


def is_ready(port: int) -> bool:
    try:
        with Client(f"http://127.0.0.1:{port}", timeout=60.0) as client:
            return bool(client.status()["ready"])
    except NodeError:
        return False


def adopt(folder: Path) -> list[int]:
    """Addresses and keys for the mesh file of a folder; the HTTP ports of its nodes."""
    assert "3 nodes with keys" in call(folder, "mesh", "adopt", "--address", "127.0.0.1:{port}")
    ports = free_ports(6)
    for name, port in zip(NODES, ports[:3], strict=True):
        move(folder / "mesh.toml", name, f"127.0.0.1:{port}")
    return ports[3:]


def run_nodes(folder: Path, http: list[int], rounds: int) -> list[str]:
    """Start the nodes of a mesh, play, stop them; the arms that were chosen."""
    processes = []
    try:
        for name, port in zip(NODES, http, strict=True):
            words = ["node", "--name", name, "--http", f"127.0.0.1:{port}"]
            with (folder / f"{name}.log").open("wb") as log:
                processes.append(
                    subprocess.Popen(
                        [sys.executable, "-c", COMMAND, *words], cwd=folder, stderr=log, stdout=log
                    )
                )
        for port in http:
            wait_until(lambda port=port: is_ready(port))  # type: ignore[misc]
        return play(http, rounds)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(120)


@pytest.mark.slow
def test_from_a_log_to_nodes_and_back(tmp_path: Path) -> None:
    write_log(tmp_path / "yesterday.csv")
    asked = ("--minimise", "--unit", "ms", "--estimator", "clipped")  # a mean that needs little memory
    call(tmp_path, "advise", "yesterday.csv", *asked, "--write", "mesh.toml")
    http = adopt(tmp_path)
    (tmp_path / "advised.toml").write_bytes((tmp_path / "mesh.toml").read_bytes())
    explore(tmp_path / "mesh.toml")
    mesh = read_mesh(tmp_path / "mesh.toml")
    assert list(mesh.ids) == NODES
    assert mesh.file.games[0].objective == "minimise"
    assert set(run_nodes(tmp_path, http, ROUNDS)) == set(ARMS)
    call(tmp_path, "mesh", "export", *(f"{name}.data" for name in NODES), "--out", "today.csv")
    rows = list(csv.DictReader((tmp_path / "today.csv").read_text().splitlines()))
    assert len(rows) == 3 * ROUNDS
    assert all(float(row["cost"]) > 0 for row in rows)
    said = " ".join(call(tmp_path, "advise", "today.csv", *asked).split())
    assert "3 agents, 3 arms" in said
    assert "Recommended: " in said
    again = " ".join(call(tmp_path, "advise", "--like", "advised.toml", "today.csv").split())
    assert "setting in the file is still right: keep it" in again
    # The second mesh starts where the first ended: it knows the arms, and takes the best from the start.
    (tmp_path / "second").mkdir()
    call(tmp_path, "advise", "today.csv", *asked, "--write", "second/mesh.toml")
    second = read_mesh(tmp_path / "second" / "mesh.toml")
    (game,) = second.file.games
    assert game.prior is not None
    for name in NODES:
        known = dict(zip(game.arms, game.prior.nodes[name].mean, strict=True))
        assert min(known, key=lambda arm: known[arm]) == "fra"
        for arm, mean in known.items():
            tried = [float(row["cost"]) for row in rows if row["arm"] == arm]
            assert mean == pytest.approx(sum(tried) / len(tried), rel=0.25)
    assert set(run_nodes(tmp_path / "second", adopt(tmp_path / "second"), 5)) == {"fra"}
