"""How kernels are compiled: cached, without the GIL, and without reference counting.

Kernels get all memory from outside and make none, so there is nothing to count; without this every array handed from
one kernel to another would cost two atomic operations, which was two thirds of the time of the crowd kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function on arrays."""
    return njit(function, cache=True, nogil=True, _nrt=False)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a function on numbers into whoever calls it."""
    return njit(function, cache=True, inline="always")
