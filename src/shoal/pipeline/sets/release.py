"""From everybody's items and the blocks they are in to the rows that are published."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import PolicyError
from shoal.kernels.sets.records import fingerprint_rows, gather_rows
from shoal.methods.sets.records import ReadRecords
from shoal.pipeline.sets.reading import Codes, Ints, grouped

BATCH_ROWS: Final = 65_536
DEFAULT_SEPARATOR: Final = "|"


def generalized(sets: ReadRecords, blocks: Mapping[str, Iterable[str]]) -> ReadRecords:
    """The sets with the labels of blocks instead of items; labels in alphabetical order."""
    labels, label_of = labels_of(sets.labels, blocks)
    owners = np.repeat(np.arange(len(sets), dtype=np.int64), np.diff(sets.starts))
    return grouped(owners, label_of[sets.codes], labels)[1]


def labels_of(items: Sequence[str], blocks: Mapping[str, Iterable[str]]) -> tuple[tuple[str, ...], Codes]:
    """The labels of blocks in alphabetical order, and the code of the label of each of these items."""
    labels = tuple(sorted(blocks))
    place = {item: number for number, label in enumerate(labels) for item in blocks[label]}
    return labels, np.array([place[name] for name in items], np.int32)


def bound_to(sets: ReadRecords, certificate: Mapping[str, Any]) -> str:
    """The digest that binds a certificate to the published sets, in any order: a change of either shows.

    SHA-256 of the certificate as JSON with sorted keys, of the labels in use, and of all sets as ranks of their labels.
    """
    names, rank = used_labels(sets.labels, np.unique(sets.codes))
    found = binding(certificate, names)
    for record in sorted(as_bytes(sets.starts, sets.codes, rank)):
        found.update(len(record).to_bytes(8, "little") + record)
    return str(found.hexdigest())


def used_labels(labels: Sequence[str], used: Codes) -> tuple[list[str], npt.NDArray[np.uint32]]:
    """The labels in use, sorted; and the rank of each label among them, by code."""
    names = sorted(labels[code] for code in used.tolist())
    number = {name: place for place, name in enumerate(names)}
    rank = np.zeros(len(labels), "<u4")
    for code in used.tolist():
        rank[code] = number[labels[code]]
    return names, rank


def binding(certificate: Mapping[str, Any], names: list[str]) -> Any:
    """The digest of a certificate and of labels; sets are added to it in the order of their bytes."""
    found = hashlib.sha256(b"shoal set certificate 1\n")
    for content in (json.loads(orjson.dumps(certificate)), names):
        found.update(json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
    return found


def as_bytes(starts: Ints, codes: Codes, rank: npt.NDArray[np.uint32]) -> Iterator[bytes]:
    """The ranks of the labels of each set, ascending."""
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    ranks = rank[codes]
    data = ranks[np.lexsort((ranks, owners))].tobytes()
    return (data[begin:end] for begin, end in pairwise((starts * 4).tolist()))


def release_order(sets: ReadRecords, seed: int) -> Ints:
    """Which record is published where: shuffled by the seed.

    The sets are sorted by their published content before they are shuffled. An attacker who knows the seed can undo the
    shuffling; the order found then must reveal nothing that is not published: neither the order of the input nor how
    many items a person had.
    """
    first, second = np.empty(len(sets), np.uint64), np.empty(len(sets), np.uint64)
    fingerprint_rows(sets.starts, sets.codes, first, second)
    return shuffled(np.lexsort((second, first, np.diff(sets.starts))), seed)


def shuffled(ordered: npt.NDArray[np.intp], seed: int) -> Ints:
    """Records in the order of their published content, shuffled by the seed."""
    key = hashlib.blake2b(seed.to_bytes(8, "little"), digest_size=16, person=b"shoal-set-order").digest()
    random = np.random.Generator(np.random.PCG64(int.from_bytes(key, "little")))
    order: Ints = ordered[random.permutation(len(ordered))].astype(np.int64)
    return order


def release_schema(column: str, *, joined: bool) -> pa.Schema:
    """The schema of the published rows."""
    return pa.schema([(column, pa.string() if joined else pa.list_(pa.string()))])


def release_batches(
    sets: ReadRecords, order: Ints, schema: pa.Schema, separator: str | None
) -> Iterator[pa.RecordBatch]:
    """The published rows; with a separator the labels of a row are joined to one text."""
    labels = pa.array(sets.labels, pa.string())
    sizes = np.diff(sets.starts)
    for begin in range(0, len(order), BATCH_ROWS):
        part = order[begin : begin + BATCH_ROWS]
        starts, items = np.empty(len(part) + 1, np.int64), np.empty(int(sizes[part].sum()), np.int32)
        gather_rows(sets.starts, sets.codes, part, starts, items)
        column: Any = pa.ListArray.from_arrays(pa.array(starts.astype(np.int32)), labels.take(pa.array(items)))
        if separator is not None:
            column = pc.binary_join(column, separator)
        yield pa.RecordBatch.from_arrays([column], schema=schema)


def check_separator(labels: Collection[str], separator: str) -> None:
    """Refuse a separator that a label contains or whose start ends a label, and NUL: no reader could split the row.

    >>> check_separator(["a~"], "|")
    >>> check_separator(["a~", "b"], "~~")
    Traceback (most recent call last):
    ...
    shoal.errors.PolicyError: [sink] separator: 1 labels or items contain it, or end as it begins; ...
    """
    count = sum(f"{label}{separator}".find(separator) < len(label) for label in labels)
    if count:
        raise PolicyError(
            f"[sink] separator: {count:,} labels or items contain it, or end as it begins; choose one that "
            "none of them contains, or write jsonl, parquet or arrow"
        )
    count = sum("\x00" in label for label in labels)
    if count:
        raise PolicyError(
            f"[sink] kind: {count:,} labels or items contain a NUL character, which a CSV file cannot; "
            "write jsonl, parquet or arrow"
        )


def trace_table(people: int, numbers: Ints, order: Ints) -> pa.RecordBatch:
    """Private: the position of every person's set in the release, or -1; `numbers` says who has a set."""
    position: Ints = np.full(people, -1, np.int64)
    position[numbers[order]] = np.arange(len(order))
    rows = np.arange(people, dtype=np.int64)
    return pa.RecordBatch.from_arrays([pa.array(rows), pa.array(position)], schema=TRACE)


TRACE: Final = pa.schema([("row", pa.int64()), ("position", pa.int64())])
