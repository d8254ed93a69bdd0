"""z-anonymity of single records: the same decisions as for batches, without Arrow on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from shoal.errors import InputError
from shoal.kernels import clock as clock_kernel
from shoal.kernels.z.events import admit_text
from shoal.methods.arrow_input import (
    fits,
    record_type,
    require_record,
)  # fmt: skip
from shoal.methods.base import RELEASED, SUPPRESSED, Record
from shoal.methods.text_keys import as_text
from shoal.methods.trace import NO_REASON
from shoal.methods.z.batches import ZBatches
from shoal.methods.z.reasons import (
    AHEAD,
    BAD_TIME,
    FIRST_UNKNOWN,
    LATE,
    NULL_PERSON,
    NULL_TIME,
)
from shoal.methods.z.reorder_buffer import OneWaiting
from shoal.times import value_ns


class ZSingles(ZBatches):
    """Decides events one by one."""

    def push(self, record: Record) -> list[dict[str, Any]]:
        require_record(record)
        settings = self._settings
        person = as_text(record.get(settings.person))
        time = value_ns(record.get(settings.time))
        reason = self._trouble(record, person, time)
        if (settings.lateness_ns or settings.k is not None) and reason == NO_REASON:
            self._require_types(record)
        self._seen += 1
        if reason == NO_REASON:
            assert person is not None
            assert time is not None
            reason = self._admit_one(person.encode(), time)
        if reason != NO_REASON:
            self._counts[self._reasons[reason]] += 1
            return []
        rows = self._push_usable(record, person, time)  # type: ignore[arg-type]
        return rows if settings.k is None else rows + self._rows_of_ended()

    def _push_usable(self, record: Record, person: str, time: int) -> list[dict[str, Any]]:
        if not self._settings.lateness_ns:
            return self._decide_one(record, person, time, self._seen - 1)
        key = (int(self._scratch[0, 0]), int(self._scratch[0, 1]))
        waiting = {name: record.get(name) for name in self.columns}
        self._held.add_one(OneWaiting(time, self._seen - 1, key, waiting))
        return self._pop_ready()

    def _trouble(self, record: Record, person: str | None, time: int | None) -> int:
        if not person:
            return NULL_PERSON
        if time is None:
            return NULL_TIME if record.get(self._settings.time) is None else BAD_TIME
        for number, column in enumerate(self._attributes):
            if column.is_listed and not column.knows(as_text(record.get(column.name))):
                return FIRST_UNKNOWN + number
        return NO_REASON

    def _admit_one(self, person: bytes, time: int) -> int:
        settings = self._settings
        code = admit_text(
            self._person_key, self._clock, np.frombuffer(person, dtype=np.uint8), time,
            settings.lateness_ns, settings.max_gap_ns, self._scratch,
        )  # fmt: skip
        if code == clock_kernel.RESTART:
            self._start_over()
        return {clock_kernel.LATE: LATE, clock_kernel.AHEAD: AHEAD}.get(code, NO_REASON)

    def _pop_ready(self) -> list[dict[str, Any]]:
        limit = int(self._clock[clock_kernel.NEWEST]) - self._settings.lateness_ns
        rows: list[dict[str, Any]] = []
        while (one := self._held.pop_one(limit, self.input_schema)) is not None:
            self._scratch[0] = one.key
            rows += self._decide_one(one.record, as_text(one.record[self._settings.person]) or "", one.time, one.seq)
        return rows

    def _decide_one(self, record: Record, person: str, time: int, seq: int) -> list[dict[str, Any]]:
        settings = self._settings
        texts = [as_text(record.get(column.name)) for column in self._attributes]
        if settings.target is None:
            levels = [
                column.decide_one(text, person=self._scratch, time=time)
                for column, text in zip(self._attributes, texts, strict=True)
            ]
        else:
            levels = self._judge_one(texts, time)
        if max(levels) < 0 and not self._is_kept_blank:
            self._counts[SUPPRESSED] += 1
            return []
        row = {settings.time: record[settings.time], settings.person: self._pseudonyms.name(person.encode(), time)}
        for column, text, level in zip(self._attributes, texts, levels, strict=True):
            row[column.name] = column.publish_one(record.get(column.name), text, level)
        for name in settings.carry:
            row[name] = record.get(name)
        if settings.k is not None:
            return self._let_wait(row, levels, time, seq)
        self._counts[RELEASED] += 1
        return [row]

    def _judge_one(self, texts: list[str | None], time: int) -> list[int]:
        """The level of every value of the person in scratch, where z follows the stream."""
        raise NotImplementedError  # abstract

    def _let_wait(self, row: dict[str, Any], levels: list[int], time: int, seq: int) -> list[dict[str, Any]]:
        """Let a row that passed wait for the end of its epoch."""
        raise NotImplementedError  # abstract

    def _rows_of_ended(self) -> list[dict[str, Any]]:
        """What leaves of the epochs that have ended."""
        raise NotImplementedError  # abstract

    def _require_types(self, record: Record) -> None:
        """Records that wait become columns later, so they must fit one type each."""
        types = self._record_types(record) if self._input_schema is None else self._input_schema
        for name, kind in zip(types.names, types.types, strict=True):
            if not fits(record.get(name), kind):
                raise InputError(f"column {name!r}: a value is not {kind}; give one type")
        if self._input_schema is None:
            self.bind(types)

    def _record_types(self, record: Record) -> pa.Schema:
        counted = {self._settings.person, *(column.name for column in self._attributes)}
        types = {name: record_type(record.get(name), is_counted=name in counted) for name in self.columns}
        for name, kind in types.items():
            if kind is None:
                raise InputError(f"column {name!r}: {type(record[name]).__name__} cannot be held; give plain values")
        return pa.schema(types)
