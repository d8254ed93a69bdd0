"""Local recoding: after one cut of the tree holds for everybody, labels are refined record by record."""

from __future__ import annotations

import heapq
from math import comb
from typing import Final

import numpy as np

from shoal.kernels.sets.levels import Crowds, Levels, Work, choose_records, refine_records
from shoal.methods.sets.counting import Counting
from shoal.methods.sets.data import Codes, Ints, SetData
from shoal.methods.sets.search import Progress
from shoal.methods.sets.settings import KmSettings
from shoal.methods.sets.tree_partition import Layout, TreePartition

_MOST_SETS: Final = 1 << 25
"""A label with more sets of labels than this is not refined: its table would need more than a gigabyte."""
_FEWEST_SLOTS: Final = 1 << 10
_NO_RECORDS: Final = np.empty(0, np.int32)


class LocalRecoding:
    """What every entry of every record is published as: a node of the tree, in each record an own one.

    It starts from one cut for everybody that keeps the promise. A step refines one label, the one with most items
    first, in those records in which every set of at most m labels keeps its k records. No step breaks the promise or
    raises the loss, so the result is never worse than the cut.
    """

    def __init__(self, data: SetData, partition: TreePartition, settings: KmSettings) -> None:
        self._data, self._layout = data, partition.layout
        self._leaf_counts = np.array(self._layout.last) - np.array(self._layout.first)
        items = data.sets.items
        self.levels = Levels(
            data.sets.starts, self._layout.leaf_of[items], partition.nodes[items], np.array(self._layout.lift, np.int32)
        )
        self._least = least_records(settings, data.longest)
        self._work = Work(
            np.empty(data.longest + 1, np.uint64), np.zeros(len(self._leaf_counts), np.int64), np.zeros(3, np.int64),
            np.empty(len(self._least), np.uint64), np.empty(len(self._least), np.int64),
        )  # fmt: skip
        self._holders = _holders_of(self.levels)

    @property
    def layout(self) -> Layout:
        """The tree."""
        return self._layout

    @property
    def error(self) -> float:
        """NCP: the share of all items under an entry's label, 0 for a single one; averaged over all entries."""
        sizes = self._leaf_counts[self.levels.nodes]
        return float(sizes[sizes > 1].sum()) / (len(self._data.names) * max(len(sizes), 1))

    def refine(self, progress: Progress | None = None) -> None:
        """Refine labels until no label can be refined in any record."""
        while self._refine_all(progress):
            pass

    def _refine_all(self, progress: Progress | None) -> int:
        """Refine every label once, new ones included, those with most items first; return the refined entries."""
        waiting = [self._turn(label) for label in self._holders if self._leaf_counts[label] > 1]
        heapq.heapify(waiting)
        refined = 0
        while waiting:
            label = heapq.heappop(waiting)[-1]
            if progress is not None:
                progress("refining", len(self._least) - 1, len(self._holders))
            new = self._refine_label(label)
            refined += len(new)
            for node in new:
                if self._leaf_counts[node] > 1:
                    heapq.heappush(waiting, self._turn(node))
        return refined

    def _turn(self, label: int) -> tuple[int, int, int]:
        return -int(self._leaf_counts[label]), -len(self._holders[label]), label

    def _refine_label(self, label: int) -> list[int]:
        """Refine a label where possible; return its refined labels."""
        holders = self._holders.get(label, _NO_RECORDS)  # one that waited twice may be refined everywhere
        crowds = self._make_table(holders)
        if crowds is None:
            return []
        chosen = np.empty(len(holders), np.bool_)
        if not choose_records(self.levels, label, holders, chosen, crowds, self._work):
            return []
        entries = int(np.diff(self.levels.starts)[holders[chosen]].sum())
        nodes, owners = np.empty(entries, np.int32), np.empty(entries, np.int32)
        count = refine_records(self.levels, label, holders, chosen, self._work, nodes, owners)
        self._note_holders(label, holders[~chosen])
        order = np.argsort(nodes[:count], kind="stable")
        found, first = np.unique(nodes[:count][order], return_index=True)
        for node, more in zip(found.tolist(), np.split(owners[:count][order], first[1:]), strict=True):
            self._note_holders(node, np.sort(np.concatenate([self._holders.get(node, _NO_RECORDS), more])))
        return [int(node) for node in found]

    def _note_holders(self, label: int, holders: Codes) -> None:
        if len(holders):
            self._holders[label] = holders
        else:
            self._holders.pop(label, None)

    def _make_table(self, holders: Codes) -> Crowds | None:
        """An empty table with room for all sets of labels of these records; None if there are too many."""
        sizes, m = np.bincount(np.diff(self.levels.starts)[holders]), len(self._least) - 1
        sets = sum(int(count) * sum(comb(size, few) for few in range(1, m + 1))
                   for size, count in enumerate(sizes.tolist()) if count)  # fmt: skip
        if sets > _MOST_SETS:
            return None
        slots = max(1 << (2 * sets).bit_length(), _FEWEST_SLOTS)
        return Crowds(np.zeros(slots, np.uint64), np.zeros(slots, np.int32), self._least)

    # ---- what is published

    def shown(self) -> SetData:
        """The records with labels instead of items; labels are numbered in alphabetical order."""
        used = np.unique(self.levels.nodes)
        by_label = sorted(range(len(used)), key=lambda at: self._layout.labels[used[at]])
        ranks = np.empty(len(used), np.int32)
        ranks[by_label] = np.arange(len(used), dtype=np.int32)
        names = [self._layout.labels[used[at]] for at in by_label]
        return SetData(self.levels.starts, ranks[np.searchsorted(used, self.levels.nodes)], names)

    def keeps_promise(self) -> bool:
        """Count every set of labels again: whether each is in as many records as it needs."""
        shown = self.shown()
        counting = Counting(shown.index, len(shown))
        return not any(
            counting.violations(size, int(self._least[size])).total
            for size in range(1, min(len(self._least) - 1, shown.longest) + 1)
        )


def least_records(settings: KmSettings, longest: int) -> Ints:
    """By number of labels: the records that a set of labels needs.

    An itemset's labels may be fewer than its items and still need the crowd of the itemset's size.
    """
    crowds = settings.crowds[: min(settings.m, longest)]
    return np.array([0, *(max(crowds[size:]) for size in range(len(crowds)))], np.int64)


def _holders_of(levels: Levels) -> dict[int, Codes]:
    """For every label the records that have it, in order."""
    records = np.repeat(np.arange(len(levels.starts) - 1, dtype=np.int64), np.diff(levels.starts))
    both = np.unique(levels.nodes.astype(np.int64) * len(levels.starts) + records)
    labels, owners = np.divmod(both, len(levels.starts))
    found, first = np.unique(labels, return_index=True)
    parts = np.split(owners.astype(np.int32), first[1:])
    return {int(label): part for label, part in zip(found, parts, strict=True)}
