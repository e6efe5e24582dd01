"""Every block of the tutorial is executed, in order."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from live.processes import free_ports

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "live.md"
BLOCKS = re.findall(r"^```(sh|python)\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_the_tutorial(tmp_path: Path) -> None:
    """With ports of its own, so that two runs on one machine do not meet."""
    ports = iter(free_ports(6))
    text = "\0".join(f"{kind}\1{block}" for kind, block in BLOCKS)
    for port in sorted(set(re.findall(r"\b17\d{3}\b", text))):
        text = text.replace(port, str(next(ports)))
    command = tmp_path / "bin" / "rumormill"
    command.parent.mkdir()
    command.write_text(
        f"#!/bin/sh\nexec {sys.executable} -c 'from rumormill.cli import main; main()' \"$@\"\n"
    )
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    try:
        for kind, block in (part.split("\1") for part in text.split("\0")):
            words = ["sh", "-ec", block] if kind == "sh" else [sys.executable, "-c", block]
            with (tmp_path / "out.txt").open("w+") as out:
                done = subprocess.run(
                    words, cwd=tmp_path, env=environment, stdout=out, stderr=out, timeout=600
                )
                out.seek(0)
                assert done.returncode == 0, f"{block}\n{out.read()}"
    finally:
        for path in tmp_path.glob("*.pid"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(path.read_text()), signal.SIGTERM)
    rows = list(csv.DictReader((tmp_path / "log.csv").read_text().splitlines()))
    assert len(rows) == 200
    assert {row["agent"] for row in rows} == {"a", "c"}
