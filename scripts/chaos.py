"""Chaos with real nodes: kill -9, SIGSTOP, SIGTERM, partitions, new mesh files and rotated keys, under load.

    python scripts/chaos.py [--faults 100] [--nodes 6] [--seconds 1200] [--seed 1] [--cables]

Every node is a process in a network namespace of its own (root and `ip` are needed) with its own copies of
mesh file and keys; with --cables, or where namespaces cannot be made, on loopback behind proxies that can be
cut. An application beside every node keeps a ledger of what was acknowledged. At the end all faults are
mended and the ledger is compared with the disks: nothing lost, nothing twice, no token used twice, every node
has everything. One line of JSON says so; exit status 1 if not. Ends only what it has started.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from rumormill.live.io.client import Client, NodeError
from rumormill.live.io.folder import read_log
from rumormill.mesh.edit import add, init, plan, rotate
from rumormill.mesh.file import GamePart, Limits, read_mesh, write_mesh

GAME, ARMS = "mirrors", ["fra", "ams", "waw"]
PORT = 7400
FAULTS = ("kill", "kill", "stop", "stop", "term", "cut", "cut", "one way", "isolate", "reload", "rotate")


class Namespaces:
    """Nodes in network namespaces that one bridge connects, apart from the machine's own network."""

    def __init__(self, size: int) -> None:
        self._name, self._cut = f"rm{os.getpid()}", set[tuple[int, int]]()
        self._made: list[str] = []
        self.size = size

    def open(self) -> None:
        hub = self._namespace("hub")
        self._ip("-n", hub, "link", "add", "bridge0", "type", "bridge")
        self._ip("-n", hub, "link", "set", "bridge0", "up")
        for v in range(self.size):
            name, inner, outer = self._namespace(v), f"{self._name}i{v}", f"{self._name}o{v}"
            self._ip("link", "add", inner, "netns", name, "type", "veth", "peer", "name", outer, "netns", hub)
            self._ip("-n", hub, "link", "set", outer, "master", "bridge0", "up")
            self._ip("-n", name, "address", "add", f"{self._host(v)}/24", "dev", inner)
            for device in (inner, "lo"):
                self._ip("-n", name, "link", "set", device, "up")

    def _namespace(self, v: int | str) -> str:
        name = f"{self._name}n{v}"
        self._ip("netns", "add", name)
        self._made.append(name)
        return name

    def _ip(self, *words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)

    def _host(self, v: int) -> str:
        return f"10.77.0.{v + 1}"

    def listens(self, v: int) -> str:
        return f"{self._host(v)}:{PORT}"

    def address(self, near: int, far: int) -> str:
        """Where one node finds another."""
        return self.listens(far)

    def command(self, v: int) -> list[str]:
        return ["ip", "netns", "exec", f"{self._name}n{v}"]

    def cut(self, a: int, b: int) -> None:
        """Nothing that `a` sends arrives at `b` any more; connections are not told."""
        if (a, b) not in self._cut:
            self._cut.add((a, b))
            self._ip("-n", f"{self._name}n{a}", "route", "add", "blackhole", f"{self._host(b)}/32")

    def mend(self) -> None:
        for a, b in sorted(self._cut):
            self._ip("-n", f"{self._name}n{a}", "route", "del", "blackhole", f"{self._host(b)}/32")
        self._cut.clear()

    def close(self) -> None:
        for name in self._made:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True, timeout=30)


class Cables:
    """Nodes on loopback; one proxy for every pair, which can be cut."""

    def __init__(self, size: int) -> None:
        self.size, self._cut, self._ends = (
            size,
            set[tuple[int, int]](),
            dict[tuple[int, int], list[socket.socket]](),
        )
        self._doors: dict[tuple[int, int], socket.socket] = {}
        self._ports: list[int] = []

    def open(self) -> None:
        held = [socket.create_server(("127.0.0.1", 0)) for _ in range(self.size)]
        self._ports = [int(each.getsockname()[1]) for each in held]
        for each in held:
            each.close()
        for pair in ((a, b) for a in range(self.size) for b in range(a + 1, self.size)):
            self._doors[pair], self._ends[pair] = socket.create_server(("127.0.0.1", 0)), []
            threading.Thread(target=self._serve, args=pair, daemon=True).start()

    def _serve(self, a: int, b: int) -> None:
        while True:
            try:
                near, _ = self._doors[a, b].accept()
            except OSError:
                return
            try:
                if self._cut & {(a, b), (b, a)}:
                    raise OSError("cut")
                far = socket.create_connection(("127.0.0.1", self._ports[b]), timeout=5)
                far.settimeout(None)
            except OSError:
                near.close()
                continue
            self._ends[a, b] += [near, far]
            for one, two in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=(one, two), daemon=True).start()

    def _carry(self, one: socket.socket, two: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                two.sendall(data)
        for each in (one, two):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def listens(self, v: int) -> str:
        return f"127.0.0.1:{self._ports[v]}"

    def address(self, near: int, far: int) -> str:
        door = self._doors.get((near, far))  # the node with the smaller id dials
        return self.listens(far) if door is None else f"127.0.0.1:{door.getsockname()[1]}"

    def command(self, v: int) -> list[str]:
        return []

    def cut(self, a: int, b: int) -> None:
        self._cut.add((a, b))
        pair = (min(a, b), max(a, b))
        ends, self._ends[pair] = self._ends[pair], []
        for each in ends:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._cut.clear()

    def close(self) -> None:
        for door in self._doors.values():
            door.close()


class Application(threading.Thread):
    """Chooses and observes, repeats what was not answered, and keeps the ledger of one node."""

    def __init__(self, url: str, seed: int, rate: float) -> None:
        super().__init__(daemon=True)
        self._client, self._rng, self._pause = (
            Client(url, timeout=3.0, attempts=1),
            random.Random(seed),
            1 / rate,
        )
        self.acknowledged: dict[str, tuple[float, int]] = {}
        self.open: dict[str, float] = {}
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.ending = False

    def run(self) -> None:
        while not self.ending or self.open:
            try:
                self._step()
            except NodeError as error:
                self.counts[f"status {error.status}"] += 1
            time.sleep(self._pause)
        self._client.close()

    def _step(self) -> None:
        if self.open and (self.ending or self._rng.random() < 0.5):
            token = self._rng.choice(list(self.open))
        else:
            choice = self._client.choose(GAME, ttl=3600.0)
            token = choice.token
            if token in self.open or token in self.acknowledged:
                self.wrong.append(f"token {token} was given twice")
            self.open[token] = 10.0 + 5 * ARMS.index(choice.arm) + self._rng.expovariate(0.2)
        self.acknowledged[token] = (self.open[token], self._client.observe(token, self.open[token]))
        del self.open[token]
        if self._rng.random() < 0.1:
            self._ask_again(self._rng.choice(list(self.acknowledged)))

    def _ask_again(self, token: str) -> None:
        """The same reward gets the same answer, another one is refused."""
        cost, seq = self.acknowledged[token]
        self.counts["repeats"] += 1
        if self._client.observe(token, cost) != seq:
            self.wrong.append(f"{token} was answered differently")
        try:
            self._client.observe(token, cost + 1.0)
            self.wrong.append(f"{token} took a second reward")
        except NodeError as error:
            if error.status not in (0, 409, 503):
                self.wrong.append(f"{token}: a second reward was answered with {error.status}")
            self.counts["conflicts refused"] += error.status == 409


class Mesh:
    """The machines: a folder, a process and an application each."""

    def __init__(self, folder: Path, net: Namespaces | Cables, options: argparse.Namespace) -> None:
        self.folder, self.net, self.rng = folder, net, random.Random(options.seed)
        self.size, self.names = net.size, [f"n{v}" for v in range(net.size)]
        self.faults: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.processes: dict[int, subprocess.Popen[bytes]] = {}
        self.later: list[tuple[float, Callable[[], None]]] = []
        game = GamePart(
            name=GAME,
            arms=ARMS,
            policy={"type": "decentralized", "gamma": net.size, "clique_filter": False},
            objective="minimise",
            moments={"eps": 0.5, "u": 150.0, "rho": 100.0},
        )
        self.path = init(folder / "office", "chaos", game, signed=options.signed)
        for v, name in enumerate(self.names):  # a ring
            links = [self.names[v - 1]] * (v > 0) + [self.names[0]] * (v == net.size - 1 > 1)
            add(self.path, name, net.listens(v), links)
        file = read_mesh(self.path).file
        file.limits = Limits(have_every=2.0, silence=3.0, skip_after=600.0)
        write_mesh(self.path, file)
        plan(self.path)
        self.applications = [
            Application(f"unix:{self.folder / name}.sock", options.seed + v, options.rate)
            for v, name in enumerate(self.names)
        ]

    def copy(self, v: int) -> None:
        """Bring mesh file and keys to a machine, as an operator would."""
        name, home = self.names[v], self.folder / self.names[v]
        (home / "keys").mkdir(parents=True, exist_ok=True)
        for each in ("ca.crt", f"{name}.crt", f"{name}.key"):
            shutil.copy(self.path.parent / "keys" / each, home / "keys" / each)
        file = read_mesh(self.path).file
        for w, node in enumerate(file.nodes):
            node.address = self.net.address(v, w)
        write_mesh(home / "mesh.toml", file)

    def start(self, v: int) -> None:
        name = self.names[v]
        home, log = self.folder / name, (self.folder / f"{name}.log").open("ab")
        words = ["node", "--mesh", str(home / "mesh.toml"), "--name", name, "--data", str(home / "data")]
        words += ["--http", f"unix:{self.folder / name}.sock", "--listen", self.net.listens(v)]
        command = [
            *self.net.command(v),
            sys.executable,
            "-c",
            "from rumormill.cli import main; main()",
            *words,
        ]
        self.processes[v] = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()

    def end(self, v: int, number: int) -> None:
        process, starting = self.processes.pop(v), not ready(self, v)
        process.send_signal(number)
        code = process.wait(60)
        if number == signal.SIGTERM and code == -number and starting:
            return  # before its first line of Python no process can do better
        if code != (0 if number == signal.SIGTERM else -number):
            self.wrong.append(f"{self.names[v]} ended with {code} after signal {number}")

    def watch(self) -> None:
        """Start again what has ended by itself, as a service manager does; do what is due."""
        for v, process in list(self.processes.items()):
            if process.poll() is not None:
                self.wrong.append(f"{self.names[v]} ended by itself with {process.returncode}")
                self.start(v)
        for due, work in [each for each in self.later if each[0] <= time.monotonic()]:
            self.later.remove((due, work))
            work()

    def soon(self, seconds: float, work: Callable[[], None]) -> None:
        self.later.append((time.monotonic() + seconds, work))

    def fault(self) -> None:
        rng, kind = self.rng, self.rng.choice(FAULTS)
        v = rng.randrange(self.size)
        a, b = rng.sample(range(self.size), 2)
        if v not in self.processes:
            return
        if kind in ("kill", "term"):
            self.end(v, signal.SIGKILL if kind == "kill" else signal.SIGTERM)
            self.soon(rng.uniform(0.0, 3.0), lambda: self.start(v))
        elif kind == "stop":
            process = self.processes[v]
            process.send_signal(signal.SIGSTOP)
            time.sleep(rng.choice([0.3, 1.0, 4.0]))
            process.send_signal(signal.SIGCONT)
        elif kind in ("cut", "one way", "isolate"):
            pairs = [(a, b), (b, a)] if kind == "cut" else [(a, b)]
            if kind == "isolate":
                pairs = [pair for w in range(self.size) if w != v for pair in ((v, w), (w, v))]
            for pair in pairs:
                self.net.cut(*pair)
            self.soon(rng.uniform(1.0, 6.0), self.net.mend)
        elif kind in ("reload", "rotate"):
            self.change(kind, v, (min(a, b), max(a, b)))
        self.faults[kind] += 1

    def change(self, kind: str, v: int, pair: tuple[int, int]) -> None:
        """A new mesh file (a chord of the ring comes or goes) or new keys; each machine gets it later."""
        if kind == "rotate":
            rotate(self.path, self.names[v])
        else:
            file = read_mesh(self.path).file
            links, other = file.nodes[pair[1]].neighbours, self.names[pair[0]]
            if pair[1] - pair[0] not in (1, self.size - 1):
                (links.remove if other in links else links.append)(other)
            file.plans = {}
            file.revision += 1
            write_mesh(self.path, file)
            plan(self.path)
        for w in range(self.size):
            self.soon(self.rng.uniform(0.0, 2.0), partial(self.deliver, w))

    def deliver(self, v: int) -> None:
        """Bring the newest files to a machine; one that is just starting is left alone until it is ready."""
        if v not in self.processes:
            self.copy(v)
        elif ready(self, v):
            self.copy(v)
            self.processes[v].send_signal(signal.SIGHUP)
        else:
            self.soon(0.5, lambda: self.deliver(v))

    def samples(self, v: int) -> int:
        with Client(f"unix:{self.folder / self.names[v]}.sock", timeout=10.0, attempts=1) as client:
            return sum(row["samples"] for row in client.status()["games"][GAME]["arms"])


def ready(mesh: Mesh, v: int) -> bool:
    try:
        with Client(f"unix:{mesh.folder / mesh.names[v]}.sock", timeout=5.0, attempts=1) as client:
            return client._exchange("GET", "/readyz", None)[0] == 200
    except OSError:
        return False


def wait_until(true: Callable[[], bool], mesh: Mesh, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            return False
        mesh.watch()
        time.sleep(0.1)
    return True


def agreed(mesh: Mesh) -> bool:
    with contextlib.suppress(NodeError, OSError):
        return len({mesh.samples(v) for v in range(mesh.size)}) == 1
    return False


def play(mesh: Mesh, options: argparse.Namespace) -> dict[str, float]:
    """Faults under load; then everything is mended. Seconds until all is well again."""
    for v in range(mesh.size):
        mesh.copy(v)
        mesh.start(v)
    if not wait_until(lambda: all(ready(mesh, v) for v in range(mesh.size)), mesh, 120):
        raise SystemExit("the nodes do not start: look at their logs")
    for each in mesh.applications:
        each.start()
    started = time.monotonic()
    while mesh.faults.total() < options.faults and time.monotonic() - started < options.seconds:
        mesh.fault()
        end = time.monotonic() + mesh.rng.uniform(0.2, 2.0)
        while time.monotonic() < end:
            mesh.watch()
            time.sleep(0.05)
    mesh.net.mend()
    wait_until(lambda: not mesh.later, mesh, 60)
    lasted, mended = time.monotonic() - started, time.monotonic()
    all_ready = wait_until(lambda: all(ready(mesh, v) for v in range(mesh.size)), mesh, 120)
    ready_after = time.monotonic() - mended
    for each in mesh.applications:
        each.ending = True
    for each in mesh.applications:
        each.join(120)
    answered, asked = time.monotonic() - mended, time.monotonic()
    converged = wait_until(lambda: agreed(mesh), mesh, 180)
    if not all_ready or not converged or any(each.is_alive() for each in mesh.applications):
        mesh.wrong.append(f"ready: {all_ready}, converged: {converged}")
    return {
        "seconds of faults": round(lasted, 1),
        "ready after": round(ready_after, 2),
        "last answer after": round(answered, 2),
        "converged after the last answer": round(time.monotonic() - asked, 2),
    }


def balance(mesh: Mesh) -> dict[str, int]:
    """The ledgers against the disks."""
    counted = [mesh.samples(v) for v in range(mesh.size)]
    lost = twice = total = 0
    for v, each in enumerate(mesh.applications):
        mesh.end(v, signal.SIGTERM)
        rows = [row for row in read_log(mesh.folder / mesh.names[v] / "data")[1] if row[1] == GAME]
        kept = {row[2]: -row[4] for row in rows}
        twice += len(rows) - len(kept)
        total += len(rows)
        for token, (cost, _) in each.acknowledged.items():
            found = kept.get(int(token.split("-")[1], 16))
            lost += found is None or abs(found - cost) > 1e-9
    return {
        "acknowledged": sum(len(each.acknowledged) for each in mesh.applications),
        "on disk": total,
        "lost": lost,
        "twice": twice + sum(max(0, n - total) for n in counted),
        "missing at nodes": sum(max(0, total - n) for n in counted),
    }


@contextlib.contextmanager
def network(size: int, cables: bool) -> Iterator[Namespaces | Cables]:
    net: Namespaces | Cables = Cables(size) if cables else Namespaces(size)
    try:
        try:
            net.open()
        except (OSError, subprocess.CalledProcessError):
            if cables:
                raise
            net.close()
            net = Cables(size)
            net.open()
        yield net
    finally:
        net.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--faults", type=int, default=100)
    parser.add_argument("--nodes", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=1200.0, help="no new fault after so many")
    parser.add_argument("--rate", type=float, default=25.0, help="steps of an application per second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--signed", action="store_true", help="nodes sign their observations")
    parser.add_argument(
        "--cables", action="store_true", help="proxies on loopback, also where namespaces work"
    )
    parser.add_argument("--keep", type=Path, help="leave folders and logs there")
    options = parser.parse_args()
    with contextlib.ExitStack() as stack:
        net = stack.enter_context(network(options.nodes, options.cables))
        folder = options.keep or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="rumormill-chaos-"))
        )
        mesh = Mesh(folder, net, options)
        try:
            times = play(mesh, options)
            books = balance(mesh)
        finally:
            for process in mesh.processes.values():
                process.kill()
                process.wait()
        counts = sum((each.counts for each in mesh.applications), Counter[str]())
    wrong = mesh.wrong + [text for each in mesh.applications for text in each.wrong]
    result = {"network": type(net).__name__, "nodes": options.nodes, "faults": mesh.faults.total()}
    print(json.dumps({**result, "by kind": dict(mesh.faults), **times, **books, **counts, "wrong": wrong}))
    return int(bool(wrong or books["lost"] or books["twice"] or books["missing at nodes"]))


if __name__ == "__main__":
    sys.exit(main())
