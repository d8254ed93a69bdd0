"""Count all sets of blocks of a size, on all cores: those that occur, or all combinations if that is cheaper."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import comb
from queue import SimpleQueue
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from shoal.kernels.sets.bitmaps import Prefixes, judge_combinations
from shoal.kernels.sets.counting import DISTINCT, KEPT, TOTAL, ZEROS, Found, Ranked, Walk, find_violations, following
from shoal.kernels.sets.support import set_bits
from shoal.methods.sets.data import BITS_ROOM, BlockIndex, Codes, Ints, inverted, offsets, subsets

_MOST_KEPT: Final = 1 << 18
_TASKS_A_THREAD: Final = 32
_STEPS_A_COMBINATION: Final = 8
"""Judging a combination of blocks by bitmaps takes as long as this many steps of counting, usually less."""
_MANY_STEPS: Final = 10_000_000
"""Fewer are walked in any case: it takes less time than compiling the other kernel."""
_HEAD: Final = 64
"""Words of a prefix that are combined with the last block first; they decide nearly all combinations."""


@dataclass(frozen=True, slots=True)
class Violations:
    """Sets of blocks that too few people have: their number, and all or some of them in an order set by a key."""

    total: int
    distinct: int
    """Number of sets of blocks examined; all that occur where no prefix was skipped."""
    sets: npt.NDArray[np.int32]


class CountsOfSize(Protocol):
    """Finds the sets of blocks of a size that too few people have."""

    def steps(self, size: int) -> int:
        """Number of steps that counting this size takes on one machine: whether it is affordable."""

    def violations(self, size: int, k: int, key: int = 0) -> Violations:
        """Sets of blocks of a size that at least one person but fewer than k people have."""


@dataclass(frozen=True, slots=True)
class Effort:
    """The steps that counting takes, by how many people have a set of 0, 1, 2, … blocks."""

    people_by_size: npt.NDArray[np.intp]
    blocks: int
    rows: int

    @property
    def words(self) -> int:
        """Words of the bitmap of a block."""
        return (self.rows >> 6) + 1

    def steps(self, size: int) -> int:
        """Steps of the cheaper way."""
        return min(self.by_walk(size), self.by_bitmaps(size))

    def by_walk(self, size: int) -> int:
        """Sets of blocks that occur, counted once per person."""
        return subsets(self.people_by_size, size)

    def by_bitmaps(self, size: int) -> int:
        """All combinations of blocks, and the words of the prefixes; infinite if they are not used."""
        if size < 2 or 8 * self.blocks * self.words > BITS_ROOM or self.by_walk(size) < _MANY_STEPS:
            return 1 << 62
        return _STEPS_A_COMBINATION * comb(self.blocks, size) + comb(self.blocks, size - 2) * self.words


def by_rarity(people: Ints) -> Codes:
    """Blocks that someone has, the rarest first, given the number of people of each."""
    alive = np.flatnonzero(people)
    return alive[np.lexsort((alive, people[alive]))].astype(np.int32)


def ranked_sets(index: BlockIndex, names: Codes, rows: int) -> Ranked:
    """The generalized sets with the ranks of blocks, given the blocks by rank."""
    lengths = index.arrays.lengths
    ends = offsets(lengths[names])
    owners = np.empty(int(ends[-1]), np.int32)
    for rank, block in enumerate(names.tolist()):
        begin = index.arrays.starts[block]
        owners[ends[rank] : ends[rank + 1]] = index.arrays.lists[begin : begin + lengths[block]]
    return Ranked(*inverted(ends, owners, rows), ends, owners)


class Counting:
    """The generalized sets in their current state, ready for counting."""

    def __init__(self, index: BlockIndex, rows: int) -> None:
        self.names = by_rarity(index.arrays.lengths)
        """Blocks by rank, the rarest first."""
        self._sets = ranked_sets(index, self.names, rows)
        self._effort = Effort(np.bincount(np.diff(self._sets.starts)), len(self.names), rows)
        self._words = self._effort.words

    def steps(self, size: int) -> int:
        """Number of steps that counting this size takes."""
        return self._effort.steps(size)

    def violations(self, size: int, k: int, key: int = 0, *, least: int | None = None) -> Violations:
        """Sets of blocks of a size that at least one person but fewer than k people have.

        Sets whose blocks without the most common one have fewer than `least` people (by default k) are skipped.
        """
        least = k if least is None else least
        if size == 1:
            few = self.names[np.diff(self._sets.owner_starts) < k]
            return Violations(len(few), len(self.names), np.sort(few)[:, None])
        threads = os.cpu_count() or 1
        by_bitmaps = self._effort.by_bitmaps(size) < self._effort.by_walk(size)
        data = self._bitmaps() if by_bitmaps else self._sets
        judge: Any = judge_combinations if by_bitmaps else find_violations
        buffers: SimpleQueue[tuple[Walk | Prefixes, Found]] = SimpleQueue()
        for buffer in self._prefixes(size, threads) if by_bitmaps else self._walks(size, threads):
            buffers.put((buffer, _room(size)))

        def work(ranks: Ints) -> None:
            walk, found = buffer = buffers.get()
            judge(data, walk, ranks, size, k, least, self.names, np.uint64(key), found)
            buffers.put(buffer)

        tasks = [np.arange(first, len(self.names), threads * _TASKS_A_THREAD)
                 for first in range(min(threads * _TASKS_A_THREAD, len(self.names)))]  # fmt: skip
        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(work, ranks) for ranks in tasks]:
                done.result()
        return _joined([buffers.get()[1] for _ in range(threads)], size)

    def _bitmaps(self) -> npt.NDArray[np.uint64]:
        """One bit per set for every block, by rank."""
        bits = np.zeros((len(self.names), self._words), np.uint64)
        ends = self._sets.owner_starts
        for rank in range(len(self.names)):
            set_bits(self._sets.owners, ends[rank], ends[rank + 1] - ends[rank], bits, rank)
        return bits

    def _prefixes(self, size: int, threads: int) -> Iterator[Prefixes]:
        """Buffers for judging by bitmaps, one per thread; the empty prefix has everybody."""
        depths, words = size, max(self._words, _HEAD)
        for _ in range(threads):
            walk = Prefixes(
                np.zeros((depths, words), np.uint64), np.zeros((depths, words), np.int32),
                np.zeros((depths, 2), np.int64), np.zeros(2 * size, np.int32), _HEAD,
            )  # fmt: skip
            walk.words[0] = ~np.uint64(0)
            walk.places[0] = np.arange(words)
            walk.lengths[0] = self._words, -1
            yield walk

    def _walks(self, size: int, threads: int) -> Iterator[Walk]:
        """Buffers for walking through the sets that occur, one per thread."""
        blocks, depths = len(self.names), size - 1
        room = int(np.diff(self._sets.owner_starts).max(initial=0))
        if depths > 1:
            room = max(room, *(following(self._sets, rank) for rank in range(blocks)))
        for _ in range(threads):
            yield Walk(
                np.zeros((depths, blocks), np.int32), np.empty((depths, blocks), np.int32),
                np.empty((depths, blocks), np.int64), np.empty((depths, room), np.int32),
                np.empty((depths, room), np.int64), np.zeros((depths + 1, 4), np.int64), np.zeros(2 * size, np.int32),
            )  # fmt: skip


def thinned(sets: Codes, hashes: npt.NDArray[np.uint64], total: int, *, at_least: int = 0) -> Ints:
    """Positions of the violations to keep of a total, in the order of their hashes."""
    mask = np.uint64((1 << max(zeros_of(total), at_least)) - 1)
    chosen = np.flatnonzero(hashes & mask == 0)
    order: Ints = chosen[np.lexsort((*sets[chosen].T, hashes[chosen]))]
    return order


def zeros_of(total: int) -> int:
    """How many zero bits the hash of a violation must end in to be kept, so that about 2^15 to 2^16 are."""
    return (4 * total // _MOST_KEPT).bit_length()


def _room(size: int) -> Found:
    return Found(np.empty((_MOST_KEPT, size), np.int32), np.empty(_MOST_KEPT, np.uint64), np.zeros(4, np.int64))


def _joined(parts: list[Found], size: int) -> Violations:
    """One list of what several threads found; it does not depend on which thread found it."""
    total = sum(int(part.tally[TOTAL]) for part in parts)
    hashes = np.concatenate([part.hashes[: part.tally[KEPT]] for part in parts])
    sets = np.concatenate([part.sets[: part.tally[KEPT]] for part in parts])
    # Thin out by the total, not by which thread ran out of room: that would depend on scheduling.
    order = thinned(sets, hashes, total, at_least=max(int(part.tally[ZEROS]) for part in parts))
    distinct = sum(int(part.tally[DISTINCT]) for part in parts)
    return Violations(total, distinct, sets[order].reshape(-1, size))
