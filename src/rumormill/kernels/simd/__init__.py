"""Vector loops in hand-written LLVM IR, each beside its plain twin, and the choice between the two.

Both forms of a loop have the same bits. A probe at import compiles two lines of IR; where numba or LLVM
refuses them, the plain twins are used, with one notice. RUMORMILL_SIMD=0 selects the plain twins without a
notice.
"""

from __future__ import annotations

import os
import warnings
from typing import TypeVar

import numba

from rumormill.errors import SlowEngineNotice

Form = TypeVar("Form")

SWITCH = "RUMORMILL_SIMD"


def either(ir: Form, plain: Form) -> Form:
    """The IR form of a loop where the probe accepted it, else its plain twin."""
    return ir if ENABLED else plain


def _enabled() -> bool:
    """Whether IR forms are used: not uncompiled, not switched off, and accepted by the compiler."""
    if numba.config.DISABLE_JIT or os.environ.get(SWITCH) == "0":
        return False
    try:
        from rumormill.kernels.simd.llvm_ir import probe

        probe()
    except Exception as error:  # whatever an unknown version of numba or LLVM raises
        os.environ[SWITCH] = "0"  # processes started from here neither probe nor warn again
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        notice = f"numba {numba.__version__} does not compile the vector loops, plain ones are used: {reason}"
        warnings.warn(notice, SlowEngineNotice, stacklevel=2)
        return False
    return True


ENABLED = _enabled()
