"""`make mesh-demo`: eight nodes on this machine choose between mirrors with heavy-tailed latencies.

One node is killed and comes back, one is cut off for a while and catches up; a page shows it meanwhile. At
the end everybody knows everything, the log is exported, and what was lost is counted: nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from rumormill.errors import RumormillError
from rumormill.live.core.node_config import within
from rumormill.live.io.client import Client, NodeError
from rumormill.live.io.folder import export
from rumormill.mesh.edit import add, init, plan
from rumormill.mesh.file import GamePart, read_mesh, write_mesh

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from scripts.ports import free_ports  # noqa: E402

NODES = 8
GAME = "mirrors"
# Typical latencies in milliseconds; now and then one takes very long (Pareto, no variance).
MIRRORS = {"frankfurt": 42.0, "amsterdam": 35.0, "warsaw": 60.0, "lisbon": 48.0, "oslo": 75.0}


def latency(mirror: str, rng: random.Random) -> float:
    return MIRRORS[mirror] * 0.4 * rng.paretovariate(1.7)


class Cable:
    """Carries bytes between two ports, unless it is cut."""

    def __init__(self, target: int) -> None:
        self._target, self.whole = target, True
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._door.getsockname()[1])
        self._ends: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            near, _ = self._door.accept()
            try:
                if not self.whole:
                    raise OSError("cut")
                far = socket.create_connection(("127.0.0.1", self._target))
            except OSError:
                near.close()
                continue
            self._ends += [near, far]
            for one, two in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, two), daemon=True).start()

    def _carry(self, one: socket.socket, two: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                two.sendall(data)
        except OSError:
            pass
        one.close()
        two.close()

    def cut(self) -> None:
        self.whole = False
        for each in self._ends:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._ends.clear()


class Demo:
    """The mesh, its processes and its applications."""

    def __init__(self, folder: Path, rate: float) -> None:
        self.folder, self.rate = folder, rate
        ports = free_ports(2 * NODES)
        self.http = ports[NODES:]
        game = GamePart(
            name=GAME,
            arms=list(MIRRORS),
            policy={"type": "decentralized", "gamma": 2, "clique_filter": False, "zeta": 0.5},
            objective="minimise",
            unit="ms",
            moments={"eps": 0.5, "u": 900.0, "rho": 600.0},
        )
        self.mesh = init(folder, "demo", game)
        for v in range(NODES):  # a ring with two chords
            links = [f"n{v - 1}"] if v else []
            links += ["n0"] if v == NODES - 1 else []
            links += [f"n{v - 4}"] if v in (4, 6) else []
            add(self.mesh, f"n{v}", f"127.0.0.1:{ports[v]}", links)
        plan(self.mesh)
        # The last node's neighbours reach it, and it reaches them, through cables that can be cut.
        self.cables: list[Cable] = []
        file = read_mesh(self.mesh).file
        for node in file.nodes:
            if node.name == f"n{NODES - 1}":
                cable = Cable(int(node.address.rpartition(":")[2]))
                self.cables.append(cable)
                node.address = f"127.0.0.1:{cable.port}"
        write_mesh(self.mesh, file)
        self.listen = [f"127.0.0.1:{port}" for port in ports[:NODES]]
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.acknowledged = [0] * NODES
        self.missed = [0] * NODES
        self.ending = False

    def start(self, v: int) -> None:
        words = [
            "node",
            "--mesh",
            str(self.mesh),
            "--name",
            f"n{v}",
            "--data",
            str(self.folder / f"n{v}.data"),
        ]
        words += ["--http", f"127.0.0.1:{self.http[v]}", "--listen", self.listen[v]]
        log = (self.folder / f"n{v}.log").open("ab")
        self.processes[v] = subprocess.Popen(
            [sys.executable, "-c", "from rumormill.cli import main; main()", *words], stderr=log, stdout=log
        )
        log.close()

    def show(self) -> str:
        """One page for all nodes: where it is."""
        (port,) = free_ports(1)
        words = ["mesh", "watch", *(f"http://127.0.0.1:{each}" for each in self.http)]
        command = [sys.executable, "-c", "from rumormill.cli import main; main()", *words]
        command += ["--http", f"127.0.0.1:{port}"]
        self.processes[NODES] = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        return f"http://127.0.0.1:{port}/"

    def client(self, v: int) -> Client:
        return Client(f"http://127.0.0.1:{self.http[v]}")

    def application(self, v: int) -> None:
        rng = random.Random(v)
        client = self.client(v)
        while not self.ending:
            try:
                choice = client.choose(GAME)
                client.observe(choice, latency(choice.arm, rng))
                self.acknowledged[v] += 1
            except NodeError:
                self.missed[v] += 1
            time.sleep(1.0 / self.rate)

    def shares(self) -> str:
        """What the nodes choose by now."""
        counts: dict[str, int] = {}
        for v in range(NODES):
            try:
                with self.client(v) as client:
                    for row in client.status()["games"][GAME]["streams"]:
                        if row["node"] == f"n{v}" and row["prefers"]:
                            counts[row["prefers"]] = counts.get(row["prefers"], 0) + 1
            except NodeError:
                counts["(down)"] = counts.get("(down)", 0) + 1
        return ", ".join(f"{name} {n}" for name, n in sorted(counts.items(), key=lambda item: -item[1]))

    def samples(self, v: int) -> int:
        with self.client(v) as client:
            return sum(row["samples"] for row in client.status()["games"][GAME]["arms"])

    def stop(self) -> None:
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            process.wait(20)


def wait_for(what: str, true: object, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not true():  # type: ignore[operator]
        if time.monotonic() > end:
            raise SystemExit(f"{what}: waited in vain")
        time.sleep(0.1)


def is_ready(demo: Demo, v: int) -> bool:
    try:
        with demo.client(v) as client:
            return client._exchange("GET", "/readyz", None)[0] == 200
    except (OSError, RumormillError):
        return False


def play(demo: Demo, seconds: float) -> None:
    """The story: all start, one is killed, one is cut off, both come back."""
    for v in range(NODES):
        demo.start(v)
    for v in range(NODES):
        wait_for(f"n{v}", lambda v=v: is_ready(demo, v))
    print(f"eight nodes are up; look at {demo.show()}", flush=True)
    threads = [threading.Thread(target=demo.application, args=(v,), daemon=True) for v in range(NODES)]
    for thread in threads:
        thread.start()
    part = seconds / 5
    time.sleep(part)
    print(f"they choose: {demo.shares()}", flush=True)
    demo.processes.pop(3).kill()
    print("n3 is killed (kill -9)", flush=True)
    time.sleep(part)
    for cable in demo.cables:
        cable.cut()
    print("n7 is cut off", flush=True)
    time.sleep(part)
    demo.start(3)
    print("n3 is started again", flush=True)
    time.sleep(part)
    for cable in demo.cables:
        cable.whole = True
    print("n7 is linked again", flush=True)
    time.sleep(part)
    print(f"they choose: {demo.shares()}", flush=True)
    demo.ending = True
    for thread in threads:
        thread.join()


def settle(demo: Demo) -> None:
    """Everybody catches up; the books are balanced."""
    mesh = read_mesh(demo.mesh)
    logged = {}

    def caught_up() -> bool:
        upto: dict[str, dict[str, int]] = {}
        for v in range(NODES):
            with demo.client(v) as client:
                rows = client.status()["games"][GAME]["streams"]
            upto[f"n{v}"] = {row["node"]: row["upto"] for row in rows}
        for v in range(NODES):
            logged[v] = upto[f"n{v}"][f"n{v}"]
        return all(
            upto[f"n{v}"].get(mesh.names[w], 0) == logged[w]
            for v in range(NODES)
            for w in within(mesh, f"n{v}", 2)
        )

    wait_for("catching up", caught_up)
    for v in range(NODES):
        if logged[v] < demo.acknowledged[v]:
            raise SystemExit(f"n{v} lost observations: {logged[v]} of {demo.acknowledged[v]}")
        in_reach = sum(logged[w] for w in within(mesh, f"n{v}", 2))
        if demo.samples(v) != in_reach:
            raise SystemExit(f"n{v} counts {demo.samples(v)} samples, its neighbourhood made {in_reach}")
    print(
        f"{sum(demo.acknowledged):,} observations were acknowledged: none is lost, none counted twice; "
        "every node has all that its neighbourhood saw",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="how long the story takes")
    parser.add_argument("--rate", type=float, default=10.0, help="choices a second of every node")
    parser.add_argument("--stay", action="store_true", help="leave the nodes running until Ctrl-C")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rumormill-mesh-") as name:
        demo = Demo(Path(name), options.rate)
        try:
            play(demo, options.seconds)
            settle(demo)
            if options.stay:
                print("Ctrl-C ends it", flush=True)
                signal.pause()
        except KeyboardInterrupt:
            pass
        finally:
            demo.ending = True
            demo.stop()
        out = Path("mesh-log.csv")
        folders = [Path(name) / f"n{v}.data" for v in range(NODES)]
        count = export(demo.mesh, folders, out)
        print(f"{count:,} observations in {out}: time, agent, arm, cost")


if __name__ == "__main__":
    main()
