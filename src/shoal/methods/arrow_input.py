"""The input of a method: any Arrow object becomes batches of the columns that are read, in fixed types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.errors import InputError

_TEXTS = (pa.string(), pa.large_string())
_HIDING = (pa.BaseExtensionType, pa.RunEndEncodedType, pa.DictionaryType)
_NOTHING_INSIDE = frozenset(
    kind.id
    for kind in (
        pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
        pa.float32(), pa.float64(), pa.string(), pa.large_string(), pa.timestamp("ns"), pa.date32(),
    )
)  # fmt: skip
"""Types without anything nested or encoded. Most columns have one; this check is faster than all others."""


def record_batches(data: Any) -> tuple[pa.Schema, Iterable[pa.RecordBatch]]:
    """The schema and the batches of any Arrow object: batches, tables, readers, pandas and polars frames."""
    if isinstance(data, pa.RecordBatch):
        return data.schema, [data]
    if isinstance(data, pa.Table):
        return data.schema, data.to_batches()
    if hasattr(data, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(data)
        return reader.schema, reader
    if hasattr(data, "__arrow_c_array__"):
        batch = pa.record_batch(data)
        return batch.schema, [batch]
    raise InputError(
        f"push_batch accepts Arrow batches, tables, or frames of pandas and polars, not {type(data).__name__}"
    )


def with_gaps(batch: pa.RecordBatch, places: Sequence[int]) -> pa.RecordBatch:
    """The batch with rows of nulls added, so that they are at these places, which rise.

    >>> with_gaps(pa.record_batch({"n": [1, 2]}), [1]).column("n").to_pylist()
    [1, None, 2]
    """
    is_gap = np.zeros(batch.num_rows + len(places), dtype=np.bool_)
    is_gap[list(places)] = True
    return batch.take(pa.array(np.cumsum(~is_gap) - 1, mask=is_gap))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of a published column: no dictionaries, no views, and nested fields are nullable."""
    if kind.id in _NOTHING_INSIDE:
        return kind
    return plain_type(kind.value_type) if pa.types.is_dictionary(kind) else _viewless_type(kind)


def _viewless_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_viewless_type(field.type)).with_nullable(nullable=True) for field in kind])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_viewless_field(kind), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_viewless_field(kind))
    return pa.list_(_viewless_field(kind)) if pa.types.is_list(kind) else kind


def _viewless_field(kind: pa.DataType) -> pa.Field:
    return kind.value_field.with_type(_viewless_type(kind.value_type)).with_nullable(nullable=True)


def without_views(column: pa.Array) -> pa.Array:
    """The same column without views, which polars sends and from which Arrow cannot take rows."""
    if column.type.id in _NOTHING_INSIDE:
        return column
    if pa.types.is_dictionary(column.type):
        values = without_views(column.dictionary)
        return column if values is column.dictionary else pa.DictionaryArray.from_arrays(column.indices, values)
    wanted = _viewless_type(column.type)
    return column if column.type == wanted else column.cast(wanted)


def plain(column: pa.Array) -> pa.Array:
    """A column in the type in which it is published."""
    column = without_views(column)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def is_carriable(kind: pa.DataType) -> bool:
    """Whether taking rows from a column of this type takes nothing of other rows along.

    Taking rows keeps a dictionary whole, with the values of rows that are not published. A top-level dictionary is
    decoded; a nested one would be published with the rows. Views and extension types have the same problem.
    """
    kind = plain_type(kind)
    if pa.types.is_struct(kind):
        return all(is_carriable(field.type) and field.type == plain_type(field.type) for field in kind)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return kind.value_type == plain_type(kind.value_type) and is_carriable(kind.value_type)
    return not pa.types.is_nested(kind) and not isinstance(kind, _HIDING)


def select(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The fields of these columns; raise InputError where one is missing or there twice."""
    fields = []
    for name in columns:
        places = schema.get_all_field_indices(name)
        if len(places) != 1:
            trouble = "is several times" if places else "is not"
            raise InputError(
                f"column {name!r}: {trouble} among the {len(schema)} columns of the input; "
                "name the columns as the input does, each once"
            )
        fields.append(schema.field(places[0]))
    return pa.schema(fields)


def require_same(expected: pa.Schema, given: pa.Schema) -> None:
    """Raise InputError where a column changes its type in the middle of the stream."""
    for field in expected:
        was, now = plain_type(field.type), plain_type(given.field(field.name).type)
        if was != now and not _is_fittable(now, was):
            is_wider = pa.types.is_integer(was) and pa.types.is_floating(now)
            advice = "cast it to double before the first batch" if is_wider else "give the whole stream in one type"
            raise InputError(f"column {field.name!r}: was {was} and is now {now}; {advice}")


def _is_fittable(now: pa.DataType, was: pa.DataType) -> bool:
    """Whether values of the new type fit the published one: nulls do, all text types, and whole numbers a float."""
    is_text = now in _TEXTS and was in _TEXTS
    return pa.types.is_null(now) or is_text or (pa.types.is_integer(now) and pa.types.is_float64(was))


def without_null_types(fields: pa.Schema, assumed: pa.Schema) -> pa.Schema:
    """The types of a stream's first columns; a column in which all values are missing has the type assumed for it."""
    kinds = [assumed.field(one.name).type if pa.types.is_null(one.type) else one.type for one in fields]
    return pa.schema(list(zip(fields.names, kinds, strict=True)))


def fitted(batch: pa.RecordBatch, expected: pa.Schema | None) -> pa.RecordBatch:
    """The batch cast to the types of the stream, where require_same() allows others."""
    if expected is None:
        return batch
    for at, field in enumerate(batch.schema):
        wanted = expected.field(field.name).type
        if plain_type(field.type) != wanted:
            batch = batch.set_column(at, field.name, _cast(batch.column(at), wanted, field.name))
    return batch


def _cast(column: pa.Array, wanted: pa.DataType, name: str) -> pa.Array:
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), wanted)
    try:
        return plain(column).cast(wanted)
    except pa.ArrowInvalid:  # Arrow's own message may contain the value
        raise InputError(f"column {name!r}: a value does not fit {wanted}; give the whole stream in one type") from None


def require_record(record: object) -> None:
    """Raise InputError where push gets anything but one record."""
    if type(record) is not dict and not isinstance(record, Mapping):
        raise InputError(
            f"push accepts one record, a mapping of columns to values, not {type(record).__name__}; "
            "for tables and frames use push_batch"
        )


def record_type(value: Any, *, is_counted: bool) -> pa.DataType | None:
    """The column type for values like this one: text for a missing value, None where Arrow has no type for it.

    Whole numbers become float unless they are counted, because later ones may have a fraction.
    """
    if value is None:
        return pa.string()
    try:
        kind = pa.array([value]).type
    except (ValueError, TypeError, OverflowError):  # Arrow's own message may contain the value
        if not isinstance(value, int) or not 2**63 <= value < 2**64:
            return None
        return pa.uint64()  # the type of such a column, which Arrow does not infer
    if pa.types.is_integer(kind):
        return pa.int64() if is_counted else pa.float64()
    if pa.types.is_timestamp(kind) and hasattr(value, "nanosecond"):  # pandas'
        return pa.timestamp("ns", tz=kind.tz)
    return pa.float64() if pa.types.is_floating(kind) else kind


def fits(value: Any, kind: pa.DataType) -> bool:
    """Whether a column of this type stores the value unchanged."""
    if value is None:
        return True
    if isinstance(value, bool) != pa.types.is_boolean(kind):
        return False
    try:
        back = pa.scalar(value, kind).as_py()
        return bool(back == value or (back != back and value != value))  # NaN  # noqa: PLR0124
    except (ValueError, TypeError, OverflowError, NotImplementedError):
        return False


def as_bytes(buffer: pa.Buffer) -> npt.NDArray[np.uint8]:
    """A buffer as an array of bytes."""
    return np.frombuffer(buffer, dtype=np.uint8)
