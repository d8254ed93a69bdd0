"""The people who count for each label of a hierarchy, by either residual rule.

Tables are allocated, grown and shrunk here, never inside a kernel.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.z import crowd as crowd_kernel
from shoal.kernels.z import label_crowd as kernel
from shoal.kernels.z import label_rows as layout
from shoal.methods.z.crowd import CrowdTable

Ints = npt.NDArray[np.int64]
Levels = npt.NDArray[np.int32]

_SMALLEST: Final = 64
_SPARE: Final = 1.4
"""Capacity of a rebuilt table, as a multiple of its entries."""
_EMPTIEST: Final = 0.4
"""Tables with fewer exposures than this share of their capacity are rebuilt."""


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
            at = crowd_kernel.decide_paths(
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
        at = kernel.decide_strictly(self.tables, persons, keys, starts, times, self._z, window_ns, 0, out)
        while at < len(times):
            self._rebuild(int(starts[at + 1] - starts[at]))
            at = kernel.decide_strictly(self.tables, persons, keys, starts, times, self._z, window_ns, at, out)

    def expire(self, oldest: int) -> None:
        """Forget exposures before a time."""
        kernel.expire_labels(self.tables, oldest, self._z)

    def trim(self) -> None:
        """Free memory where the window holds much less than it did."""
        if len(self.tables.ring) > 2 * _SMALLEST and self.live_pairs < _EMPTIEST * len(self.tables.ring):
            self._rebuild(0)

    def dump(self) -> tuple[Ints, Ints]:
        """All live exposures and their labels as two compact arrays, which depend only on the events seen."""
        tables, marks = self.tables, self.tables.marks
        exposures = np.empty((self.live_pairs, 5), dtype=np.int64)
        labels = np.empty((int(marks[layout.NODE_ROWS]), 4), dtype=np.int64)
        renumbered = np.full(int(marks[layout.NODE_ROWS + 1]), -1, dtype=np.int64)
        kernel.pack_labels(tables, exposures, labels, renumbered)
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
        kernel.load_labels(self.tables, exposures, labels, self._z, path)

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
