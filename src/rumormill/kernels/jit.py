"""How kernels are compiled: once per machine, without the GIL, with exact floating point.

Some of it uses names that numba does not document. Where a version of numba lacks them, kernels are compiled
without: slower to compile or not cached on disk, with the same results.
"""

from __future__ import annotations

import gc
import hashlib
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba

from rumormill import counter_rng, default_rule, formulas
from rumormill.errors import SlowEngineNotice
from rumormill.kernels import simd

try:
    from numba.core.event import Listener, register
except ImportError:  # compilations are not timed
    Listener, register = object, None

F = TypeVar("F", bound=Callable[..., Any])

# Options that every numba has.
_PUBLIC = {"nogil": True, "error_model": "numpy"}
# Kernels are not called from C, and parts only by kernels: without entry points there is less to compile.
# Nothing here allocates arrays, so references are not counted (_nrt): a third of the time of a round of 50
# agents.
_FROM_PYTHON = {**_PUBLIC, "no_cfunc_wrapper": True, "_nrt": False}
_FROM_KERNELS = {**_FROM_PYTHON, "no_cpython_wrapper": True}


def kernel(function: F) -> F:
    """Compile on first use and keep the machine code on disk."""
    compiled: Any = numba.njit(cache=_CACHES, **_WHOLE, **_FROM_PYTHON)(function)
    if _CACHES and hasattr(compiled, "py_func"):
        # numba checks the age of the file a function stands in, but not of the files whose functions were
        # compiled into it: a stamp of all kernels' text makes stale code impossible. As part of the version
        # it is compared before the rest of an index is read, which may name classes that no longer exist.
        # The IR forms and their plain twins are kept beside each other, under different keys. numba's own
        # hash of a closure with parts is another in every process.
        cache, key_of = compiled._cache, compiled._cache._index_key
        cache._cache_file._source_stamp = _STAMP
        cache._cache_file._version = f"{numba.__version__} {_STAMP}"
        cache._index_key = lambda *given: (*key_of(*given)[:2], closure_key(function), simd.ENABLED)
    result: F = compiled
    return result


def closure_key(function: Any) -> tuple[Any, ...]:
    """The values that a function was made with, and those of the parts among them."""
    values = (cell.cell_contents for cell in function.__closure__ or ())
    return function.__qualname__, *(
        closure_key(value.py_func) if hasattr(value, "py_func") else repr(value) for value in values
    )


def part(function: F) -> F:
    """A part of a kernel, compiled into its callers. Cheap to compile if it takes no more than it needs."""
    return _only_from_kernels(numba.njit(**_LINKED, **_FROM_KERNELS)(function))


def step(function: F) -> F:
    """A part that is inlined into its callers before types are inferred, not called.

    Loop invariants can then be moved out of loops. But the whole caller is copied each time: in long callers
    that takes longer than compiling a part.
    """
    return _only_from_kernels(numba.njit(inline="always", **_FROM_KERNELS)(function))


def _only_from_kernels(compiled: Any) -> Any:
    """Make a call from Python raise: without an entry point it would jump to an invalid address."""

    def refuse(*args: Any) -> None:
        raise TypeError(f"{compiled.__name__} is a part of kernels; alone({compiled.__name__}) can be called")

    if hasattr(compiled, "py_func") and "no_cpython_wrapper" in _FROM_KERNELS:
        compiled._insert = lambda *entry, **_: None  # numba stores no entry point
        compiled._compile_for_args = refuse  # called by numba where there is none
    return compiled


def linked(function: F, **parts: Any) -> F:
    """A part made of a formula that calls other formulas: these are compiled parts too."""
    copy: Any = FunctionType(function.__code__, {**function.__globals__, **parts}, function.__name__)
    copy.__doc__, copy.__module__ = function.__doc__, function.__module__
    result: F = part(copy)
    return result


def alone(function: F) -> F:
    """A part that Python can call: to test it, or to measure it."""
    dispatcher: Any = function
    if hasattr(dispatcher, "py_func"):  # otherwise nothing is compiled at all
        function = numba.njit(**_WHOLE, **_FROM_PYTHON)(dispatcher.py_func)
    return function


# --- private names of numba: used where they exist ----------------------------------------------------------


def fast_compiler() -> Any:
    """numba's compiler, which copies all names of a step for every block of it that it inlines, and reads all
    flags by name for every call whose type it looks up, without these two, and with kernels/simd/views.py."""
    from numba.core.compiler import Compiler, DefaultPassBuilder
    from numba.core.compiler_machinery import register_pass
    from numba.core.inline_closurecall import InlineWorker
    from numba.core.ir import Block
    from numba.core.typed_passes import InlineOverloads, NopythonRewrites
    from numba.core.untyped_passes import InlineClosureLikes, InlineInlinables

    from rumormill.kernels.simd.views import SameFlags, known_to, view

    class OwnBlock(Block):  # type: ignore[misc]
        """A block of a step that was read for one call: no other call needs a copy."""

        def __deepcopy__(self, memo: object) -> OwnBlock:
            return self

    class Worker(InlineWorker):  # type: ignore[misc]
        def run_untyped_passes(self, *given: Any) -> Any:
            found = super().run_untyped_passes(*given)
            for block in found.blocks.values():
                block.__class__ = OwnBlock
            return found

    @register_pass(mutates_CFG=True, analysis_only=False)
    class InlineSteps(InlineInlinables):  # type: ignore[misc]
        def _do_work(self, *given: Any) -> Any:
            given[-1].__class__, given[-1]._compiler_pipeline = Worker, untyped
            return super()._do_work(*given)

    def with_steps(found: Any) -> Any:
        idle = InlineClosureLikes, InlineOverloads, NopythonRewrites  # kernels have nothing for them
        swap = {InlineInlinables: InlineSteps}
        found.passes = [(swap.get(each, each), why) for each, why in found.passes if each not in idle]
        found.finalize()
        return found

    def untyped(state: Any) -> Any:
        return with_steps(DefaultPassBuilder.define_untyped_pipeline(state))

    class KernelCompiler(Compiler):  # type: ignore[misc]
        def __init__(self, *given: Any) -> None:
            typing, target, *others, flags, types = given
            super().__init__(known_to(typing), view(target), *others, SameFlags(flags), types)

        def define_pipelines(self) -> list[Any]:
            return [with_steps(each) for each in super().define_pipelines()]

    return KernelCompiler


def compilers() -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of kernels and of parts; none if numba is newer than those tried, or has other names.

    By itself numba optimises every function and translates it to machine code, again inside of each caller.
    Parts are left as they are: the kernel that they are linked into is optimised once.
    """
    try:
        if numba.version_info.short > (0, 68):
            raise ImportError
        whole: Any = fast_compiler()
        from numba.core.codegen import JITCodeLibrary
    except ImportError:
        return {}, {}

    class LinkedLibrary(JITCodeLibrary):  # type: ignore[misc]
        """LLVM code that callers link, without machine code."""

        class codegen:
            @staticmethod
            def set_env(name: str, env: object) -> None:
                """Nothing to set: there is no machine code that reads it."""

        def _optimize_final_module(self) -> None:
            """Left to the caller."""

        def _finalize_final_module(self) -> None:
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            return 0  # as numba says it of a symbol that is not defined

    class PartCompiler(whole):  # type: ignore[misc]
        def __init__(self, typing: Any, target: Any, library: Any, *rest: Any) -> None:
            super().__init__(typing, target, library or LinkedLibrary(target.codegen(), "part"), *rest)

    return {"pipeline_class": whole}, {"pipeline_class": PartCompiler}


def _nothing() -> None:
    """Never compiled: numba's objects for it are looked at."""


def has_options(options: dict[str, Any]) -> bool:
    """Whether this numba has these compiler options; unknown ones would raise at the first compilation."""
    try:
        from numba.core.compiler import Flags

        compiled = numba.njit(**options)(_nothing)
        compiled.targetdescr.options.parse_as_flags(Flags(), compiled.targetoptions)
    except Exception:
        return False
    return True


def refuses_python(dispatcher: Any) -> bool:
    """Whether the two methods exist that keep Python from calling a function without an entry point."""
    return all(callable(getattr(dispatcher, name, None)) for name in ("_insert", "_compile_for_args"))


def caches(dispatcher: Any) -> bool:
    """Whether the stamp and the key of code on disk can be set: otherwise stale code might be loaded."""
    cache = getattr(dispatcher, "_cache", None)
    file = getattr(cache, "_cache_file", None)
    stamped = hasattr(file, "_source_stamp") and hasattr(file, "_version")
    return stamped and callable(getattr(cache, "_index_key", None))


_CACHES, (_WHOLE, _LINKED) = True, compilers()
if not numba.config.DISABLE_JIT:
    if not has_options(_FROM_PYTHON):
        _FROM_PYTHON = dict(_PUBLIC)
    if not (has_options(_FROM_KERNELS) and refuses_python(numba.njit(_nothing))):
        _FROM_KERNELS, _LINKED = dict(_FROM_PYTHON), _WHOLE
    if not caches(numba.njit(cache=True)(_nothing)):
        _CACHES = False
        notice = f"the cache of numba {numba.__version__} is unknown: kernels are compiled in every process"
        warnings.warn(notice, SlowEngineNotice, stacklevel=2)


class Compiling(Listener):  # type: ignore[misc]
    """The time this process has spent compiling so far: a display must not take it for the pace of work.

    One thread compiles at a time; nested compilations are inside of the first.
    """

    def __init__(self) -> None:
        self._depth, self._since, self._done, self._collects = 0, 0.0, 0.0, True
        self.on_begin: Callable[[], None] | None = None
        """Called when a compilation begins."""

    @property
    def seconds(self) -> float:
        """Until now."""
        return self._done + (time.monotonic() - self._since if self._depth else 0.0)

    def on_start(self, event: object) -> None:
        if self._depth == 0:
            self._since, self._collects = time.monotonic(), gc.isenabled()
            gc.disable()  # a tenth of the time: most of what is made is kept until the end
            if self.on_begin is not None:
                self.on_begin()
        self._depth += 1

    def on_end(self, event: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._done += time.monotonic() - self._since
            (gc.enable if self._collects else gc.disable)()


COMPILING = Compiling()
if register is not None:
    register("numba:compile", COMPILING)


def _stamp() -> str:
    """A digest of the text of everything that kernels are compiled from."""
    digest = hashlib.sha256()
    compiled_too = Path(formulas.__file__), Path(counter_rng.__file__), Path(default_rule.__file__)
    for path in (*sorted(Path(__file__).parent.rglob("*.py")), *compiled_too):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


_STAMP = _stamp()
