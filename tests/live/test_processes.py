"""Real processes on loopback: killed, cut off, restarted, changed; then the invariants, from their disks."""

from __future__ import annotations

import random
import resource
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
from scripts.ports import free_ports

from live.processes import ARMS, GAME, Cluster, cluster, wait_until
from live.proxy import Proxy
from rumormill.live.io.client import Client, NodeError
from rumormill.live.io.folder import read_log
from rumormill.mesh.edit import add, move, plan, remove
from rumormill.mesh.file import read_mesh, write_mesh

RING = [(0, 1), (1, 2), (2, 3), (0, 3)]


def play(client: Client, rounds: int, rng: random.Random) -> int:
    """Choose and observe; how many were acknowledged."""
    for _ in range(rounds):
        choice = client.choose(GAME)
        client.observe(choice, 10.0 + 5 * ARMS.index(choice.arm) + rng.expovariate(0.2))
    return rounds


def all_have(made: Cluster, total: int) -> None:
    """Everybody ends up with all samples: γ covers the ring."""
    wait_until(lambda: all(made.samples(v) == total for v in made.processes))


def own_items(made: Cluster, v: int) -> int:
    return sum(row["upto"] for row in made.status(v)["games"][GAME]["streams"] if row["node"] == f"n{v}")


def test_kill_restart_and_rejoin(tmp_path: Path) -> None:
    with cluster(tmp_path, RING, gamma=2) as made:
        for v in range(4):
            made.start(v, wait=False)
        wait_until(lambda: all(made.ready(v) for v in range(4)))
        rng = random.Random(1)
        for v in range(4):
            with made.client(v) as client:
                play(client, 10, rng)
        all_have(made, 40)
        made.kill(1)
        with made.client(0) as client:
            play(client, 15, rng)
        made.start(1)
        all_have(made, 55)
        assert made.kill(2, signal.SIGTERM) == 0
        assert made.log(2)[-1]["text"] == "stopped"
        shutil.rmtree(made.data(2))  # it lost its disk: its neighbours give it back what it had told
        made.start(2)
        all_have(made, 55)
        epochs = [row for row in made.status(2)["games"][GAME]["streams"] if row["node"] == "n2"]
        assert sorted(row["upto"] for row in epochs) == [0, 10]
        assert all(made.status(v)["violations"].get("hostile", 0) == 0 for v in range(4))


def test_a_new_mesh_file_without_a_restart(tmp_path: Path) -> None:
    with cluster(tmp_path, [(0, 1)], gamma=2) as made:
        for v in range(2):
            made.start(v)
        with made.client(0) as client:
            play(client, 5, random.Random(3))
        all_have(made, 5)
        made.names.append("n2")
        made.ports += free_ports(1)
        made.http += free_ports(1)
        add(made.mesh, "n2", f"127.0.0.1:{made.ports[2]}", ["n1"])
        plan(made.mesh)
        pids = {v: process.pid for v, process in made.processes.items()}
        for v in range(2):
            made.hang_up(v)
        made.start(2)
        all_have(made, 5)
        made.kill(2, signal.SIGTERM)
        made.ports[2:] = free_ports(1)  # it moves: nobody else is restarted, and its data come along
        move(made.mesh, "n2", f"127.0.0.1:{made.ports[2]}")
        for v in range(2):
            made.hang_up(v)
        made.start(2)
        with made.client(2) as client:
            play(client, 3, random.Random(4))
        all_have(made, 8)
        made.kill(0)
        remove(made.mesh, "n0")
        plan(made.mesh)
        for v in (1, 2):
            made.hang_up(v)
        wait_until(lambda: all(list(made.status(v)["nodes"]) == ["n1", "n2"] for v in (1, 2)))
        with made.client(1) as client:
            play(client, 2, random.Random(5))
        all_have(made, 10)
        assert {v: made.processes[v].pid for v in (1,)} == {1: pids[1]}
        file = read_mesh(made.mesh).file
        file.revision = 1  # an old file is not taken
        write_mesh(made.mesh, file)
        made.hang_up(1)
        wait_until(lambda: any("not taken" in row["text"] for row in made.log(1)))


class Application(threading.Thread):
    """Chooses and observes all the time; remembers what was acknowledged."""

    def __init__(self, made: Cluster, v: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._made, self._v, self._rng = made, v, random.Random(seed)
        self.acknowledged: dict[str, float] = {}
        self.unanswered = 0
        self.ending = False

    def run(self) -> None:
        client = self._made.client(self._v)
        while not self.ending:
            try:
                choice = client.choose(GAME)
                cost = 10.0 + self._rng.expovariate(0.2)
                client.observe(choice, cost)
                self.acknowledged[choice.token] = cost
            except NodeError:
                self.unanswered += 1
                time.sleep(0.1)
            time.sleep(0.01)
        client.close()


def chaos(folder: Path, seconds: float, seed: int, signed: bool) -> None:
    """Applications work while nodes are killed and cables are cut; then everything is compared."""
    rng = random.Random(seed)
    with cluster(folder, RING, gamma=2, signed=signed) as made, Proxy(made.ports[1]) as cable:
        # Node 0 dials node 1 through a cable that can be cut: only node 0 reads the changed address.
        near = folder / "near"
        near.mkdir()
        shutil.copytree(folder / "keys", near / "keys")
        file = read_mesh(made.mesh).file
        file.nodes[1].address = f"127.0.0.1:{cable.port}"
        write_mesh(near / "mesh.toml", file)
        usual = made.mesh

        def start(v: int) -> None:
            made.mesh = near / "mesh.toml" if v == 0 else usual
            made.start(v)
            made.mesh = usual

        for v in range(4):
            start(v)
        applications = [Application(made, v, seed + v) for v in range(4)]
        for each in applications:
            each.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end or min(len(each.acknowledged) for each in applications) <= 10:
            assert time.monotonic() < end + 300, "applications get no answers"
            time.sleep(rng.uniform(0.2, 1.0))
            if rng.random() < 0.5:
                (cable.mend if cable.is_cut else cable.cut)()
            else:
                victim = rng.randrange(4)
                made.kill(victim)
                time.sleep(rng.uniform(0.0, 0.4))
                start(victim)
        cable.mend()
        for each in applications:
            each.ending = True
        for each in applications:
            each.join(60)
            assert not each.is_alive()
        wait_until(lambda: len({made.samples(v) for v in range(4)}) == 1, 120)
        total = made.samples(0)
        logs = {}
        for v in range(4):
            assert made.kill(v, signal.SIGTERM) == 0
            logs[v] = read_log(made.data(v))[1]
        for v, each in enumerate(applications):
            kept = {row[2]: -row[4] for row in logs[v]}
            assert len(kept) == len(logs[v]), "a decision was counted twice"
            for token, cost in each.acknowledged.items():
                t = int(token.split("-")[1], 16)
                assert kept[t] == pytest.approx(cost), "an acknowledged observation was lost"
        assert total == sum(len(rows) for rows in logs.values()), "somebody has not all, or some twice"


def test_chaos(tmp_path: Path) -> None:
    chaos(tmp_path, 4.0, seed=5, signed=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_chaos_for_a_minute(tmp_path: Path, seed: int) -> None:
    chaos(tmp_path, 60.0, seed=seed, signed=seed == 2)


def test_a_full_disk(tmp_path: Path) -> None:
    """Choices go on, observations wait, nothing is acknowledged; when there is room again, all goes on."""
    with cluster(tmp_path, [(0, 1)]) as made:
        made.start(0)
        with made.client(0) as client:
            play(client, 5, random.Random(1))
        pid = made.processes[0].pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        largest = max(path.stat().st_size for path in made.data(0).iterdir())
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest, before[1]))
        with made.client(0) as client:
            decisions = [client.choose(GAME) for _ in range(20)]
        answers: list[int] = []
        patient = Client(f"http://127.0.0.1:{made.http[0]}", timeout=60.0)
        waiting = threading.Thread(target=lambda: answers.append(patient.observe(decisions[0], 12.0)))
        waiting.start()
        wait_until(lambda: not made.ready(0))
        assert "disk" in made.status(0)["trouble"]
        assert answers == []
        with made.client(0) as client:
            client.choose(GAME)
        wait_until(lambda: any("not ready: the disk" in row["text"] for row in made.log(0)))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
        waiting.join(30)
        patient.close()
        assert answers == [6]
        wait_until(lambda: made.ready(0))
        wait_until(lambda: "ready again" in [row["text"] for row in made.log(0)])
        made.kill(0)
        made.start(0)
        assert made.samples(0) == 6
