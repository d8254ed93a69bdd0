"""The largest crowds behind the pairs of people and values of an epoch, where a shard counts them for others."""

from __future__ import annotations

from typing import Final

import numpy as np

from shoal.kernels.z.peaks import move_peaks, note_peaks
from shoal.methods.text_keys import Ints

_SMALLEST: Final = 1024


class EpochPeaks:
    """The largest crowd behind each (person, value) pair of an epoch."""

    def __init__(self) -> None:
        self._table = np.zeros((_SMALLEST, 3), dtype=np.int64)
        self._taken = np.zeros(1, dtype=np.int64)

    def note(self, persons: Ints, values: Ints, sizes: Ints) -> None:
        """Record the crowds behind events, by the keys of person and value; 0 is ignored."""
        at = 0
        while (at := note_peaks(self._table, self._taken, persons, values, sizes, at)) < len(sizes):
            roomier = np.zeros((2 * len(self._table), 3), dtype=np.int64)
            move_peaks(self._table, roomier)
            self._table = roomier

    def pairs(self) -> Ints:
        """Rows [person, value, peak], in any order."""
        rows: Ints = self._table[self._table[:, 2] > 0]
        return rows
