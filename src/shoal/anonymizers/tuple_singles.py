"""Tuples one by one: the same decisions as for batches, without Arrow on the way."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.anonymizers.base import Record
from shoal.anonymizers.exposures import as_text
from shoal.anonymizers.intake import fits, record_type, require_record
from shoal.anonymizers.tuple_batches import TupleBatches
from shoal.anonymizers.tuple_reading import REFUSED, NumericReader
from shoal.anonymizers.tuple_reasons import AHEAD, BAD_TIME, FIRST_REFUSED, NULL_PERSON, NULL_TIME
from shoal.anonymizers.tuple_state import Decided
from shoal.errors import InputError
from shoal.kernels import clock as clock_kernel
from shoal.kernels import tuples as t
from shoal.kernels.siphash import hash_texts
from shoal.kernels.tuple_clock import move_clock
from shoal.times import value_ns

_BITS: Final = 63


class TupleSingles(TupleBatches):
    """Decides tuples one by one."""

    def push(self, record: Record) -> list[dict[str, Any]]:
        require_record(record)
        self._require_keys(record)
        self._require_types(record)
        for column in self._codes:
            column.check_room([record.get(column.name)])
        schema = self._settings.schema
        person = as_text(record.get(schema.person))
        raws = [self._number_of(reader, record.get(reader.name)) for reader in self._readers]
        time = value_ns(record.get(schema.time)) if schema.time and self._settings.is_timed else 0
        reason = self._trouble(record, person, time, raws)
        keys = self._key_of(person) if person else None
        now = 0
        if reason is None and self._settings.is_timed:
            assert keys is not None
            assert time is not None
            code = move_clock(self._clock, keys[0, 0], keys[0, 1], time, self._settings.max_gap_ns)
            reason = AHEAD if code == clock_kernel.AHEAD else None
            now = int(self._clock[clock_kernel.NEWEST])
        self._seen += 1
        if reason is not None:
            self._counts[self._reasons[reason]] += 1
            return []
        return self._take_one(record, raws, keys, now)

    def _number_of(self, reader: Any, value: Any) -> Any:
        try:
            return reader.read_one(value)
        except InputError as error:
            raise InputError(f"column {reader.name!r}: {error}; give one type") from None

    def _trouble(self, record: Record, person: str | None, time: int | None, raws: list[Any]) -> int | None:
        if not person:
            return NULL_PERSON
        if time is None:
            return NULL_TIME if record.get(self._settings.schema.time or "") is None else BAD_TIME
        return next((FIRST_REFUSED + number for number, raw in enumerate(raws) if raw is REFUSED), None)

    def _key_of(self, person: str) -> Any:
        text = person.encode()
        offsets = np.array([0, len(text)], dtype=np.int32)
        keys = np.empty((1, 2), dtype=np.int64)
        hash_texts(self._person_key[0], self._person_key[1], offsets, np.frombuffer(text, dtype=np.uint8), keys)
        return keys

    def _take_one(self, record: Record, raws: list[Any], keys: Any, now: int) -> list[dict[str, Any]]:
        row = self._seen - 1
        raw = np.array(raws, dtype=np.float64).reshape(-1, 1)
        values = np.array([reader.scaled(one) for reader, one in zip(self._readers, raw, strict=True)])
        mask = np.zeros((1, (len(raws) + _BITS - 1) // _BITS), dtype=np.int64)
        for a, value in enumerate(raws):
            if value == value:  # noqa: PLR0124 - NaN is not itself
                mask[0, a // _BITS] |= 1 << (a % _BITS)
        self._count_clamped(record)
        codes = np.array([column.code_all([record.get(column.name)]) for column in self._codes], dtype=np.int64)
        if len(self._codes):
            self._state.know_values(self._codes, self._is_ordered)
        self._kept.add_one(row, tuple(record.get(name) for name in self._kept.schema.names))
        arrivals = t.Arrivals(
            values, raw, mask, keys, np.array([row], dtype=np.int64), np.array([now], dtype=np.int64),
            np.zeros(1, dtype=np.int64),
            codes.reshape(len(self._codes), 1),
        )  # fmt: skip
        decided = self._state.take(arrivals)
        return self._dicts(decided) if len(decided) else []

    def _count_clamped(self, record: Record) -> None:
        for reader in self._readers:
            if isinstance(reader, NumericReader) and reader.is_clamped(record.get(reader.name)):
                self._counts["clamped"] += 1

    def _dicts(self, decided: Decided) -> list[dict[str, Any]]:
        """The rows that leave, as records."""
        rows = []
        names, kinds = self._output_schema.names, self._output_schema.types
        for i, (row, group) in enumerate(zip(decided.rows.tolist(), decided.groups.tolist(), strict=True)):
            kept = self._kept.take_one(row) if self._kept else ()
            if group < 0 and self._settings.suppressed == "drop":
                continue
            shown = [self._cell(a, decided, i, group, kinds[a]) for a in range(len(self._readers))]
            rows.append(dict(zip(names, (*shown, *kept), strict=True)))
        return rows

    def _cell(self, a: int, decided: Decided, i: int, group: int, kind: pa.DataType) -> Any:
        reader = self._readers[a]
        if group < 0:
            return reader.publish_one(*reader.root(), kind)
        if not decided.shown[group, a]:
            return None
        is_own = (decided.masks[i, a // _BITS] >> (a % _BITS)) & 1
        if self._settings.nulls == "paper" and self._hides_own and not is_own:
            return None
        low, high, node = decided.low[group, a], decided.high[group, a], decided.node[group, a]
        return reader.publish_one(float(low), float(high), int(node), kind)

    def _require_keys(self, record: Record) -> None:
        """A key that is not there is a missing value, but not the person's, and not all of them."""
        person = self._settings.schema.person
        if person not in record:
            raise InputError(f"column {person!r}: the record has no such key; name the keys as the schema does")
        first, *others = self._readers
        if first.name not in record and not any(reader.name in record for reader in others):
            raise InputError(
                f"column {first.name!r}: the record has no such key, nor that of another quasi-identifier; "
                "name the keys as the schema does"
            )

    def _require_types(self, record: Record) -> None:
        """Records that wait become columns later, so they must fit one type each."""
        types = self._record_types(record) if self._input_schema is None else self._input_schema
        for name, kind in zip(types.names, types.types, strict=True):
            if not _fits(record.get(name), kind):
                raise InputError(f"column {name!r}: a value is not {kind}; give one type")
        if self._input_schema is None:
            self.bind(types)

    def _record_types(self, record: Record) -> pa.Schema:
        schema = self._settings.schema
        counted = {schema.person, *schema.sensitive, *(one.name for one in self._readers if one.leaves)}
        types = {name: record_type(record.get(name), is_counted=name in counted) for name in self.columns}
        for reader in self._readers:
            if isinstance(reader, NumericReader) and record.get(reader.name) is None:
                types[reader.name] = pa.float64()
        for name, kind in types.items():
            if kind is None:
                raise InputError(f"column {name!r}: {type(record[name]).__name__} cannot be held; give plain values")
        return pa.schema(types)


def _fits(value: Any, kind: pa.DataType) -> bool:
    """Whether a value comes back unchanged out of a column of this type; quick for what is usual."""
    if value is None or (type(value) is str and kind == pa.string() and value.isascii()):
        return True
    if type(value) is float and kind == pa.float64():
        return True
    if type(value) is int and kind == pa.int64():
        return -(2**63) <= value < 2**63
    return fits(value, kind)
