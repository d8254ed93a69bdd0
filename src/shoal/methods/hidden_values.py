"""Values under nulls: Arrow keeps them in its buffers and would publish them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa


def picked(column: pa.Array, rows: pa.Array) -> pa.Array:
    """Some rows of a column, without values under nulls.

    Arrow clears values under nulls when it takes rows, but not in the children of a null struct.
    """
    return with_null_children(column).take(rows)


def with_null_children(column: pa.Array) -> pa.Array:
    """The same column; where a struct is null, however deep inside, its children are null as well."""
    if not has_struct(column.type):
        return column
    if pa.types.is_struct(column.type):
        children = [with_null_children(child) for child in column.flatten()]  # the struct's nulls become theirs
        return pa.StructArray.from_arrays(children, fields=list(column.type), mask=column.is_null())
    whole = column.take(pa.array(np.arange(len(column))))  # a slice shares its buffers with other rows
    values, nulls = with_null_children(whole.values), whole.is_null()
    if pa.types.is_fixed_size_list(column.type):
        return pa.FixedSizeListArray.from_arrays(values, type=column.type, mask=nulls)
    return type(whole).from_arrays(whole.offsets, values, type=column.type, mask=nulls)


def has_struct(kind: pa.DataType) -> bool:
    """Whether there is a struct in a type, at the top or in its lists."""
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    return pa.types.is_struct(kind) or (is_list and has_struct(kind.value_type))
