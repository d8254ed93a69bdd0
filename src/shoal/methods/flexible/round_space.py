"""Memory for the arrays of a round, kept from round to round: new memory costs more than the search."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.kernels.flexible.groups import NO_ENTRY, NONE
from shoal.kernels.flexible.layout import (
    BLOCK_NUMBERS,
    BLOCKS,
    BUCKETS,
    COUNTS,
    END,
    LABEL_NUMBERS,
    NEXT_PLACE,
    NOWHERE,
    PENDING,
    SIZES,
    TUPLE_NUMBERS,
    TUPLES,
    UNLABELLED,
    Assignment,
    Blocks,
    Published,
    Scratch,
    Tuples,
)

Array = npt.NDArray[Any]
Space = tuple[Scratch, Blocks, Tuples, npt.NDArray[np.int64], Assignment, Published]


class RoundSpace:
    """The arrays of a round for labels of sparse attributes, and for normal and sparse attributes."""

    def __init__(self, labels: int, normal: int, sparse: int) -> None:
        self._labels, self._normal, self._sparse = labels, normal, sparse
        self._kept: dict[str, Array] = {}

    def arrays(self, count: int, people: int, space: int) -> Space:
        """Arrays for a number of rows and people, with space for that many blocks, tuples, and rows of each."""
        return (
            self._scratch(count, people), self._blocks(space), self._tuples(space), np.zeros(SIZES, np.int64),
            self._assignment(count, space), self._published(count),
        )  # fmt: skip

    def clean(self, sizes: npt.NDArray[np.int64]) -> None:
        """Clear what must be zero at the beginning of a round."""
        for name in ("candidates", "states"):
            self._kept[name][: sizes[TUPLES] + sizes[BLOCKS]] = 0

    def _ints(self, name: str, *shape: int) -> Array:
        return self._array(name, shape, np.int64)

    def _places(self, name: str, *shape: int) -> Array:
        return self._array(name, shape, np.int32)

    def _array(self, name: str, shape: tuple[int, ...], kind: Any) -> Array:
        """An array of any content; the first one of a name is zero."""
        kept = self._kept.get(name)
        if kept is None or len(kept) < shape[0]:
            kept = self._kept[name] = np.zeros(shape, kind)
        return kept[: shape[0]]

    def _filled(self, name: str, count: int, value: int) -> Array:
        found = self._ints(name, count)
        found[:] = value
        return found

    def _scratch(self, count: int, people: int) -> Scratch:
        labels = self._labels
        longest, table = max(count, labels), 1 << (2 * labels + 1).bit_length()
        numbers = np.zeros((labels, LABEL_NUMBERS), np.int64)
        numbers[:, NEXT_PLACE] = NOWHERE
        return Scratch(
            seen=np.zeros(people, np.int64), slot_of=self._ints("slot_of", people),
            tick=np.zeros(1, np.int64), labels=numbers, present=self._ints("present", labels),
            sums=np.zeros((table, 2), np.int64),
            sort_keys=np.empty((2, longest), np.int64), sort_rows=np.empty((2, longest), np.int64),
            depth=np.empty(self._normal, np.int64), key=np.full(self._normal + self._sparse, NONE, np.int64),
            place_of=self._ints("place", count),
        )  # fmt: skip

    def _blocks(self, space: int) -> Blocks:
        return Blocks(
            depths=self._ints("depths", space, self._normal), info=self._ints("blocks", space, BLOCK_NUMBERS),
            rows=self._places("block_rows", space), slots=self._places("person_slots", space),
            counts=self._places("block_counts", space), finest=self._ints("finest", space),
        )  # fmt: skip

    def _tuples(self, space: int) -> Tuples:
        return Tuples(
            info=self._ints("tuples", space, TUPLE_NUMBERS), labels=self._places("labels", space, self._sparse),
            rows=self._places("rows", space), slots=self._places("slots", space),
            block_slots=self._places("block_slots", space), counts=self._places("counts", space),
            is_filled=self._array("is_filled", (space,), np.bool_),
        )  # fmt: skip

    def _assignment(self, count: int, space: int) -> Assignment:
        return Assignment(
            tuple_of=self._filled("tuple_of", count, PENDING), place_of=self._ints("place_of", count),
            loss_of=self._filled("loss_of", count, UNLABELLED), moves=np.empty((3, 8 * count + 64), np.int64),
            buckets=np.full(BUCKETS, END, np.int64), candidates=self._places("candidates", 2 * space, 3),
            states=self._places("states", space, 3), counts=np.zeros(COUNTS, np.int64),
            heads=self._filled("heads", count, END), entries=self._places("entries", space, 3),
        )  # fmt: skip

    def _published(self, count: int) -> Published:
        return Published(
            given=np.full((self._sparse, count), NONE, np.int64), block_of=self._filled("block_of", count, PENDING),
            group_of=self._filled("group_of", count, NO_ENTRY), rows=self._ints("sorted_rows", count),
        )  # fmt: skip
