"""Python workers of Spark: what they have imported is left out of garbage collections.

A worker collects garbage after every task, and looks at every object of the process to do so. Modules have hundreds of
thousands of objects (Numba above all) and are never garbage: without this, collecting costs more than a short task.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

_imported = 0
"""How many modules this process had when its objects were last set aside."""


@dataclass(frozen=True, slots=True)
class InWorker:
    """Work on the batches of a task; afterwards modules that it imported are set aside."""

    work: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from self.work(batches)
        set_imports_aside()


def set_imports_aside() -> None:
    """If modules were imported since the last call, collect garbage once and freeze all live objects."""
    global _imported
    if len(sys.modules) != _imported:
        gc.collect()
        gc.freeze()
        _imported = len(sys.modules)
