"""Sixty-four hearers at a time: who of them hears a sample is one word.

Processors add under a mask of bits at full speed, but the compiler does not find that in a loop over bits, so
the loop is written in its own language here. Every hearer's additions stay in their order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from rumormill.kernels.state import Floats, Ids, Words

LANES = 64
MOST = 255  # samples at a time: hearers are counted in bytes

_DOUBLE, _BYTE, _WORD = ir.DoubleType(), ir.IntType(8), ir.IntType(64)
_DOUBLES, _BYTES, _BITS = (ir.VectorType(kind, LANES) for kind in (_DOUBLE, _BYTE, ir.IntType(1)))


def add_lanes(
    words: Words, order: Ids, first: int, last: int, xs: Floats, n: Floats, total: Floats, lane: int
) -> None:
    """The samples of the origins order[first:last], at most MOST of them, for the hearers from `lane` on.

    words[origin] says who of these hears it; n and total are rows of all hearers.
    """
    for origin in order[first:last]:
        for j in range(lane, min(lane + LANES, n.shape[0])):
            if int(words[origin]) >> (j - lane) & 1:
                n[j] += 1.0
                total[j] += xs[origin]


def lanes_up_to(values: Floats, limit: float, lane: int) -> np.uint64:
    """Which of the values from `lane` on are at most the limit; none beyond the last one."""
    word = 0
    for j in range(lane, min(lane + LANES, values.shape[0])):
        word |= int(values[j] <= limit) << (j - lane)
    return np.uint64(word)


@intrinsic  # type: ignore[untyped-decorator]
def _lanes_up_to(typing_context: Any, values: Any, limit: Any, lane: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        _, limit_, lane_ = arguments
        there = _there(builder, builder.sub(cgutils.unpack_tuple(builder, array.shape)[0], lane_))
        found = _load(builder, builder.gep(array.data, [lane_]), there)
        small = builder.fcmp_ordered("<=", found, _splat(builder, limit_))
        return builder.bitcast(builder.and_(small, there), _WORD)

    return types.uint64(values, types.float64, types.int64), generate


@overload(lanes_up_to)  # type: ignore[untyped-decorator]
def _compiled_lanes_up_to(values: Any, limit: Any, lane: Any) -> Any:
    def compiled(values: Any, limit: Any, lane: Any) -> Any:
        return _lanes_up_to(values, np.float64(limit), np.int64(lane))

    return compiled


@intrinsic  # type: ignore[untyped-decorator]
def _add_lanes(
    typing_context: Any, words: Any, order: Any, first: Any, last: Any, xs: Any, n: Any, total: Any, lane: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def array(i: int) -> Any:
            return context.make_array(signature.args[i])(context, builder, arguments[i])

        word_of, order_at, x_of, n_at, total_at = (array(i).data for i in (0, 1, 4, 5, 6))
        _, _, first_, last_, _, _, _, lane_ = arguments
        there = _there(builder, builder.sub(cgutils.unpack_tuple(builder, array(5).shape)[0], lane_))
        n_at, total_at = builder.gep(n_at, [lane_]), builder.gep(total_at, [lane_])
        start_total = _load(builder, total_at, there)

        before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.cbranch(builder.icmp_signed("<", first_, last_), loop, after)
        builder.position_at_end(loop)
        i, count, sums = builder.phi(_WORD), builder.phi(_BYTES), builder.phi(_DOUBLES)
        origin = builder.sext(builder.load(builder.gep(order_at, [i])), _WORD)
        hears = builder.bitcast(builder.load(builder.gep(word_of, [origin])), _BITS)
        x = _splat(builder, builder.load(builder.gep(x_of, [origin])))
        sums_after = builder.select(hears, builder.fadd(sums, x), sums)
        count_after = builder.add(count, builder.zext(hears, _BYTES))
        i_after = builder.add(i, _WORD(1))
        for phi, value, value_after in (
            (i, first_, i_after),
            (count, ir.Constant(_BYTES, [0] * LANES), count_after),
            (sums, start_total, sums_after),
        ):
            phi.add_incoming(value, before)
            phi.add_incoming(value_after, loop)
        builder.cbranch(builder.icmp_signed("<", i_after, last_), loop, after)

        builder.position_at_end(after)
        counted, summed = builder.phi(_BYTES), builder.phi(_DOUBLES)
        for phi, value, value_after in (
            (counted, ir.Constant(_BYTES, [0] * LANES), count_after),
            (summed, start_total, sums_after),
        ):
            phi.add_incoming(value, before)
            phi.add_incoming(value_after, loop)
        _store(builder, summed, total_at, there)
        n_before = _load(builder, n_at, there)
        _store(builder, builder.fadd(n_before, builder.uitofp(counted, _DOUBLES)), n_at, there)
        return context.get_dummy_value()

    return types.void(words, order, types.int64, types.int64, xs, n, total, types.int64), generate


def _there(builder: Any, room: Any) -> Any:
    """Which lanes there are, where `room` hearers are left."""
    all_ones = _WORD(-1)
    spare = builder.sub(_WORD(LANES), room)
    some = builder.lshr(all_ones, builder.select(builder.icmp_signed(">", spare, _WORD(0)), spare, _WORD(0)))
    return builder.bitcast(some, _BITS)


def _splat(builder: Any, value: Any) -> Any:
    """The value in every lane."""
    undefined, place = ir.Constant(_DOUBLES, ir.Undefined), ir.IntType(32)
    zeros = ir.Constant(ir.VectorType(place, LANES), [0] * LANES)
    return builder.shuffle_vector(builder.insert_element(undefined, value, place(0)), undefined, zeros)


def _load(builder: Any, pointer: Any, there: Any) -> Any:
    kind = ir.FunctionType(_DOUBLES, [pointer.type, ir.IntType(32), _BITS, _DOUBLES])
    load = cgutils.get_or_insert_function(builder.module, kind, "llvm.masked.load.v64f64.p0")
    zero = ir.Constant(_DOUBLES, [0.0] * LANES)
    return builder.call(load, [pointer, ir.IntType(32)(8), there, zero])


def _store(builder: Any, value: Any, pointer: Any, there: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [_DOUBLES, pointer.type, ir.IntType(32), _BITS])
    store = cgutils.get_or_insert_function(builder.module, kind, "llvm.masked.store.v64f64.p0")
    builder.call(store, [value, pointer, ir.IntType(32)(8), there])


@overload(add_lanes)  # type: ignore[untyped-decorator]
def _compiled_add_lanes(
    words: Any, order: Any, first: Any, last: Any, xs: Any, n: Any, total: Any, lane: Any
) -> Any:
    def compiled(
        words: Any, order: Any, first: Any, last: Any, xs: Any, n: Any, total: Any, lane: Any
    ) -> None:
        _add_lanes(words, order, np.int64(first), np.int64(last), xs, n, total, np.int64(lane))

    return compiled
