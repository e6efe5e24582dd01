"""What numba's compiler sees of the machine and of types: tuples by reference, calls that it remembers.

By itself numba passes every number of every array at each call, and takes a tuple of a hundred arrays apart
wherever it reads one. Here a call passes a pointer to the fields. Nothing but the wrapper that Python calls
writes to them: LLVM may read a field once, and before it is known to be needed.
"""

from __future__ import annotations

import functools
from copy import copy
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once, pack_array, unpack_tuple
from numba.core.cgutils import gep_inbounds as at
from numba.core.compiler import Flags
from numba.core.cpu import CPUContext
from numba.core.datamodel.models import ArrayModel, PrimitiveModel, TupleModel
from numba.core.typing.context import Context
from numba.np.numpy_support import as_dtype

from rumormill.kernels.simd.llvm_ir import WORD

# Namedtuples that kernels make themselves: they and small ones are passed field by field.
MADE_IN_KERNELS, FEW_FIELDS = ("Beliefs", "ClippedSums"), 3


class Array(ArrayModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind)
        names = ("data", "shape") if kind.layout == "C" else ("data", "shape", "strides")
        self.held = {name: dict(zip(self._fields, self._models, strict=True))[name] for name in names}
        self.kind = ir.LiteralStructType([each.get_value_type() for each in self.held.values()])


class Pointer(PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        held = map(manager.lookup, kind)
        fields = [getattr(each, "kind", None) or each.get_value_type() for each in held]
        super().__init__(manager, kind, ir.LiteralStructType(fields).as_pointer())


def model(manager: Any, kind: Any) -> Any:
    made_here = kind.instance_class.__name__ in MADE_IN_KERNELS and kind[0].ndim == 1
    return (TupleModel if made_here or len(kind) <= FEW_FIELDS else Pointer)(manager, kind)


def to_fields(kind: Any) -> bool:
    return isinstance(kind, ir.PointerType) and isinstance(kind.pointee, ir.LiteralStructType)


def read(context: Any, builder: Any, pointer: Any) -> Any:
    """Number by number: of a whole that is read, LLVM forgets that it does not change."""
    kind = pointer.type.pointee
    if isinstance(kind, ir.Aggregate):
        value = kind(ir.Undefined)
        for i in range(len(kind)):
            part = read(context, builder, at(builder, pointer, 0, i))
            value = builder.insert_value(value, part, i)
        return value
    value, add = builder.load(pointer), builder.module.add_metadata
    value.set_metadata("invariant.load", add([]))
    if to_fields(kind):
        value.set_metadata("align", add([WORD(8)]))
        value.set_metadata("dereferenceable", add([WORD(context.get_abi_sizeof(kind.pointee))]))
    return value


def field(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    place = kind.fields.index(name)
    found, pointer = context.data_model_manager[kind[place]], at(builder, value, 0, place)
    if not isinstance(found, Array):
        return read(context, builder, pointer)
    names = {each: read(context, builder, at(builder, pointer, 0, i)) for i, each in enumerate(found.held)}
    shape, strides = unpack_tuple(builder, names["shape"]), [WORD(as_dtype(kind[place].dtype).itemsize)]
    names |= {"itemsize": strides[0], "nitems": functools.reduce(builder.mul, shape)}
    for size in shape[:0:-1]:
        strides.insert(0, builder.mul(strides[0], size))
    array = found.get_value_type()(None)
    for each, what in ({"strides": pack_array(builder, strides)} | names).items():
        array = found.set(builder, array, what, each)
    return array


class KernelContext(CPUContext):  # type: ignore[misc]
    def declare_function(self, module: Any, description: Any) -> Any:
        function = super().declare_function(module, description)
        for each in function.args[2:]:  # behind the places of a result and of an error
            if to_fields(each.type):
                each.attributes.align = 8
                each.attributes.dereferenceable = self.get_abi_sizeof(each.type.pointee)
        return function

    def get_getattr(self, kind: Any, name: str) -> Any:
        held = isinstance(kind, types.NamedTuple) and isinstance(self.data_model_manager[kind], Pointer)
        return field if held else super().get_getattr(kind, name)

    def make_tuple(self, builder: Any, kind: Any, values: Any) -> Any:
        if not isinstance(self.data_model_manager[kind], Pointer):
            return super().make_tuple(builder, kind, values)
        if "cpython" not in builder.function.name:
            raise TypeError(f"{kind.instance_class.__name__} is not among MADE_IN_KERNELS")
        pointer = alloca_once(builder, self.get_value_type(kind).pointee)
        for i, (value, each) in enumerate(zip(values, kind, strict=True)):
            found, place = self.data_model_manager[each], at(builder, pointer, 0, i)
            if not isinstance(found, Array):
                builder.store(value, place)
                continue
            for j, name in enumerate(found.held):
                builder.store(found.get(builder, value, name), at(builder, place, 0, j))
        return pointer


@functools.cache
def view(target: Any) -> Any:
    """The machine as kernels are compiled for it."""
    manager = target.data_model_manager.copy()
    manager.register(types.NamedTuple, model)
    manager.register(types.Array, Array)
    context = target.subtarget(data_model_manager=manager, cached_internal_func={})
    context.__class__ = KernelContext
    return context


class KnownCalls(Context):  # type: ignore[misc]
    """What numba knows of types, and what was found once for a call of the same types."""

    def resolve_function_type(self, function: Any, *given: Any) -> Any:
        if not isinstance(function, types.Function) or given[1]:
            return super().resolve_function_type(function, *given)
        call = function, given[0]
        self.found[call] = self.found.get(call) or super().resolve_function_type(function, *given)
        return self.found[call]


@functools.cache
def known_to(typing: Any) -> Any:
    """The same knowledge, with a memory."""
    known = copy(typing)
    known.__class__, known.found = KnownCalls, {}
    return known


class SameFlags(Flags):  # type: ignore[misc]
    __slots__, _others = (), Flags().values()

    def __eq__(self, other: object) -> bool:
        return self._values == other._values if type(other) is SameFlags else super().__eq__(other)

    def __hash__(self) -> int:
        return len(self._values)

    def values(self) -> dict[str, Any]:
        return {**self._others, **self._values}
