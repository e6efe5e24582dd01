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

from live.processes import COMMAND, free_ports, wait_until
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
    write_mesh(path, file)


def play(ports: list[int], rounds: int) -> None:
    """In turns: a follower copies what its leader does meanwhile."""
    rng = random.Random(2)
    with ExitStack() as stack:
        clients = [stack.enter_context(Client(f"http://127.0.0.1:{port}", timeout=60.0)) for port in ports]
        for _ in range(rounds):
            for client in clients:
                choice = client.choose()
                client.observe(choice, cost(choice.arm, rng))


def is_ready(port: int) -> bool:
    try:
        with Client(f"http://127.0.0.1:{port}", timeout=60.0) as client:
            return bool(client.status()["ready"])
    except NodeError:
        return False


@pytest.mark.slow
def test_from_a_log_to_nodes_and_back(tmp_path: Path) -> None:
    write_log(tmp_path / "yesterday.csv")
    asked = ("--minimise", "--unit", "ms", "--estimator", "clipped")  # a mean that needs little memory
    call(tmp_path, "advise", "yesterday.csv", *asked, "--write", "mesh.toml")
    assert "3 nodes with keys" in call(tmp_path, "mesh", "adopt", "--address", "127.0.0.1:{port}")
    path = tmp_path / "mesh.toml"
    ports, http = free_ports(6)[:3], free_ports(6)[3:]
    for name, port in zip(NODES, ports, strict=True):
        move(path, name, f"127.0.0.1:{port}")
    explore(path)
    mesh = read_mesh(path)
    assert list(mesh.ids) == NODES
    assert mesh.file.games[0].objective == "minimise"
    processes = []
    try:
        for name, port in zip(NODES, http, strict=True):
            words = ["node", "--name", name, "--http", f"127.0.0.1:{port}"]
            with (tmp_path / f"{name}.log").open("wb") as log:
                processes.append(
                    subprocess.Popen(
                        [sys.executable, "-c", COMMAND, *words], cwd=tmp_path, stderr=log, stdout=log
                    )
                )
        for port in http:
            wait_until(lambda port=port: is_ready(port))  # type: ignore[misc]
        play(http, ROUNDS)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(120)
    call(tmp_path, "mesh", "export", *(f"{name}.data" for name in NODES), "--out", "today.csv")
    rows = list(csv.DictReader((tmp_path / "today.csv").read_text().splitlines()))
    assert len(rows) == 3 * ROUNDS
    assert all(float(row["cost"]) > 0 for row in rows)
    said = " ".join(call(tmp_path, "advise", "today.csv", *asked).split())
    assert "3 agents, 3 arms" in said
    assert "Recommended: " in said
    again = " ".join(call(tmp_path, "advise", "--like", "mesh.toml", "today.csv").split())
    assert "setting in the file" in again
