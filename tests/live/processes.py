"""Meshes of real processes on loopback, for tests: made in a folder, started, killed, asked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from scripts.ports import free_ports

from rumormill.live.io.client import Client
from rumormill.mesh.edit import add, init, plan
from rumormill.mesh.file import GamePart, Limits, read_mesh, write_mesh

GAME = "mirrors"
ARMS = ["fra", "ams", "waw"]
COMMAND = "from rumormill.cli import main; main()"


def wait_until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


class Cluster:
    """Nodes of one mesh as processes."""

    def __init__(
        self,
        folder: Path,
        edges: Sequence[tuple[int, int]],
        *,
        gamma: int = 1,
        policy: str = "",
        signed: bool = False,
    ) -> None:
        self.folder = folder
        size = 1 + max(max(edge) for edge in edges)
        self.names = [f"n{v}" for v in range(size)]
        ports = free_ports(2 * size)
        self.ports, self.http = ports[:size], ports[size:]
        settings: dict[str, Any] = {"type": policy or "decentralized", "gamma": gamma}
        if not policy:
            settings["clique_filter"] = False
        game = GamePart(
            name=GAME,
            arms=ARMS,
            policy=settings,
            objective="minimise",
            unit="ms",
            moments={"eps": 0.5, "u": 150.0, "rho": 100.0},
        )
        self.mesh = init(folder, "test", game, signed=signed)
        for v, name in enumerate(self.names):
            links = [self.names[a] for a, b in edges if b == v]
            add(self.mesh, name, f"127.0.0.1:{self.ports[v]}", links)
        plan(self.mesh)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def limits(self, **given: Any) -> None:
        file = read_mesh(self.mesh).file
        file.limits = Limits(**given)
        write_mesh(self.mesh, file)

    def start(self, v: int, *, wait: bool = True) -> None:
        words = ["node", "--mesh", str(self.mesh), "--name", self.names[v], "--data", str(self.data(v))]
        words += ["--http", f"127.0.0.1:{self.http[v]}"]
        log = (self.folder / f"{self.names[v]}.log").open("ab")
        self.processes[v] = subprocess.Popen([sys.executable, "-c", COMMAND, *words], stderr=log, stdout=log)
        log.close()
        if wait:
            wait_until(lambda: self.ready(v))

    def data(self, v: int) -> Path:
        return self.folder / f"{self.names[v]}.data"

    def client(self, v: int) -> Client:
        return Client(f"http://127.0.0.1:{self.http[v]}", timeout=60.0)

    def ready(self, v: int) -> bool:
        assert self.processes[v].poll() is None, (self.folder / f"{self.names[v]}.log").read_text()
        try:
            with self.client(v) as client:
                return bool(client._exchange("GET", "/readyz", None)[0] == 200)
        except OSError:
            return False

    def status(self, v: int) -> dict[str, Any]:
        with self.client(v) as client:
            return client.status()

    def log(self, v: int) -> list[dict[str, Any]]:
        text = (self.folder / f"{self.names[v]}.log").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def kill(self, v: int, number: int = signal.SIGKILL) -> int:
        process = self.processes.pop(v)
        process.send_signal(number)
        return process.wait(120)

    def hang_up(self, v: int) -> None:
        os.kill(self.processes[v].pid, signal.SIGHUP)

    def samples(self, v: int) -> int:
        return sum(row["samples"] for row in self.status(v)["games"][GAME]["arms"])


@contextmanager
def cluster(folder: Path, edges: Sequence[tuple[int, int]], **given: Any) -> Iterator[Cluster]:
    """A mesh whose processes are all gone afterwards."""
    made = Cluster(folder, edges, **given)
    try:
        yield made
    finally:
        for process in made.processes.values():
            process.kill()
            process.wait()


@contextmanager
def page_of(made: Cluster, nodes: Sequence[int]) -> Iterator[str]:
    """`rumormill mesh watch … --http`: where the page of these nodes is."""
    (port,) = free_ports(1)
    urls = [f"http://127.0.0.1:{made.http[v]}" for v in nodes]
    words = [sys.executable, "-c", COMMAND, "mesh", "watch", *urls, "--http", f"127.0.0.1:{port}"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            assert running.stdout.readline() == f"the page of {len(urls)} nodes: http://127.0.0.1:{port}/\n"
            yield f"http://127.0.0.1:{port}"
        finally:
            running.terminate()  # Ctrl-C is ignored where the tests run in the background
