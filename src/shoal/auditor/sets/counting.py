"""Count the records that contain each set of a size, for all sets, on arrays; parts of the records add up."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.engine import Place, Table
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation, Shape, place_of_rising
from shoal.auditor.sets.records import Records, Sets

SORTED_BUDGET = 20_000_000
"""Up to this many subsets are sorted in memory; up to TABLE_BUDGET, counted in a table if it fits."""
TABLE_BUDGET = 500_000_000
_TABLE_CELLS = 16_000_000
_AT_ONCE = 2_000_000


SUMS: Final[Shape] = {"code": int, "support": int}
"""Numbers of sets, or of anything else, and how many records have them."""


def is_countable(records: Records, size: int) -> bool:
    """Return whether all sets of a size can be counted within seconds."""
    cells = max(len(records.labels), 1) ** size  # a set's number must fit 63 bits
    limit = TABLE_BUDGET if cells <= _TABLE_CELLS else SORTED_BUDGET
    return cells < 2**63 and subsets_in_all(records.counts.of_size, size) <= limit


def subsets_in_all(of_size: Ints, size: int) -> int:
    """Return the total number of subsets of a size over all records; `of_size` is how many there are of each size."""
    return sum(int(count) * math.comb(length, size) for length, count in enumerate(of_size.tolist()))


@dataclass(frozen=True, slots=True)
class Tally:
    """The different sets of one size, as numbers, and how many records contain each."""

    size: int
    base: int
    codes: Ints
    """Ascending. A set's code is its sorted labels as digits in base len(labels)."""
    supports: Ints

    def of(self, labels: Ints) -> Ints:
        """Return the supports of sets given as rows of rising labels; 0 for sets that no record contains."""
        known = np.all((labels >= 0) & (labels < self.base), axis=1)
        asked = _encoded(labels * known[:, np.newaxis], self.base)
        place = place_of_rising(asked, self.codes)
        return np.where(known & (place >= 0), np.append(self.supports, 0)[place], 0)

    def decoded(self, start: int, end: int) -> Ints:
        """Return some of the sets as rows of labels."""
        left = self.codes[start:end]
        labels = np.empty((len(left), self.size), np.int64)
        for digit in range(self.size - 1, -1, -1):
            left, labels[:, digit] = np.divmod(left, self.base)
        return labels


def _encoded(labels: Ints, base: int) -> Ints:
    code = np.zeros(len(labels), np.int64)
    for digit in range(labels.shape[1]):
        code = code * base + labels[:, digit]
    return code


def tally(records: Records, size: int) -> Tally:
    """Count every set of one size."""
    base, nothing = max(len(records.labels), 1), np.zeros(0, np.int64)
    if not subsets_in_all(records.counts.of_size, size):
        return Tally(size, base, nothing, nothing)
    found = added_up(records.place, records.regroup(partial(_tally_part, size), SUMS))
    return Tally(size, base, found["code"], found["support"])


def added_up(place: Place, counts: Table) -> Relation:
    """Add up what parts counted, rising by code."""
    return _add_up(place.gather(place.regroup(counts, ("code",), _add_up, SUMS)))


def _add_up(counts: Relation) -> Relation:
    code = counts["code"]
    if (code[1:] > code[:-1]).all():
        return counts
    counts = counts.ordered("code")
    first = np.flatnonzero(np.diff(counts["code"], prepend=-1))
    return Relation({"code": counts["code"][first], "support": np.add.reduceat(counts["support"], first)})


def _tally_part(size: int, _: Relation, sets: Sets) -> Relation:
    base, in_all = max(len(sets.labels), 1), subsets_in_all(np.bincount(sets.sizes), size)
    if base**size <= _AT_ONCE or in_all > SORTED_BUDGET:
        table = np.zeros(base**size, np.int64)
        for _records, codes in occurrences(sets, size):
            _add(table, codes)
        found = np.flatnonzero(table)
        return Relation({"code": found, "support": table[found]})
    every = np.empty(in_all, np.int64)
    upto = 0
    for _records, codes in occurrences(sets, size):
        every[upto : upto + len(codes)] = codes
        upto += len(codes)
    every.sort()  # in place: there may be many
    first = np.append(0, np.flatnonzero(every[1:] != every[:-1]) + 1)[:upto]
    return Relation({"code": every[first], "support": np.diff(np.append(first, upto))})


def _add(table: Ints, codes: Ints) -> None:
    if len(codes) * 8 > len(table):
        table += np.bincount(codes, minlength=len(table))
    else:
        found, counts = np.unique(codes, return_counts=True)
        table[found] += counts


def occurrences(sets: Sets, size: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield (records, numbers of their subsets), some millions at once; a record's subsets come together."""
    base, sizes = max(len(sets.labels), 1), sets.sizes
    for length in np.unique(sizes[sizes >= size]).tolist():
        chosen = combinations(length, size)
        records = np.flatnonzero(sizes == length)
        step = max(_AT_ONCE // len(chosen), 1)
        for first in range(0, len(records), step):
            some = records[first : first + step]
            held = sets.items[sets.offsets[some][:, None] + np.arange(length)]
            codes = np.zeros((len(some), len(chosen)), np.int64)
            for digit in range(size):
                codes *= base
                codes += held[:, chosen[:, digit]]
            yield np.repeat(some, len(chosen)), codes.ravel()


def combinations(length: int, size: int) -> npt.NDArray[np.int32]:
    """Return all ways to choose ``size`` of ``length`` places, a row each, rising."""
    rows = np.arange(length, dtype=np.int32)[:, None]
    for _ in range(size - 1):
        left = length - 1 - rows[:, -1]
        owner = np.repeat(np.arange(len(rows)), left)
        turn = np.arange(len(owner)) - np.repeat(np.cumsum(left) - left, left)
        following = rows[owner, -1] + 1 + turn
        rows = np.column_stack([rows[owner], following.astype(np.int32)])
    return rows


def marked_subsets(sets: Sets, size: int, marked: Ints) -> Ints:
    """Count, for every record, its subsets whose number is among the marked ones (rising)."""
    counts = np.zeros(len(sets), np.int64)
    if not len(marked):
        return counts
    for some in _batches(occurrences(sets, size)):
        owner, codes = (np.concatenate(arrays) for arrays in zip(*some, strict=True))
        counts += np.bincount(owner[place_of_rising(codes, marked) >= 0], minlength=len(sets))
    return counts


def _batches(found: Iterable[tuple[Ints, Ints]]) -> Iterator[list[tuple[Ints, Ints]]]:
    """Look up millions of subsets at once: that is many times faster."""
    batch: list[tuple[Ints, Ints]] = []
    waiting = 0
    for pair in found:
        batch.append(pair)
        waiting += len(pair[1])
        if waiting >= _AT_ONCE:
            yield batch
            batch, waiting = [], 0
    if batch:
        yield batch


def chance_per_person(of_size: Ints, size: int, hits: Ints) -> float:
    """Return the probability that a uniform subset of a uniform person is a hit; `hits` add up those of each size."""
    able = int(of_size[size:].sum())
    return math.fsum(int(hits[at]) / math.comb(at, size) for at in range(size, len(hits))) / able if able else 0.0


def by_length(labels: Ints) -> Iterator[tuple[Bools, Ints]]:
    """Sort rows of labels and drop repeats: yield (which rows, their labels) for every remaining number of labels."""
    ordered = np.sort(labels, axis=1)
    first = np.ones(ordered.shape, np.bool_)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    lengths = first.sum(axis=1)
    for length in np.unique(lengths).tolist():
        rows = lengths == length
        yield rows, ordered[rows][first[rows]].reshape(-1, length)
