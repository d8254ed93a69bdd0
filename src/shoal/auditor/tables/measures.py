"""How diverse the sensitive values of each class are, and how far they are from those of the whole table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.auditor.reading.columns import Ints
from shoal.auditor.relation import Relation
from shoal.auditor.tables.classes import Counted
from shoal.auditor.tables.values import Values

Floats = npt.NDArray[np.float64]


def closeness(counted: Counted, values: Values) -> Relation:
    """For every class: its rows, the distance `t` of its values from those of the table, and its largest gain `beta`.

    Where values are missing, those that are there are compared as well, and the larger figure counts: missing values
    protect nobody.
    """
    t, beta = _distance(counted, values.rows, values.rank), _largest_gain(counted, values.rows)
    if values.is_missing.any():
        known, of = counted.among(~values.is_missing[counted.value])
        rows = np.where(values.is_missing, 0, values.rows)
        t[of] = np.maximum(t[of], _distance(known, rows, values.rank))
        beta[of] = np.maximum(beta[of], _largest_gain(known, rows))
    return Relation({"rows": counted.sums(counted.count), "t": t, "beta": beta})


def diversity(counted: Counted, values: Values, recursive_l: tuple[float, int] | None) -> Relation:
    """For every class that has a value: its rows, how many values it has and how even they are.

    Columns: `l`, different values; `entropy_l`, e to their entropy; `alpha`, the largest share; for recursive
    (c, l)-diversity `recursive_c`. Missing values count as rows only; values that mean the same are one.
    """
    rows = counted.sums(counted.count)
    if values.is_missing.any():
        counted, of = counted.among(~values.is_missing[counted.value])
        rows = rows[of]
    if values.same is not None:
        counted = counted.renamed(values.same)
    share = _shares(counted)
    found = {
        "rows": rows,
        "l": np.diff(np.append(counted.starts, len(counted.count))),
        "entropy_l": np.exp(-counted.sums(share * np.log(share))),
        "alpha": np.maximum.reduceat(share, counted.starts) if len(rows) else share,
    }
    if recursive_l is not None:
        found["recursive_c"] = _recursive_c(counted, recursive_l[1])
    return Relation(found)


def _recursive_c(counted: Counted, least: int) -> Floats:
    """Return r_1 / (r_l + … + r_m) of each class, where r_i is the count of the i-th most frequent value.

    (c, l)-diversity holds for every c above it; infinite where a class has fewer than l values.
    """
    of = counted.class_of
    ranked = counted.count[np.lexsort((-counted.count, of))]
    rank = np.arange(len(ranked)) - counted.starts[of]
    tail = counted.sums(np.where(rank >= least - 1, ranked, 0))
    return np.where(tail > 0, ranked[counted.starts] / np.maximum(tail, 1), math.inf)


def _distance(counted: Counted, overall: Ints, rank: Ints | None) -> Floats:
    if not len(counted.count):
        return np.zeros(0)
    return _equal_distance(counted, overall) if rank is None else _ordered_distance(counted, overall, rank)


def _equal_distance(counted: Counted, overall: Ints) -> Floats:
    """Return the share of rows of each class that would have to change their value."""
    surplus = _shares(counted) - (overall / overall.sum())[counted.value]
    return np.asarray(counted.sums(np.maximum(surplus, 0)))


def _ordered_distance(counted: Counted, overall: Ints, rank: Ints) -> Floats:
    """Return the earth mover's distance of each class, where neighbouring values are 1 / (values - 1) apart.

    Between two values that a class has, its cumulated share stays the same while that of the table rises, so their
    distance is a sum over a stretch that rises: prefix sums give it.
    """
    in_order = np.bincount(rank, weights=overall)
    values = len(in_order)
    if values < 2:
        return np.zeros(len(counted.starts))
    of, place = counted.class_of, rank[counted.value]
    before = np.cumsum(counted.count)
    start = (before - counted.count)[counted.starts]
    reached = (before - start[of]) / counted.sums(counted.count)[of]
    table = np.cumsum(in_order) / overall.sum()
    sums = np.append(0.0, np.cumsum(table))
    end = np.append(place[1:], values)
    end[np.append(counted.starts[1:], len(of)) - 1] = values
    cross = np.clip(np.searchsorted(table, reached, side="right"), place, end)
    apart = reached * (2 * cross - place - end) - 2 * sums[cross] + sums[place] + sums[end]
    # before its first value a class has reached nothing
    return np.asarray((counted.sums(apart) + sums[place[counted.starts]]) / (values - 1))


def _largest_gain(counted: Counted, overall: Ints) -> Floats:
    """Return (q - p) / p of the value of each class that became most likely: basic β-likeness."""
    if not len(counted.count):
        return np.zeros(0)
    share = (overall / overall.sum())[counted.value]
    gain = (_shares(counted) - share) / share
    return np.maximum(np.maximum.reduceat(gain, counted.starts), 0)


def _shares(counted: Counted) -> Any:
    """The share of its class that each entry has."""
    return counted.count / counted.sums(counted.count)[counted.class_of]
