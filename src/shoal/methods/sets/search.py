"""The search for a partition whose itemsets hide: find one that does not, join blocks until it does, go on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.sets.repair import next_violation
from shoal.kernels.sets.sampling import Draws, Scratch, find_violation
from shoal.methods.sets.counting import Counting
from shoal.methods.sets.data import SetData
from shoal.methods.sets.drawing import as_chain, make_draws, make_scratch
from shoal.methods.sets.index import BlockIndex
from shoal.methods.sets.partition import Partition
from shoal.methods.sets.seeding import coin_key
from shoal.methods.sets.settings import KmSettings

_SHORTEST: Final = 8
_LONGEST: Final = 512
AFFORDABLE: Final = 1_000_000_000
"""Sets of blocks that are counted rather than sampled, where the user leaves it open: some seconds."""
Progress = Callable[[str, int, int], None]
"""Is told what is done, the size, and how many blocks are left."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """How far drawing came."""

    end: int
    """The number of the next proposal."""
    passed: int
    violation: list[int] | None


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="shoal-sets")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


class Search:
    """A partition under way, with the index of its blocks."""

    def __init__(
        self,
        data: SetData,
        partition: Partition,
        settings: KmSettings,
        index: BlockIndex,
        progress: Progress | None = None,
    ) -> None:
        self.data = data
        self.partition = partition
        self.index = index
        self._settings = settings
        self._progress = progress
        self._settled: dict[int, int] = {}
        """By how many blocks: of how many people every such set is sure, since joining never makes them fewer."""
        self._counted_again: dict[int, int] = {}
        self._scratches = [make_scratch() for _ in range(os.cpu_count() or 1)]

    @classmethod
    def begin(
        cls, data: SetData, partition: Partition, settings: KmSettings, progress: Progress | None = None
    ) -> Search:
        """A search from the partition as it stands."""
        index = data.index.copy()
        _join_as(index, partition.block_of)
        return cls(data, partition, settings, index, progress)

    def copy(self) -> Search:
        """One that goes on from here by itself."""
        other = Search(self.data, self.partition.copy(), self._settings, self.index.copy(), self._progress)
        other._settled = self._settled.copy()
        return other

    # ---- joining

    def mend(self, items: Iterable[int], k: int) -> None:
        """Join blocks, the least error first, until the image of these items has k people."""
        items = list(items)
        block_of = self.partition.block_of
        image = sorted({int(block_of[item]) for item in items})
        while self.index.support(image, k) < k:
            move = min(self.partition.moves(image))
            kept = self.partition.merge(move)
            self.index.join(kept, move.blocks)
            image = sorted({int(block_of[item]) for item in items})

    def tell(self, what: str, size: int) -> None:
        """Say what is done."""
        if self._progress is not None:
            self._progress(what, size, self.partition.blocks_left)

    # ---- counting

    def counting(self) -> Counting:
        """The generalized sets as they stand."""
        return Counting(self.index, len(self.data))

    def settle_counted(self, size: int, *purpose: str | int) -> None:
        """Join until every itemset of a size that anybody has, k people have.

        Items of one block are published as one: the image of an itemset can be smaller than it is, and must still
        have the crowd of its own size.
        """
        k = self._settings.k[size - 1]
        for blocks in range(1, size + 1):
            if self._settled.get(blocks, 0) < k:
                self._settle_blocks(blocks, k, size, *purpose)
                self._settled[blocks] = k

    def _settle_blocks(self, count: int, k: int, *purpose: str | int) -> None:
        """Join until every set of so many blocks that anybody has, k people have."""
        for turn in range(2**31):
            self.tell("counting", count)
            key = coin_key(self._settings.seed, self.data.fingerprint, "count", count, turn, *purpose)
            found = self.counting().violations(count, k, int(key[0]))
            if not found.total:
                return
            self._mend_all(found.sets, k)

    def count_again(self, size: int) -> bool:
        """Whether every itemset of a size that anybody has, k people have, as things stand now."""
        counting, k = self.counting(), self._settings.k[size - 1]
        for blocks in range(1, size + 1):
            if self._counted_again.get(blocks, 0) < k:
                if counting.violations(blocks, k).total:
                    return False
                self._counted_again[blocks] = k
        return True

    def _mend_all(self, sets: npt.NDArray[np.int32], k: int) -> None:
        at = 0
        while True:
            at = next_violation(self.index.arrays, self.partition.block_of, sets, at, k, self._scratches[0])
            if at == len(sets):
                return
            self.mend(sets[at].tolist(), k)

    # ---- sampling

    def settle_sampled(self, size: int, *purpose: str | int) -> None:
        """Join until as many samples in a row pass as the bound asks for; other proposals that fail are used as well.

        To ask for more here would save attempts at certifying and cost blocks: with twice as many a city of a million
        people had 141 blocks instead of 157.
        """
        for by_person in self._settings.by_person:
            draw = self.drawing(size, "search", *purpose, by_person=by_person, samples_only=False, may_chain=True)
            wanted, number = self._settings.promise(size).samples, 0
            while draw is not None:
                self.tell("sampling", size)
                drawn = self.draw(draw, first=number, wanted=wanted)
                if drawn.violation is None:
                    break
                self.mend(drawn.violation, draw.k)
                number = drawn.end

    def drawing(
        self, size: int, *purpose: str | int, by_person: bool, samples_only: bool, may_chain: bool = False
    ) -> Draws | None:
        """How to draw itemsets of a size; None when nobody has so many items."""
        key = coin_key(self._settings.seed, self.data.fingerprint, size, by_person, *purpose)
        draws = make_draws(self.data, size, self._settings.k[size - 1], key, by_person=by_person)
        if draws is None:
            return None
        if may_chain and self._settings.sampler == "chain" and not by_person:
            draws = as_chain(self.data, draws)
        return draws._replace(samples_only=samples_only)

    def draw(self, draw: Draws, *, first: int = 0, wanted: int) -> Drawn:
        """Draw from proposal `first` on until so many samples have passed, or one violates.

        Chunks go to threads and are looked at in order: how many threads there are changes nothing. They are short at
        first, since where one itemset violates others are likely to.
        """
        passed, chunk = 0, _SHORTEST
        while True:
            chunks = [(first + place * chunk, first + (place + 1) * chunk) for place in range(len(self._scratches))]
            under_way = [
                _pool(len(chunks)).submit(self._draw_chunk, draw, *bounds, chunk + 1, scratch)
                for bounds, scratch in zip(chunks, self._scratches, strict=True)
            ]
            results = [one.result() for one in under_way]
            for bounds, drawn in zip(chunks, results, strict=True):
                if passed + drawn.passed >= wanted:  # no further than needed
                    last = self._draw_chunk(draw, *bounds, wanted - passed, self._scratches[0])
                    return Drawn(last.end, passed + last.passed, last.violation)
                passed += drawn.passed
                if drawn.violation is not None:
                    return Drawn(drawn.end, passed, drawn.violation)
            first, chunk = chunks[-1][1], min(2 * chunk, _LONGEST)

    def _draw_chunk(self, draw: Draws, first: int, last: int, wanted: int, scratch: Scratch) -> Drawn:
        end, passed, violates = find_violation(
            self.data.sets, self.data.index.arrays, self.index.arrays, self.partition.block_of, draw, first, last,
            wanted, scratch,
        )  # fmt: skip
        return Drawn(int(end), int(passed), scratch.itemset[: draw.size].tolist() if violates else None)


def _join_as(index: BlockIndex, block_of: npt.NDArray[np.int32]) -> None:
    """Join the lists of items that are in one block already."""
    order = np.argsort(block_of, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(block_of[order])) + 1):
        if len(members) > 1:
            index.join(int(members[0]), members.tolist())
