"""The kinds of attribute values: as they are, labels of a listed hierarchy, texts of an open one, computed paths.

Each kind reads a column, decides about its rows and publishes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.kernels.siphash import siphash128
from shoal.kernels.z import crowd as crowd_kernel
from shoal.kernels.z import index, paths
from shoal.methods.arrow_input import plain
from shoal.methods.text_keys import Bools, Ints, Texts, Words, is_present, keys_of, pick_texts
from shoal.methods.z.crowds.crowd import CrowdTable, Levels, LooseLabels, StrictLabels

SHARDS: Final = 2
"""Tables that the values of a column are assigned to, on any machine: threads count them side by side."""


def hash_text(key: Words, text: str) -> tuple[int, int]:
    data = text.encode()
    low, high = siphash128(key[0], key[1], np.frombuffer(data or b"\x00", dtype=np.uint8), 0, len(data))
    return int(np.uint64(low).astype(np.int64)), int(np.uint64(high).astype(np.int64))


class Reading(Protocol):
    """A column as one of the kinds below has read it: which rows have a value, and which can be decided."""

    present: Bools
    known: Bools


@dataclass(frozen=True, slots=True)
class Rule:
    """What all attribute columns of a batch share, and the window of one."""

    persons: Ints
    times: Ints
    usable: Bools
    window_ns: int


@dataclass(frozen=True, slots=True)
class Values:
    """Keys of plain values, and which rows each shard counts."""

    keys: Ints
    present: Bools
    known: Bools
    column: pa.Array
    dealt: Ints
    bounds: Ints

    @classmethod
    def of(cls, keys: Ints, present: Bools, column: pa.Array) -> Values:
        """Assign the rows to shards."""
        dealt, bounds = np.empty(len(keys) + 1, dtype=np.int64), np.empty(SHARDS + 1, dtype=np.int64)
        crowd_kernel.deal_rows(keys, present, dealt, bounds)
        return cls(keys, present, present, column, dealt, bounds)

    def rows_of(self, shard: int, part: slice) -> Ints:
        """The rows of a shard within a part of all rows."""
        rows = self.dealt[self.bounds[shard] : self.bounds[shard + 1]]
        first, last = np.searchsorted(rows, (part.start, part.stop))
        return rows[first:last]


@dataclass(frozen=True, slots=True)
class Nodes:
    """Nodes of a hierarchy that lists its labels."""

    nodes: Ints
    present: Bools
    known: Bools


@dataclass(frozen=True, slots=True)
class Names:
    """Texts of an open hierarchy."""

    texts: Texts
    present: Bools
    known: Bools


class PlainValues:
    """Values as they are: either published or private."""

    def __init__(self, key: Words) -> None:
        self._key = key

    def read(self, column: pa.Array) -> Values:
        """Prepare a column."""
        return Values.of(*keys_of(column, self._key), column)

    def decide(self, crowd: CrowdTable, shard: int, reading: Values, part: slice, rule: Rule, out: Ints) -> None:
        """Count the people behind those rows of a part that belong to a shard."""
        rows, at = reading.rows_of(shard, part), 0
        while at < len(rows):
            crowd.make_room(1)
            at = crowd_kernel.count_values(
                *crowd.arrays, rule.persons, reading.keys, rule.times, rule.usable, rows, rule.window_ns, at, out
            )

    def publish(self, reading: Values, rows: Ints, levels: Levels) -> pa.Array:
        """The published values of some rows; null where private."""
        private = levels < 0
        if private.any():
            return plain(reading.column.take(pa.array(rows, mask=private)))
        return plain(pick_texts(reading.column, rows))


class PathValues:
    """Values in a hierarchy, decided along the path to its root."""

    def decide(
        self, crowd: LooseLabels | StrictLabels, shard: int, reading: Any, part: slice, rule: Rule, out: Levels
    ) -> None:
        """Decide the rows of a part along their paths; there is one shard."""
        starts, nodes = self._paths(reading, part, rule.usable[part] & reading.known[part])
        crowd.decide_paths(rule.persons[part], nodes, starts, rule.times[part], rule.window_ns, out[part])

    def _paths(self, reading: Any, rows: slice, usable: Bools) -> tuple[Ints, Ints]:
        raise NotImplementedError  # abstract


class ListedLabels(PathValues):
    """Values of a hierarchy that lists its labels."""

    def __init__(self, hierarchy: Hierarchy, key: Words) -> None:
        self._key = key
        self._parents = hierarchy.parents
        self._depths = hierarchy.depths
        self._labels = pa.array(hierarchy.labels, type=pa.string())
        self._label_keys = np.array([hash_text(key, label) for label in hierarchy.labels], dtype=np.int64)
        self._names = np.zeros(1 << (2 * len(hierarchy)).bit_length(), dtype=np.int64)
        index.index_names(self._label_keys, len(hierarchy), self._names)

    def read(self, column: pa.Array) -> Nodes:
        """Prepare a column."""
        keys, present = keys_of(column, self._key)
        nodes = np.empty(len(keys), dtype=np.int64)
        paths.find_nodes(self._names, self._label_keys, keys, present, nodes)
        return Nodes(nodes, present, nodes >= 0)

    def _paths(self, reading: Nodes, rows: slice, usable: Bools) -> tuple[Ints, Ints]:
        nodes = np.where(usable, reading.nodes[rows], -1)
        starts = np.empty(len(nodes) + 1, dtype=np.int64)
        paths.count_closed(self._depths, nodes, starts)
        keys = np.empty((int(starts[-1]), 2), dtype=np.int64)
        paths.fill_closed(self._parents, self._label_keys, nodes, starts, keys)
        return starts, keys

    def publish(self, reading: Nodes, rows: Ints, levels: Levels) -> pa.Array:
        """The label each row is released under; null where private."""
        nodes = np.empty(len(rows), dtype=np.int64)
        paths.climb(self._parents, reading.nodes[rows], levels, nodes)
        return self._labels.take(pa.array(nodes, mask=nodes < 0))


class OpenTexts(PathValues):
    """Values whose text contains their ancestors, such as a.b.example."""

    def __init__(self, hierarchy: Hierarchy, key: Words) -> None:
        assert hierarchy.separator is not None
        self._key = key
        self._separator = np.uint8(ord(hierarchy.separator))
        self._from_front = hierarchy.side == "suffix"
        self._root = np.frombuffer(hierarchy.root.encode(), dtype=np.uint8)
        self._root_key = hash_text(key, hierarchy.root)

    def _how(self) -> tuple[Any, ...]:
        """How to cut, with scratch of its own: one thread publishes rows while another decides about others."""
        cuts = np.empty((paths.MOST_ANCESTORS + 1, 2), dtype=np.int64)
        return self._separator, self._from_front, self._root, cuts

    def read(self, column: pa.Array) -> Names:
        """Prepare a column."""
        texts = Texts.of(column)
        return Names(texts, texts.present, texts.present)

    def _paths(self, reading: Names, rows: slice, usable: Bools) -> tuple[Ints, Ints]:
        texts = reading.texts
        offsets = texts.offsets[rows.start : rows.stop + 1]
        starts = np.empty(len(usable) + 1, dtype=np.int64)
        how = self._how()
        paths.count_open(offsets, texts.data, usable, *how, starts)
        keys = np.empty((int(starts[-1]), 2), dtype=np.int64)
        paths.fill_open(self._key[0], self._key[1], *self._root_key, offsets, texts.data, *how, starts, keys)
        return starts, keys

    def publish(self, reading: Names, rows: Ints, levels: Levels) -> pa.Array:
        """The part of its text each row is released under; null where private."""
        texts, private = reading.texts, levels < 0
        parts = np.empty((len(rows), 2), dtype=np.int64)
        how = self._how()
        paths.cut_open(texts.offsets, texts.data, rows, np.maximum(levels, 0), *how, parts)
        lengths = np.where(parts[:, 0] == paths.ROOT, len(self._root), parts[:, 1] - parts[:, 0])
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        data = np.empty(int(offsets[-1]), dtype=np.uint8)
        paths.copy_parts(texts.data, parts, self._root, offsets, data)
        made = pa.StringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(data))
        return made.take(pa.array(np.arange(len(rows)), mask=private)) if private.any() else made


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
        found = [self._hierarchy.path(text) if text in self._hierarchy else () for text in texts]
        starts = np.concatenate(([0], np.cumsum([len(path) for path in found]))).astype(np.int64)
        labels = pa.array([label for path in found for label in path], type=pa.string())
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
