"""Check what was withheld to reach a target, and what was not, by the sets that people had shown until then.

A further value of a person may be released only if afterwards at least a share p of the people shown in the epoch are
k-anonymous, or no more people stand alone than before. A value that z people had shown may be withheld only if not. For
k above 2 a set that no one has shown yet counts double. When a person's first value is released is the publisher's
choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Found, check, look
from shoal.auditor.reading.columns import Ints
from shoal.auditor.relation import Relation
from shoal.auditor.rows.texts import shared_numbers
from shoal.auditor.z.crowds import held_back
from shoal.auditor.z.order import Clock
from shoal.auditor.z.promise import Target, ZPromise

_Set = frozenset[tuple[int, int]]
_NOTHING: _Set = frozenset()
_NO_VALUE: Final = -1
of_target = partial(check, families=("z",), by="group", needs=("truth", "trace"))


@of_target(
    "stands-out",
    "A further value of a person was released although too few of the people shown were k-anonymous then.",
    advice="Whoever knows the values of a person finds them too often: do not publish this release.")  # fmt: skip
def stands_out(rows: Relation) -> Any:
    return rows["wrong"]


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


def check_withheld(promise: ZPromise, target: Target, clock: Clock, rows: Relation) -> Found:
    """Check which values that z people had shown were released and which were not."""
    wrong, needless = np.zeros((2, len(rows)), np.int64)
    stretch, sets, withheld = None, _ShownSets(target), 0
    for row, column, person, value, is_held, *of in _values(promise, clock, rows):
        if of != stretch:
            stretch, sets = of, _ShownSets(target)
        before = sets.has(person)
        after = before if value == _NO_VALUE else before | {(column, value)}
        if is_held:
            needless[row] += sets.allows(person, after)
            withheld += 1
            continue
        if before and after != before and not sets.allows(person, after):
            wrong[row] = 1
        sets.show(person, after)
    marked = rows.having(wrong=wrong > 0, held=needless)
    return Found(look(marked, (stands_out, held_back)), {"withheld": withheld})


def _values(promise: ZPromise, clock: Clock, rows: Relation) -> Iterator[tuple[int, ...]]:
    """Row, column, person, value, whether it was withheld, start and epoch of values, in the order decided.

    Of the released values only the first of each person in an epoch; with blank rows also the first row of each person.
    """
    start, epoch, person = clock.starts(rows["record"]), rows["epoch"], rows.codes("person")
    order = np.lexsort((rows["record"], rows["time"], start))
    released = order[rows["row"][order] >= 0]
    parts = []
    if promise.keeps_rows:
        first = _first_of(released, start, epoch, person)
        parts.append((first, -1, np.full(len(first), _NO_VALUE), False))
    for column, attribute in enumerate(promise.attributes):
        name = attribute.name
        true, shown = shared_numbers(rows[f"true {name}"], rows[f"released {name}"])[1]
        held = np.flatnonzero(rows[f"held {name}"])
        first = _first_of(released[shown[released] >= 0], start, epoch, person, shown)
        parts += [(held, column, true[held], True), (first, column, shown[first], False)]
    row = np.concatenate([of for of, *_ in parts])
    column_of, is_held = (
        np.concatenate([np.full(len(part[0]), part[at], np.int64) for part in parts]) for at in (1, 3)
    )
    value = np.concatenate([values for _, _, values, _ in parts])
    order = np.lexsort((column_of, rows["record"][row], rows["time"][row], start[row]))
    row = row[order]
    columns = row, column_of[order], person[row], value[order], is_held[order], start[row], epoch[row]
    return zip(*(one.tolist() for one in columns), strict=True)


def _first_of(rows: Ints, *keys: Ints) -> Ints:
    """The first of the rows for each combination of keys."""
    if not len(rows):
        return rows
    return rows[np.unique(np.stack([key[rows] for key in keys]), axis=1, return_index=True)[1]]
