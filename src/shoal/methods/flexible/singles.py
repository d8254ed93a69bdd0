"""The flexible method on single records: the same decisions as for batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from shoal.methods.base import Record
from shoal.methods.flexible.batches import Arrivals, FlexibleBatches
from shoal.methods.flexible.reading import is_refused
from shoal.methods.quasi_readers import NumericReader
from shoal.methods.refusals import FIRST_REFUSED, NULL_PERSON
from shoal.methods.single_records import check_record, key_of, number_of
from shoal.methods.text_keys import as_text


class FlexibleSingles(FlexibleBatches):
    """Decides records one by one."""

    def push(self, record: Record) -> list[dict[str, Any]]:
        self._check_record(record)
        person = as_text(record.get(self._settings.schema.person))
        raws = [number_of(reader, record.get(reader.name)) for reader in self._readers]
        row, self._seen = self._seen, self._seen + 1
        if not person:
            return self._refuse(NULL_PERSON)
        refused = next((number for number, raw in enumerate(raws) if is_refused(raw)), None)
        if refused is not None:
            return self._refuse(FIRST_REFUSED + refused)
        self._count_clamped(record)
        self._kept.add_one(row, tuple(record.get(name) for name in self._kept.schema.names))
        codes = self._codes_of(np.array(raws, dtype=np.float64).reshape(-1, 1))
        self._count_unknown(codes)
        keys = np.ascontiguousarray(key_of(self._person_key, person).T)
        arrivals = Arrivals(np.array([row], dtype=np.int64), keys, codes, self._crowds_of(codes))
        decided = list(self._take(arrivals))
        if not decided:
            return []
        left: list[dict[str, Any]] = self._rows(decided).to_pylist()
        self._kept.keep_only(self._waiting.rows)
        return left

    def _check_record(self, record: Record) -> None:
        types = check_record(record, self._settings.schema, self._readers, self.columns, self._input_schema)
        if self._input_schema is None:
            self.bind(types)

    def _refuse(self, reason: int) -> list[dict[str, Any]]:
        self._counts[self._reasons[reason]] += 1
        return []

    def _count_clamped(self, record: Record) -> None:
        for reader in self._readers:
            if isinstance(reader, NumericReader) and reader.is_clamped(record.get(reader.name)):
                self._counts["clamped"] += 1
