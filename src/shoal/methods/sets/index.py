"""Where every block occurs; joining blocks updates it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from shoal.kernels.sets.records import turn_over
from shoal.kernels.sets.support import MOST, Index, join_lists, set_bits, support_of

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
_BITS_FROM: Final = 512
"""A block that one in so many sets has gets a row of bits: to look at a bit is quicker than to search a list."""
_BITS_ROOM: Final = 1 << 30
"""Bytes of memory for bits."""


class BlockIndex:
    """For each block the sets it occurs in, as a sorted list, for common ones as bits too."""

    def __init__(self, arrays: Index, rows: int, used: int, free_slots: list[int]) -> None:
        self.arrays = arrays
        self._rows = rows
        self._used = used
        self._free_slots = free_slots
        self._cursors = np.empty(MOST, np.int64)

    @classmethod
    def of(cls, starts: Ints, items: Codes, counts: Ints) -> Self:
        """The index of sets of items, every item its own block."""
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        lists = np.empty(len(items), np.int32)
        turn_over(starts, items, ends[:-1].copy(), lists)
        rows = len(starts) - 1
        slots = np.full(len(counts), -1, np.int32)
        common = np.flatnonzero(counts * _BITS_FROM >= max(rows, 1))
        # Joining never makes lists longer in all, so there are never more common blocks than this.
        words = (rows >> 6) + 1
        most = min(len(counts), _BITS_FROM * len(items) // max(rows, 1) + 1, _BITS_ROOM // (8 * words))
        bits = np.zeros((most, words), np.uint64)
        made = cls(Index(lists, ends[:-1].copy(), counts.copy(), slots, bits), rows, len(items), list(range(most)))
        for block in common[np.argsort(-counts[common], kind="stable")].tolist():
            made._give_bits(block)
        return made

    def copy(self) -> BlockIndex:
        """One that can be changed without this one changing, with room to join lists."""
        lists = np.empty(2 * self._used + 1, np.int32)
        lists[: self._used] = self.arrays.lists[: self._used]
        rest = [array.copy() for array in self.arrays[1:]]
        return BlockIndex(Index(lists, *rest), self._rows, self._used, self._free_slots.copy())

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return sum(array.nbytes for array in self.arrays)

    def support(self, blocks: Sequence[int], wanted: int) -> int:
        """How many sets have all these blocks, counted up to `wanted`."""
        chosen = np.array(blocks, np.int32)
        return int(support_of(self.arrays, chosen, self._cursors, wanted))

    def lengths(self) -> Ints:
        """In how many sets each block occurs; 0 for those joined to another."""
        return self.arrays.lengths

    def join(self, kept: int, blocks: Sequence[int]) -> None:
        """Let one block stand for all of these."""
        for block in blocks:
            if block != kept:
                self._join_pair(kept, block)

    def _join_pair(self, kept: int, gone: int) -> None:
        index = self.arrays
        count = int(index.lengths[kept] + index.lengths[gone])
        if self._used + count > len(index.lists):
            self._make_room(count)
        index = self.arrays
        length = join_lists(
            index.lists, index.starts[kept], index.lengths[kept], index.starts[gone], index.lengths[gone], self._used
        )
        self._join_bits(kept, gone, length)
        index.starts[kept], index.lengths[kept], index.lengths[gone] = self._used, length, 0
        self._used += length

    def _join_bits(self, kept: int, gone: int, length: int) -> None:
        index = self.arrays
        old, other = int(index.slots[kept]), int(index.slots[gone])
        if other >= 0:
            if old >= 0:
                index.bits[old] |= index.bits[other]
                self._free_slots.append(other)
            else:
                index.slots[kept] = old = other
                set_bits(index.lists, index.starts[kept], index.lengths[kept], index.bits, old)
            index.slots[gone] = -1
        elif old >= 0:
            set_bits(index.lists, index.starts[gone], index.lengths[gone], index.bits, old)
        elif length * _BITS_FROM >= self._rows:
            self._give_bits(kept)
            if index.slots[kept] >= 0:
                set_bits(index.lists, index.starts[gone], index.lengths[gone], index.bits, index.slots[kept])

    def _give_bits(self, block: int) -> None:
        if not self._free_slots:
            return
        slot = self._free_slots.pop()
        self.arrays.slots[block] = slot
        self.arrays.bits[slot] = 0
        set_bits(self.arrays.lists, self.arrays.starts[block], self.arrays.lengths[block], self.arrays.bits, slot)

    def _make_room(self, count: int) -> None:
        """Move the lists in use together."""
        index = self.arrays
        live = int(index.lengths.sum())
        lists, starts, filled = np.empty(2 * live + count + 1, np.int32), index.starts.copy(), 0
        for block in np.flatnonzero(index.lengths).tolist():
            length = int(index.lengths[block])
            lists[filled : filled + length] = index.lists[index.starts[block] : index.starts[block] + length]
            starts[block] = filled
            filled += length
        self.arrays, self._used = index._replace(lists=lists, starts=starts), filled
