"""Rows as bytes on their way between tasks: the columns of a part as they were read, and which rows are unreadable."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.lines import Part

_BROKEN: Final = "\0broken"
_AS_JSON: Final = b"json"
"""Marks a column of values of any type, as JSON lines have them."""


def as_batch(part: Part) -> pa.RecordBatch:
    """A part as one Arrow batch; values of mixed types become JSON."""
    columns, broken = part
    fields, arrays = [], []
    for name, column in columns.items():
        array, metadata = _as_array(column)
        fields.append(pa.field(name, array.type, metadata=metadata))
        arrays.append(array)
    fields.append(pa.field(_BROKEN, pa.bool_()))
    arrays.append(pa.array(broken))
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _as_array(column: Any) -> tuple[Any, dict[bytes, bytes] | None]:
    if isinstance(column, list):
        texts = [None if value is None else json.dumps(value) for value in column]
        return pa.array(texts, pa.large_string()), {_AS_JSON: b"1"}
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # too long for one array of its type
        array = pa.concat_arrays(column.cast(pa.large_string()).chunks)
    if pa.types.is_dictionary(array.type):  # else every slice would carry the whole dictionary
        array = array.cast(array.type.value_type)
    return array, None


def as_part(batch: pa.RecordBatch) -> Part:
    """The part of a batch."""
    columns: dict[str, Any] = {}
    for field, array in zip(batch.schema, batch.columns, strict=True):
        if field.name == _BROKEN:
            continue
        if field.metadata and _AS_JSON in field.metadata:
            columns[field.name] = [None if text is None else json.loads(text) for text in array.to_pylist()]
        else:
            columns[field.name] = array
    return columns, np.asarray(batch.column(_BROKEN).to_numpy(zero_copy_only=False), np.bool_)


def packed(batch: pa.RecordBatch) -> bytes:
    """A batch as bytes; of a slice only its own rows."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def unpacked(data: bytes) -> pa.RecordBatch:
    """The batch of some bytes."""
    return pa.ipc.open_stream(data).read_next_batch()


def sorted_columns(parts: Sequence[bytes], *by: str) -> dict[str, Any]:
    """The columns of several batches, sorted by some of them: arrays of numbers, and texts as Arrow has them."""
    table = pa.Table.from_batches([unpacked(data) for data in parts]).sort_by([(name, "ascending") for name in by])
    return {
        name: table[name] if pa.types.is_large_string(table[name].type) else table[name].to_numpy()
        for name in table.column_names
    }


def divided(batch: pa.RecordBatch, bins: Ints) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each bin, in their order."""
    order = np.argsort(bins, kind="stable")
    of = bins[order]
    rows = batch.take(pa.array(order))
    starts = [0, *(np.flatnonzero(np.diff(of)) + 1).tolist(), len(of)] if len(of) else []
    for start, stop in pairwise(starts):
        yield int(of[start]), rows.slice(start, stop - start)
