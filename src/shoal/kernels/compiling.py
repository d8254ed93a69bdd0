"""How kernels are compiled: cached, without the GIL, and without reference counting.

Kernels get all memory from outside and make none, so there is nothing to count; without this every array handed from
one kernel to another would cost two atomic operations, which was nearly half the time of the crowd kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit as _njit
from numba import types

from shoal.kernels import notice as notice  # reports the first compilation
from shoal.kernels.linking import PieceCompiler
from shoal.kernels.source_stamp import source_stamp

njit: Any = _njit  # its published types know nothing of `_nrt`


@cache
def _stamp_of(file: str) -> str:
    return source_stamp(Path(file))


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function on arrays."""
    return _stamped(_compiled_once(njit(function, cache=True, nogil=True, _nrt=False)))


def piece(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call: without an entry from Python, and optimized as part of a kernel."""
    made = njit(
        function, nogil=True, _nrt=False, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True,
        pipeline_class=PieceCompiler,
    )  # fmt: skip
    return _compiled_once(made)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function on numbers into whoever calls it."""
    return _stamped(njit(function, cache=True, inline="always"))


def _compiled_once(made: Any) -> Any:
    """Compile `made` once for constants and variables; Numba would compile a version for each constant handed to it."""
    resolve = getattr(made, "get_call_template", None)
    if resolve is not None:  # none where Numba is told not to compile
        made.get_call_template = lambda args, kws: resolve(
            tuple(map(types.unliteral, args)), {name: types.unliteral(arg) for name, arg in kws.items()}
        )
    return made


def _stamped(made: Any) -> Any:
    """Let cached code hold as long as no file it is compiled from changed; Numba looks at the function's own alone."""
    cache_file = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = _stamp_of(made.py_func.__code__.co_filename)  # noqa: SLF001 - there is no public way
    return made
