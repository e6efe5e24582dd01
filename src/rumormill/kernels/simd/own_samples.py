"""Own samples of eight learners at a time: arm by arm, for all learners that pulled it; samples read ahead.

LLVM does not vectorise a loop that scatters by arm, nor foresee places that stand in a list; hand-written
LLVM IR.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rumormill.kernels.jit import part
from rumormill.kernels.simd import either
from rumormill.kernels.simd import llvm_ir as vectors
from rumormill.kernels.state import Flags, Floats, Ids

STRIP = 8
_FEW = ir.IntType(STRIP)


@part
def plain_add_strip(
    arms: Ids, xs: Floats, needs: Floats, n: Floats, total: Floats, changed: Flags, lane: int
) -> np.uint64:
    """Count the samples of the learners lane .. lane + 7 and add those of sufficient rank.

    Returns a bitmask of the deferred ones, whose rank is below `needs`.
    """
    deferred = np.uint64(0)
    for j in range(lane, min(lane + STRIP, n.shape[1])):
        arm = arms[j]
        n[arm, j] += 1.0
        changed[arm] = True
        if n[arm, j] >= needs[j]:
            total[arm, j] += xs[j]
        else:
            deferred |= np.uint64(1) << np.uint64(j - lane)
    return deferred


@intrinsic  # type: ignore[untyped-decorator]
def _add_strip(
    typing_context: Any, arms: Any, xs: Any, needs: Any, n: Any, total: Any, changed: Any, lane: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        arrays = [context.make_array(signature.args[i])(context, builder, arguments[i]) for i in range(6)]
        arms_at, xs_at, needs_at, n_at, total_at, changed_at = (array.data for array in arrays)
        width, lane_ = cgutils.unpack_tuple(builder, arrays[3].shape)[1], arguments[6]
        here = vectors.there(builder, builder.sub(width, lane_), STRIP)
        pulled, x, need = (
            vectors.load(builder, builder.gep(start, [lane_]), here) for start in (arms_at, xs_at, needs_at)
        )
        all_here, one = builder.bitcast(here, _FEW), vectors.filled(vectors.doubles(STRIP), 1.0)

        before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        builder.branch(loop)
        builder.position_at_end(loop)
        left, deferred = builder.phi(_FEW), builder.phi(_FEW)
        next_lane = builder.zext(builder.cttz(left, ir.IntType(1)(1)), vectors.WORD)
        arm = builder.load(builder.gep(arms_at, [builder.add(lane_, next_lane)]))
        same = builder.icmp_signed("==", pulled, vectors.splat(builder, arm, STRIP))
        same = builder.and_(same, builder.bitcast(left, here.type))
        arm = builder.sext(arm, vectors.WORD)
        place = builder.add(builder.mul(arm, width), lane_)
        counts, totals = builder.gep(n_at, [place]), builder.gep(total_at, [place])
        count = builder.fadd(vectors.load(builder, counts, same), one)
        vectors.store(builder, count, counts, same)
        stays = builder.and_(same, builder.fcmp_ordered(">=", count, need))
        vectors.store(builder, builder.fadd(vectors.load(builder, totals, stays), x), totals, stays)
        builder.store(changed_at.type.pointee(1), builder.gep(changed_at, [arm]))
        done = builder.bitcast(same, _FEW)
        left_after = builder.xor(left, done)
        deferred_after = builder.or_(deferred, builder.xor(done, builder.bitcast(stays, _FEW)))
        for phi, start, then in ((left, all_here, left_after), (deferred, _FEW(0), deferred_after)):
            phi.add_incoming(start, before)
            phi.add_incoming(then, loop)
        builder.cbranch(builder.icmp_unsigned("==", left_after, _FEW(0)), after, loop)
        builder.position_at_end(after)
        return builder.zext(deferred_after, vectors.WORD)

    return types.uint64(arms, xs, needs, n, total, changed, types.int64), generate


@part
def ir_add_strip(
    arms: Ids, xs: Floats, needs: Floats, n: Floats, total: Floats, changed: Flags, lane: int
) -> np.uint64:
    """The same: all learners of one arm in one masked addition."""
    return _add_strip(arms, xs, needs, n, total, changed, lane)


add_strip = either(ir_add_strip, plain_add_strip)


@part
def plain_fetch(values: Floats | Ids, place: int) -> None:
    """Nothing: numbers are fetched when they are read."""


@intrinsic  # type: ignore[untyped-decorator]
def _fetch(typing_context: Any, values: Any, place: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        address = builder.bitcast(builder.gep(array.data, [arguments[1]]), vectors.BYTE.as_pointer())
        function = ir.FunctionType(ir.VoidType(), [address.type, vectors.ID, vectors.ID, vectors.ID])
        call = cgutils.get_or_insert_function(builder.module, function, "llvm.prefetch.p0")
        how = [vectors.ID(each) for each in (0, 3, 1)]  # to read it, into every cache, as data
        builder.call(call, [address, *how])
        return context.get_dummy_value()

    return types.void(values, types.int64), generate


@part
def ir_fetch(values: Floats | Ids, place: int) -> None:
    """Bring the number at a place, counted through all rows, into the cache: no result depends on it."""
    _fetch(values, place)


fetch = either(ir_fetch, plain_fetch)
