"""Decisions become publishable rows: pseudonyms, generalized values and carried columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.crypto.pseudonyms import Pseudonyms
from shoal.methods.arrow_input import plain
from shoal.methods.base import Record
from shoal.methods.carried_columns import picked
from shoal.methods.text_keys import Bools, Texts
from shoal.methods.z.columns import CrowdColumn
from shoal.methods.z.decider import Judged
from shoal.methods.z.settings import ZSettings


class Publisher:
    """Writes the rows that may be published; keeps no state of the stream."""

    def __init__(self, settings: ZSettings, attributes: Sequence[CrowdColumn], pseudonyms: Pseudonyms) -> None:
        self._person, self._time, self._carry = settings.person, settings.time, settings.carry
        self._attributes = attributes
        self._pseudonyms = pseudonyms
        self.schema = pa.schema([])

    def set_types(self, schema: pa.Schema) -> pa.Schema:
        """Prepare for input of these types; return the output schema."""
        self.schema = pa.schema(
            [
                (self._time, schema.field(self._time).type),
                (self._person, pa.string()),
                *((column.name, column.output_type(schema.field(column.name).type)) for column in self._attributes),
                *((name, schema.field(name).type) for name in self._carry),
            ]
        )
        return self.schema

    def rows(self, judged: Judged, which: Bools) -> pa.RecordBatch:
        """Some of the rows judged, as they may be published."""
        arrivals, rows = judged.arrivals, np.flatnonzero(which)
        batch, chosen = arrivals.batch, pa.array(rows)
        people = Texts.of(batch.column(self._person))
        names = self._pseudonyms.names(people.offsets, people.data, rows, arrivals.times[rows])
        offsets = np.arange(0, 32 * len(rows) + 1, 32, dtype=np.int32)
        columns = [
            plain(batch.column(self._time).take(chosen)),
            pa.StringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(names)),
            *(
                column.values.publish(reading, rows, level[rows])
                for column, reading, level in zip(self._attributes, arrivals.readings, judged.levels, strict=True)
            ),
            *(plain(picked(batch.column(name), chosen)) for name in self._carry),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def row(self, record: Record, person: str, time: int, texts: list[str | None], levels: list[int]) -> dict[str, Any]:
        """One record as it may be published."""
        row = {self._time: record[self._time], self._person: self._pseudonyms.name(person.encode(), time)}
        for column, text, level in zip(self._attributes, texts, levels, strict=True):
            if level < 0 or text is None:
                row[column.name] = None
            else:
                hierarchy = column.hierarchy
                row[column.name] = record[column.name] if hierarchy is None else hierarchy.path(text)[level]
        for name in self._carry:
            row[name] = record.get(name)
        return row
