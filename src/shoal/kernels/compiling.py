"""How kernels are compiled: cached, without the GIL, and without reference counting.

Kernels get all memory from outside and make none, so there is nothing to count; without this every array handed from
one kernel to another would cost two atomic operations, which was nearly half the time of the crowd kernels.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

from numba import njit as _njit

njit: Any = _njit  # its published types know nothing of `_nrt`


_USES: Final = re.compile(r"^from shoal\.kernels\.(\w+) import", re.MULTILINE)
_TOOLS: Final = frozenset({"compiling", "prefetching"})


def source_stamp(folder: Path, module: str) -> str:
    """Tell one state of a kernel file, and of all kernel files it builds on, from another."""
    needed, waiting = set(_TOOLS), [module]
    while waiting:
        needed.add(name := waiting.pop())
        waiting += set(_USES.findall((folder / f"{name}.py").read_text())) - needed
    digest = hashlib.sha256()
    for name in sorted(needed):
        digest.update(name.encode() + b"\x00" + (folder / f"{name}.py").read_bytes() + b"\x00")
    return digest.hexdigest()


@cache
def _stamp_of(module: str) -> str:
    return source_stamp(Path(__file__).parent, module.rpartition(".")[2])


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function on arrays."""
    return _stamped(njit(function, cache=True, nogil=True, _nrt=False))


def piece(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call: there is no way in from Python, which would cost time to compile."""
    return njit(function, nogil=True, _nrt=False, error_model="numpy", no_cpython_wrapper=True, no_cfunc_wrapper=True)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function on numbers into whoever calls it."""
    return _stamped(njit(function, cache=True, inline="always"))


def _stamped(made: Any) -> Any:
    """Let what is cached hold as long as no kernel file it is made of changed.

    Numba looks at the function's own file alone. A kernel that has another one built in would go on with the old
    one, and two versions would work on one table: people would be counted twice.
    """
    cache_file = getattr(getattr(made, "_cache", None), "_cache_file", None)
    if cache_file is not None:
        cache_file._source_stamp = _stamp_of(made.py_func.__module__)  # noqa: SLF001 - there is no public way
    return made
