"""The three kinds of attribute values: as they are, labels of a listed hierarchy, texts of an open one.

Each kind reads a column, decides about its rows and publishes them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.kernels.siphash import siphash128
from shoal.kernels.z import crowd as crowd_kernel
from shoal.kernels.z import paths
from shoal.methods.arrow_input import plain
from shoal.methods.text_keys import Bools, Ints, Texts, Words, keys_of, pick_texts
from shoal.methods.z.crowd import CrowdTable
from shoal.methods.z.label_crowd import LooseLabels, StrictLabels

Levels = npt.NDArray[np.int32]


def hash_text(key: Words, text: str) -> tuple[int, int]:
    data = text.encode()
    low, high = siphash128(key[0], key[1], np.frombuffer(data or b"\x00", dtype=np.uint8), 0, len(data))
    return int(np.uint64(low).astype(np.int64)), int(np.uint64(high).astype(np.int64))


class Reading(Protocol):
    """A column as one of the kinds below has read it: which rows have a value, and which can be decided."""

    present: Bools
    known: Bools


@dataclass(frozen=True, slots=True)
class Values:
    """Keys of plain values."""

    keys: Ints
    present: Bools
    known: Bools
    column: pa.Array


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
        keys, present = keys_of(column, self._key)
        return Values(keys, present, present, column)

    def decide(self, crowd: CrowdTable, reading: Values, rows: slice, rule: Rule, out: Levels) -> None:
        """Decide some rows of a column: level 0 where at least z people exposed the value, else private."""
        sizes = np.empty(len(out), dtype=np.int64)
        self.count(crowd, reading, rows, rule, sizes)
        np.subtract(sizes >= rule.z, 1, out=out, dtype=np.int32)

    def count(self, crowd: CrowdTable, reading: Values, rows: slice, rule: Rule, out: Ints) -> None:
        """Count the people behind some rows of a column; 0 where a row has no value."""
        usable = rule.usable[rows] & reading.known[rows]
        persons, keys, times = rule.persons[rows], reading.keys[rows], rule.times[rows]
        at = 0
        while at < len(times):
            crowd.make_room(1)
            at = crowd_kernel.count_values(*crowd.arrays, persons, keys, times, usable, rule.window_ns, at, out)

    def publish(self, reading: Values, rows: Ints, levels: Levels) -> pa.Array:
        """The published values of some rows; null where private."""
        private = levels < 0
        if private.any():
            return plain(reading.column.take(pa.array(rows, mask=private)))
        return plain(pick_texts(reading.column, rows))


class PathValues:
    """Values in a hierarchy, decided along the path to its root."""

    def decide(self, crowd: LooseLabels | StrictLabels, reading: Any, rows: slice, rule: Rule, out: Levels) -> None:
        """Decide some rows of a column along their paths."""
        starts, nodes = self._paths(reading, rows, rule.usable[rows] & reading.known[rows])
        crowd.decide_paths(rule.persons[rows], nodes, starts, rule.times[rows], rule.window_ns, out)

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
        crowd_kernel.index_names(self._label_keys, len(hierarchy), self._names)

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
class Rule:
    """What all attribute columns of a batch share, and the column's own threshold."""

    persons: Ints
    times: Ints
    usable: Bools
    z: int
    window_ns: int
