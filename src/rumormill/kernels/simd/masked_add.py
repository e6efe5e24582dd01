"""Masked add: a sample to 64 receivers at a time, a bitmask selects the receivers.

LLVM does not turn a loop over bits into masked vector additions; hand-written LLVM IR. The additions of each
receiver stay in arrival order.

Bits of a bitmask of 64: position of the lowest set bit, number of set bits (popcount).
"""

from __future__ import annotations

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

LANES = 64
MOST = 255  # samples at a time: they are counted in bytes
# So few last receivers are added together with the word before theirs: alone they cost as much as 64.
FEW, SOME = 8, 32


@part
def plain_add_lanes(
    words: Words, order: Ids, first: int, last: int, xs: Floats, n: Floats, total: Floats
) -> None:
    """Add the samples of the origins order[first:last], at most MOST of them, for all receivers.

    Bit j mod 64 of words[j // 64, origin] says whether receiver j receives it; n and total are rows of all
    receivers.
    """
    for w in range(words.shape[0]):
        low, high = w * LANES, min((w + 1) * LANES, n.shape[0])
        for i in range(first, last):
            word, x = words[w, order[i]], xs[order[i]]
            for j in range(low, high):
                receives = (word >> np.uint64(j - low)) & np.uint64(1) != 0
                n[j] += 1.0 if receives else 0.0
                total[j] = total[j] + x if receives else total[j]


class _Group(NamedTuple):
    """Some receivers side by side."""

    lanes: int
    here: Any
    """Mask of the lanes in use."""
    words: Any
    n: Any
    total: Any
    count: Any
    """The type in which samples are counted."""


def _group(i: int, lanes: int, builder: Any, words: Any, n: Any, total: Any, word: Any) -> _Group:
    """The receivers of word + i, `lanes` of them."""
    receivers = cgutils.unpack_tuple(builder, n.shape)[0]
    origins = cgutils.unpack_tuple(builder, words.shape)[1]
    row = builder.add(word, WORD(i))
    lane = builder.mul(row, WORD(LANES))
    return _Group(
        lanes=lanes,
        here=vectors.there(builder, builder.sub(receivers, lane), lanes),
        words=builder.gep(words.data, [builder.mul(row, origins)]),
        n=builder.gep(n.data, [lane]),
        total=builder.gep(total.data, [lane]),
        count=ir.VectorType(vectors.BYTE if lanes == LANES else WORD, lanes),
    )


def _emit_add(widths: tuple[int, ...], context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """The loop over samples for the receivers of one word, or of one and the first few of the next."""
    words_, order_, xs_, n_, total_ = (
        context.make_array(signature.args[i])(context, builder, arguments[i]) for i in (0, 1, 4, 5, 6)
    )
    _, _, first_, last_, _, _, _, word_ = arguments
    groups = [_group(i, lanes, builder, words_, n_, total_, word_) for i, lanes in enumerate(widths)]
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
        receives = builder.bitcast(word, vectors.bits(group.lanes))
        added = builder.fadd(sums, vectors.splat(builder, x, group.lanes))
        then += [
            builder.add(count, builder.zext(receives, group.count)),
            builder.select(receives, added, sums),
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


def _adding(*widths: int) -> Any:
    """The intrinsic for words of so many receivers."""

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
        def generate(*given: Any) -> Any:
            return _emit_add(widths, *given)

        return types.void(words, order, types.int64, types.int64, xs, n, total, types.int64), generate

    return add


_add_word, _add_word_and_few, _add_word_and_some = _adding(LANES), _adding(LANES, FEW), _adding(LANES, SOME)


@part
def ir_add_lanes(
    words: Words, order: Ids, first: int, last: int, xs: Floats, n: Floats, total: Floats
) -> None:
    """The same: counts and sums stay in vector registers while sample after sample is added."""
    first, last = np.int64(first), np.int64(last)  # type: ignore[assignment]
    whole = words.shape[0]
    spare = n.shape[0] - LANES * (whole - 1)  # receivers of the last word
    if whole > 1 and spare <= SOME:
        whole -= 2
    for word in range(whole):
        _add_word(words, order, first, last, xs, n, total, word)
    if whole < words.shape[0] and spare <= FEW:
        _add_word_and_few(words, order, first, last, xs, n, total, np.int64(whole))
    elif whole < words.shape[0]:
        _add_word_and_some(words, order, first, last, xs, n, total, np.int64(whole))


add_lanes = either(ir_add_lanes, plain_add_lanes)


ONE, TWO, FOUR = np.uint64(1), np.uint64(2), np.uint64(4)
PAIRS, NIBBLES, BYTES = (np.uint64(int(digits * 8, 16)) for digits in ("55", "33", "0f"))


@part
def plain_popcount(word: np.uint64) -> int:
    """How many bits of a bitmask are set: added up in fields of 2, 4, 8, then of the whole word."""
    word = word - ((word >> ONE) & PAIRS)
    word = (word & NIBBLES) + ((word >> TWO) & NIBBLES)
    word = (word + (word >> FOUR)) & BYTES
    word = word + (word >> np.uint64(8))
    word = word + (word >> np.uint64(16))
    word = word + (word >> np.uint64(32))
    return np.int64(word & np.uint64(127))  # type: ignore[return-value]


@part
def plain_lowest_bit(word: np.uint64) -> int:
    """The position of the lowest set bit of a bitmask that is not zero: how many zeros are below it."""
    return plain_popcount(~word & (word - ONE))


@intrinsic  # type: ignore[untyped-decorator]
def _ctpop(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _cttz(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, 1))

    return types.int64(types.uint64), generate


@part
def ir_popcount(word: np.uint64) -> int:
    """How many bits are set: one machine instruction."""
    return _ctpop(word)


@part
def ir_lowest_bit(word: np.uint64) -> int:
    """The position of the lowest set bit of a word that is not zero: one machine instruction."""
    return _cttz(word)


popcount = either(ir_popcount, plain_popcount)
lowest_bit = either(ir_lowest_bit, plain_lowest_bit)
