"""Which Arrow types are used for what, and which can take the place of which."""

from __future__ import annotations

import pyarrow as pa


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The one type used for all that hold the same: views, large and encoded variants become the plain one.

    >>> plain_type(pa.dictionary(pa.int32(), pa.large_string()))
    DataType(string)
    """
    if isinstance(kind, pa.BaseExtensionType):
        return plain_type(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(plain_type(kind.value_type))
    return kind


def is_widening(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether values of one type have a place in the other: numbers stay numbers, text stays text."""
    source = plain_type(source)
    if source == target or pa.types.is_null(source):
        return True
    if pa.types.is_integer(source):
        return bool(pa.types.is_integer(target) or pa.types.is_floating(target))
    kinds = (pa.types.is_floating, pa.types.is_timestamp)
    return any(is_kind(source) and is_kind(target) for is_kind in kinds) or _is_text(source, target)


def _is_text(source: pa.DataType, target: pa.DataType) -> bool:
    return bool(plain_type(target) == pa.string() and source == pa.string())
