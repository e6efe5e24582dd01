"""Sixty-four hearers at a time: who of them hears a sample is one word.

Processors add under a mask of bits at full speed, but the compiler does not find that in a loop over bits, so
the loop is written in its own language here. Every hearer's additions stay in their order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from rumormill.kernels.simd import llvm_ir as vectors
from rumormill.kernels.simd.llvm_ir import WORD
from rumormill.kernels.state import Floats, Ids, Words

LANES = 64
MOST = 255  # samples at a time: hearers are counted in bytes
# If the last hearers are no more than this, they go with the word before theirs: alone they would cost as 64.
FEW, SOME = 8, 32


def add_lanes(words: Words, order: Ids, first: int, last: int, xs: Floats, n: Floats, total: Floats) -> None:
    """The samples of the origins order[first:last], at most MOST of them, for all hearers.

    words[w, origin] says who of the hearers from 64 w on hears it; n and total are rows of all hearers.
    """
    for origin in order[first:last]:
        for j in range(n.shape[0]):
            if int(words[j // LANES, origin]) >> (j % LANES) & 1:
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
        here = vectors.there(
            builder, builder.sub(cgutils.unpack_tuple(builder, array.shape)[0], lane_), LANES
        )
        found = vectors.load(builder, builder.gep(array.data, [lane_]), here)
        small = builder.fcmp_ordered("<=", found, vectors.splat(builder, limit_, LANES))
        return builder.bitcast(builder.and_(small, here), WORD)

    return types.uint64(values, types.float64, types.int64), generate


@overload(lanes_up_to)  # type: ignore[untyped-decorator]
def _compiled_lanes_up_to(values: Any, limit: Any, lane: Any) -> Any:
    def compiled(values: Any, limit: Any, lane: Any) -> Any:
        return _lanes_up_to(values, np.float64(limit), np.int64(lane))

    return compiled


class _Group(NamedTuple):
    """Some hearers side by side."""

    lanes: int
    here: Any
    """Which of them there are."""
    words: Any
    n: Any
    total: Any
    count: Any
    """The type in which samples are counted."""


def _adding(*widths: int) -> Any:
    """The loop over samples for the hearers of one word, or of one and the first few of the next."""

    @intrinsic  # type: ignore[untyped-decorator]
    def add(
        typing_context: Any,
        words: Any,
        order: Any,
        first: Any,
        last: Any,
        xs: Any,
        n: Any,
        total: Any,
        word: Any,
    ) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            words_, order_, xs_, n_, total_ = (
                context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 1, 4, 5, 6)
            )
            _, _, first_, last_, _, _, _, word_ = arguments
            hearers = cgutils.unpack_tuple(builder, n_.shape)[0]
            origins = cgutils.unpack_tuple(builder, words_.shape)[1]
            groups = []
            for i, lanes in enumerate(widths):
                row = builder.add(word_, WORD(i))
                lane = builder.mul(row, WORD(LANES))
                groups.append(
                    _Group(
                        lanes=lanes,
                        here=vectors.there(builder, builder.sub(hearers, lane), lanes),
                        words=builder.gep(words_.data, [builder.mul(row, origins)]),
                        n=builder.gep(n_.data, [lane]),
                        total=builder.gep(total_.data, [lane]),
                        count=ir.VectorType(vectors.BYTE if lanes == LANES else WORD, lanes),
                    )
                )
            begin = [first_]
            for group in groups:
                begin += [vectors.filled(group.count, 0), vectors.load(builder, group.total, group.here)]

            before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
            builder.cbranch(builder.icmp_signed("<", first_, last_), loop, after)
            builder.position_at_end(loop)
            now = [builder.phi(value.type) for value in begin]
            origin = builder.sext(builder.load(builder.gep(order_.data, [now[0]])), WORD)
            x = builder.load(builder.gep(xs_.data, [origin]))
            then = [builder.add(now[0], WORD(1))]
            for group, count, sums in zip(groups, now[1::2], now[2::2], strict=True):
                word = builder.load(builder.gep(group.words, [origin]))
                if group.lanes < LANES:
                    word = builder.trunc(word, ir.IntType(group.lanes))
                hears = builder.bitcast(word, vectors.bits(group.lanes))
                added = builder.fadd(sums, vectors.splat(builder, x, group.lanes))
                then += [
                    builder.add(count, builder.zext(hears, group.count)),
                    builder.select(hears, added, sums),
                ]
            builder.cbranch(builder.icmp_signed("<", then[0], last_), loop, after)

            builder.position_at_end(after)
            end = [builder.phi(value.type) for value in begin]
            for phi, value in zip(now + end, begin + begin, strict=True):
                phi.add_incoming(value, before)
            for phi, value in zip(now + end, then + then, strict=True):
                phi.add_incoming(value, loop)
            for group, count, sums in zip(groups, end[1::2], end[2::2], strict=True):
                vectors.store(builder, sums, group.total, group.here)
                counted = builder.uitofp(count, vectors.doubles(group.lanes))
                counts = builder.fadd(vectors.load(builder, group.n, group.here), counted)
                vectors.store(builder, counts, group.n, group.here)
            return context.get_dummy_value()

        return types.void(words, order, types.int64, types.int64, xs, n, total, types.int64), generate

    return add


_add_word, _add_word_and_few, _add_word_and_some = _adding(LANES), _adding(LANES, FEW), _adding(LANES, SOME)


@overload(add_lanes)  # type: ignore[untyped-decorator]
def _compiled_add_lanes(words: Any, order: Any, first: Any, last: Any, xs: Any, n: Any, total: Any) -> Any:
    def compiled(words: Any, order: Any, first: Any, last: Any, xs: Any, n: Any, total: Any) -> None:
        first, last = np.int64(first), np.int64(last)
        whole = words.shape[0]
        spare = n.shape[0] - LANES * (whole - 1)  # hearers of the last word
        if whole > 1 and spare <= SOME:
            whole -= 2
        for word in range(whole):
            _add_word(words, order, first, last, xs, n, total, word)
        if whole < words.shape[0] and spare <= FEW:
            _add_word_and_few(words, order, first, last, xs, n, total, np.int64(whole))
        elif whole < words.shape[0]:
            _add_word_and_some(words, order, first, last, xs, n, total, np.int64(whole))

    return compiled
