"""Whether kernels have to be compiled before anything is decided: once on a machine, and it takes a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final

from numba.core import event

from shoal.methods.registry import METHODS

Z_MODEL: Final = "z-model"
UNIQUENESS: Final = "uniqueness"
TUNING: Final = "tuning"
_COUNTING: Final = ("shoal.kernels.sets.counting", "find_violations")
_SET_KERNELS: Final = {
    Z_MODEL: (("shoal.kernels.z.binomials", "tails_of_logs"),),
    "k^m": (_COUNTING, ("shoal.kernels.sets.sampling", "find_violation")),
    "k^m-apriori": (_COUNTING,),
    UNIQUENESS: (("shoal.kernels.sets.sampling", "draw_samples"),),
    TUNING: (("shoal.kernels.z.threshold_curves", "curve_of_sets"),),
}
"""Of what is done with sets and of tuning: kernels that take longest to compile. Not every run needs all of them."""


def must_compile(method: str) -> bool:
    """Whether nothing of a method is cached yet, or what is cached is of another version."""
    return all(map(_is_missing, _kernels(method)))


class CompileTimer(event.Listener):
    """Seconds during which something was being compiled, in whichever thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._begun = 0.0
        self._seconds = 0.0

    @property
    def seconds(self) -> float:
        """Up to now."""
        with self._lock:
            return self._seconds + (time.perf_counter() - self._begun if self._depth else 0.0)

    def on_start(self, event: event.Event) -> None:
        """A function is compiled; it may have others compiled first."""
        with self._lock:
            if not self._depth:
                self._begun = time.perf_counter()
            self._depth += 1

    def on_end(self, event: event.Event) -> None:
        """It is done."""
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._seconds += time.perf_counter() - self._begun


@contextmanager
def timed_compiling() -> Iterator[CompileTimer]:
    """Measure compiling, so that no figure of rows per second includes it."""
    timer = CompileTimer()
    with event.install_listener("numba:compile", timer):
        yield timer


class WorkClock:
    """Seconds since it was made, without those of compiling."""

    def __init__(self, compiling: CompileTimer) -> None:
        self._compiling = compiling
        self._started, self._compiled_before = time.perf_counter(), compiling.seconds

    @property
    def seconds(self) -> float:
        """Up to now."""
        elapsed = time.perf_counter() - self._started
        return max(elapsed - (self._compiling.seconds - self._compiled_before), 0.0)

    @property
    def compiling_seconds(self) -> float:
        """All seconds of compiling so far."""
        return self._compiling.seconds


def _kernels(method: str) -> list[Any]:
    if method in METHODS and METHODS[method].is_stream:
        return [METHODS[method].load().kernel]
    return [getattr(import_module(module), name) for module, name in _SET_KERNELS[method]]


def _is_missing(kernel: Any) -> bool:
    cache = getattr(kernel, "_cache", None)  # none where Numba is told not to compile
    index = getattr(cache, "_cache_file", None)
    return index is not None and not index._load_index()  # noqa: SLF001 - there is no public way
