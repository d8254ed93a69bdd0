"""Garbage collections in a worker: modules are left out, what tasks leave behind is not."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterable, Iterator
from types import ModuleType

import pyarrow as pa
import pytest

from shoal.spark.cluster import workers
from shoal.spark.cluster.workers import InWorker


@pytest.fixture(autouse=True)
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(workers, "_imported", 0)
    yield
    gc.unfreeze()


class Cycle:
    """Only a collection removes it."""

    def __init__(self) -> None:
        self.itself = self


def doubled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        yield batch


def leave_cycle(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    left.append(weakref.ref(Cycle()))
    return iter(batches)


left: list[weakref.ref[Cycle]] = []


def test_work_is_unchanged_and_what_is_imported_is_set_aside_once(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.record_batch({"a": [1, 2]})
    assert list(InWorker(doubled)([batch])) == [batch, batch]
    frozen = gc.get_freeze_count()
    assert frozen > 10_000
    made = [[] for _ in range(1_000)]  # a later task makes objects, but imports nothing
    assert list(InWorker(doubled)([batch])) == [batch, batch]
    assert gc.get_freeze_count() <= frozen
    monkeypatch.setitem(sys.modules, "imported_by_a_task", ModuleType("imported_by_a_task"))
    assert list(InWorker(doubled)([])) == []
    assert gc.get_freeze_count() >= frozen + len(made)


def test_what_a_task_leaves_behind_is_collected() -> None:
    left.clear()
    for _ in range(2):  # the first one sets modules aside
        assert list(InWorker(leave_cycle)([])) == []
        gc.collect()
    assert [ref() for ref in left] == [None, None]
