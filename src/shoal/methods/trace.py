"""The private record of what was decided, for the auditor alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.methods.base import VERDICTS
from shoal.methods.text_keys import Bools, Ints

NO_REASON: Final = -1
IS_RELEASED, IS_SUPPRESSED, IS_DEAD = range(3)
_NAMES: Final = pa.dictionary(pa.int8(), pa.string())


@dataclass(frozen=True, slots=True)
class Decisions:
    """What became of rows, in the order decided; reasons are indices, NO_REASON for rows that are not dead."""

    rows: Ints
    verdicts: npt.NDArray[np.int8]
    reasons: npt.NDArray[np.int8]
    delays: Ints
    z: Ints | None = None
    """The z in force, where it is not the same for all; -1 for rows that were not judged."""

    @classmethod
    def of(
        cls, rows: Ints, *, released: Bools, reasons: npt.NDArray[np.int8], delays: Ints, z: Ints | None = None
    ) -> Decisions:
        """Released, else dead with a reason, else suppressed."""
        verdicts = np.where(released, np.int8(IS_RELEASED), np.int8(IS_SUPPRESSED))
        verdicts[reasons != NO_REASON] = IS_DEAD
        return cls(rows, verdicts, reasons, delays, z)

    def arranged(self, order: Ints) -> Decisions:
        """The same decisions in another order."""
        z = None if self.z is None else self.z[order]
        return Decisions(self.rows[order], self.verdicts[order], self.reasons[order], self.delays[order], z)

    def followed_by(self, other: Decisions) -> Decisions:
        """These, then those."""
        return Decisions(
            np.concatenate((self.rows, other.rows)),
            np.concatenate((self.verdicts, other.verdicts)),
            np.concatenate((self.reasons, other.reasons)),
            np.concatenate((self.delays, other.delays)),
            None if self.z is None and other.z is None else np.concatenate((self._any_z(), other._any_z())),
        )

    def _any_z(self) -> Ints:
        return np.full(len(self.rows), -1, dtype=np.int64) if self.z is None else self.z


class Tracer:
    """Turns decisions into trace batches.

    `constants` are columns that stay the same: the z in force, unless it follows the stream and the decisions have it.
    """

    def __init__(self, reasons: Sequence[str], constants: Mapping[str, int], *, follows: bool = False) -> None:
        self._follows = follows
        self._verdicts = pa.array(VERDICTS)
        self._reasons = pa.array(reasons, type=pa.string())
        self._constants = dict(constants)
        self.schema = pa.schema(
            [
                ("row", pa.int64()),
                ("verdict", _NAMES),
                ("reason", _NAMES),
                ("group", pa.int64()),
                ("delay", pa.int64()),
                *((name, pa.int64()) for name in self._constants),
            ]
        )

    def trace(self, decisions: Decisions) -> pa.RecordBatch:
        """One row a decision."""
        count = len(decisions.rows)
        no_reason = decisions.reasons == NO_REASON
        reasons = pa.array(np.where(no_reason, 0, decisions.reasons).astype(np.int8), mask=no_reason)
        columns = [
            pa.array(decisions.rows),
            pa.DictionaryArray.from_arrays(pa.array(decisions.verdicts), self._verdicts),
            pa.DictionaryArray.from_arrays(reasons, self._reasons),
            pa.nulls(count, pa.int64()),
            pa.array(decisions.delays),
            *(self._thresholds(decisions, value) for value in self._constants.values()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _thresholds(self, decisions: Decisions, constant: int) -> pa.Array:
        if not self._follows:
            return pa.repeat(pa.scalar(constant, pa.int64()), len(decisions.rows))
        if decisions.z is None:
            return pa.nulls(len(decisions.rows), pa.int64())
        return pa.array(decisions.z, mask=decisions.z < 0)
