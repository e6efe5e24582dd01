"""How kernels are compiled: once per machine, without the GIL, with exact floating point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile on first use and keep the machine code on disk."""
    compiled: F = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled


def inlined(function: F) -> F:
    """A part of a kernel, compiled into its callers."""
    compiled: F = numba.njit(nogil=True, error_model="numpy", inline="never")(function)
    return compiled
