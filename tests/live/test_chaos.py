"""A few faults of `scripts/chaos.py`: the ledgers of the applications equal the disks of the nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "chaos.py"


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--signed"], ["--cables"]], ids=["namespaces", "cables"])
def test_chaos_with_real_processes(words: list[str], tmp_path: Path) -> None:
    """In namespaces if they can be made, else and also behind proxies."""
    command = [sys.executable, str(SCRIPT), "--faults", "15", "--nodes", "4", "--seconds", "300", *words]
    done = subprocess.run(
        [*command, "--keep", str(tmp_path)], capture_output=True, text=True, timeout=900, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(done.stdout)
    assert result["faults"] == 15
    assert result["acknowledged"] > 100
    assert (result["lost"], result["twice"], result["missing at nodes"], result["wrong"]) == (0, 0, 0, [])
    assert result["conflicts refused"] > 0
