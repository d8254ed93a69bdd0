"""From everybody's items and the blocks they fell into to the rows that are published."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import PolicyError
from shoal.kernels.sets.records import fingerprint_rows, gather_rows
from shoal.pipeline.sets.reading import Codes, Ints, ReadSets

_BATCH_ROWS: Final = 65_536
DEFAULT_SEPARATOR: Final = "|"


@dataclass(frozen=True, slots=True)
class Grouped:
    """Items by record: those of record `numbers[row]` stand from `starts[row]` on."""

    numbers: Ints
    """Which of all records these are: those that have an item."""
    starts: Ints
    items: Codes
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.numbers)

    def column(self) -> pa.LargeListArray:
        """The sets as an Arrow column."""
        values = pa.DictionaryArray.from_arrays(pa.array(self.items), pa.array(self.names, pa.string()))
        return pa.LargeListArray.from_arrays(pa.array(self.starts), values)


def group(read: ReadSets) -> Grouped:
    """Bring the items of each record together; every item once, in order."""
    return _grouped(read.owners, read.items, read.names)


def _grouped(owners: Ints, items: Codes, names: tuple[str, ...]) -> Grouped:
    wide = max(len(names), 1)
    both = np.unique(owners * wide + items)
    numbers, starts = np.unique(both // wide, return_index=True)
    ends: Ints = np.append(starts, len(both)).astype(np.int64)
    return Grouped(numbers.astype(np.int64), ends, (both % wide).astype(np.int32), names)


def generalized(sets: Grouped, blocks: Mapping[str, Iterable[str]]) -> Grouped:
    """The sets with labels instead of items; labels in alphabetical order."""
    labels = tuple(sorted(blocks))
    place = {item: number for number, label in enumerate(labels) for item in blocks[label]}
    label_of = np.array([place[name] for name in sets.names], np.int32)
    owners = np.repeat(np.arange(len(sets), dtype=np.int64), np.diff(sets.starts))
    found = _grouped(owners, label_of[sets.items], labels)
    return Grouped(sets.numbers, found.starts, found.items, labels)


def release_order(sets: Grouped, seed: int) -> Ints:
    """Which record is published where: shuffled by the seed.

    What is shuffled are the published sets in an order of their own. Whoever knows the seed can undo the shuffling, and
    must then find an order that tells nothing that is not published: neither that of the input nor how many items
    somebody had.
    """
    first, second = np.empty(len(sets), np.uint64), np.empty(len(sets), np.uint64)
    fingerprint_rows(sets.starts, sets.items, first, second)
    ordered = np.lexsort((second, first, np.diff(sets.starts)))
    key = hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=16, person=b"shoal-set-order").digest()
    coins = np.random.Generator(np.random.PCG64(int.from_bytes(key, "little")))
    order: Ints = ordered[coins.permutation(len(sets))].astype(np.int64)
    return order


def release_schema(column: str, *, joined: bool) -> pa.Schema:
    """Of the published rows."""
    return pa.schema([(column, pa.string() if joined else pa.list_(pa.string()))])


def release_batches(sets: Grouped, order: Ints, schema: pa.Schema, separator: str | None) -> Iterator[pa.RecordBatch]:
    """The published rows; with a separator the labels of a row are joined to one text."""
    labels = pa.array(sets.names, pa.string())
    sizes = np.diff(sets.starts)
    for begin in range(0, len(order), _BATCH_ROWS):
        part = order[begin : begin + _BATCH_ROWS]
        starts, items = np.empty(len(part) + 1, np.int64), np.empty(int(sizes[part].sum()), np.int32)
        gather_rows(sets.starts, sets.items, part, starts, items)
        column: Any = pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), labels.take(pa.array(items)))
        if separator is not None:
            column = pc.binary_join(column, separator)
        yield pa.RecordBatch.from_arrays([column], schema=schema)


def check_separator(labels: Collection[str], separator: str) -> None:
    """Refuse a separator that a label holds, or begins at its end, and NUL: nobody could take the row apart again.

    >>> check_separator(["a~"], "|")
    >>> check_separator(["a~", "b"], "~~")
    Traceback (most recent call last):
    ...
    shoal.errors.PolicyError: [sink] separator: 1 labels or items hold it themselves, or end as it begins; ...
    """
    count = sum(f"{label}{separator}".find(separator) < len(label) for label in labels)
    if count:
        raise PolicyError(
            f"[sink] separator: {count:,} labels or items hold it themselves, or end as it begins; choose one that "
            "none of them holds, or write jsonl, parquet or arrow"
        )
    count = sum("\x00" in label for label in labels)
    if count:
        raise PolicyError(
            f"[sink] kind: {count:,} labels or items hold a NUL character, which no CSV file can; "
            "write jsonl, parquet or arrow"
        )


def trace_table(sets: Grouped, order: Ints, records: int) -> pa.RecordBatch:
    """Private: for every record where it is in the release, or -1."""
    position: Ints = np.full(records, -1, np.int64)
    position[sets.numbers[order]] = np.arange(len(order))
    return pa.RecordBatch.from_arrays([pa.array(np.arange(records, dtype=np.int64)), pa.array(position)], schema=TRACE)


TRACE: Final = pa.schema([("row", pa.int64()), ("position", pa.int64())])
