"""Schemathesis plays the OpenAPI description against a node: requests that fit it, and others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from live.processes import cluster

COMMAND = "from schemathesis.cli import schemathesis; schemathesis()"
SETTINGS = Path(__file__).parent / "data" / "schemathesis.toml"


@pytest.mark.slow
def test_the_description_holds(tmp_path: Path) -> None:
    """Every answer is described; what fits the description is accepted, what does not is refused.

    The stream of events is left out: it has no end.
    """
    pytest.importorskip("schemathesis", reason="pip install 'rumormill[dev]'")
    with cluster(tmp_path, [(0, 1)]) as made:
        made.start(0)
        url = f"http://127.0.0.1:{made.http[0]}/openapi.json"
        words = ["--config-file", str(SETTINGS), "run", url, "--max-examples", "150", "--seed", "1"]
        done = subprocess.run(
            [sys.executable, "-c", COMMAND, *words, "--exclude-path", "/events", "--workers", "1"],
            capture_output=True,
            text=True,
            timeout=600,
            cwd=tmp_path,
        )
        assert done.returncode == 0, done.stdout
        assert "8 selected" in done.stdout
