"""Kernels are plain Python underneath: the small games pass with the compiler switched off."""

import os
import subprocess
import sys
from pathlib import Path


def test_small_games_pass_uncompiled() -> None:
    here = Path(__file__)
    games = [str(here.with_name(name)) for name in ("test_small_games.py", "test_last_round.py")]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", *games],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        cwd=here.parents[2],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-2000:]
