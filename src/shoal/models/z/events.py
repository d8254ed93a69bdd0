"""Events (person, time, value) as arrays of codes, from Arrow data or plain records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import InputError
from shoal.times import column_ns, is_time_type, value_ns

Ints = npt.NDArray[np.int64]


USUAL_NAMES: Final = {
    "person": ("user", "person", "user_id", "userid", "userId", "uid", "visitor", "customer", "client", "id"),
    "time": ("ts", "time", "timestamp", "datetime", "date", "t"),
    "attribute": ("site", "attribute", "value", "item", "page", "url", "host", "domain", "venue", "place", "product"),
}
"""Column names tried where none is given."""


@dataclass(frozen=True, slots=True)
class Events:
    """Events in time order. Codes distinguish people and values and mean nothing else."""

    times: Ints
    """In nanoseconds, ascending."""
    persons: Ints
    values: Ints
    unusable: int = 0
    """Rows that lack a person, a time or a value."""
    late_ns: int = 0
    """The largest delay of an event behind the newest one before it."""

    def __len__(self) -> int:
        return len(self.times)

    @property
    def people(self) -> int:
        """How many different people there are."""
        return len(np.unique(self.persons))

    def within(self, windows: Ints, window_ns: int) -> Events:
        """Events of some windows."""
        kept = np.isin(self.times // window_ns, windows)
        return Events(self.times[kept], self.persons[kept], self.values[kept])


def read_events(
    stream: Any, *, person: str | None = None, time: str | None = None, attribute: str | None = None
) -> Events:
    """Read a stream: an Arrow table, batch or reader, an Arrow-compatible frame, batches, or records as dicts.

    Columns that are not named are looked for by their usual names.
    """
    given, found = (person, time, attribute), _arrow(stream)
    if found is not None:
        columns = _chosen(found.column_names, given)
    else:
        rows, names = _peeked(stream)
        columns = _chosen(names, given)
        found = _records(rows, columns, columns[1])
    _require(found, columns)
    return _events(found, columns)


def _peeked(stream: Any) -> tuple[Iterator[Any], list[str]]:
    """Rows or batches, and the names of the first one's columns."""
    if isinstance(stream, str | bytes | Mapping) or not isinstance(stream, Iterable):
        raise InputError("stream: must be an Arrow table, batches, or records as dicts")
    rows = iter(stream)
    first = next(rows, None)
    if first is None:
        return iter(()), []
    named = first.schema.names if isinstance(first, pa.RecordBatch) else first
    return chain([first], rows), [str(name) for name in named] if isinstance(named, Mapping | list) else []


def _chosen(names: list[str], given: tuple[str | None, ...]) -> tuple[str, str, str]:
    """The three columns: as given, else by the first usual name that is there."""
    chosen: list[str] = []
    for (role, usual), name in zip(USUAL_NAMES.items(), given, strict=True):
        others = {*chosen, *given}
        found = name or next((one for one in usual if one in names and one not in others), None)
        if found is None:
            raise InputError(f"{role}: name the column; none has a usual name such as {usual[0]!r} or {usual[1]!r}")
        chosen.append(found)
    if len(set(chosen)) < len(chosen):
        raise InputError("person, time, attribute: must be three different columns")
    return chosen[0], chosen[1], chosen[2]


def _arrow(stream: Any) -> pa.Table | None:
    """The stream as a table, where it is Arrow data."""
    if isinstance(stream, pa.Table):
        return stream
    if isinstance(stream, pa.RecordBatch):
        return pa.Table.from_batches([stream])
    if isinstance(stream, pa.RecordBatchReader):
        return stream.read_all()
    if hasattr(stream, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(stream).read_all()
    return None


def _records(rows: Iterator[Any], columns: tuple[str, ...], time: str) -> pa.Table:
    first = next(rows, None)
    if isinstance(first, pa.RecordBatch):
        return pa.Table.from_batches([first, *rows])
    kept: dict[str, list[Any]] = {name: [] for name in columns}
    seen: set[str] = set()
    for record in chain([] if first is None else [first], rows):
        if not isinstance(record, Mapping):
            raise InputError("stream: must be an Arrow table, batches, or records as dicts")
        seen.update(name for name in columns if name in record)
        for name in columns:
            value = record.get(name)
            kept[name].append(value_ns(value) if name == time else value)
    arrays = {name: _array(name, values, is_time=name == time) for name, values in kept.items()}
    return pa.table({name: arrays[name] for name in columns if name in seen or first is None})


def _array(name: str, values: list[Any], *, is_time: bool) -> pa.Array:
    try:
        return pa.array(values, type=pa.timestamp("ns") if is_time else None, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        raise InputError(f"column {name!r}: has values of different kinds; give all as text") from None


def _require(table: pa.Table, columns: tuple[str, ...]) -> None:
    for name in columns:
        if table.column_names.count(name) != 1:
            has = ", ".join(map(repr, table.column_names)) or "no columns"
            raise InputError(f"column {name!r}: is not there once; the stream has {has}")
    if not is_time_type(table.schema.field(columns[1]).type):
        raise InputError(f"column {columns[1]!r}: cannot be times; give timestamps, seconds or ISO 8601 text")


def _events(table: pa.Table, columns: tuple[str, ...]) -> Events:
    person, time, attribute = columns
    times, is_usable = column_ns(table[time].combine_chunks()) if len(table) else (np.zeros(0, np.int64),) * 2
    codes = [_codes(name, table[name]) for name in (person, attribute)]
    usable = np.flatnonzero(is_usable.astype(np.bool_) & (codes[0] >= 0) & (codes[1] >= 0))
    arrived = times[usable]
    late = int((np.maximum.accumulate(arrived) - arrived).max(initial=0))
    order = usable[np.argsort(arrived, kind="stable")]
    return Events(times[order], codes[0][order], codes[1][order], len(table) - len(order), late)


def _codes(name: str, column: pa.ChunkedArray) -> Ints:
    """A number for every distinct value, -1 for null."""
    if not len(column):
        return np.zeros(0, np.int64)
    try:
        array = column.combine_chunks()
        encoded = array if pa.types.is_dictionary(array.type) else array.dictionary_encode()
        # a dictionary in the input may contain a value twice or unused values
        indices = pc.fill_null(encoded.indices.cast(pa.int64()), -1)
        dictionary = encoded.dictionary
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        raise InputError(f"column {name!r}: contains lists or tables; give one text or number per row") from None
    plain = dictionary.dictionary_encode()
    same = np.append(np.asarray(pc.fill_null(plain.indices.cast(pa.int64()), -1)), -1)
    found: Ints = same[np.asarray(indices)]
    return found
