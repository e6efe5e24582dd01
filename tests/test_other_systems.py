"""Without the POSIX modules of Python everything but live nodes works, and nodes say what they need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from rumormill.cli.exit import POSIX

# What Windows has in their place: locks of ranges of a file, held by an open handle.
BLOCKED = f"""
import asyncio, concurrent.futures.process, multiprocessing.connection, pathlib, subprocess, sys, types
for name in {POSIX!r}:
    sys.modules[name] = None
held = set()
def locking(handle, mode, size):
    import os
    status = os.fstat(handle)
    if (status.st_dev, status.st_ino) in held:
        raise OSError(36, "Resource deadlock avoided")
    held.add((status.st_dev, status.st_ino))
fake = types.ModuleType("msvcrt")
fake.locking, fake.LK_NBLCK, fake.get_osfhandle = locking, 2, lambda handle: handle
sys.modules["msvcrt"] = fake
import rumormill.system_memory as system_memory
nothing = pathlib.Path("nothing")
system_memory.MEMINFO = system_memory.OWN_GROUPS = system_memory.GROUPS = nothing
"""
SPEC = """
name = "small"
seed = 1
horizon = 20
trials = 2
network = { kind = "ring", n = 4 }
arms = { law = "gaussian", K = 2 }
policies = [{ type = "kmp" }, { type = "robust" }]
"""


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BLOCKED + code], cwd=folder, capture_output=True, text=True)


def command(*words: str) -> str:
    return f"from rumormill.cli import main\nmain({list(words)!r})\n"


def test_an_experiment_with_its_report(tmp_path: Path) -> None:
    (tmp_path / "small.toml").write_text(SPEC, "utf-8")
    done = run(command("run", "small.toml"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "small-2x20" / "report.html").is_file()


def test_a_folder_in_use_is_refused(tmp_path: Path) -> None:
    code = """
from pathlib import Path
from rumormill.experiments.run.store import StoreError, locked
with locked(Path("a")), locked(Path("b")):
    try:
        with locked(Path("a")):
            print("entered")
    except StoreError as error:
        print(error)
"""
    done = run(code, tmp_path)
    assert done.stdout == "a is in use by another run: wait, or choose another folder\n", done.stderr


@pytest.mark.parametrize("words", [("node", "--name", "a"), ("node", "check", "a")])
def test_nodes_say_what_they_need(words: tuple[str, ...], tmp_path: Path) -> None:
    done = run(command(*words), tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "error: this needs Linux or macOS: Python has no fcntl here; everything but live nodes works\n"
    )
