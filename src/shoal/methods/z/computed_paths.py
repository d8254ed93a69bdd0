"""Attribute values whose path is computed, such as coordinates and addresses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.methods.text_keys import Bools, Ints, Words, is_present, keys_of
from shoal.methods.z.values import Levels, PathValues


@dataclass(frozen=True, slots=True)
class ComputedRows:
    """The paths of the distinct values of a column, one after another, and the value of each row."""

    values: Ints
    """For each row the number of its value; -1 for a missing value."""
    starts: Ints
    """Where the path of each value begins; a value without a path has an empty one."""
    labels: pa.Array
    keys: Ints
    present: Bools
    known: Bools


class ComputedPaths(PathValues):
    """Values of a hierarchy that computes paths; every distinct value of a batch once."""

    def __init__(self, hierarchy: Hierarchy, key: Words) -> None:
        self._hierarchy, self._key = hierarchy, key

    def read(self, column: pa.Array) -> ComputedRows:
        """Prepare a column."""
        present = is_present(column)
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        encoded = column.cast(pa.string()).dictionary_encode()
        values = np.where(present, encoded.indices.fill_null(0).to_numpy(zero_copy_only=False), -1).astype(np.int64)
        texts = encoded.dictionary.to_pylist()
        paths = [self._hierarchy.path(text) if text in self._hierarchy else () for text in texts]
        starts = np.concatenate(([0], np.cumsum([len(path) for path in paths]))).astype(np.int64)
        labels = pa.array([label for path in paths for label in path], type=pa.string())
        keys, _ = keys_of(labels, self._key)
        lengths = np.append(np.diff(starts), 0)
        return ComputedRows(values, starts, labels, keys, present, present & (lengths[values] > 0))

    def _paths(self, reading: ComputedRows, rows: slice, usable: Bools) -> tuple[Ints, Ints]:
        first, length = self._spans(reading, reading.values[rows], usable)
        starts = np.concatenate(([0], np.cumsum(length)))
        places = np.repeat(first - starts[:-1], length) + np.arange(starts[-1])
        return starts, np.ascontiguousarray(reading.keys[places])

    def _spans(self, reading: ComputedRows, values: Ints, usable: Bools) -> tuple[Ints, Ints]:
        """Where the path of each row begins, and how long it is; 0 where the row is not usable."""
        kept = np.where(usable, values, 0)
        if not len(reading.starts) > 1:
            return np.zeros(len(values), np.int64), np.zeros(len(values), np.int64)
        return reading.starts[kept], np.where(usable, reading.starts[kept + 1] - reading.starts[kept], 0)

    def publish(self, reading: ComputedRows, rows: Ints, levels: Levels) -> pa.Array:
        """The label each row is released under; null where private."""
        private = levels < 0
        first, _ = self._spans(reading, reading.values[rows], ~private)
        return reading.labels.take(pa.array(first + np.maximum(levels, 0), mask=private))
