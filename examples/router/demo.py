"""`make router-demo`: four gateways route model traffic, each with a node beside it.

The fleet's fastest provider has a brown-out; one node is killed and comes back, one is cut off from the
others. Beside it, on the same requests and a fleet of their own, run the gateway's own rules.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

from fleet import FLEET, TIMEOUT  # noqa: E402
from load import drive, post  # noqa: E402
from scores import Row, Truth, score, table  # noqa: E402
from scripts.mesh_demo import Cable, wait_for  # noqa: E402
from scripts.ports import free_ports  # noqa: E402

from rumormill.live.io.client import Client, NodeError  # noqa: E402
from rumormill.mesh.edit import add, init  # noqa: E402
from rumormill.mesh.file import GamePart, PlanPart, read_mesh, write_mesh  # noqa: E402

GAME = "chat"
OURS = "rumormill"
POLICY = {
    "type": "decentralized",
    "gamma": 1,
    "clique_filter": False,
    "zeta": 0.03,
    "forget": {"discount": 0.99},  # a memory of about 25 requests of each of four gateways
}
BROWN_OUT = (0.35, 0.60)
"""Of the running time."""


class Mesh:
    """A node beside every gateway, all linked."""

    def __init__(self, folder: Path, size: int, scale: float) -> None:
        self.folder, self.names = folder, [f"n{v}" for v in range(size)]
        ports = free_ports(2 * size)
        self.listen, self.http = ports[:size], ports[size:]
        u = 3.0 * scale**1.5  # above the 1.5th moment of every provider's costs, the brown-out's too
        moments = {"eps": 0.5, "u": u, "rho": u}
        game = GamePart(
            name=GAME,
            arms=[each.name for each in FLEET],
            policy=POLICY,
            objective="minimise",
            unit="s",
            moments=moments,
        )
        self.mesh = init(folder, "router", game)
        for v, name in enumerate(self.names):
            add(self.mesh, name, f"127.0.0.1:{ports[v]}", self.names[:v])
        self.cable = Cable(self.listen[-1])  # to the last node; the others call it
        file = read_mesh(self.mesh).file
        file.plans[GAME] = PlanPart(gamma=1)  # as `rumormill mesh plan` writes it where all are linked
        file.nodes[-1].address = f"127.0.0.1:{self.cable.port}"
        write_mesh(self.mesh, file)
        self.processes: dict[int, subprocess.Popen[bytes]] = {}

    def start(self, v: int) -> None:
        words = ["node", "--mesh", str(self.mesh), "--name", self.names[v]]
        words += ["--data", str(self.folder / f"{self.names[v]}.data"), "--http", f"127.0.0.1:{self.http[v]}"]
        words += ["--listen", f"127.0.0.1:{self.listen[v]}"]
        with (self.folder / f"{self.names[v]}.log").open("ab") as log:
            command = [sys.executable, "-c", "from rumormill.cli import main; main()", *words]
            self.processes[v] = subprocess.Popen(command, stderr=log, stdout=log)

    def show(self) -> str:
        """One page for all nodes: where it is."""
        (port,) = free_ports(1)
        urls = [self.url(v) for v in range(len(self.names))]
        command = [sys.executable, "-c", "from rumormill.cli import main; main()", "mesh", "watch", *urls]
        command += ["--http", f"127.0.0.1:{port}"]
        self.processes[len(urls)] = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        return f"http://127.0.0.1:{port}/"

    def url(self, v: int) -> str:
        return f"http://127.0.0.1:{self.http[v]}"

    def status(self, v: int) -> dict[str, Any] | None:
        try:
            with Client(self.url(v), timeout=2.0, attempts=1) as client:
                return client.status()
        except NodeError:
            return None

    def ready(self, v: int) -> bool:
        found = self.status(v)
        return found is not None and bool(found["ready"])

    def stop(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            process.wait(20)


def start_fleet(
    ports: Sequence[int], log: Path, given: argparse.Namespace, began: float
) -> subprocess.Popen[bytes]:
    """The providers of one rule."""
    first, last = (share * given.seconds for share in BROWN_OUT)
    words = ["--ports", *map(str, ports), "--seed", str(given.seed), "--began", str(began), "--log", str(log)]
    words += ["--brown-out", str(first), str(last), "--scale", str(given.scale)]
    return subprocess.Popen(
        [sys.executable, str(HERE / "fleet.py"), *words], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
    )


def say(text: str) -> None:
    print(text, flush=True)


def story(mesh: Mesh, began: float, seconds: float) -> None:
    """One node is killed and comes back, one is cut off for a while."""
    last = len(mesh.names) - 1
    steps = [
        (0.20, "n1 is killed (kill -9)", lambda: mesh.processes.pop(1).kill()),
        (BROWN_OUT[0], f"{FLEET[0].name} has a brown-out", lambda: None),
        (0.40, "n1 is started again", lambda: mesh.start(1)),
        (0.45, f"n{last} is cut off from the other nodes", mesh.cable.cut),
        (BROWN_OUT[1], f"{FLEET[0].name} is well again", lambda: None),
        (0.70, f"n{last} is linked again", lambda: setattr(mesh.cable, "whole", True)),
    ]
    for share, text, act in steps:
        time.sleep(max(0.0, began + share * seconds - time.time()))
        act()
        say(f"{time.time() - began:5.1f} s  {text}")


class LiteLLMGateways:
    """Processes with LiteLLM's Router; LiteLLM is imported once, in the process that forks them."""

    def __init__(self, mesh: Mesh, ports: dict[str, list[int]], given: argparse.Namespace) -> None:
        from gateway import PRELOAD, Task, run

        os.environ |= {"PYTHONPATH": os.pathsep.join(sys.path), PRELOAD: "1"}  # for the process that forks
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["__main__", "gateway"])
        self.tasks = [
            Task(
                rule,
                name,
                mesh.url(v),
                providers,
                given.rate,
                given.seconds,
                given.seed,
                given.scale * TIMEOUT,
                given.seconds_per_dollar,
                mesh.folder / f"{rule}-{name}.json",
            )
            for rule, providers in ports.items()
            for v, name in enumerate(mesh.names if rule == OURS else mesh.names[: given.others])
        ]
        self.barrier, self.begin = context.Barrier(len(self.tasks) + 1), context.Value("d", 0.0)
        self.processes = [
            context.Process(target=run, args=(task, self.barrier, self.begin)) for task in self.tasks
        ]
        for process in self.processes:
            process.start()

    def run(self, start: Callable[[], float]) -> None:
        """Wait until all are ready, then begin at the moment that `start` returns."""
        while self.barrier.n_waiting < len(self.tasks):
            if any(process.exitcode for process in self.processes):
                raise SystemExit("a gateway ended before it began")
            time.sleep(0.1)
        self.begin.value = start()
        self.barrier.wait()

    def results(self) -> dict[str, list[Row]]:
        """What every gateway wrote, by rule."""
        found: dict[str, list[Row]] = {}
        for task, process in zip(self.tasks, self.processes, strict=True):
            process.join()
            found.setdefault(task.rule, []).append(json.loads(task.out.read_text(encoding="utf-8")))
        return found

    def stop(self) -> None:
        for process in self.processes:
            process.kill()


class ProxyGateways:
    """Reverse proxies as processes, with the load of all in threads of this one."""

    def __init__(self, mesh: Mesh, ports: dict[str, list[int]], given: argparse.Namespace) -> None:
        self.given, self.processes, self.urls = given, [], []
        self.found: dict[str, list[Row]] = {rule: [] for rule in ports}
        for rule, providers in ports.items():
            for v, (name, own) in enumerate(zip(mesh.names, free_ports(len(mesh.names)), strict=True)):
                words = [
                    f"{each.name}=http://127.0.0.1:{port}"
                    for each, port in zip(FLEET, providers, strict=True)
                ]
                words += ["--port", str(own), "--timeout", str(given.scale * TIMEOUT)]
                words += ["--failure", str(given.scale * TIMEOUT / 20)]
                words += ["--node", mesh.url(v)] if rule == OURS else []
                command = [sys.executable, str(HERE / "proxy.py"), *words]
                self.processes.append(subprocess.Popen(command, stdout=subprocess.PIPE))
                self.urls.append((rule, name, own))

    def run(self, start: Callable[[], float]) -> None:
        """Wait until all are ready, then begin at the moment that `start` returns."""
        for _, _, own in self.urls:
            wait_for("a proxy", lambda own=own: is_open(own))
        self.thread = threading.Thread(target=lambda: asyncio.run(self._load(start())))
        self.thread.start()

    async def _load(self, began: float) -> None:
        async def one(rule: str, name: str, own: int) -> None:
            given = self.given
            rows = await drive(
                lambda key: post(f"http://127.0.0.1:{own}", key),
                name,
                rate=given.rate,
                start=began,
                until=began + given.seconds,
                seed=given.seed,
            )
            self.found[rule].append({"rows": rows, "faults": {}})

        await asyncio.gather(*(one(*each) for each in self.urls))

    def results(self) -> dict[str, list[Row]]:
        """What every gateway saw, by rule; those with a node say at their end how it answered."""
        self.thread.join()
        self.stop()
        for (rule, _, _), process in zip(self.urls, self.processes, strict=True):
            said = process.communicate()[0].splitlines()
            if rule == OURS:
                self.found[rule].append({"rows": [], "faults": {}, **json.loads(said[-1])})
        return self.found

    def stop(self) -> None:
        for process in self.processes:
            process.terminate()


def is_open(port: int) -> bool:
    with socket.socket() as trial:
        return trial.connect_ex(("127.0.0.1", port)) == 0


def play(folder: Path, given: argparse.Namespace) -> list[Row]:
    """The whole demonstration."""
    mesh = Mesh(folder, given.gateways, given.scale)
    rules = [OURS, "random"] if given.proxy else [OURS, "lowest latency", "random", "weighted"]
    ports = {rule: free_ports(len(FLEET)) for rule in rules}
    fleets: list[subprocess.Popen[bytes]] = []
    gateways: LiteLLMGateways | ProxyGateways | None = None
    began = 0.0

    def begin() -> float:
        nonlocal began
        began = time.time() + 2.0
        fleets.extend(start_fleet(own, folder / f"{rule}.log", given, began) for rule, own in ports.items())
        for own in ports.values():
            wait_for("the fleet", lambda own=own: all(map(is_open, own)))
        return began

    try:
        for v in range(given.gateways):
            mesh.start(v)
        gateways = (ProxyGateways if given.proxy else LiteLLMGateways)(mesh, ports, given)
        for v in range(given.gateways):
            wait_for(f"n{v}", lambda v=v: mesh.ready(v))
        say(f"{given.gateways} gateways with a node each; look at {mesh.show()} meanwhile")
        gateways.run(begin)
        story(mesh, began, given.seconds)
        found = gateways.results()
        truth = Truth(given.seed, given.scale, tuple(share * given.seconds for share in BROWN_OUT))
        rows = [
            score(
                rule,
                [row for each in found[rule] for row in each["rows"]],
                read(folder / f"{rule}.log"),
                truth,
            )
            for rule in rules
        ]
        tell(rows, found, truth, mesh)
        return rows
    finally:
        if gateways is not None:
            gateways.stop()
        for fleet in fleets:
            fleet.terminate()
        mesh.stop()


def tell(rows: list[Row], found: dict[str, list[Row]], truth: Truth, mesh: Mesh) -> None:
    """The table, and what became of the goals."""
    for brown, when in ((False, "usually"), (True, "in the brown-out")):
        means = ", ".join(f"{name} {1000 * mean:.0f}" for name, mean in truth.means(brown).items())
        say(f"mean ms to the first token {when}: {means}")
    say("\n" + table(rows) + "\n")
    own, others = rows[0], rows[1:]
    best = min(others, key=lambda row: row["excess"])
    share = own["excess"] / best["excess"]
    say(f"excess latency: {share:.2f} of the gateway's best own rule ({best['rule']}); goal 0.50")
    say(f"requests of a gateway until it leaves the brown-out: {own['leaves']}; goal 50")
    counts: Counter[str] = Counter()
    for each in found[OURS]:
        counts.update(each.get("counts", {}))
        counts.update({f"fault {name}": n for name, n in each["faults"].items()})
    took = [second for each in found[OURS] for second in each.get("choose", ())]
    late = [row["late"] for each in found[OURS] for row in each["rows"]]
    if took:
        statuses = [mesh.status(v) for v in range(len(mesh.names))]
        within = [status["choose"] for status in statuses if status is not None]
        middle, high = (max(each[key] or 0.0 for each in within) for key in ("p50_ms", "p99_ms"))
        say(f"choose in the slowest node: {middle:.2f} ms (median), {high:.2f} ms (99 %); goal 2 ms")
        say(f"choose as a gateway sees it: {quantiles(took)}")
        say(f"a gateway's event loop comes late by: {quantiles(late)}")
    say(f"requests that never reached a provider: {own['lost']}; goal 0; {dict(counts)}")


def quantiles(seconds: Sequence[float]) -> str:
    ordered = sorted(seconds)
    middle, high = (1000 * ordered[int(q * len(ordered))] for q in (0.5, 0.99))
    return f"{middle:.2f} ms (median), {high:.2f} ms (99 %)"


def read(log: Path) -> list[Row]:
    return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=80.0, help="of load")
    parser.add_argument("--rate", type=float, default=3.5, help="requests a second of every gateway")
    parser.add_argument("--gateways", type=int, default=4)
    parser.add_argument(
        "--others", type=int, default=2, help="gateways of every other rule; they share nothing"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--scale", type=float, default=1.0, help="factor of all times to the first token")
    parser.add_argument("--seconds-per-dollar", type=float, default=0.0, help="λ of the recipe")
    parser.add_argument(
        "--proxy", action="store_true", help="without LiteLLM: the reverse proxy, by node and at random"
    )
    parser.add_argument("--json", type=Path, help="write the table as JSON too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rumormill-router-") as name:
        rows = play(Path(name), given)
    if given.json is not None:
        given.json.write_text(json.dumps(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
