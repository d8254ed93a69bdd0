"""Shards for combine and target: each judges its values; what epochs decide comes after, with the values of all shards.

A shard sends what it found out about rows to the task of their epoch: with combine the level of every value, with a
target the number of people behind it, and the largest crowds of the epoch, by which z is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from shoal.methods.release import NO_REASON, Release
from shoal.methods.z.admission import Clock
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import one_row, packed
from shoal.spark.records.columns import ROW
from shoal.spark.records.frames import runs_of
from shoal.spark.z.clocks import clock_between
from shoal.spark.z.judge import gathered_rows
from shoal.spark.z.output_ranges import NOTE, PIECES, RANGE, Ranges

Ints = npt.NDArray[np.int64]
BIN, STRETCH, EPOCH = "_shoal_bin", "_shoal_stretch", "_shoal_epoch"
TRACE, ROWS, PEAKS = "_shoal_trace", "_shoal_rows", "_shoal_peaks"
VALUES: Final = pa.schema(
    [*PIECES, (BIN, pa.int32()), (STRETCH, pa.int32()), (EPOCH, pa.int64()), (PEAKS, pa.binary())]
)
"""Messages to the task of an epoch; STRETCH counts how often time started over."""


@dataclass(frozen=True, slots=True)
class JudgeValues:
    """Judges shards on an executor; the parts of blocks come in order, one shard after another."""

    recipe: Recipe
    types: pa.Schema
    admission: Any
    """Broadcast: what admission found out."""
    end: int
    """The number after the last record's."""
    ranges: Ranges
    bins: int
    """Into how many bins epochs are divided."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number, parts in groupby(gathered_rows(batches), key=itemgetter(0)):
            whole: Any = self.recipe.make()
            shard = ValueShard(whole.apart(), self.types, self.bins)
            shard.begin(self.admission.value.clock, self.ranges.first, self.end)
            for _, rows in parts:
                yield from shard.judge(rows)
            yield from shard.finish()
            yield shard.note(number)


class ValueShard:
    """Judges the values of one shard in their order; `method` is apart()."""

    def __init__(self, method: Any, types: pa.Schema, bins: int) -> None:
        self.method, self._types, self._bins = method, types, bins
        self.method.bind(types)
        self._settings = method.settings

    def begin(self, clock: Clock, first: int, end: int) -> None:
        """Begin with the records from `first` up to `end`; `clock` is how they moved the stream's time."""
        self._clock, self._next, self._end = clock, first, end

    def judge(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Judge rows; the stream's time moves as far as the last of them."""
        if batch.num_rows:
            numbers = np.asarray(batch.column(ROW))
            clock = clock_between(self._clock, self._next, int(numbers[-1]) + 1)
            self._next = int(numbers[-1]) + 1
            read = self.method.read_admitted(batch.select(self._types.names), numbers, clock)
            yield from self._sent(self.method.judge(read))
            yield from self._peaks(everything=False)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Judge what is due after all records, or everything if the stream has ended."""
        end, last = self._end, self._clock.newest[-1:]
        clocks = [clock_between(self._clock, self._next, end)] if self._next < end or not self._clock.is_end else []
        if self._clock.is_end:
            clocks.append(Clock(np.array([end]), last, is_end=True))
        for clock in clocks:
            nothing = pa.RecordBatch.from_pylist([], schema=self._types)
            yield from self._sent(self.method.judge(self.method.read_admitted(nothing, [], clock)))
        yield from self._peaks(everything=True)

    def note(self, number: int, **more: Any) -> pa.RecordBatch:
        """Sizes of the shard."""
        found = {"live_pairs": self.method.live_pairs, "state_bytes": self.method.state_bytes, "shard": number, **more}
        note = orjson.dumps(found).decode()
        return one_row(VALUES, {NOTE: note, RANGE: 0, BIN: 0, STRETCH: -1, EPOCH: 0})

    def _sent(self, release: Release) -> Iterator[pa.RecordBatch]:
        trace = release.trace
        if not trace.num_rows:
            return
        is_forgotten = np.asarray(trace.column("reason")) != NO_REASON
        if is_forgotten.any():  # time started over: they are decided with the arrival that made it do so
            restarts = np.array([*self._clock.restarts, self._end], dtype=np.int64)
            numbers = np.asarray(trace.column("row"))
            later = restarts[np.minimum(np.searchsorted(restarts, numbers, side="right"), len(restarts) - 1)]
            turns = np.where(is_forgotten, later, np.asarray(trace.column("turn")))
            trace = trace.set_column(trace.schema.get_field_index("turn"), "turn", pa.array(turns))
        yield from self._to_epochs(trace, release.rows)

    def _to_epochs(self, trace: pa.RecordBatch, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """To the tasks of the epochs, which are not in order where time started over."""
        stretches, epochs = self._places(trace)
        different, codes = np.unique(epochs, return_inverse=True)
        keys = stretches * len(different) + codes
        order = np.argsort(keys, kind="stable")
        passed = np.asarray(trace.column("passed").to_numpy(zero_copy_only=False))
        shown = rows.take(pa.array((np.cumsum(passed) - 1)[order][passed[order]]))
        sent = trace.append_column("key", pa.array(keys)).take(pa.array(order))
        first = row = 0
        for _, part in runs_of(sent, "key"):
            count = int(passed[order[first : first + part.num_rows]].sum())
            epoch = int(epochs[order[first]])
            yield one_row(VALUES, {
                BIN: epoch % self._bins, STRETCH: int(stretches[order[first]]), EPOCH: epoch,
                TRACE: packed(part.drop_columns(["key"])), ROWS: packed(shown.slice(row, count)),
            })  # fmt: skip
            first, row = first + part.num_rows, row + count

    def _places(self, trace: pa.RecordBatch) -> tuple[Ints, Ints]:
        restarts = np.array(self._clock.restarts, dtype=np.int64)
        stretches = np.searchsorted(restarts, np.asarray(trace.column("row")), side="right")
        return stretches, np.asarray(trace.column("time")) // self._settings.rotation_ns

    def _peaks(self, *, everything: bool) -> Iterator[pa.RecordBatch]:
        for stretch, epoch, pairs in self.method.take_peaks(everything=everything):
            names = ("person", "value", "peak")
            batch = pa.RecordBatch.from_arrays([pa.array(column) for column in pairs.T], names=names)
            yield one_row(VALUES, {
                BIN: epoch % self._bins, STRETCH: stretch, EPOCH: epoch, PEAKS: packed(batch),
            })  # fmt: skip
