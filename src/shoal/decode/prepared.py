"""Adds what no file format has: row numbers as persons, and times converted from the unit that the policy names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.decode.base import Decoded, Decoder, Position, Refused
from shoal.errors import InputError
from shoal.times import UNIT_NAMES, UNITS, column_ns, is_time_type

_TIME: Final = pa.timestamp("ns", tz="UTC")


class PreparedDecoder(Decoder):
    """Another decoder, with a column of row numbers added and the time column converted to timestamps.

    Parameters
    ----------
    name
        The name of the file in messages.
    columns
        The columns of every batch, in order.
    row
        The column to fill with the number of the row in the stream; unchanged if the file has it.
    first
        The number of the first row that `batches` returns.
    time, unit
        The column of numeric times and their unit (``"ms"``, …), if any. A value that is not a time is refused.
    known
        Columns of the first file, if this is a later one: it must not have a column `row` that the first lacks.
    """

    def __init__(
        self,
        inner: Decoder,
        *,
        name: str,
        columns: Sequence[str],
        row: str | None,
        first: int,
        time: str | None,
        unit: str,
        known: frozenset[str] | None,
    ) -> None:
        self._inner, self._name = inner, name
        self._columns = tuple(dict.fromkeys(columns))
        self._row, self._next = row, first
        self._time, self._unit = time, unit
        self._known = known

    @property
    def numbers_rows(self) -> bool:
        return self._row is not None and self._row not in self._checked().names

    @property
    def schema(self) -> pa.Schema:
        return prepared_schema(self._checked(), self._columns, row=self._row, time=self._time)

    @property
    def types(self) -> dict[str, pa.DataType]:
        return self._inner.types

    def batches(self, position: Position | None = None) -> Iterator[Decoded]:
        schema, numbers_rows = self.schema, self.numbers_rows
        for decoded in self._inner.batches(position):
            first, self._next = self._next, self._next + decoded.rows
            timed = decoded if self._time is None else with_times(decoded, self._time, self._unit)
            yield with_row_numbers(timed, str(self._row), first, schema) if numbers_rows else timed

    def close(self) -> None:
        self._inner.close()

    def _checked(self) -> pa.Schema:
        schema = self._inner.schema
        if self._known is not None and self._row in schema.names and self._row not in self._known:
            raise InputError(
                f"{self._name}: has a column {self._row!r} but the first file does not; read them separately, or name "
                "the person's column in all of them"
            )
        return schema


def prepared_schema(found: pa.Schema, columns: Sequence[str], *, row: str | None, time: str | None) -> pa.Schema:
    """The schema of prepared batches, made of that of the batches as decoded."""
    kinds = {field.name: field.type for field in found}
    if time is not None and _counts(kinds[time]):
        kinds[time] = _TIME
    if row is not None:
        kinds.setdefault(row, pa.int64())
    return pa.schema([(name, kinds[name]) for name in columns])


def with_row_numbers(decoded: Decoded, row: str, first: int, schema: pa.Schema) -> Decoded:
    """Add the column of row numbers; `first` is the number of the first record, refused or not."""
    columns = {**_columns(decoded.batch), row: pa.array(first + decoded.kept)}
    batch = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
    return replace(decoded, batch=batch)


def with_times(decoded: Decoded, time: str, unit: str) -> Decoded:
    """Convert the column of times to timestamps if it holds numbers; refuse records whose number is not a time."""
    columns = _columns(decoded.batch)
    if not _counts(columns[time].type):
        return decoded
    columns[time], is_time = _timestamps(columns[time], unit)
    rows = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    if is_time.all():
        return replace(decoded, batch=rows)
    reason = (
        f'not a time between 1824 and 2116 in {UNIT_NAMES[unit]} (time_unit = "{unit}"); '
        "correct it, or time_unit in [stream]"
    )
    wrong = (Refused(int(row), time, reason) for row in decoded.kept[~is_time])
    refused = tuple(sorted((*decoded.refused, *wrong), key=lambda one: one.row))
    return replace(decoded, batch=rows.filter(pa.array(is_time)), refused=refused)


def _columns(batch: pa.RecordBatch) -> dict[str, Any]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _timestamps(column: Any, unit: str) -> tuple[Any, npt.NDArray[np.bool_]]:
    """Convert numbers to timestamps; return which values are times or missing."""
    times, usable = column_ns(column, UNITS[unit])
    is_missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
    return pa.array(times, mask=~usable).cast(pa.timestamp("ns")).cast(_TIME), usable | is_missing


def _counts(kind: pa.DataType) -> bool:
    """Whether a type may hold times as numbers."""
    return is_time_type(kind) and not (pa.types.is_timestamp(kind) or pa.types.is_date(kind))
