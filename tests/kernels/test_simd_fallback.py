"""Compilers that refuse the IR, or lack a private name of numba: the same games, with one notice."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import pytest

from rumormill.kernels import jit, simd

GAME = """
import warnings
import rumormill as rm
from rumormill.errors import SlowEngineNotice
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    bandit = rm.Bandit([rm.AlphaStable(alpha=1.9, loc=0.0), rm.AlphaStable(alpha=1.9, loc=1.0)])
    for policy in (rm.DecentralizedMPUCB(gamma=2), rm.KMPUCB(gamma=1)):
        results = [
            rm.simulate(bandit, rm.Network.ring(5), policy, horizon=40, rng=1, engine=how, actions=True)
            for how in ("fast", "reference")
        ]
        assert (results[0].actions == results[1].actions).all()
from rumormill.kernels import jit, simd
notices = [str(w.message) for w in caught if issubclass(w.category, SlowEngineNotice)]
print(simd.ENABLED, jit._CACHES, len(notices), *notices, sep="|")
"""
REFUSED_IR = """
from numba.core import cgutils
real = cgutils.get_or_insert_function
def refuse(module, function, name, *given):
    if name.startswith("llvm.masked"):
        raise RuntimeError("LLVM IR parsing error: no such intrinsic")
    return real(module, function, name, *given)
cgutils.get_or_insert_function = refuse
"""
NO_CACHE_KEY = """
from numba.core import caching
del caching.Cache._index_key
"""
FEW_OPTIONS = """
from numba.core.options import DefaultOptions
del DefaultOptions._nrt, DefaultOptions.no_cfunc_wrapper, DefaultOptions.no_cpython_wrapper
"""

pytestmark = pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")


def play(before: str, cache: Path, **environment: str) -> list[str]:
    """What a process prints that runs `before`, then the game."""
    kept = {name: value for name, value in os.environ.items() if name != simd.SWITCH}
    run = subprocess.run(
        [sys.executable, "-c", before + GAME],
        env={**kept, "NUMBA_CACHE_DIR": str(cache), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout.strip().split("|")


def test_refused_ir_falls_back_to_plain_loops_with_one_notice(tmp_path: Path) -> None:
    enabled, cached, count, notice = play(REFUSED_IR, tmp_path)
    assert (enabled, cached, count) == ("False", "True", "1")
    assert f"numba {numba.__version__} does not compile the vector loops" in notice
    assert "no such intrinsic" in notice
    # The code of the two forms is kept apart on disk, and the switch needs no notice.
    assert play("", tmp_path, RUMORMILL_SIMD="0") == ["False", "True", "0"]


def test_without_private_names_kernels_are_compiled_with_public_options(tmp_path: Path) -> None:
    enabled, cached, count, notice = play(NO_CACHE_KEY + FEW_OPTIONS, tmp_path, RUMORMILL_SIMD="0")
    assert (enabled, cached, count) == ("False", "False", "1")
    assert "kernels are compiled in every process" in notice


def double(x: float) -> float:
    return 2.0 * x


def test_code_of_other_sources_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index of an earlier version may name classes that no longer exist: reading it would raise."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    compiled: Any = jit.kernel(double)
    index = Path(compiled._cache._cache_file._index_path)
    index.parent.mkdir(parents=True, exist_ok=True)
    index.write_bytes(pickle.dumps(numba.__version__) + b"no pickle")
    assert compiled(1.5) == 3.0
    assert pickle.loads(index.read_bytes()).startswith(f"{numba.__version__} ")


def test_missing_names_are_noticed() -> None:
    assert jit.has_options({"nogil": True})
    assert not jit.has_options({"nogil": True, "no_such_option": True})
    assert not jit.refuses_python(object())
    assert not jit.caches(object())


def test_parts_are_optimised_in_the_kernel_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part has no machine code of its own; without numba's names it is compiled as any other function."""
    half: Any = jit.part(lambda x: 0.5 * x)
    whole: Any = jit.kernel(lambda x: half(x) + half(x))
    assert whole(3.0) == 3.0
    (compiled,) = half.overloads.values()
    assert type(compiled.library).__name__ == "LinkedLibrary"
    monkeypatch.delattr("numba.core.codegen.JITCodeLibrary")
    assert jit.compilers() == ({}, {})
    monkeypatch.setattr(jit, "_WHOLE", {})
    monkeypatch.setattr(jit, "_LINKED", {})
    half = jit.part(lambda x: 0.5 * x)
    whole = jit.kernel(lambda x: half(x) + half(x))
    assert whole(5.0) == 5.0


def test_the_choice_between_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    for enabled in (True, False):
        monkeypatch.setattr(simd, "ENABLED", enabled)
        assert simd.either("ir", "plain") == ("ir" if enabled else "plain")
