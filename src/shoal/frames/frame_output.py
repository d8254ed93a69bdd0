"""Released rows as a frame of the library that the input came from, with its types, and ranges as asked for."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from shoal.encode.text import csv_column, is_interval
from shoal.errors import InputError
from shoal.frames.frame_input import FrameInput

Intervals = Literal["text", "columns", "middle", "interval", "struct"]
INTERVALS: Final = ("text", "columns", "middle", "interval", "struct")
Shown = dict[str, tuple[str, Any]]
"""Every published column: its name in the input, and its values."""
_ZONE: Final = r":\d{2}.*(Z|[+-]\d{2}(:?\d{2})?)$"
"""A text with a time and a zone."""


def write_frame(rows: pa.Table, read: FrameInput, unchanged: Collection[str], intervals: Intervals) -> Any:
    """Released rows as a frame: columns in the order of the input, `unchanged` ones with their types."""
    shown: Shown = {}
    for name in _in_order(rows.column_names, read):
        column = rows.column(name).combine_chunks()
        if is_interval(column.type):
            shaped = _shaped(name, _in_own_zone(column, read.table.column(name)), intervals)
        else:
            shaped = {name: _recoded(column, read.categories[name]) if _has_categories(name, read, unchanged)
                      else column}  # fmt: skip
        if twice := shown.keys() & shaped.keys():
            raise InputError(f"columns {', '.join(map(repr, sorted(twice)))}: occur more than once; rename them")
        shown |= {new: (name, one) for new, one in shaped.items()}
    if read.library == "pandas":
        return _to_pandas(shown, read, unchanged, intervals)
    table = pa.table({name: column for name, (_, column) in shown.items()})
    return _to_polars(table, read, unchanged) if read.library == "polars" else table


def _in_order(names: list[str], read: FrameInput) -> list[str]:
    """Columns in the order of the input; those that it lacks stay where they are."""
    own = [name for name in read.table.column_names if name in names]
    return [own.pop(0) if name in read.labels else name for name in names]


def _has_categories(name: str, read: FrameInput, unchanged: Collection[str]) -> bool:
    return name in unchanged and name in read.categories


def _recoded(column: Any, known: Any) -> Any:
    """Values as codes again, without categories of which no row is published.

    Categories without an order are sorted: theirs is often that of the input, and so tells whose value came first.
    """
    published = column.cast(known.type.value_type)
    kept = known.dictionary.filter(pc.is_in(known.dictionary, value_set=published.unique()))
    kept = kept if known.type.ordered else kept.take(pc.sort_indices(kept))
    codes = pc.index_in(published, value_set=kept).cast(known.type.index_type)
    return pa.DictionaryArray.from_arrays(codes, kept, ordered=known.type.ordered)


# ---- ranges


def _in_own_zone(column: Any, given: Any) -> Any:
    """Ranges of moments, which are in UTC, in the zone of the input, or without one if the input has none."""
    ends = [pc.struct_field(column, end) for end in ("lo", "hi")]
    if not pa.types.is_timestamp(ends[0].type):
        return column
    own = pa.timestamp(ends[0].type.unit, _zone(given))
    return pa.StructArray.from_arrays([end.cast(own) for end in ends], names=["lo", "hi"], mask=column.is_null())


def _zone(given: Any) -> str | None:
    if pa.types.is_timestamp(given.type):
        return given.type.tz  # type: ignore[no-any-return]
    if pa.types.is_date(given.type):
        return None
    is_text = not pa.types.is_integer(given.type)
    return None if is_text and not pc.any(pc.match_substring_regex(given.cast(pa.string()), _ZONE)).as_py() else "UTC"


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


# ---- libraries


def _to_polars(table: pa.Table, read: FrameInput, unchanged: Collection[str]) -> Any:
    polars = import_module("polars")
    frame = polars.from_arrow(table)
    for name in table.column_names:
        if _has_categories(name, read, unchanged) and isinstance(read.dtypes[name], polars.Enum):
            published = {*frame[name].cast(polars.String)}
            kept = [one for one in read.dtypes[name].categories if one in published]
            frame = frame.with_columns(polars.col(name).cast(polars.String).cast(polars.Enum(kept)))
    return frame


def _to_pandas(shown: Shown, read: FrameInput, unchanged: Collection[str], intervals: Intervals) -> Any:
    pandas = import_module("pandas")
    columns = [
        _intervals(pandas, column) if intervals == "interval" and is_interval(column.type)
        else _pandas_column(pandas, column, read.dtypes.get(name), keeps=name in unchanged)
        for name, column in shown.values()
    ]  # fmt: skip
    frame = pandas.DataFrame(dict(enumerate(columns)))
    frame.columns = pandas.Index([read.labels.get(name, name) for name in shown])
    return frame


def _intervals(pandas: Any, column: Any) -> Any:
    ends = (pc.struct_field(column, end).to_pandas() for end in ("lo", "hi"))
    return pandas.Series(pandas.arrays.IntervalArray.from_arrays(*ends, closed="both"))


def _pandas_column(pandas: Any, column: Any, dtype: Any, *, keeps: bool) -> Any:
    if isinstance(dtype, pandas.ArrowDtype):
        return _of_dtype(pandas, column, pandas.ArrowDtype(column.type))
    if keeps and not isinstance(dtype, pandas.CategoricalDtype):
        return _of_dtype(pandas, column, dtype)
    if hasattr(dtype, "numpy_dtype"):  # nullable: so are the ends and middles of its ranges
        nullable = {pa.int64(): pandas.Int64Dtype(), pa.float64(): pandas.Float64Dtype()}.get(column.type)
        if nullable is not None:
            return _of_dtype(pandas, column, nullable)
    return column.to_pandas()


def _of_dtype(pandas: Any, column: Any, dtype: Any) -> Any:
    if isinstance(dtype, pandas.PeriodDtype):
        return column.to_pandas().dt.to_period(dtype.freq)
    if str(dtype) == "object":  # a missing value stays None
        return pandas.Series(column.to_pylist(), dtype=object)
    if hasattr(dtype, "__from_arrow__"):
        return pandas.Series(dtype.__from_arrow__(pa.chunked_array([column])))
    return column.to_pandas().astype(dtype)
