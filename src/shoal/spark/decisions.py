"""What was decided about all records, as a DataFrame: rows to publish, the private trace, refused records, counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from shoal.methods.base import DEAD, RELEASED, SUPPRESSED
from shoal.spark.columns import CARRIERS, DECIDED, DELAY, GROUP, NOTE, ORDER, REASON, REUSED, ROW, SHARD, VERDICT
from shoal.spark.frames import quoted
from shoal.spark.rows import NumberedRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SORTED: Final = (DECIDED, SHARD, ORDER)


@dataclass(frozen=True, slots=True)
class Decisions:
    """Decisions about every record of a stream, one row each, in any order; and notes of the shards."""

    frame: DataFrame
    published: pa.Schema
    shards: int
    rows: NumberedRows
    is_timed: bool

    @property
    def decided(self) -> DataFrame:
        """Without the notes."""
        return self.frame.where(f"{NOTE} is null")

    def shown(self, *, suppressed: bool) -> DataFrame:
        """What may be published, in the order of the decisions; suppressed rows too, fully generalized, if asked."""
        verdicts = (RELEASED, SUPPRESSED) if suppressed else (RELEASED,)
        chosen = self.decided.where(" or ".join(f"{VERDICT} = '{verdict}'" for verdict in verdicts))
        return chosen.orderBy(*_SORTED).select(*map(quoted, self.published.names))

    @property
    def trace(self) -> DataFrame:
        """What the trace is made of, in one partition, in the order of the decisions."""
        return self.decided.repartition(1).sortWithinPartitions(*_SORTED)

    @property
    def dead(self) -> DataFrame:
        """Records that are refused: their numbers and reasons."""
        return self.decided.where(f"{VERDICT} = '{DEAD}'").select(ROW, REASON)

    def counts(self) -> dict[str, int]:
        """Records by verdict, and refused ones by reason."""
        found = {RELEASED: 0, SUPPRESSED: 0, DEAD: 0}
        for verdict, reason, count in self.decided.groupBy(VERDICT, REASON).count().collect():
            found[verdict] += count
            if reason is not None:
                found[reason] = count
        return found

    def notes(self) -> list[dict[str, Any]]:
        """What the shards noted."""
        return [orjson.loads(row[0]) for row in self.frame.where(f"{NOTE} is not null").select(NOTE).collect()]


@dataclass(frozen=True, slots=True)
class TraceOf:
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
                pa.repeat(pa.scalar(self.k, pa.int64()), len(rows)), batch.column(REUSED), batch.column(CARRIERS),
            ]  # fmt: skip
            yield pa.RecordBatch.from_arrays(
                [column.cast(field.type) for column, field in zip(
                    columns if self.is_timed else [*columns, pa.array(decided)], self.schema, strict=True)],
                schema=self.schema,
            )  # fmt: skip

    def _usable(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Usable rows up to these, these included."""
        return rows + 1 - np.searchsorted(self.dead, rows, side="right")
