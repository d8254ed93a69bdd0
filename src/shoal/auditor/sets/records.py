"""Records of sets: a table with a row for every label of a record, and the records of a part as arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, Final, TypeVar

import numpy as np

from shoal.auditor.checks import ROW, Found, all_found, check
from shoal.auditor.engine import Here, Place, Table
from shoal.auditor.findings import Finding
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.sorting import distinct

T = TypeVar("T")
RELEASED: Final[Shape] = {"row": int, "label": int}
"""The release: its rows in the order of files; -1 stands for a set without labels."""
TRUTH: Final[Shape] = {"record": int, "label": int, "row": int}
"""The truth: its records in order of appearance, their items, and the released row of each; -1 if not known."""
GATHERED: Final = 50_000_000
"""Records with more labels than this in all are not brought to one machine."""
sets_check = partial(check, families=("sets",))


@dataclass(frozen=True, slots=True)
class Sets:
    """Record r has the labels numbered ``items[offsets[r]:offsets[r + 1]]``, ascending, each once."""

    offsets: Ints
    items: Ints
    labels: Sequence[str]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Ints:
        """Number of labels of every record."""
        return np.diff(self.offsets)

    @property
    def owners(self) -> Ints:
        """The record of every entry of ``items``."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def keys(self) -> list[bytes]:
        """Return one key for every record; equal sets have equal keys."""
        data, width = self.items.tobytes(), self.items.itemsize
        return [data[start * width : end * width] for start, end in pairwise(self.offsets.tolist())]


def collect(owner: Ints, item: Ints, count: int, labels: Sequence[str], keep: Bools | None = None) -> Sets:
    """Gather entries into ``count`` records; a label that comes twice in a record counts once."""
    if keep is not None:
        owner, item = owner[keep], item[keep]
    base = max(len(labels), 1)
    owner, item = np.divmod(distinct(owner * base + item), base)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=count), out=offsets[1:])
    return Sets(offsets, item, labels)


def sets_of(part: Relation, key: str, labels: Sequence[str]) -> tuple[Relation, Sets]:
    """Return the first row of every record of a part, and the labels of all its records."""
    part = part.ordered(key, "label")
    begins = np.flatnonzero(np.diff(part[key], prepend=-2))
    is_label = part["label"] >= 0
    upto = np.append(0, np.cumsum(is_label))
    return part.take(begins), Sets(upto[np.append(begins, len(part))], part["label"][is_label], labels)


def once(rows: Relation, marked: Bools) -> Bools:
    """Of the marked entries of every released row, mark one: rows are counted, not entries."""
    places = np.flatnonzero(marked)
    marks = np.zeros(len(rows), np.bool_)
    marks[places[np.unique(rows[ROW][places], return_index=True)[1]]] = True
    return marks


Look = tuple[Any, ...]
"""A check, and what it needs besides rows."""


def look_at(place: Place, table: Table, checks: Sequence[Look]) -> list[Finding]:
    """What some checks find in the entries of released rows, part by part."""
    return all_found(place.divide(table, (ROW,), partial(_look_at_part, checks)) if checks else ()).findings


def _look_at_part(checks: Sequence[Look], rows: Relation) -> Found:
    return Found([finding for one, *given in checks for finding in one(rows, *given)])


@dataclass(frozen=True, slots=True)
class Counts:
    """How many records there are, of every size, and with every label."""

    of_size: Ints
    of_label: Ints

    @property
    def records(self) -> int:
        """All records."""
        return int(self.of_size.sum())

    @property
    def longest(self) -> int:
        """The size of the largest record."""
        return max(len(self.of_size) - 1, 0)

    @property
    def mean(self) -> float | None:
        """The average size."""
        return int(self.of_label.sum()) / self.records if self.records else None


@dataclass(frozen=True)
class Records:
    """All records of the release or of the truth: a table, whose rows with an equal key are a record."""

    place: Place
    table: Table
    key: str
    labels: Sequence[str]

    def divide(self, work: Callable[[Relation, Sets], T]) -> list[T]:
        """What a function says of the records of every part."""
        return self.place.divide(self.table, (self.key,), partial(_work_on_sets, self.key, self.labels, work))

    def regroup(self, work: Callable[[Relation, Sets], Relation], shape: Shape) -> Table:
        """What a function makes of the records of every part."""
        return self.place.regroup(self.table, (self.key,), partial(_work_on_sets, self.key, self.labels, work), shape)

    def changed(self, work: Callable[[Relation], Relation]) -> Records:
        """The same records with other labels, or only some of them."""
        shape = TRUTH if self.key == "record" else RELEASED
        return Records(self.place, self.place.each(self.table, work, shape), self.key, self.labels)

    @cached_property
    def counts(self) -> Counts:
        """Count records."""
        parts = self.divide(_count)
        of_size = np.zeros(max((len(part.of_size) for part in parts), default=0), np.int64)
        for part in parts:
            of_size[: len(part.of_size)] += part.of_size
        return Counts(of_size, sum((part.of_label for part in parts), np.zeros(len(self.labels), np.int64)))

    @cached_property
    def gathered(self) -> Sets | None:
        """All records in one place; None if they are too many for one machine."""
        if not isinstance(self.place, Here) and int(self.counts.of_label.sum()) > GATHERED:
            return None
        return sets_of(self.place.gather(self.table), self.key, self.labels)[1]


def _work_on_sets(key: str, labels: Sequence[str], work: Callable[[Relation, Sets], T], part: Relation) -> T:
    return work(*sets_of(part, key, labels))


def _count(_: Relation, sets: Sets) -> Counts:
    return Counts(np.bincount(sets.sizes), np.bincount(sets.items, minlength=len(sets.labels)))
