"""The compiled engine: built-in policies on whole trials, with the reference engine's actions.

Each policy family has one layout here, looked up by its type in one table (dispatch.py).
"""

from rumormill.engine.compiled.dispatch import compile_layout, unsupported_reason
from rumormill.engine.compiled.state import Layout, LayoutInputs, shared_kernels
from rumormill.kernels.jit import COMPILING

__all__ = ["COMPILING", "Layout", "LayoutInputs", "compile_layout", "shared_kernels", "unsupported_reason"]
