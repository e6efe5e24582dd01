"""What must run wherever rumormill can be installed: README's snippets, one panel, advice, a live node.

    python scripts/smoke.py

No test runner is needed. `make test-lowest` calls it with the lowest versions that pyproject.toml declares.
Every step prints one line; the first that fails ends the run with its output.
"""

from __future__ import annotations

import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
TIMEOUT = 900.0


def call(*words: str, folder: Path) -> str:
    """Run a command; returns its standard output, ends the script where it fails."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT)
    if done.returncode:
        raise SystemExit(f"failed: {' '.join(words[:6])}\n{done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


def rumormill(*words: str, folder: Path) -> str:
    """Run a command of rumormill."""
    return call(sys.executable, "-m", "rumormill", *words, folder=folder)


def readme(folder: Path) -> None:
    """Execute every Python block of the README, each in a process of its own."""
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        call(sys.executable, "-c", block, folder=folder)


def panel(folder: Path) -> None:
    """Reproduce the first panel at its small scale, figures and report included."""
    rumormill("reproduce", "fig1a", "--quick", "--out", "panel", folder=folder)
    assert (folder / "panel" / "results.parquet").exists()
    assert (folder / "panel" / "report.html").exists()


def advice(folder: Path) -> None:
    """Advise on a log of round trips and write the mesh file."""
    rng = random.Random(1)
    rows = ["time,client,fra,ams,waw"]
    for t in range(60):
        for client in ("c0", "c1", "c2"):
            costs = [mean + rng.gammavariate(2.0, 2.0) for mean in (20.0, 22.0, 24.0)]
            rows.append(",".join([str(t), client, *(f"{cost:.3f}" for cost in costs)]))
    (folder / "log.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    rumormill("advise", "log.csv", "--minimise", "--unit", "ms", "--write", "advised.toml", folder=folder)
    assert "[[nodes]]" in (folder / "advised.toml").read_text("utf-8")


def free_port() -> int:
    """A port of this machine that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def node(folder: Path) -> None:
    """Make a mesh of one node, start it, choose, observe, stop it with SIGTERM, export its log."""
    from rumormill.live.io.client import Client, NodeError

    http = free_port()
    rumormill("mesh", "init", "demo", "--arm", "a", "--arm", "b", folder=folder)
    rumormill("mesh", "add", "n0", f"127.0.0.1:{free_port()}", folder=folder)
    rumormill("mesh", "plan", folder=folder)
    options = ["--name", "n0", "--data", "data", "--http", f"127.0.0.1:{http}"]
    process = subprocess.Popen(
        [sys.executable, "-m", "rumormill", "node", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        client = Client(f"http://127.0.0.1:{http}")
        deadline = time.monotonic() + 60.0
        while True:
            try:
                chosen = client.choose()
                break
            except NodeError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise
                time.sleep(0.1)
        client.observe(chosen.token, 1.0)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30.0) == 0
    finally:
        if process.poll() is None:
            process.kill()
        output = process.communicate()[0]
        if process.returncode:
            print(output.decode(errors="replace")[-3000:])
    rumormill("mesh", "export", "data", "--out", "log-of-node.csv", folder=folder)
    assert len((folder / "log-of-node.csv").read_text("utf-8").splitlines()) == 2


STEPS: tuple[Callable[[Path], None], ...] = (readme, panel, advice, node)


def main() -> None:
    """Run all steps in an empty folder."""
    names = ("numpy", "msgspec", "numba", "scipy", "polars", "matplotlib", "typer", "cryptography")
    print("versions:", ", ".join(f"{name} {version(name)}" for name in names), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for step in STEPS:
            started = time.monotonic()
            step(Path(folder))
            print(f"{step.__name__}: passed in {time.monotonic() - started:.0f} s", flush=True)
    print(f"{len(STEPS)} passed, 0 failed")


if __name__ == "__main__":
    main()
