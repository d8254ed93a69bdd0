"""Find itemsets that too few people have and merge blocks until every itemset has a crowd of k."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.sets.sampling import Draws, Scratch, find_violation, next_violation
from shoal.methods.sets.chain import as_chain
from shoal.methods.sets.counting import Counting
from shoal.methods.sets.data import BlockIndex, SetData
from shoal.methods.sets.partition import Partition
from shoal.methods.sets.sampling import make_draws, make_scratch, random_key
from shoal.methods.sets.settings import KmSettings

_SHORTEST: Final = 8
_LONGEST: Final = 512
_WORTH_A_THREAD: Final = 128
"""Proposals; shorter chunks are drawn in the calling thread."""
AFFORDABLE: Final = 1_000_000_000
"""Steps up to which a size is counted rather than sampled where the user leaves it open: some seconds."""
Progress = Callable[[str, int, int], None]
"""Called with the current activity, the size, and the number of blocks left."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """Where drawing stopped."""

    end: int
    """The number of the next proposal."""
    passed: int
    violation: list[int] | None


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="shoal-sets")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


class Search:
    """A partition that is merged step by step, with the index of its blocks."""

    def __init__(
        self, data: SetData, partition: Partition, settings: KmSettings, progress: Progress | None = None,
        *, index: BlockIndex | None = None,
    ) -> None:  # fmt: skip
        self.data = data
        self.partition = partition
        self.index = index if index is not None else _merged_index(data.index.copy(), partition.block_of)
        self._settings = settings
        self._progress = progress
        self._enforced: dict[int, int] = {}
        """By number of blocks: the crowd every such set has for sure; merging never makes a crowd smaller."""
        self._counted_again: dict[int, int] = {}
        self._scratches = [make_scratch() for _ in range(os.cpu_count() or 1)]

    def copy(self, settings: KmSettings | None = None, progress: Progress | None = None) -> Search:
        """An independent search in the same state, possibly with other settings."""
        other = Search(
            self.data, self.partition.copy(), settings or self._settings, progress or self._progress,
            index=self.index.copy(),
        )  # fmt: skip
        other._enforced, other._counted_again = self._enforced.copy(), self._counted_again.copy()
        return other

    @property
    def sizes(self) -> range:
        """The sizes of itemsets that occur, up to m."""
        return range(1, min(self._settings.m, self.data.longest) + 1)

    def should_count(self, size: int, counted: Collection[int]) -> bool:
        """Whether to count a size, given the sizes counted so far; counting a size counts all smaller ones too."""
        settings = self._settings
        if settings.must_count(size) or not settings.may_count(size):
            return settings.must_count(size)
        return len(counted) == size - 1 and self._counting().steps(size) <= AFFORDABLE

    def report(self, activity: str, size: int) -> None:
        """Report progress."""
        if self._progress is not None:
            self._progress(activity, size, self.partition.blocks_left)

    def repair(self, items: Iterable[int], k: int) -> None:
        """Merge blocks, cheapest first, until the image of these items has k people."""
        items = list(items)
        block_of = self.partition.block_of
        image = sorted({int(block_of[item]) for item in items})
        while self.index.support(image, k) < k:
            move = min(self.partition.moves(image))
            kept = self.partition.merge(move)
            self.index.join(kept, move.blocks)
            image = sorted({int(block_of[item]) for item in items})

    # ---- counting

    def _counting(self) -> Counting:
        return Counting(self.index, len(self.data))

    def enforce_counted(self, size: int, *purpose: str | int) -> None:
        """Merge until k people have every itemset of a size that occurs.

        Items of one block are published as one label: the image of an itemset can be smaller than the itemset, and
        still needs the crowd of the itemset's size.
        """
        k = self._settings.crowds[size - 1]
        for blocks in range(1, size + 1):
            if self._enforced.get(blocks, 0) < k:
                self._enforce_blocks(blocks, k, size, *purpose)
                self._enforced[blocks] = k

    def _enforce_blocks(self, count: int, k: int, *purpose: str | int) -> None:
        """Merge until k people have every set of `count` blocks that occurs."""
        for turn in range(2**31):
            self.report("counting", count)
            key = random_key(self._settings.seed, self.data.fingerprint, "count", count, turn, *purpose)
            found = self._counting().violations(count, k, int(key[0]))
            if not found.total:
                return
            self._repair_all(found.sets, k)

    def _repair_all(self, sets: npt.NDArray[np.int32], k: int) -> None:
        at = 0
        while True:
            at = next_violation(self.index.arrays, self.partition.block_of, sets, at, k, self._scratches[0])
            if at == len(sets):
                return
            self.repair(sets[at].tolist(), k)

    def count_again(self, size: int) -> bool:
        """Whether k people have every itemset of a size that occurs, in the current state."""
        k = self._settings.crowds[size - 1]
        left = [blocks for blocks in range(1, size + 1) if self._counted_again.get(blocks, 0) < k]
        counting = self._counting() if left else None
        for blocks in left:
            if counting is None or counting.violations(blocks, k).total:
                return False
            self._counted_again[blocks] = k
        return True

    # ---- sampling

    def enforce_sampled(self, size: int, *purpose: str | int) -> None:
        """Merge until as many samples in a row pass as the bound asks for; failing proposals are repaired too.

        Asking for more samples here would save attempts at certifying but cost blocks: with twice as many, a city of
        a million people had 141 blocks instead of 157.
        """
        for by_person in self._settings.by_person:
            draws = self.draws(size, "search", *purpose, by_person=by_person, samples_only=False, may_chain=True)
            wanted, number = self._settings.promise(size).samples, 0
            while draws is not None:
                self.report("sampling", size)
                drawn = self.draw(draws, first=number, wanted=wanted)
                if drawn.violation is None:
                    break
                self.repair(drawn.violation, draws.k)
                number = drawn.end

    def draws(
        self, size: int, *purpose: str | int, by_person: bool, samples_only: bool, may_chain: bool = False
    ) -> Draws | None:
        """The draws of itemsets of a size; None when every set is smaller."""
        key = random_key(self._settings.seed, self.data.fingerprint, size, by_person, *purpose)
        draws = make_draws(self.data, size, self._settings.crowds[size - 1], key, by_person=by_person)
        if draws is None:
            return None
        sampler = self._settings.sampler
        if may_chain and sampler != "exact" and not by_person:
            draws = as_chain(self.data, draws, is_literal=sampler == "paper-chain")
        return draws._replace(samples_only=samples_only)

    def draw(self, draws: Draws, *, first: int = 0, wanted: int) -> Drawn:
        """Draw from proposal `first` on until `wanted` samples have passed or one violates.

        Chunks are read in order, so the number of threads changes nothing. They start short, because where one itemset
        violates others are likely to; handing a short one to a thread would take longer than drawing it.
        """
        passed, chunk = 0, _SHORTEST
        while True:
            threads = len(self._scratches) if chunk >= _WORTH_A_THREAD else 1
            chunks = [(first + place * chunk, first + (place + 1) * chunk) for place in range(threads)]
            jobs = [
                partial(self._draw_chunk, draws, *bounds, chunk + 1, scratch)
                for bounds, scratch in zip(chunks, self._scratches, strict=False)
            ]
            if threads == 1:
                results = [job() for job in jobs]
            else:
                results = [one.result() for one in [_pool(threads).submit(job) for job in jobs]]
            for bounds, drawn in zip(chunks, results, strict=True):
                if passed + drawn.passed >= wanted:  # stop at the last sample needed
                    last = self._draw_chunk(draws, *bounds, wanted - passed, self._scratches[0])
                    return Drawn(last.end, passed + last.passed, last.violation)
                passed += drawn.passed
                if drawn.violation is not None:
                    return Drawn(drawn.end, passed, drawn.violation)
            first, chunk = chunks[-1][1], min(2 * chunk, _LONGEST)

    def _draw_chunk(self, draws: Draws, first: int, last: int, wanted: int, scratch: Scratch) -> Drawn:
        end, passed, violates = find_violation(
            self.data.sets, self.data.index.arrays, self.index.arrays, self.partition.block_of, draws, first, last,
            wanted, scratch,
        )  # fmt: skip
        return Drawn(int(end), int(passed), scratch.itemset[: draws.size].tolist() if violates else None)


def _merged_index(index: BlockIndex, block_of: npt.NDArray[np.int32]) -> BlockIndex:
    """Merge the lists of items that are already in one block."""
    order = np.argsort(block_of, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(block_of[order])) + 1):
        if len(members) > 1:
            index.join(int(members[0]), members.tolist())
    return index
