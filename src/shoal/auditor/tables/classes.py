"""Classes of rows with equal quasi-identifiers: rows and people of each, and how often each has a sensitive value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.reading.columns import Ints

MOST: Final = 2**62


class TooManyValues(Exception):
    """Combinations of values cannot be numbered in 64 bits."""


def packed(columns: list[npt.NDArray[np.int32]], widths: list[int], *, renumber: bool = True) -> tuple[Ints, int]:
    """Give equal combinations of some columns equal numbers; return them and the number above all of them.

    `widths` says how many different values each column has. Where 64 bits are too few, combinations get new numbers,
    which can be compared among these rows only.
    """
    key, size = np.zeros(len(columns[0]) if columns else 0, np.int64), 1
    for column, width in zip(columns, widths, strict=True):
        if size * width > MOST:
            if not renumber:
                raise TooManyValues
            found, key = np.unique(key, return_inverse=True)
            size = len(found)
        key, size = key * width + column, size * width
    return key, size


def runs(ordered: Ints) -> tuple[Ints, Ints]:
    """Return where each run of equal numbers of a sorted array begins, and how long it is."""
    if not len(ordered):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    return starts, np.diff(np.append(starts, len(ordered)))


@dataclass(frozen=True, slots=True)
class Counted:
    """How often each value occurs in each class: one entry for every pair that occurs, by class."""

    value: Ints
    count: Ints
    starts: Ints
    """Where the entries of each class begin."""

    @property
    def rows(self) -> Ints:
        """The rows of each class."""
        found: Ints = np.add.reduceat(self.count, self.starts) if len(self.starts) else self.count
        return found

    @property
    def class_of(self) -> Ints:
        """The class of each entry."""
        return np.repeat(np.arange(len(self.starts)), np.diff(np.append(self.starts, len(self.count))))


def count_values(key: Ints, size: int, value: npt.NDArray[np.int32], width: int) -> Counted:
    """Count the values of every class."""
    if size * width > MOST:
        found, key = np.unique(key, return_inverse=True)
        size = len(found)
        if size * width > MOST:  # pragma: no cover - more than 2**31 classes
            raise TooManyValues
    pairs = np.sort(key * width + value)
    starts, count = runs(pairs)
    pair = pairs[starts]
    return Counted(pair % width, count, runs(pair // width)[0])


def class_sizes(key: Ints, person: npt.NDArray[np.int32] | None, people: int) -> tuple[Ints, Ints, Ints]:
    """Return the key of every class, how many rows it has, and how many people; without a column of people, its rows.

    A person of -1 is missing and does not count.
    """
    ordered = np.sort(key)
    starts, rows = runs(ordered)
    classes = ordered[starts]
    if person is None:
        return classes, rows, rows
    places = np.searchsorted(classes, key)[person >= 0]
    if len(classes) * people > MOST:  # pragma: no cover - more than 2**31 classes
        raise TooManyValues
    pairs = np.sort(places * people + person[person >= 0])
    different = pairs[runs(pairs)[0]] // max(people, 1)
    return classes, rows, np.bincount(different, minlength=len(classes))


def entropy_l(counted: Counted) -> npt.NDArray[np.float64]:
    """Return e to the entropy of each class: as diverse as that many equally frequent values."""
    share = counted.count / counted.rows[counted.class_of]
    terms = -share * np.log(share)
    return np.exp(np.add.reduceat(terms, counted.starts))


def recursive_c(counted: Counted, least: int) -> npt.NDArray[np.float64]:
    """Return r_1 / (r_l + … + r_m) of each class, where r_i is the count of the i-th most frequent value.

    (c, l)-diversity holds for every c above it; infinite where a class has fewer than l values.
    """
    of = counted.class_of
    order = np.lexsort((-counted.count, of))
    ranked = counted.count[order]
    rank = np.arange(len(ranked)) - counted.starts[of]
    tail = np.add.reduceat(np.where(rank >= least - 1, ranked, 0), counted.starts)
    with np.errstate(divide="ignore"):
        return np.where(tail > 0, ranked[counted.starts] / np.maximum(tail, 1), math.inf)
