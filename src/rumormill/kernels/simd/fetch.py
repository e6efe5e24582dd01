"""Reading ahead, from places that LLVM does not foresee: a word of LLVM IR."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rumormill.kernels.jit import part
from rumormill.kernels.simd import either
from rumormill.kernels.simd.llvm_ir import BYTE, ID
from rumormill.kernels.state import Floats, Ids


@part
def plain_fetch(values: Floats | Ids, place: int) -> None:
    """Nothing: numbers are fetched when they are read."""


@intrinsic  # type: ignore[untyped-decorator]
def _fetch(typing_context: Any, values: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(array.data, [arguments[1]]), BYTE.as_pointer())
        function = ir.FunctionType(ir.VoidType(), [address.type, ID, ID, ID])
        call = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0")
        builder.call(call, [address, ID(0), ID(3), ID(1)])  # to read it, into every cache, as data
        return context.get_dummy_value()

    return types.void(values, types.int64), generate


@part
def ir_fetch(values: Floats | Ids, place: int) -> None:
    """Bring the number at a place, counted through all rows, into the cache: no result depends on it."""
    _fetch(values, place)


fetch = either(ir_fetch, plain_fetch)
