"""Which shard a tuple goes to: cuts of the quasi-identifiers, learnt on the first rows and then fixed.

Similar tuples go to the same shard, because a shard clusters only its own. A shard needs enough people within the
deadline: a cut that would leave fewer is not made, so the rows stay with their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.methods.release import NO_REASON
from shoal.methods.tuples.decider.lane_assignment import LaneAssignment
from shoal.methods.tuples.reader import TupleReader
from shoal.spark.recipe import Recipe

LEARNING_ROWS: Final = 3_000
"""Cuts are learnt on this many rows at the beginning of the stream."""
ROWS_OF_A_SHARD: Final = 2
"""A shard needs at least this many times k rows within the deadline."""

Ints = npt.NDArray[np.int64]
Cuts = tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Read:
    """What is known of a batch of tuples before any is decided."""

    shards: Ints
    usable: npt.NDArray[np.bool_]
    times: Ints
    persons: Ints
    """128-bit keyed hashes."""


class TupleSorter:
    """Reads tuples and says which shard each goes to."""

    def __init__(self, recipe: Recipe, cuts: Cuts = ()) -> None:
        settings = recipe.settings()
        self._settings = settings
        self._reader = TupleReader(settings, recipe.secret())
        self._cuts = LaneAssignment(self._reader.shape)
        self._cuts.load(np.array(cuts, dtype=np.float64).reshape(len(cuts), 4))

    @property
    def cuts(self) -> Cuts:
        """The cuts as numbers."""
        return tuple(tuple(cut) for cut in self._cuts.dump().tolist())

    @property
    def shards(self) -> int:
        """Number of shards."""
        return self._cuts.lanes

    def read(self, batch: pa.RecordBatch, rows: Ints) -> Read:
        """Read a batch; `rows` are the records' numbers in the stream."""
        chunk = self._reader.columns.chunk(batch.select(self._settings.schema.columns))
        refused = [chunk.read(part) for part in range(chunk.parts)]
        reasons, times = self._reader.columns.reasons(chunk, refused)
        values = np.where(reasons == NO_REASON, chunk.values, np.nan)
        return Read(self._cuts.lanes_of(values, rows), reasons == NO_REASON, times, chunk.persons)

    def learn(self, first: pa.RecordBatch, shards: int) -> None:
        """Choose cuts by the first rows of the stream, for at most this many shards."""
        chunk = self._reader.columns.chunk(first.select(self._settings.schema.columns))
        refused = [chunk.read(part) for part in range(chunk.parts)]
        reasons, times = self._reader.columns.reasons(chunk, refused)
        usable = reasons == NO_REASON
        values, rows = chunk.values[:, usable], np.flatnonzero(usable)
        within = self._rows_within_deadline(times[usable])
        for count in range(min(shards, max(len(rows), 1)), 0, -1):
            self._cuts.choose(values, rows, count)
            found = np.bincount(self._cuts.lanes_of(values, rows), minlength=count)
            if count == 1 or found.min() / len(rows) * within >= ROWS_OF_A_SHARD * self._settings.k:
                return

    def _rows_within_deadline(self, times: Ints) -> float:
        """Rows that arrive within the deadline, by the rate of the first rows."""
        if not self._settings.is_timed:
            return float(self._settings.deadline)
        span = int(times.max() - times.min()) if len(times) else 0
        return float("inf") if span <= 0 else len(times) * int(self._settings.deadline) / span
