"""Decisions become publishable rows: pseudonyms, generalized values and carried columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.crypto.pseudonyms import Pseudonyms
from shoal.kernels.text_hashes import DIGITS
from shoal.methods.arrow_input import plain
from shoal.methods.base import Record
from shoal.methods.carried_columns import picked
from shoal.methods.repeated_values import repeated
from shoal.methods.text_keys import Bools, Bytes, Texts
from shoal.methods.z.crowds.columns import CrowdColumn
from shoal.methods.z.helper_thread import each
from shoal.methods.z.judge import Judged
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
        names = np.empty(DIGITS * np.count_nonzero(which), dtype=np.uint8)
        return self.joined([self.columns(judged, which, names)], names)

    def columns(self, judged: Judged, which: Bools, names: Bytes) -> list[pa.Array]:
        """The columns of some rows, apart from their pseudonyms, which are written to `names`."""
        rows = np.flatnonzero(which)
        arrivals, batch = judged.arrivals, judged.arrivals.batch
        people = Texts.of(batch.column(self._person))
        self._pseudonyms.write_names(people.offsets, people.data, rows, arrivals.times, names)
        return [
            plain(repeated(batch.column(self._time), rows)),
            *(
                column.values.publish(reading, rows, level.take(rows))
                for column, reading, level in zip(self._attributes, arrivals.readings, judged.levels, strict=True)
            ),
            *(plain(picked(batch.column(name), pa.array(rows))) for name in self._carry),
        ]

    def joined(self, parts: list[list[pa.Array]], names: Bytes) -> pa.RecordBatch:
        """A batch of the columns of one or more parts and the pseudonyms of all of them."""
        time, *others = each(_joined, list(zip(*parts, strict=True)), rows=len(names) // DIGITS)
        offsets = np.arange(0, len(names) + 1, DIGITS, dtype=np.int32)
        people = pa.StringArray.from_buffers(len(time), pa.py_buffer(offsets), pa.py_buffer(names))
        return pa.RecordBatch.from_arrays([time, people, *others], schema=self.schema)

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


def _joined(parts: Sequence[pa.Array]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
