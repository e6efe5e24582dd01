"""How much code one runs through: functions and files touched by five common walks.

    python scripts/walk.py

Counts the distinct Python functions of rumormill (comprehensions and lambdas left out) that are entered, and
the files they stand in. Compiled kernels count as one function each where Python calls them.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import rumormill as rm

SOURCE = str(Path(rm.__file__).parent) + os.sep
SPEC = """name = "walk"
seed = 1
horizon = 100
trials = 6
network = { kind = "ring", n = 6 }
arms = { law = "gaussian", K = 2 }
policies = [{ type = "kmp" }, { type = "robust" }]
"""


class Touched:
    """The functions entered while it is on."""

    def __init__(self) -> None:
        self.functions: set[tuple[str, str]] = set()

    @property
    def files(self) -> set[str]:
        return {file for file, _ in self.functions}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE) and not code.co_name.startswith("<"):
            self.functions.add((code.co_filename, code.co_qualname))

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


def command(*words: str) -> None:
    """A command of rumormill in this process; its output is dropped."""
    from rumormill.cli import main

    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            main(list(words))
        except SystemExit as ended:
            if ended.code:
                raise


def bandit() -> rm.Bandit:
    """Three α-stable arms."""
    return rm.Bandit([rm.AlphaStable(alpha=1.9, loc=mean) for mean in (0.2, 0.5, 0.9)])


def reference_round(touched: Touched) -> None:
    """Second round of a game on the reference engine."""
    from rumormill.engine import reference as engine

    source, network, policy = bandit(), rm.Network.ring(5), rm.KMPUCB(gamma=1)
    played = engine.Game.play_round

    def second_only(game: Any, t: int) -> Any:
        if t != 2:
            return played(game, t)
        with touched.on():
            return played(game, t)

    engine.Game.play_round = second_only  # type: ignore[method-assign, assignment]
    try:
        rm.simulate(source, network, policy, horizon=3, rng=1, engine="reference")
    finally:
        engine.Game.play_round = played  # type: ignore[method-assign]


def compiled_simulate(touched: Touched) -> None:
    """`rm.simulate` on the compiled engine, everything imported and compiled before."""
    source, network, policy = bandit(), rm.Network.ring(5), rm.KMPUCB(gamma=1)
    rm.simulate(source, network, policy, horizon=50, rng=1)
    with touched.on():
        rm.simulate(source, network, policy, horizon=50, rng=2)


def run_to_report(touched: Touched) -> None:
    """`rumormill run` of a spec, from the file to the report."""
    Path("walk.toml").write_text(SPEC, encoding="utf-8")
    with touched.on():
        command("run", "walk.toml", "--out", "walked", "--jobs", "1")


def advise_to_mesh(touched: Touched) -> None:
    """`rumormill advise`, from a log to the mesh file."""
    rng = random.Random(1)
    rows = ["time,client,a,b"]
    for t in range(60):
        rows += [
            f"{t},c{v},{5 + rng.gammavariate(2, 1):.3f},{6 + rng.gammavariate(2, 1):.3f}" for v in range(3)
        ]
    Path("walk.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    with touched.on():
        command("advise", "walk.csv", "--minimise", "--write", "mesh.toml")


def choose_and_observe(touched: Touched) -> None:
    """One choice and its reward at a node in this process, without sockets."""
    from rumormill.live.core.node import Node
    from rumormill.live.core.node_config import node_config
    from rumormill.mesh.file import read_mesh

    command("mesh", "init", "walk", "--arm", "a", "--arm", "b", "--folder", "mesh")
    command("mesh", "add", "n0", "127.0.0.1:7401", "--mesh", "mesh/mesh.toml")
    command("mesh", "plan", "--mesh", "mesh/mesh.toml")
    mesh = read_mesh(Path("mesh/mesh.toml"))
    node = Node(node_config(mesh, "n0", 1))
    node.tick(0.0)
    node.start()
    node.committed(len(node.take_journal()))  # decision numbers are reserved on disk before the first choice
    with touched.on():
        chosen = node.choose("game", 1.0, 60.0)
        node.observe("game", chosen.t, chosen.arm, 1.0)


WALKS: tuple[Callable[[Touched], None], ...] = (
    reference_round,
    compiled_simulate,
    run_to_report,
    advise_to_mesh,
    choose_and_observe,
)


def main() -> None:
    """Print functions and files of each walk."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for walk in WALKS:
            touched = Touched()
            walk(touched)
            print(f"{walk.__name__:20} {len(touched.functions):5} functions {len(touched.files):4} files")


if __name__ == "__main__":
    main()
