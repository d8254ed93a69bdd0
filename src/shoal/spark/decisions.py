"""What was decided about all records, as a DataFrame: rows to publish, the private trace, refused records, counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from shoal.methods.base import DEAD, RELEASED, SUPPRESSED
from shoal.spark.columns import DECIDED, NOTE, ORDER, REASON, ROW, SHARD, VERDICT
from shoal.spark.frames import quoted
from shoal.spark.rows import NumberedRows

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
class Decisions:
    """Decisions about every record of a stream, one row each, in any order; and notes of the shards."""

    frame: DataFrame
    published: pa.Schema
    shards: int
    rows: NumberedRows
    trace_of: Callable[[npt.NDArray[np.int64]], Trace]
    """The trace, given the numbers of the refused records, ascending."""
    metrics_of: Callable[[list[dict[str, Any]], dict[str, int]], dict[str, Any]]
    """Measurements of the whole stream, given the notes of the shards and the counts."""

    @property
    def decided(self) -> DataFrame:
        """Without the notes."""
        return self.frame.where(f"{NOTE} is null")

    def shown(self, *, suppressed: bool) -> DataFrame:
        """What may be published, in the order of the decisions; suppressed rows too, fully generalized, if asked."""
        verdicts = (RELEASED, SUPPRESSED) if suppressed else (RELEASED,)
        chosen = self.decided.where(" or ".join(f"{VERDICT} = '{verdict}'" for verdict in verdicts))
        return chosen.orderBy(*SORTED).select(*map(quoted, self.published.names))

    @property
    def in_one_partition(self) -> DataFrame:
        """What the trace is made of, in the order of the decisions."""
        return self.decided.repartition(1).sortWithinPartitions(*SORTED)

    @property
    def dead(self) -> DataFrame:
        """Records that are refused: their numbers and reasons."""
        return self.decided.where(f"{VERDICT} = '{DEAD}'").select(ROW, REASON)

    def dead_rows(self) -> npt.NDArray[np.int64]:
        """Numbers of the refused records, ascending."""
        return np.sort(np.array([row[0] for row in self.dead.select(ROW).collect()], dtype=np.int64))

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
