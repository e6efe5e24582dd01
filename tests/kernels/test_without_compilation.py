"""Kernels are plain Python underneath: small games, and those of every kind, pass with the compiler off."""

import os
import subprocess
import sys
from pathlib import Path


def test_small_games_pass_uncompiled() -> None:
    here = Path(__file__)
    names = ("small_games.py", "last_round.py", "features.py::test_every_kind_is_played_as_all_are")
    games = [str(here.with_name(f"test_{name}")) for name in names]
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
