"""Tuples one by one: the same decisions as for batches, without Arrow on the way."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from shoal.kernels import clock as clock_kernel
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.clock import move_clock
from shoal.methods.base import Record
from shoal.methods.quasi_readers import REFUSED, NumericReader
from shoal.methods.refusals import AHEAD, BAD_TIME, FIRST_REFUSED, NULL_PERSON, NULL_TIME
from shoal.methods.single_records import check_record, key_of, number_of
from shoal.methods.text_keys import as_text
from shoal.methods.tuples.batches import TupleBatches
from shoal.methods.tuples.publish_order import in_secret_order
from shoal.methods.tuples.state import Decided
from shoal.times import value_ns

_BITS: Final = 63


class TupleSingles(TupleBatches):
    """Decides tuples one by one."""

    def push(self, record: Record) -> list[dict[str, Any]]:
        self._check_record(record)
        for column in self._codes:
            column.check_room([record.get(column.name)])
        schema = self._settings.schema
        person = as_text(record.get(schema.person))
        raws = [number_of(reader, record.get(reader.name)) for reader in self._readers]
        time = value_ns(record.get(schema.time)) if schema.time and self._settings.is_timed else 0
        reason = self._trouble(record, person, time, raws)
        keys = key_of(self._person_key, person) if person else None
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

    def _check_record(self, record: Record) -> None:
        types = check_record(record, self._settings.schema, self._readers, self.columns, self._input_schema)
        if self._input_schema is None:
            self.bind(types)

    def _trouble(self, record: Record, person: str | None, time: int | None, raws: list[Any]) -> int | None:
        if not person:
            return NULL_PERSON
        if time is None:
            return NULL_TIME if record.get(self._settings.schema.time or "") is None else BAD_TIME
        return next((FIRST_REFUSED + number for number, raw in enumerate(raws) if raw is REFUSED), None)

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
        decided = in_secret_order(self._state.take(arrivals), self._order_key)
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
