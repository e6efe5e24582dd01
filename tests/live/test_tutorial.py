"""Every block of the tutorial and of the runbooks is executed, in order."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from scripts.ports import free_ports

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def follow(page: Path, folder: Path) -> list[str]:
    """Execute all blocks; what each printed. With ports of their own, so that two runs do not meet."""
    ports, printed = iter(free_ports(20)), []
    text = "\0".join(f"{kind}\1{block}" for kind, block in BLOCK.findall(page.read_text(encoding="utf-8")))
    for port in sorted(set(re.findall(r"\b17\d{3}\b", text))):
        text = text.replace(port, str(next(ports)))
    (folder / "bin").mkdir()
    for name, runs in (("rumormill", "-c 'from rumormill.cli import main; main()'"), ("python", "")):
        command = folder / "bin" / name
        command.write_text(f'#!/bin/sh\nexec {sys.executable} {runs} "$@"\n')
        command.chmod(0o755)
    (folder / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    try:
        for kind, block in (part.split("\1") for part in text.split("\0")):
            words = ["sh", "-ec", block] if kind == "sh" else [sys.executable, "-c", block]
            with (folder / "out.txt").open("w+") as out:
                done = subprocess.run(words, cwd=folder, env=environment, stdout=out, stderr=out, timeout=600)
                out.seek(0)
                printed.append(out.read())
                assert done.returncode == 0, f"{block}\n{printed[-1]}"
    finally:
        for path in folder.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGTERM)
    return printed


def test_the_tutorial(tmp_path: Path) -> None:
    follow(DOCS / "tutorials" / "live.md", tmp_path)
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert len(rows) == 200
    assert {row["agent"] for row in rows} == {"a", "c"}


def test_the_router(tmp_path: Path) -> None:
    printed = "\n".join(follow(DOCS / "tutorials" / "routing.md", tmp_path))
    assert printed.count(" requests, 0 failed") == 3
    assert '"object": "chat.completion"' in printed
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert len(rows) > 50
    assert {row["arm"] for row in rows} == {"arbor", "birch", "cedar", "dogwood"}


def test_the_runbooks(tmp_path: Path) -> None:
    """Backup, restore, a new mesh file, rotation, upgrade."""
    printed = "\n".join(follow(DOCS / "operations.md", tmp_path))
    for name in ("log.csv", "n1-log.csv"):
        assert len((tmp_path / name).read_text().splitlines()) == 1 + 20
    assert oct((tmp_path / "mesh-backup.tar.gz").stat().st_mode)[-3:] == "600"
    assert (tmp_path / "restored" / "keys" / "ca.key").exists()
    assert 'rumormill_build_info{version="' in printed
    logged = [json.loads(line) for path in tmp_path.glob("n?.log") for line in path.read_text().splitlines()]
    assert not [row for row in logged if row["level"] in ("error", "critical")]
