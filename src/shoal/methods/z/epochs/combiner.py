"""Combinations: rows wait to the end of their epoch, until k people share each set of values that is published.

z decides about a row at the row's own time; this comes after. Rows that pass z wait. When time has passed the end of
their epoch, values are removed from people's sets (see shared_sets.py) and the rest is published, in order. A flush
decides about the running epoch as it stands: later rows of that epoch still count for others but are never published,
because they would change sets that were published already.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.methods.arrow_input import as_bytes
from shoal.methods.release import NO_REASON
from shoal.methods.text_keys import Bools, Ints
from shoal.methods.z.admission import Clock
from shoal.methods.z.crowds.crowd import Levels
from shoal.methods.z.epochs.shared_sets import shared_by
from shoal.methods.z.judge import Judged
from shoal.methods.z.settings import ZSettings
from shoal.methods.z.trace import Decisions

_NEVER: Final = np.iinfo(np.int64).max
"""The end of an epoch that no time reaches."""


@dataclass(frozen=True, slots=True)
class Passed:
    """Rows that passed z, by (time, arrival): as they would be published, and the level of each value."""

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


class EpochRows:
    """The rows that wait, of the running epoch and, within a call, of those that end in it."""

    def __init__(self, rotation_ns: int, columns: int) -> None:
        self.schema = pa.schema([])
        """Types of the rows; set before the first one."""
        self._rotation_ns = rotation_ns
        self._columns = columns
        self._reset()

    def _reset(self) -> None:
        self._chunks: list[Passed] = []
        self._singles: list[tuple[int, int, list[int], dict[str, Any]]] = []
        self.closed_until = -_NEVER
        """Rows before this time belong to an epoch that was decided already."""

    def __len__(self) -> int:
        return sum(map(len, self._chunks)) + len(self._singles)

    def add(self, rows: Passed) -> None:
        """Let rows wait; they come after all waiting rows."""
        self._gather()
        if len(rows):
            self._chunks.append(rows)

    def add_one(self, seq: int, time: int, levels: list[int], row: dict[str, Any]) -> None:
        """Let a single row wait."""
        self._singles.append((seq, time, levels, row))

    def _gather(self) -> None:
        if self._singles:
            seqs, times, levels, rows = zip(*self._singles, strict=True)
            batch = pa.RecordBatch.from_pylist(list(rows), schema=self.schema)
            self._singles = []
            self._chunks.append(
                Passed(np.array(seqs, np.int64), np.array(times, np.int64), np.array(levels, np.int32), batch)
            )

    def end_of(self, time: int) -> int:
        """When the epoch of a time is over."""
        return min((time // self._rotation_ns + 1) * self._rotation_ns, _NEVER)

    def _oldest(self) -> int | None:
        if self._chunks:
            return int(self._chunks[0].times[0])
        return self._singles[0][1] if self._singles else None

    def take_ended(self, limit: int, *, everything: bool = False) -> list[Passed]:
        """Hand out and close the epochs that are over at a time, or all epochs, one after another."""
        oldest = self._oldest()
        if oldest is None or not (everything or self.end_of(oldest) <= limit):
            return []
        rows = self.dump()
        self._chunks = []
        ended = []
        start = 0
        while start < len(rows) and (everything or self.end_of(int(rows.times[start])) <= limit):
            end = self.end_of(int(rows.times[start]))
            stop = int(np.searchsorted(rows.times, end))
            ended.append(rows.between(start, stop))
            self.closed_until = max(self.closed_until, end)
            start = stop
        self.add(rows.between(start, len(rows)))
        return ended

    def forget(self) -> Passed:
        """Hand out all waiting rows and start over: no epoch is closed any more."""
        rows = self.dump()
        self._reset()
        return rows

    def dump(self) -> Passed:
        """All waiting rows."""
        self._gather()
        parts, nothing = self._chunks, np.empty(0, dtype=np.int64)
        batch = pa.concat_batches([pa.RecordBatch.from_pylist([], schema=self.schema), *(part.batch for part in parts)])
        rows = Passed(
            np.concatenate([nothing, *(part.seqs for part in parts)]),
            np.concatenate([nothing, *(part.times for part in parts)]),
            np.concatenate([np.empty((0, self._columns), dtype=np.int32), *(part.levels for part in parts)]),
            batch.take(pa.array(np.arange(batch.num_rows))),  # laid out the same, whatever it was joined from
        )
        self._chunks = [rows] if len(rows) else []
        return rows


class Combiner:
    """Lets rows that passed z wait for the end of their epoch, and removes values that too few people share."""

    def __init__(self, settings: ZSettings, k: int, *, keeps_blank: bool) -> None:
        self._person, self._names = settings.person, [column.name for column in settings.attributes]
        self._lateness_ns, self._rotation_ns = settings.lateness_ns, settings.rotation_ns
        self._k, self._keeps_blank = k, keeps_blank
        self.epochs = EpochRows(settings.rotation_ns, len(self._names))

    def waits(self, judged: Judged) -> Bools:
        """Which rows wait: those that passed z, unless their epoch was decided already."""
        waits: Bools = judged.passed & (judged.arrivals.times >= self.epochs.closed_until)
        return waits

    def keep(self, judged: Judged, waits: Bools, rows: pa.RecordBatch) -> None:
        """Keep the rows that wait, as they would be published."""
        arrivals, levels = judged.arrivals, np.stack([level[waits] for level in judged.levels], axis=1)
        self.epochs.add(Passed(arrivals.seqs[waits], arrivals.times[waits], levels, rows))

    def keep_one(self, seq: int, time: int, levels: list[int], row: dict[str, Any]) -> bool:
        """Keep one row; return False where its epoch was decided already."""
        if time < self.epochs.closed_until:
            return False
        self.epochs.add_one(seq, time, levels, row)
        return True

    def close_ended(self, clock: Clock) -> list[tuple[pa.RecordBatch, Decisions]]:
        """Close the epochs that have ended in a call, one after another: what is published of each, and decisions."""
        passed, closed = clock.newest - self._lateness_ns, []
        for ended in self.epochs.take_ended(int(passed[-1]), everything=clock.is_end):
            turn = int(np.searchsorted(passed[:-1], self.epochs.end_of(int(ended.times[0]))))
            closed.append(self.close(ended, int(clock.numbers[turn]), int(clock.newest[turn])))
        return closed

    def joined(
        self, decided: Decisions, closed: list[tuple[pa.RecordBatch, Decisions]]
    ) -> tuple[pa.RecordBatch, Decisions]:
        """All rows and decisions of a call, in the order in which single pushes would make them.

        `decided` are the decisions on rows that did not wait.
        """
        nothing = pa.RecordBatch.from_pylist([], schema=self.epochs.schema)
        decisions = Decisions.joined([decided, *(decisions for _, decisions in closed)])
        # within one epoch, what was decided at once stays before what waited for its end: the sort is stable
        order = np.lexsort((decisions.times // self._rotation_ns, decisions.turns))
        return pa.concat_batches([nothing, *(rows for rows, _ in closed)]), decisions.arranged(order)

    def close(self, ended: Passed, turn: int, newest: int) -> tuple[pa.RecordBatch, Decisions]:
        """Remove values from people's sets until k people share each; decide about all rows of the epoch."""
        keep = _cells_to_keep(ended.batch, self._person, self._names, self._k)
        released: Bools = np.ones(len(ended), np.bool_) if self._keeps_blank else np.logical_or.reduce(keep)
        reasons = np.full(len(ended), NO_REASON, dtype=np.int8)
        decisions = Decisions(
            ended.seqs, ended.times, np.full(len(ended), turn), released, reasons,
            np.maximum(newest - ended.times, 0), np.column_stack((ended.times // self._rotation_ns, ended.levels)),
        )  # fmt: skip
        return without_cells(ended.batch, self._names, keep, np.flatnonzero(released)), decisions

    # ---- state

    def dump(self) -> dict[str, Any]:
        """Everything, as arrays."""
        waiting = self.epochs.dump()
        return {
            "epoch.closed": np.array([self.epochs.closed_until]),
            "epoch.rows": as_bytes(waiting.batch.serialize()),
            "epoch.seqs": waiting.seqs,
            "epoch.times": waiting.times,
            "epoch.levels": waiting.levels.astype(np.int64),
        }

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Take over what dump returned."""
        rows = pa.ipc.read_record_batch(pa.py_buffer(arrays["epoch.rows"]), self.epochs.schema)
        levels = arrays["epoch.levels"].reshape(-1, len(self._names)).astype(np.int32)
        self.epochs.add(Passed(arrays["epoch.seqs"], arrays["epoch.times"], levels, rows))
        self.epochs.closed_until = int(arrays["epoch.closed"][0])


def _cells_to_keep(batch: pa.RecordBatch, person: str, attributes: list[str], k: int) -> list[Bools]:
    """Which values of each column may be published, so that at least k people share every set a person shows."""
    people = numbers_of(batch.column(person))
    found = [numbers_of(batch.column(name)) for name in attributes]
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


def numbers_of(column: pa.Array) -> Ints:
    """Codes of a column's values, in order of first appearance; -1 for null."""
    if pa.types.is_null(column.type):
        return np.full(len(column), -1, np.int64)
    codes = pc.fill_null(column.dictionary_encode().indices, -1)
    return np.asarray(codes.to_numpy(zero_copy_only=False), np.int64)


def without_cells(batch: pa.RecordBatch, attributes: list[str], keep: list[Bools], rows: Ints) -> pa.RecordBatch:
    """Some rows, with the values to remove set to null and their bytes cleared."""
    kept = batch.take(pa.array(rows))
    for name, cells in zip(attributes, keep, strict=True):
        at = batch.schema.get_field_index(name)
        column = batch.column(at).take(pa.array(rows, mask=~cells[rows]))
        kept = kept.set_column(at, batch.schema.field(at), column)
    return kept
