"""Count the people that a released row may belong to, for an attacker who knows true values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import combined, dense
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.rows.attributes import Attribute, Labels, Spans

_AT_ONCE: Final = 200_000
"""True vectors looked up at once, so that memory stays bounded."""
_ENOUGH: Final = 10_000
"""In a larger group no further candidates are counted: it is large enough."""
_MOST_COVERED: Final = 200_000_000
_QUANTILES: Final = {"least": 0.0, "1%": 0.01, "10%": 0.1, "median": 0.5, "90%": 0.9}
_MIXERS: Final = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)


@dataclass(frozen=True, slots=True)
class _Lists:
    """Lists of numbers, one after the other."""

    starts: Ints
    items: Ints

    @classmethod
    def of(cls, owner: Ints, items: Ints, count: int) -> _Lists:
        """Gather the items of every owner."""
        order = np.argsort(owner, kind="stable")
        return cls(np.searchsorted(owner[order], np.arange(count + 1)), items[order])

    def expand(self, lists: Ints) -> tuple[Ints, Ints]:
        """Return, for every item of some lists, the place of its list among them and the item."""
        length = (self.starts[1:] - self.starts[:-1])[lists]
        place = np.repeat(np.arange(len(lists)), length)
        step = np.arange(len(place)) - np.repeat(np.cumsum(length) - length, length)
        return place, self.items[self.starts[lists[place]] + step]


@dataclass(frozen=True, slots=True)
class _Column:
    """One quasi-identifier: true values that no published value distinguishes have the same number."""

    true: Ints
    """For every record of the truth."""
    shown: Ints
    """For every released row, from 0 (null)."""
    covering: _Lists
    """For every true value the published values that cover it."""


def _column(attribute: Attribute) -> _Column | None:
    if isinstance(attribute, Labels):
        return _labels(attribute)
    if isinstance(attribute, Spans):
        return _spans(attribute)
    raise NotImplementedError


def _labels(attribute: Labels) -> _Column:
    codes = np.arange(len(attribute.texts))
    owner, _, label = attribute.paths.expand(codes)
    published = np.zeros(max(int(label.max(initial=0)), len(codes)) + 1, np.bool_)
    published[attribute.code[attribute.code >= 0]] = True
    seen = published[label]
    owner, label = np.append(owner[seen] + 1, 0), np.append(label[seen] + 1, 0)  # null covers null
    return _Column(attribute.true_code + 1, attribute.code + 1, _Lists.of(owner, label, len(codes) + 1))


def _spans(attribute: Spans) -> _Column | None:
    there = attribute.code >= 0
    count = int(attribute.code.max(initial=-1)) + 1
    low, high = np.zeros(count), np.zeros(count)
    low[attribute.code[there]] = attribute.low[there] - attribute.slack
    high[attribute.code[there]] = attribute.high[there] + attribute.slack
    # Between two neighbouring ends of ranges all values are covered by the same ranges: 2 i is on end i, 2 i + 1 after.
    ends = np.unique(np.concatenate([low, high]))
    missing = np.isnan(attribute.true_value)
    true = np.where(missing, 0, _place(np.where(missing, 0.0, attribute.true_value), ends) + 2)
    begin, end = _place(low, ends) + 2, _place(high, ends) + 2
    length = np.maximum(end - begin + 1, 0)
    if length.sum() > _MOST_COVERED:
        return None
    label = np.repeat(np.arange(count), length)
    place = np.arange(len(label)) - np.repeat(np.cumsum(length) - length, length) + begin[label]
    owner, label = np.append(place, 0), np.append(label + 1, 0)
    return _Column(true, attribute.code + 1, _Lists.of(owner, label, 2 * len(ends) + 2))


def _place(value: Floats, ends: Floats) -> Ints:
    return np.searchsorted(ends, value, side="left") + np.searchsorted(ends, value, side="right") - 1


@dataclass(frozen=True, slots=True)
class Candidates:
    """For every released row with a known record, how many people it may belong to."""

    rows: Ints
    count: Ints

    def describe(self, needed: Ints, person: Ints) -> dict[str, Any]:
        """Describe the counts, the promised number (``needed``, by released row), and how many people have fewer."""
        if not len(self.rows):
            return {}
        few = self.count < needed[self.rows]
        least = int(self.count.min())
        spread = {name: int(np.quantile(self.count, at, method="lower")) for name, at in _QUANTILES.items()}
        return {
            **spread,
            "promised": int(needed[self.rows].min()),
            "people_with_fewer": len(np.unique(person[self.rows[few]])),
            "highest_risk": 1 / least if least else None,
            "promised_risk": 1 / int(needed[self.rows].min()),
        }


def count_candidates(attributes: Sequence[Attribute], row: Ints, person: Ints, judged: Bools) -> Candidates | None:
    """Count the people of all published rows that cover the true values of each released row's record.

    ``row`` and ``person`` are the record and the person of every released row, -1 for none.
    Rows with equal published values are looked up once, as are records that no published value distinguishes.
    Return None if too many ranges overlap.
    """
    rows = np.flatnonzero(judged & (row >= 0) & (person >= 0))
    if not attributes:
        return Candidates(rows, np.full(len(rows), len(np.unique(person[rows])), np.int64))
    columns = [column for attribute in attributes if (column := _column(attribute)) is not None]
    if len(columns) < len(attributes):
        return None
    shown = [column.shown[rows] for column in columns]
    group = combined(shown, len(rows))
    people = _people_of_groups(group, person[rows])
    target = combined([column.true[row[rows]] for column in columns], len(rows))
    first = np.unique(target, return_index=True)[1]
    table = _Prefixes(columns, rows, group)
    wanted = [column.true[row[rows[first]]] for column in columns]
    counts = [
        _distinct_people(owner, found, stop - start, people)
        for start, stop, owner, found in _lookups(table, wanted, len(first))
    ]
    by_target = np.concatenate([np.zeros(0, np.int64), *counts])
    return Candidates(rows, by_target[target] if len(rows) else by_target)


def _people_of_groups(group: Ints, person: Ints) -> _Lists:
    count, width = int(group.max(initial=-1)) + 1, int(person.max(initial=0)) + 1
    pair = np.unique(group * width + person)
    return _Lists.of(pair // width, pair % width, count)


class _Prefixes:
    """The published vectors as a prefix table, column by column."""

    def __init__(self, columns: Sequence[_Column], rows: Ints, group: Ints) -> None:
        self._columns = columns
        self._widths, self._keys = [], []
        prefix = np.zeros(len(rows), np.int64)
        for column in columns:
            shown = column.shown[rows]
            width = int(max(shown.max(initial=0), column.covering.items.max(initial=0))) + 1
            keys, prefix = np.unique(prefix * width + shown, return_inverse=True)
            self._widths.append(width)
            self._keys.append(keys)
        self._group = np.zeros(int(prefix.max(initial=-1)) + 1, np.int64)
        self._group[prefix] = group

    def covering(self, wanted: Sequence[Ints]) -> tuple[Ints, Ints]:
        """Return pairs of a wanted vector (its place) and a published group that covers it."""
        owner = np.arange(len(wanted[0]))
        prefix = np.zeros(len(owner), np.int64)
        for column, true, width, keys in zip(self._columns, wanted, self._widths, self._keys, strict=True):
            place, label = column.covering.expand(true[owner])
            key = prefix[place] * width + label
            at = np.minimum(np.searchsorted(keys, key), max(len(keys) - 1, 0))
            hit = keys[at] == key
            owner, prefix = owner[place[hit]], at[hit]
        return owner, self._group[prefix]


def _lookups(table: _Prefixes, wanted: Sequence[Ints], count: int) -> Iterator[tuple[int, int, Ints, Ints]]:
    for start in range(0, count, _AT_ONCE):
        stop = min(start + _AT_ONCE, count)
        owner, found = table.covering([true[start:stop] for true in wanted])
        yield start, stop, owner, found


def _distinct_people(owner: Ints, group: Ints, count: int, people: _Lists) -> Ints:
    """Count the people of all groups of every owner; owners with the same groups are counted together."""
    order = np.lexsort((group, owner))
    owner, group = owner[order], group[order]
    kind = _same_sets(owner, group, count)
    first = np.unique(kind, return_index=True)[1]
    starts, size = np.searchsorted(owner, np.arange(count + 1)), np.diff(people.starts)
    counts = np.zeros(len(first), np.int64)
    stamp = np.zeros(int(people.items.max(initial=-1)) + 1, np.int64)
    for number, one in enumerate(first.tolist()):
        groups = group[starts[one] : starts[one + 1]]
        largest = int(size[groups].max(initial=0))
        alone = len(groups) == 1 or largest > _ENOUGH
        counts[number] = largest if alone else _distinct(people.expand(groups)[1], stamp)
    return counts[kind]


def _distinct(items: Ints, stamp: Ints) -> int:
    """Count different items: each one is counted at its last position."""
    turns = np.arange(len(items))
    stamp[items] = turns
    return int(np.count_nonzero(stamp[items] == turns))


def _same_sets(owner: Ints, group: Ints, count: int) -> Ints:
    """Number owners so that those with the same groups share a number: by length and two mixed sums."""
    size = np.bincount(owner, minlength=count)
    sums = []
    for mixer in _MIXERS:
        mixed = (group.astype(np.uint64) + np.uint64(1)) * np.uint64(mixer)
        mixed ^= mixed >> np.uint64(29)
        mixed *= np.uint64(0xBF58476D1CE4E5B9)
        mixed ^= mixed >> np.uint64(32)
        total = np.append(np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64))
        end = np.cumsum(size)
        sums.append((total[end] - total[end - size]).view(np.int64))
    return dense(size, *sums)
