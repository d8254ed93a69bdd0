"""An attribute column of z-anonymity: its threshold, its window and the crowd behind each of its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.kernels.z import crowd as crowd_kernel
from shoal.kernels.z.events import NO_ROOM, decide_text
from shoal.methods.arrow_input import plain_type
from shoal.methods.text_keys import Bools, Ints, Words
from shoal.methods.z.computed_paths import ComputedPaths
from shoal.methods.z.crowd import CrowdTable
from shoal.methods.z.label_crowd import LooseLabels, StrictLabels
from shoal.methods.z.values import Levels, ListedLabels, OpenTexts, PlainValues, Reading, Rule, Values, hash_text

OnPrivate = Literal["drop", "blank", "generalize"]
Residual = Literal["strict", "loose"]

_NO_BYTES: Final = np.empty(0, dtype=np.uint8)
SLICE: Final = 65_536
"""Rows decided between two looks at the room left in a table."""


@dataclass(frozen=True, slots=True)
class AttributeColumn:
    """The parameters of one attribute column."""

    name: str
    z: int
    window_ns: int
    on_private: OnPrivate = "drop"
    hierarchy: Hierarchy | None = None
    residual: Residual = "strict"
    """Who counts for a label of the hierarchy."""


class CrowdColumn:
    """One attribute column with the people behind its values; `key` is for the table of values."""

    def __init__(self, parameters: AttributeColumn, key: Words) -> None:
        self.name = parameters.name
        self.z = parameters.z
        self.window_ns = parameters.window_ns
        self.hierarchy = hierarchy = parameters.hierarchy
        self.crowd: Any = CrowdTable()
        self.values: Any = PlainValues(key)
        if hierarchy is not None:
            kind: Any = OpenTexts if hierarchy.is_open else ListedLabels
            self.values = (ComputedPaths if hierarchy.is_computed else kind)(hierarchy, key)
            self.crowd = (StrictLabels if parameters.residual == "strict" else LooseLabels)(self.z)
        self._key = key
        self._singles = 0

    @property
    def is_listed(self) -> bool:
        """Whether only values of a list, or those with a computed path, can be decided."""
        return self.hierarchy is not None and (self.hierarchy.is_computed or not self.hierarchy.is_open)

    def knows(self, text: str | None) -> bool:
        """Whether a value can be decided; a missing value can: it is private."""
        return text is None or self.hierarchy is None or text in self.hierarchy

    def output_type(self, kind: pa.DataType) -> pa.DataType:
        """Type of the published column."""
        return pa.string() if self.hierarchy is not None else plain_type(kind)

    # ---- batches, in time order

    def decide(self, reading: Reading, *, persons: Ints, times: Ints, usable: Bools) -> Levels:
        """Level at which each row may be published, 0 for the value itself; -1 where it is private."""
        levels = np.empty(len(times), dtype=np.int32)
        rule = Rule(persons, times, usable, self.z, self.window_ns)
        for start in range(0, len(times), SLICE):
            rows = slice(start, min(start + SLICE, len(times)))
            self.values.decide(self.crowd, reading, rows, rule, levels[rows])
            self.crowd.trim()
        return levels

    def count(self, reading: Values, part: slice, *, persons: Ints, times: Ints, usable: Bools) -> Ints:
        """How many people are behind each of some rows; 0 where a row has no value."""
        sizes = np.empty(part.stop - part.start, dtype=np.int64)
        rule = Rule(persons, times, usable, self.z, self.window_ns)
        for start in range(part.start, part.stop, SLICE):
            rows = slice(start, min(start + SLICE, part.stop))
            self.values.count(self.crowd, reading, rows, rule, sizes[rows.start - part.start : rows.stop - part.start])
            self.crowd.trim()
        return sizes

    # ---- single values

    def decide_one(self, text: str | None, *, person: Ints, time: int) -> int:
        """The level of one value, as decide gives it."""
        if text is None:
            return crowd_kernel.PRIVATE
        self._trim_sometimes()
        if self.hierarchy is not None:
            return self._decide_path(self.hierarchy.path(text), person, time)
        encoded = text.encode()
        data = np.frombuffer(encoded, dtype=np.uint8) if encoded else _NO_BYTES
        level = decide_text(self._key, *self.crowd.arrays, person, data, time, self.z, self.window_ns)
        while level == NO_ROOM:
            self.crowd.make_room(1)
            level = decide_text(self._key, *self.crowd.arrays, person, data, time, self.z, self.window_ns)
        return int(level)

    def _decide_path(self, path: tuple[str, ...], person: Ints, time: int) -> int:
        nodes = np.array([hash_text(self._key, label) for label in path], dtype=np.int64)
        levels = np.empty(1, dtype=np.int32)
        self.crowd.decide_paths(person, nodes, np.array([0, len(path)]), np.array([time]), self.window_ns, levels)
        return int(levels[0])

    def count_one(self, text: str | None, *, person: Ints, time: int) -> tuple[Ints, Ints]:
        """How many people are behind one value, as count gives it, and the value's key."""
        self._trim_sometimes()
        keys = np.array([hash_text(self._key, text or "")], dtype=np.int64)
        reading = Values(keys, np.ones(1, np.bool_), np.array([text is not None]), pa.nulls(1))
        rule = Rule(person, np.array([time]), reading.present, self.z, self.window_ns)
        sizes = np.empty(1, dtype=np.int64)
        self.values.count(self.crowd, reading, slice(0, 1), rule, sizes)
        return sizes, keys

    def _trim_sometimes(self) -> None:
        self._singles += 1
        if self._singles % SLICE == 0:
            self.crowd.trim()
