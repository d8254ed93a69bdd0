"""combine and target on Spark: the rows of an epoch meet in one task, which decides as one machine does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa

from shoal.methods.release import IS_DEAD, IS_RELEASED, IS_SUPPRESSED, NO_REASON
from shoal.methods.z.epochs.closing import FORGOTTEN, ClosedEpoch
from shoal.methods.z.epochs.values import joined_traces, joined_values
from shoal.methods.z.trace import Decisions
from shoal.models.z.target.target import NOTHING
from shoal.spark.recipe import Recipe
from shoal.spark.records.blocks import unpacked
from shoal.spark.z.epochs.value_shard import EPOCH, ROWS, STRETCH, TRACE
from shoal.spark.z.output_ranges import LEVEL, NOTE, Pieces, Ranges, Z

_OUTCOME: Final = "outcome"


@dataclass(frozen=True, slots=True)
class CloseEpochs:
    """Closes epochs on an executor, one after another; the messages of each come together."""

    recipe: Recipe
    types: pa.Schema
    admission: Any
    """Broadcast: what admission found out."""
    end: int
    """The number after the last record's."""
    ranges: Ranges
    z: Mapping[tuple[int, int], int] | None = None
    """With a target: the z of every epoch, by stretch and epoch."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        method: Any = self.recipe.make()
        method.bind(self.types)
        pieces = Pieces(self.ranges, waits=True)
        messages = (batch.slice(at, 1) for batch in batches for at in range(batch.num_rows))
        for place, own in groupby(messages, key=_place):
            parts = list(own)
            for text in (note for part in parts for note in part.column(NOTE).drop_null().to_pylist()):
                yield pieces.note(text)
            traces, rows = batches_in(parts, TRACE), batches_in(parts, ROWS)
            if traces and rows:
                yield from self._closed(method, place, joined_values(traces, rows, attributes_of(method)), pieces)
            elif traces:  # the epoch is not over: its rows wait with their shards
                nothing = pa.RecordBatch.from_pylist([], schema=method.output_schema)
                yield from self._closed(method, place, (joined_traces(traces, attributes_of(method)), nothing), pieces)

    def _closed(
        self, method: Any, place: tuple[int, int], found: tuple[Decisions, pa.RecordBatch], pieces: Pieces
    ) -> Iterator[pa.RecordBatch]:
        if self.z is None:
            closed = method.close_epoch(*found, self.admission.value.clock, last=self.end)
        else:  # an epoch of which time started over before anything was judged has no z
            closed, shown, anonymous = method.follow_epoch(*found, self.z.get(place, NOTHING))
            yield pieces.note(orjson.dumps({_OUTCOME: [*place, shown, anonymous]}).decode())
        yield from pieces_of(closed, method, pieces)


def pieces_of(closed: ClosedEpoch, method: Any, pieces: Pieces) -> Iterator[pa.RecordBatch]:
    """Decisions about the rows of an epoch, and what is published of them, for ranges of the output."""
    if len(closed.decisions.rows):
        yield from pieces.packed(_columns_of(closed, method.settings), closed.decisions.turns, closed.rows)


def batches_in(messages: Iterable[pa.RecordBatch], name: str) -> list[pa.RecordBatch]:
    """The batches that messages have in a column."""
    return [unpacked(message.column(name)[0]) for message in messages if message.column(name)[0].is_valid]


def split_notes(notes: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[tuple[int, int], tuple[int, int]]]:
    """The notes of shards; and how many people each epoch shows, and how many are k-anonymous."""
    of_shards, shown = [], {}
    for note in notes:
        if _OUTCOME in note:
            stretch, epoch, *counts = note[_OUTCOME]
            shown[stretch, epoch] = tuple(counts)
        else:
            of_shards.append(note)
    return of_shards, shown


def attributes_of(method: Any) -> list[str]:
    """The names of the attributes."""
    return [column.name for column in method.settings.attributes]


def _place(message: pa.RecordBatch) -> tuple[Any, Any]:
    return message.column(STRETCH)[0].as_py(), message.column(EPOCH)[0].as_py()


def _columns_of(closed: ClosedEpoch, settings: Any) -> pa.RecordBatch:
    """Decisions as pieces carry them; `epoch` and `closed` are for their order."""
    found = closed.decisions
    is_dead = found.reasons != NO_REASON
    verdicts = np.where(found.released, IS_RELEASED, IS_SUPPRESSED).astype(np.int8)
    verdicts[is_dead] = IS_DEAD
    if settings.k is None:
        details = {Z: found.details[:, 0]}
        order = np.where(is_dead, FORGOTTEN, 0)
    else:
        group, *levels = found.details.T
        details = {"group": group, **{f"{LEVEL}{at}": level for at, level in enumerate(levels)}}
        order = np.where(is_dead, FORGOTTEN, found.times // settings.rotation_ns)
    columns = {
        "row": found.rows, "verdict": verdicts, "reason": found.reasons, "delay": found.delays, "turn": found.turns,
        "time": found.times, "epoch": order, "closed": closed.is_closed.astype(np.int8), **details,
    }  # fmt: skip
    return pa.RecordBatch.from_arrays([pa.array(column) for column in columns.values()], names=list(columns))
