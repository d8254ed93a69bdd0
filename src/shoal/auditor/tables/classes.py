"""Classes of rows that are equal in some columns, and how often each class has each value of another column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.auditor.reading.columns import Ints
from shoal.auditor.relation import Relation

_MOST: Final = 2**62


@dataclass(frozen=True, slots=True)
class Counted:
    """How often each value occurs in each class: one entry for every pair that occurs, by class and value."""

    value: Ints
    count: Ints
    starts: Ints
    """Where the entries of each class begin."""

    @property
    def class_of(self) -> Ints:
        """The class of each entry."""
        return np.repeat(np.arange(len(self.starts)), np.diff(np.append(self.starts, len(self.count))))

    def sums(self, numbers: Any) -> Any:
        """Sum a number of every entry by class; of marks, count those that are set."""
        numbers = numbers.astype(np.int64) if numbers.dtype == np.bool_ else numbers
        return np.add.reduceat(numbers, self.starts) if len(self.starts) else numbers

    def among(self, entries: Any) -> tuple[Counted, Ints]:
        """Some entries, and the classes that have one."""
        of = self.class_of[entries]
        starts = _starts(of)
        return Counted(self.value[entries], self.count[entries], starts), of[starts]

    def renamed(self, names: Ints) -> Counted:
        """The same with other values: `names` has the new one of each; entries that become equal are one."""
        width = int(names.max(initial=0)) + 1
        pair = self.class_of * width + names[self.value]
        order = np.argsort(pair, kind="stable")
        pair = pair[order]
        starts = _starts(pair)
        count = np.add.reduceat(self.count[order], starts) if len(starts) else self.count
        return Counted(pair[starts] % width, count, _starts(pair[starts] // width))


def count_values(rows: Relation, names: Sequence[str], value: Any, width: int) -> Counted:
    """Count a value of every row, a number below `width`, by the classes of rows that are equal in some columns."""
    key, size = _packed(rows, names)
    if size * width > _MOST:
        size, key = _renumbered(key)
    key *= width
    key += value
    key.sort()
    starts = _starts(key)
    pair = key[starts]
    classes = pair // width
    return Counted(pair - classes * width, np.diff(np.append(starts, len(key))), _starts(classes))


def _packed(rows: Relation, names: Sequence[str]) -> tuple[Ints, int]:
    """Give rows that are equal in some columns equal numbers; return them and the number above all of them.

    Where 64 bits are too few, combinations of the columns so far are numbered anew.
    """
    key, size = np.zeros(len(rows), np.int64), 1
    for name in names:
        width = len(rows[name].texts) + 1
        if size * width > _MOST:
            size, key = _renumbered(key)
        key *= width
        key += rows.codes(name)
        key += 1  # a missing value is a value of its own
        size *= width
    return key, size


def _renumbered(key: Ints) -> tuple[int, Ints]:
    different, key = np.unique(key, return_inverse=True)
    return len(different), key


def _starts(ordered: Ints) -> Ints:
    """Where each run of equal numbers begins."""
    return np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(ordered) else np.zeros(0, np.int64)
