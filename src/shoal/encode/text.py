"""Converts columns to text, the same way in every text format: times in ISO 8601, intervals as [lo, hi]."""

from __future__ import annotations

from typing import Any, Final

import orjson
import pyarrow as pa
import pyarrow.compute as pc

_TO_ESCAPE: Final = r'["\\\x00-\x1f]'


def is_interval(kind: pa.DataType) -> bool:
    """Whether a type is that of generalized numbers: struct<lo, hi>."""
    return bool(pa.types.is_struct(kind)) and [field.name for field in kind] == ["lo", "hi"]


def plain_column(column: Any) -> Any:
    """Without dictionary, run-end or extension encoding."""
    if isinstance(column, pa.ExtensionArray):
        return plain_column(column.storage)
    if pa.types.is_dictionary(column.type):
        return plain_column(column.dictionary_decode())
    if pa.types.is_run_end_encoded(column.type):
        return plain_column(pc.run_end_decode(column))
    return column


def csv_column(column: Any) -> Any:
    """A column for the CSV writer: numbers and booleans unchanged, NaN as null, everything else as text."""
    column = plain_column(column)
    kind = column.type
    if is_interval(kind):
        return _interval(column, _bare(column.field("lo")), _bare(column.field("hi")), gap=", ")
    if pa.types.is_nested(kind):
        return _where_valid(column, json_column(column))
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
    return column if pa.types.is_integer(kind) or pa.types.is_boolean(kind) else _bare(column)


def json_column(column: Any) -> Any:
    """Every value as JSON text, null as `null`; the result has no nulls."""
    column = plain_column(column)
    kind = column.type
    if is_interval(kind):
        text = _interval(column, json_column(column.field("lo")), json_column(column.field("hi")), gap=",")
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        text = _list(column)
    elif pa.types.is_nested(kind):
        text = _encoded(column.to_pylist())
    elif pa.types.is_floating(kind):
        text = _float(column)
    elif pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_decimal(kind):
        text = column.cast(pa.string())
    else:
        text = _quoted(_bare(column))
    return pc.fill_null(text, "null")


def is_binary(kind: pa.DataType) -> bool:
    """Whether values are bytes."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _bare(column: Any) -> Any:
    """Values as text without quotes, null as null."""
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _timestamp(column)
    if is_binary(kind):
        return pa.array([None if value is None else value.hex() for value in column.to_pylist()], pa.string())
    return column.cast(pa.string())


def _timestamp(column: Any) -> Any:
    """ISO 8601; a time with a zone is converted to UTC and ends in Z."""
    text = column.cast(pa.timestamp(column.type.unit)).cast(pa.string())
    text = pc.replace_substring(text, " ", "T", max_replacements=1)
    if column.type.unit != "s":
        # By row, not by column: how a time is written must not depend on its neighbours.
        text = pc.replace_substring_regex(text, r"\.?0+$", "")
    return text if column.type.tz is None else pc.binary_join_element_wise(text, "Z", "")


def _interval(column: Any, low: Any, high: Any, *, gap: str) -> Any:
    text = pc.binary_join_element_wise("[", low, gap, high, "]", "", null_handling="replace", null_replacement="")
    return _where_valid(column, text)


def _where_valid(column: Any, text: Any) -> Any:
    return pc.if_else(column.is_valid(), text, pa.scalar(None, text.type)) if column.null_count else text


def _list(column: Any) -> Any:
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    items = json_column(column.flatten())
    offsets = pa.array([0, *lengths.cumsum()], pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, items), ",")
    return _where_valid(column, pc.binary_join_element_wise("[", joined, "]", ""))


def _float(column: Any) -> Any:
    """NaN and infinity become null: JSON has neither. Whole numbers get a point, so that readers see one type."""
    text = pc.if_else(pc.is_finite(column), column.cast(pa.string()), pa.scalar(None, pa.string()))
    return pc.replace_substring_regex(text, r"^(-?\d+)$", r"\1.0")


def _quoted(text: Any) -> Any:
    if pc.any(pc.match_substring_regex(text, _TO_ESCAPE)).as_py():
        return _encoded(text.to_pylist())
    return pc.binary_join_element_wise('"', text, '"', "")


def _encoded(values: list[Any]) -> Any:
    return pa.array([None if value is None else orjson.dumps(value) for value in values], pa.binary()).cast(pa.string())
