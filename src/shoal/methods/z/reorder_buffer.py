"""The reorder buffer: rows wait for late ones and come out ordered by (time, arrival)."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.methods.text_keys import Bools, Ints

_KEEP_WHOLE: Final = 4
"""Copy out the waiting rows of a batch once fewer than 1/N of it waits; this is N."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Rows in some order: number, time, person key and columns of each."""

    seqs: Ints
    times: Ints
    persons: Ints
    batch: pa.RecordBatch

    def __len__(self) -> int:
        return len(self.seqs)

    def pick(self, rows: Ints | Bools) -> Waiting:
        """Some of the rows, in the order asked for."""
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return Waiting(self.seqs[chosen], self.times[chosen], self.persons[chosen], self.batch.take(pa.array(chosen)))


@dataclass(frozen=True, slots=True, order=True)
class OneWaiting:
    """A single record that waits."""

    time: int
    seq: int
    key: tuple[int, int]
    record: dict[str, Any]


class ReorderBuffer:
    """Waiting batches and single records, handed out in one order."""

    def __init__(self) -> None:
        self.schema = pa.schema([])
        """Types of the rows; set before the first one."""
        self._chunks: list[Waiting] = []
        self._times = np.empty(0, dtype=np.int64)  # of all rows in chunks, ordered by (time, seq)
        self._seqs = np.empty(0, dtype=np.int64)
        self._heap: list[OneWaiting] = []

    def __len__(self) -> int:
        return len(self._seqs) + len(self._heap)

    def add(self, rows: Waiting) -> None:
        """Let rows wait; their numbers ascend and come after all others'."""
        self._gather_singles()
        if not len(rows):
            return
        order = np.argsort(rows.times, kind="stable")
        times, seqs = rows.times[order], rows.seqs[order]
        places = np.searchsorted(self._times, times, side="right")
        self._times = np.insert(self._times, places, times)
        self._seqs = np.insert(self._seqs, places, seqs)
        self._chunks.append(rows)

    def add_one(self, one: OneWaiting) -> None:
        """Let a single record wait."""
        heappush(self._heap, one)

    def _gather_singles(self) -> None:
        """Turn single records into a batch, so that all waiting rows are in columns."""
        if not self._heap:
            return
        singles = sorted(self._heap, key=lambda one: one.seq)
        self._heap = []
        chunk = Waiting(
            np.array([one.seq for one in singles], dtype=np.int64),
            np.array([one.time for one in singles], dtype=np.int64),
            np.array([one.key for one in singles], dtype=np.int64).reshape(-1, 2),
            pa.RecordBatch.from_pylist([one.record for one in singles], schema=self.schema),
        )
        self._insert_between(chunk)

    def _insert_between(self, chunk: Waiting) -> None:
        """Add rows whose numbers may lie between those of waiting batches."""
        self._chunks.append(chunk)
        times = np.concatenate((self._times, chunk.times))
        seqs = np.concatenate((self._seqs, chunk.seqs))
        order = np.lexsort((seqs, times))
        self._times, self._seqs = times[order], seqs[order]

    def take_until(self, limit: int) -> Waiting:
        """Hand out the rows with a time up to limit, by (time, arrival)."""
        self._gather_singles()
        count = int(np.searchsorted(self._times, limit, side="right"))
        seqs = self._seqs[:count]
        self._times, self._seqs = self._times[count:], self._seqs[count:]
        return self._hand_out(seqs)

    def _hand_out(self, seqs: Ints) -> Waiting:
        parts, kept = [], []
        for chunk in self._chunks:
            ready = np.isin(chunk.seqs, seqs, assume_unique=True) if len(seqs) else np.zeros(len(chunk), np.bool_)
            if ready.any():
                parts.append(chunk.pick(ready))
                kept += self._cut_down(chunk)
            else:
                kept.append(chunk)
        self._chunks = kept
        rows = self._join(parts)
        return rows.pick(np.lexsort((rows.seqs, rows.times)))

    def _cut_down(self, chunk: Waiting) -> list[Waiting]:
        """The part of a chunk to keep: nothing, only its waiting rows, or all of it if enough rows still wait."""
        waiting = np.isin(chunk.seqs, self._seqs, assume_unique=True)
        if waiting.sum() * _KEEP_WHOLE >= len(chunk):
            return [chunk]
        return [chunk.pick(waiting)] if waiting.any() else []

    def pop_one(self, limit: int) -> OneWaiting | None:
        """The first waiting record with a time up to limit, from the singles or the batches."""
        first = self._heap[0] if self._heap else None
        if len(self._seqs) and (first is None or (self._times[0], self._seqs[0]) < (first.time, first.seq)):
            return self._pop_from_batches(limit)
        return heappop(self._heap) if first is not None and first.time <= limit else None

    def _pop_from_batches(self, limit: int) -> OneWaiting | None:
        if self._times[0] > limit:
            return None
        seqs = self._seqs[:1]
        self._times, self._seqs = self._times[1:], self._seqs[1:]
        row = self._hand_out(seqs)
        record = row.batch.to_pylist()[0]
        return OneWaiting(int(row.times[0]), int(row.seqs[0]), (int(row.persons[0, 0]), int(row.persons[0, 1])), record)

    def dump(self) -> Waiting:
        """All waiting rows by number; they stay in the buffer."""
        self._gather_singles()
        rows = self._join([chunk.pick(np.isin(chunk.seqs, self._seqs, assume_unique=True)) for chunk in self._chunks])
        return rows.pick(np.argsort(rows.seqs))

    def _join(self, parts: list[Waiting]) -> Waiting:
        nothing = np.empty(0, dtype=np.int64)
        return Waiting(
            np.concatenate([nothing, *(part.seqs for part in parts)]),
            np.concatenate([nothing, *(part.times for part in parts)]),
            np.concatenate([nothing.reshape(0, 2), *(part.persons for part in parts)]),
            pa.concat_batches([pa.RecordBatch.from_pylist([], schema=self.schema), *(part.batch for part in parts)]),
        )
