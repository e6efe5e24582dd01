"""Small experiments and small work that the tests share; other processes can import it too."""

import os
import signal
from pathlib import Path

from rumormill.engine.workers import Tick
from rumormill.errors import InputError
from rumormill.experiments.plan import Cell
from rumormill.experiments.run.manifest import read_manifest
from rumormill.experiments.run.store import Parts

TINY = """
name = "tiny"
seed = 7
horizon = 50
trials = 2

[network]
kind = "erdos_renyi"
n = 6
p = 0.7

[arms]
law = "alpha-stable"
alpha = 1.9
K = 3

[[policies]]
type = "decentralized"
gamma = 1

[[policies]]
type = "robust"
"""

# The same, with gamma left open: it may be swept.
OPEN = TINY.replace("gamma = 1\n", "")

SWEPT = """
name = "swept"
seed = 3
horizon = 400
trials = 12
checkpoints = 4

[network]
kind = "watts_strogatz"
n = 30
k = 4
p = 0.2

[arms]
law = "alpha-stable"
alpha = 1.9
K = 3

[[policies]]
type = "kmp"

[[policies]]
type = "centralized"

[[policies]]
type = "consensus"

[sweep]
gamma = [0, 1, 3]
"""


def square(task: int, tick: Tick) -> int:
    """Work that is soon done."""
    tick(1.0)
    return task * task


def fails_at(number: int, task: int, tick: Tick) -> int:
    """Work that fails once."""
    if task == number:
        raise InputError(f"task {number}")
    return task


def dies_once(mark: str, task: int, tick: Tick) -> int:
    """Work whose first process does not survive it."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return task
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def dies(task: int, tick: Tick) -> int:
    """Work that no process survives."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def finished_cells(folder: Path) -> set[Cell]:
    """The finished cells in the folder of a run; none before its manifest is there."""
    if not (folder / "manifest.json").is_file():
        return set()
    return {*Parts(folder / "parts", read_manifest(folder).key).done}
