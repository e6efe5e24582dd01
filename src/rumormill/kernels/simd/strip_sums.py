"""Samples of one arm to a strip of receivers: clipped sums (`rm.Default()`) and Huber's steps.

Sample after sample, all receivers of the strip at once; the numbers of the strip stay in vector registers,
which LLVM does not do with a loop over bits: hand-written LLVM IR. Where some receiver cannot take a sample
that way, the loop stops, and the caller adds it there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rumormill.kernels.jit import part
from rumormill.kernels.simd import either
from rumormill.kernels.simd import llvm_ir as vectors
from rumormill.kernels.simd.llvm_ir import WORD
from rumormill.kernels.state import Floats, Ids, Words

CLIPPED_STRIP, HUBER_STRIP = 8, 32
MASK_BITS = 32  # a result is (samples taken << MASK_BITS) | receivers that could not take the next one


class Arriving(NamedTuple):
    """Samples of one arm: those of the origins order[first:last], to the receivers of `words`."""

    words: Words
    order: Ids
    xs: Floats


class ClippedSums(NamedTuple):
    """[receiver]: sums about `centre`, clipped at `c`, and about `origin`; samples beyond `bar` wait."""

    n: Floats
    psi: Floats
    square: Floats
    inside: Floats
    rest: Floats
    squares: Floats
    centre: Floats
    c: Floats
    origin: Floats
    bar: Floats


class HuberSteps(NamedTuple):
    """[receiver]: count, iterate and the reach of a step; 0 where there is none yet."""

    n: Floats
    theta: Floats
    reach: Floats


@part
def plain_add_clipped(arriving: Arriving, first: int, last: int, sums: ClippedSums, lane: int) -> int:
    """Add samples to the receivers lane .. lane + 7 until one is beyond the bar of a receiver."""
    for i in range(first, last):
        origin, missed = arriving.order[i], 0
        x, word = arriving.xs[origin], arriving.words[lane >> 6, origin] >> np.uint64(lane & 63)
        for j in range(lane, min(lane + CLIPPED_STRIP, sums.n.shape[0])):
            if (word >> np.uint64(j - lane)) & np.uint64(1) == 0:
                continue
            y = x - sums.origin[j]
            if not abs(y) <= sums.bar[j]:
                missed |= 1 << (j - lane)
                continue
            sums.n[j] += 1.0
            sums.rest[j] += y
            sums.squares[j] += y * y
            y = x - sums.centre[j]
            psi = min(max(y, -sums.c[j]), sums.c[j])
            sums.psi[j] += psi
            sums.square[j] += psi * psi
            if psi == y:
                sums.inside[j] += 1.0
        if missed != 0:
            return (i << MASK_BITS) | missed
    return last << MASK_BITS


@part
def plain_add_huber(arriving: Arriving, first: int, last: int, steps: HuberSteps, lane: int) -> int:
    """One step per sample for the receivers lane .. lane + 31 until one of them has no reach yet."""
    for i in range(first, last):
        origin, missed = arriving.order[i], 0
        x, word = arriving.xs[origin], arriving.words[lane >> 6, origin] >> np.uint64(lane & 63)
        for j in range(lane, min(lane + HUBER_STRIP, steps.n.shape[0])):
            if (word >> np.uint64(j - lane)) & np.uint64(1) == 0:
                continue
            reach = steps.reach[j]
            if not reach > 0.0:
                missed |= 1 << (j - lane)
                continue
            steps.n[j] += 1.0
            steps.theta[j] += min(max(x - steps.theta[j], -reach), reach) / steps.n[j]
        if missed != 0:
            return (i << MASK_BITS) | missed
    return last << MASK_BITS


# --- LLVM IR ------------------------------------------------------------------------------------------------


def _clip(builder: Any, y: Any, low: Any, high: Any) -> Any:
    y = builder.select(builder.fcmp_ordered("<", y, low), low, y)
    return builder.select(builder.fcmp_ordered(">", y, high), high, y)


def _clipped_step(builder: Any, x: Any, sums: list[Any], given: list[Any]) -> tuple[Any, list[Any]]:
    """Who takes the sample, and the sums of those who do."""
    n, psi, square, inside, rest, squares = sums
    centre, c, origin, bar = given
    one = vectors.filled(n.type, 1.0)
    about = builder.fsub(x, origin)
    takes = builder.fcmp_ordered("<=", vectors.size(builder, about), bar)
    y = builder.fsub(x, centre)
    clipped = _clip(builder, y, builder.fneg(c), c)
    within = builder.fcmp_ordered("==", clipped, y)
    return takes, [
        builder.fadd(n, one),
        builder.fadd(psi, clipped),
        builder.fadd(square, builder.fmul(clipped, clipped)),
        builder.select(within, builder.fadd(inside, one), inside),
        builder.fadd(rest, about),
        builder.fadd(squares, builder.fmul(about, about)),
    ]


def _huber_step(builder: Any, x: Any, sums: list[Any], given: list[Any]) -> tuple[Any, list[Any]]:
    (n, theta), (reach,) = sums, given
    takes = builder.fcmp_ordered(">", reach, vectors.filled(reach.type, 0.0))
    rank = builder.fadd(n, vectors.filled(n.type, 1.0))
    move = _clip(builder, builder.fsub(x, theta), builder.fneg(reach), reach)
    return takes, [rank, builder.fadd(theta, builder.fdiv(move, rank))]


def _emit(
    lanes: int, n_sums: int, take: Callable[..., Any], context: Any, builder: Any, signature: Any, given: Any
) -> Any:
    """The loop over samples: the first `n_sums` rows change, the others do not."""

    def arrays(place: int) -> list[Any]:
        return [
            context.make_array(kind)(context, builder, builder.extract_value(given[place], i))
            for i, kind in enumerate(signature.args[place].types)
        ]

    (words, order, xs), rows = arrays(0), arrays(3)
    _, first, last, _, lane = given
    receivers = cgutils.unpack_tuple(builder, rows[0].shape)[0]
    origins = cgutils.unpack_tuple(builder, words.shape)[1]
    here = vectors.there(builder, builder.sub(receivers, lane), lanes)
    mask = ir.IntType(lanes)
    # The masks of the strip: so many bits of every word, little-endian.
    row = builder.gep(words.data, [builder.mul(builder.lshr(lane, WORD(6)), origins)])
    row = builder.bitcast(row, mask.as_pointer())
    row = builder.gep(row, [builder.udiv(builder.and_(lane, WORD(63)), WORD(lanes))])
    places = [builder.gep(each.data, [lane]) for each in rows]
    loaded = [vectors.load(builder, place, here) for place in places]
    begin, fixed = [first, *loaded[:n_sums]], loaded[n_sums:]

    before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
    builder.cbranch(builder.icmp_signed("<", first, last), loop, after)
    builder.position_at_end(loop)
    now = [builder.phi(value.type) for value in begin]
    origin = builder.sext(builder.load(builder.gep(order.data, [now[0]])), WORD)
    x = vectors.splat(builder, builder.load(builder.gep(xs.data, [origin])), lanes)
    bits = builder.load(builder.gep(row, [builder.mul(origin, WORD(64 // lanes))]), align=1)
    takes, sums = take(builder, x, now[1:], fixed)
    receives = builder.bitcast(bits, vectors.bits(lanes))
    adds = builder.and_(receives, takes)
    then = [builder.select(adds, new, old) for new, old in zip(sums, now[1:], strict=True)]
    missed = builder.xor(bits, builder.bitcast(adds, mask))
    stops = builder.icmp_unsigned("!=", missed, mask(0))
    following = builder.add(now[0], WORD(1))
    goes_on = builder.and_(builder.not_(stops), builder.icmp_signed("<", following, last))
    place = builder.select(stops, now[0], following)
    builder.cbranch(goes_on, loop, after)

    builder.position_at_end(after)
    end = [builder.phi(value.type) for value in (*begin, missed)]
    for phi, value in zip(now + end, [*begin, *begin, mask(0)], strict=True):
        phi.add_incoming(value, before)
    for phi, value in zip(now + end, [following, *then, place, *then, missed], strict=True):
        phi.add_incoming(value, loop)
    for value, pointer in zip(end[1:-1], places, strict=False):
        vectors.store(builder, value, pointer, here)
    taken = builder.shl(end[0], WORD(MASK_BITS))
    return builder.or_(taken, builder.zext(end[-1], WORD))


def _strip_loop(lanes: int, n_sums: int, take: Callable[..., Any]) -> Any:
    """The intrinsic for strips of so many receivers."""

    @intrinsic  # type: ignore[untyped-decorator]
    def add(typing_context: Any, arriving: Any, first: Any, last: Any, rows: Any, lane: Any) -> Any:
        def generate(*given: Any) -> Any:
            return _emit(lanes, n_sums, take, *given)

        return types.int64(arriving, types.int64, types.int64, rows, types.int64), generate

    return add


_add_clipped = _strip_loop(CLIPPED_STRIP, 6, _clipped_step)
_add_huber = _strip_loop(HUBER_STRIP, 2, _huber_step)


@part
def ir_add_clipped(arriving: Arriving, first: int, last: int, sums: ClippedSums, lane: int) -> int:
    """The same in vector registers."""
    return _add_clipped(arriving, np.int64(first), np.int64(last), sums, np.int64(lane))


@part
def ir_add_huber(arriving: Arriving, first: int, last: int, steps: HuberSteps, lane: int) -> int:
    """The same in vector registers."""
    return _add_huber(arriving, np.int64(first), np.int64(last), steps, np.int64(lane))


add_clipped = either(ir_add_clipped, plain_add_clipped)
add_huber = either(ir_add_huber, plain_add_huber)
