"""Data frames of pandas, polars and Arrow, to Arrow and back; intervals in the form that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from shoal.encode.text import csv_column, is_interval
from shoal.errors import InputError, PolicyError

Library = Literal["pandas", "polars", "pyarrow"]
Intervals = Literal["text", "columns", "middle", "interval", "struct"]
UNNAMED: Final = "index"
"""What an index without a name is called, as `reset_index` calls it."""
INTERVALS: Final = ("text", "columns", "middle", "interval", "struct")


def library_of(frame: Any) -> Library:
    """The library of a data frame; anything else with the Arrow interface gets an Arrow table back."""
    package = type(frame).__module__.partition(".")[0]
    if package == "pandas":
        return "pandas"
    if package == "polars":
        return "polars"
    if hasattr(frame, "__arrow_c_stream__") or isinstance(frame, pa.RecordBatch):
        return "pyarrow"
    raise InputError("frame: must be a data frame of pandas, polars or Arrow")


def to_arrow(frame: Any) -> tuple[pa.Table, list[str]]:
    """The columns of a frame, and the names of those that are in the index of a pandas frame."""
    table = _columns(frame)
    index = _index_of(frame) if library_of(frame) == "pandas" else {}
    index = {name: level for name, level in index.items() if name not in table.column_names}
    for name, level in index.items():
        table = table.append_column(name, level)
    return table, list(index)


def _columns(frame: Any) -> pa.Table:
    table = _from_pandas(frame) if library_of(frame) == "pandas" else _from_other(frame)
    _refuse_twice(table.column_names)
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):  # categories of other rows must not be published
            table = table.set_column(place, field.name, _decoded(table.column(place)))
    return table


def _decoded(column: Any) -> Any:
    kind = column.type.value_type
    kind = pa.large_string() if pa.types.is_string_view(kind) else kind  # views cannot be decoded
    parts = [pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(kind)) for part in column.chunks]
    return pa.chunked_array([part.dictionary_decode() for part in parts], kind)


def _refuse_twice(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"columns {', '.join(map(repr, twice))}: occur more than once; rename them")


def _from_pandas(frame: Any) -> pa.Table:
    names = [str(name) for name in frame.columns]
    _refuse_twice(names)
    arrays = [_array(name, column) for name, (_, column) in zip(names, frame.items(), strict=True)]
    return pa.table(arrays, names=names)


def _array(name: str, values: Any) -> Any:
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # their words contain a value
        raise InputError(f"column {name!r}: has values of several types; convert it to one") from None


def _index_of(frame: Any) -> dict[str, Any]:
    """The levels of an index that have a name or repeat, as persons do and row numbers do not."""
    levels = [frame.index.get_level_values(place) for place in range(frame.index.nlevels)]
    levels = [level for level in levels if level.name is not None or not level.is_unique]
    names = [UNNAMED if level.name is None else str(level.name) for level in levels]
    arrays = (_array(name, level.to_series()) for name, level in zip(names, levels, strict=True))
    return {name: _without_categories(values) for name, values in zip(names, arrays, strict=True)}


def _without_categories(values: Any) -> Any:
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _from_other(frame: Any) -> pa.Table:
    frame = frame.collect() if hasattr(frame, "collect") else frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    return frame if isinstance(frame, pa.Table) else pa.RecordBatchReader.from_stream(frame).read_all()


def from_arrow(rows: pa.Table, library: Library, intervals: Intervals) -> Any:
    """Released rows as a frame of the library."""
    if intervals not in INTERVALS:
        raise PolicyError(f"intervals: must be one of {', '.join(INTERVALS)}")
    if intervals == "interval" and library != "pandas":
        raise PolicyError('intervals: "interval" is for pandas; choose text, columns, middle or struct')
    columns: dict[str, Any] = {}
    for name in rows.column_names:
        column = rows.column(name).combine_chunks()
        shaped = _shaped(name, column, intervals) if is_interval(column.type) else {name: column}
        _refuse_twice([*columns, *shaped])
        columns |= shaped
    if library != "pandas":
        table = pa.table(columns)
        return import_module("polars").from_arrow(table) if library == "polars" else table
    pandas = import_module("pandas")
    ends = {name: column for name, column in columns.items() if is_interval(column.type) and intervals == "interval"}
    frame = pa.table({name: column for name, column in columns.items() if name not in ends}).to_pandas()
    for name, column in ends.items():
        frame[name] = _pandas_intervals(pandas, column)
    return frame[list(columns)]


def _shaped(name: str, column: Any, intervals: Intervals) -> dict[str, Any]:
    if intervals in ("struct", "interval"):
        return {name: column}
    if intervals == "text":
        return {name: csv_column(column)}
    low, high = (pc.struct_field(column, end) for end in ("lo", "hi"))  # null where the interval is
    if intervals == "columns":
        return {f"{name}_low": low, f"{name}_high": high}
    if pa.types.is_timestamp(low.type):
        whole = pc.divide(pc.add(low.cast(pa.int64()), high.cast(pa.int64())), 2)
        return {name: whole.cast(low.type)}
    return {name: pc.divide(pc.add(low.cast(pa.float64()), high.cast(pa.float64())), 2)}


def _pandas_intervals(pandas: Any, column: Any) -> Any:
    low, high = (pc.struct_field(column, end).to_pandas() for end in ("lo", "hi"))
    return pandas.arrays.IntervalArray.from_arrays(low, high, closed="both")
