"""Ranges of rows that follow one another: released rows meet their entries of the trace, entries their records."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.auditor.reading.columns import TEXT, Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.spark.auditor.engine import Message
from shoal.spark.auditor.facts import EntryFacts, FileFacts
from shoal.spark.auditor.packing import as_batch, as_part, divided, packed, unpacked
from shoal.spark.auditor.shares import Share


@dataclass(frozen=True, slots=True)
class TruthBins:
    """Ranges of records: a bin holds records that follow one another."""

    records: int
    count: int

    @property
    def size(self) -> int:
        """The records of a bin."""
        return max(-(-self.records // self.count), 1)

    def of(self, rows: Ints) -> Ints:
        """The bin of every record."""
        return rows // self.size

    def of_entries(self, entries: pa.RecordBatch) -> Ints:
        """The bin of the record of every entry; entries of no record are spread."""
        row = entries.column("\0row").to_numpy()
        spread = entries.column("\0entry").to_numpy() % self.count
        found: Ints = np.where(row >= 0, self.of(row), spread)
        return found


def slices(batch: pa.RecordBatch, first: int, size: int) -> Iterator[tuple[int, int, pa.RecordBatch]]:
    """Cut rows that follow one another at the ends of ranges: the range, the first row, the rows."""
    at = 0
    while at < batch.num_rows:
        number = (first + at) // size
        length = min((number + 1) * size - first - at, batch.num_rows - at)
        yield number, first + at, batch.slice(at, length)
        at += length


def send_ranges(rows: pa.RecordBatch, first: int, size: int, kind: str) -> Iterator[Message]:
    """Send rows to the ranges they are in."""
    for number, start, part in slices(rows, first, size):
        yield Message(number, kind, pickle.dumps((start, packed(part))))


Entries = tuple[pa.RecordBatch, Bools]
"""Entries of a trace with their numbers, and which have a released row."""


def send_positions(
    share: Share, facts: FileFacts, trace: EntryFacts, size: int, read: Callable[[Share], Entries]
) -> Iterator[Message]:
    """Send released rows, and entries of the trace that have one, to the ranges of their positions."""
    if share.role == "release":
        yield from send_ranges(whole(share.read()), facts.first(share), size, "release")
        return
    entries, is_shown = read(share)
    yield from send_ranges(entries.filter(pa.array(is_shown)), trace.first_shown(share.number), size, "entries")


def send_others(entries: pa.RecordBatch, is_shown: Bools, records: TruthBins) -> Iterator[Message]:
    """Send entries that have no released row to the bins of their records."""
    others = entries.filter(pa.array(~is_shown))
    for number, part in divided(others, records.of_entries(others)):
        yield Message(number, "others", packed(part))


def whole(rows: Rows) -> pa.RecordBatch:
    """The rows of a file as one batch."""
    if not rows.parts:
        return pa.record_batch({})
    (part,) = rows.parts
    return as_batch(part)


@dataclass(frozen=True, slots=True)
class PairRows:
    """Puts every released row next to its entry of the trace; sends both to the bin of their record."""

    records: TruthBins

    def __call__(self, _number: int, kinds: dict[str, list[bytes]]) -> Iterator[Message]:
        parts = sorted((pickle.loads(data) for data in kinds.get("entries", ())), key=lambda part: part[0])
        if not parts:
            return
        start = parts[0][0]
        entries = pa.Table.from_batches([unpacked(data) for _, data in parts]).combine_chunks().to_batches()[0]
        for data in kinds.get("release", ()):
            first, rows = pickle.loads(data)
            batch = unpacked(rows)
            own = entries.slice(first - start, batch.num_rows)
            both = pa.RecordBatch.from_arrays(
                [*batch.columns, *own.columns], schema=pa.schema([*batch.schema, *own.schema])
            )
            for number, part in divided(both, self.records.of_entries(own)):
                yield Message(number, "linked", packed(part))


def linked_batches(kinds: dict[str, list[bytes]]) -> list[pa.RecordBatch]:
    """Released rows with their entries, in release order."""
    return sorted(map(unpacked, kinds.get("linked", ())), key=lambda part: part.column("\0position")[0].as_py())


def released_rows(batches: Sequence[pa.RecordBatch]) -> Rows:
    """The columns of the release, one part for each batch."""
    kept = [
        batch.select([name for name in batch.schema.names if name[0] not in "\0\1" or name == "\0broken"])
        for batch in batches
    ]
    return Rows(tuple(map(as_part, kept)), "release")


def truth_rows(parts: Sequence[bytes]) -> Rows:
    """Records that follow one another, from the files that have them."""
    found = sorted((pickle.loads(data) for data in parts), key=lambda part: part[0])
    return Rows(tuple(as_part(unpacked(data)) for _, data in found), "truth")


def numbers_of(batches: Sequence[pa.RecordBatch], names: Sequence[str]) -> dict[str, Ints]:
    """Columns of numbers of several batches."""
    return {
        name: np.concatenate([np.zeros(0, np.int64), *(batch.column(f"\0{name}").to_numpy() for batch in batches)])
        for name in names
    }


@dataclass(frozen=True, slots=True)
class EntryNumbers:
    """Entries of a bin in the order of the trace; records are counted from the first of the bin, -1 for none."""

    numbers: dict[str, Ints]
    row: Ints
    exists: Bools
    first: Bools
    """Which are the first entry of their record."""
    order: Any
    """Where each is in the batches."""

    @classmethod
    def of(cls, batches: Sequence[pa.RecordBatch], names: Sequence[str], first: int) -> EntryNumbers:
        """Read columns of numbers, among which must be entry and row."""
        numbers = numbers_of(batches, names)
        order = np.argsort(numbers["entry"])
        numbers = {name: values[order] for name, values in numbers.items()}
        exists = numbers["row"] >= 0
        row = np.where(exists, numbers["row"] - first, -1)
        is_first = np.zeros(len(row), np.bool_)
        is_first[np.unique(row, return_index=True)[1]] = True
        return cls(numbers, row, exists, is_first & exists, pa.array(order))

    def texts(self, batches: Sequence[pa.RecordBatch], name: str) -> Rows:
        """A column of texts of the same entries."""
        column = joined_column(batches, f"\1{name}", TEXT).take(self.order)
        return Rows((({name: column}, np.zeros(len(self.row), np.bool_)),), "trace")


def joined_column(batches: Sequence[pa.RecordBatch], name: str, kind: Any) -> Any:
    """A column of several batches."""
    return pa.concat_arrays([batch.column(name) for batch in batches]) if batches else pa.array([], kind)
