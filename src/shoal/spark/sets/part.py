"""One part of everybody's sets: answers how many of its people have which blocks. Answers of all parts are added."""

from __future__ import annotations

from collections.abc import Mapping
from math import comb
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.sets.parts import count_supports, list_combinations, tally_combinations
from shoal.kernels.sets.support import MOST
from shoal.methods.sets.counting import ranked_sets
from shoal.methods.sets.data import BlockIndex, Codes, Ints

Values = Mapping[str, Any]
"""Whole numbers and arrays by name: a question, or an answer."""
SAMPLED: Final = 64
"""Numbers of combinations that a part reports, evenly spaced, so that counts can be asked for in equal portions."""
_DENSE: Final = 1 << 24
"""Up to this many combinations are counted in an array with an entry for each."""
_AT_ONCE: Final = 1 << 22


class SetPart:
    """The sets of some people, and blocks of items that are merged step by step, under several handles.

    Parameters
    ----------
    starts, items
        The sets, items ascending in each.
    numbers
        The number of each set among everybody's, ascending.
    kinds
        Number of items there are.
    """

    def __init__(self, starts: Ints, items: Codes, numbers: Ints, kinds: int) -> None:
        self._starts, self._items, self._numbers = starts, items, numbers
        self._indexes = {0: BlockIndex.of(starts, items, kinds)}
        self._blocks, self._cursors = np.zeros(MOST, np.int32), np.zeros(MOST, np.int64)
        self._counted = np.empty(0, np.int64), np.empty(0, np.int64)

    def answer(self, question: str, values: Values) -> Values | None:
        """Answer a question; None for what only changes the blocks."""
        found: Values | None = getattr(self, f"do_{question}")(**values)
        return found

    def do_copy(self, handle: int, new: int) -> None:
        """Make a copy of the blocks."""
        self._indexes[new] = self._indexes[handle].copy()

    def do_drop(self, handle: int) -> None:
        """Forget blocks."""
        self._indexes.pop(handle, None)

    def do_join(self, handle: int, kept: int, blocks: Ints) -> None:
        """Merge blocks."""
        self._indexes[handle].join(kept, blocks.tolist())

    def do_people(self, handle: int) -> Values:
        """People who have each block, and people by the number of their blocks."""
        index = self._indexes[handle]
        rows = len(self._numbers)
        lengths = index.arrays.lengths
        names = np.flatnonzero(lengths).astype(np.int32)
        return {"people": lengths, "by_size": np.bincount(np.diff(ranked_sets(index, names, rows).starts))}

    def do_supports(self, handle: int, images: Codes, wanted: Ints) -> Values:
        """People who have all blocks of each image; negative blocks are skipped."""
        counts = np.zeros(len(images), np.int64)
        count_supports(self._indexes[handle].arrays, images, wanted, self._blocks, self._cursors, counts)
        return {"counts": counts}

    def do_items(self, rows: Ints, places: Ints) -> Values:
        """The items at these places of these sets, for the sets that are here."""
        own: Ints = np.flatnonzero(np.isin(rows, self._numbers)).astype(np.int64)
        at = np.searchsorted(self._numbers, rows)
        return {"at": own, "items": self._items[self._starts[at[own]][:, None] + places[own]]}

    # ---- all combinations of a size

    def do_count(self, handle: int, names: Codes, size: int) -> Values:
        """Count all combinations of blocks that occur here; report how many there are."""
        sets = ranked_sets(self._indexes[handle], names, len(self._numbers))
        table = combination_table(len(names), size)
        if comb(len(names), size) <= _DENSE:
            counts = np.zeros(comb(len(names), size), np.int64)
            tally_combinations(sets.starts, sets.ranks, size, table, np.zeros(size, np.int64), counts)
            found = np.flatnonzero(counts)
            self._counted = found, counts[found]
        else:
            self._counted = self._listed(sets, size, table)
        numbers = self._counted[0]
        some = numbers[np.linspace(0, len(numbers) - 1, SAMPLED).astype(np.int64)] if len(numbers) else numbers
        return {"distinct": len(numbers), "some": some}

    @staticmethod
    def _listed(sets: Any, size: int, table: Ints) -> tuple[Ints, Ints]:
        """Combinations and their counts, ascending; listed in portions."""
        room, places = np.empty(_AT_ONCE, np.int64), np.zeros(size + 1, np.int64)
        found = np.empty(0, np.int64), np.empty(0, np.int64)
        row, last = 0, len(sets.starts) - 1
        while row < last:
            row, filled = list_combinations(sets.starts, sets.ranks, size, table, row, places, room)
            found = summed(found, np.unique(room[:filled], return_counts=True))
        return found

    def do_counts(self, low: int, high: int) -> Values:
        """The combinations from number `low` to before `high`, and how many people have each."""
        numbers, counts = self._counted
        begin, end = np.searchsorted(numbers, [low, high])
        return {"numbers": numbers[begin:end], "counts": counts[begin:end]}

    def do_forget(self) -> None:
        """Forget the combinations."""
        self._counted = np.empty(0, np.int64), np.empty(0, np.int64)


def combination_table(blocks: int, size: int) -> Ints:
    """C(r, i + 1) for every rank and place."""
    table = np.zeros((max(blocks, 1), size), np.int64)
    for rank in range(blocks):
        table[rank] = [comb(rank, place + 1) for place in range(size)]
    return table


def combinations_of(numbers: Ints, table: Ints) -> npt.NDArray[np.int64]:
    """The ranks of combinations, by their numbers."""
    left, found = numbers.copy(), np.empty((len(numbers), table.shape[1]), np.int64)
    for place in reversed(range(table.shape[1])):
        found[:, place] = np.searchsorted(table[:, place], left, side="right") - 1
        left -= table[found[:, place], place]
    return found


def summed(*parts: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """Numbers and counts of several parts, added where numbers are the same; ascending."""
    numbers, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.argsort(numbers, kind="stable")
    numbers, counts = numbers[order], counts[order]
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    return numbers[first], np.add.reduceat(counts, first) if len(first) else counts
