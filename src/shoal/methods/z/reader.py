"""Events as z-anonymity decides them: Arrow batches and single records become times, keys and refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.errors import InputError
from shoal.methods.arrow_input import fits, is_carriable, plain, record_type, without_views
from shoal.methods.base import Record
from shoal.methods.release import NO_REASON, Refusal
from shoal.methods.text_keys import Bools, Ints, Words, as_text, is_present, is_text_like, is_whole, person_keys
from shoal.methods.z.crowds.columns import CrowdColumn
from shoal.methods.z.reorder_buffer import Waiting
from shoal.methods.z.settings import ZSettings
from shoal.times import column_ns, is_time_type, value_ns

_GENERAL: Final = ("late", "ahead", "null-person", "null-time", "bad-time")
LATE, AHEAD, NULL_PERSON, NULL_TIME, BAD_TIME = range(5)
_FIRST_UNKNOWN: Final = len(_GENERAL)
_UNKNOWN: Final = "unknown-value."

_SENTENCES: Final = {
    "late": "older than the newest event by more than `lateness`; sort the input by time, or raise lateness",
    "ahead": "further ahead than `max_gap` and confirmed by no second person; raise max_gap if such gaps are normal",
    "null-person": "missing person identifier; fill the column",
    "null-time": "missing time; fill the column",
    "bad-time": "not a time between 1824 and 2116; give a timestamp, a number of seconds, or ISO 8601 text; "
    'numbers of milliseconds in a policy need time_unit = "ms" in [stream]',
}


def reasons_of(settings: ZSettings) -> tuple[str, ...]:
    """All reasons to refuse a record, in the order of their numbers: the general ones, then one for each attribute."""
    return (*_GENERAL, *(_UNKNOWN + column.name for column in settings.attributes))


def explain(reason: str, settings: ZSettings) -> Refusal:
    """The column to look at and what to do."""
    if reason in _SENTENCES:
        return Refusal(settings.person if reason == "null-person" else settings.time, _SENTENCES[reason])
    return Refusal(reason.removeprefix(_UNKNOWN), "the hierarchy does not contain this value; add it")


@dataclass(slots=True)
class Arrivals:
    """Rows to decide about: number, time, person and values of each, and why it is refused (NO_REASON: it is not)."""

    batch: pa.RecordBatch
    seqs: Ints
    times: Ints
    persons: Ints
    reasons: npt.NDArray[np.int8]
    readings: list[Any]


Event: TypeAlias = tuple[Record, str, int, list[str | None], int]
"""A single record, its person, time and values, and why it is refused; a bare tuple, because that is fastest."""


class Reader:
    """Reads batches and records of one stream; keeps only their types."""

    def __init__(self, settings: ZSettings, attributes: Sequence[CrowdColumn], person_key: Words) -> None:
        self._person, self._time = settings.person, settings.time
        self._columns, self._carry = settings.read_columns, settings.carry
        self._attributes = attributes
        self._listed = [(_FIRST_UNKNOWN + at, column) for at, column in enumerate(attributes) if column.is_listed]
        self._counted = (self._person, *(column.name for column in attributes))
        self._person_key = person_key
        self._waits = bool(settings.lateness_ns)
        self._needs_types = self._waits or settings.k is not None
        self.schema = pa.schema([])
        """Types of the rows; set before the first one."""

    # ---- types

    def assumed_schema(self) -> pa.Schema:
        """The input types assumed before anything was seen."""
        types = {self._time: pa.timestamp("ns", tz="UTC")}
        return pa.schema([(name, types.get(name, pa.string())) for name in self._columns])

    def check_types(self, fields: pa.Schema) -> None:
        """Raise InputError where a column has a type that cannot be used."""
        for name in self._columns:
            self._check_type(name, fields.field(name).type, str(fields.field(name).type))

    def _check_type(self, name: str, kind: pa.DataType | None, named: str) -> None:
        """Raise InputError where a type cannot be used for a column; None for values that Arrow has no type for."""
        is_usable: Callable[[pa.DataType], bool] = is_carriable
        advice = "cannot be carried; give plain values, or lists and structs of them"
        if name in self._counted:
            is_usable, advice = is_text_like, "cannot be counted; give text or whole numbers of up to 64 bits"
        if name == self._time:
            is_usable = is_time_type
            advice = "is not a time type; give timestamps, numbers of seconds, or ISO 8601 text"
        if kind is None or not is_usable(kind):
            raise InputError(f"column {name!r}: {named} {advice}")

    # ---- batches

    def read(self, batch: pa.RecordBatch) -> Arrivals:
        """Read a batch, and find the rows that cannot be used; they are numbered from 0."""
        # rows that wait are joined later and need one type; where none waits, a dictionary saves hashing
        as_read = plain if self._waits else without_views
        batch = pa.RecordBatch.from_arrays([as_read(column) for column in batch.columns], names=batch.schema.names)
        times, timely = column_ns(batch.column(self._time))
        persons, filled = person_keys(batch.column(self._person), self._person_key)
        readings = self._read_attributes(batch)
        reasons = np.full(batch.num_rows, NO_REASON, dtype=np.int8)
        for reason, _ in reversed(self._listed):  # the first unknown column is named
            reading = readings[reason - _FIRST_UNKNOWN]
            reasons[~reading.known & reading.present] = reason
        if not timely.all():
            reasons[~timely] = np.where(is_present(batch.column(self._time))[~timely], BAD_TIME, NULL_TIME)
        if not filled.all():
            reasons[~filled] = NULL_PERSON
        seqs = np.arange(batch.num_rows, dtype=np.int64)
        return Arrivals(batch, seqs, times, persons, reasons, readings)

    def joined(self, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
        """All rows in one batch."""
        return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema=self.schema)

    def read_waiting(self, rows: Waiting) -> Arrivals:
        """Rows that waited in the reorder buffer, as they are decided."""
        reasons = np.full(len(rows), NO_REASON, dtype=np.int8)
        return Arrivals(rows.batch, rows.seqs, rows.times, rows.persons, reasons, self._read_attributes(rows.batch))

    def part(self, arrivals: Arrivals, start: int, stop: int) -> Arrivals:
        """A run of rows."""
        rows, batch = slice(start, stop), arrivals.batch.slice(start, stop - start)
        return Arrivals(
            batch, arrivals.seqs[rows], arrivals.times[rows], arrivals.persons[rows], arrivals.reasons[rows],
            self._read_attributes(batch),
        )  # fmt: skip

    def pick(self, arrivals: Arrivals, rows: Ints, owned: Sequence[Bools]) -> Arrivals:
        """Some rows, with those values of each attribute that are `owned`; the others are blanked."""
        batch = arrivals.batch.take(pa.array(rows))
        for column, own in zip(self._attributes, owned, strict=True):
            at = batch.schema.get_field_index(column.name)
            values = arrivals.batch.column(at).take(pa.array(rows, mask=~own))
            batch = batch.set_column(at, batch.schema.field(at), values)
        return Arrivals(
            batch, arrivals.seqs[rows], arrivals.times[rows], arrivals.persons[rows], arrivals.reasons[rows],
            self._read_attributes(batch),
        )  # fmt: skip

    def _read_attributes(self, batch: pa.RecordBatch) -> list[Any]:
        return [column.values.read(batch.column(column.name)) for column in self._attributes]

    # ---- single records

    def read_record(self, record: Record, known: pa.Schema | None) -> tuple[Event, pa.Schema | None]:
        """Read one record, with the same result as a batch of it; return the types to bind where records wait."""
        person = as_text(record.get(self._person))
        time = value_ns(record.get(self._time))
        texts, reason = self.texts(record), NO_REASON
        if person is None or time is None or None in texts:
            self._check_values(record, (self._time, *self._counted))
        if self._carry and not self._needs_types:
            self._check_values(record, self._carry)
        if not person:
            reason = NULL_PERSON
        elif time is None:
            reason = NULL_TIME if record.get(self._time) is None else BAD_TIME
        else:
            for number, column in self._listed:
                if not column.knows(texts[number - _FIRST_UNKNOWN]):
                    reason = number
                    break
        types = self._checked_types(record, known) if self._needs_types and reason == NO_REASON else None
        return (record, person or "", time or 0, texts, reason), types

    def _check_values(self, record: Record, names: Iterable[str]) -> None:
        """Raise InputError where a column of values like these would be refused."""
        for name in names:
            value = record.get(name)
            is_usable = value is None or isinstance(value, str) or (isinstance(value, float) and name in self._carry)
            if not is_usable and (type(value) is not int or (name != self._time and not is_whole(value))):
                self._check_type(name, record_type(value, is_counted=True), type(value).__name__)

    def texts(self, record: Record) -> list[str | None]:
        """The values of the attributes as texts."""
        return [as_text(record.get(column.name)) for column in self._attributes]

    def _checked_types(self, record: Record, known: pa.Schema | None) -> pa.Schema:
        """Records that wait become columns later, so they must fit one type each."""
        types = self._record_types(record) if known is None else known
        for name, kind in zip(types.names, types.types, strict=True):
            if not fits(record.get(name), kind):
                raise InputError(f"column {name!r}: a value is not {kind}; give one type")
        return types

    def _record_types(self, record: Record) -> pa.Schema:
        types = {name: record_type(record.get(name), is_counted=name in self._counted) for name in self._columns}
        for name, kind in types.items():
            if kind is None:
                raise InputError(
                    f"column {name!r}: {type(record[name]).__name__} cannot be buffered; give simple values"
                )
        return pa.schema(types)
