"""An attribute column of z-anonymity: its threshold, its crowd, and how a private value is treated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.kernels.siphash import siphash128
from shoal.kernels.z import crowd as crowd_kernel
from shoal.kernels.z import paths
from shoal.kernels.z.events import NO_ROOM, decide_text
from shoal.methods.arrow_input import plain, plain_type
from shoal.methods.text_keys import Bools, Ints, Texts, Words, keys_of
from shoal.methods.z.crowd import CrowdTable

OnPrivate = Literal["drop", "blank", "generalize"]
Levels = npt.NDArray[np.int32]

_NO_BYTES: Final = np.empty(0, dtype=np.uint8)
SLICE: Final = 65_536
"""Rows decided between two looks at the room left in a table."""


def _hash(key: Words, text: str) -> tuple[int, int]:
    data = text.encode()
    low, high = siphash128(key[0], key[1], np.frombuffer(data or b"\x00", dtype=np.uint8), 0, len(data))
    return int(np.uint64(low).astype(np.int64)), int(np.uint64(high).astype(np.int64))


class Reading(Protocol):
    """A column as one of the readers below prepared it: which rows have a value, and which can be decided."""

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


class PlainReader:
    """Values as they are: released or private, nothing in between."""

    def __init__(self, key: Words) -> None:
        self._key = key

    def read(self, column: pa.Array) -> Values:
        """Prepare a column."""
        keys, present = keys_of(column, self._key)
        return Values(keys, present, present, column)

    def decide(self, crowd: CrowdTable, reading: Values, rows: slice, rule: Rule, out: Levels) -> None:
        """Decide some rows of a column."""
        usable = rule.usable[rows] & reading.known[rows]
        persons, keys, times = rule.persons[rows], reading.keys[rows], rule.times[rows]
        at = 0
        while at < len(times):
            crowd.make_room(1)
            at = crowd_kernel.decide_values(
                *crowd.arrays, persons, keys, times, usable, rule.z, rule.window_ns, at, out
            )

    def count(self, crowd: CrowdTable, reading: Values, rows: slice, rule: Rule, out: Ints) -> None:
        """Count the people behind some rows of a column; 0 where a row has no value."""
        usable = rule.usable[rows] & reading.known[rows]
        persons, keys, times = rule.persons[rows], reading.keys[rows], rule.times[rows]
        at = 0
        while at < len(times):
            crowd.make_room(1)
            at = crowd_kernel.count_values(*crowd.arrays, persons, keys, times, usable, rule.window_ns, at, out)

    def publish(self, reading: Values, rows: Ints, levels: Levels) -> pa.Array:
        """What leaves for some rows; null where private."""
        private = levels < 0
        return plain(reading.column.take(pa.array(rows, mask=private if private.any() else None)))


class _PathReader:
    """What the readers of hierarchies share: deciding along paths."""

    def decide(self, crowd: CrowdTable, reading: Any, rows: slice, rule: Rule, out: Levels) -> None:
        """Decide some rows of a column along their paths."""
        starts, nodes = self._paths(reading, rows, rule.usable[rows] & reading.known[rows])
        persons, times = rule.persons[rows], rule.times[rows]
        at = 0
        while at < len(times):
            crowd.make_room(int(starts[at + 1] - starts[at]))
            at = crowd_kernel.decide_paths(
                *crowd.arrays, persons, nodes, starts, times, rule.z, rule.window_ns, at, out
            )

    def _paths(self, reading: Any, rows: slice, usable: Bools) -> tuple[Ints, Ints]:
        raise NotImplementedError  # abstract


class ClosedReader(_PathReader):
    """Values of a hierarchy that lists its labels."""

    def __init__(self, hierarchy: Hierarchy, key: Words) -> None:
        self._key = key
        self._parents = hierarchy.parents
        self._depths = hierarchy.depths
        self._labels = pa.array(hierarchy.labels, type=pa.string())
        self._label_keys = np.array([_hash(key, label) for label in hierarchy.labels], dtype=np.int64)
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


class OpenReader(_PathReader):
    """Values whose text says what they lie under."""

    def __init__(self, hierarchy: Hierarchy, key: Words) -> None:
        assert hierarchy.separator is not None
        self._key = key
        self._separator = np.uint8(ord(hierarchy.separator))
        self._from_front = hierarchy.side == "suffix"
        self._root = np.frombuffer(hierarchy.root.encode(), dtype=np.uint8)
        self._root_key = _hash(key, hierarchy.root)

    def _how(self) -> tuple[Any, ...]:
        """How to cut, with scratch of its own: rows are written out in one thread while others are decided."""
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
    """What every attribute column of a batch shares, and the column's own threshold."""

    persons: Ints
    times: Ints
    usable: Bools
    z: int
    window_ns: int


@dataclass
class AttributeColumn:
    """One attribute column with its own threshold, window and crowd."""

    name: str
    z: int
    window_ns: int
    on_private: OnPrivate = "drop"
    hierarchy: Hierarchy | None = None
    crowd: CrowdTable = field(default_factory=CrowdTable, repr=False)
    key: Words = field(default_factory=lambda: np.zeros(2, dtype=np.uint64), repr=False)

    def __post_init__(self) -> None:
        self.rekey(self.key)
        self._singles = 0

    def rekey(self, key: Words) -> None:
        """Use this key for the table; what the table holds must be of the same key."""
        self.key = key
        if self.hierarchy is None:
            self.reader: Any = PlainReader(key)
        else:
            self.reader = (
                OpenReader(self.hierarchy, key) if self.hierarchy.is_open else ClosedReader(self.hierarchy, key)
            )

    @property
    def is_listed(self) -> bool:
        """Whether only values of a list can be decided."""
        return self.hierarchy is not None and not self.hierarchy.is_open

    def knows(self, text: str | None) -> bool:
        """Whether a value can be decided; no value can: it is private."""
        return text is None or self.hierarchy is None or text in self.hierarchy

    def output_type(self, kind: pa.DataType) -> pa.DataType:
        """Type the column leaves in."""
        return pa.string() if self.hierarchy is not None else plain_type(kind)

    def decide(self, reading: Reading, *, persons: Ints, times: Ints, usable: Bools) -> Levels:
        """Level each row may leave at, 0 the value itself; -1 where it is private. Rows are in time order."""
        levels = np.empty(len(times), dtype=np.int32)
        rule = Rule(persons, times, usable, self.z, self.window_ns)
        for start in range(0, len(times), SLICE):
            rows = slice(start, min(start + SLICE, len(times)))
            self.reader.decide(self.crowd, reading, rows, rule, levels[rows])
            self.crowd.trim()
        return levels

    def count(self, reading: Values, part: slice, *, persons: Ints, times: Ints, usable: Bools) -> Ints:
        """How many people stand behind each of some rows in time order; 0 where a row has no value."""
        sizes = np.empty(part.stop - part.start, dtype=np.int64)
        rule = Rule(persons, times, usable, self.z, self.window_ns)
        for start in range(part.start, part.stop, SLICE):
            rows = slice(start, min(start + SLICE, part.stop))
            self.reader.count(self.crowd, reading, rows, rule, sizes[rows.start - part.start : rows.stop - part.start])
            self.crowd.trim()
        return sizes

    def count_one(self, text: str | None, *, person: Ints, time: int) -> tuple[Ints, Ints]:
        """How many people stand behind one value, as count gives it, and the value's key."""
        self._singles += 1
        if self._singles % SLICE == 0:
            self.crowd.trim()
        keys = np.array([_hash(self.key, text or "")], dtype=np.int64)
        reading = Values(keys, np.ones(1, np.bool_), np.array([text is not None]), pa.nulls(1))
        rule = Rule(person, np.array([time]), reading.present, self.z, self.window_ns)
        sizes = np.empty(1, dtype=np.int64)
        self.reader.count(self.crowd, reading, slice(0, 1), rule, sizes)
        return sizes, keys

    def decide_one(self, text: str | None, *, person: Ints, time: int) -> int:
        """The level of one value, as decide gives it."""
        if text is None:
            return crowd_kernel.PRIVATE
        self._singles += 1
        if self._singles % SLICE == 0:
            self.crowd.trim()
        if self.hierarchy is not None:
            return self._decide_path(self.hierarchy.path(text), person, time)
        encoded = text.encode()
        data = np.frombuffer(encoded, dtype=np.uint8) if encoded else _NO_BYTES
        level = decide_text(self.key, *self.crowd.arrays, person, data, time, self.z, self.window_ns)
        while level == NO_ROOM:
            self.crowd.make_room(1)
            level = decide_text(self.key, *self.crowd.arrays, person, data, time, self.z, self.window_ns)
        return int(level)

    def _decide_path(self, path: tuple[str, ...], person: Ints, time: int) -> int:
        nodes = np.array([_hash(self.key, label) for label in path], dtype=np.int64)
        levels = np.empty(1, dtype=np.int32)
        self.crowd.make_room(len(path))
        starts, times = np.array([0, len(path)]), np.array([time])
        crowd_kernel.decide_paths(*self.crowd.arrays, person, nodes, starts, times, self.z, self.window_ns, 0, levels)
        return int(levels[0])

    def publish_one(self, value: Any, text: str | None, level: int) -> Any:
        """What leaves for one value decided at a level."""
        if level < 0 or text is None:
            return None
        return value if self.hierarchy is None else self.hierarchy.path(text)[level]
