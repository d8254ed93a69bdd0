"""Reads tuples: columns or single records become arrays, their times move the clock of the stream."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.kernels import clock as clock_kernel
from shoal.kernels.columns import mark_missing
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.clock import move_by_all, move_clock
from shoal.methods.arrow_input import plain
from shoal.methods.base import Record
from shoal.methods.quasi_readers import Bools, Floats, Ints, reader_of
from shoal.methods.release import NO_REASON
from shoal.methods.schema_arrays import compile_shape
from shoal.methods.schema_reader import AHEAD, Chunk, SchemaReader, Single
from shoal.methods.tuples.sensitive import Coded, SensitiveCodes, readable
from shoal.methods.tuples.settings import TupleSettings
from shoal.times import EARLIEST

MASK_BITS: Final = 63


class TupleReader:
    """Reads the columns that a schema names, and numbers the sensitive values that diversity is required of."""

    def __init__(self, settings: TupleSettings, secret: Secret) -> None:
        schema = settings.schema
        self.quasi = [reader_of(role) for role in schema.quasi]
        self.columns = SchemaReader(schema, self.quasi, secret, is_timed=settings.is_timed)
        self.shape = compile_shape(schema.quasi, [reader.leaves for reader in self.quasi])
        declared = settings.declared or {}
        self.codes = [SensitiveCodes(name, declared.get(name)) for name in schema.sensitive if settings.is_diverse]

    def check_types(self, fields: pa.Schema) -> None:
        """Raise InputError where a column has a type that cannot be used."""
        self.columns.check_types(fields)
        for column in self.codes:
            column.check_type(fields.field(column.name).type)

    def set_types(self, schema: pa.Schema, *, is_bound: bool) -> None:
        """Prepare for input of these types."""
        for column in self.codes:
            column.set_type(schema.field(column.name).type, is_bound=is_bound)

    # ---- batches

    def check_room(self, batches: list[pa.RecordBatch]) -> None:
        """Raise InputError where these batches have too many sensitive values in all."""
        for column in self.codes:
            whole = pa.chunked_array([plain(batch.column(column.name)) for batch in batches])
            column.check_room(readable(whole.unique(), column.name))

    def code_sensitive(self, batch: pa.RecordBatch, usable: Bools) -> Ints:
        """The numbers of the usable rows' sensitive values; raise InputError, with nothing changed, if too many."""
        chosen = pa.array(usable)
        coded = [Coded(batch.column(column.name).filter(chosen), column.name) for column in self.codes]
        for known, column in zip(self.codes, coded, strict=True):
            known.check_room(column.values)
        columns = [column.codes(known) for known, column in zip(self.codes, coded, strict=True)]
        return np.array(columns, dtype=np.int64).reshape(len(columns), int(usable.sum()))

    def arrivals(self, chunk: Chunk, rows: Ints, times: Ints, codes: Ints) -> t.Arrivals:
        """The usable rows of a chunk as the kernels read them."""
        lanes = np.zeros(len(rows), dtype=np.int64)
        masks = masks_of(chunk.values, chunk.has_gaps)
        return t.Arrivals(chunk.values, chunk.raws, masks, chunk.persons, rows, times, lanes, codes)

    # ---- single records

    def read_one(self, record: Record, known: pa.Schema | None) -> tuple[Single, pa.Schema]:
        """Read one record; return it and its types. Raise InputError, with nothing changed, where it cannot be read."""
        types = self.columns.check_record(record, known)
        for column in self.codes:
            column.check_type(types.field(column.name).type)
            column.check_room([record.get(column.name)])
        return self.columns.read_one(record), types

    def arrival(self, record: Single, row: int, time: int) -> t.Arrivals:
        """One usable record as the kernels read it."""
        raw = np.array(record.raws, dtype=np.float64).reshape(-1, 1)
        values = np.array([reader.scaled(one) for reader, one in zip(self.quasi, raw, strict=True)])
        mask = np.zeros((1, (len(raw) + MASK_BITS - 1) // MASK_BITS), dtype=np.int64)
        for a, value in enumerate(record.raws):
            if value == value:  # noqa: PLR0124 - not NaN
                mask[0, a // MASK_BITS] |= 1 << (a % MASK_BITS)
        codes = np.array([column.code_all([record.given.get(column.name)]) for column in self.codes], dtype=np.int64)
        return t.Arrivals(
            values, raw, mask, record.keys, np.array([row], dtype=np.int64), np.array([time], dtype=np.int64),
            np.zeros(1, dtype=np.int64),
            codes.reshape(len(self.codes), 1),
        )  # fmt: skip


def masks_of(values: Floats, has_gaps: Bools) -> Ints:
    """Which attributes each tuple carries, as bits; `has_gaps` says of which attributes values are missing."""
    wide, count = values.shape
    words = [(1 << min(wide - first, MASK_BITS)) - 1 for first in range(0, wide, MASK_BITS)]
    masks = np.tile(np.array(words, dtype=np.int64), (count, 1))
    mark_missing(values, has_gaps, MASK_BITS, masks)
    return masks


class StreamClock:
    """Event time that never goes back and moves with the records.

    An event too far ahead moves it only when a second person confirms it.
    """

    def __init__(self, max_gap_ns: int) -> None:
        self._max_gap = max_gap_ns
        self.state = np.zeros(clock_kernel.CLOCK, dtype=np.int64)
        self.state[clock_kernel.NEWEST] = EARLIEST

    @property
    def now(self) -> int:
        """The time of the stream."""
        return int(self.state[clock_kernel.NEWEST])

    def moved(self, persons: Ints, given: Ints, reasons: npt.NDArray[np.int16]) -> tuple[Ints, Ints]:
        """The clock's state after a chunk, and the time at each usable row; marks rows too far ahead in `reasons`.

        The clock itself does not move: assign the returned state when the chunk is accepted.
        """
        state = self.state.copy()
        usable = np.flatnonzero(reasons == NO_REASON)
        codes, newest = np.zeros(len(usable), dtype=np.int8), np.zeros(len(usable), dtype=np.int64)
        move_by_all(state, persons[usable], given[usable], self._max_gap, codes, newest)
        is_ahead = codes == clock_kernel.AHEAD
        reasons[usable[is_ahead]] = AHEAD
        return state, newest[~is_ahead]

    def move(self, keys: Any, time: int) -> bool:
        """Let one person's event move the clock; False where it is too far ahead."""
        code = move_clock(self.state, keys[0, 0], keys[0, 1], time, self._max_gap)
        return bool(code != clock_kernel.AHEAD)

    def advance(self, time: int) -> None:
        """Move the clock without a record."""
        if self.state[clock_kernel.STARTED] == 0 or time > self.now:
            self.state[clock_kernel.NEWEST] = time
            self.state[clock_kernel.STARTED] = self.state[clock_kernel.CONFIRMED] = 1

    def confirm(self) -> None:
        """Never start over: rows were decided by this clock."""
        if self.state[clock_kernel.STARTED]:
            self.state[clock_kernel.CONFIRMED] = 1
