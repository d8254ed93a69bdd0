"""The private record of decisions where combinations are watched: also which epoch a row waited for, and its levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from shoal.methods.text_keys import Ints
from shoal.methods.trace import Decisions, Tracer
from shoal.methods.z.columns import Levels

AT_ONCE: Final = np.iinfo(np.int64).min
"""The epoch of a row that waited for none."""


@dataclass(frozen=True, slots=True)
class CombinedDecisions:
    """Decisions, the epoch each row waited for (AT_ONCE for none), and the level at which z let each value pass."""

    plain: Decisions
    epochs: Ints
    levels: Levels

    @classmethod
    def at_once(cls, decisions: Decisions, columns: int) -> CombinedDecisions:
        """Decisions on rows that waited for no epoch and were never judged."""
        count = len(decisions.rows)
        return cls(decisions, np.full(count, AT_ONCE), np.full((count, columns), -1, dtype=np.int32))

    def arranged(self, order: Ints) -> CombinedDecisions:
        """The same decisions in another order."""
        return CombinedDecisions(self.plain.arranged(order), self.epochs[order], self.levels[order])

    @classmethod
    def joined(cls, parts: Sequence[CombinedDecisions]) -> CombinedDecisions:
        """Decisions one after another."""
        plain = [part.plain for part in parts]
        return cls(
            Decisions(
                np.concatenate([part.rows for part in plain]),
                np.concatenate([part.verdicts for part in plain]),
                np.concatenate([part.reasons for part in plain]),
                np.concatenate([part.delays for part in plain]),
            ),
            np.concatenate([part.epochs for part in parts]),
            np.concatenate([part.levels for part in parts]),
        )


class CombinedTracer(Tracer):
    """Traces in which `group` is the epoch at whose end a row was decided; null where it was decided at once."""

    def __init__(self, reasons: Sequence[str], constants: Mapping[str, int], levels: Sequence[str]) -> None:
        super().__init__(reasons, constants)
        self._plain = Tracer(reasons, constants)
        self._levels = len(levels)
        self.schema = pa.schema([*self.schema, *((name, pa.int64()) for name in levels)])

    def trace(self, decisions: Decisions) -> pa.RecordBatch:
        """Decisions on rows that were never judged."""
        return self.trace_combined(CombinedDecisions.at_once(decisions, self._levels))

    def trace_combined(self, decisions: CombinedDecisions) -> pa.RecordBatch:
        """One row a decision."""
        columns = self._plain.trace(decisions.plain).columns
        groups = pa.array(decisions.epochs, mask=decisions.epochs == AT_ONCE)
        columns[self.schema.get_field_index("group")] = groups
        columns += [pa.array(level.astype(np.int64)) for level in decisions.levels.T]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)
