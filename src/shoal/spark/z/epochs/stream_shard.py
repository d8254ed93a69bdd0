"""Micro-batches with combine and target: shards judge values, and keep those of epochs that are not over.

Rows that passed z wait with the shards that judged them, sealed like the rest of their state. When the clock of a
micro-batch closes their epoch, all shards send them to the task of the epoch. Of rows that were judged just now, shards
send the decisions in any case: a row that no shard passes is decided at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.methods.arrow_input import as_bytes
from shoal.methods.z.epochs.closing import Ending
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import one_row, packed, unpacked
from shoal.spark.streams.snapshots import dump_shard, open_shard
from shoal.spark.streams.state import ShardStates
from shoal.spark.z.epochs.value_shard import BIN, EPOCH, ROWS, STRETCH, TRACE, VALUES, ValueShard
from shoal.spark.z.judge import Given, gathered_rows
from shoal.spark.z.output_ranges import Ranges


@dataclass(frozen=True, slots=True)
class ContinueValues:
    """Judges shards on an executor, from their states on; the parts of blocks come in order, shard by shard."""

    recipe: Recipe
    types: pa.Schema
    admission: Any
    """Broadcast: what admission found out."""
    end: int
    """The number after the last record's."""
    ranges: Ranges
    bins: int
    """Into how many bins epochs are divided."""
    states: ShardStates

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        clock, states = self.admission.value.clock, self.states
        make = partial(WaitingShard, self.recipe, self.types, self.bins)
        for number, parts in groupby(gathered_rows(batches), key=itemgetter(0)):
            shard = states.open(number, make, self._replay)
            given = Given(clock, self.ranges.first, self.end, [rows for _, rows in parts])
            yield from shard.judge(given)
            if clock.is_end:
                yield shard.values.note(number)
                continue
            chain = states.keep(number, shard, partial(given.dump, self.recipe))
            yield shard.values.note(number, chain=chain)

    def _replay(self, shard: WaitingShard, log: bytes) -> None:
        for _ in shard.judge(Given.load(self.recipe, log)):
            pass


class WaitingShard:
    """Judges the values of one shard; with combine, keeps those of epochs that are not over.

    Parameters
    ----------
    state
        From dump() after the micro-batch before.
    """

    def __init__(self, recipe: Recipe, types: pa.Schema, bins: int, state: bytes | None = None) -> None:
        self._recipe, self._waiting = recipe, []  # type: Recipe, list[pa.RecordBatch]
        whole: Any = recipe.make()
        method = whole.apart(has_keys=True)
        if state is not None:
            snapshot, more = open_shard(recipe, state)
            method.restore(snapshot)
            self._waiting = _messages(more["waiting"])
        self.values = ValueShard(method, types, bins)
        self._settings = method.settings

    def judge(self, given: Given) -> Iterator[pa.RecordBatch]:
        """Judge rows; send what the tasks of epochs decide now."""
        self.values.begin(given.clock, given.first, given.end)
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            if self._is_over(message, given):
                yield message
            else:
                self._waiting.append(message)
        for rows in given.rows:
            for message in self.values.judge(rows):
                yield from self._sent(message, given)
        for message in self.values.finish():
            yield from self._sent(message, given)

    def _sent(self, message: pa.RecordBatch, given: Given) -> Iterator[pa.RecordBatch]:
        if self._settings.k is None or self._is_over(message, given):
            yield message
            return
        trace = unpacked(message.column(TRACE)[0])
        passed = trace.filter(trace["passed"])
        if passed.num_rows:
            # what waits is of the last stretch of this clock, which is the first one of the next clock
            self._waiting.append(_with(message, **{STRETCH: 0, TRACE: packed(_undecided(passed))}))
        if len(self._settings.attributes) == 1:  # single attribute: no other shard judges these rows
            trace = trace.filter(pc.invert(trace["passed"]))
        if trace.num_rows:
            yield _with(message, **{TRACE: packed(trace), ROWS: None})

    def _is_over(self, message: pa.RecordBatch, given: Given) -> bool:
        stretch, epoch = (message.column(name)[0].as_py() for name in (STRETCH, EPOCH))
        end_ns = min((epoch + 1) * self._settings.rotation_ns, np.iinfo(np.int64).max)
        lateness_ns = self._settings.lateness_ns
        return Ending.of(given.clock, stretch, end_ns, lateness_ns=lateness_ns, last=given.end) is not None

    def dump(self) -> bytes:
        """The state, sealed."""
        return dump_shard(self._recipe, self.values.method.snapshot(), {"waiting": _as_stream(self._waiting)})


def _undecided(trace: pa.RecordBatch) -> pa.RecordBatch:
    """A trace without turns and delays: the end of the epoch determines them, and a log could not restore them."""
    for name in ("turn", "delay"):
        nothing = pa.array(np.zeros(trace.num_rows, dtype=np.int64))
        trace = trace.set_column(trace.schema.get_field_index(name), name, nothing)
    return trace


def _with(message: pa.RecordBatch, **changes: Any) -> pa.RecordBatch:
    """A message with some columns changed."""
    kept = {name: message.column(name)[0].as_py() for name in (BIN, STRETCH, EPOCH)}
    return one_row(VALUES, {**kept, ROWS: message.column(ROWS), **changes})


def _as_stream(messages: Sequence[pa.RecordBatch]) -> Any:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, VALUES) as writer:
        for message in messages:
            writer.write_batch(message)
    return as_bytes(sink.getvalue())


def _messages(stream: Any) -> list[pa.RecordBatch]:
    return list(pa.ipc.open_stream(pa.py_buffer(stream)))
