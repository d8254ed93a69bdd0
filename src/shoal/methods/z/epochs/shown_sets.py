"""What is published of everyone in the running epoch, and what could have been."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.kernels.z import shown_sets as kernel
from shoal.kernels.z.crowd import PRIVATE
from shoal.kernels.z.peaks import move_peaks
from shoal.methods.text_keys import Bools, Ints
from shoal.methods.z.crowds.crowd import Levels
from shoal.models.z.target.target import KTarget

_SMALLEST: Final = 1024


@dataclass(frozen=True, slots=True)
class EpochRows:
    """Rows of one epoch in the order of their times, with what stands behind their values.

    `values` and `sizes` have a row for each column; a size of 0 is a missing value.
    """

    persons: Ints
    values: Ints
    sizes: Ints
    times: Ints
    usable: Bools


class ShownSets:
    """Decides which values of an epoch are published, so that enough people share all that is published of them."""

    def __init__(self, target: KTarget, windows_ns: list[int], *, keeps_blank: bool) -> None:
        self._k, self._p, self.keeps_blank = target.k, float(target.p), keeps_blank
        self._windows = np.array(windows_ns, dtype=np.float64)
        self.clear()

    def clear(self) -> None:
        """Begin an epoch."""
        self._pairs = np.zeros((_SMALLEST, 4), dtype=np.int64)
        self._people, self._groups = _empty(_SMALLEST)
        self._tally = np.zeros(kernel.TALLY, dtype=np.int64)

    @property
    def shown(self) -> int:
        """People with a published row."""
        return int(self._tally[kernel.SHOWN])

    @property
    def anonymous(self) -> int:
        """Those of them whose set at least k people share."""
        return self.shown - int(self._tally[kernel.ALONE])

    def publish(self, rows: EpochRows, z: int, end_ns: int) -> Levels:
        """The level of every value, by column: 0 where it is published; the epoch ends at `end_ns`."""
        levels, at = np.full(rows.sizes.shape, PRIVATE, dtype=np.int32), 0
        while at < len(rows.times):
            at = kernel.publish_rows(
                self._pairs, self._people, self._groups, self._tally, rows.persons, rows.values, rows.sizes,
                rows.usable, rows.times, float(end_ns), self._windows, z, self._k, self._p, self.keeps_blank, levels,
                at,
            )  # fmt: skip
            if at < len(rows.times):
                self._make_room()
        return levels

    def _make_room(self) -> None:
        """Double every table that is nearly half full."""
        taken, room = self._tally, 2 * len(self._windows) + 2
        if 2 * (taken[kernel.PAIRS] + room) > len(self._pairs):
            roomier = np.zeros((2 * len(self._pairs), 4), dtype=np.int64)
            move_peaks(self._pairs, roomier)
            self._pairs = roomier
        if 2 * (max(taken[kernel.PEOPLE], taken[kernel.GROUPS]) + room) > len(self._people):
            self._show_again(self._people, 2 * len(self._people))

    def _show_again(self, people: Ints, size: int) -> None:
        """Rebuild the tables of people and sets; sets that no one shows any more are dropped."""
        self._tally[kernel.PEOPLE :] = 0
        self._people, self._groups = _empty(size)
        kernel.show_again(people, self._people, self._groups, self._tally, self._k)

    def pairs(self) -> Ints:
        """Rows [person, value, peak, is published], in an order that depends only on them."""
        rows = self._pairs[self._pairs[:, 2] > 0]
        return rows[np.lexsort((rows[:, 1], rows[:, 0]))]

    # ---- state

    def dump(self) -> dict[str, Any]:
        """Everything, as arrays."""
        people = self._people[self._people[:, 3] > 0]
        return {"pairs": self.pairs(), "people": people[np.argsort(people[:, 0])]}

    def load(self, arrays: Mapping[str, Any]) -> None:
        """Take over what dump returned."""
        self.clear()
        pairs, people = (np.ascontiguousarray(arrays[name].reshape(-1, 4)) for name in ("pairs", "people"))
        self._pairs = np.zeros((_room_for(len(pairs)), 4), dtype=np.int64)
        move_peaks(pairs, self._pairs)
        self._tally[kernel.PAIRS] = len(pairs)
        self._show_again(people, _room_for(len(people)))


def _room_for(rows: int) -> int:
    return max(_SMALLEST, 1 << (4 * rows).bit_length())


def _empty(size: int) -> tuple[Ints, Ints]:
    people, groups = np.zeros((size, 4), dtype=np.int64), np.zeros((size, 3), dtype=np.int64)
    groups[:, 2] = -1
    return people, groups
