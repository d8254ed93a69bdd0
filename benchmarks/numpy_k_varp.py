"""K-VARP with whole-window NumPy arrays: the baseline of the compiled kernels.

A row's set of attributes is a number with one bit an attribute, so a partition is an equality and Jaccard's measure two
bit counts. The same decisions as tests/reference/k_varp.py, to the last bit.
"""

from __future__ import annotations

import numpy as np

from benchmarks.numpy_fads import Ints, Releases, Stream, Table


class Partitions:
    """Which held rows an expiring one may leave with."""

    def __init__(self, table: Table, k: int, likeness: float):
        self.table, self.k, self.likeness = table, k, likeness
        bits = np.int64(1) << np.arange(len(table.columns), dtype=np.int64)
        self.patterns = bits @ table.carried

    def candidates(self, row: int, held: Ints) -> Ints | None:
        patterns = self.patterns[held]
        own = held[patterns == self.patterns[row]]
        if self.table.count_people(own) >= self.k:
            return own
        if self.table.count_people(held) < self.k:
            return None
        return self.merged(row, held, patterns)

    def merged(self, row: int, held: Ints, patterns: Ints) -> Ints:
        """Rows of the partitions that reach k people together, in order of arrival."""
        kinds, oldest, kind_of, sizes = np.unique(patterns, return_index=True, return_inverse=True, return_counts=True)
        alike = np.bincount(kind_of, weights=self.table.distances(row, held) <= self.likeness, minlength=len(kinds))
        own = self.patterns[row]
        shared, either = np.bitwise_count(kinds & own), np.bitwise_count(kinds | own)
        similarity = np.divide(shared, either, out=np.ones(len(kinds)), where=either > 0)
        order = np.lexsort((oldest, -sizes, -alike, -similarity))  # its own partition has 1 and comes first
        place = np.empty(len(kinds), np.int64)
        place[order] = np.arange(len(kinds))
        return held[place[kind_of] < self.enough(place[kind_of], held, sizes[order])]

    def enough(self, places: Ints, held: Ints, sizes: Ints) -> int:
        """How many partitions, in this order, have k people between them."""
        if self.table.has_strangers_only:
            return int(np.searchsorted(np.cumsum(sizes), self.k)) + 1
        by_place = np.argsort(places, kind="stable")
        _, first = np.unique(self.table.people[held[by_place]], return_index=True)
        return int(np.sort(places[by_place[first]])[self.k - 1]) + 1


def k_varp(
    table: Table,
    *,
    k: int,
    deadline: int,
    reuse: int,
    likeness: float = 0.2,
    missing: str = "covered",
    min_carriers: int | None = None,
) -> Releases:
    """Everything a stream releases, flushed at its end."""
    stream = Stream(table, k=k, deadline=deadline, reuse=reuse, missing=missing, min_carriers=min_carriers)
    return stream.run(Partitions(table, k, likeness).candidates)
