"""What was decided about all records: rows to publish, the private trace, refused records, counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from shoal.crypto.private_files import sync_folder
from shoal.methods.release import DEAD, RELEASED, SUPPRESSED
from shoal.pipeline.wiring import make_trace_file
from shoal.sinks.durable import make_folder, output_error
from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import DECIDED, NOTE, ORDER, REASON, ROW, SHARD, VERDICT
from shoal.spark.records.frames import mapped, quoted
from shoal.spark.records.part_writer import WRITTEN, PartWriter, WriteParts, require_files, require_folder
from shoal.spark.records.range_partition import range_partitioned

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SORTED: Final = (DECIDED, SHARD, ORDER, ROW)
"""The order of decisions."""


class Trace(Protocol):
    """Turns decisions into the trace that one machine would write."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the trace."""

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The trace of decisions, batch by batch."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts, metrics and refused records."""

    counts: dict[str, int]
    """Records by verdict, and refused ones by reason."""
    refused: pa.Table | None
    """The number (row) and reason of every refused record, in any order; None if there are none."""
    metrics: dict[str, Any]
    notes: list[dict[str, Any]]
    """What the shards noted."""
    live_pairs: int = 0
    state_bytes: int = 0
    changes: Sequence[tuple[str, int]] = ()
    """In micro-batches with a target: every z that was set, and for which epoch."""


class Decided(Protocol):
    """Decisions about every record of a stream."""

    @property
    def published(self) -> pa.Schema:
        """The columns that are published."""

    def shown(self, *, suppressed: bool) -> DataFrame:
        """What may be published, in the order of the decisions; suppressed rows too, fully generalized, if asked."""

    def publish(self, writer: PartWriter, write_trace: WriteTrace | None, *, suppressed: bool) -> Outcome:
        """Write what may be published, and the trace; return what was decided."""

    def evidence(self, write_trace: WriteTrace | None) -> Outcome:
        """Write the trace; return what was decided. What is shown afterwards comes from the same decisions."""


@dataclass(frozen=True, slots=True)
class WriteTrace:
    """Writes a trace on an executor: one private, sealed file."""

    path: Path
    recipe: Recipe

    def __call__(self, frame: DataFrame, trace: Trace) -> None:
        """Write the trace of decisions that are all in one partition, in order."""
        folder = self.path.parent
        with output_error(folder):
            make_folder(folder)
        (found,) = mapped(frame, SealTrace(self.path, self.recipe, trace), WRITTEN).collect()
        require_files(folder, {self.path.name: found["bytes"]})
        for left in folder.glob(f"{_hidden(self.path)}.*"):  # of tasks that were killed
            left.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class SealTrace:
    """Writes the trace under a name of this task, then renames it: a second attempt may run at the same time."""

    path: Path
    recipe: Recipe
    trace: Trace

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        require_folder(self.path.parent)
        working, rows = self.path.with_name(f"{_hidden(self.path)}.{token_hex(8)}"), 0
        sink = make_trace_file(working, self.recipe.secret())
        sink.open(self.trace.schema)
        for batch in self.trace.batches(batches):
            sink.write(batch)
            rows += batch.num_rows
        sink.commit(0)
        sink.finish()
        sink.close()
        with output_error(self.path):
            size = working.stat().st_size
            os.replace(working, self.path)
            sync_folder(self.path.parent)
        yield pa.RecordBatch.from_pylist([{"part": 0, "rows": rows, "bytes": size}], schema=WRITTEN)


def _hidden(path: Path) -> str:
    """A hidden name; that of a file which is hidden anyway stays, so that whoever removes attempts finds it."""
    return path.name if path.name.startswith(".") else f".{path.name}"


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions as a DataFrame: one row for every record, in any order; and notes of the shards."""

    frame: DataFrame
    published: pa.Schema
    trace_of: Callable[[npt.NDArray[np.int64]], Trace]
    """The trace, given the numbers of the refused records, ascending."""
    metrics_of: Callable[[list[dict[str, Any]], dict[str, int]], dict[str, Any]]
    """Measurements of the whole stream, given the notes of the shards and the counts."""
    stored: tuple[DataFrame, ...] = ()
    """What executors store until everything is published."""
    calibration: Any = None
    """Of the flexible method: what was fixed after the first window."""

    @property
    def decided(self) -> DataFrame:
        """Without the notes."""
        return self.frame.where(f"{NOTE} is null")

    def shown(self, *, suppressed: bool) -> DataFrame:
        """What may be published, in the order of the decisions; suppressed rows too, fully generalized, if asked."""
        verdicts = (RELEASED, SUPPRESSED) if suppressed else (RELEASED,)
        chosen = self.decided.where(" or ".join(f"{VERDICT} = '{verdict}'" for verdict in verdicts))
        return range_partitioned(chosen, SORTED).select(*map(quoted, self.published.names))

    def publish(self, writer: PartWriter, write_trace: WriteTrace | None, *, suppressed: bool) -> Outcome:
        """Write what may be published, and the trace; return what was decided."""
        writer.prepare()
        written = mapped(self.shown(suppressed=suppressed), WriteParts(writer), WRITTEN).collect()
        writer.require({row["part"]: row["bytes"] for row in written})
        outcome = self.evidence(write_trace)
        for frame in self.stored:
            frame.unpersist()
        return outcome

    def evidence(self, write_trace: WriteTrace | None) -> Outcome:
        """Write the trace; return what was decided. What is shown afterwards comes from the same decisions."""
        counts = self.counts()
        dead = (
            self.decided.where(f"{VERDICT} = '{DEAD}'").select(ROW, REASON).toArrow().rename_columns(["row", "reason"])
        )
        if write_trace is not None:
            in_order = self.decided.repartition(1).sortWithinPartitions(*SORTED)
            write_trace(in_order, self.trace_of(np.sort(dead["row"].to_numpy())))
        notes = [orjson.loads(row[0]) for row in self.frame.where(f"{NOTE} is not null").select(NOTE).collect()]
        return Outcome(counts, dead if len(dead) else None, self.metrics_of(notes, counts), notes)

    def counts(self) -> dict[str, int]:
        """Records by verdict, and refused ones by reason."""
        found = {RELEASED: 0, SUPPRESSED: 0, DEAD: 0}
        for verdict, reason, count in self.decided.groupBy(VERDICT, REASON).count().collect():
            found[verdict] += count
            if reason is not None:
                found[reason] = count
        return found
