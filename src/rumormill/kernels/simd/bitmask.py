"""Bits of a word of 64: one machine instruction each."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload


def lowest_bit(word: np.uint64) -> int:
    """The place of the lowest bit that is set, of a word that is not zero."""
    return (int(word) & -int(word)).bit_length() - 1


def ones(word: np.uint64) -> int:
    """How many bits are set."""
    return int(word).bit_count()


@intrinsic  # type: ignore[untyped-decorator]
def _trailing_zeros(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, 1))

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _population(typing_context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.int64(types.uint64), generate


@overload(lowest_bit)  # type: ignore[untyped-decorator]
def _lowest_bit(word: Any) -> Any:
    def compiled(word: Any) -> Any:
        return _trailing_zeros(word)

    return compiled


@overload(ones)  # type: ignore[untyped-decorator]
def _ones(word: Any) -> Any:
    def compiled(word: Any) -> Any:
        return _population(word)

    return compiled
