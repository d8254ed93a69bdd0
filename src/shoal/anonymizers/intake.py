"""What callers hand in, as Arrow batches of the columns a method reads, in types that stay the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.errors import InputError


def record_batches(data: Any) -> Iterator[pa.RecordBatch]:
    """Batches of anything that speaks Arrow: batches, tables, readers, pandas and polars frames."""
    if isinstance(data, pa.RecordBatch):
        yield data
    elif isinstance(data, pa.Table):
        yield from data.to_batches()
    elif hasattr(data, "__arrow_c_stream__"):
        yield from pa.RecordBatchReader.from_stream(data)
    elif hasattr(data, "__arrow_c_array__"):
        yield pa.record_batch(data)
    else:
        raise InputError(
            f"push_batch takes Arrow batches, tables, or frames of pandas and polars, not {type(data).__name__}"
        )


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type a column leaves in: no dictionaries, no views."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) else kind


def plain(column: pa.Array) -> pa.Array:
    """A column in the type it leaves in."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    wanted = plain_type(column.type)
    return column if column.type == wanted else column.cast(wanted)


def select(schema: pa.Schema, columns: Sequence[str]) -> pa.Schema:
    """The fields of these columns; raise InputError where one is missing or there twice."""
    fields = []
    for name in columns:
        places = schema.get_all_field_indices(name)
        if len(places) != 1:
            trouble = "there is no such column" if not places else "there are several columns of that name"
            raise InputError(
                f"column {name!r}: {trouble} among the {len(schema)} of the input; "
                "name the columns as the input does, each once"
            )
        fields.append(schema.field(places[0]))
    return pa.schema(fields)


def require_same(expected: pa.Schema, given: pa.Schema) -> None:
    """Raise InputError where a column changed its type in the middle of the stream."""
    for field in expected:
        kind = given.field(field.name).type
        if plain_type(kind) != plain_type(field.type):
            raise InputError(
                f"column {field.name!r}: was {plain_type(field.type)} and is now {plain_type(kind)}; "
                "give the whole stream in one type"
            )


def record_type(value: Any) -> pa.DataType:
    """The type of a column of values like this one; text where there is none yet."""
    if value is None:
        return pa.string()
    kind = pa.array([value]).type
    return pa.float64() if pa.types.is_integer(kind) else kind  # later numbers may have a fraction


def fits(value: Any, kind: pa.DataType) -> bool:
    """Whether a value can stand in a column of this type."""
    try:
        return value is None or pa.scalar(value, kind).is_valid
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError):
        return False


def as_bytes(buffer: pa.Buffer) -> npt.NDArray[np.uint8]:
    """A buffer as an array of bytes."""
    return np.frombuffer(buffer, dtype=np.uint8)
