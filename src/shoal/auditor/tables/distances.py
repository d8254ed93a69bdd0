"""How far the sensitive values of each class are from those of the whole table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from shoal.auditor.reading.columns import Ints
from shoal.auditor.tables.classes import Counted

Floats = npt.NDArray[np.float64]


def equal_distance(counted: Counted, overall: Ints) -> Floats:
    """Return the share of rows of each class that would have to change their value."""
    surplus = np.maximum(_shares(counted) - (overall / overall.sum())[counted.value], 0)
    return np.add.reduceat(surplus, counted.starts)


def ordered_distance(counted: Counted, overall: Ints, rank: Ints) -> Floats:
    """Return the earth mover's distance of each class, where neighbouring values are 1 / (values - 1) apart.

    `rank` is the place of each value in their order. Between two values that a class has, its cumulated share stays
    the same while that of the table rises, so their distance is a sum over a stretch that rises: prefix sums give it.
    """
    in_order = np.bincount(rank, weights=overall)
    values = len(in_order)
    if values < 2:
        return np.zeros(len(counted.starts))
    place = rank[counted.value]
    of = counted.class_of
    order = np.lexsort((place, of))
    place, count = place[order], counted.count[order]
    before = np.cumsum(count)
    reached = (before - (before - count)[counted.starts][of]) / counted.rows[of]
    table = np.cumsum(in_order) / overall.sum()
    sums = np.append(0.0, np.cumsum(table))
    last = np.append(counted.starts[1:], len(of)) - 1
    end = np.append(place[1:], values)
    end[last] = values
    cross = np.clip(np.searchsorted(table, reached, side="right"), place, end)
    apart = reached * (2 * cross - place - end) - 2 * sums[cross] + sums[place] + sums[end]
    start = sums[place[counted.starts]]  # before its first value a class has reached nothing
    found: Floats = (np.add.reduceat(apart, counted.starts) + start) / (values - 1)
    return found


def largest_gain(counted: Counted, overall: Ints) -> Floats:
    """Return (q - p) / p of the value of each class that became most likely: basic β-likeness."""
    share = (overall / overall.sum())[counted.value]
    gain = (_shares(counted) - share) / share
    return np.maximum(np.maximum.reduceat(gain, counted.starts), 0)


def largest_share(counted: Counted) -> Floats:
    """Return the share of the most frequent value of each class: α."""
    return np.maximum.reduceat(_shares(counted), counted.starts)


def _shares(counted: Counted) -> Floats:
    return counted.count / counted.rows[counted.class_of]
