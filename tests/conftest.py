"""Makes `helpers` importable from every folder of tests, and compiles kernels once for all workers."""

import fcntl
import hashlib
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

# The environment of the router's example has no compiler.
COMPILES = importlib.util.find_spec("numba") is not None and "NUMBA_DISABLE_JIT" not in os.environ


@pytest.fixture(scope="session", autouse=True)
def shared_kernels() -> Iterator[None]:
    """Tests use all kinds of means: one kernel for all, compared with others in kernels/test_features.py."""
    if not COMPILES:
        yield
        return
    from rumormill.engine import compiled

    with compiled.shared_kernels():
        yield


@pytest.fixture(autouse=True)
def no_figures_left() -> Iterator[None]:
    """What a test plotted is not shown by the next one, in whatever order they run."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory: pytest.TempPathFactory, shared_kernels: None) -> Iterator[None]:
    """Of several workers that need a kernel one compiles it; the others wait, and load it from the disk."""
    if not COMPILES or "PYTEST_XDIST_WORKER" not in os.environ:
        yield
        return
    from numba.core.caching import NullCache
    from numba.core.dispatcher import Dispatcher

    from rumormill.kernels.jit import closure_key

    locks, compiling = tmp_path_factory.getbasetemp().parent, threading.local()
    compile_kernel = Dispatcher.compile

    def compile_once(kernel: Any, signature: Any) -> Any:
        if isinstance(kernel._cache, NullCache) or getattr(compiling, "now", False):  # a part of a kernel
            return compile_kernel(kernel, signature)
        name = hashlib.sha256(repr(closure_key(kernel.py_func)).encode()).hexdigest()
        with (locks / f"{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            compiling.now = True
            try:
                return compile_kernel(kernel, signature)
            finally:
                compiling.now = False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dispatcher, "compile", compile_once)
        yield
