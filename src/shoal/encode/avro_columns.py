"""Columns in Avro's binary encoding: whole columns at a time, ten times as fast as record by record.

Every value is a union of null and its type, as :func:`shoal.avro.types.record_schema` describes it. Joining the columns
of a row gives its record.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.encode.text import is_binary, is_interval, plain_column

_NULL: Final = pa.scalar(b"\x00", pa.binary())  # number 0 of the union
_VALUE: Final = pa.scalar(b"\x02", pa.binary())  # number 1, zigzag
_END: Final = pa.scalar(b"\x00", pa.binary())
_NOTHING: Final = pa.scalar(b"", pa.binary())


def avro_records(batch: pa.RecordBatch, header: bytes) -> Any:
    """Every row as a record, after a header."""
    parts = [avro_column(column) for column in batch.columns]
    return pc.binary_join_element_wise(pa.scalar(header, pa.binary()), *parts, _NOTHING)


def avro_column(column: Any) -> Any:
    """Every value of a column as bytes; the result has no nulls."""
    column = plain_column(column)
    encoded = pc.binary_join_element_wise(_VALUE, _bare(column), _NOTHING)
    return pc.if_else(column.is_valid(), encoded, _NULL) if column.null_count else encoded


def _bare(column: Any) -> Any:
    """Values without the number of the union; what stands for null does not matter."""
    kind, types = column.type, pa.types
    if is_interval(kind):
        ends = [avro_column(column.field(name)) for name in ("lo", "hi")]
        return pc.binary_join_element_wise(*ends, _NOTHING)
    if types.is_list(kind) or types.is_large_list(kind):
        return _list(column)
    if types.is_floating(kind):
        return _of_width(pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy().astype("<f8"), 8)
    if types.is_boolean(kind):
        return _of_width(pc.fill_null(column, False).to_numpy(zero_copy_only=False).astype(np.uint8), 1)  # noqa: FBT003
    if types.is_integer(kind) or types.is_timestamp(kind) or types.is_date(kind):
        return _varints(pc.fill_null(_whole(column), 0).to_numpy())
    raw = pc.fill_null(column if is_binary(kind) else column.cast(pa.string()), b"" if is_binary(kind) else "")
    raw = raw.cast(pa.binary())
    return pc.binary_join_element_wise(_varints(pc.binary_length(raw).to_numpy()), raw, _NOTHING)


def _whole(column: Any) -> Any:
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("ms", kind.tz)) if kind.unit == "s" else column
    elif pa.types.is_date(kind):
        column = column.cast(pa.date32()).cast(pa.int32())
    return column.cast(pa.int64())


def _list(column: Any) -> Any:
    """One block with its number of items, then an empty one."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    offsets = pa.array([0, *lengths.cumsum()], pa.int32())
    items = pc.binary_join(pa.ListArray.from_arrays(offsets, avro_column(column.flatten())), _NOTHING)
    block = pc.binary_join_element_wise(_varints(lengths), items, _END, _NOTHING)
    return pc.if_else(pa.array(lengths > 0), block, _END)


def _of_width(values: npt.NDArray[Any], width: int) -> Any:
    offsets = np.arange(0, (len(values) + 1) * width, width, dtype=np.int32)
    return _binary(offsets, np.ascontiguousarray(values))


def _varints(values: npt.NDArray[Any]) -> Any:
    """Whole numbers as Avro writes them: zigzag, seven bits a byte, the lowest first."""
    signed = values.astype(np.int64)
    left = ((signed << 1) ^ (signed >> 63)).view(np.uint64)
    lengths = np.ones(len(left), dtype=np.int64)
    for bits in range(7, 64, 7):
        lengths += left >= np.uint64(1) << np.uint64(bits)
    offsets = np.zeros(len(left) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    data = np.zeros(int(offsets[-1]), dtype=np.uint8)
    rows = np.arange(len(left))
    for at in range(int(lengths.max(initial=0))):
        rows = rows[lengths[rows] > at]
        low = (left[rows] >> np.uint64(7 * at)) & np.uint64(0x7F)
        data[offsets[rows] + at] = low | np.where(lengths[rows] > at + 1, 0x80, 0).astype(np.uint64)
    return _binary(offsets, data)


def _binary(offsets: npt.NDArray[np.int32], data: npt.NDArray[Any]) -> Any:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(offsets) - 1, buffers)
