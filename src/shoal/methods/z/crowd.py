"""The table of people behind each value: its arrays are allocated, grown and shrunk here, never inside a kernel."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.instructions import WORDS
from shoal.kernels.z import crowd as kernel

Ints = npt.NDArray[np.int64]

_SMALLEST: Final = 64
_SPARE: Final = 1.4
"""Capacity of a rebuilt table, as a multiple of its entries."""
_EMPTIEST: Final = 0.6
"""A table with fewer entries than this share of its capacity is rebuilt."""


class CrowdTable:
    """The people behind each attribute value inside a window; grows and shrinks with what the window holds."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._adopt(np.empty((0, 4), dtype=np.int64), np.empty((0, 4), dtype=np.int64))

    @property
    def live_pairs(self) -> int:
        """(person, attribute) pairs inside the window."""
        return int(self.marks[kernel.LIVE])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.arrays)

    def make_room(self, sightings: int) -> None:
        """Reserve room for this many more sightings, each of a new value at worst."""
        if not kernel.has_room(self.pool, self.marks, sightings):
            self._repack(sightings)

    def trim(self) -> None:
        """Free memory where the window holds much less than it did."""
        live, known = int(self.marks[kernel.LIVE]), int(self.marks[kernel.ATTRS])
        if self._is_sparse(self.pool, live) or self._is_sparse(self.attrs, known):
            self._repack(0)

    @staticmethod
    def _is_sparse(rows: Ints, entries: int) -> bool:
        return len(rows) > _SMALLEST * 2 and entries < _EMPTIEST * len(rows)

    def expire(self, oldest: int) -> None:
        """Forget sightings before a time."""
        kernel.expire(self.pool, self.attrs, self.names, self.marks, oldest)

    def dump(self) -> tuple[Ints, Ints]:
        """All live rows as two compact arrays, which depend only on the events seen."""
        pool = np.empty((self.live_pairs, 4), dtype=np.int64)
        attrs = np.zeros((int(self.marks[kernel.ATTRS]), 4), dtype=np.int64)
        self._pack_into(pool, attrs)
        return pool, attrs

    def load(self, pool: Ints, attrs: Ints) -> None:
        """Take over what dump returned."""
        self._adopt(pool, attrs)

    def _repack(self, sightings: int) -> None:
        # indexes are rebuilt from the rows: free the old ones first, so that growing needs little extra memory
        self.pairs = self.names = np.empty(0, dtype=np.int64)
        self.arrays = (self.pool, self.pairs, self.attrs, self.names, self.marks)
        live, known = int(self.marks[kernel.LIVE]), int(self.marks[kernel.ATTRS])
        pool = np.empty((self._capacity(live + sightings), 4), dtype=np.int64)
        attrs = np.empty((self._capacity(known + sightings), 4), dtype=np.int64)
        self._pack_into(pool, attrs)
        self._install(pool, attrs, live, known)

    @staticmethod
    def _capacity(entries: int) -> int:
        return max(_SMALLEST, int(entries * _SPARE))

    def _pack_into(self, pool: Ints, attrs: Ints) -> None:
        renumbered = np.full(int(self.marks[kernel.TOP]), -1, dtype=np.int32)
        kernel.pack(self.pool, self.attrs, self.marks, pool, attrs, renumbered)

    def _adopt(self, pool: Ints, attrs: Ints) -> None:
        live, known = len(pool), len(attrs)
        self.marks = np.zeros(kernel.MARKS, dtype=np.int64)
        roomy_pool = np.empty((self._capacity(live), 4), dtype=np.int64)
        roomy_attrs = np.empty((self._capacity(known), 4), dtype=np.int64)
        roomy_pool[:live], roomy_attrs[:known] = pool, attrs
        self._install(roomy_pool, roomy_attrs, live, known)

    def _install(self, pool: Ints, attrs: Ints, live: int, known: int) -> None:
        """Make packed rows the state, with fresh indexes."""
        self.pool, self.attrs = pool, attrs
        self.pairs = _lines(-(-2 * len(pool) // WORDS) + 1)
        self.names = np.zeros(2 * len(attrs), dtype=np.int64)
        self.marks[:] = (0, live, live, 1, known, known, -1, len(attrs))
        kernel.index_pairs(pool, attrs, self.marks, self.pairs)
        kernel.index_names(attrs, known, self.names)
        self.arrays = (self.pool, self.pairs, self.attrs, self.names, self.marks)  # in the order kernels take them


def _lines(count: int) -> Ints:
    """Zeroed words of memory, eight in each cache line."""
    size = 8 * WORDS
    memory = np.zeros(count * WORDS + WORDS, dtype=np.int64)
    start = -memory.ctypes.data % size // memory.itemsize
    return memory[start : start + count * WORDS]
