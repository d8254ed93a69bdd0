"""Which shard a tuple goes to: cuts of the quasi-identifiers, learnt on the first rows, and again after a drift.

Similar tuples go to the same shard, because a shard clusters only its own. A shard needs enough people within the
deadline: a cut that would leave fewer is not made, so the rows stay with their neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.methods.release import NO_REASON
from shoal.methods.tuples.decider.lane_assignment import CutSearch, LaneAssignment
from shoal.methods.tuples.reader import TupleReader
from shoal.spark.recipe import Recipe

LEARNING_ROWS: Final = 3_000
"""Cuts are learnt on this many rows at the beginning of the stream."""
ROWS_OF_A_SHARD: Final = 2
"""A shard needs at least this many times k rows within the deadline."""

_THOROUGH: Final = CutSearch(tuples=LEARNING_ROWS, pairs=4_000, quantiles=9)
"""Cuts are learnt rarely, and what they cost in loss stays."""

UNEVEN: Final = 4
"""Cuts are learnt again when a shard gets more than this many times its share of the rows, or less than 1/UNEVEN."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Cuts = tuple[tuple[float, ...], ...]


class CutsFrom(NamedTuple):
    """Cuts, and the number of the first row that they hold for."""

    first: int
    cuts: Cuts

    @property
    def shards(self) -> int:
        """Number of shards."""
        return len(self.cuts) + 1


@dataclass(frozen=True, slots=True)
class Read:
    """What is known of a batch of tuples before any is decided."""

    shards: Ints
    usable: npt.NDArray[np.bool_]
    times: Ints
    persons: Ints
    """128-bit keyed hashes."""


class TupleSharder:
    """Reads tuples and says which shard each goes to."""

    def __init__(self, recipe: Recipe, all_cuts: Iterable[CutsFrom] = ()) -> None:
        settings = recipe.settings()
        self._settings = settings
        self._reader = TupleReader(settings, recipe.secret())
        self._all_cuts: list[tuple[int, LaneAssignment]] = []
        for each in all_cuts or [CutsFrom(0, ())]:
            made = self._no_cuts()
            made.load(np.array(each.cuts, dtype=np.float64).reshape(len(each.cuts), 4))
            self._all_cuts.append((each.first, made))

    @property
    def all_cuts(self) -> tuple[CutsFrom, ...]:
        """All cuts as numbers."""
        return tuple(
            CutsFrom(first, tuple(tuple(cut) for cut in made.dump().tolist())) for first, made in self._all_cuts
        )

    def read(self, batch: pa.RecordBatch, rows: Ints) -> Read:
        """Read a batch; `rows` are the records' numbers in the stream."""
        values, usable, times, persons = self._opened(batch)
        values = np.where(usable, values, np.nan)
        shards = np.empty(len(rows), dtype=np.int64)
        of = np.maximum(np.searchsorted([first for first, _ in self._all_cuts], rows, side="right") - 1, 0)
        for place in np.unique(of):
            own = of == place
            shards[own] = self._all_cuts[place][1].lanes_of(values[:, own], rows[own])
        return Read(shards, usable, times, persons)

    def learn(self, sample: pa.RecordBatch, shards: int, *, first: int = 0) -> None:
        """Choose cuts by these rows, for at most this many shards; they hold from the row `first` on."""
        values, usable, times, _ = self._opened(sample)
        values, rows = values[:, usable], np.flatnonzero(usable)
        within, made = self._rows_within_deadline(times[usable]), self._no_cuts()
        made.choose(values, rows, min(shards, max(len(rows), 1)))
        while made.lanes > 1:
            found = np.bincount(made.lanes_of(values, rows), minlength=made.lanes)
            if found.min() / len(rows) * within >= ROWS_OF_A_SHARD * self._settings.k:
                break
            made.load(made.dump()[:-1])  # cuts for fewer shards are the first of those for more
        self._all_cuts = [each for each in self._all_cuts if each[0] < first] + [(first, made)]

    def has_drifted(self, sample: pa.RecordBatch, rows: Ints) -> bool:
        """Whether the last cuts divide these rows unevenly."""
        values, usable, _, _ = self._opened(sample)
        _, made = self._all_cuts[-1]
        return is_uneven(np.bincount(made.lanes_of(values[:, usable], rows[usable]), minlength=made.lanes))

    def _no_cuts(self) -> LaneAssignment:
        return LaneAssignment(self._reader.shape, search=_THOROUGH)

    def _opened(self, batch: pa.RecordBatch) -> tuple[Floats, npt.NDArray[np.bool_], Ints, Ints]:
        """Values of the quasi-identifiers, which rows are usable, their times and the hashes of their people."""
        chunk = self._reader.columns.chunk(batch.select(self._settings.schema.columns))
        refused = [chunk.read(part) for part in range(chunk.parts)]
        reasons, times = self._reader.columns.reasons(chunk, refused)
        return chunk.values, reasons == NO_REASON, times, chunk.persons

    def _rows_within_deadline(self, times: Ints) -> float:
        """Rows that arrive within the deadline, by the rate of the first rows; wrong clocks do not count.

        The tenth of the rows with the earliest times is left out, and the tenth with the latest.
        """
        if not self._settings.is_timed:
            return float(self._settings.deadline)
        aside = len(times) // 10
        middle = np.sort(times)[aside : len(times) - aside]
        span = int(middle[-1] - middle[0]) if len(middle) else 0
        return float("inf") if span <= 0 else len(middle) * int(self._settings.deadline) / span


def is_uneven(found: Ints) -> bool:
    """Whether a shard has far more or far less than its share of the rows."""
    total = int(found.sum())
    return bool(found.max() * len(found) > UNEVEN * total or found.min() * len(found) * UNEVEN < total)
