"""Rows of a batch as z-anonymity sees them, on their way to a decision."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.methods.text_keys import Bools, Ints
from shoal.methods.trace import NO_REASON, Decisions
from shoal.methods.z.reorder_buffer import Waiting


@dataclass(slots=True)
class Arrivals:
    """Who, when and what of each row, and why it cannot be used (NO_REASON: it can)."""

    batch: pa.RecordBatch
    seqs: Ints
    times: Ints
    persons: Ints
    reasons: npt.NDArray[np.int8]
    readings: list[Any]
    codes: npt.NDArray[np.int8] = field(default_factory=lambda: np.empty(0, dtype=np.int8))
    newest: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    z: Ints | None = None
    """The z each row was decided with, where it is not the same for all."""

    def __post_init__(self) -> None:
        if not len(self.codes):
            self.codes = np.zeros(len(self.seqs), dtype=np.int8)
            self.newest = np.zeros(len(self.seqs), dtype=np.int64)

    def __len__(self) -> int:
        return len(self.seqs)

    @property
    def usable(self) -> Bools:
        """Which rows may be decided."""
        usable: Bools = self.reasons == NO_REASON
        return usable

    def between(self, start: int, stop: int, *, batch: pa.RecordBatch, readings: list[Any]) -> Arrivals:
        """A run of rows, given their part of the batch and its readings."""
        rows = slice(start, stop)
        return Arrivals(
            batch, self.seqs[rows], self.times[rows], self.persons[rows], self.reasons[rows], readings,
            self.codes[rows], self.newest[rows],
        )  # fmt: skip

    def waiting(self) -> Waiting:
        """The same rows as they are held."""
        return Waiting(self.seqs, self.times, self.persons, self.batch)

    def dead(self) -> Decisions:
        """Decisions on the rows that cannot be used."""
        rows = np.flatnonzero(self.reasons != NO_REASON)
        nothing = np.zeros(len(rows), dtype=np.bool_)
        return Decisions.of(
            self.seqs[rows], released=nothing, reasons=self.reasons[rows], delays=np.zeros(len(rows), dtype=np.int64)
        )
