"""A node needs the extra `node` and nothing of the laboratory, also where something goes wrong."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ONLY_THE_NODE = """
import sys

LABORATORY = set("numba scipy networkx rustworkx polars matplotlib dimod dwave".split())


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in LABORATORY:
            raise ModuleNotFoundError(f"{name} is of the laboratory", name=name)


sys.meta_path.insert(0, Refuse())
from rumormill.cli import main

main(sys.argv[1:])
"""


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", ONLY_THE_NODE, *words], cwd=folder, capture_output=True, text=True, timeout=300
    )


def test_a_mesh_is_made_without_the_laboratory(tmp_path: Path) -> None:
    assert call(tmp_path, "mesh", "init", "m", "--arm", "x", "--arm", "y").returncode == 0
    for words in (("add", "a", "127.0.0.1:7401"), ("add", "b", "127.0.0.1:7402", "--link", "a"), ("show",)):
        done = call(tmp_path, "mesh", *words)
        assert done.returncode == 0, done.stderr
    assert "127.0.0.1:7402" in done.stdout
    assert oct((tmp_path / "keys" / "a.key").stat().st_mode)[-3:] == "600"


def test_errors_are_one_line(tmp_path: Path) -> None:
    done = call(tmp_path, "node", "--name", "a")
    assert (done.returncode, done.stderr) == (
        2,
        "error: mesh.toml: there is no such file; `rumormill mesh init NAME` makes one\n",
    )
    assert call(tmp_path, "mesh", "init", "m", "--arm", "x", "--arm", "y").returncode == 0
    assert "nodes: missing; `rumormill mesh add NAME HOST:PORT`" in call(tmp_path, "mesh", "show").stderr
    assert call(tmp_path, "mesh", "add", "a", "127.0.0.1:7401").returncode == 0
    (tmp_path / "keys" / "a.key").unlink()
    for name, said in (("z", "has no node 'z'"), ("a", "keys of node 'a' cannot be read")):
        done = call(tmp_path, "node", "--name", name)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert said in done.stderr


def test_the_examples_for_operations_use_what_there_is(tmp_path: Path) -> None:
    """Every option in the unit and in the container file is one of `rumormill node`."""
    folder = Path(__file__).parents[2] / "examples"
    options = set(re.findall(r"--[a-z]+", call(tmp_path, "node", "--help").stdout))
    for name in ("rumormill-node.service", "Containerfile"):
        lines = [line for line in (folder / name).read_text().splitlines() if "rumormill node --" in line]
        assert len(lines) == 1
        used = set(re.findall(r"--[a-z]+", lines[0].partition("rumormill node")[2]))
        assert {"--mesh", "--name", "--data"} <= used <= options
