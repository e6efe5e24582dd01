"""The compiled engine: built-in policies on whole trials, with the reference engine's actions.

A policy family has one layout here, looked up by its type in one table.
"""

from rumormill.engine.compiled.base import Ground, Layout
from rumormill.engine.compiled.table import lay_out, why_not
from rumormill.kernels.jit import COMPILING

__all__ = ["COMPILING", "Ground", "Layout", "lay_out", "why_not"]
