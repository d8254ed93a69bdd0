"""The arrays behind the crowd kernels: allocated, grown and shrunk here, never inside a kernel."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels import crowd as kernel

Ints = npt.NDArray[np.int64]

_SMALLEST: Final = 64
_BATCH: Final = 65_536  # never shrink below what one batch may need next
_SPARE: Final = 1.4
_FULLEST: Final = 0.75
_EMPTIEST: Final = 0.5
_INDEX_FULLEST: Final = 0.7
_INDEX_EMPTIEST: Final = 0.3


def _index_size(entries: int) -> int:
    return 1 << max(6, int(np.ceil(np.log2((entries + 1) / _INDEX_FULLEST))))


class CrowdTable:
    """People per attribute inside a window; bounded by what the window holds, and shrinking with it."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self._adopt(np.empty((0, 4), dtype=np.int64), np.empty((0, 4), dtype=np.int64), room=0)

    @property
    def live_pairs(self) -> int:
        """(person, attribute) pairs inside the window."""
        return int(self.marks[kernel.LIVE])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in (self.pool, self.pairs, self.attrs, self.names, self.marks))

    @property
    def arrays(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        """The state, in the order kernels take it."""
        return self.pool, self.pairs, self.attrs, self.names, self.marks

    def reserve(self, sightings: int) -> None:
        """Make sure that this many more sightings, each of a new attribute at worst, find room."""
        live, known = int(self.marks[kernel.LIVE]), int(self.marks[kernel.ATTRS])
        room = len(self.pool) - int(self.marks[kernel.USED])
        is_short = room < sightings or len(self.attrs) - known < sightings
        if (
            is_short
            or not self._fits(self.pool, self.pairs, live, sightings)
            or not self._fits(self.attrs, self.names, known, sightings)
        ):
            self._repack(sightings)

    @staticmethod
    def _fits(rows: Ints, index: Ints, entries: int, more: int) -> bool:
        """Whether arrays are neither too full for `more` entries nor much too large for a batch."""
        kept = entries + max(more, _BATCH)
        is_roomy = entries + more <= _INDEX_FULLEST * len(index)
        is_lean = len(rows) * _EMPTIEST <= kept * _SPARE and len(index) * _INDEX_EMPTIEST <= kept
        return is_roomy and is_lean

    def expire(self, oldest: int) -> None:
        """Forget sightings before a time."""
        kernel.expire(*self.arrays, oldest)

    def dump(self) -> tuple[Ints, Ints]:
        """What is live as two compact arrays; they depend on what was seen alone."""
        pool = np.empty((self.live_pairs, 4), dtype=np.int64)
        attrs = np.zeros((int(self.marks[kernel.ATTRS]), 4), dtype=np.int64)
        self._pack_into(pool, attrs)
        return pool, attrs

    def load(self, pool: Ints, attrs: Ints) -> None:
        """Take over what dump returned."""
        self._adopt(pool, attrs, room=0)

    def _repack(self, sightings: int) -> None:
        # The index is rebuilt from the pool, so the old one can go first: growing needs little extra memory.
        self.pairs = self.names = np.empty(0, dtype=np.int64)
        live, attrs = int(self.marks[kernel.LIVE]), int(self.marks[kernel.ATTRS])
        capacity = self._capacity(len(self.pool), live + sightings)
        pool = np.empty((capacity, 4), dtype=np.int64)
        rows = np.empty((self._capacity(len(self.attrs), attrs + sightings), 4), dtype=np.int64)
        self._pack_into(pool, rows)
        self._install(pool, rows, live, attrs, sightings)

    @staticmethod
    def _capacity(current: int, needed: int) -> int:
        is_fit = _EMPTIEST * current <= needed + _BATCH and needed <= _FULLEST * current
        return current if is_fit else max(_SMALLEST, int(needed * _SPARE))

    def _pack_into(self, pool: Ints, attrs: Ints) -> None:
        renumbered = np.full(int(self.marks[kernel.TOP]), -1, dtype=np.int32)
        kernel.pack(self.pool, self.attrs, self.marks, pool, attrs, renumbered)

    def _adopt(self, pool: Ints, attrs: Ints, *, room: int) -> None:
        live, known = len(pool), len(attrs)
        self.marks = np.zeros(kernel.MARKS, dtype=np.int64)
        spacious = np.empty((self._capacity(0, live + room), 4), dtype=np.int64)
        rows = np.empty((self._capacity(0, known + room), 4), dtype=np.int64)
        spacious[:live], rows[:known] = pool, attrs
        self._install(spacious, rows, live, known, room)

    def _install(self, pool: Ints, attrs: Ints, live: int, known: int, room: int) -> None:
        self.pool, self.attrs = pool, attrs
        self.marks[:] = (0, live, live, known, known, -1)
        self.pairs = np.zeros(_index_size(live + room), dtype=np.int64)
        self.names = np.zeros(_index_size(known + room), dtype=np.int64)
        kernel.index_pairs(pool, live, self.pairs)
        kernel.index_names(attrs, known, self.names)
