"""Rows that z lets pass and that wait for the end of their epoch, and what is left of them then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.methods.text_keys import Bools, Ints
from shoal.methods.z.columns import Levels
from shoal.methods.z.sets import shared_by

NEVER: Final = np.iinfo(np.int64).max
"""The end of an epoch that no time reaches."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Rows that z let pass, by (time, arrival): as they would leave, and at which level each value passed."""

    seqs: Ints
    times: Ints
    levels: Levels
    batch: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.seqs)

    def between(self, start: int, stop: int) -> Passed:
        """A run of rows."""
        rows = slice(start, stop)
        return Passed(self.seqs[rows], self.times[rows], self.levels[rows], self.batch.slice(start, stop - start))


def _joined(parts: list[Passed], columns: int, schema: pa.Schema) -> Passed:
    nothing = np.empty(0, dtype=np.int64)
    return Passed(
        np.concatenate([nothing, *(part.seqs for part in parts)]),
        np.concatenate([nothing, *(part.times for part in parts)]),
        np.concatenate([np.empty((0, columns), dtype=np.int32), *(part.levels for part in parts)]),
        pa.concat_batches([pa.RecordBatch.from_pylist([], schema=schema), *(part.batch for part in parts)]),
    )


class EpochRows:
    """The rows that wait, of the running epoch and, within a call, of those that end in it."""

    def __init__(self, rotation_ns: int, columns: int) -> None:
        self._rotation_ns = rotation_ns
        self._columns = columns
        self._chunks: list[Passed] = []
        self._singles: list[tuple[int, int, list[int], dict[str, Any]]] = []
        self.closed_until = -NEVER
        """Rows before this time belong to an epoch that was decided already."""

    def __len__(self) -> int:
        return sum(map(len, self._chunks)) + len(self._singles)

    def add(self, rows: Passed, schema: pa.Schema) -> None:
        """Let rows wait; none is before those that wait already."""
        self._gather(schema)
        if len(rows):
            self._chunks.append(rows)

    def add_one(self, seq: int, time: int, levels: list[int], row: dict[str, Any]) -> None:
        """Let a single row wait."""
        self._singles.append((seq, time, levels, row))

    def _gather(self, schema: pa.Schema) -> None:
        if self._singles:
            seqs, times, levels, rows = zip(*self._singles, strict=True)
            batch = pa.RecordBatch.from_pylist(list(rows), schema=schema)
            self._singles = []
            self._chunks.append(
                Passed(np.array(seqs, np.int64), np.array(times, np.int64), np.array(levels, np.int32), batch)
            )

    def end_of(self, time: int) -> int:
        """When the epoch of a time is over."""
        return min((time // self._rotation_ns + 1) * self._rotation_ns, NEVER)

    def _oldest(self) -> int | None:
        if self._chunks:
            return int(self._chunks[0].times[0])
        return self._singles[0][1] if self._singles else None

    def take_ended(self, limit: int, schema: pa.Schema, *, everything: bool = False) -> list[Passed]:
        """Hand out the epochs that are over at a time, or all there are, one after another; they are closed then."""
        oldest = self._oldest()
        if oldest is None or not (everything or self.end_of(oldest) <= limit):
            return []
        rows = self.dump(schema)
        self._chunks = []
        ended = []
        start = 0
        while start < len(rows) and (everything or self.end_of(int(rows.times[start])) <= limit):
            end = self.end_of(int(rows.times[start]))
            stop = int(np.searchsorted(rows.times, end))
            ended.append(rows.between(start, stop))
            self.closed_until = max(self.closed_until, end)
            start = stop
        self.add(rows.between(start, len(rows)), schema)
        return ended

    def forget(self, schema: pa.Schema) -> Passed:
        """Hand out all that waits and start anew: no epoch is closed any more."""
        rows = self.dump(schema)
        self.__init__(self._rotation_ns, self._columns)  # type: ignore[misc]
        return rows

    def dump(self, schema: pa.Schema) -> Passed:
        """All that waits."""
        self._gather(schema)
        rows = _joined(self._chunks, self._columns, schema)
        whole = rows.batch.take(pa.array(np.arange(len(rows))))  # laid out the same, whatever it was joined from
        self._chunks = [Passed(rows.seqs, rows.times, rows.levels, whole)] if len(rows) else []
        return Passed(rows.seqs, rows.times, rows.levels, whole)


def cells_to_keep(batch: pa.RecordBatch, person: str, attributes: list[str], k: int) -> list[Bools]:
    """Which values of each column may leave, so that every set a person shows is that of at least k people."""
    people = _numbers(batch.column(person))
    found = [_numbers(batch.column(name)) for name in attributes]
    firsts = np.cumsum([0, *(int(codes.max(initial=-1)) + 1 for codes in found)])
    items = [np.where(codes >= 0, codes + first, -1) for codes, first in zip(found, firsts, strict=False)]
    kinds = max(int(firsts[-1]), 1)
    cells = np.concatenate(items)
    there = cells >= 0
    pairs = (np.tile(people, len(items)) * kinds + cells)[there]
    entries, places, weights = np.unique(pairs, return_inverse=True, return_counts=True)
    keep = np.zeros(len(cells), np.bool_)
    keep[there] = shared_by(k, entries // kinds, entries % kinds, weights.astype(np.int64))[places]
    return np.split(keep, len(items))


def _numbers(column: pa.Array) -> Ints:
    """The values of a column numbered as they first come; -1 for none."""
    if pa.types.is_null(column.type):
        return np.full(len(column), -1, np.int64)
    codes = pc.fill_null(column.dictionary_encode().indices, -1)
    return np.asarray(codes.to_numpy(zero_copy_only=False), np.int64)


def without_cells(batch: pa.RecordBatch, attributes: list[str], keep: list[Bools], rows: Ints) -> pa.RecordBatch:
    """Some rows, with the values that may not leave blanked: not even hidden under a null are they there."""
    kept = batch.take(pa.array(rows))
    for name, cells in zip(attributes, keep, strict=True):
        at = batch.schema.get_field_index(name)
        mask: npt.NDArray[np.bool_] = ~cells[rows]
        column = batch.column(at).take(pa.array(rows, mask=mask))
        kept = kept.set_column(at, batch.schema.field(at), column)
    return kept
