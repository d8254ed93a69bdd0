"""What a policy says about reading that no file format knows: rows as persons, and what numbers in the time count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.decode.base import Decoded, Decoder, Position, Problem
from shoal.decode.columns import first_problems, null_rows
from shoal.errors import InputError
from shoal.policy.stream import ROW
from shoal.times import UNIT_NAMES, UNITS, column_ns, is_time_type

_TIME: Final = pa.timestamp("ns", tz="UTC")


class PreparedDecoder(Decoder):
    """Another decoder, with a column of row numbers added and the time column turned into timestamps.

    Parameters
    ----------
    name
        What the file is called in messages.
    columns
        The columns of every batch, in order.
    row
        The column to fill with the number of the row in the stream; left alone where the file has it.
    first
        The number of the first row that `batches` gives.
    time, unit
        The column whose numbers count this unit (``"ms"``, …), if any. A value that is no time is a problem.
    known
        Columns of the first file, where this is a later one: it must not have a column `row` that the first lacks.
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
        """Whether rows are numbered, because the file has no column of that name."""
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
            self._next += decoded.batch.num_rows

    def close(self) -> None:
        self._inner.close()

    def _checked(self) -> pa.Schema:
        schema = self._inner.schema
        if self._known is not None and self._row in schema.names and self._row not in self._known:
            raise InputError(
                f"{self._name}: has a column {self._row!r} and the first file has not; read them on their own, or name "
                "the column that says who in all of them"
            )
        return schema

    def _prepared(self, decoded: Decoded, schema: pa.Schema, *, numbers_rows: bool) -> Decoded:
        batch, problems = decoded.batch, decoded.problems
        columns: dict[str, Any] = dict(zip(batch.schema.names, batch.columns, strict=True))
        if self._time is not None and _counts(columns[self._time].type):
            columns[self._time], wrong = self._timestamps(columns[self._time])
            problems = first_problems([*problems, *wrong])
        if numbers_rows:
            columns[ROW] = pa.array(np.arange(self._next, self._next + batch.num_rows, dtype=np.int64))
        if len(problems) > len(decoded.problems) or numbers_rows:
            columns = dict(zip(columns, null_rows(list(columns.values()), problems), strict=True))
        arrays = [columns[name] for name in schema.names]
        return Decoded(pa.RecordBatch.from_arrays(arrays, schema=schema), problems, decoded.position, decoded.lines)

    def _timestamps(self, column: Any) -> tuple[Any, list[Problem]]:
        times, usable = column_ns(column, UNITS[self._unit])
        present = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
        reason = (
            f'not a time between 1824 and 2116 in {UNIT_NAMES[self._unit]} (time_unit = "{self._unit}"); correct it, '
            "or time_unit in [stream]"
        )
        wrong = [Problem(int(row), self._time, reason) for row in np.flatnonzero(present & ~usable)]
        return pa.array(times, mask=~usable).cast(pa.timestamp("ns")).cast(_TIME), wrong


def _counts(kind: pa.DataType) -> bool:
    """Whether values of a type may be numbers that count a unit of time."""
    return is_time_type(kind) and not (pa.types.is_timestamp(kind) or pa.types.is_date(kind))
