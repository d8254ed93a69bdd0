"""An attribute column of z-anonymity: its threshold, its window and the crowd behind each of its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from shoal.hierarchies import Hierarchy
from shoal.kernels.z import crowd as crowd_kernel
from shoal.kernels.z.events import NO_ROOM, decide_value, hash_value
from shoal.methods.arrow_input import plain_type
from shoal.methods.text_keys import Bools, Bytes, Ints, Words
from shoal.methods.z.crowds.crowd import CrowdTable, Levels, LooseLabels, StrictLabels
from shoal.methods.z.crowds.values import (
    SHARDS,
    ComputedPaths,
    ListedLabels,
    OpenTexts,
    PlainValues,
    Rule,
    Values,
    hash_text,
)
from shoal.times import EARLIEST

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
        self.crowds: list[Any] = [CrowdTable() for _ in range(SHARDS)]
        """The people behind values; each shard of the values has a table of its own."""
        self.values: Any = PlainValues(key)
        if hierarchy is not None:
            kind: Any = OpenTexts if hierarchy.is_open else ListedLabels
            self.values = (ComputedPaths if hierarchy.is_computed else kind)(hierarchy, key)
            self.crowds = [(StrictLabels if parameters.residual == "strict" else LooseLabels)(self.z)]
        self._key = key
        self._singles = 0
        self._value = np.zeros((1, 2), dtype=np.int64)  # scratch: key of a single value

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

    # ---- the tables

    @property
    def live_pairs(self) -> int:
        """(person, value) pairs inside the window."""
        self.settle()
        return sum(crowd.live_pairs for crowd in self.crowds)

    @property
    def nbytes(self) -> int:
        """Bytes of the tables."""
        return sum(crowd.nbytes for crowd in self.crowds)

    def clear(self) -> None:
        """Forget everything."""
        for crowd in self.crowds:
            crowd.clear()

    def expire(self, now: int) -> None:
        """Forget what no event from a time on can count, and free memory."""
        oldest = max(now - self.window_ns, 2 * EARLIEST)  # of 64 bits
        for crowd in self.crowds:
            crowd.expire(oldest)
            crowd.trim()

    def settle(self) -> None:
        """Bring all shards to the time of the last event counted in any of them; one without events falls behind."""
        if len(self.crowds) > 1:
            self.expire(max(crowd.newest for crowd in self.crowds))

    def dump(self) -> dict[str, Ints]:
        """All tables as named arrays."""
        self.settle()
        dumped = {}
        for shard, crowd in enumerate(self.crowds):
            dumped[f"{shard}.pool"], dumped[f"{shard}.attrs"] = crowd.dump()
        return dumped

    def load(self, arrays: Mapping[str, Ints]) -> None:
        """Take over what dump returned."""
        for shard, crowd in enumerate(self.crowds):
            crowd.load(arrays[f"{shard}.pool"], arrays[f"{shard}.attrs"])

    # ---- batches, in time order

    def undecided(self, rows: int) -> Ints | Levels:
        """Room for what decide finds out about rows."""
        return np.zeros(rows, np.int64) if self.hierarchy is None else np.empty(rows, np.int32)

    def decide(self, shard: int, reading: Any, rule: Rule, out: Ints | Levels, part: slice | None = None) -> None:
        """Decide the rows of one shard, all or a part of them, into `out`; shards do not depend on each other."""
        part = part or slice(0, len(rule.times))
        crowd = self.crowds[shard]
        for start in range(part.start, part.stop, SLICE):
            rows = slice(start, min(start + SLICE, part.stop))
            self.values.decide(crowd, shard, reading, rows, rule, out)
            crowd.trim()

    def levels(self, out: Any) -> Levels:
        """Level at which each row may be published, 0 for the value itself; -1 where it is private."""
        levels: Levels = out if self.hierarchy is not None else np.subtract(out >= self.z, 1, dtype=np.int8)
        return levels

    def count(self, reading: Values, part: slice, *, persons: Ints, times: Ints, usable: Bools) -> Ints:
        """How many people are behind each of some rows; 0 where a row has no value."""
        sizes = np.zeros(len(times), dtype=np.int64)
        rule = Rule(persons, times, usable, self.window_ns)
        for shard in range(len(self.crowds)):
            self.decide(shard, reading, rule, sizes, part)
        return sizes[part]

    # ---- single values

    def decide_one(self, text: str | None, *, person: Ints, time: int) -> int:
        """The level of one value, as levels() has it."""
        if text is None:
            return crowd_kernel.PRIVATE
        self._trim_sometimes()
        if self.hierarchy is not None:
            return self._decide_path(self.hierarchy.path(text), person, time)
        crowd = self.crowds[hash_value(self._key, _bytes(text), SHARDS, self._value)]
        given = (person, self._value, time, self.z, self.window_ns)
        level = decide_value(*crowd.arrays, *given)
        while level == NO_ROOM:
            crowd.make_room(1)
            level = decide_value(*crowd.arrays, *given)
        return int(level)

    def _decide_path(self, path: tuple[str, ...], person: Ints, time: int) -> int:
        nodes = np.array([hash_text(self._key, label) for label in path], dtype=np.int64)
        levels = np.empty(1, dtype=np.int32)
        self.crowds[0].decide_paths(person, nodes, np.array([0, len(path)]), np.array([time]), self.window_ns, levels)
        return int(levels[0])

    def count_one(self, text: str | None, *, person: Ints, time: int) -> tuple[Ints, Ints]:
        """How many people are behind one value, as count gives it, and the value's key."""
        self._trim_sometimes()
        if text is None:
            return np.zeros(1, np.int64), np.zeros((1, 2), np.int64)
        hash_value(self._key, _bytes(text), SHARDS, self._value)
        reading = Values.of(self._value.copy(), np.ones(1, np.bool_), pa.nulls(1))
        sizes = self.count(reading, slice(0, 1), persons=person, times=np.array([time]), usable=reading.present)
        return sizes, reading.keys

    def _trim_sometimes(self) -> None:
        self._singles += 1
        if self._singles % SLICE == 0:
            self.settle()
            self.crowds[0].trim()


def _bytes(text: str) -> Bytes:
    data = text.encode()
    return np.frombuffer(data, dtype=np.uint8) if data else _NO_BYTES
