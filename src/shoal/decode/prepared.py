"""Adds what no file format has: row numbers as persons, and times converted from the unit that the policy names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
        found = self._checked()
        kinds = {field.name: field.type for field in found}
        if self._time is not None and _counts(kinds[self._time]):
            kinds[self._time] = _TIME
        if self._row is not None:
            kinds.setdefault(self._row, pa.int64())
        return pa.schema([(name, kinds[name]) for name in self._columns])

    @property
    def types(self) -> dict[str, pa.DataType]:
        return self._inner.types

    def batches(self, position: Position | None = None) -> Iterator[Decoded]:
        schema, numbers_rows = self.schema, self.numbers_rows
        for decoded in self._inner.batches(position):
            yield self._prepared(decoded, schema, numbers_rows=numbers_rows)
            self._next += decoded.rows

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

    def _prepared(self, decoded: Decoded, schema: pa.Schema, *, numbers_rows: bool) -> Decoded:
        batch, refused, kept = decoded.batch, decoded.refused, decoded.kept
        columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
        if numbers_rows:
            columns[str(self._row)] = pa.array(self._next + kept)
        is_time = np.ones(batch.num_rows, dtype=np.bool_)
        if self._time is not None and _counts(columns[self._time].type):
            columns[self._time], is_time = self._timestamps(columns[self._time])
        rows = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
        if not is_time.all():
            reason = (
                f'not a time between 1824 and 2116 in {UNIT_NAMES[self._unit]} (time_unit = "{self._unit}"); '
                "correct it, or time_unit in [stream]"
            )
            wrong = (Refused(int(row), self._time, reason) for row in kept[~is_time])
            refused = tuple(sorted((*refused, *wrong), key=lambda one: one.row))
            rows = rows.filter(pa.array(is_time))
        return Decoded(rows, refused, decoded.position, decoded.lines)

    def _timestamps(self, column: Any) -> tuple[Any, npt.NDArray[np.bool_]]:
        """Convert numbers to timestamps; return which values are times or missing."""
        times, usable = column_ns(column, UNITS[self._unit])
        is_missing = np.asarray(column.is_null().to_numpy(zero_copy_only=False))
        return pa.array(times, mask=~usable).cast(pa.timestamp("ns")).cast(_TIME), usable | is_missing


def _counts(kind: pa.DataType) -> bool:
    """Whether a type may hold times as numbers."""
    return is_time_type(kind) and not (pa.types.is_timestamp(kind) or pa.types.is_date(kind))
