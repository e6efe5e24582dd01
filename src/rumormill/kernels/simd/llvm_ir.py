"""LLVM IR for vectors of a few lanes: types, masked load and store, gather; and the probe that tries them."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

DOUBLE, BYTE, ID, WORD = ir.DoubleType(), ir.IntType(8), ir.IntType(32), ir.IntType(64)


def bits(lanes: int) -> Any:
    """The type of a mask."""
    return ir.VectorType(ir.IntType(1), lanes)


def doubles(lanes: int) -> Any:
    """The type of so many numbers."""
    return ir.VectorType(DOUBLE, lanes)


def ids(lanes: int) -> Any:
    """The type of so many arms or agents."""
    return ir.VectorType(ID, lanes)


def words(lanes: int) -> Any:
    """The type of so many places."""
    return ir.VectorType(WORD, lanes)


def filled(kind: Any, value: float | int) -> Any:
    """A constant, the same in every lane."""
    return ir.Constant(kind, [value] * kind.count)


def splat(builder: Any, value: Any, lanes: int) -> Any:
    """The value in every lane."""
    kind = ir.VectorType(value.type, lanes)
    undefined = ir.Constant(kind, ir.Undefined)
    zeros = filled(ids(lanes), 0)
    return builder.shuffle_vector(builder.insert_element(undefined, value, ID(0)), undefined, zeros)


def size(builder: Any, value: Any) -> Any:
    """|value|."""
    kind, name = ir.FunctionType(value.type, [value.type]), f"llvm.fabs.{_name(value.type)}"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [value])


def there(builder: Any, room: Any, lanes: int) -> Any:
    """Which lanes there are, where `room` numbers are left."""
    word = ir.IntType(lanes)
    spare = builder.sub(WORD(lanes), room)
    spare = builder.select(builder.icmp_signed(">", spare, WORD(0)), spare, WORD(0))
    short = spare if lanes == WORD.width else builder.trunc(spare, word)
    return builder.bitcast(builder.lshr(word(-1), short), bits(lanes))


def load(builder: Any, pointer: Any, mask: Any) -> Any:
    """The numbers from a place on, 0 where the mask has no bit."""
    kind = ir.VectorType(pointer.type.pointee, mask.type.count)
    function = ir.FunctionType(kind, [pointer.type, ID, mask.type, kind])
    name = f"llvm.masked.load.{_name(kind)}.p0"
    call = cgutils.get_or_insert_function(builder.module, function, name)
    return builder.call(call, [pointer, ID(_size(kind)), mask, filled(kind, 0)])


def store(builder: Any, value: Any, pointer: Any, mask: Any) -> None:
    """Numbers to a place, where the mask has a bit."""
    function = ir.FunctionType(ir.VoidType(), [value.type, pointer.type, ID, mask.type])
    name = f"llvm.masked.store.{_name(value.type)}.p0"
    call = cgutils.get_or_insert_function(builder.module, function, name)
    builder.call(call, [value, pointer, ID(_size(value.type)), mask])


def look_up(builder: Any, table: Any, places: Any, mask: Any) -> Any:
    """Numbers from places of a table, 0 where the mask has no bit."""
    lanes = mask.type.count
    kind, pointers = doubles(lanes), ir.VectorType(table.type, lanes)
    start = splat(builder, builder.ptrtoint(table, WORD), lanes)
    steps = builder.mul(places, filled(places.type, _size(kind)))
    addresses = builder.inttoptr(builder.add(start, steps), pointers)
    function = ir.FunctionType(kind, [pointers, ID, mask.type, kind])
    name = f"llvm.masked.gather.{_name(kind)}.v{lanes}p0"
    call = cgutils.get_or_insert_function(builder.module, function, name)
    return builder.call(call, [addresses, ID(_size(kind)), mask, filled(kind, 0.0)])


def _name(kind: Any) -> str:
    return f"v{kind.count}{'f64' if kind.element == DOUBLE else f'i{kind.element.width}'}"


def _size(kind: Any) -> int:
    """Bytes of a number."""
    return 8 if kind.element == DOUBLE else kind.element.width // 8


# --- the probe: a use of everything above that not every version of LLVM accepts ----------------------------


@intrinsic  # type: ignore[untyped-decorator]
def _double(typing_context: Any, values: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        here = there(builder, cgutils.unpack_tuple(builder, array.shape)[0], PROBE_LANES)
        number = load(builder, array.data, here)
        same = look_up(builder, array.data, builder.fptosi(number, words(PROBE_LANES)), here)
        store(builder, builder.fadd(number, same), array.data, here)
        return context.get_dummy_value()

    return types.void(values), generate


PROBE_LANES = 8


@numba.njit(cache=True)  # type: ignore[untyped-decorator]
def _probe(values: Any) -> None:
    _double(values)


def probe() -> None:
    """Compile two lines of IR, or load them from disk, and check their result; raises where they fail."""
    values = np.arange(5.0)
    _probe(values)
    if values.tolist() != [0.0, 2.0, 4.0, 6.0, 8.0]:
        raise RuntimeError(f"masked load, gather and store gave {values.tolist()}")
