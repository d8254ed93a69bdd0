"""Counting all sets of blocks of a size, on all cores."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import comb
from queue import SimpleQueue
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.sets.counting import DISTINCT, KEPT, TOTAL, ZEROS, Found, Ranked, Walk, find_violations, following
from shoal.kernels.sets.records import turn_over
from shoal.methods.sets.index import BlockIndex

Ints = npt.NDArray[np.int64]
_MOST_KEPT: Final = 1 << 18
_TASKS_A_THREAD: Final = 32


@dataclass(frozen=True, slots=True)
class Violations:
    """Sets of blocks that too few people have: how many, and some or all of them in an order that a key decides."""

    total: int
    distinct: int
    """How many sets of blocks were looked at; all there are where every prefix was."""
    sets: npt.NDArray[np.int32]


class Counting:
    """The generalized sets as things stand."""

    def __init__(self, index: BlockIndex, rows: int) -> None:
        lengths = index.lengths()
        alive = np.flatnonzero(lengths)
        self.names = alive[np.lexsort((alive, lengths[alive]))].astype(np.int32)
        """Blocks by rank, the rarest first."""
        counts = lengths[self.names]
        ends = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
        owners = np.empty(int(ends[-1]), np.int32)
        for rank, block in enumerate(self.names.tolist()):
            begin = index.arrays.starts[block]
            owners[ends[rank] : ends[rank + 1]] = index.arrays.lists[begin : begin + counts[rank]]
        sizes = np.bincount(owners, minlength=rows)
        starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        ranks = np.empty(len(owners), np.int32)
        turn_over(ends, owners, starts[:-1].copy(), ranks)
        self._sets = Ranked(starts, ranks, ends, owners)
        self._sizes = np.bincount(sizes)

    def steps(self, size: int) -> int:
        """How many times a set of blocks of this size occurs with somebody: the steps that counting takes."""
        return sum(int(people) * comb(length, size) for length, people in enumerate(self._sizes.tolist()) if people)

    def violations(self, size: int, k: int, key: int = 0, *, least: int | None = None) -> Violations:
        """Sets of blocks of a size that somebody, but fewer than k people have.

        Those in which fewer than `least` people (by default k) have all but the most common block are left out.
        """
        least = k if least is None else least
        if size == 1:
            few = self.names[np.diff(self._sets.owner_starts) < k]
            return Violations(len(few), len(self.names), np.sort(few)[:, None])
        threads = os.cpu_count() or 1
        tasks = [np.arange(first, len(self.names), threads * _TASKS_A_THREAD)
                 for first in range(min(threads * _TASKS_A_THREAD, len(self.names)))]  # fmt: skip
        rooms: SimpleQueue[tuple[Walk, Found]] = SimpleQueue()
        for room in self._rooms(size, threads):
            rooms.put(room)

        def work(ranks: Ints) -> None:
            walk, found = room = rooms.get()
            find_violations(self._sets, walk, ranks, size, k, least, self.names, np.uint64(key), found)
            rooms.put(room)

        with ThreadPoolExecutor(threads) as pool:
            for done in [pool.submit(work, ranks) for ranks in tasks]:
                done.result()
        return _joined([rooms.get()[1] for _ in range(threads)], size)

    def _rooms(self, size: int, threads: int) -> Iterator[tuple[Walk, Found]]:
        blocks, depths = len(self.names), size - 1
        room = int(np.diff(self._sets.owner_starts).max(initial=0))
        if depths > 1:
            room = max(room, *(following(self._sets, rank) for rank in range(blocks)))
        for _ in range(threads):
            walk = Walk(
                np.zeros((depths, blocks), np.int32), np.empty((depths, blocks), np.int32),
                np.empty((depths, blocks), np.int64), np.empty((depths, room), np.int32),
                np.empty((depths, room), np.int64), np.zeros((depths + 1, 4), np.int64), np.zeros(2 * size, np.int32),
            )  # fmt: skip
            found = Found(
                np.empty((_MOST_KEPT, size), np.int32), np.empty(_MOST_KEPT, np.uint64), np.zeros(4, np.int64)
            )
            yield walk, found


def _joined(parts: list[Found], size: int) -> Violations:
    """One list of what several threads found: the same whichever thread found it."""
    total = sum(int(part.tally[TOTAL]) for part in parts)
    # By the total, not by which thread ran out of room: that would depend on how threads are scheduled.
    zeros = max((4 * total // _MOST_KEPT).bit_length(), *(int(part.tally[ZEROS]) for part in parts))
    mask = np.uint64((1 << zeros) - 1)
    kept = [int(part.tally[KEPT]) for part in parts]
    hashes = np.concatenate([part.hashes[:count] for part, count in zip(parts, kept, strict=True)])
    sets = np.concatenate([part.sets[:count] for part, count in zip(parts, kept, strict=True)])
    chosen = np.flatnonzero(hashes & mask == 0)
    order = chosen[np.lexsort((*sets[chosen].T, hashes[chosen]))]
    distinct = sum(int(part.tally[DISTINCT]) for part in parts)
    return Violations(total, distinct, sets[order].reshape(-1, size))
