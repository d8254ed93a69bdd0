"""z-anonymity on Spark, identical to one machine: rows are admitted once, in order; then values are judged in shards.

1. One task sees times and people in the order of arrival: it moves the time of the stream and refuses late rows.
2. Rows go to shards by (column, value): whether a value is published depends on the people behind this value alone.
3. Each shard judges its rows by the time of the whole stream.
4. Ranges of the output put the decisions of all shards in order; rows with several columns are joined by their number.

combine and target decide about all people of an epoch together, between steps 3 and 4 (see epochs/).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson
import pyarrow as pa

from shoal.methods.release import DEAD, IS_DEAD, RELEASED, SUPPRESSED, VERDICTS
from shoal.methods.z.reader import reasons_of
from shoal.methods.z.trace import AT_ONCE
from shoal.spark.outcome import Outcome, WriteTrace
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import ABOUT, HEAD, ROWS_OF_A_BLOCK, one_row, packed, unpacked
from shoal.spark.records.columns import BLOCK, PART, SHARD, cast, wire_schema
from shoal.spark.records.frames import mapped
from shoal.spark.records.numbering import NumberedRows
from shoal.spark.records.part_writer import PartWriter
from shoal.spark.streams.state import ShardStates
from shoal.spark.z.admit import ADMITTED, AdmitRows, decisions_only, read_admission, states_only
from shoal.spark.z.epochs.close import split_notes
from shoal.spark.z.epochs.decide import ByEpoch, continue_epochs, decide_epochs
from shoal.spark.z.epochs.target_stream import FOLLOWED
from shoal.spark.z.judge import ASSIGNED, JudgeShards, SplitRows
from shoal.spark.z.output_ranges import LEVEL, PIECES, RANGE, Merged, Ranges, Z, merged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FOUND: Final = pa.schema(
    [(RANGE, pa.int32()), ("bytes", pa.int64()), ("counts", pa.string()), ("notes", pa.string()),
     ("dead", pa.binary()), ("trace", pa.binary())]
)  # fmt: skip
_SUMMED: Final = ("live_pairs", "state_bytes")
ROWS_OF_A_TASK: Final = 100_000
"""With fewer, one task judges several shards, as long as there are tasks for all cores."""


def decide_z(rows: NumberedRows, recipe: Recipe, *, shards: int) -> ZDecisions:
    """Decide all rows of a finite stream."""
    return _decided(rows, recipe, shards=shards, states=None, state=None, is_end=True)[0]


def continue_z(
    rows: NumberedRows, recipe: Recipe, *, shards: int, states: ShardStates, state: bytes | None, is_end: bool = False
) -> tuple[ZDecisions, Callable[[Outcome], bytes]]:
    """Decide the next rows of a stream; `state` is that of admission after the rows before.

    The second result makes the next one. Shards keep their states when the decisions are published, and note where. At
    the end of the stream everything that is pending is decided.
    """
    decided, after = _decided(rows, recipe, shards=shards, states=states, state=state, is_end=is_end)
    return decided, lambda outcome: after


def _decided(
    rows: NumberedRows, recipe: Recipe, *, shards: int, states: ShardStates | None, state: bytes | None, is_end: bool
) -> tuple[ZDecisions, bytes]:
    from pyspark.sql import functions as f

    method: Any = recipe.make()
    method.bind(rows.types)
    context = rows.blocks.sparkSession.sparkContext
    ranges = Ranges.of(rows.first, rows.count, context.defaultParallelism)
    needed = [PART, BLOCK, HEAD, *([ABOUT] if rows.opening.person else [])]
    heads = rows.blocks.select(*needed).repartition(1).sortWithinPartitions(PART, BLOCK)
    admit = AdmitRows(recipe, rows.opening, ranges, is_end, state)
    admitted = mapped(heads, admit, ADMITTED).persist()
    found = read_admission(states_only(admitted).toArrow(), is_end=is_end)
    admission = context.broadcast(found)
    split = SplitRows(recipe, rows.opening, shards, admission, None if states is None else rows.first)
    tasks = tasks_for(rows.count, shards, context.defaultParallelism)
    by_shard = mapped(rows.blocks, split, ASSIGNED).repartitionById(tasks, f.col(SHARD))
    in_order = by_shard.sortWithinPartitions(SHARD, PART, BLOCK)
    if method.settings.k is not None or method.settings.target is not None:
        known = (in_order, rows, recipe, method, admission, ranges)
        by_epoch = decide_epochs(*known) if states is None else continue_epochs(*known, states, shards)
    else:
        judge = JudgeShards(recipe, rows.types, admission, rows.end, ranges, states, is_end)
        by_epoch = ByEpoch(mapped(in_order, judge, PIECES))
    pieces = decisions_only(admitted).union(by_epoch.pieces) if len(found.refused) else by_epoch.pieces
    names = tuple(column.name for column in method.settings.attributes)
    decisions = ZDecisions(
        pieces.repartitionById(ranges.ranges, f.col(RANGE)), method.output_schema,
        MergeRanges(method.output_schema, names), ZTrace.of(method), reasons_of(method.settings),
        (admitted, *by_epoch.stored), admission, tuple(method.take_changes()),
        None if by_epoch.followed is None else partial(by_epoch.followed.metrics, method),
    )  # fmt: skip
    return decisions, found.state


def tasks_for(count: int, shards: int, parallelism: int) -> int:
    """How many tasks judge the shards: starting one takes longer than judging few rows of several shards."""
    return min(shards, max(parallelism, -(-count // ROWS_OF_A_TASK)))


@dataclass(frozen=True, slots=True)
class MergeRanges:
    """Puts the decisions of a range in order."""

    published: pa.Schema
    attributes: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Merged:
        return merged(batches, self.published, self.attributes)


@dataclass(frozen=True, slots=True)
class ZDecisions:
    """Decisions about every event of a stream, in pieces: one partition for each range of the output."""

    pieces: DataFrame
    published: pa.Schema
    merge: MergeRanges
    trace: ZTrace
    reasons: tuple[str, ...]
    stored: tuple[DataFrame, ...]
    admission: Any
    """Broadcast; like `stored`, it is needed until everything is published."""
    changes: tuple[Any, ...] = ()
    """With a target: every z that was set."""
    metrics: Callable[[Mapping[tuple[int, int], tuple[int, int]]], dict[str, Any]] | None = None
    """With a target: the last z and how epochs went, by the people that each shows."""

    def shown(self, *, suppressed: bool) -> DataFrame:
        """What may be published, in the order of the decisions."""
        return mapped(self.pieces.persist(), ShowRanges(self.merge), wire_schema(self.published))

    def publish(self, writer: PartWriter, write_trace: WriteTrace | None, *, suppressed: bool) -> Outcome:
        """Write what may be published, and the trace; return what was decided. Frees what executors store."""
        outcome = self._written(self.pieces, writer, write_trace)
        for frame in self.stored:
            frame.unpersist()
        self.admission.destroy(blocking=True)  # or Spark may evict a block whose file is deleted
        return outcome

    def evidence(self, write_trace: WriteTrace | None) -> Outcome:
        """Write the trace; return what was decided. What is shown afterwards comes from the same decisions."""
        return self._written(self.pieces.persist(), None, write_trace)

    def _written(self, pieces: DataFrame, writer: PartWriter | None, write_trace: WriteTrace | None) -> Outcome:
        work = WriteRanges(self.merge, writer, self.reasons, None if write_trace is None else self.trace)
        if writer is not None:
            writer.prepare()
        found = mapped(pieces, work, _FOUND).persist()
        outcomes = found.drop("trace").toArrow().sort_by(RANGE)
        if writer is not None:
            parts = dict(zip(outcomes[RANGE].to_pylist(), outcomes["bytes"].to_pylist(), strict=True))
            writer.require(parts if 0 in parts else {**parts, 0: writer.write(0, []).bytes})
        counts: Counter[str] = Counter({RELEASED: 0, SUPPRESSED: 0, DEAD: 0})
        for one in outcomes["counts"].to_pylist():
            counts.update(orjson.loads(one))
        dead = [unpacked(value) for value in outcomes["dead"] if value.is_valid]
        notes = [orjson.loads(note) for many in outcomes["notes"].to_pylist() for note in orjson.loads(many)]
        if write_trace is not None:
            chunks = found.select(RANGE, "trace").repartition(1).sortWithinPartitions(RANGE)
            write_trace(chunks, UnpackTrace(self.trace))
        found.unpersist()
        notes, shown = split_notes(notes)
        followed: dict[str, Any] = next((note[FOLLOWED] for note in notes if FOLLOWED in note), {})
        return Outcome(
            dict(counts), pa.Table.from_batches(dead) if dead else None,
            followed.get("metrics", {}) if self.metrics is None else self.metrics(shown), notes,
            **{name: sum(note[name] for note in notes) for name in _SUMMED}, changes=followed.get("changes", []),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ShowRanges:
    """Turns the pieces of a range into the rows that may be published."""

    merge: MergeRanges

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = self.merge(batches).rows
        for start in range(0, rows.num_rows, ROWS_OF_A_BLOCK):
            part = rows.slice(start, ROWS_OF_A_BLOCK)
            yield cast(part, wire_schema(part.schema))


@dataclass(frozen=True, slots=True)
class WriteRanges:
    """Writes what a range publishes to a part file, if asked; returns counts, refused records and the trace."""

    merge: MergeRanges
    writer: PartWriter | None
    """None: the rows are shown in another way."""
    reasons: tuple[str, ...]
    trace: ZTrace | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = [batch for batch in batches if batch.num_rows]
        if not pieces:
            return
        part, found = int(pieces[0].column(RANGE)[0].as_py()), self.merge(pieces)
        size = 0 if self.writer is None else self.writer.write(part, [found.rows]).bytes
        verdicts, reasons = found.decisions["verdict"], found.decisions["reason"]
        counts = {verdict: int(np.count_nonzero(verdicts == place)) for place, verdict in enumerate(VERDICTS)}
        is_dead = verdicts == IS_DEAD
        names = np.array(self.reasons, dtype=object)[reasons[is_dead].astype(np.int64)]
        for name in set(names.tolist()):
            counts[name] = int(np.count_nonzero(names == name))
        dead = pa.record_batch({"row": found.decisions["row"][is_dead], "reason": pa.array(names, pa.string())})
        yield one_row(_FOUND, {
            RANGE: part, "bytes": size, "counts": orjson.dumps(counts).decode(),
            "notes": orjson.dumps(found.notes).decode(), "dead": packed(dead) if len(names) else None,
            "trace": None if self.trace is None else packed(self.trace.batch(found, self.reasons)),
        })  # fmt: skip


@dataclass(frozen=True, slots=True)
class ZTrace:
    """Turns decisions about events into the trace that one machine would write."""

    schema: pa.Schema
    thresholds: tuple[int, ...]
    """The z of every attribute, where it is fixed."""
    levels: int
    """Columns for the level of each attribute, with combine."""
    follows: bool
    """Whether z follows the stream."""

    @classmethod
    def of(cls, method: Any) -> ZTrace:
        """The trace of a method."""
        kinds = (pa.int64(), pa.string(), pa.string(), pa.int64(), pa.int64())
        names = method.trace_schema.names
        fixed = list(zip(names, kinds, strict=False))
        return cls(
            pa.schema([*fixed, *((name, pa.int64()) for name in names[len(kinds) :])]),
            tuple(column.z for column in method.settings.attributes),
            0 if method.settings.k is None else len(method.settings.attributes),
            method.settings.target is not None,
        )

    def batch(self, found: Merged, reasons: tuple[str, ...]) -> pa.RecordBatch:
        """The trace of a range."""
        trace, count = found.trace, len(found.order)
        no_reason = trace["reason"] < 0
        epochs = trace.get("group", np.full(count, AT_ONCE))
        in_force = trace.get(Z, np.full(count, -1) if self.follows else None)
        columns = [
            pa.array(trace["row"]),
            pa.array(VERDICTS).take(pa.array(trace["verdict"])),
            pa.array(reasons, pa.string()).take(pa.array(trace["reason"], mask=no_reason)),
            pa.array(epochs, mask=epochs == AT_ONCE),
            pa.array(trace.get("delay", np.zeros(count, dtype=np.int64))),
            *(
                pa.repeat(pa.scalar(z, pa.int64()), count)
                if in_force is None
                else pa.array(in_force, mask=in_force < 0)
                for z in self.thresholds
            ),
            *(pa.array(trace.get(f"{LEVEL}{at}", np.full(count, -1))) for at in range(self.levels)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


@dataclass(frozen=True, slots=True)
class UnpackTrace:
    """The trace of all ranges, in order."""

    trace: ZTrace

    @property
    def schema(self) -> pa.Schema:
        """The columns of the trace."""
        return self.trace.schema

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The trace, batch by batch."""
        for batch in batches:
            yield from (unpacked(value) for value in batch.column("trace"))
