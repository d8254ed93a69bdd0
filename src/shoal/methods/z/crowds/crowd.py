"""The people behind values, and who counts for each label of a hierarchy by either residual rule.

Tables are allocated, grown and shrunk here, never inside a kernel.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.instructions import WORDS
from shoal.kernels.z import crowd as kernel
from shoal.kernels.z import index, label_crowd
from shoal.kernels.z import label_rows as layout
from shoal.times import EARLIEST

Ints = npt.NDArray[np.int64]
Levels = npt.NDArray[np.signedinteger]

_SMALLEST: Final = 64
_SPARE: Final = 1.4
"""Capacity of a rebuilt table, as a multiple of its entries."""
_EMPTIEST: Final = 0.6
"""A table with fewer entries than this share of its capacity is rebuilt."""
_EMPTIEST_LABELS: Final = 0.4
"""The same for exposures of the strict rule, whose tables take longer to rebuild."""


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
    def newest(self) -> int:
        """When a person was last seen; long ago if the window is empty."""
        head, used = int(self.marks[kernel.HEAD]), int(self.marks[kernel.USED])
        return int(self.pool[(head + used - 1) % len(self.pool), kernel.TIME]) if used else EARLIEST

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
        index.index_names(attrs, known, self.names)
        self.arrays = (self.pool, self.pairs, self.attrs, self.names, self.marks)  # in the order kernels take them


def _lines(count: int) -> Ints:
    """Zeroed words of memory, eight in each cache line."""
    size = 8 * WORDS
    memory = np.zeros(count * WORDS + WORDS, dtype=np.int64)
    start = -memory.ctypes.data % size // memory.itemsize
    return memory[start : start + count * WORDS]


class LooseLabels(CrowdTable):
    """The loose rule: an exposure counts for a label unless it was released strictly below."""

    def __init__(self, z: int) -> None:
        self._z = z
        super().__init__()

    def decide_paths(self, persons: Ints, keys: Ints, starts: Ints, times: Ints, window_ns: int, out: Levels) -> None:
        """Decide events along their paths: keys[starts[i]:starts[i + 1]] is that of event i."""
        at = 0
        while at < len(times):
            self.make_room(int(starts[at + 1] - starts[at]))
            at = kernel.decide_paths(
                *self.arrays, persons, keys, starts, times, self._z, window_ns, at, out
            )  # fmt: skip


class StrictLabels:
    """The strict rule: besides, an exposure stops counting for a label while a label strictly below passes."""

    def __init__(self, z: int) -> None:
        self._z = z
        self.clear()

    def clear(self) -> None:
        """Forget everything."""
        self.load(np.empty((0, 5), dtype=np.int64), np.empty((0, 4), dtype=np.int64))

    @property
    def live_pairs(self) -> int:
        """Exposures inside the window that no later one replaces."""
        return int(self.tables.marks[layout.LIVE])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.tables)

    def decide_paths(self, persons: Ints, keys: Ints, starts: Ints, times: Ints, window_ns: int, out: Levels) -> None:
        """Decide events along their paths: keys[starts[i]:starts[i + 1]] is that of event i."""
        at = label_crowd.decide_strictly(self.tables, persons, keys, starts, times, self._z, window_ns, 0, out)
        while at < len(times):
            self._rebuild(int(starts[at + 1] - starts[at]))
            at = label_crowd.decide_strictly(self.tables, persons, keys, starts, times, self._z, window_ns, at, out)

    def expire(self, oldest: int) -> None:
        """Forget exposures before a time."""
        label_crowd.expire_labels(self.tables, oldest, self._z)

    def trim(self) -> None:
        """Free memory where the window holds much less than it did."""
        if len(self.tables.ring) > 2 * _SMALLEST and self.live_pairs < _EMPTIEST_LABELS * len(self.tables.ring):
            self._rebuild(0)

    def dump(self) -> tuple[Ints, Ints]:
        """All live exposures and their labels as two compact arrays, which depend only on the events seen."""
        tables, marks = self.tables, self.tables.marks
        exposures = np.empty((self.live_pairs, 5), dtype=np.int64)
        labels = np.empty((int(marks[layout.NODE_ROWS]), 4), dtype=np.int64)
        renumbered = np.full(int(marks[layout.NODE_ROWS + 1]), -1, dtype=np.int64)
        label_crowd.pack_labels(tables, exposures, labels, renumbered)
        return exposures, labels

    def load(self, exposures: Ints, labels: Ints, *, room: int = 0) -> None:
        """Take over what dump returned, with room for one more exposure with a path of `room` labels."""
        depths = _depths(labels)
        span = int(depths[exposures[:, 3]].sum())
        rows = _capacity(len(exposures) + 1)
        pairs, nodes, people = rows, _capacity(len(labels) + room), _capacity(span + room)
        self.tables = layout.Labels(
            np.empty((rows, layout.WIDTHS["ring"]), dtype=np.int64),
            np.empty((pairs, layout.WIDTHS["pairs"]), dtype=np.int64), _index(pairs),
            np.empty((nodes, layout.WIDTHS["nodes"]), dtype=np.int64), _index(nodes),
            np.empty((people, layout.WIDTHS["people"]), dtype=np.int64), _index(people),
            np.zeros(layout.MARKS, dtype=np.int64),
        )  # fmt: skip
        for of in (layout.PAIR_ROWS, layout.NODE_ROWS, layout.PEOPLE_ROWS):
            self.tables.marks[of + 2] = -1
        path = np.empty((int(depths.max(initial=0)), 2), dtype=np.int64)
        label_crowd.load_labels(self.tables, exposures, labels, self._z, path)

    def _rebuild(self, room: int) -> None:
        self.load(*self.dump(), room=room)


def _capacity(entries: int) -> int:
    return max(_SMALLEST, int(entries * _SPARE))


def _index(rows: int) -> Ints:
    return np.zeros(2 * rows, dtype=np.int64)


def _depths(labels: Ints) -> Ints:
    """How many labels are on the path of each label."""
    depths, above = np.ones(len(labels), dtype=np.int64), labels[:, 2].copy()
    while (climbing := above >= 0).any():
        depths += climbing
        above = np.where(climbing, labels[above, 2], -1)
    return depths
