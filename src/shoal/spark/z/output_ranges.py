"""Decisions about events on their way from shards to ranges of the output.

The output is divided into ranges of arrivals: a record belongs to the range of the arrival that it is decided with. A
shard packs its decisions into one piece for each range; a range puts the pieces of all shards in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.methods.release import IS_DEAD, IS_RELEASED, NO_REASON
from shoal.methods.z.shards import first_of_each, joined_rows
from shoal.methods.z.trace import AT_ONCE
from shoal.spark.records.blocks import one_row, packed, unpacked
from shoal.spark.z.packed_pseudonyms import short_schema, with_full_names, with_short_names

Ints = npt.NDArray[np.int64]
RANGE: Final = "_shoal_range"
NOTE: Final = "_shoal_note"
_TRACE, _ROWS = "_shoal_trace", "_shoal_rows"
PIECES: Final = pa.schema([(RANGE, pa.int32()), (_TRACE, pa.binary()), (_ROWS, pa.binary()), (NOTE, pa.string())])
LEVEL, Z = "level", "z"
"""Columns of the level at which each value passed z, and of the z in force."""
_MISSING: Final = {"group": AT_ONCE, LEVEL: -1, Z: -1}
ROWS_OF_A_RANGE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Ranges:
    """Ranges of arrivals of equal size."""

    first: int
    count: int
    """Number of arrivals."""
    ranges: int

    @classmethod
    def of(cls, first: int, count: int, tasks: int) -> Ranges:
        """At least one range for each task, of a million arrivals at most; fewer if there are few arrivals."""
        return cls(first, count, max(1, min(-(-count // 10_000), max(tasks, -(-count // ROWS_OF_A_RANGE)))))

    def __call__(self, turns: Ints) -> Ints:
        """The range of each arrival; what is decided at the end is in the last one."""
        within = np.minimum(turns - self.first, max(self.count - 1, 0))
        return within * self.ranges // max(self.count, 1)


@dataclass(frozen=True, slots=True)
class Pieces:
    """Packs decisions in the order decided into one piece for each range."""

    ranges: Ranges
    waits: bool
    """Whether records wait for late ones, so that they are not decided with their own arrival."""

    def of(
        self, shard: int, trace: pa.RecordBatch, turns: Ints, times: Ints, rows: pa.RecordBatch | None
    ) -> Iterator[pa.RecordBatch]:
        """The pieces of a trace and of the rows that it releases."""
        if not trace.num_rows:
            return
        verdicts, reasons = np.asarray(trace.column("verdict").indices), trace.column("reason").indices
        columns: dict[str, Any] = {
            "row": trace.column("row"), "verdict": verdicts, "reason": reasons.fill_null(NO_REASON),
        }  # fmt: skip
        if self.waits:
            columns |= {"delay": trace.column("delay"), "turn": turns, "time": times}
        slim = pa.RecordBatch.from_arrays([pa.array(column) for column in columns.values()], names=list(columns))
        yield from self.packed(slim, turns, rows)

    def packed(self, slim: pa.RecordBatch, turns: Ints, rows: pa.RecordBatch | None) -> Iterator[pa.RecordBatch]:
        """The pieces of decisions with at least the number, the verdict and the reason of each record."""
        verdicts = np.asarray(slim.column("verdict"))
        rows = None if rows is None else with_short_names(rows)
        places = self.ranges(turns)
        if (np.diff(places) < 0).any():  # time started over
            order = np.argsort(places, kind="stable")
            is_shown = verdicts == IS_RELEASED
            if rows is not None:
                rows = rows.take(pa.array((np.cumsum(is_shown) - 1)[order][is_shown[order]]))
            slim, places, verdicts = slim.take(pa.array(order)), places[order], verdicts[order]
        bounds = [0, *(np.flatnonzero(np.diff(places)) + 1).tolist(), len(places)]
        shown = np.append(0, np.cumsum(verdicts == IS_RELEASED))
        for start, stop in pairwise(bounds):
            first, last = shown[start], shown[stop]
            yield one_row(PIECES, {
                RANGE: int(places[start]), _TRACE: packed(slim.slice(start, stop - start)),
                _ROWS: None if rows is None or first == last else packed(rows.slice(first, last - first)),
            })  # fmt: skip

    @staticmethod
    def note(text: str) -> pa.RecordBatch:
        """A note of a shard; it goes to the first range."""
        return one_row(PIECES, {RANGE: 0, NOTE: text})


@dataclass(frozen=True, slots=True)
class Merged:
    """The decisions of a range."""

    decisions: dict[str, npt.NDArray[Any]]
    """The number, verdict, reason and delay of every record, and details, in any order; verdicts and reasons are
    indices."""
    order: Ints
    """Places of the decisions, one after another as they were made."""
    rows: pa.RecordBatch
    """What is released, in order."""
    notes: tuple[str, ...]

    @property
    def trace(self) -> dict[str, npt.NDArray[Any]]:
        """The decisions in order."""
        return {name: column[self.order] for name, column in self.decisions.items()}


def merged(batches: Iterable[pa.RecordBatch], published: pa.Schema, attributes: Sequence[str]) -> Merged:
    """Put the pieces of a range in order: by turn, then by epoch, refused records last, then by time and number.

    With several attributes a record has a decision of each shard that owns one of its values: it is released if one of
    them releases it, with all values that are released.
    """
    traces, shown, notes = [], [pa.RecordBatch.from_pylist([], schema=short_schema(published))], []
    for batch in batches:
        notes += batch.column(NOTE).drop_null().to_pylist()
        traces += [unpacked(value) for value in batch.column(_TRACE) if value.is_valid]
        shown += [unpacked(value) for value in batch.column(_ROWS) if value.is_valid]
    trace, rows = _columns(traces), pa.concat_batches(shown)
    if len(attributes) > 1 and len(traces):
        numbers = trace["row"]
        rows = joined_rows(rows, numbers[trace["verdict"] == IS_RELEASED], attributes)
        kept = first_of_each(numbers, trace["verdict"])  # released comes before suppressed
        trace = {name: column[kept] for name, column in trace.items()}
    order, is_shown = _order_of(trace), trace["verdict"] == IS_RELEASED
    places = (np.cumsum(is_shown) - 1)[order][is_shown[order]]
    released = with_full_names(rows.take(pa.array(places)))
    return Merged(trace, order, released, tuple(notes))


def _order_of(trace: dict[str, npt.NDArray[Any]]) -> Ints:
    numbers = trace["row"]
    if "turn" in trace:
        is_last = trace.get("closed", trace["verdict"] == IS_DEAD)
        epochs = trace.get("epoch", np.zeros(len(numbers), np.int64))
        return np.lexsort((numbers, trace["time"], is_last, epochs, trace["turn"]))
    if len(numbers) and int(numbers.max()) - int(numbers.min()) == len(numbers) - 1:  # no gap: each has its place
        order = np.full(len(numbers), -1)
        order[numbers - numbers.min()] = np.arange(len(numbers))
        if (order >= 0).all():
            return order
    return np.argsort(numbers, kind="stable")


def _columns(traces: Sequence[pa.RecordBatch]) -> dict[str, npt.NDArray[Any]]:
    """The columns of all traces; records that admission refused lack some, which do not concern them."""
    if not traces:
        return {name: np.empty(0, np.int64) for name in ("row", "verdict", "reason")}
    found = pa.concat_tables([pa.Table.from_batches([trace]) for trace in traces], promote_options="default")
    numbers = found["row"]
    return {
        name: (
            pc.coalesce(found[name], numbers)
            if name in ("turn", "time")
            else found[name].fill_null(_MISSING.get(name.rstrip("0123456789"), 0))
        ).to_numpy()
        for name in found.column_names
    }
