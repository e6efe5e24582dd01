"""Cells on a Ray cluster: the same bytes, whoever dies on the way. Every cluster is of its test alone."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from helpers.small_experiments import finished_cells, square
from rumormill.errors import InputError
from rumormill.experiments.run.cell import PlayCells
from rumormill.experiments.run.executors import Ray, WorkWithFiles
from rumormill.experiments.spec.reading import read_spec

COMMAND = [sys.executable, "-c", "from rumormill.cli import main; main()"]
SPEC = """
name = "far"
seed = 4
horizon = 60
trials = 6
checkpoints = 4
network = { kind = "file", file = "village.edges" }
arms = { law = "pareto", tail = 1.8, K = 3 }

[[policies]]
type = "decentralized"

[[policies]]
type = "far_away:Pacing"
marks = "MARKS"
"""
# A policy that says where it plays, and whose first process does not survive it.
OWN = """
import os, signal
from pathlib import Path

from far_steps import step


class Pacing:
    def __init__(self, seat, marks: str) -> None:
        self.n_arms = seat.n_arms
        Path(marks, f"raylet-{os.getppid()}").touch()
        Path(marks, "place").write_text(__file__)
        try:
            os.close(os.open(Path(marks, "killed"), os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    def choose(self, t):
        return step(t) % self.n_arms

    def observe(self, t, arm, reward):
        pass

    def outgoing(self, t):
        return []

    def receive(self, messages):
        pass
"""


@dataclass
class Place:
    """Where an experiment lies, and the environment of the commands that run it."""

    folder: Path
    marks: Path
    environment: dict[str, str]

    def start(self, out: str, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*COMMAND, "run", "spec/far.toml", "--no-report", "--out", out, *words],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, out: str, *words: str) -> str:
        """What it printed on standard error."""
        with self.start(out, *words) as running:
            try:
                _, err = running.communicate(timeout=600)
            finally:
                running.kill()
        assert running.returncode == 0, err
        return err

    def table(self, out: str) -> bytes:
        return (self.folder / out / "results.parquet").read_bytes()

    def parts(self, out: str) -> int:
        return len(finished_cells(self.folder / out))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    marks = tmp_path / "marks"
    for folder in (marks, tmp_path / "spec"):
        folder.mkdir()
    (marks / "killed").touch()
    (tmp_path / "spec" / "far.toml").write_text(SPEC.replace("MARKS", str(marks)))
    (tmp_path / "spec" / "far_away.py").write_text(OWN)
    (tmp_path / "spec" / "far_steps.py").write_text("def step(t):\n    return t\n")
    shutil.copy(Path(__file__).parents[1] / "helpers" / "village.edges", tmp_path / "village.edges")
    # Ray's sockets have long names in its folder, and the system allows short ones only.
    with tempfile.TemporaryDirectory(prefix="rm", dir="/tmp", ignore_cleanup_errors=True) as scratch:
        quiet = {"RAY_TMPDIR": scratch, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
        environment = {key: value for key, value in os.environ.items() if key != "RAY_ADDRESS"}
        yield Place(tmp_path, marks, {**environment, **quiet})


def wait_until(true: Callable[[], bool], seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_what_a_run_reads_is_taken_along(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.folder)
    work = PlayCells(read_spec("spec/far.toml"))
    assert isinstance(work, WorkWithFiles)
    here = place.folder / "spec"
    assert work.files() == {
        "far_away.py": here / "far_away.py",
        "far_steps.py": here / "far_steps.py",
        "village.edges": Path("village.edges"),
    }
    assert work.at("there").spec.folder == "there"


def test_one_machine_gives_the_same_bytes_although_a_worker_is_killed(place: Place) -> None:
    place.run("here")
    (place.marks / "killed").unlink()
    said = place.run("there", "--executor", "ray", "--address", "local", "--jobs", "2")
    assert (place.marks / "killed").exists()
    assert "6 of 6 cells done" in said
    assert place.table("there") == place.table("here")
    # The classes were those that Ray brought, not those of the folder, which other machines do not have.
    assert not Path((place.marks / "place").read_text()).is_relative_to(place.folder)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1 (.*refused): start one"),
        ("ray://127.0.0.1:1", "no Ray cluster answers at ray://127.0.0.1:1 "),
        ("head", "address = 'head' is not allowed: host:port"),
        ("127.0.0.1:99999", "no Ray cluster answers at 127.0.0.1:99999 "),
    ],
)
def test_nobody_at_the_address(address: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in (address, None):
        with pytest.raises(InputError, match=re.escape(expected).replace(re.escape(".*"), ".*")):
            Ray(1, given).run([1], square, lambda task, outcome: None)
        monkeypatch.setenv("RAY_ADDRESS", address)


def test_without_ray_it_says_what_to_install(place: Place) -> None:
    hidden = "import sys; sys.modules['ray'] = None; from rumormill.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", hidden, "run", "spec/far.toml", "--executor", "ray"],
        cwd=place.folder,
        env=place.environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == "error: ray is not installed, and this needs it: pip install 'rumormill[cluster]'"


def test_the_order_of_tasks_needs_no_cluster() -> None:
    assert Ray(3).jobs == 3
    assert Ray().jobs == (os.cpu_count() or 1)


# --- two machines ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def two_machines(place: Place, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Two Ray nodes with one processor each, as two machines would be."""
    from ray.cluster_utils import Cluster

    for name, value in place.environment.items():
        if name.startswith("RAY_"):
            monkeypatch.setenv(name, value)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        yield cluster
    finally:
        cluster.shutdown()


@pytest.mark.slow
def test_a_worker_a_machine_and_the_driver_die_and_nothing_is_lost(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.folder / "spec" / "far.toml"
    path.write_text(
        path.read_text().replace("trials = 6", "trials = 60").replace("horizon = 60", "horizon = 1500")
    )
    place.run("here")
    with two_machines(place, monkeypatch) as cluster:
        words = ("--executor", "ray", "--address", cluster.address)
        (place.marks / "killed").unlink()
        (second,) = cluster.worker_nodes
        raylet = second.all_processes["raylet"][0].process.pid
        driver = place.start("there", *words)
        try:
            wait_until(lambda: (place.marks / f"raylet-{raylet}").exists() and place.parts("there") >= 3)
            cluster.remove_node(second, allow_graceful=False)
            lost = place.parts("there")
            wait_until(lambda: place.parts("there") >= lost + 3)
            driver.kill()
            driver.communicate(timeout=60)
        finally:
            driver.kill()
        kept = place.parts("there")
        assert (place.marks / "killed").exists()
        assert kept < 60
        cluster.add_node(num_cpus=1)
        said = place.run("there", *words)
        assert f"60 cells, {kept} done before" in said
        assert "60 of 60 cells done" in said
    assert place.table("there") == place.table("here")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopped_it_says_how_to_go_on(
    number: signal.Signals, code: int, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = place.folder / "spec" / "far.toml"
    path.write_text(path.read_text().replace("trials = 6", "trials = 5000"))
    with two_machines(place, monkeypatch) as cluster:
        driver = place.start("there", "--executor", "ray", "--address", cluster.address)
        try:
            wait_until(lambda: place.parts("there") >= 1)
            driver.send_signal(number)
            out, err = driver.communicate(timeout=60)
        finally:
            driver.kill()
    assert driver.returncode == code
    assert err.strip().splitlines()[-1].startswith(f"stopped: {place.parts('there')} of 5,000 cells are done")
    assert "Traceback" not in err
    assert out == ""
