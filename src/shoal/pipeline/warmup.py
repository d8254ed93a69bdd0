"""Compiling kernels: whether it has to happen, how long it takes, and how to do it ahead of time."""

from __future__ import annotations

import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any, Final

import pyarrow as pa
from numba.core import event

from shoal.hierarchies import Hierarchy
from shoal.hierarchies.ontology.ontology import Ontology
from shoal.methods.base import StreamMethod
from shoal.methods.registry import METHODS
from shoal.schema import Categorical, Numeric, Schema

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
"""Kernels of sets and of tuning that take longest to compile; not every run needs all of them."""


def must_compile(method: str) -> bool:
    """Whether the kernels of a method have to be compiled: none is cached, or the cache is of another version."""
    return all(map(_is_missing, _kernels(method)))


class CompileTimer(event.Listener):
    """Measures the seconds spent on compiling, in any thread."""

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
        """Called when a function is compiled, which may compile others first."""
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
    """Seconds since the start, without compiling."""

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
    return index is not None and not index._load_index()  # noqa: SLF001 - no public way exists


# ---- ahead of time

_SLOWEST: Final = ("least-loss", "castle", "k-varp", "fads", "flexible-k")
"""Methods that are compiled first, because they take longest."""
_ROWS: Final = 60


def warm_all(methods: Sequence[str]) -> Iterator[str]:
    """Compile the kernels of some methods on all cores; yield each name when its kernels are ready.

    Methods of a family share most of their kernels, so a process compiles whole families: two processes would compile
    what is shared twice.
    """
    in_order = sorted(methods, key=lambda name: _SLOWEST.index(name) if name in _SLOWEST else len(_SLOWEST))
    families = list(dict.fromkeys(METHODS[name].family for name in in_order))
    processes = min(os.cpu_count() or 1, len(families))
    fresh = multiprocessing.get_context("spawn")  # a forked process would share locks of threads that it lacks
    with ExitStack() as stack:
        pools = [
            stack.enter_context(ProcessPoolExecutor(1, mp_context=fresh, initializer=_hide_notice))
            for _ in range(processes)
        ]
        under_way = {
            pools[min(families.index(METHODS[name].family), processes - 1)].submit(warm, name): name
            for name in in_order
        }
        for done in as_completed(under_way):
            done.result()
            yield under_way[done]


def warm(method: str) -> None:
    """Run a few synthetic records through a method: as a batch, one by one, and through a snapshot."""
    if METHODS[method].family == "sets":
        tree = Hierarchy.from_nested({"any": {"few": ["a", "b"], "many": ["c", "d"]}})
        baskets = [["a", "b"], ["a", "c"], ["b", "c", "d"], ["a", "b", "c"]] * 5
        METHODS[method].load()(k=2, m=2, generalize=tree).anonymize(baskets)
        return
    whole, single, records = _stream_method(method), _stream_method(method), _records()
    whole.push_batch(pa.RecordBatch.from_pylist(records))
    for record in records:
        single.push(record)
    whole.restore(single.snapshot())
    whole.flush()


def _hide_notice() -> None:
    logging.getLogger("shoal.kernels").setLevel(logging.ERROR)


def _stream_method(name: str) -> StreamMethod:
    """A method that publishes some of `_records`."""
    family, kind = METHODS[name].family, METHODS[name].load()
    made: StreamMethod
    if family == "z":
        made = kind(z=2, window="1h", person="person", time="time", attribute="y", key=bytes(16))
    elif family == "tuples":
        letter = Categorical("y", Hierarchy.flat(["a", "b"], root="any"))
        schema = Schema(person="person", time="time", quasi=[Numeric("x", low=0, high=10), letter])
        made = kind(schema, k=2, deadline=10, reuse=0, key=bytes(16))
    else:
        values = [{"name": name, "kind": "letter"} for name in "ab"]
        ontology = Ontology.from_table(values, value="name", is_a=["kind"], tag="sparse", attribute="y")
        schema = Schema(person="person", time="time", quasi=[Numeric("x", low=0, high=10), Categorical("y")])
        made = kind(schema, ontology, k=2, window=20, key=bytes(16))
    return made


def _records() -> list[dict[str, Any]]:
    start = datetime(2020, 1, 1, tzinfo=UTC)
    return [
        {"person": f"p{row % 20}", "time": start + timedelta(seconds=row), "x": float(row % 7), "y": "ab"[row % 2]}
        for row in range(_ROWS)
    ]
