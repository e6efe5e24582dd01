"""How fast a live node is: choose, take in, answer over HTTP, start, fifty at once, and how much memory.

Run by `make bench`. Nodes are started on loopback; nothing leaves the machine. Times that the machine decides
(HTTP, disk) are also given as ratios to a bare loop measured in the same run, and as time of the processor,
which does not depend on who else is using the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from rumormill.live.core import frames as wire
from rumormill.live.core.node import Node
from rumormill.live.core.node_config import fingerprint, node_config
from rumormill.live.core.records import Reserve
from rumormill.live.io import folder as snapshot
from rumormill.live.io.client import Client
from rumormill.live.io.items import named_segments
from rumormill.live.io.journal import Journal
from rumormill.live.io.runtime import load_signer
from rumormill.mesh.edit import add, init, plan
from rumormill.mesh.file import GamePart, read_mesh, split_address, write_mesh
from rumormill.mesh.keys import load_tls

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from scripts.ports import free_ports  # noqa: E402

GAME = "mirrors"
K = 10
TOTAL = 10_240
GOALS = {
    "choose_us": 50.0,
    "samples_per_s": 20_000.0,
    "http_p99_ms": 5.0,
    "rss_mb": 80.0,
    "start_s": 1.0,
    "fifty_cores": 1.0,
    "fifty_rss_mb": 80.0,
    "large_rss_mb": 120.0,
    "large_rss_loaded_mb": 120.0,
    "large_choose_p99_ms": 10.0,
    "large_stop_s": 3.0,
    "large_start_s": 2.0,
}
FIFTY = 50


def free_port() -> int:
    return free_ports(1)[0]


def make_mesh(folder: Path, nodes: int = 2, attach: int | None = None, *, signed: bool = False) -> Path:
    """A chain of nodes; with `attach` a Barabási-Albert network of which every node joins to so many."""
    arms = [f"arm{k}" for k in range(K)]
    game = GamePart(
        name=GAME,
        arms=arms,
        policy={"type": "decentralized", "gamma": 2, "clique_filter": False},
        moments={"eps": 0.5, "u": 40.0, "rho": 30.0},
    )
    path = init(folder, "bench", game, signed=signed)
    ports = free_ports(nodes)
    for v in range(nodes):
        add(path, f"n{v}", f"127.0.0.1:{ports[v]}", [f"n{v - 1}"] if v and attach is None else [])
    if attach is not None:
        file = read_mesh(path).file
        file.network = {"kind": "barabasi_albert", "m": attach}
        write_mesh(path, file)
    plan(path)
    return path


def ready_node(path: Path, name: str) -> Node:
    mesh, keys = read_mesh(path), path.parent / "keys"
    signer = load_signer(mesh, name, keys, load_tls(keys, name).serial)
    node = Node(node_config(mesh, name, 1, signer=signer))
    node.start()
    commit(node)
    return node


def commit(node: Node) -> None:
    node.take_journal()
    node.committed(node.records)


def choosing(path: Path) -> dict[str, float]:
    """choose in process at K = 10, with samples and a few open choices."""
    node = ready_node(path, "n0")
    rng = np.random.default_rng(1)
    times = []
    for i in range(6_000):
        started = time.perf_counter()
        token = node.choose(GAME, float(i), 60.0)
        times.append(time.perf_counter() - started)
        node.observe(GAME, token.t, token.arm, float(rng.standard_t(2.0)) + token.arm / 10)
        commit(node)
    return {
        "choose_us": float(np.median(times[1000:])) * 1e6,
        "choose_p99_us": float(np.quantile(times[1000:], 0.99)) * 1e6,
    }


def taking(path: Path) -> dict[str, float]:
    """Samples of a neighbour taken in per second of CPU: decoded, checked, given, noted; beside bare sums."""
    node = ready_node(path, "n0")
    mesh = read_mesh(path)
    node.link_up(1, 1)
    games = [(game.name, fingerprint(mesh, game)) for game in mesh.file.games]
    node.receive(1, wire.encode(wire.Hello(1, 1, "bench", 1, 1, games))[4:])
    node.receive(1, wire.encode(wire.Have(GAME, []))[4:])
    rng = np.random.default_rng(2)
    batch, total = 512, 100_000
    frames = []
    for first in range(1, total + 1, batch):
        arms = rng.integers(K, size=batch).tolist()
        rewards = rng.standard_t(2.0, size=batch).tolist()
        items = list(zip(range(first, first + batch), arms, rewards, strict=True))
        frames.append(wire.encode(wire.Obs(GAME, 1, 1, 1, first, items))[4:])
    started = time.process_time()
    for frame in frames:
        node.receive(1, frame)
        node.choose(GAME, 1.0, 60.0)
        commit(node)
    spent = time.process_time() - started
    assert sum(node.games[GAME].adapter.samples) == len(frames) * batch
    sums = [0.0] * K
    began = time.process_time()
    for frame in frames:
        decoded: Any = wire.decode(frame)
        for _, arm, reward in decoded.items:
            sums[arm] += reward
    bare = time.process_time() - began
    return {"samples_per_s": len(frames) * batch / spent, "ratio_to_bare_sums": spent / bare}


def signing(path: Path) -> dict[str, float]:
    """What signatures cost: CPU per item to make it durable and to take it in, by the size of batches."""
    found = {}
    for name, signed in (("plain", False), ("signed", True)):
        for group in (1, 16, 512):
            mesh = make_mesh(path.parent / f"{name}{group}", signed=signed)
            one, two = (ready_node(mesh, each) for each in ("n0", "n1"))
            for node, peer in ((one, 1), (two, 0)):
                node.link_up(1, peer)
            for _ in range(4):
                for sender, receiver in ((one, two), (two, one)):
                    for frame in sender.frames(1, 1 << 30):
                        receiver.receive(1, frame[4:])
            own = taken = 0.0
            for i in range(TOTAL // group):
                began = time.process_time()
                for _ in range(group):
                    token = one.choose(GAME, 1.0 + i, 60.0)
                    one.observe(GAME, token.t, token.arm, 0.1 * token.arm)
                commit(one)
                own += time.process_time() - began
                frames = one.frames(1, 1 << 30)
                two.tick(1.0 + i)
                began = time.process_time()
                for frame in frames:
                    two.receive(1, frame[4:])
                taken += time.process_time() - began
                commit(two)
            assert sum(two.games[GAME].adapter.samples) == TOTAL
            found[f"{name}_observe_us_by_{group}"] = own / TOTAL * 1e6
            found[f"{name}_take_us_by_{group}"] = taken / TOTAL * 1e6
    return found


async def _ask(port: int, rate: float, seconds: float, workers: int = 8) -> tuple[list[float], list[float]]:
    """Pairs of choose and observe at a steady rate over a few connections; the times of both."""
    chosen: list[float] = []
    observed: list[float] = []
    waiting: asyncio.Queue[float] = asyncio.Queue()

    async def worker() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def call(path: str, body: bytes, times: list[float]) -> Any:
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
            started = time.perf_counter()
            writer.write(head.encode() + body)
            found = await reader.readuntil(b"\r\n\r\n")
            length = int(found.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            text = await reader.readexactly(length)
            times.append(time.perf_counter() - started)
            return json.loads(text)

        while (await waiting.get()) >= 0:
            choice = await call("/v1/choose", b"{}", chosen)
            body = json.dumps({"token": choice["token"], "reward": 1.5}).encode()
            await call("/v1/observe", body, observed)
        writer.close()

    working = [asyncio.ensure_future(worker()) for _ in range(workers)]
    start = time.perf_counter()
    for i in range(int(rate / 2 * seconds)):
        await asyncio.sleep(max(0.0, start + 2 * i / rate - time.perf_counter()))
        waiting.put_nowait(0.0)
    for _ in working:
        waiting.put_nowait(-1.0)
    await asyncio.gather(*working)
    return chosen, observed


async def _flood(port: int, workers: int, seconds: float, answered: bool) -> tuple[list[float], int]:
    """Choose as fast as `workers` connections can; the times of those that got an arm, and the others."""
    times: list[float] = []
    refused = 0
    end = time.perf_counter() + seconds

    async def worker() -> None:
        nonlocal refused
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def call(path: str, body: bytes) -> tuple[bytes, bytes]:
            writer.write(
                b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                % (path.encode(), len(body), body)
            )
            head = await reader.readuntil(b"\r\n\r\n")
            return head, await reader.readexactly(int(head.partition(b"Content-Length: ")[2].split()[0]))

        while (started := time.perf_counter()) < end:
            head, text = await call("/v1/choose", b"{}")
            if b" 200 " not in head[:14]:
                refused += 1
                continue
            times.append(time.perf_counter() - started)
            if answered:
                token = json.loads(text)["token"]
                await call("/v1/observe", json.dumps({"token": token, "reward": 1.5}).encode())
        writer.close()

    await asyncio.gather(*(worker() for _ in range(workers)))
    return times, refused


def flooding(path: Path, seconds: float = 8.0) -> dict[str, float]:
    """Sixteen connections that choose without a pause, with rewards and without any."""
    found: dict[str, float] = {}
    for name, answered in (("flood", False), ("flood_answered", True)):
        process, port, _ = running(path, "n0", path.parent / f"{name}.data")
        try:
            times, refused = asyncio.run(_flood(port, 16, seconds, answered))
            found[f"{name}_choices_per_s"] = len(times) / seconds
            found[f"{name}_refused_share"] = refused / (len(times) + refused)
            found[f"{name}_p50_ms"] = float(np.median(times)) * 1e3
            found[f"{name}_p99_ms"] = float(np.quantile(times, 0.99)) * 1e3
        finally:
            stop(process)
    return found


class Liar:
    """A member that sends one frame over and over, as fast as the node reads, on one link after the other."""

    def __init__(self, path: Path, frame: bytes) -> None:
        self._path, self._frame = path, frame
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self.sent = 0

    def _work(self) -> None:
        mesh = read_mesh(self._path)
        context = load_tls(self._path.parent / "keys", "n0").client
        host, port = split_address(mesh.nodes["n1"].address, "n1")
        hello = wire.encode(wire.Hello(1, 1, "bench", 0, 1, [(GAME, fingerprint(mesh, mesh.games[GAME]))]))
        while not self._ended.is_set():
            try:
                with context.wrap_socket(socket.create_connection((host, port), timeout=1)) as wired:
                    wired.sendall(hello)
                    while not self._ended.is_set():
                        wired.sendall(self._frame)
                        self.sent += len(self._frame)
            except OSError:
                time.sleep(0.01)

    def __enter__(self) -> Liar:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        self._thread.join(5)


def hostile(path: Path) -> dict[str, float]:
    """choose over HTTP while a member sends the largest Haves without a pause: of 950 kB, and as allowed."""
    found: dict[str, float] = {}
    process, port, _ = running(path, "n1", path.parent / "hostile.data")
    try:
        found["calm_p50_ms"] = float(np.median(asyncio.run(_ask(port, 200.0, 2.0))[0])) * 1e3
        for name, rows in (("huge_have", 120_000), ("largest_have", 4_500)):
            with Liar(path, wire.encode(wire.Have(GAME, [(9, e, 5, 0) for e in range(rows)]))) as liar:
                time.sleep(1.0)
                chosen, _ = asyncio.run(_ask(port, 200.0, 4.0))
            found[f"{name}_p50_ms"] = float(np.median(chosen)) * 1e3
            found[f"{name}_p99_ms"] = float(np.quantile(chosen, 0.99)) * 1e3
            found[f"{name}_mb"] = liar.sent / 2**20
        return found
    finally:
        stop(process)


def running(path: Path, name: str, folder: Path) -> tuple[subprocess.Popen[bytes], int, float]:
    """A node as a process: itself, its port, and how long it took to be ready."""
    port = free_port()
    started = time.perf_counter()
    process = begun(path, name, folder, port)
    until_ready(process, port, folder)
    return process, port, time.perf_counter() - started


def begun(path: Path, name: str, folder: Path, port: int) -> subprocess.Popen[bytes]:
    words = [
        "node",
        "--mesh",
        str(path),
        "--name",
        name,
        "--data",
        str(folder),
        "--http",
        f"127.0.0.1:{port}",
    ]
    folder.mkdir(exist_ok=True)
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", "from rumormill.cli import main; main()", *words], stderr=log
        )


def until_ready(process: subprocess.Popen[bytes], port: int, folder: Path) -> None:
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1) as probe:
                probe.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                if b"200 OK" in probe.recv(100):
                    return
        except OSError:
            pass
        if process.poll() is not None:
            raise SystemExit(f"the node does not start: {(folder / 'log').read_text()}")
        time.sleep(0.01)


def cpu(process: subprocess.Popen[bytes]) -> float:
    """Seconds of the processor that a process has used."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss(process: subprocess.Popen[bytes]) -> float:
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    process.wait(20)


def serving(path: Path) -> dict[str, float]:
    """500 requests a second over HTTP, every observation on disk before it is answered."""
    process, port, _ = running(path, "n0", path.parent / "serving.data")
    try:
        asyncio.run(_ask(port, 500.0, 1.0))
        before = cpu(process)
        choose, observe = asyncio.run(_ask(port, 500.0, 6.0))
        used = cpu(process) - before
        bare = bare_serving()
        p99 = float(np.quantile(choose, 0.99)) * 1e3
        return {
            "bare_http_p99_ms": bare,
            "bare_disk_p99_ms": bare_disk(),
            "http_cpu_ms_per_request": used / (len(choose) + len(observe)) * 1e3,
            "http_p50_ms": float(np.median(choose)) * 1e3,
            "http_p99_ms": p99,
            "http_p99_ratio_to_bare": p99 / bare,
            "http_observe_p50_ms": float(np.median(observe)) * 1e3,
            "http_observe_p99_ms": float(np.quantile(observe, 0.99)) * 1e3,
            "rss_mb": rss(process),
        }
    finally:
        stop(process)


# Answers every request with the same bytes: what the machine and the client cost by themselves.
BARE = """
import asyncio, sys
async def serve(reader, writer):
    try:
        while True:
            head = await reader.readuntil(b"\\r\\n\\r\\n")
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\\r\\n")[0]))
            body = b'{"token": "1"}'
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 14\\r\\n\\r\\n" + body)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    print("ready", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def bare_serving() -> float:
    """The 99th percentile of the same requests, answered by a server that does nothing, in milliseconds."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-c", BARE, str(port)], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        return float(np.quantile(np.concatenate(asyncio.run(_ask(port, 500.0, 3.0))), 0.99)) * 1e3
    finally:
        process.kill()
        process.wait()


def bare_disk() -> float:
    """The 99th percentile of writing a page and waiting for the disk, in milliseconds."""
    times = []
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(300):
            started = time.perf_counter()
            file.write(4096 * b"x")
            file.flush()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - started)
    return float(np.quantile(times, 0.99)) * 1e3


def starting(path: Path) -> dict[str, float]:
    """From the call to ready with a million samples taken in, of which 800,000 are kept for others."""
    folder = path.parent / "starting.data"
    journal = Journal(folder, "mesh bench, node n0", fresh_epoch=lambda: 1)
    journal.start(lambda n: None)
    node = Node(node_config(read_mesh(path), "n0", 1), journal.items)
    node.start()
    commit(node)
    game, rng = node.games[GAME], np.random.default_rng(3)
    for epoch in range(1, 9):
        stream = game.stream((1, epoch))
        assert stream is not None
        for first in range(0, 125_000, 500):
            arms, rewards = rng.integers(K, size=500).tolist(), rng.standard_t(2.0, size=500).tolist()
            items = list(zip(range(first + 1, first + 501), arms, rewards, strict=True))
            game.accept(stream, first + 1, items, None, node.log)
        for _ in range(20):
            game.choose(1.0, 60.0, False, node.log)
        commit(node)
    journal.write([Reserve(GAME, game.decisions.requested)])
    state = node.snapshot()
    journal.write_snapshot(snapshot.pack(state), 1, named_segments(state))
    assert journal.close(120)
    best = used = 1e9
    memory_mb = 0.0
    for _ in range(3):
        process, _, seconds = running(path, "n0", folder)
        best, used, memory_mb = min(best, seconds), min(used, cpu(process)), rss(process)
        stop(process)
    bare = min(_bare_start() for _ in range(3))
    return {
        "start_s": best,
        "start_cpu_s": used,
        "start_rss_mb": memory_mb,
        "start_ratio_to_python_with_numpy": best / bare,
    }


def fifty(path: Path, seconds: float = 60.0) -> dict[str, float]:
    """Fifty nodes, each asked ten times a second: processors needed in all, and memory of one."""
    folder = path.parent / "fifty"
    mesh = make_mesh(folder, FIFTY, attach=2)
    ports = free_ports(FIFTY)
    nodes: list[subprocess.Popen[bytes]] = []
    try:
        for v, port in enumerate(ports):  # one after the other: fifty at once would only wait for each other
            nodes.append(begun(mesh, f"n{v}", folder / f"n{v}.data", port))
            until_ready(nodes[-1], port, folder / f"n{v}.data")

        async def ask(lasting: float) -> list[tuple[list[float], list[float]]]:
            return await asyncio.gather(*(_ask(port, 20.0, lasting, workers=1) for port in ports))

        asyncio.run(ask(5.0))
        before = sum(map(cpu, nodes))
        started = time.perf_counter()
        times = asyncio.run(ask(seconds))
        used, lasted = sum(map(cpu, nodes)) - before, time.perf_counter() - started
        chosen = np.concatenate([choose for choose, _ in times])
        return {
            "fifty_cores": used / lasted,
            "fifty_rss_mb": max(map(rss, nodes)),
            "fifty_choices_per_s": len(chosen) / lasted,
            "fifty_choose_p99_ms": float(np.quantile(chosen, 0.99)) * 1e3,
            "fifty_lag_items": float(behind(ports)),
        }
    finally:
        for process in nodes:
            process.send_signal(signal.SIGTERM)
        for process in nodes:
            process.wait(60)


def large(path: Path, nodes: int = 200, items: int = 100_000) -> dict[str, float]:
    """One node of two hundred that retains 100,000 items of each: memory, start, stop, choose under load."""
    folder = path.parent / "large"
    mesh = make_mesh(folder, nodes, attach=2)
    data = folder / "n0.data"
    journal = Journal(data, "mesh bench, node n0", fresh_epoch=lambda: 1)
    journal.start(lambda n: None)
    node = Node(node_config(read_mesh(mesh), "n0", 1), journal.items)
    node.start()
    game, rng = node.games[GAME], np.random.default_rng(4)
    for v in range(1, nodes):
        stream = game.stream((v, 1))
        assert stream is not None
        made = np.zeros(items, wire.ITEM)
        made["t"], made["arm"] = np.arange(1, items + 1), rng.integers(K, size=items)
        made["reward"] = rng.standard_t(2.0, size=items)
        for first in range(0, items, 10_000):
            stream.retained.append(made[first : first + 10_000])  # type: ignore[arg-type]
        journal.write([])
        while journal.backlog or len(journal.items._unwritten) > 1_000:
            time.sleep(0.01)
    journal.write(node.take_journal())
    state = node.snapshot()
    journal.write_snapshot(snapshot.pack(state), 1, named_segments(state))
    assert journal.close(120)
    del node, state, stream
    neighbour = mesh_names(mesh, "n0")[0]
    process, port, start = running(mesh, "n0", data)
    started = cpu(process)
    other, _, _ = running(mesh, neighbour, folder / "other.data")  # asks for everything
    try:
        before = rss(process)
        chosen, _ = asyncio.run(_ask(port, 200.0, 20.0))
        found = {
            "large_start_s": start,
            "large_start_cpu_s": started,
            "large_rss_mb": before,
            "large_rss_loaded_mb": rss(process),
            "large_choose_p50_ms": float(np.median(chosen)) * 1e3,
            "large_choose_p99_ms": float(np.quantile(chosen, 0.99)) * 1e3,
            "large_bare_http_p99_ms": bare_serving(),
        }
    finally:
        began = time.perf_counter()
        stop(process)
        stopped = time.perf_counter() - began
        stop(other)
    again, _, start = running(mesh, "n0", data)
    stop(again)
    return found | {"large_stop_s": stopped, "large_start_again_s": start}


def mesh_names(path: Path, name: str) -> list[str]:
    """The neighbours of a node."""
    return sorted(read_mesh(path).links[name])


def behind(ports: list[int]) -> int:
    """Items that a node knows a neighbour has and that it has not: the most of all."""
    most = 0
    for port in ports:
        with Client(f"http://127.0.0.1:{port}", timeout=30.0) as client:
            streams = client.status()["games"][GAME]["streams"]
        most = max([most, *(row["lag"] for row in streams)])
    return most


def _bare_start() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import numpy, ssl, asyncio, sqlite3"], check=True)
    return time.perf_counter() - started


MEASURES = {
    each.__name__: each
    for each in (choosing, taking, signing, serving, flooding, hostile, starting, fifty, large)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="bench-live.json", help="where the numbers go")
    parser.add_argument("--only", help=f"one of them: {', '.join(MEASURES)}")
    options = parser.parse_args()
    found: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="rumormill-bench-") as folder:
        path = make_mesh(Path(folder))
        for name, measure in MEASURES.items():
            if options.only not in (None, name):
                continue
            for row, value in measure(path).items():
                goal = f"   goal {GOALS[row]:g}" if row in GOALS else ""
                print(f"{row:36} {value:12.2f}{goal}", flush=True)
                found[row] = value
    Path(options.out).write_text(json.dumps(found, indent=1))
    print(f"numbers in {options.out}")


if __name__ == "__main__":
    main()
