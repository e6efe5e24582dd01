"""The worked examples of CONTRIBUTING.md: each is one file and one line of one table, and each works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
SECTIONS = ("policy", "estimator", "law", "network", "channel", "figure", "command")


@dataclass(frozen=True)
class Example:
    """A new file, a line behind another line of a table, and how the new thing is used."""

    path: str
    source: str
    table: str
    before: str
    added: str
    use: str


def example(section: str) -> Example:
    """The example of a section; a section of another form does not match."""
    (body,) = re.findall(rf"^### An? {section}\n(.*?)(?=^### |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    code, use = re.findall(r"^```python\n(.*?)^```", body, re.MULTILINE | re.DOTALL)
    (diff,) = re.findall(r"^```diff\n(.*?)^```", body, re.MULTILINE | re.DOTALL)
    where, source = code.split("\n", 1)
    table, before, added = diff.splitlines()
    assert where.startswith("# src/rumormill/")
    assert table.startswith("--- src/rumormill/")
    assert before.startswith(" ")
    assert added.startswith("+")
    assert use.startswith("# use\n")
    return Example(where[2:], source, table[4:], before[1:], added[1:], use)


def git(folder: Path, *words: str) -> str:
    command = ["git", "-c", "user.name=x", "-c", "user.email=x@y", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources under version control of their own, with all examples added, a commit each."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "as it is")
    for section in SECTIONS:
        one = example(section)
        assert not (folder / one.path).exists()
        (folder / one.path).write_text(one.source, "utf-8")
        table = (folder / one.table).read_text("utf-8")
        assert table.count(f"{one.before}\n") == 1, f"{section}: {one.before!r} is not one line of its table"
        (folder / one.table).write_text(table.replace(f"{one.before}\n", f"{one.before}\n{one.added}\n"))
        git(folder, "add", ".")
        git(folder, "commit", "-qm", section)
    return folder


def test_every_section_has_an_example() -> None:
    assert tuple(re.findall(r"^### An? (\w+)$", TEXT, re.MULTILINE)) == SECTIONS


@pytest.mark.parametrize("section", SECTIONS)
def test_an_addition_is_one_file_and_one_line(copy: Path, section: str) -> None:
    one = example(section)
    commit = git(copy, "log", "--format=%H", "--grep", f"^{section}$").strip()
    changed = {}
    for line in git(copy, "show", "--numstat", "--format=", commit).splitlines():
        added, removed, path = line.split("\t")
        changed[path] = (int(added), int(removed))
    assert changed == {one.path: (len(one.source.splitlines()), 0), one.table: (1, 0)}


def run_in(copy: Path, code: str, folder: Path) -> None:
    # The kernels are those of the sources. Uncompiled they divide by zero as loudly as NumPy does.
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::RuntimeWarning", "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


def test_the_additions_work(copy: Path, tmp_path: Path) -> None:
    """All in one process: each use stands in a function of its own."""
    body = ["import rumormill", f"assert rumormill.__file__.startswith({str(copy)!r}), rumormill.__file__"]
    for section in SECTIONS:
        lines = example(section).use.splitlines()
        body += [f"def use_{section}():", *(f"    {line}" for line in lines), f"use_{section}()"]
    run_in(copy, "\n".join(body), tmp_path)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_additions_are_written_as_the_rest(copy: Path, section: str) -> None:
    one = example(section)
    ruff = shutil.which("ruff", path=Path(sys.executable).parent) or "ruff"
    for words in (["check", "--no-cache"], ["format", "--check", "--no-cache"]):
        done = subprocess.run(
            [ruff, *words, "--config", str(ROOT / "pyproject.toml"), str(copy / one.path)],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
