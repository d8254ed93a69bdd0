"""combine on Spark: the rows of an epoch from all shards meet in one task, which removes values as one machine does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.methods.release import IS_DEAD, IS_RELEASED, IS_SUPPRESSED, NO_REASON
from shoal.methods.z.epochs.closing import FORGOTTEN, ClosedEpoch
from shoal.methods.z.epochs.values import joined_values
from shoal.spark.blocks import unpacked
from shoal.spark.recipe import Recipe
from shoal.spark.z.pieces import LEVEL, NOTE, Pieces, Ranges
from shoal.spark.z.values import EPOCH, ROWS, STRETCH, TRACE


@dataclass(frozen=True, slots=True)
class CombineEpochs:
    """Closes epochs on an executor, one after another; the messages of each come together."""

    recipe: Recipe
    types: pa.Schema
    admission: Any
    """Broadcast: what admission found out."""
    end: int
    """The number after the last record's."""
    ranges: Ranges

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        method: Any = self.recipe.make()
        method.bind(self.types)
        pieces = Pieces(self.ranges, waits=True)
        messages = (batch.slice(at, 1) for batch in batches for at in range(batch.num_rows))
        for _, own in groupby(messages, key=_place):
            parts = list(own)
            for text in (note for part in parts for note in part.column(NOTE).drop_null().to_pylist()):
                yield pieces.note(text)
            traces, rows = (
                [unpacked(part.column(name)[0]) for part in parts if part.column(name)[0].is_valid]
                for name in (TRACE, ROWS)
            )
            if traces:
                yield from self._closed(method, traces, rows, pieces)

    def _closed(
        self, method: Any, traces: list[pa.RecordBatch], rows: list[pa.RecordBatch], pieces: Pieces
    ) -> Iterator[pa.RecordBatch]:
        attributes = [column.name for column in method.settings.attributes]
        values, shown = joined_values(traces, rows, attributes)
        closed = method.close_epoch(values, shown, self.admission.value.clock, last=self.end)
        yield from pieces.packed(_columns_of(closed, method.settings.rotation_ns), closed.decisions.turns, closed.rows)


def _place(message: pa.RecordBatch) -> tuple[Any, Any]:
    return message.column(STRETCH)[0].as_py(), message.column(EPOCH)[0].as_py()


def _columns_of(closed: ClosedEpoch, rotation_ns: int) -> pa.RecordBatch:
    """Decisions as pieces carry them; `epoch` and `closed` are for their order."""
    found = closed.decisions
    is_dead = found.reasons != NO_REASON
    verdicts = np.where(found.released, IS_RELEASED, IS_SUPPRESSED).astype(np.int8)
    verdicts[is_dead] = IS_DEAD
    group, *levels = found.details.T
    columns = {
        "row": found.rows, "verdict": verdicts, "reason": found.reasons, "delay": found.delays, "turn": found.turns,
        "time": found.times, "epoch": np.where(is_dead, FORGOTTEN, found.times // rotation_ns),
        "closed": closed.is_closed.astype(np.int8), "group": group,
        **{f"{LEVEL}{at}": level for at, level in enumerate(levels)},
    }  # fmt: skip
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns.values()], names=list(columns))
