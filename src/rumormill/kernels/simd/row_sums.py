"""Sums of rows of a table, in a given order: the sums over neighbours that consensus averaging needs.

The rows are short (sums and counts of some arms), and LLVM adds short rows number by number. Hand-written
LLVM IR adds four columns at a time, in registers from the first row of a sum to its last; each column is
still summed in the order of the rows, so the bits are those of the plain loop.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from rumormill.kernels.jit import part
from rumormill.kernels.simd import either
from rumormill.kernels.state import Floats, Ids, Ints

LANES = 4
MOST_VECTORS = 4


class RowSums(NamedTuple):
    """Row first + i of a table is the sum of the rows ids[ptr[i]:ptr[i + 1]], all of them further up."""

    first: int
    ptr: Ints
    ids: Ids


@part
def plain_add_up(table: Floats, sums: RowSums) -> None:
    """Compute all sums of a table [slice of columns, row, column]."""
    ptr, ids = sums.ptr, sums.ids
    for c in range(table.shape[0]):
        for i in range(ptr.shape[0] - 1):
            row = table[c, sums.first + i]
            for r in range(row.shape[0]):
                row[r] = 0.0
            for k in range(ptr[i], ptr[i + 1]):
                term = table[c, ids[k]]
                for r in range(row.shape[0]):
                    row[r] += term[r]


def _row_sum(n_vectors: int) -> Any:
    """Row `at` of a table of 4 n_vectors columns becomes the sum of the rows ids[start:stop]."""

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
def ir_add_up(table: Floats, sums: RowSums) -> None:
    """The same for slices of 4, 8, 12 or 16 columns: a sum stays in vector registers."""
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


add_up = either(ir_add_up, plain_add_up)
