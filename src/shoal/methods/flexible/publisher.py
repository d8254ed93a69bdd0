"""Turn the decisions of the flexible method into rows to publish and into the private trace."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.methods.flexible.decider import Decided
from shoal.methods.flexible.grouping import Grouping
from shoal.methods.release import IS_DEAD, IS_RELEASED, VERDICTS, Release

Ints = npt.NDArray[np.int64]
Reasons = npt.NDArray[np.int16]

TRACE: Final = pa.schema(
    [
        ("row", pa.int64()), ("verdict", pa.dictionary(pa.int8(), pa.string())),
        ("reason", pa.dictionary(pa.int16(), pa.string())), ("group", pa.int64()), ("delay", pa.int64()),
        ("k", pa.int64()), ("k_s", pa.int64()),
    ]
)  # fmt: skip
_NONE: Final = np.empty(0, np.int64)
_NO_REASONS: Final = np.empty(0, np.int16)


class Publisher:
    """Makes releases; it has no state besides the output types."""

    def __init__(self, reasons: Sequence[str]) -> None:
        self._reasons = pa.array(reasons, type=pa.string())
        self.schema = pa.schema([])
        """Columns of published rows."""

    def release(
        self, decided: list[Decided], grouping: Grouping | None, dead: Ints = _NONE, reasons: Reasons = _NO_REASONS
    ) -> Release:
        """Published rows, and the trace of released and refused (`dead`) records."""
        k_s = grouping.calibration.by_crowd() if grouping else np.zeros(1, np.int64)
        return Release(self.rows(decided, grouping), partial(self._trace, decided, k_s, dead, reasons))

    def rows(self, decided: list[Decided], grouping: Grouping | None) -> pa.RecordBatch:
        """The rows to publish."""
        batches = [pa.RecordBatch.from_pylist([], schema=self.schema)]
        for part in decided:
            assert grouping is not None
            shown = grouping.columns(part.grouped, self.schema.types)
            batches.append(pa.RecordBatch.from_arrays([*shown, *part.carried.columns], schema=self.schema))
        return pa.concat_batches(batches)

    def _trace(self, decided: list[Decided], k_s: Ints, dead: Ints, reasons: Reasons) -> pa.RecordBatch:
        """One row per decision, in the order in which pushing one by one would decide."""
        none = np.zeros(len(dead), np.int64)
        rows = np.concatenate([*(part.rows for part in decided), dead])
        k = np.concatenate([*(part.grouped.crowds for part in decided), none])
        groups = np.concatenate([*(part.grouped.groups for part in decided), none])
        delays = np.concatenate([*(part.delays for part in decided), none])
        # A row released at once is decided with itself, the rows of a round right after the record that filled it.
        at = [np.full(len(part.rows), 2 * part.at + 1) if part.is_round else 2 * part.rows for part in decided]
        order = np.argsort(np.concatenate([*at, 2 * dead]), kind="stable")
        is_dead = (np.arange(len(rows)) >= len(rows) - len(dead))[order]
        why = np.concatenate((np.zeros(len(rows) - len(dead), np.int16), reasons))[order]
        verdicts = np.where(is_dead, IS_DEAD, IS_RELEASED).astype(np.int8)
        columns = [
            pa.array(rows[order]),
            pa.DictionaryArray.from_arrays(pa.array(verdicts), pa.array(VERDICTS)),
            pa.DictionaryArray.from_arrays(pa.array(why, mask=~is_dead), self._reasons),
            pa.array(groups[order], mask=is_dead),
            pa.array(delays[order]),
            pa.array(k[order], mask=is_dead),
            pa.array(k_s[k[order]], mask=is_dead),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=TRACE)
