"""The trace and the metrics of a tuple stream that was decided in shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.methods.release import RELEASED, SUPPRESSED
from shoal.spark.records.columns import DECIDED, DELAY, DETAILS, GROUP, REASON, REUSED, ROW, VERDICT


@dataclass(frozen=True, slots=True)
class TupleTrace:
    """Turns decisions about tuples into the trace that one machine would write.

    Where deadlines count arrivals, shards counted all rows; the trace counts those that are not refused. Where they are
    durations, the trace does not say which record made a row due: only the clock of the whole stream knows.
    """

    k: int
    is_timed: bool
    dead: npt.NDArray[np.int64]
    """Numbers of the refused rows, ascending."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of the trace."""
        fields = [
            ("row", pa.int64()), ("verdict", pa.string()), ("reason", pa.string()), ("group", pa.int64()),
            ("delay", pa.int64()), ("k", pa.int64()), ("reused", pa.bool_()), ("carriers", pa.list_(pa.int32())),
        ]  # fmt: skip
        return pa.schema(fields if self.is_timed else [*fields, ("event", pa.int64())])

    def batches(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The trace of decisions, batch by batch."""
        for batch in batches:
            rows, decided = np.asarray(batch.column(ROW)), np.asarray(batch.column(DECIDED))
            delay = batch.column(DELAY)
            if not self.is_timed:
                delay = pa.array(self._usable(decided) - self._usable(rows))
            columns = [
                batch.column(ROW), batch.column(VERDICT), batch.column(REASON), batch.column(GROUP), delay,
                pa.repeat(pa.scalar(self.k, pa.int64()), len(rows)), batch.column(REUSED), batch.column(DETAILS),
            ]  # fmt: skip
            yield pa.RecordBatch.from_arrays(
                [column.cast(field.type) for column, field in zip(
                    columns if self.is_timed else [*columns, pa.array(decided)], self.schema, strict=True)],
                schema=self.schema,
            )  # fmt: skip

    def _usable(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Usable rows up to these, these included."""
        return rows + 1 - np.searchsorted(self.dead, rows, side="right")


@dataclass(frozen=True, slots=True)
class DecidedAgain:
    """Rows that their shards suppressed, and that one more shard decided again: only the second decision counts."""

    rows: int = 0
    delay: int = 0
    """How long they were pending in the first shards, in sum: nanoseconds, or arrivals."""


def tuple_metrics(
    notes: list[dict[str, Any]],
    counts: dict[str, int],
    *,
    shards: int,
    is_timed: bool,
    again: DecidedAgain = DecidedAgain(),  # noqa: B008 - it never changes
    is_stream: bool = False,
) -> dict[str, Any]:
    """The metrics of the union of all shards; what they suppress before the end is decided again only in a batch."""
    unit = 1 if is_timed else 10**9  # shards count arrivals as nanoseconds
    decided = max(counts[RELEASED] + counts[SUPPRESSED], 1)
    sums = {name: sum(note["sums"][name] for note in notes) for name in ("loss", "loss_all", "delay")}
    return {
        "loss": (sums["loss"] - again.rows) / decided,  # they had lost everything the first time
        "loss_all": (sums["loss_all"] - again.rows) / decided,
        "delay": (sums["delay"] - again.delay / 10**9) * unit / decided,
        "max_delay": max((round(note["max_delay"] * unit, 9) for note in notes), default=0),
        **{name: sum(note[name] for note in notes) for name in ("formed", "merged", "reused", "filled")},
        "rare_patterns": sum(note["rare_patterns"] for note in notes if note["again"] or is_stream),
        "suppressed": counts[SUPPRESSED],
        "clamped": sum(note["clamped"] for note in notes if not note["again"]),
        "shards": shards,
    }
