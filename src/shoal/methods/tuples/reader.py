"""Reads tuples: Arrow columns or single records become the arrays the kernels work on."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.errors import InputError
from shoal.kernels.tuples import layout as t
from shoal.methods.arrow_input import is_carriable, plain, plain_type
from shoal.methods.base import Record
from shoal.methods.chunk import Piece
from shoal.methods.quasi_readers import REFUSED, Bools, Floats, Ints, NumericReader, Reader, reader_of
from shoal.methods.refusals import BAD_TIME, FIRST_REFUSED, NULL_PERSON, NULL_TIME
from shoal.methods.schema_arrays import compile_shape
from shoal.methods.single_records import check_record, key_of, number_of
from shoal.methods.text_keys import as_text, is_text_like, key_words
from shoal.methods.trace import NO_REASON
from shoal.methods.tuples.sensitive import Coded, SensitiveCodes, readable
from shoal.methods.tuples.settings import TupleSettings
from shoal.times import column_ns, is_time_type, value_ns

MASK_BITS: Final = 63
Reasons = npt.NDArray[np.int16]


class Single(NamedTuple):
    """One record, read."""

    given: Record
    reason: int | None
    """Why it is refused; None where it is usable."""
    keys: Any
    """The person's keyed hash; None where there is no person."""
    time: int
    raws: list[Any]
    """Its quasi-identifiers as numbers."""
    clamped: int
    """How many of them are clamped."""


class TupleReader:
    """Reads the columns that a schema names, and numbers the sensitive values that diversity is required of."""

    def __init__(self, settings: TupleSettings, secret: Secret) -> None:
        schema = settings.schema
        self._schema, self._is_timed = schema, settings.is_timed
        self._person_key = key_words(secret.subkey("table of people"))
        self.quasi: list[Reader] = [reader_of(role) for role in schema.quasi]
        self.shape = compile_shape(schema.quasi, [reader.leaves for reader in self.quasi])
        declared = settings.declared or {}
        self.codes = [SensitiveCodes(name, declared.get(name)) for name in schema.sensitive if settings.is_diverse]
        numeric = [reader for reader in self.quasi if isinstance(reader, NumericReader)]
        self._numeric, self._clamping = numeric, [reader for reader in numeric if reader.clamps]
        self._columns = schema.columns

    # ---- types

    def assumed_schema(self) -> pa.Schema:
        """The input types assumed before anything was seen."""
        types = {reader.name: pa.float64() for reader in self._numeric}
        if self._is_timed:
            types = {str(self._schema.time): pa.timestamp("ns", tz="UTC"), **types}
        return pa.schema([(name, types.get(name, pa.string())) for name in self._columns])

    def check_types(self, fields: pa.Schema) -> None:
        """Raise InputError where a column has a type that cannot be used."""
        schema = self._schema
        if not is_text_like(fields.field(schema.person).type):
            raise InputError(f"column {schema.person!r}: cannot name people; give text or whole numbers")
        if self._is_timed and not is_time_type(fields.field(schema.time).type):
            raise InputError(f"column {schema.time!r}: no time; give timestamps, numbers of seconds, or ISO 8601 text")
        for reader in self.quasi:
            reader.check_type(plain_type(fields.field(reader.name).type))
        for name in (*schema.sensitive, *schema.carry):
            if not is_carriable(fields.field(name).type):
                raise InputError(f"column {name!r}: {fields.field(name).type} cannot be passed on; give a plain type")
        for column in self.codes:
            column.check_type(fields.field(column.name).type)

    # ---- batches

    def chunk(self, batch: pa.RecordBatch) -> Piece:
        """A batch to be read."""
        return Piece(batch, self._schema.person, self._person_key, self.quasi)

    def reasons(self, chunk: Piece, refused: list[Bools]) -> tuple[Reasons, Ints]:
        """Why rows cannot be used, given what each part of the chunk refuses; and the rows' times."""
        reasons = np.full(len(chunk), NO_REASON, dtype=np.int16)
        nameless, *by_column = refused
        for number, is_refused in reversed(list(enumerate(by_column))):  # the first column counts
            reasons[is_refused] = FIRST_REFUSED + number
        times = np.zeros(len(chunk), dtype=np.int64)
        if self._is_timed:
            column = chunk.batch.column(self._schema.time)
            times, is_valid = column_ns(column)
            is_missing = ~np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
            reasons[~is_valid] = np.where(is_missing[~is_valid], NULL_TIME, BAD_TIME)
        reasons[nameless] = NULL_PERSON
        return reasons, times

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

    def count_clamped(self, batch: pa.RecordBatch, usable: Bools) -> int:
        """How many values of usable rows are clamped."""
        return sum(reader.count_clamped(batch.column(reader.name), usable) for reader in self._clamping)

    def arrivals(self, chunk: Piece, rows: Ints, times: Ints, codes: Ints) -> t.Arrivals:
        """The usable rows of a chunk as the kernels read them."""
        lanes = np.zeros(len(rows), dtype=np.int64)
        return t.Arrivals(chunk.values, chunk.raws, masks_of(chunk.values), chunk.persons, rows, times, lanes, codes)

    # ---- single records

    def read_one(self, record: Record, known: pa.Schema | None) -> tuple[Single, pa.Schema]:
        """Read one record; return it and its types. Raise InputError, with nothing changed, where it cannot be read."""
        types = check_record(record, self._schema, self.quasi, self._columns, known)
        for column in self.codes:
            column.check_room([record.get(column.name)])
        person = as_text(record.get(self._schema.person))
        raws = [number_of(reader, record.get(reader.name)) for reader in self.quasi]
        given = record.get(self._schema.time) if self._schema.time and self._is_timed else 0
        time = value_ns(given) if self._is_timed else 0
        keys = key_of(self._person_key, person) if person else None
        if keys is None:
            reason: int | None = NULL_PERSON
        elif time is None:
            reason = NULL_TIME if given is None else BAD_TIME
        else:
            reason = next((FIRST_REFUSED + number for number, raw in enumerate(raws) if raw is REFUSED), None)
        clamped = (
            0 if reason is not None else sum(reader.is_clamped(record.get(reader.name)) for reader in self._clamping)
        )
        return Single(record, reason, keys, time or 0, raws, clamped), types

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


def masks_of(values: Floats) -> Ints:
    """Which attributes each tuple carries, as bits."""
    wide, count = values.shape
    words = [(1 << min(wide - first, MASK_BITS)) - 1 for first in range(0, wide, MASK_BITS)]
    masks = np.tile(np.array(words, dtype=np.int64), (count, 1))
    for a in range(wide):
        is_missing = np.isnan(values[a])
        if is_missing.any():
            masks[:, a // MASK_BITS] ^= is_missing.astype(np.int64) << (a % MASK_BITS)
    return masks
