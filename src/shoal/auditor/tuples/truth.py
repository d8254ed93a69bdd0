"""The truth's records: who they are of, and whether released rows match them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from shoal.auditor.counting import dense, is_someone, shared_codes, spelt_codes, surplus
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.released_columns import check_metadata
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.trace import DEAD, Decisions
from shoal.auditor.tuples.values import Attribute


@dataclass(frozen=True, slots=True)
class Records:
    """The truth's records; without the truth there are none."""

    person: Ints
    """-1 where there is nobody."""
    usable: Bools
    time: Ints | None


def read_records(promise: TuplePromise, truth: Rows, attributes: Sequence[Attribute]) -> Records:
    """Read who and when; a record is usable when it has a person (and a time, if needed) and no value it must not."""
    persons, (person,) = shared_codes(truth.text(promise.person))
    someone = is_someone(person, persons)
    usable = np.logical_and.reduce([someone, ~truth.broken, *(attribute.usable for attribute in attributes)])
    time = None
    if promise.is_timed and promise.time is not None and len(truth):
        time, has_time = truth.moments(promise.time)
        usable &= has_time
    return Records(np.where(someone, person, -1), usable, time)


def check_dead(trace: Rows, decisions: Decisions, known: Records, notes: Notes) -> None:
    """Check that unusable records, and only those, were put among the dead."""
    unusable = decisions.counted.copy()
    unusable[unusable] = ~known.usable[decisions.row[unusable]]
    notes.violation(
        "unusable-accepted",
        "A record without a person, or with a value outside its domain or hierarchy, was not put among the dead ones.",
        rows=decisions.marked(unusable, int(decisions.leaves.sum())),
        count=int(unusable.sum()),
    )
    reasons, (code,) = shared_codes(trace.text("reason"))
    silent = int(((decisions.verdict == DEAD) & (code < 0)).sum())
    notes.unchecked("Why records were put away was not checked: the trace has no reason for them.", count=silent)
    unseen = {"null-time", "bad-time", "ahead"}  # reasons that the truth cannot be asked about
    told = np.array([*(reason.split(":")[0] not in unseen for reason in reasons), False])
    dead = (decisions.verdict == DEAD) & told[code] & decisions.exists
    dead[dead] = known.usable[decisions.row[dead]]
    notes.warning(
        "dead-without-cause",
        "A record was put among the dead ones for a reason it does not have.",
        count=int(dead.sum()),
    )


class ReleasedColumns(Protocol):
    """What a promise says of the columns that leave."""

    @property
    def person(self) -> str:
        """The column that tells people apart; it does not leave."""

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Columns that leave as they are because they are the point."""

    @property
    def carry(self) -> tuple[str, ...]:
        """Other columns that leave as they are."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that may leave."""


def check_unchanged(promise: ReleasedColumns, release: Rows, truth: Rows, row: Ints, notes: Notes) -> None:
    """Check sensitive and carried columns against the records the rows stand for (-1: none known)."""
    known = row >= 0
    notes.violation("not-in-truth", "A released row has no row in the truth.", rows=~known)
    for names, code, what in (
        (promise.sensitive, "wrong-sensitive", "sensitive"),
        (promise.carry, "wrong-carry", "carried"),
    ):
        other = np.zeros(len(row), np.bool_)
        for name in names:
            _, true, shown = spelt_codes(name, truth, release)
            other[known] |= true[row[known]] != shown[known]
        notes.violation(code, f"A released row has another {what} value than its record.", rows=other)


def check_membership(promise: ReleasedColumns, release: Rows, truth: Rows, usable: Bools, notes: Notes) -> None:
    """Check without a trace that what is published unchanged is in the truth, and no more often."""
    sides = [np.zeros(int(usable.sum()), np.int64)], [np.zeros(len(release), np.int64)]
    for name in (*promise.sensitive, *promise.carry):
        _, true, shown = spelt_codes(name, truth, release)
        sides[0].append(true[usable])
        sides[1].append(shown)
    joined = dense(*(np.concatenate(pair) for pair in zip(*sides, strict=True)))
    known, shown = np.split(joined, [len(sides[0][0])])
    absent, extra = surplus(known, shown)
    notes.violation("not-in-truth", "A released row is not in the truth.", rows=absent)
    notes.violation("more-often-than-truth", "A row was released more often than it is in the truth.", rows=extra)


def check_identifiers(
    promise: ReleasedColumns,
    attributes: Sequence[Attribute],
    release: Rows,
    truth: Rows,
    row: Ints | None,
    notes: Notes,
) -> None:
    """Check that no identifier of the truth stands in a column that should not leave, or where a label should be.

    Sensitive and carried columns leave as they are; that a row names its own person there is worth a warning. Where
    each row is a person there are no identifiers: a row number is any number.
    """
    persons = truth.text(promise.person)
    if promise.person == "row" and _are_row_numbers(persons):
        return
    check_metadata(persons, promise.columns, release, notes)
    quasi = {attribute.name for attribute in attributes}
    leaked, named = np.zeros(len(release), np.bool_), np.zeros(len(release), np.bool_)
    for name in release.columns:
        if name not in promise.columns:
            leaked |= _is_identifier(persons, release.text(name))
        elif name not in quasi:
            named |= _names_someone(persons, release.text(name), row)
    for attribute in attributes:
        strange = attribute.faults.get("unknown-label")
        if strange is not None and strange.any():
            leaked |= strange & _is_identifier(persons, release.text(attribute.name))
    notes.violation("raw-identifier", "A released row holds an identifier of the truth.", rows=leaked)
    notes.warning("identifier-in-column", "A row carries the identifier of its person.", rows=named)


def _are_row_numbers(persons: Any) -> bool:
    return all(text is None or text == str(row) for row, text in enumerate(persons.to_pylist()))


def _is_identifier(persons: Any, column: Any) -> Bools:
    texts, (known, shown) = shared_codes(persons, column)
    is_person = np.zeros(len(texts) + 1, np.bool_)
    is_person[known] = True
    is_person[-1] = False  # code -1, null, picks the last
    return is_person[shown]


def _names_someone(persons: Any, column: Any, row: Ints | None) -> Bools:
    """Mark rows that name their person; where it is not known, any person whose identifier is no mere number."""
    if row is None:
        digits = np.array([text is not None and text.isdigit() for text in column.to_pylist()], np.bool_)
        return _is_identifier(persons, column) & ~digits
    _, (known, shown) = shared_codes(persons, column)
    own = np.append(known, -1)[row]  # row -1 picks the last
    same: Bools = own == shown
    return same & (shown >= 0)
