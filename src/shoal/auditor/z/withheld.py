"""Check what was withheld to reach a target, and what was not, by the sets that people had shown until then.

A further value of a person may be released only if afterwards at least a share p of the people shown in the epoch are
k-anonymous, or no more people stand alone than before. A value that z people had shown may be withheld only if not. For
k above 2 a set that no one has shown yet counts double. When a person's first value is released is the publisher's
choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.crowds import note_held_back
from shoal.auditor.z.promise import Target, ZPromise
from shoal.auditor.z.target import stretches
from shoal.auditor.z.trace import Decisions

_Set = frozenset[tuple[int, int]]
_NOTHING: _Set = frozenset()
_STANDS_OUT: Final = (
    "A further value of a person was released although too few of the people shown were k-anonymous then."
)
NO_VALUE: Final = -1
ShownValue = tuple[int, int, int, int, bool, int]
"""Row, column, person, value, whether it was withheld, and stretch."""


class _ShownSets:
    """The sets shown in an epoch so far."""

    def __init__(self, target: Target) -> None:
        self._k, self._p = target.k, target.p
        self._of: dict[int, _Set] = {}
        self._people: Counter[_Set] = Counter()
        self._alone = 0

    def has(self, person: int) -> _Set:
        """The set shown of a person; empty if there is none."""
        return self._of.get(person, _NOTHING)

    def allows(self, person: int, after: _Set) -> bool:
        """Whether the target is met, or no more people stand alone than now, once a person shows this set."""
        change = self._change(person, after)
        shown = len(self._of) + (person not in self._of)
        weight = 2 if self._k > 2 and not self._people[after] else 1
        return change <= 0 or shown - weight * (self._alone + change) >= self._p * shown

    def show(self, person: int, after: _Set) -> None:
        """Replace the set of a person."""
        self._alone += self._change(person, after)
        if person in self._of:
            self._people[self._of[person]] -= 1
        self._of[person] = after
        self._people[after] += 1

    def _change(self, person: int, after: _Set) -> int:
        """By how much the number of people below k changes."""
        changed = {after: 1}
        if person in self._of:
            changed[self._of[person]] = changed.get(self._of[person], 0) - 1
        return sum(
            self._below(self._people[one] + more) - self._below(self._people[one]) for one, more in changed.items()
        )

    def _below(self, people: int) -> int:
        return people if people < self._k else 0


def check_withheld(
    aligned: Aligned, promise: ZPromise, target: Target, decisions: Decisions, held: Sequence[Ints], notes: Notes
) -> None:
    """Check which values that z people had shown were released and which were not; `held` are the latter, by column."""
    found = judge_sets(_values(aligned, promise, decisions, held), target)
    wrong = np.zeros(len(aligned.shown_time), np.bool_)
    wrong[decisions.shown_at[found.wrong]] = True
    notes.metrics["withheld"] = found.withheld
    found.note(wrong, notes)


@dataclass(slots=True)
class Withheld:
    """What was withheld, and what should have been."""

    withheld: int = 0
    needless: int = 0
    wrong: list[int] = field(default_factory=list)
    """Rows that were released although they make someone stand out."""

    def note(self, wrong: Bools, notes: Notes) -> None:
        """Report both; ``wrong`` marks the released rows."""
        note_held_back(self.needless, notes)
        notes.violation("stands-out", _STANDS_OUT, rows=wrong)


def judge_sets(values: Iterable[ShownValue], target: Target) -> Withheld:
    """Judge values in the order decided, stretch by stretch."""
    found, stretch, sets = Withheld(), None, _ShownSets(target)
    for row, column, person, value, is_held, of_stretch in values:
        if of_stretch != stretch:
            stretch, sets = of_stretch, _ShownSets(target)
        before = sets.has(person)
        after = before if value == NO_VALUE else before | {(column, value)}
        if is_held:
            found.needless += sets.allows(person, after)
            found.withheld += 1
            continue
        if before and after != before and not sets.allows(person, after):
            found.wrong.append(row)
        sets.show(person, after)
    return found


def _values(aligned: Aligned, promise: ZPromise, decisions: Decisions, held: Sequence[Ints]) -> Iterator[ShownValue]:
    """Values in the order decided.

    Of the released values only the first of each person in an epoch; with blank rows also the first row of each person.
    """
    person = aligned.person[decisions.accepted]
    stretch = stretches(aligned.time[decisions.accepted] // promise.rotation_ns, decisions.start)
    parts = []
    if promise.keeps_rows:
        rows = first_of(np.flatnonzero(decisions.shown_at >= 0), stretch, person)
        parts.append(_part(rows, -1, np.full(len(rows), NO_VALUE), is_held=False))
    for column, attribute in enumerate(promise.attributes):
        values = aligned.values[attribute.name]
        parts.append(_part(held[column], column, values.truth[decisions.accepted[held[column]]], is_held=True))
        released = np.flatnonzero(decisions.shown_at >= 0)
        shown = np.full(len(person), NO_VALUE)
        shown[released] = values.shown[decisions.shown_at[released]]
        rows = first_of(released[shown[released] >= 0], stretch, person, shown)
        parts.append(_part(rows, column, shown[rows], is_held=False))
    row, column_of, value, is_held = np.concatenate(parts, axis=1)
    order = np.lexsort((column_of, row))
    columns = (row[order], column_of[order], person[row[order]], value[order], is_held[order] > 0, stretch[row[order]])
    return zip(*(one.tolist() for one in columns), strict=True)


def _part(rows: Ints, column: int, values: Ints, *, is_held: bool) -> Ints:
    return np.stack((rows, np.full(len(rows), column), values, np.full(len(rows), is_held)))


def first_of(rows: Ints, *keys: Ints) -> Ints:
    """The first of the rows for each combination of keys."""
    if not len(rows):
        return rows
    return rows[np.unique(np.stack([key[rows] for key in keys]), axis=1, return_index=True)[1]]
