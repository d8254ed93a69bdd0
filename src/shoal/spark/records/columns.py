"""Names and types of the columns that travel between executors."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

ROW: Final = "_shoal_row"
"""The number of a record in the stream, from 0."""
SHARD: Final = "_shoal_shard"
PART: Final = "_shoal_part"
BLOCK: Final = "_shoal_block"
"""Blocks are in the order of the stream by part, then by block."""
CLOCK: Final = "_shoal_clock"
"""The time of the whole stream at a record: nanoseconds, or the record's number if deadlines count arrivals."""
TIME: Final = "_shoal_time"
USABLE: Final = "_shoal_usable"
KEYS: Final = ("_shoal_key0", "_shoal_key1")
"""The keyed hash of a person."""
AHEAD: Final = "_shoal_ahead"
VERDICT: Final = "_shoal_verdict"
REASON: Final = "_shoal_reason"
GROUP: Final = "_shoal_group"
DELAY: Final = "_shoal_delay"
REUSED: Final = "_shoal_reused"
DETAILS: Final = "_shoal_details"
"""Further numbers of the trace: how many people of a cluster carry each attribute, or the z of each column."""
DECIDED: Final = "_shoal_decided"
"""The time of the whole stream at which a record was decided."""
ORDER: Final = "_shoal_order"
AT_END: Final = "_shoal_at_end"
NOTE: Final = "_shoal_note"
"""Counts and losses of a shard as JSON, on rows that describe no record."""
LINE: Final = "_shoal_line"
BAD: Final = "_shoal_bad"
"""Why a record could not be decoded, as JSON; null if it could."""

DECISION: Final = pa.schema(
    [
        (ROW, pa.int64()), (VERDICT, pa.string()), (REASON, pa.string()), (GROUP, pa.int64()), (DELAY, pa.int64()),
        (REUSED, pa.bool_()), (DETAILS, pa.list_(pa.int32())), (DECIDED, pa.int64()), (SHARD, pa.int32()),
        (ORDER, pa.int64()), (AT_END, pa.bool_()), (NOTE, pa.string()),
    ]
)  # fmt: skip
"""The columns of a decision about a record; the published columns follow."""


def wire_type(kind: pa.DataType) -> pa.DataType:
    """The type in which Spark carries a column unchanged: it has no nanoseconds, unsigned numbers or dictionaries."""
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, wire_type(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(wire_type(kind.value_type))
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_unsigned_integer(kind):
        return pa.int64() if kind.bit_width < 64 else pa.string()
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_float16(kind):
        return pa.float32()
    return kind


def wire_schema(schema: pa.Schema) -> pa.Schema:
    """The schema in which Spark carries these columns."""
    return pa.schema([(field.name, wire_type(field.type)) for field in schema])


def decision_schema(published: pa.Schema) -> pa.Schema:
    """The columns of decisions about records of which these columns are published."""
    return pa.schema([*DECISION, *wire_schema(published)])


def cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Cast to types that Spark has, or back."""
    columns = [_cast(batch.column(field.name), field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: Any, kind: pa.DataType) -> Any:
    if column.type == kind:
        return column
    if pa.types.is_struct(kind):
        fields = [_cast(column.field(place), field.type) for place, field in enumerate(kind)]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=mask)
    if pa.types.is_list(kind) and not pa.types.is_list(column.type):
        return column.cast(pa.list_(column.type.value_type)).cast(kind)
    if pa.types.is_time32(column.type) or (pa.types.is_time32(kind) and column.type == pa.int64()):
        return column.cast(pa.int32()).cast(kind)
    return column.cast(kind)
