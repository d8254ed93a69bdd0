"""Reads the columns that a schema names: people become keyed hashes, quasi-identifiers become numbers.

It also says why a record is refused, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.crypto.keys import Secret
from shoal.errors import InputError
from shoal.kernels.text_hashes import hash_texts
from shoal.methods.arrow_input import fits, is_carriable, plain, plain_type, record_type
from shoal.methods.base import Record
from shoal.methods.quasi_readers import REFUSED, Bools, Ints, NumericReader, Reader
from shoal.methods.release import NO_REASON, Refusal
from shoal.methods.text_keys import Texts, Words, as_text, is_text_like, key_words
from shoal.schema import Numeric, Schema
from shoal.times import column_ns, is_time_type, value_ns

Reasons = npt.NDArray[np.int16]
_LARGEST: Final = 2**53
"""Whole numbers up to this one are exact in a float."""

GENERAL: Final = ("null-person", "null-time", "bad-time", "ahead")
NULL_PERSON, NULL_TIME, BAD_TIME, AHEAD = range(4)
FIRST_REFUSED: Final = len(GENERAL)
_OUTSIDE: Final = "outside:"
_UNKNOWN: Final = "unknown:"
_SENTENCES: Final = {
    "null-person": "missing person identifier; fill the column",
    "null-time": "missing time; fill the column",
    "bad-time": "not a time between 1824 and 2116; give a timestamp, a number of seconds, or ISO 8601 text; "
    'numbers of milliseconds in a policy need time_unit = "ms" in [stream]',
    "ahead": "further ahead than `max_gap` and confirmed by no second person; raise max_gap if such gaps are normal",
    _OUTSIDE: 'outside the domain; widen low and high, or set outside = "clamp"',
    _UNKNOWN: "not a leaf of the hierarchy; add it to the hierarchy",
}


class Chunk:
    """Rows of a batch, the keys of their people and the numbers of their quasi-identifiers, read part by part."""

    persons: Ints

    def __init__(self, batch: pa.RecordBatch, person: str, key: Words, quasi: Sequence[Reader]) -> None:
        self.batch = pa.RecordBatch.from_arrays([plain(column) for column in batch.columns], names=batch.schema.names)
        self._person, self._key, self._quasi = person, key, quasi
        self.raws = np.empty((len(quasi), batch.num_rows))
        self.values = np.empty_like(self.raws)
        """The same numbers, scaled as the kernels measure them."""
        self.has_gaps = np.zeros(len(quasi), dtype=np.bool_)
        """Of which quasi-identifiers values are missing."""

    def __len__(self) -> int:
        return int(self.batch.num_rows)

    @property
    def parts(self) -> int:
        """Number of parts: people first, then each quasi-identifier."""
        return 1 + len(self._quasi)

    def read(self, part: int) -> Bools:
        """Read one part; return which rows it refuses. Parts may be read in any order, in any thread."""
        if part == 0:
            people = Texts.of(self.batch.column(self._person))
            self.persons = people.keys(self._key)
            return ~people.filled
        a, reader = part - 1, self._quasi[part - 1]
        refused = reader.read_into(self.batch.column(reader.name), self.raws[a], self.values[a])
        self.has_gaps[a] = np.isnan(self.raws[a]).any()
        return refused

    def keep_only(self, usable: Bools) -> None:
        """Drop the numbers of other rows."""
        if not usable.all():
            self.raws = np.ascontiguousarray(self.raws[:, usable])
            self.values = np.ascontiguousarray(self.values[:, usable])
            self.persons = self.persons[usable]


class Single(NamedTuple):
    """One record, read."""

    given: Record
    reason: int | None
    """Why it is refused; None where it is usable."""
    keys: Any
    """The person's keyed hash, one row of two words; None if the person is missing."""
    time: int
    raws: list[Any]
    """Its quasi-identifiers as numbers."""
    clamped: int
    """How many of them are clamped."""


class SchemaReader:
    """Reads batches and single records with the same result; it has no state."""

    def __init__(self, schema: Schema, quasi: Sequence[Reader], secret: Secret, *, is_timed: bool = False) -> None:
        self._schema, self._is_timed = schema, is_timed
        self.quasi, self.columns = quasi, schema.columns
        self._key = key_words(secret.subkey("table of people"))
        self._measured = [reader.name for reader in quasi if isinstance(reader, NumericReader)]
        self._clamping = [reader for reader in quasi if isinstance(reader, NumericReader) and reader.clamps]

    # ---- types

    def assumed_schema(self) -> pa.Schema:
        """The input types assumed before anything was seen."""
        types = dict.fromkeys(self._measured, pa.float64())
        if self._is_timed:
            types = {str(self._schema.time): pa.timestamp("ns", tz="UTC"), **types}
        return pa.schema([(name, types.get(name, pa.string())) for name in self.columns])

    def check_types(self, fields: pa.Schema) -> None:
        """Raise InputError where a column has a type that cannot be used."""
        schema = self._schema
        if not is_text_like(fields.field(schema.person).type):
            raise InputError(f"column {schema.person!r}: cannot name people; give text or whole numbers")
        if self._is_timed and not is_time_type(fields.field(schema.time).type):
            raise InputError(f"column {schema.time!r}: no time; give timestamps, numbers of seconds, or ISO 8601 text")
        for reader in self.quasi:
            reader.check_type(plain_type(fields.field(reader.name).type))
        for name in schema.unchanged:
            if not is_carriable(fields.field(name).type):
                raise InputError(f"column {name!r}: {fields.field(name).type} cannot be published; give a plain type")

    def output_schema(self, schema: pa.Schema) -> tuple[pa.Schema, pa.Schema]:
        """The output schema for input of these types, and the part of it that is carried unchanged."""
        carried = pa.schema([(name, schema.field(name).type) for name in self._schema.unchanged])
        shown = [(reader.name, reader.output_type(schema.field(reader.name).type)) for reader in self.quasi]
        return pa.schema([*shown, *carried]), carried

    # ---- batches

    def chunk(self, batch: pa.RecordBatch) -> Chunk:
        """A batch whose parts are to be read."""
        return Chunk(batch, self._schema.person, self._key, self.quasi)

    def reasons(self, chunk: Chunk, refused: Sequence[Bools]) -> tuple[Reasons, Ints]:
        """Why rows cannot be used, given what each part of the chunk refuses; and the rows' times."""
        reasons = np.full(len(chunk), NO_REASON, dtype=np.int16)
        nameless, *by_column = refused
        for number, is_refused in reversed(list(enumerate(by_column))):  # the first column is named
            reasons[is_refused] = FIRST_REFUSED + number
        times = np.zeros(len(chunk), dtype=np.int64)
        if self._is_timed:
            column = chunk.batch.column(self._schema.time)
            times, is_valid = column_ns(column)
            is_missing = ~np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
            reasons[~is_valid] = np.where(is_missing[~is_valid], NULL_TIME, BAD_TIME)
        reasons[nameless] = NULL_PERSON
        return reasons, times

    def count_clamped(self, batch: pa.RecordBatch, usable: Bools) -> int:
        """How many values of usable rows are clamped."""
        return sum(reader.count_clamped(batch.column(reader.name), usable) for reader in self._clamping)

    # ---- single records

    def check_record(self, record: Record, known: pa.Schema | None) -> pa.Schema:
        """Raise InputError where a record cannot be used; return its types, which are those known if there are any.

        Pending records become columns later, so each value must fit its column's type.
        """
        person, first = self._schema.person, self.quasi[0].name
        if person not in record:  # a missing key is a missing value, except the person's, and except all of them
            raise InputError(f"column {person!r}: the record has no such key; name the keys as the schema does")
        if first not in record and not any(reader.name in record for reader in self.quasi):
            raise InputError(
                f"column {first!r}: the record has no such key, nor that of another quasi-identifier; "
                "name the keys as the schema does"
            )
        types = known or self._record_types(record)
        for name, kind in zip(types.names, types.types, strict=True):
            if not _fits(record.get(name), kind):
                raise InputError(f"column {name!r}: a value is not {kind}; give one type")
        return types

    def _record_types(self, record: Record) -> pa.Schema:
        """The types of a record's values; measured numbers may have a fraction later on."""
        schema = self._schema
        counted = {schema.person, *schema.sensitive, *(reader.name for reader in self.quasi)} - set(self._measured)
        types = {name: record_type(record.get(name), is_counted=name in counted) for name in self.columns}
        types |= {one.name: one.type for one in self.assumed_schema() if record.get(one.name) is None}
        for name, kind in types.items():
            if kind is None:
                raise InputError(f"column {name!r}: {type(record[name]).__name__} cannot be stored; give plain values")
        return pa.schema(types)

    def read_one(self, record: Record) -> Single:
        """Read one record of checked types; raise InputError where a value cannot be read."""
        person = as_text(record.get(self._schema.person))
        raws = [_number_of(reader, record.get(reader.name)) for reader in self.quasi]
        given = record.get(self._schema.time) if self._schema.time and self._is_timed else None
        time = value_ns(given) if self._is_timed else 0
        reason: int | None = next((FIRST_REFUSED + a for a, raw in enumerate(raws) if raw is REFUSED), None)
        if time is None:
            reason = NULL_TIME if given is None else BAD_TIME
        if not person:
            return Single(record, NULL_PERSON, None, 0, raws, 0)
        clamped = 0 if reason else sum(reader.is_clamped(record.get(reader.name)) for reader in self._clamping)
        return Single(record, reason, key_of(self._key, person), time or 0, raws, clamped)


def _fits(value: Any, kind: pa.DataType) -> bool:
    """Whether a value comes back unchanged out of a column of this type; fast for common values."""
    if value is None or (type(value) is str and kind == pa.string() and value.isascii()):
        return True
    if type(value) is float and kind == pa.float64():
        return True
    if type(value) is int and kind == pa.int64():
        return -(2**63) <= value < 2**63
    if type(value) is int and kind == pa.float64() and -_LARGEST <= value <= _LARGEST:
        return True
    return fits(value, kind)


def _number_of(reader: Reader, value: Any) -> Any:
    try:
        return reader.read_one(value)
    except InputError as error:
        raise InputError(f"column {reader.name!r}: {error}; give one type") from None


def key_of(key: Words, text: str) -> Any:
    """The 128-bit keyed hash of one text, one row of two words."""
    data = text.encode()
    offsets = np.array([0, len(data)], dtype=np.int32)
    keys = np.empty((1, 2), dtype=np.int64)
    hash_texts(key[0], key[1], offsets, np.frombuffer(data, dtype=np.uint8), keys)
    return keys


# ---- why records are refused


def tuple_reasons(schema: Schema) -> tuple[str, ...]:
    """All reasons by index: the general ones, then one for each quasi-identifier."""
    own = ((_OUTSIDE if isinstance(role, Numeric) else _UNKNOWN) + role.name for role in schema.quasi)
    return (*GENERAL, *own)


def explain(reason: str, schema: Schema) -> Refusal:
    """The column to look at and what to do."""
    if reason in GENERAL:
        return Refusal(schema.person if reason == "null-person" else schema.time, _SENTENCES[reason])
    kind, _, column = reason.partition(":")
    return Refusal(column, _SENTENCES[kind + ":"])
