"""Find itemsets that too few people have and merge blocks until every itemset has a crowd of k."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.kernels.sets.sampling import Draws
from shoal.methods.sets.chain import as_chain
from shoal.methods.sets.data import KnownSets, SetData
from shoal.methods.sets.partition import Partition
from shoal.methods.sets.sampling import make_draws, random_key
from shoal.methods.sets.settings import KmSettings
from shoal.methods.sets.supports import Drawn, LocalSupports, Supports

AFFORDABLE: Final = 1_000_000_000
"""Steps up to which a size is counted rather than sampled where the user leaves it open: some seconds."""
Progress = Callable[[str, int, int], None]
"""Called with the current activity, the size, and the number of blocks left."""


class Search:
    """A partition that is merged step by step, with the number of people that its blocks have."""

    def __init__(
        self, data: KnownSets, partition: Partition, settings: KmSettings, progress: Progress | None = None,
        *, supports: Supports | None = None,
    ) -> None:  # fmt: skip
        self.data = data
        self.partition = partition
        self.supports = supports if supports is not None else LocalSupports.of(_here(data), partition.block_of)
        self.settings = settings
        self._progress = progress
        self._enforced: dict[int, int] = {}
        """By number of blocks: the crowd every such set has for sure; merging never makes a crowd smaller."""
        self._counted_again: dict[int, int] = {}

    def copy(self, settings: KmSettings | None = None, progress: Progress | None = None) -> Search:
        """An independent search in the same state, possibly with other settings."""
        other = Search(
            self.data, self.partition.copy(), settings or self.settings, progress or self._progress,
            supports=self.supports.copy(),
        )  # fmt: skip
        other._enforced, other._counted_again = self._enforced.copy(), self._counted_again.copy()
        return other

    @property
    def sizes(self) -> range:
        """The sizes of itemsets that occur, up to m."""
        return range(1, min(self.settings.m, self.data.longest) + 1)

    def should_count(self, size: int, counted: Collection[int]) -> bool:
        """Whether to count a size, given the sizes counted so far; counting a size counts all smaller ones too."""
        settings = self.settings
        if settings.must_count(size) or not settings.may_count(size):
            return settings.must_count(size)
        return len(counted) == size - 1 and self.supports.counting().steps(size) <= AFFORDABLE

    def report(self, activity: str, size: int) -> None:
        """Report progress."""
        if self._progress is not None:
            self._progress(activity, size, self.partition.blocks_left)

    def repair(self, items: Iterable[int], k: int) -> None:
        """Merge blocks, cheapest first, until the image of these items has k people."""
        items = list(items)
        block_of = self.partition.block_of
        image = sorted({int(block_of[item]) for item in items})
        while self.supports.support(image, k) < k:
            move = min(self.partition.moves(image))
            kept = self.partition.merge(move)
            self.supports.join(kept, move.blocks)
            image = sorted({int(block_of[item]) for item in items})

    # ---- counting

    def enforce_counted(self, size: int, *purpose: str | int) -> None:
        """Merge until k people have every itemset of a size that occurs.

        Items of one block are published as one label: the image of an itemset can be smaller than the itemset, and
        still needs the crowd of the itemset's size.
        """
        k = self.settings.crowds[size - 1]
        for blocks in range(1, size + 1):
            if self._enforced.get(blocks, 0) < k:
                self._enforce_blocks(blocks, k, size, *purpose)
                self._enforced[blocks] = k

    def _enforce_blocks(self, count: int, k: int, *purpose: str | int) -> None:
        """Merge until k people have every set of `count` blocks that occurs."""
        for turn in range(2**31):
            self.report("counting", count)
            key = random_key(self.settings.seed, self.data.fingerprint, "count", count, turn, *purpose)
            found = self.supports.counting().violations(count, k, int(key[0]))
            if not found.total:
                return
            self._repair_all(found.sets, k)

    def _repair_all(self, sets: npt.NDArray[np.int32], k: int) -> None:
        at = 0
        while True:
            at = self.supports.next_violation(self.partition.block_of, sets, at, k)
            if at == len(sets):
                return
            self.repair(sets[at].tolist(), k)

    def count_again(self, size: int) -> bool:
        """Whether k people have every itemset of a size that occurs, in the current state."""
        k = self.settings.crowds[size - 1]
        left = [blocks for blocks in range(1, size + 1) if self._counted_again.get(blocks, 0) < k]
        counting = self.supports.counting() if left else None
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
        for by_person in self.settings.by_person:
            draws = self.draws(size, "search", *purpose, by_person=by_person, samples_only=False, may_chain=True)
            wanted, number = self.settings.promise(size).samples, 0
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
        key = random_key(self.settings.seed, self.data.fingerprint, size, by_person, *purpose)
        draws = make_draws(self.data, size, self.settings.crowds[size - 1], key, by_person=by_person)
        if draws is None:
            return None
        sampler = self.settings.sampler
        if may_chain and sampler != "exact" and not by_person:
            draws = as_chain(_here(self.data), draws, is_literal=sampler == "paper-chain")
        return draws._replace(samples_only=samples_only)

    def draw(self, draws: Draws, *, first: int = 0, wanted: int) -> Drawn:
        """Draw from proposal `first` on until `wanted` samples have passed or one violates."""
        return self.supports.draw(draws, self.partition.block_of, first, wanted)


def _here(data: KnownSets) -> SetData:
    assert isinstance(data, SetData)  # elsewhere, who has the sets answers for them
    return data
