"""Cuts of a finite stream: learnt on its first rows, and again where it has drifted.

The stream is divided into stretches. The first rows of each are divided by the cuts in force: if a shard gets far more
or far less than its share of them, cuts are learnt on these rows, and hold from there on. Rows that are pending stay in
their shard. So one look at the stream is enough, and the cuts depend on nothing but its rows.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from shoal.spark.recipe import Recipe
from shoal.spark.records.columns import ROW, cast
from shoal.spark.records.numbering import NumberedRows
from shoal.spark.tuples import cuts as learning
from shoal.spark.tuples.cuts import CutsFrom, Ints, TupleSharder

ROWS_OF_A_STRETCH: Final = 10
"""A stretch has at least this many times the rows of learning."""
_STRETCHES: Final = 64
"""More are not made: the driver holds the first rows of all of them."""


def learn_all_cuts(rows: NumberedRows, recipe: Recipe, shards: int) -> tuple[CutsFrom, ...]:
    """All cuts of a stream."""
    starts = stretches(rows.first, rows.count)
    sample = rows.picked(sampled_rows(starts, rows.end))
    if not len(sample):
        return TupleSharder(recipe).all_cuts
    numbers, (batch,) = sample[ROW].to_numpy(), sample.select(rows.types.names).combine_chunks().to_batches()
    return cuts_of_stretches(cast(batch, rows.types), numbers, starts, recipe, shards)


def stretches(first: int, count: int) -> Ints:
    """The number of the first row of every stretch."""
    length = max(ROWS_OF_A_STRETCH * learning.LEARNING_ROWS, -(-count // _STRETCHES))
    return np.arange(first, first + count, length)


def sampled_rows(starts: Ints, end: int) -> Ints:
    """The numbers of the first rows of all stretches."""
    found = (starts[:, None] + np.arange(learning.LEARNING_ROWS)).ravel()
    return found[found < end]


def cuts_of_stretches(
    sample: pa.RecordBatch, numbers: Ints, starts: Ints, recipe: Recipe, shards: int
) -> tuple[CutsFrom, ...]:  # fmt: skip
    """All cuts, given the first rows of all stretches; too few rows at the end are not learnt from."""
    sorter = TupleSharder(recipe)
    for start in starts.tolist():
        at, stop = np.searchsorted(numbers, [start, start + learning.LEARNING_ROWS]).tolist()
        part = sample.slice(at, stop - at)
        is_first, is_enough = start == starts[0], len(part) == learning.LEARNING_ROWS
        if is_first or (is_enough and sorter.has_drifted(part, numbers[at:stop])):
            sorter.learn(part, shards, first=start)
    return sorter.all_cuts
