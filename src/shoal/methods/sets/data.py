"""Everybody's sets, ready to be counted and sampled: in an order that depends on what they hold alone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from math import comb

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
from shoal.methods.sets.index import BlockIndex

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]
_WHOLE = 1 << 64


class SetData:
    """Sets of items by number, sorted by size and then by what they hold; equal data are equal in any order.

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
        starts, items = _in_order(starts, items, len(self.names))
        first, second = np.empty(len(starts) - 1, np.uint64), np.empty(len(starts) - 1, np.uint64)
        fingerprint_rows(starts, items, first, second)
        self.order = np.lexsort((second, first, np.diff(starts))).astype(np.int64)
        """Place in the input of each set kept here."""
        self.words = first[self.order], second[self.order]
        new_starts, new_items = np.empty_like(starts), np.empty_like(items)
        gather_rows(starts, items, self.order, new_starts, new_items)
        self.sets = Sets(new_starts, new_items)
        self.weights = np.zeros(len(self.names), np.int64)
        count_items(new_items, self.weights)
        self.index = BlockIndex.of(self.sets.starts, self.sets.items, self.weights)

    def __len__(self) -> int:
        return len(self.order)

    @property
    def longest(self) -> int:
        """Most items that anybody has."""
        return int(self.set_sizes[-1]) if len(self) else 0

    @cached_property
    def set_sizes(self) -> Ints:
        """Items of each set, ascending."""
        sizes: Ints = np.diff(self.sets.starts)
        return sizes

    @cached_property
    def fingerprint(self) -> bytes:
        """Tells other data, or other names, from these."""
        digest = hashlib.sha256()
        for part in (*self.words, self.set_sizes):
            digest.update(np.ascontiguousarray(part).tobytes())
        for name in self.names:
            digest.update(name.encode() + b"\x00")
        return digest.digest()

    def sizes(self, size: int, *, by_person: bool) -> Sizes | None:
        """How likely sets are picked when itemsets of a size are drawn; None when nobody has so many items."""
        lengths, first, count = np.unique(self.set_sizes, return_index=True, return_counts=True)
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

    def itemsets(self, size: int) -> int:
        """How many itemsets of a size people have, one counted once for each person."""
        return _subsets(self.set_sizes, size)

    def generalized(self, block_of: Codes) -> tuple[Ints, Codes]:
        """The sets with blocks instead of items, in the order kept here."""
        starts, items = np.empty_like(self.sets.starts), np.empty_like(self.sets.items)
        seen = np.full(len(self.names), -1, np.int64)
        count = generalize_rows(self.sets.starts, self.sets.items, block_of, seen, starts, items)
        return starts, items[:count]


def _subsets(lengths: Ints, size: int) -> int:
    counts = np.bincount(lengths)
    return sum(int(people) * comb(length, size) for length, people in enumerate(counts.tolist()) if people)


def _in_order(starts: Ints, items: Codes, names: int) -> tuple[Ints, Codes]:
    """Sort every set and drop repeats: turning rows over twice is a sort in linear time."""
    owner_starts, owners = turned_over(starts, items, names)
    fewer = np.empty_like(owner_starts)
    kept = drop_repeats(owner_starts, owners, fewer)
    return turned_over(fewer, owners[:kept], len(starts) - 1)


def turned_over(starts: Ints, items: Codes, kinds: int) -> tuple[Ints, Codes]:
    """For every item the sets that have it, in order."""
    counts = np.zeros(kinds, np.int64)
    count_items(items, counts)
    ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    owners = np.empty(len(items), np.int32)
    turn_over(starts, items, ends[:-1].copy(), owners)
    return ends, owners
