"""The compiled engine: built-in policies on whole trials, with the reference engine's actions.

A policy family has one layout here, looked up by its type in one table.
"""

from rumormill.engine.compiled.dispatch import lay_out, why_not
from rumormill.engine.compiled.state import Ground, Layout
from rumormill.kernels.jit import COMPILING

__all__ = ["COMPILING", "Ground", "Layout", "lay_out", "why_not"]
