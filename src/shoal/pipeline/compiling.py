"""Whether kernels have to be compiled before anything is decided: once on a machine, and it takes a while."""

from __future__ import annotations

from shoal.anonymizers.restoring import METHODS


def must_compile(method: str) -> bool:
    """Whether nothing of a method is cached yet, or what is cached is of another version."""
    cache = getattr(METHODS[method].kernel, "_cache", None)  # none where Numba is told not to compile
    index = getattr(cache, "_cache_file", None)
    return index is not None and not index._load_index()  # noqa: SLF001 - there is no public way
