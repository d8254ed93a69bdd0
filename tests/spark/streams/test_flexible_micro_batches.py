"""Micro-batches of the flexible method without Spark: what a batch publishes, from memory, snapshots and logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from shoal.spark.flexible import stream as flexible_stream
from shoal.spark.flexible.decide import AssignShards, DecideShards
from shoal.spark.flexible.shard import PENDING
from shoal.spark.flexible.stream import ContinueFlexible, FlexibleStream, RefuseUnusable
from shoal.spark.outcome import Outcome
from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import NOTE, ORDER, ROW, SHARD, VERDICT, cast, wire_schema
from shoal.spark.streams import state as shard_memory
from shoal.spark.streams.state import ShardStates
from tests.spark.flexible.test_shards import ROWS, WINDOW, audit, decided, folder, method, table

pytestmark = pytest.mark.compiled
_ = folder  # the key
STEP, SHARDS = 250, 5


def by_row(found: pa.Table) -> list[dict[str, Any]]:
    """Decisions about records; a shard numbers its decisions, and refused records may have been in none."""
    kept = found.filter(pc.is_null(found[NOTE])).drop_columns([NOTE, ORDER]).sort_by(ROW)
    released = kept.filter(pc.equal(kept[VERDICT], "released")).to_pylist()
    dead = kept.filter(pc.equal(kept[VERDICT], "dead")).select([ROW, "_shoal_reason", "_shoal_decided"]).to_pylist()
    return released + dead


class Stream:
    """What the driver and the executors do with micro-batches."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self._path, self._rows, self._recipe = path, table(), Recipe.of(method())
        self._state: bytes | None = None
        self._chains: dict[str, list[str]] = {}
        self._previous: str | None = None
        self.logs, self.waited = 0, 0

    def decided(self, first: int, count: int, *, attempt: str, is_end: bool = False, counts: bool = True) -> pa.Table:
        """Decide a micro-batch; `counts`: it is committed."""
        types, known = self._rows.schema, FlexibleStream.opened(self._recipe, self._state)
        rows = cast(self._rows.slice(first, count), wire_schema(types))
        rows = rows.append_column(ROW, pa.array(np.arange(first, first + count)))
        everything = pa.concat_batches([known.waiting, rows]) if known.waiting is not None else rows
        if known.calibration is None:
            numbered: Any = SimpleNamespace(types=types, rows=rows)
            known = known.accepting(numbered, self._recipe, SHARDS, is_end=is_end)
        chains, notes = {}, []
        if known.calibration is None:
            published = self._published
            found = pa.Table.from_batches(RefuseUnusable(self._recipe, types, published)([rows]))
            self.waited += 1
        else:
            states = ShardStates(self._path, attempt, self._previous, self._chains)
            work = ContinueFlexible(self._recipe, types, known.calibration, states, ROWS - 1 if is_end else None)
            parts = self._in_order(everything, known)
            found = pa.Table.from_batches(work(parts))
            left = pc.equal(found[VERDICT], PENDING).fill_null(False)
            if found.filter(left).num_rows:
                shard_memory._IN_MEMORY.clear()
                given = pa.Table.from_batches(replace(work, gives_pending=True)(parts)).sort_by(ROW)
                assert given[ROW].to_pylist() == sorted(found.filter(left)[ROW].to_pylist())
                last = pa.repeat(pa.scalar(len(known.cuts) + 1, pa.int32()), len(given))
                together = DecideShards(self._recipe, types, known.calibration, ROWS - 1, again=True)
                more = pa.Table.from_batches(together(given.append_column(SHARD, last).combine_chunks().to_batches()))
                found = pa.concat_tables([found.filter(pc.invert(left)), more])
            notes = [orjson.loads(note) for note in found[NOTE].drop_null().to_pylist()]
            chains = {str(note["shard"]): note["chain"] for note in notes if "chain" in note}
        if counts:
            dead = found.filter(pc.equal(found[VERDICT], "dead")).select([ROW]).rename_columns(["row"])
            self._state = known.after(Outcome({}, dead, {}, notes), first + count).sealed(self._recipe)
            self._previous, self._chains = attempt, chains
            self.logs += sum(len(chain) > 1 for chain in chains.values())
        return found

    def _in_order(self, rows: pa.RecordBatch, known: FlexibleStream) -> list[pa.RecordBatch]:
        assert known.calibration is not None
        (assigned,) = AssignShards(self._recipe, self._rows.schema, known.calibration, known.cuts)([rows])
        every = [{ROW: None, SHARD: shard} for shard in range(len(known.cuts) + 1)]
        whole = pa.concat_tables([pa.table(assigned), pa.Table.from_pylist(every, schema=assigned.schema)])
        return whole.sort_by([(SHARD, "ascending"), (ROW, "ascending")]).to_batches(max_chunksize=90)

    @property
    def _published(self) -> pa.Schema:
        made: Any = self._recipe.make()
        made.bind(self._rows.schema)
        schema: pa.Schema = made.output_schema
        return schema


@pytest.fixture(autouse=True)
def in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def first(rows: Any, sorter: Any, window: int) -> pa.RecordBatch:
        usable = sorter.usable(cast(rows.rows, rows.types)).reasons < 0
        enough = np.searchsorted(np.cumsum(usable), window) + 1
        return rows.rows.slice(0, int(enough))

    monkeypatch.setattr(flexible_stream, "first_window", first)


def streamed(path: Path, *, disturbed: bool) -> tuple[list[pa.Table], Stream]:
    """The decisions of all micro-batches; `disturbed`: by other workers, with attempts that are never committed."""
    stream, found = Stream(path), []
    for number, first in enumerate(range(0, ROWS, STEP)):
        if disturbed and number % 2:
            shard_memory._IN_MEMORY.clear()
        if disturbed and number in (1, 2, 5):
            stream.decided(first, STEP, attempt=f"{number}-lost", counts=False)
        if disturbed and number == 7:  # a copy of the task, of the same attempt
            stream.decided(first, STEP, attempt=str(number), counts=False)
            shard_memory._IN_MEMORY.clear()
        found.append(stream.decided(first, STEP, attempt=str(number)))
    if disturbed:
        stream.decided(ROWS, 0, attempt="end-lost", is_end=True, counts=False)
    found.append(stream.decided(ROWS, 0, attempt="end", is_end=True))
    return found, stream


def test_micro_batches_decide_what_a_batch_decides(folder: Path) -> None:
    expected, used, metrics = decided(SHARDS)
    assert used == SHARDS
    found, stream = streamed(folder / "one", disturbed=False)
    whole = pa.concat_tables(found)
    whole = whole.filter(pc.invert(pc.equal(whole[VERDICT], PENDING).fill_null(False)))
    assert by_row(whole) == by_row(expected)
    report = audit(whole.filter(pc.is_null(whole[NOTE])), folder)
    assert report.ok, report
    assert SHARDS in whole[SHARD].to_pylist(), "the last shard publishes some of what was pending in the others"
    assert stream.waited == WINDOW // STEP
    assert pc.sum(pc.equal(found[0][VERDICT], "released")).as_py() in (0, None)
    notes = [orjson.loads(note) for note in found[-1][NOTE].drop_null().to_pylist()]
    assert [note["pending"] for note in notes if note["again"]] == [metrics["pending"]]
    known = FlexibleStream.opened(stream._recipe, stream._state)
    measured = flexible_stream._metrics(notes, {}, known=known, k=method().settings.k)
    assert measured == pytest.approx(metrics)


def test_shards_continue_alike_from_memory_and_from_files_and_after_lost_attempts(folder: Path) -> None:
    expected, _ = streamed(folder / "one", disturbed=False)
    found, stream = streamed(folder / "two", disturbed=True)
    assert [by_row(one) for one in found] == [by_row(one) for one in expected]
    assert stream.logs > 0


def test_what_the_driver_knows_is_sealed_and_forgets_refusals_that_no_delay_counts(folder: Path) -> None:
    stream = Stream(folder / "one")
    sealed = []
    for number, first in enumerate(range(0, ROWS, STEP)):
        stream.decided(first, STEP, attempt=str(number))
        assert stream._state is not None
        assert b"speed" not in stream._state
        sealed.append(FlexibleStream.opened(stream._recipe, stream._state))
    first, *_, last = sealed
    assert first.waiting is not None
    assert first.dead.tolist() == [row for row in range(STEP) if row % 50 == 0 and row]
    assert last.waiting is None
    assert 0 < len(last.dead) < ROWS // 50
    assert last.calibration == sealed[WINDOW // STEP].calibration is not None
    assert last.cuts == sealed[WINDOW // STEP].cuts
