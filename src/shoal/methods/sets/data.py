"""Everybody's sets, ready for counting and sampling, and the index of the sets that have each block."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from math import comb
from typing import Final, Protocol, Self

import numpy as np
import numpy.typing as npt

from shoal.kernels.sets.records import (
    count_items,
    drop_repeats,
    fingerprint_rows,
    gather_rows,
    generalize_rows,
    turn_over,
)
from shoal.kernels.sets.sampling import Sets, Sizes
from shoal.kernels.sets.support import MOST, Index, join_lists, set_bits, support_of

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
_WHOLE: Final = 1 << 64
_BITS_FROM: Final = 512
"""A block that at least one set in this many has gets a row of bits: testing a bit is faster than searching a list."""
BITS_ROOM: Final = 1 << 30
"""Bytes of memory for bits."""


class KnownSets(Protocol):
    """What is known about everybody's sets without looking at any."""

    def __len__(self) -> int: ...

    @property
    def longest(self) -> int:
        """Number of items in the largest set."""

    @property
    def fingerprint(self) -> bytes:
        """A digest of the data and the names."""

    def sizes(self, size: int, *, by_person: bool) -> Sizes | None:
        """The probability of each set size when itemsets of a size are drawn; None when every set is smaller."""


class SetData:
    """Sets of items by number, sorted by size and content: the order of the input does not matter.

    Parameters
    ----------
    starts
        Where each set begins among the items, and where the last one ends.
    items
        Numbers of items, set after set, in any order; an item given twice counts once.
    names
        Labels of all items, by number.
    """

    def __init__(self, starts: Ints, items: Codes, names: Sequence[str]) -> None:
        self.names = tuple(names)
        starts, items = sorted_sets(starts, items, len(self.names))
        first, second = np.empty(len(starts) - 1, np.uint64), np.empty(len(starts) - 1, np.uint64)
        fingerprint_rows(starts, items, first, second)
        self.order = np.lexsort((second, first, np.diff(starts))).astype(np.int64)
        """Position in the input of each set kept here."""
        self.words = first[self.order], second[self.order]
        self.sets = Sets(*gathered(starts, items, self.order))
        self.index = BlockIndex.of(*self.sets, len(self.names))
        self.weights = self.index.arrays.lengths.copy()
        """Number of sets that have each item."""

    def __len__(self) -> int:
        return len(self.order)

    @property
    def longest(self) -> int:
        """Number of items in the largest set."""
        return int(self.set_sizes[-1]) if len(self) else 0

    @cached_property
    def set_sizes(self) -> Ints:
        """Number of items of each set, ascending."""
        sizes: Ints = np.diff(self.sets.starts)
        return sizes

    @cached_property
    def fingerprint(self) -> bytes:
        """A digest of the data and the names."""
        return fingerprint_of(self.words, self.set_sizes, self.names)

    def sizes(self, size: int, *, by_person: bool) -> Sizes | None:
        """The probability of each set size when itemsets of a size are drawn; None when every set is smaller."""
        return sizes_of(np.bincount(self.set_sizes), size, by_person=by_person)

    def itemsets(self, size: int) -> int:
        """Number of itemsets of a size that people have, counted once per person."""
        return subsets(np.bincount(self.set_sizes), size)

    def generalized(self, block_of: Codes) -> tuple[Ints, Codes]:
        """The sets with blocks instead of items, in the order kept here."""
        starts, items = np.empty_like(self.sets.starts), np.empty_like(self.sets.items)
        seen = np.full(len(self.names), -1, np.int64)
        count = generalize_rows(self.sets.starts, self.sets.items, block_of, seen, starts, items)
        return starts, items[:count]


class BlockIndex:
    """For each block the sets that have it, as a sorted list and, for common blocks, as bits.

    Sets are numbered from the last to the first, so that the largest come first.
    """

    def __init__(self, arrays: Index, rows: int, used: int, free_slots: list[int]) -> None:
        self.arrays = arrays
        self._rows = rows
        self._used = used
        self._free_slots = free_slots
        self._cursors = np.empty(MOST, np.int64)

    @classmethod
    def of(cls, starts: Ints, items: Codes, kinds: int) -> Self:
        """The index of sets of items, every item its own block."""
        ends, owners = inverted(starts, items, kinds)
        rows, counts = len(starts) - 1, np.diff(ends)
        lists, first = rows - 1 - owners[::-1], len(owners) - ends[1:]
        slots = np.full(kinds, -1, np.int32)
        common = np.flatnonzero(counts * _BITS_FROM >= max(rows, 1))
        # Merging never makes the lists longer in total, so there are never more common blocks than this.
        words = (rows >> 6) + 1
        most = min(kinds, _BITS_FROM * len(items) // max(rows, 1) + 1, BITS_ROOM // (8 * words))
        bits = np.zeros((most, words), np.uint64)
        made = cls(Index(lists, first, counts, slots, bits), rows, len(items), list(range(most)))
        for block in common[np.argsort(-counts[common], kind="stable")].tolist():
            made._give_bits(block)
        return made

    def copy(self) -> BlockIndex:
        """An independent copy with room to merge lists."""
        lists = np.empty(2 * self._used + 1, np.int32)
        lists[: self._used] = self.arrays.lists[: self._used]
        rest = [array.copy() for array in self.arrays[1:]]
        return BlockIndex(Index(lists, *rest), self._rows, self._used, self._free_slots.copy())

    def support(self, blocks: Sequence[int], wanted: int) -> int:
        """Number of sets that have all these blocks, counted up to `wanted`."""
        return int(support_of(self.arrays, np.array(blocks, np.int32), self._cursors, wanted))

    def join(self, kept: int, blocks: Sequence[int]) -> None:
        """Merge all of these blocks into one."""
        for block in blocks:
            if block != kept:
                self._join_pair(kept, block)

    def _join_pair(self, kept: int, gone: int) -> None:
        count = int(self.arrays.lengths[kept] + self.arrays.lengths[gone])
        if self._used + count > len(self.arrays.lists):
            self._make_room(count)
        index = self.arrays
        length = join_lists(
            index.lists, index.starts[kept], index.lengths[kept], index.starts[gone], index.lengths[gone], self._used
        )
        self._join_bits(kept, gone, length)
        index.starts[kept], index.lengths[kept], index.lengths[gone] = self._used, length, 0
        self._used += length

    def _join_bits(self, kept: int, gone: int, length: int) -> None:
        slots = self.arrays.slots
        old, other = int(slots[kept]), int(slots[gone])
        if other >= 0:
            if old >= 0:
                self.arrays.bits[old] |= self.arrays.bits[other]
                self._free_slots.append(other)
            else:
                slots[kept] = other
                self._set_bits(kept, other)
            slots[gone] = -1
        elif old >= 0:
            self._set_bits(gone, old)
        elif length * _BITS_FROM >= self._rows:
            self._give_bits(kept)
            if slots[kept] >= 0:
                self._set_bits(gone, int(slots[kept]))

    def _give_bits(self, block: int) -> None:
        if self._free_slots:
            slot = self._free_slots.pop()
            self.arrays.slots[block] = slot
            self.arrays.bits[slot] = 0
            self._set_bits(block, slot)

    def _set_bits(self, block: int, slot: int) -> None:
        index = self.arrays
        set_bits(index.lists, index.starts[block], index.lengths[block], index.bits, slot)

    def _make_room(self, count: int) -> None:
        """Compact the lists in use into a larger array."""
        index = self.arrays
        live = int(index.lengths.sum())
        lists, starts, filled = np.empty(2 * live + count + 1, np.int32), index.starts.copy(), 0
        for block in np.flatnonzero(index.lengths).tolist():
            length = int(index.lengths[block])
            lists[filled : filled + length] = index.lists[index.starts[block] : index.starts[block] + length]
            starts[block] = filled
            filled += length
        self.arrays, self._used = index._replace(lists=lists, starts=starts), filled


def offsets(lengths: npt.ArrayLike) -> Ints:
    """Where lists of these lengths begin, one after another, and where the last one ends."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))


def gathered(starts: Ints, items: Codes, order: Ints) -> tuple[Ints, Codes]:
    """The sets at these positions, in this order."""
    sizes = np.diff(starts)[order] if len(order) else np.empty(0, np.int64)
    new_starts, new_items = np.empty(len(order) + 1, np.int64), np.empty(int(sizes.sum()), np.int32)
    gather_rows(starts, items, order, new_starts, new_items)
    return new_starts, new_items


def inverted(starts: Ints, items: Codes, kinds: int) -> tuple[Ints, Codes]:
    """For every item the sets that have it, in order."""
    counts = np.zeros(kinds, np.int64)
    count_items(items, counts)
    ends = offsets(counts)
    owners = np.empty(len(items), np.int32)
    turn_over(starts, items, ends[:-1].copy(), owners)
    return ends, owners


def subsets(people_by_size: npt.NDArray[np.intp], size: int) -> int:
    """Number of subsets of a size, given how many people have a set of 0, 1, 2, … items."""
    return sum(int(people) * comb(length, size) for length, people in enumerate(people_by_size.tolist()) if people)


def sizes_of(people_by_size: npt.NDArray[np.intp], size: int, *, by_person: bool) -> Sizes | None:
    """The probability of each set size when itemsets of a size are drawn; None when every set is smaller."""
    lengths = np.flatnonzero(people_by_size)
    first, count = offsets(people_by_size)[lengths], people_by_size[lengths]
    fits = lengths >= size
    if not fits.any():
        return None
    lengths, first, count = lengths[fits], first[fits], count[fits]
    weights = [
        int(people) * (1 if by_person else comb(int(length), size))
        for length, people in zip(lengths, count, strict=True)
    ]
    total, so_far, upto = sum(weights), 0, []
    for weight in weights:
        so_far += weight
        upto.append(min(so_far * _WHOLE // total, _WHOLE - 1))
    return Sizes(np.array(upto, np.uint64), first.astype(np.int64), count.astype(np.int64))


def fingerprint_of(words: Sequence[npt.NDArray[np.uint64]], set_sizes: Ints, names: Sequence[str]) -> bytes:
    """A digest of the sets, given the two hashes of each and its size, in order, and of the names."""
    digest = hashlib.sha256()
    for part in (*words, set_sizes):
        digest.update(np.ascontiguousarray(part).tobytes())
    for name in names:
        digest.update(name.encode() + b"\x00")
    return digest.digest()


def sorted_sets(starts: Ints, items: Codes, kinds: int) -> tuple[Ints, Codes]:
    """Sort every set and drop repeated items; inverting twice sorts in linear time."""
    owner_starts, owners = inverted(starts, items, kinds)
    new_starts = np.empty_like(owner_starts)
    kept = drop_repeats(owner_starts, owners, new_starts)
    return inverted(new_starts, owners[:kept], len(starts) - 1)
