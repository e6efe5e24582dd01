"""Bits of a bitmask of 64: position of the lowest set bit, number of set bits (popcount)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from rumormill.kernels.jit import part
from rumormill.kernels.simd import either

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
