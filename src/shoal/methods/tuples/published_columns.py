"""The published columns of decided tuples: what a cluster shows, once for each of its rows.

Kernels write the columns of several attributes in one call, without the interpreter's lock. Where a value is null or a
moment, a column is built from one value for each cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.kernels.instructions import BLOCK
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.published_columns import copy_labels, place_labels, write_ranges
from shoal.methods.quasi_readers import Bools, Floats, Ints, Reader
from shoal.methods.repeated_values import repeated
from shoal.methods.tuples.decider.base import Decided

Columns = dict[int, pa.Array]
"""Columns by the number of their attribute."""
_MOST_BYTES: Final = 2**31 - 1
"""Bytes that a column of texts can have."""


class ColumnKinds:
    """The attributes of a schema, as far as their columns do not depend on what is decided."""

    def __init__(self, quasi: Sequence[Reader], kinds: Sequence[pa.DataType]) -> None:
        self.quasi, self.kinds = quasi, kinds
        roots = [reader.root() for reader in quasi]
        self.domain: Floats = np.array([[root[end] for root in roots] for end in (0, 1)]).ravel()
        """Low ends, then high ends, of the whole domain."""
        bounds = [kind.field(0).type if pa.types.is_struct(kind) else None for kind in kinds]
        self.is_whole = [bound == pa.int64() for bound in bounds]
        self.is_range = [bound in (pa.int64(), pa.float64()) for bound in bounds]
        labels = [reader.labels for reader in quasi]
        self.first_labels = np.cumsum([0, *map(len, labels)])[:-1]
        """The number of the first label of each attribute, among the labels of all."""
        _, starts, data = pa.concat_arrays(labels).buffers()
        self.starts: Ints = np.frombuffer(starts, dtype=np.int32)[: sum(map(len, labels)) + 1].astype(np.int64)
        self.data = np.zeros(self.starts[-1] + BLOCK, dtype=np.uint8)
        self.data[:-BLOCK] = np.frombuffer(data, dtype=np.uint8)[: self.starts[-1]] if data else 0
        self._longest = int(np.diff(self.starts).max(initial=0))

    def is_written(self, a: int, rows: int) -> bool:
        """Whether kernels can write the column of an attribute, if it has no nulls."""
        return self.is_range[a] or (pa.types.is_string(self.kinds[a]) and rows * self._longest <= _MOST_BYTES)


class PublishedColumns:
    """The columns of some rows; `groups` are the indices of their clusters, NO_GROUP shows the whole domain.

    `is_missing` says which rows do not carry an attribute and show null instead of a cluster's value; None if rows show
    what their cluster shows.
    """

    def __init__(self, of: ColumnKinds, decided: Decided, groups: Ints, is_missing: Bools | None) -> None:
        self._of, self._decided, self._is_missing = of, decided, is_missing
        self._groups = np.ascontiguousarray(groups)
        has_null = (decided.shown == 0).any(axis=0)
        if is_missing is not None:
            has_null |= is_missing.any(axis=0)
        self._has_null = has_null

    def columns(self, attributes: Sequence[int]) -> Columns:
        """The columns of some attributes."""
        of, rows = self._of, len(self._groups)
        written = [a for a in attributes if not self._has_null[a] and of.is_written(a, rows)]
        ranges = [a for a in written if of.is_range[a]]
        labels = [a for a in written if not of.is_range[a]]
        found = {a: self._built(a) for a in attributes if a not in written}
        found |= self._ranges(ranges) if ranges else {}
        return found | (self._labels(labels) if labels else {})

    def _ranges(self, attributes: list[int]) -> Columns:
        of, wide = self._of, len(self._of.quasi)
        lines = np.array([[a, wide + a] for a in attributes]).ravel()
        is_whole = np.repeat([of.is_whole[a] for a in attributes], 2)
        out = np.empty((len(lines), len(self._groups)), dtype=np.int64)
        write_ranges(self._decided.group_f, self._groups, of.domain, lines, is_whole, out, out.view(np.float64))
        ends = [_words(line, of.kinds[attributes[j // 2]].field(0).type) for j, line in enumerate(out)]
        pairs = zip(attributes, ends[::2], ends[1::2], strict=True)
        return {a: pa.StructArray.from_arrays([low, high], fields=list(of.kinds[a])) for a, low, high in pairs}

    def _labels(self, attributes: list[int]) -> Columns:
        of, clusters, rows = self._of, self._decided.group_i, len(self._groups)
        nodes = t.G_FIELDS + t.C_NODE * len(of.quasi) + np.array(attributes)
        given = clusters, self._groups, nodes, of.first_labels[attributes], of.starts
        offsets = np.empty((len(attributes), rows + 1), dtype=np.int32)
        begins = np.empty(len(attributes) + 1, dtype=np.int64)
        place_labels(*given, offsets, begins)
        data = np.empty(begins[-1] + BLOCK, dtype=np.uint8)
        copy_labels(*given, of.data, offsets, begins, data)
        parts = zip(attributes, offsets, begins[:-1].tolist(), begins[1:].tolist(), strict=True)
        return {
            a: pa.StringArray.from_buffers(rows, pa.py_buffer(own), pa.py_buffer(data[begin:end]))
            for a, own, begin, end in parts
        }

    def _built(self, a: int) -> pa.Array:
        """A column built from one value for each cluster; after the clusters comes the whole domain."""
        reader, decided, domain = self._of.quasi[a], self._decided, len(self._decided.numbers)
        shown = decided.low[:, a], decided.high[:, a], decided.node[:, a]
        low, high, node = (np.append(known, last) for known, last in zip(shown, reader.root(), strict=True))
        made = reader.publish(low, high, node, np.append(decided.shown[:, a] == 0, False), self._of.kinds[a])
        rows = np.where(self._groups < 0, domain, self._groups)
        if self._is_missing is None:
            return repeated(made, rows)
        return made.take(pa.array(rows, mask=self._is_missing[:, a] & (rows < domain)))


def _words(line: npt.NDArray[np.int64], kind: pa.DataType) -> pa.Array:
    """An array of 64-bit numbers that shares memory with a line."""
    return pa.Array.from_buffers(kind, len(line), [None, pa.py_buffer(line)])
