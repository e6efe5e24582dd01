"""Sums of rows of a table, in a given order: what averaging with the neighbours comes to.

The rows are short (sums and counts of some arms), and numba adds short rows number by number. Here four
numbers are added at a time, in registers from the first row of a sum to its last; each number still is the
sum of its column from left to right, so the bits are those of a plain loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from rumormill.kernels.jit import part
from rumormill.kernels.state import Floats, Ids, Ints

LANES = 4
MOST_VECTORS = 4


class Sums(NamedTuple):
    """Row first + i of a table is the sum of the rows ids[ptr[i]:ptr[i + 1]], all of them further up."""

    first: int
    ptr: Ints
    ids: Ids


def _plain_row_sum(table: Floats, ids: Ids, start: int, stop: int, at: int) -> None:
    """Row `at` of a table becomes the sum of the rows ids[start:stop]."""
    table[at] = 0.0
    for i in range(start, stop):
        table[at] += table[ids[i]]


def _row_sum(n_vectors: int) -> Any:
    """The same, compiled for 4 n_vectors columns."""
    if config.DISABLE_JIT:
        return _plain_row_sum

    @intrinsic  # type: ignore[untyped-decorator]
    def row_sum(context: Any, table: Any, ids: Any, start: Any, stop: Any, at: Any) -> Any:
        signature = types.void(table, ids, types.intp, types.intp, types.intp)

        def emit(target: Any, builder: Any, signature: Any, given: Any) -> Any:
            rows = cgutils.create_struct_proxy(signature.args[0])(target, builder, given[0]).data
            listed = cgutils.create_struct_proxy(signature.args[1])(target, builder, given[1]).data
            start, stop, at = given[2:]
            number, vector = ir.IntType(64), ir.VectorType(ir.DoubleType(), LANES)

            def places(row: Any) -> list[Any]:
                begin = builder.mul(row, number(n_vectors * LANES))
                offsets = [builder.add(begin, number(i * LANES)) for i in range(n_vectors)]
                return [
                    builder.bitcast(builder.gep(rows, [offset]), vector.as_pointer()) for offset in offsets
                ]

            nothing = ir.Constant(vector, [0.0] * LANES)
            sums = [cgutils.alloca_once_value(builder, nothing) for _ in range(n_vectors)]
            for total in sums:
                builder.store(nothing, total)
            with cgutils.for_range_slice(builder, start, stop, number(1), number) as (i, _):
                row = builder.sext(builder.load(builder.gep(listed, [i])), number)
                for total, place in zip(sums, places(row), strict=True):
                    term = builder.load(place, align=8)
                    builder.store(builder.fadd(builder.load(total), term), total)
            for total, place in zip(sums, places(at), strict=True):
                builder.store(builder.load(total), place, align=8)
            return target.get_dummy_value()

        return signature, emit

    return row_sum


_sum_4, _sum_8, _sum_12, _sum_16 = (_row_sum(n) for n in range(1, MOST_VECTORS + 1))


@part
def add_up(table: Floats, sums: Sums) -> None:
    """Work out all sums of a table [slice of columns, row, column]; a slice has 4, 8, 12 or 16 columns."""
    width = table.shape[2]
    ptr, ids = sums.ptr, sums.ids
    for c in range(table.shape[0]):
        columns = table[c]
        for i in range(ptr.shape[0] - 1):
            if width == 4:
                _sum_4(columns, ids, ptr[i], ptr[i + 1], sums.first + i)
            elif width == 8:
                _sum_8(columns, ids, ptr[i], ptr[i + 1], sums.first + i)
            elif width == 12:
                _sum_12(columns, ids, ptr[i], ptr[i + 1], sums.first + i)
            else:
                _sum_16(columns, ids, ptr[i], ptr[i + 1], sums.first + i)
