"""How kernels are compiled: once per machine, without the GIL, with exact floating point."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba
import numba.core.event

from rumormill import counter_rng as keyed
from rumormill import formulas

F = TypeVar("F", bound=Callable[..., Any])


# Nobody calls kernels from C, and only kernels are called from Python: what it takes to be called is a good
# part of what there is to compile. Nothing here makes arrays, so the references of those that are given need
# not be counted (_nrt): that alone took a third of the time of a round of 50 agents.
_FROM_PYTHON = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}
_FROM_KERNELS = {**_FROM_PYTHON, "no_cpython_wrapper": True}


def kernel(function: F) -> F:
    """Compile on first use and keep the machine code on disk."""
    compiled: Any = numba.njit(cache=True, **_FROM_PYTHON)(function)
    # numba checks the age of the file a function stands in, but not of the files whose functions were
    # compiled into it. A stamp of all kernels' text makes code that is out of date impossible.
    cache_file = getattr(getattr(compiled, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = _STAMP
    result: F = compiled
    return result


def part(function: F) -> F:
    """A part of a kernel, compiled into its callers. Cheap to compile if it takes no more than it needs."""
    return _only_from_kernels(numba.njit(**_FROM_KERNELS)(function))


def step(function: F) -> F:
    """A part that is written into its callers, not called.

    What does not change in a loop can then be taken out of it. But every time the caller is copied as a
    whole: in long ones that takes longer than to compile a part.
    """
    return _only_from_kernels(numba.njit(inline="always", **_FROM_KERNELS)(function))


def _only_from_kernels(compiled: Any) -> Any:
    """Python would jump to where nothing is: it is told so instead."""

    def refuse(*args: Any) -> None:
        raise TypeError(f"{compiled.__name__} is a part of kernels; alone({compiled.__name__}) can be called")

    if hasattr(compiled, "py_func"):  # otherwise nothing is compiled at all
        compiled._insert = lambda *entry, **_: None  # numba keeps no address to jump to
        compiled._compile_for_args = refuse  # and asks here what to do
    return compiled


def linked(function: F, **parts: Any) -> F:
    """A part made of a formula that calls other formulas: these are compiled parts too."""
    copy: Any = FunctionType(function.__code__, {**function.__globals__, **parts}, function.__name__)
    copy.__doc__, copy.__module__ = function.__doc__, function.__module__
    result: F = part(copy)
    return result


def alone(function: F) -> F:
    """A part that Python can call: to test it, or to measure it."""
    dispatcher: Any = function
    if not hasattr(dispatcher, "py_func"):  # nothing is compiled at all
        return function
    compiled: F = numba.njit(**_FROM_PYTHON)(dispatcher.py_func)
    return compiled


class Compiling(numba.core.event.Listener):  # type: ignore[misc]
    """How long this process has spent on compiling so far: a display must not take it for the pace of work.

    One thread compiles at a time; what it compiles on the way is inside of the first.
    """

    def __init__(self) -> None:
        self._depth, self._since, self._done = 0, 0.0, 0.0
        self.on_begin: Callable[[], None] | None = None
        """Called when a compilation begins."""

    @property
    def seconds(self) -> float:
        """Until now."""
        return self._done + (time.monotonic() - self._since if self._depth else 0.0)

    def on_start(self, event: object) -> None:
        if self._depth == 0:
            self._since = time.monotonic()
            if self.on_begin is not None:
                self.on_begin()
        self._depth += 1

    def on_end(self, event: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._done += time.monotonic() - self._since


COMPILING = Compiling()
numba.core.event.register("numba:compile", COMPILING)


def _stamp() -> str:
    digest = hashlib.sha256()
    for path in [*sorted(Path(__file__).parent.glob("*.py")), Path(formulas.__file__), Path(keyed.__file__)]:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


_STAMP = _stamp()
