"""Count the people that a released row may belong to, for an attacker who knows true values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import combined, dense, different
from shoal.auditor.engine import Here, Place, Table
from shoal.auditor.findings import Notes
from shoal.auditor.flexible.cells import pairs_of
from shoal.auditor.hierarchies.hierarchy import Hierarchy
from shoal.auditor.reading.columns import Ints
from shoal.auditor.reading.numbers import Floats
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.rows.quasi import LabelColumn, Quasi, RangeColumn

_AT_ONCE: Final = 200_000
"""True vectors looked up at once, so that memory stays bounded."""
_ENOUGH: Final = 10_000
"""In a larger group no further candidates are counted: it is large enough."""
_MOST_COVERED: Final = 200_000_000
_MOST_GATHERED: Final = 1_000_000
"""Where rows are on many machines: of more rows no candidates are counted."""
_QUANTILES: Final = {"least": 0.0, "1%": 0.01, "10%": 0.1, "median": 0.5, "90%": 0.9}


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
class Known:
    """A quasi-identifier that the attacker knows: numbers from 0, which is null, and what covers what."""

    true: Ints
    """For every row its record's value; values that no published value distinguishes have the same number."""
    shown: Ints
    covering: _Lists
    """For every true value the published values that cover it."""

    @classmethod
    def labels(cls, shown: Texts, true: Texts, hierarchy: Hierarchy) -> Known:
        """A column of labels."""
        number = {label: code + 1 for code, label in enumerate(shown.texts)}
        pairs = [(0, 0)]  # null covers null
        for code, text in enumerate(true.texts):
            pairs += [(code + 1, number[label]) for label in hierarchy.path(text) if label in number]
        owner, label = np.array(pairs, np.int64).T
        return cls(true.codes + 1, shown.codes + 1, _Lists.of(owner, label, len(true.texts) + 1))

    @classmethod
    def ranges(cls, low: Floats, high: Floats, true: Floats) -> Known | None:
        """A column of ranges; None if too many of them overlap."""
        there = ~(np.isnan(low) | np.isnan(high))
        pairs, code = np.unique(pairs_of(np.where(there, low, 0), np.where(there, high, 0)), return_inverse=True)
        # Between two neighbouring ends of ranges all values are covered by the same ranges: 2 i is on end i, 2 i + 1
        # after it.
        ends = np.unique(np.concatenate([pairs.real, pairs.imag]))
        begin, end = _place(pairs.real, ends) + 2, _place(pairs.imag, ends) + 2
        length = np.maximum(end - begin + 1, 0)
        if length.sum() > _MOST_COVERED:
            return None
        label = np.repeat(np.arange(len(pairs)), length)
        place = np.arange(len(label)) - np.repeat(np.cumsum(length) - length, length) + begin[label]
        covering = _Lists.of(np.append(place, 0), np.append(label + 1, 0), 2 * len(ends) + 2)
        value = np.where(np.isnan(true), 0, _place(np.nan_to_num(true), ends) + 2)
        return cls(value, np.where(there, code + 1, 0), covering)


def _place(value: Floats, ends: Floats) -> Ints:
    return np.searchsorted(ends, value, side="left") + np.searchsorted(ends, value, side="right") - 1


def note_candidates(place: Place, rows: Table, quasi: Sequence[Quasi], normal: Sequence[Quasi], notes: Notes) -> None:
    """Note how many people a row may belong to, for attackers who know all columns, and who know the normal ones."""
    notes.metrics["candidates_knowing_all"] = notes.metrics["candidates_knowing_normal"] = None
    if not isinstance(place, Here) and place.outline("release").rows > _MOST_GATHERED:
        notes.skip("Candidates for an attacker with true values were not counted: too many rows for one machine.")
        return
    columns = {name: kind for one in quasi for name, kind in (*one.shown.items(), *one.true.items())}
    shape: Shape = {"person": str, "needed": int, "needed_s": int, **columns}
    known = place.gather(place.each(rows, partial(_of_somebody, tuple(shape)), shape))
    notes.metrics["candidates_knowing_all"] = _described(known, quasi, known["needed_s"], notes)
    notes.metrics["candidates_knowing_normal"] = _described(known, normal, known["needed"], notes)


def _described(rows: Relation, quasi: Sequence[Quasi], needed: Ints, notes: Notes) -> dict[str, Any] | None:
    found = [column for one in quasi if (column := _known(one, rows)) is not None]
    if len(found) < len(quasi):
        notes.skip("Candidates for an attacker with true values were not counted: too many overlapping ranges.")
        return None
    return describe(count_candidates(found, rows.codes("person")), needed, rows.codes("person"))


def _of_somebody(names: Sequence[str], rows: Relation) -> Relation:
    return rows.take(rows["judged"] & rows["is_there"] & (rows.codes("person") >= 0)).only(*names)


def _known(one: Quasi, rows: Relation) -> Known | None:
    if isinstance(one, LabelColumn):
        return Known.labels(rows[one.label], rows[one.value], one.rule.tree)
    assert isinstance(one, RangeColumn)
    return Known.ranges(rows[one.low] - one.slack, rows[one.high] + one.slack, rows[one.value])


def describe(count: Ints, needed: Ints, person: Ints) -> dict[str, Any]:
    """Describe the candidates of every row, the promised number, and how many people have fewer."""
    if not len(count):
        return {}
    least, promised = int(count.min()), int(needed.min())
    return {
        **{name: int(np.quantile(count, at, method="lower")) for name, at in _QUANTILES.items()},
        "promised": promised,
        "people_with_fewer": int(np.count_nonzero(np.bincount(person[count < needed]))),
        "highest_risk": 1 / least if least else None,
        "promised_risk": 1 / promised,
    }


def count_candidates(columns: Sequence[Known], person: Ints) -> Ints:
    """Count, for every row, the people of all published rows that cover the true values of its record.

    Rows with equal published values are looked up once, as are records that no published value distinguishes.
    """
    if not columns:
        return np.full(len(person), len(np.unique(person)), np.int64)
    # The column with most published values first: it leaves fewest vectors to look at.
    columns = sorted(columns, key=lambda column: -int(column.shown.max(initial=0)))
    group = combined([column.shown for column in columns], len(person))
    table, people = _Prefixes(columns, group), _people_of_groups(group, person)
    target = combined([column.true for column in columns], len(person))
    first = np.zeros(int(target.max(initial=-1)) + 1, np.int64)
    first[target[::-1]] = np.arange(len(target))[::-1]
    counts = [np.zeros(0, np.int64)]
    for start in range(0, len(first), _AT_ONCE):
        wanted = first[start : start + _AT_ONCE]
        counts.append(_distinct_people(*table.covering(columns, wanted), len(wanted), people))
    return np.concatenate(counts)[target]


def _people_of_groups(group: Ints, person: Ints) -> _Lists:
    count, width = int(group.max(initial=-1)) + 1, int(person.max(initial=0)) + 1
    pair = different(group * width + person)
    return _Lists(np.searchsorted(pair, np.arange(count + 1) * width), pair % width)


class _Prefixes:
    """The published vectors as a prefix table, column by column."""

    def __init__(self, columns: Sequence[Known], group: Ints) -> None:
        self._widths, self._keys, prefix = [], [], np.zeros(len(group), np.int64)
        for column in columns:
            width = int(max(column.shown.max(initial=0), column.covering.items.max(initial=0))) + 1
            keys, prefix = np.unique(prefix * width + column.shown, return_inverse=True)
            self._widths.append(width)
            self._keys.append(keys)
        self._group = np.zeros(int(prefix.max(initial=-1)) + 1, np.int64)
        self._group[prefix] = group

    def covering(self, columns: Sequence[Known], wanted: Ints) -> tuple[Ints, Ints]:
        """Return pairs of a wanted row (its place) and a published group that covers its record."""
        owner, prefix = np.arange(len(wanted)), np.zeros(len(wanted), np.int64)
        for column, width, keys in zip(columns, self._widths, self._keys, strict=True):
            place, label = column.covering.expand(column.true[wanted[owner]])
            key = prefix[place] * width + label
            at = np.minimum(np.searchsorted(keys, key), max(len(keys) - 1, 0))
            hit = keys[at] == key
            owner, prefix = owner[place[hit]], at[hit]
        return owner, self._group[prefix]


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
    """Number owners so that those with the same groups share a number: by length and two sums of random numbers."""
    end = np.cumsum(np.bincount(owner, minlength=count))
    begin = np.append(0, end[:-1])
    drawn = np.random.default_rng(0).integers(-(2**63), 2**63, (2, int(group.max(initial=0)) + 1))
    total = np.concatenate([np.zeros((2, 1), np.int64), np.cumsum(drawn[:, group], axis=1)], axis=1)
    return dense(end - begin, *(total[:, end] - total[:, begin]))
