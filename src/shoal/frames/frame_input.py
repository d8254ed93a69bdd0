"""A data frame of pandas, polars or Arrow as an Arrow table, and what is needed to return one of the same form."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import pyarrow as pa

from shoal.decode.header_names import unique_names
from shoal.errors import InputError

Library = Literal["pandas", "polars", "pyarrow"]

_UNNAMED: Final = "index"
"""What an index without a name is called, as `reset_index` calls it."""
_FRAME: Final = "give a data frame of pandas, polars or Arrow"
_NOT_FRAMES: Final = {
    "list": "such as pandas.DataFrame(rows)",
    "tuple": "such as pandas.DataFrame(rows)",
    "dict": "such as pandas.DataFrame(columns)",
    "ndarray": 'such as pandas.DataFrame(array, columns=["age", …])',
    "str": "such as pandas.read_csv(path), or let `shoal init` write a policy for the file",
    "PosixPath": "such as pandas.read_csv(path), or let `shoal init` write a policy for the file",
    "Series": "such as series.to_frame()",
    "Array": 'such as pyarrow.table({"name": column})',
    "ChunkedArray": 'such as pyarrow.table({"name": column})',
}
"""What to do with other things than frames, by the name of their type."""


@dataclass(frozen=True, slots=True)
class FrameInput:
    """The columns of a frame, and its form."""

    library: Library
    table: pa.Table
    labels: Mapping[str, Any]
    """The name of every column in the frame; in pandas it may be a number, anywhere it may be empty."""
    dtypes: Mapping[str, Any] = field(default_factory=dict)
    """Types of pandas or polars."""
    categories: Mapping[str, Any] = field(default_factory=dict)
    """The dictionary array of each column of categories, of which the type and the order of values are kept."""
    index: tuple[str, ...] = ()
    """Columns that are levels of the index of pandas."""
    row_labels: tuple[str, ...] = ()
    """What to call an index without a name that has more than row numbers and is no column."""


def read_frame(frame: Any) -> FrameInput:
    """Read a frame; levels of an index of pandas that have a name or repeat become columns."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(frame, pandas.DataFrame):
        return _from_pandas(pandas, frame)
    library: Library = "pyarrow"
    if polars is not None and isinstance(frame, polars.DataFrame | polars.LazyFrame):
        library, frame = "polars", frame.lazy().collect()
    table = _from_arrow(frame)
    _refuse_nothing(table.num_rows, table.num_columns)
    _refuse_twice(table.column_names)
    labels = dict(zip(unique_names(table.column_names), table.column_names, strict=True))
    table, categories = _without_categories(table.rename_columns([*labels]))
    dtypes = dict(zip(labels, frame.schema.values(), strict=True)) if library == "polars" else {}
    return FrameInput(library, table, labels, dtypes, categories)


def _from_arrow(frame: Any) -> pa.Table:
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if hasattr(frame, "__arrow_c_stream__"):
        try:
            table = pa.RecordBatchReader.from_stream(frame).read_all()
            return table.cast(pa.schema([(one.name, _without_views(one.type)) for one in table.schema]))
        except pa.ArrowInvalid:  # one column has this interface, too
            pass
    what = type(frame).__name__
    raise InputError(f"frame: is of type {what}; {_FRAME}" + (f", {_NOT_FRAMES[what]}" if what in _NOT_FRAMES else ""))


def _without_views(kind: Any) -> Any:
    """The type of text that all functions of Arrow take; polars gives views, which few do."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    return pa.large_list(_without_views(kind.value_type)) if pa.types.is_large_list(kind) else kind


def _refuse_nothing(rows: int, columns: int) -> None:
    if not columns:
        raise InputError("frame: has no columns; give a frame with a column for each thing that is known of a person")
    if not rows:
        raise InputError("frame: has no rows, so there is nobody to anonymize; check how it was read or filtered")


def _refuse_twice(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"columns {', '.join(map(repr, twice))}: occur more than once; rename them")


# ---- categories


def _without_categories(table: pa.Table) -> tuple[pa.Table, dict[str, Any]]:
    """The values in place of codes: categories of other rows must not be published."""
    found = {}
    for place, one in enumerate(table.schema):
        if pa.types.is_dictionary(one.type):
            column = _unified(table.column(place), one.type)
            found[one.name] = column.slice(0, 0)
            table = table.set_column(place, one.name, column.dictionary_decode())
    return table, found


def _unified(column: Any, kind: Any) -> Any:
    """One array of categories, in the order of the first one."""
    own = pa.large_string() if pa.types.is_string_view(kind.value_type) else kind.value_type  # views are not decoded
    parts = [pa.DictionaryArray.from_arrays(part.indices, part.dictionary.cast(own), ordered=kind.ordered)
             for part in column.chunks]  # fmt: skip
    return pa.chunked_array(parts).unify_dictionaries().combine_chunks()


# ---- pandas


def _from_pandas(pandas: Any, frame: Any) -> FrameInput:
    if isinstance(frame.columns, pandas.MultiIndex):
        raise InputError(
            "columns: have names of several levels; give each one name, such as with "
            'frame.columns = ["_".join(map(str, names)) for names in frame.columns]'
        )
    _refuse_nothing(*frame.shape)
    levels = _levels(frame)
    columns = [*levels.items(), *frame.items()]
    written = [str(name) for name, _ in columns]
    _refuse_twice(written)
    names = unique_names(written)
    arrays = {name: _array(pandas, name, column) for name, (_, column) in zip(names, columns, strict=True)}
    table, categories = _without_categories(pa.table(arrays))
    is_numbered = isinstance(frame.index, pandas.RangeIndex) or frame.index.names != [None] or levels
    return FrameInput(
        "pandas", table, dict(zip(names, (name for name, _ in columns), strict=True)),
        {name: column.dtype for name, (_, column) in zip(names, columns, strict=True)}, categories,
        tuple(map(str, levels)), () if is_numbered else ("row labels",),
    )  # fmt: skip


def _levels(frame: Any) -> dict[Any, Any]:
    """Levels of the index that have a name or repeat, as persons do and row numbers do not."""
    levels = [frame.index.get_level_values(place) for place in range(frame.index.nlevels)]
    named = {_UNNAMED if one.name is None else one.name: one for one in levels
             if one.name is not None or not one.is_unique}  # fmt: skip
    taken = {str(name) for name in frame.columns}
    return {name: one.to_series(index=frame.index) for name, one in named.items() if str(name) not in taken}


def _array(pandas: Any, name: str, column: Any) -> Any:
    if isinstance(column.dtype, pandas.SparseDtype):
        column = column.sparse.to_dense()
    elif isinstance(column.dtype, pandas.PeriodDtype):
        column = column.dt.to_timestamp()
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # their words contain a value
        raise InputError(f"column {name!r}: {_why_not(column)}") from None


def _why_not(column: Any) -> str:
    kinds = sorted({type(value).__name__ for value in column.dropna()})
    if kinds == ["int"]:
        return "has whole numbers of more than 64 bits; convert it to text, such as with .astype(str)"
    if len(kinds) == 1:
        return f"has values of type {kinds[0]}; convert it to numbers, moments or text, or leave it out"
    return f"has values of several types ({', '.join(kinds)}); convert it to one"
