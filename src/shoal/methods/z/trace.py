"""The decisions on rows, and the private trace of them for the auditor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.methods.release import IS_DEAD, IS_RELEASED, IS_SUPPRESSED, NO_REASON, VERDICTS
from shoal.methods.text_keys import Bools, Ints
from shoal.methods.z.settings import ZSettings

AT_ONCE: Final = np.iinfo(np.int64).min
"""The epoch of a row that did not wait for the end of one."""
_NAMES: Final = pa.dictionary(pa.int8(), pa.string())


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided about rows, in the order decided; `reasons` are indices, NO_REASON for rows that are not dead.

    `details` has one column for each further detail that the :class:`Tracer` writes: none with a fixed z; the z in
    force with a target; the epoch and the level of each attribute with combine.
    """

    rows: Ints
    times: Ints
    turns: Ints
    """The row with whose arrival each row was decided."""
    released: Bools
    reasons: npt.NDArray[np.int8]
    delays: Ints
    details: Ints

    @classmethod
    def joined(cls, parts: Sequence[Decisions]) -> Decisions:
        """Decisions one after another."""
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.times for part in parts]),
            np.concatenate([part.turns for part in parts]),
            np.concatenate([part.released for part in parts]),
            np.concatenate([part.reasons for part in parts]),
            np.concatenate([part.delays for part in parts]),
            np.concatenate([part.details for part in parts]),
        )

    def arranged(self, order: Ints | Bools) -> Decisions:
        """The same decisions in another order, or some of them."""
        return Decisions(
            self.rows[order], self.times[order], self.turns[order], self.released[order], self.reasons[order],
            self.delays[order], self.details[order],
        )  # fmt: skip


def refused_at_once(rows: Ints, times: Ints, reasons: npt.NDArray[np.int8], details: Ints) -> Decisions:
    """Decisions on rows that are refused when they arrive, with the same details for each."""
    released, delays = np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.int64)
    return Decisions(rows, times, rows, released, reasons, delays, np.tile(details, (len(rows), 1)))


class Tracer:
    """Turns decisions into trace batches.

    `thresholds` are the columns for z, with the fixed z of each; `follows` says that z is in the details instead.
    `levels` are the columns for the level of each attribute where rows wait for an epoch, which is then their `group`.
    """

    def __init__(
        self, reasons: Sequence[str], thresholds: Mapping[str, int], *, follows: bool, levels: Sequence[str]
    ) -> None:
        self._verdicts = pa.array(VERDICTS)
        self._reasons = pa.array(reasons, type=pa.string())
        self._thresholds = dict(thresholds)
        self._follows, self._has_epochs = follows, bool(levels)
        self.schema = pa.schema(
            [
                ("row", pa.int64()),
                ("verdict", _NAMES),
                ("reason", _NAMES),
                ("group", pa.int64()),
                ("delay", pa.int64()),
                *((name, pa.int64()) for name in (*self._thresholds, *levels)),
            ]
        )
        self._unjudged = np.array([AT_ONCE, *(-1 for _ in levels)] if levels else [-1] * follows, dtype=np.int64)

    def refused(self, rows: Ints, times: Ints, reasons: npt.NDArray[np.int8]) -> Decisions:
        """Decisions on rows that are refused when they arrive."""
        return refused_at_once(rows, times, reasons, self._unjudged)

    def trace(self, decisions: Decisions) -> pa.RecordBatch:
        """One row for each decision."""
        no_reason = decisions.reasons == NO_REASON
        verdicts = np.where(decisions.released, np.int8(IS_RELEASED), np.int8(IS_SUPPRESSED))
        verdicts[~no_reason] = IS_DEAD
        reasons = pa.array(np.where(no_reason, 0, decisions.reasons).astype(np.int8), mask=no_reason)
        columns = [
            pa.array(decisions.rows),
            pa.DictionaryArray.from_arrays(pa.array(verdicts), self._verdicts),
            pa.DictionaryArray.from_arrays(reasons, self._reasons),
            self._groups(decisions),
            pa.array(decisions.delays),
            *(self._threshold(decisions, z) for z in self._thresholds.values()),
        ]
        if self._has_epochs:
            columns += [pa.array(level) for level in decisions.details[:, 1:].T]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _groups(self, decisions: Decisions) -> pa.Array:
        if not self._has_epochs:
            return pa.nulls(len(decisions.rows), pa.int64())
        epochs = decisions.details[:, 0]
        return pa.array(epochs, mask=epochs == AT_ONCE)

    def _threshold(self, decisions: Decisions, z: int) -> pa.Array:
        if not self._follows:
            return pa.repeat(pa.scalar(z, pa.int64()), len(decisions.rows))
        in_force = decisions.details[:, 0]
        return pa.array(in_force, mask=in_force < 0)


def tracer_for(settings: ZSettings, reasons: tuple[str, ...]) -> Tracer:
    """The tracer of a method with these settings."""
    names = [f".{column.name}" for column in settings.attributes] if settings.is_table else [""]
    thresholds = {f"z{name}": column.z for name, column in zip(names, settings.attributes, strict=True)}
    levels = [] if settings.k is None else [f"level{name}" for name in names]
    return Tracer(reasons, thresholds, follows=settings.target is not None, levels=levels)
