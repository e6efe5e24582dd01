"""Argmax of the UCB index over arms, for eight learners at a time, where bounds of the index decide it.

The state of eight learners stays in vector registers during the loop over arms. LLVM does not vectorise this
loop; hand-written LLVM IR.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rumormill import formulas
from rumormill.formulas import NEAR, NEAR_SLACK
from rumormill.kernels.jit import part, step
from rumormill.kernels.simd import either
from rumormill.kernels.simd import llvm_ir as vectors
from rumormill.kernels.state import Floats, Ids

STRIP = 8
_FEW = ir.IntType(STRIP)

shrinkage_near = step(formulas.shrinkage_near)

# The power of a count is known exactly at its anchor, and estimated until the count is no longer near. One
# over the anchor is taken a little too large: rounding must not make a count look smaller than that.
ABOVE = 1.0 + 2.0**-50
# More than rounding can do to a sum.
SLACK_OF_SUM = 1e-15


@part
def plain_argmax_by_bounds(
    scale: float,
    exponent: float,
    second_factor: float,
    third_factor: float,
    too_small: float,
    mean: Floats,
    n: Floats,
    powers: Floats,
    power: Floats,
    inverse: Floats,
    action: Ids,
    lane: int,
) -> np.uint64:
    """Store the arm of the largest index of the learners lane .. lane + 7, where bounds decide it.

    Returns a bitmask of the undecided learners. power is the n^-exponent of the anchor, inverse one over the
    anchor. A count that is not near its anchor becomes the anchor, by the table `powers`; beyond the table
    the learner is undecided. No index is smaller than its estimate, since rounding keeps the order of unequal
    numbers, or larger by more than `slack`: x + SLACK_OF_SUM |x| grows with x, so what holds for the second
    largest estimate holds for all below it.
    """
    undecided = np.uint64(0)
    for j in range(lane, min(lane + STRIP, action.shape[0])):
        first = second = -np.inf
        best, largest, beyond = 0, 0.0, False
        for arm in range(n.shape[0]):
            count = n[arm, j]
            h = count * inverse[arm, j] - 1.0
            if not 0.0 <= h <= NEAR:
                h = 0.0
                if count < powers.shape[0]:
                    power[arm, j] = powers[int(count)]
                    inverse[arm, j] = ABOVE / count if count > 0.0 else np.inf
                else:
                    beyond = True
            radius = scale * power[arm, j]
            index = mean[arm, j] + radius * shrinkage_near(h, exponent, second_factor, third_factor)
            if index > first:
                first, second, best = index, first, arm
            elif index > second:
                second = index
            largest = radius if radius > largest else largest
        slack = largest * too_small + SLACK_OF_SUM * (abs(first) + abs(second))
        if first - second > slack and not beyond:
            action[j] = best
        else:
            undecided |= np.uint64(1) << np.uint64(j - lane)
    return undecided


def _emit_argmax(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The loop over arms, with the state of eight learners in vectors."""
    plus, times, select = builder.fadd, builder.fmul, builder.select
    scale_, *factors, too_small_ = (vectors.splat(builder, x, STRIP) for x in arguments[:5])
    arrays = [context.make_array(signature.args[i])(context, builder, arguments[i]) for i in range(5, 11)]
    means, counts, table, anchors, inverses, actions = (array.data for array in arrays)
    n_arms, width = cgutils.unpack_tuple(builder, arrays[1].shape)
    size = builder.sitofp(cgutils.unpack_tuple(builder, arrays[2].shape)[0], vectors.DOUBLE)
    size_, lane_ = vectors.splat(builder, size, STRIP), arguments[11]
    here = vectors.there(builder, builder.sub(width, lane_), STRIP)
    numbers, ids, words = vectors.doubles(STRIP), vectors.ids(STRIP), vectors.words(STRIP)

    before, loop, renew, known, after = builder.block, *(builder.append_basic_block() for _ in range(4))
    builder.branch(loop)
    builder.position_at_end(loop)
    arm = builder.phi(vectors.WORD)
    first, second, largest = (builder.phi(numbers) for _ in range(3))
    best, odd = builder.phi(ids), builder.phi(here.type)
    place = builder.add(builder.mul(arm, width), lane_)

    def row(start: Any) -> Any:
        return builder.gep(start, [place])

    rows = (row(start) for start in (counts, means, anchors, inverses))
    count, mean_, old, inverse_ = (vectors.load(builder, each, here) for each in rows)
    h = builder.fsub(times(count, inverse_), number(1.0))
    # Numbers that are not negative are in the order of their bits, and all others come after them.
    limit = builder.bitcast(number(NEAR), words)
    far = builder.and_(here, builder.icmp_unsigned(">", builder.bitcast(h, words), limit))
    none_far = builder.icmp_unsigned("==", builder.bitcast(far, _FEW), _FEW(0))
    builder.cbranch(none_far, known, renew)

    builder.position_at_end(renew)
    exact, tabled = _renew_anchors(builder, count, size_, far, table, row(anchors), row(inverses))
    unknown = builder.or_(odd, builder.xor(far, tabled))
    renewed = select(tabled, exact, old), select(far, number(0.0), h), unknown
    builder.branch(known)

    builder.position_at_end(known)
    anchor, h, beyond = (
        _either(builder, (was, loop), (now, renew)) for was, now in zip((old, h, odd), renewed, strict=True)
    )
    radius = times(scale_, anchor)
    index = plus(mean_, times(radius, _shrinkage_near(builder, h, factors)))
    steps = (
        (arm, vectors.WORD(0), builder.add(arm, vectors.WORD(1))),
        *_next_state(builder, arm, index, radius, first, second, largest, best),
        (odd, vectors.filled(here.type, 0), beyond),
    )
    for phi, start, then in steps:
        phi.add_incoming(start, before)
        phi.add_incoming(then, known)
    builder.cbranch(builder.icmp_signed("<", steps[0][2], n_arms), loop, after)

    builder.position_at_end(after)
    _, first, second, largest, best, odd = (then for _, _, then in steps)
    wins = _wins(builder, first, second, largest, too_small_)
    clear = builder.and_(builder.and_(here, wins), builder.not_(odd))
    vectors.store(builder, best, builder.gep(actions, [lane_]), clear)
    return builder.zext(builder.bitcast(builder.xor(here, clear), _FEW), vectors.WORD)


def _shrinkage_near(builder: Any, h: Any, factors: list[Any]) -> Any:
    """formulas.shrinkage_near, in the same order of operations."""
    minus, times = builder.fsub, builder.fmul
    first, second, third = factors
    bend = minus(first, times(h, minus(second, times(h, third))))
    return minus(number(1.0 - NEAR_SLACK), times(h, bend))


def _next_state(
    builder: Any, arm: Any, index: Any, radius: Any, first: Any, second: Any, largest: Any, best: Any
) -> tuple[tuple[Any, Any, Any], ...]:
    """Largest and second index, largest radius and best arm: the value so far, the first, and the next."""
    select, greater = builder.select, functools.partial(builder.fcmp_ordered, ">")
    leads = greater(index, first)
    other = select(leads, first, index)
    arm_ids = vectors.splat(builder, builder.trunc(arm, vectors.ID), STRIP)
    return (
        (first, number("-inf"), select(leads, index, first)),
        (second, number("-inf"), select(greater(other, second), other, second)),
        (largest, number(0.0), select(greater(radius, largest), radius, largest)),
        (best, vectors.filled(vectors.ids(STRIP), 0), select(leads, arm_ids, best)),
    )


def _renew_anchors(
    builder: Any, count: Any, size: Any, far: Any, table: Any, anchors: Any, inverses: Any
) -> tuple[Any, Any]:
    """Store counts that are far from their anchors as anchors; returns their powers, and a mask of them."""
    tabled = builder.and_(far, builder.fcmp_ordered("<", count, size))
    safe = builder.select(tabled, count, number(0.0))
    exact = vectors.look_up(builder, table, builder.fptosi(safe, vectors.words(STRIP)), tabled)
    vectors.store(builder, exact, anchors, tabled)
    vectors.store(builder, builder.fdiv(number(ABOVE), count), inverses, tabled)
    return exact, tabled


def _wins(builder: Any, first: Any, second: Any, largest: Any, too_small: Any) -> Any:
    """Whether the largest index exceeds the second by more than their error."""
    size = builder.fadd(_size(builder, first), _size(builder, second))
    slack = builder.fadd(builder.fmul(largest, too_small), builder.fmul(number(SLACK_OF_SUM), size))
    return builder.fcmp_ordered(">", builder.fsub(first, second), slack)


@intrinsic  # type: ignore[untyped-decorator]
def _argmax(
    typing_context: Any,
    scale: Any,
    exponent: Any,
    second_factor: Any,
    third_factor: Any,
    too_small: Any,
    mean: Any,
    n: Any,
    powers: Any,
    power: Any,
    inverse: Any,
    action: Any,
    lane: Any,
) -> Any:
    given = (*[types.float64] * 5, mean, n, powers, power, inverse, action, types.int64)
    return types.uint64(*given), _emit_argmax


def number(value: Any) -> Any:
    """A number in every lane."""
    return vectors.filled(vectors.doubles(STRIP), float(value))


def _either(builder: Any, *ways: tuple[Any, Any]) -> Any:
    """The value of the block that was passed."""
    phi = builder.phi(ways[0][0].type)
    for value, block in ways:
        phi.add_incoming(value, block)
    return phi


def _size(builder: Any, value: Any) -> Any:
    """|value|."""
    return builder.select(builder.fcmp_ordered("<", value, number(0.0)), builder.fneg(value), value)


@part
def ir_argmax_by_bounds(
    scale: float,
    exponent: float,
    second_factor: float,
    third_factor: float,
    too_small: float,
    mean: Floats,
    n: Floats,
    powers: Floats,
    power: Floats,
    inverse: Floats,
    action: Ids,
    lane: int,
) -> np.uint64:
    """The same: eight learners in one vector."""
    return _argmax(
        scale, exponent, second_factor, third_factor, too_small, mean, n, powers, power, inverse, action, lane
    )


argmax_by_bounds = either(ir_argmax_by_bounds, plain_argmax_by_bounds)
