"""Whether kernels have to be compiled before anything is decided: once on a machine, and it takes a while."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from shoal.anonymizers.restoring import METHODS

Z_MODEL: Final = "z-model"
UNIQUENESS: Final = "uniqueness"
TUNING: Final = "tuning"
_COUNTING: Final = ("shoal.kernels.set_counting", "find_violations")
_SET_KERNELS: Final = {
    Z_MODEL: (("shoal.kernels.binomials", "tails_of_logs"),),
    "k^m": (_COUNTING, ("shoal.kernels.set_sampling", "find_violation")),
    "k^m-apriori": (_COUNTING,),
    UNIQUENESS: (("shoal.kernels.set_sampling", "draw_samples"),),
    TUNING: (("shoal.kernels.set_curves", "curve_of_sets"),),
}
"""Of what is done with sets and of tuning: kernels that take longest to compile. Not every run needs all of them."""


def must_compile(method: str) -> bool:
    """Whether nothing of a method is cached yet, or what is cached is of another version."""
    return all(map(_is_missing, _kernels(method)))


def _kernels(method: str) -> list[Any]:
    if method in METHODS:
        return [METHODS[method].kernel]
    return [getattr(import_module(module), name) for module, name in _SET_KERNELS[method]]


def _is_missing(kernel: Any) -> bool:
    cache = getattr(kernel, "_cache", None)  # none where Numba is told not to compile
    index = getattr(cache, "_cache_file", None)
    return index is not None and not index._load_index()  # noqa: SLF001 - there is no public way
