"""Convert Arrow columns to the kinds that stores support, and back."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.sanitize.stores.base import Kind

_PARTS = ("lo", "hi")


def kinds_of(schema: pa.Schema) -> tuple[tuple[str, Kind], ...]:
    """Return the table columns for a schema; a range takes two."""
    found: list[tuple[str, Kind]] = []
    for field in schema:
        if pa.types.is_struct(field.type):
            found += [(f"{field.name}_{part.name}", _kind(part.type)) for part in _parts(field.type)]
        else:
            found.append((field.name, _kind(field.type)))
    return tuple(found)


def to_plain(rows: pa.Table) -> pa.Table:
    """Convert rows for a store: ranges become two columns, NaN becomes NULL."""
    columns: dict[str, pa.ChunkedArray] = {}
    for field, column in zip(rows.schema, rows.columns, strict=True):
        if pa.types.is_struct(field.type):
            for at, part in enumerate(_parts(field.type)):
                columns[f"{field.name}_{part.name}"] = _plain(pc.struct_field(column, [at]))
        else:
            columns[field.name] = _plain(column)
    return pa.table(columns)


def cut_to_microseconds(rows: pa.Table) -> pa.Table:
    """Cut moments and times of day to whole microseconds, the finest that PostgreSQL stores."""
    fields = [field.with_type(_cut(field.type)) for field in rows.schema]
    columns = [
        column if column.type == field.type else column.cast(field.type, safe=False)
        for field, column in zip(fields, rows.columns, strict=True)
    ]
    return pa.table(columns, schema=pa.schema(fields))


def _cut(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    return pa.time64("us") if kind == pa.time64("ns") else kind


def from_plain(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert rows back."""
    columns = []
    for field in schema:
        if pa.types.is_struct(field.type):
            parts = [_back(rows.column(f"{field.name}_{part.name}"), part.type) for part in _parts(field.type)]
            arrays = [part.combine_chunks() for part in parts]
            missing = pc.is_null(arrays[0])
            columns.append(pa.StructArray.from_arrays(arrays, fields=_parts(field.type), mask=missing))
        else:
            columns.append(_back(rows.column(field.name), field.type))
    return pa.table(columns, schema=schema)


def blocks_column(blocks: npt.NDArray[np.uint8]) -> pa.Array:
    """Return equal-length rows of bytes as a column."""
    count, size = blocks.shape
    ends = np.arange(count + 1, dtype=np.int32) * size
    data = pa.py_buffer(np.ascontiguousarray(blocks).tobytes())
    return pa.BinaryArray.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends.tobytes()), data])


def column_blocks(column: pa.ChunkedArray, size: int = 16) -> npt.NDArray[np.uint8]:
    """Return a column of equal-length bytes as rows of an array."""
    return np.frombuffer(b"".join(column.to_pylist()), dtype=np.uint8).reshape(-1, size)


def hex_column(blocks: npt.NDArray[np.uint8]) -> pa.Array:
    """Return rows of bytes as a column of hexadecimal text."""
    count, size = blocks.shape
    ends = np.arange(count + 1, dtype=np.int32) * (2 * size)
    data = pa.py_buffer(np.ascontiguousarray(blocks).tobytes().hex().encode())
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends.tobytes()), data)


def _parts(kind: pa.DataType) -> Sequence[pa.Field]:
    return [kind.field(at) for at in range(kind.num_fields)]


def _kind(kind: pa.DataType) -> Kind:
    if pa.types.is_boolean(kind):
        return "boolean"
    if pa.types.is_decimal(kind) or kind == pa.uint64():  # half of the latter do not fit into 63 bits
        return "decimal"
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "real"
    if pa.types.is_timestamp(kind):
        return "local moment" if kind.tz is None else "moment"
    if pa.types.is_date(kind):
        return "date"
    if pa.types.is_time(kind):
        return "time"
    return "bytes" if pa.types.is_binary(kind) else "text"


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return column.cast(pa.int64())
    if pa.types.is_floating(kind):
        wide = column.cast(pa.float64())
        return pc.if_else(pc.is_nan(wide), None, wide)
    if pa.types.is_boolean(kind) or pa.types.is_binary(kind):
        return column
    return column.cast(pa.string())


def _back(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_time(kind) and pa.types.is_string(column.type):  # Arrow has no direct cast
        moments = pc.binary_join_element_wise("1970-01-01", column, " ")
        return moments.cast(pa.timestamp(kind.unit)).cast(kind)
    return column if column.type == kind else column.cast(kind)
