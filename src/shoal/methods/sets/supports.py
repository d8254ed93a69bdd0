"""How many people have which blocks: what the search asks of the data, and its answer on one machine.

The search sees no set of anybody. So the sets can be elsewhere, divided among machines: counts of parts are added.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Protocol, Self

import numpy as np

from shoal.kernels.sets.sampling import Draws, Scratch, find_violation, next_violation
from shoal.methods.sets.counting import Counting, CountsOfSize
from shoal.methods.sets.data import BlockIndex, Codes, Ints, SetData
from shoal.methods.sets.sampling import make_scratch

_SHORTEST: Final = 8
_LONGEST: Final = 512
_WORTH_A_THREAD: Final = 128
"""Proposals; shorter chunks are drawn in the calling thread."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Where drawing stopped."""

    end: int
    """The number of the next proposal."""
    passed: int
    violation: list[int] | None


class Supports(Protocol):
    """Numbers of people, for blocks that are merged step by step."""

    def copy(self) -> Self:
        """The same blocks, to be merged differently."""

    def people(self) -> Ints:
        """Number of people who have each block."""

    def support(self, blocks: Sequence[int], wanted: int) -> int:
        """Number of people who have all these blocks, counted up to `wanted`."""

    def join(self, kept: int, blocks: Sequence[int]) -> None:
        """Merge all of these blocks into one."""

    def counting(self) -> CountsOfSize:
        """Counts of all sets of blocks, in the current state."""

    def next_violation(self, block_of: Codes, sets: Codes, first: int, k: int) -> int:
        """The first itemset from `first` on whose image has fewer than k people; the number of itemsets if none."""

    def draw(self, draws: Draws, block_of: Codes, first: int, wanted: int) -> Drawn:
        """Draw from proposal `first` on until `wanted` samples have passed or one violates."""


class LocalSupports:
    """The sets of everybody in the memory of this process."""

    def __init__(self, data: SetData, index: BlockIndex) -> None:
        self._data, self.index = data, index
        self._scratches = [make_scratch() for _ in range(os.cpu_count() or 1)]

    @classmethod
    def of(cls, data: SetData, block_of: Codes) -> Self:
        """For items that may be in blocks already."""
        return cls(data, merged_index(data.index.copy(), block_of))

    def copy(self) -> LocalSupports:
        return LocalSupports(self._data, self.index.copy())

    def people(self) -> Ints:
        return self.index.arrays.lengths

    def support(self, blocks: Sequence[int], wanted: int) -> int:
        return self.index.support(blocks, wanted)

    def join(self, kept: int, blocks: Sequence[int]) -> None:
        self.index.join(kept, blocks)

    def counting(self) -> Counting:
        return Counting(self.index, len(self._data))

    def next_violation(self, block_of: Codes, sets: Codes, first: int, k: int) -> int:
        return int(next_violation(self.index.arrays, block_of, sets, first, k, self._scratches[0]))

    def draw(self, draws: Draws, block_of: Codes, first: int, wanted: int) -> Drawn:
        """Draw from proposal `first` on until `wanted` samples have passed or one violates.

        Chunks are read in order, so the number of threads changes nothing. They start short, because where one itemset
        violates others are likely to; handing a short one to a thread would take longer than drawing it.
        """
        passed, chunk = 0, _SHORTEST
        while True:
            threads = len(self._scratches) if chunk >= _WORTH_A_THREAD else 1
            chunks = [(first + place * chunk, first + (place + 1) * chunk) for place in range(threads)]
            jobs = [
                partial(self._draw_chunk, draws, block_of, *bounds, chunk + 1, scratch)
                for bounds, scratch in zip(chunks, self._scratches, strict=False)
            ]
            if threads == 1:
                results = [job() for job in jobs]
            else:
                results = [one.result() for one in [_pool(threads).submit(job) for job in jobs]]
            for bounds, drawn in zip(chunks, results, strict=True):
                if passed + drawn.passed >= wanted:  # stop at the last sample needed
                    last = self._draw_chunk(draws, block_of, *bounds, wanted - passed, self._scratches[0])
                    return Drawn(last.end, passed + last.passed, last.violation)
                passed += drawn.passed
                if drawn.violation is not None:
                    return Drawn(drawn.end, passed, drawn.violation)
            first, chunk = chunks[-1][1], min(2 * chunk, _LONGEST)

    def _draw_chunk(self, draws: Draws, block_of: Codes, first: int, last: int, wanted: int, scratch: Scratch) -> Drawn:
        end, passed, violates = find_violation(
            self._data.sets, self._data.index.arrays, self.index.arrays, block_of, draws, first, last, wanted, scratch
        )
        return Drawn(int(end), int(passed), scratch.itemset[: draws.size].tolist() if violates else None)


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="shoal-sets")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


def merged_index(index: BlockIndex, block_of: Codes) -> BlockIndex:
    """Merge the lists of items that are already in one block."""
    order = np.argsort(block_of, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(block_of[order])) + 1):
        if len(members) > 1:
            index.join(int(members[0]), members.tolist())
    return index
