"""The private trace of a tuple stream, for the auditor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.kernels.tuples import layout as t
from shoal.methods.base import VERDICTS
from shoal.methods.quasi_readers import Ints
from shoal.methods.trace import IS_DEAD, IS_RELEASED, IS_SUPPRESSED
from shoal.methods.tuples.decider.base import Decided
from shoal.methods.tuples.sensitive import SensitiveCodes
from shoal.methods.tuples.settings import TupleSettings

_VERDICT: Final = pa.dictionary(pa.int8(), pa.string())
_REASON: Final = pa.dictionary(pa.int16(), pa.string())
_REFERENCE: Final = pa.list_(pa.struct([("column", pa.string()), ("value", pa.string()), ("count", pa.int64())]))


class TupleTracer:
    """Turns decisions and refusals into trace batches."""

    def __init__(self, settings: TupleSettings, reasons: Sequence[str], codes: Sequence[SensitiveCodes]) -> None:
        self._k, self._codes = settings.k, codes
        self._reasons = pa.array(reasons, type=pa.string())
        fields = [
            ("row", pa.int64()), ("verdict", _VERDICT), ("reason", _REASON), ("group", pa.int64()),
            ("delay", pa.int64()), ("k", pa.int64()), ("reused", pa.bool_()), ("carriers", pa.list_(pa.int32())),
            ("event", pa.int64()),
        ]  # fmt: skip
        self._has_references = settings.remembers > 0
        self.schema = pa.schema([*fields, *([("reference", _REFERENCE)] if self._has_references else [])])

    def trace(self, decided: Decided, dead: Ints, reasons: npt.NDArray[np.int16]) -> pa.RecordBatch:
        """One row for each decision, in the order in which pushing one by one would decide."""
        count, refused = len(decided), len(dead)
        events = np.concatenate((decided.at, dead))
        order = np.argsort(events, kind="stable")
        rows = np.concatenate((decided.rows, dead))[order]
        verdicts = np.where(decided.verdicts == t.IS_RELEASED, IS_RELEASED, IS_SUPPRESSED)
        verdicts = np.concatenate((verdicts, np.full(refused, IS_DEAD))).astype(np.int8)[order]
        why = np.concatenate((np.zeros(count, np.int16), reasons))[order]
        groups = np.concatenate((decided.groups, np.full(refused, t.NO_GROUP)))[order]
        delays = np.concatenate((decided.delays, np.zeros(refused, np.int64)))[order]
        places = pa.array(groups, mask=groups < 0)
        columns = [
            pa.array(rows),
            pa.DictionaryArray.from_arrays(pa.array(verdicts), pa.array(VERDICTS)),
            pa.DictionaryArray.from_arrays(pa.array(why, mask=verdicts != IS_DEAD), self._reasons),
            pa.array(decided.numbers).take(places),
            pa.array(delays),
            pa.repeat(pa.scalar(self._k, pa.int64()), len(rows)),
            pa.array(decided.reused.astype(np.bool_)).take(places),
            _lists(decided.carriers.astype(np.int32)).take(places),
            pa.array(events[order]),
        ]
        if self._has_references:
            columns.append(self._references(groups, decided))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _references(self, groups: Ints, decided: Decided) -> pa.Array:
        """The distribution that each new cluster was compared with, on the first of its rows."""
        seen: set[int] = set()
        found: list[list[dict[str, Any]] | None] = []
        for place in groups.tolist():
            is_first = place >= 0 and place not in seen and not decided.reused[place]
            seen.add(place)
            found.append(self._reference(decided.reference[place]) if is_first else None)
        return pa.array(found, type=_REFERENCE)

    def _reference(self, counts: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
        return [
            {"column": column.name, "value": value, "count": int(count)}
            for column, row in zip(self._codes, counts, strict=True)
            for value, count in zip(column.texts(), row, strict=False)
            if count
        ]


def _lists(rows: npt.NDArray[np.int32]) -> pa.ListArray:
    """One list for each row."""
    offsets = np.arange(0, rows.size + 1, max(rows.shape[1], 1), dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(rows.ravel()))
