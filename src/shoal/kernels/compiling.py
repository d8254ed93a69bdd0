"""How kernels are compiled: cached, without the GIL, without reference counting, and linked before they are optimized.

Kernels get all memory from outside and allocate none, so there is nothing to count. Reference counting would cost two
atomic operations for every array passed from one kernel to another: nearly half the time of the crowd kernels.

Numba optimizes every function together with everything it calls, and generates machine code for it. For a piece, which
only kernels call, both are wasted: they took half of the time to compile the tuple kernels. A piece compiled by
`PieceCompiler` stays unoptimized until a kernel links it. The kernel's machine code is as fast as before.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from llvmlite.binding import create_new_function_pass_manager
from numba import __version__ as numba_version
from numba import njit as _njit
from numba import types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.compiler_machinery import PassManager

from shoal.kernels import notice as notice  # reports the first compilation
from shoal.kernels.source_stamp import source_stamp

njit: Any = _njit  # Numba's type hints do not include `_nrt`

LIBRARY_PARTS: Final = (
    "_ensure_finalized", "_final_module", "_finalized", "_get_module_for_linking", "_linking_libraries",
    "_optimize_functions", "_reload_init",
)  # fmt: skip
GENERATOR_PARTS: Final = ("_data_layout", "_function_pass_manager")
FLAGS_PARTS: Final = ("_values", "options")
FUNCTION_PARTS: Final = ("_impl_keys", "get_call_type", "typing_key")
"""Attributes of Numba's library, of its code generator, of its options and of its functions that are used here.

`pipeline_class` is Numba's documented way to replace its compiler; these attributes are not documented. A version of
Numba with others compiles in its own way: slower, with the same result.
"""
UNUSED_PASSES: Final = frozenset({
    "with_lifting", "inline_closure_likes", "find_literally", "make_function_op_code_to_jit_function",
    "literal_unroll", "LiteralPropagation", "Rewrite dynamic raises", "nopython_rewrites", "dump_parfor_diagnostics",
})  # fmt: skip
"""Passes of Numba for what no kernel contains: closures, `with`, exceptions, `literally`, whole-array expressions."""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function on arrays."""
    made = njit(function, cache=True, nogil=True, _nrt=False, no_cfunc_wrapper=True, pipeline_class=KernelCompiler)
    return _stamped(_compiled_once(made))


def piece(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call: without an entry from Python, and optimized as part of a kernel."""
    made = njit(
        function, nogil=True, _nrt=False, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True,
        pipeline_class=PieceCompiler,
    )  # fmt: skip
    return _compiled_once(made)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function on numbers into each of its callers."""
    return _stamped(njit(function, cache=True, inline="always"))


def _compiled_once(made: Any) -> Any:
    """Compile `made` once for constants and variables; Numba would compile a version for each constant passed to it."""
    resolve = getattr(made, "get_call_template", None)
    if resolve is not None:  # absent where JIT is disabled
        made.get_call_template = lambda args, kws: resolve(
            tuple(map(types.unliteral, args)), {name: types.unliteral(arg) for name, arg in kws.items()}
        )
    return made


def _stamped(made: Any) -> Any:
    """Use cached code only while all files it is compiled from are unchanged; Numba checks the function's own file."""
    cache_file = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        stamp = _stamp_of(made.py_func.__code__.co_filename)
        cache_file._source_stamp = stamp  # noqa: SLF001 - no public way exists
        # The version is read first: an older index may name classes that do not exist any more, and is not unpickled.
        cache_file._version = f"{numba_version} {stamp}"  # noqa: SLF001
    return made


@cache
def _stamp_of(file: str) -> str:
    return source_stamp(Path(file))


class _QuickFlags(Flags):
    """Numba's options, quick to look up: Numba does so thousands of times, and lists all of them to compare two."""

    __slots__ = ()

    def __hash__(self) -> int:
        return _FLAGS_HASH

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Flags):
            return NotImplemented
        mine, others = self._values, other._values
        return mine == others or all(getattr(self, name) == getattr(other, name) for name in {**mine, **others})


_FLAGS_HASH: Final = hash(Flags())  # of the names of all options


def _quick(flags: Any) -> Any:
    """Options that are quick to look up; the same ones where another version of Numba looks them up differently."""
    is_known = all(hasattr(flags, part) for part in FLAGS_PARTS) and hash(flags) == _FLAGS_HASH
    return _QuickFlags(flags) if is_known else flags


_SIGNATURES: Final[dict[tuple[int, ...], tuple[Any, ...]]] = {}
"""Signatures of operations that were looked up; with the objects whose ids are the key, so that these stay theirs."""
_SIZES: Final[dict[str, int]] = {}


def _signature_of(function: Any, context: Any, args: Any, kws: Any) -> Any:
    """The signature of an operation, looked up once: Numba tries all versions of `+` for every sum, several times.

    Only what Numba implements itself is remembered: the types of the arguments alone decide which version it is.
    """
    look_up = super(types.Function, function).get_call_type
    if kws or not all(hasattr(function, part) for part in FUNCTION_PARTS):
        return look_up(context, args, kws)
    key = tuple(map(id, (function, context, *args)))
    if key in _SIGNATURES:
        found = _SIGNATURES[key][0]
        function._impl_keys[found.args] = function.typing_key  # noqa: SLF001 - as the first time
        return found
    found = look_up(context, args, kws)
    if found is not None and function._impl_keys[found.args] is function.typing_key:  # noqa: SLF001
        _SIGNATURES[key] = (found, function, context, *args)
    return found


@contextmanager
def _looked_up_once() -> Iterator[None]:
    """Remember signatures while a kernel is compiled. Numba compiles one function at a time, under a lock."""
    function_type: Any = types.Function
    if "get_call_type" in vars(function_type):  # within another kernel, or in another version of Numba
        yield
        return
    function_type.get_call_type = _signature_of
    try:
        yield
    finally:
        del function_type.get_call_type


def _sized_once(target: Any) -> None:
    """Remember sizes of types: Numba lets LLVM parse a module for each variable."""
    size_of = target.get_abi_sizeof

    def size(kind: Any) -> int:
        text = str(kind)
        if text not in _SIZES:
            if "%" in text:  # a name, which says nothing about the size
                return int(size_of(kind))
            _SIZES[text] = size_of(kind)
        return _SIZES[text]

    target.get_abi_sizeof = size


class KernelCompiler(Compiler):
    """Numba's compiler without passes that change no kernel, without repeated look-ups and garbage collections.

    It keeps most objects it makes; collecting took an eighth of the time.
    """

    def __init__(self, typing: Any, target: Any, library: Any, args: Any, result: Any, flags: Any, *rest: Any) -> None:
        super().__init__(typing, target, library, args, result, _quick(flags), *rest)
        _sized_once(self.state.targetctx)  # a copy for this function

    def define_pipelines(self) -> list[Any]:
        return [_without_unused(passes) for passes in super().define_pipelines()]

    def compile_extra(self, func: Any) -> Any:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            with _looked_up_once():
                return super().compile_extra(func)
        finally:
            if was_enabled:
                gc.enable()


def _without_unused(passes: Any) -> Any:
    kept = PassManager(passes.pipeline_name)
    for made, description in passes.passes:
        if made.name() not in UNUSED_PASSES:
            kept.add_pass(made, description)
    kept.finalize()
    return kept


class _NoEnvironment:
    """Replaces the code generator where Numba sets the environment of a function called from Python."""

    def set_env(self, name: str, environment: Any) -> None:
        """Do nothing: a piece is not called from Python. Numba sets none for a kernel loaded from its cache either."""


class _PieceLibrary(JITCodeLibrary):
    """The code of a piece, neither optimized nor compiled, and the libraries of all it calls."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Shrink the code with three short passes; Numba's take longer, and linked code goes through them again."""
        ll_module.data_layout = self._codegen._data_layout  # noqa: SLF001 - no public way exists
        _, builder = self._codegen._function_pass_manager()  # noqa: SLF001
        for function in ll_module.functions:
            if not function.is_declaration:
                passes = create_new_function_pass_manager()
                passes.add_sroa_pass()
                passes.add_simplify_cfg_pass()
                passes.add_instruction_combine_pass()
                passes.run(function, builder)

    def finalize(self) -> None:
        """Link nothing yet: what several pieces call would be linked into each of them, and copied again and again."""
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)  # noqa: SLF001 - no public way exists
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Link the piece and all it calls, for a kernel."""
        whole = _own_module(self).clone()
        for library in self.all_called({}):
            if library is not self:
                whole.link_in(_own_module(library), preserve=True)
        return whole

    def all_called(self, found: dict[Any, None]) -> dict[Any, None]:
        """All libraries that this one needs, itself included."""
        if self not in found:
            found[self] = None
            for library in self._linking_libraries:
                if isinstance(library, _PieceLibrary):
                    library.all_called(found)
                else:
                    found[library] = None
        return found

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: nothing is compiled."""
        self._ensure_finalized()
        return 0

    @property
    def codegen(self) -> Any:
        return _NoEnvironment()


def _own_module(library: Any) -> Any:
    """The code of a library that other libraries may contain, too."""
    return JITCodeLibrary._get_module_for_linking(library)  # noqa: SLF001 - no public way exists


class PieceCompiler(KernelCompiler):
    """A compiler with a library that only links."""

    def __init__(self, typing_context: Any, target_context: Any, library: Any, *rest: Any) -> None:
        generator = target_context.codegen()
        made = _PieceLibrary(generator, "piece")
        is_known = all(hasattr(made, part) for part in LIBRARY_PARTS)
        is_known &= all(hasattr(generator, part) for part in GENERATOR_PARTS)
        super().__init__(typing_context, target_context, made if is_known else library, *rest)
