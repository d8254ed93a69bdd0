"""The truth's records: who they are of, and whether released rows match them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np

from shoal.auditor.counting import dense, is_someone, shared_codes, spelt_codes, surplus
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.released_columns import check_metadata
from shoal.auditor.rows.attributes import Attribute
from shoal.auditor.trace import DEAD, read_reasons
Decisions = object

_NOT_IN_TRUTH: Final = ("null-time", "bad-time", "ahead")
"""Reasons for a refusal that the truth does not show."""


@dataclass(frozen=True, slots=True)
class Records:
    """The truth's records; none without a truth."""

    person: Ints
    """-1 for a missing person."""
    usable: Bools
    time: Ints | None


def read_records(person: str, time: str | None, truth: Rows, attributes: Sequence[Attribute]) -> Records:
    """Read the records; a usable one has a person (and a time, if a column is named) and only allowed values."""
    persons, (code,) = shared_codes(truth.text(person))
    someone = is_someone(code, persons)
    usable = np.logical_and.reduce([someone, ~truth.broken, *(attribute.usable for attribute in attributes)])
    moments = None
    if time is not None and len(truth):
        moments, has_time = truth.moments(time)
        usable &= has_time
    return Records(np.where(someone, code, -1), usable, moments)


def check_refused(trace: Rows, decisions: Decisions, records: Records, notes: Notes) -> None:
    """Check that unusable records, and only those, were refused."""
    unusable = decisions.counted.copy()
    unusable[unusable] = ~records.usable[decisions.row[unusable]]
    sentence = "A record without a person, or with a value outside its domain or hierarchy, was not refused."
    decisions.violation("unusable-accepted", sentence, unusable, notes)
    reasons, code = read_reasons(trace, decisions.verdict == DEAD, notes)
    is_checkable = np.array([*(reason.split(":")[0] not in _NOT_IN_TRUTH for reason in reasons), False])
    dead = (decisions.verdict == DEAD) & is_checkable[code] & decisions.exists
    dead[dead] = records.usable[decisions.row[dead]]
    sentence = "A record was refused for a reason that does not apply to it."
    notes.warning("dead-without-cause", sentence, count=int(dead.sum()))


class ReleasedColumns(Protocol):
    """What a promise says about the released columns."""

    @property
    def person(self) -> str:
        """The column that identifies people; it is not released."""

    @property
    def sensitive(self) -> tuple[str, ...]:
        """Sensitive columns, released unchanged."""

    @property
    def carry(self) -> tuple[str, ...]:
        """Other columns released unchanged."""

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns that may be released."""


def check_unchanged(promise: ReleasedColumns, release: Rows, truth: Rows, row: Ints, notes: Notes) -> dict[str, Bools]:
    """Check sensitive and carried columns against the record of every row (-1: not known).

    Returns
    -------
    By column: which rows show a value although their record has none.
    """
    known, filled = row >= 0, {}
    notes.violation("not-in-truth", "A released row has no row in the truth.", rows=~known)
    for names, code, what in (
        (promise.sensitive, "wrong-sensitive", "sensitive"),
        (promise.carry, "wrong-carry", "carried"),
    ):
        other = np.zeros(len(row), np.bool_)
        for name in names:
            _, true, shown = spelt_codes(name, truth, release)
            own = np.append(true, -1)[row]  # row -1 picks the last
            other |= known & (own != shown)
            filled[name] = known & (own < 0) & (shown >= 0)
        notes.violation(code, f"A released row has another {what} value than its record.", rows=other)
    return filled


def check_membership(promise: ReleasedColumns, release: Rows, truth: Rows, usable: Bools, notes: Notes) -> None:
    """Check without a trace that unchanged values are in the truth, and at least as often."""
    absent, extra = surplus(*_unchanged_keys(promise, release, truth, usable))
    notes.violation("not-in-truth", "A released row is not in the truth.", rows=absent)
    notes.violation("more-often-than-truth", "A row was released more often than it is in the truth.", rows=extra)


def check_patterns(
    promise: ReleasedColumns,
    attributes: Sequence[Attribute],
    release: Rows,
    truth: Rows,
    usable: Bools,
    judged: Bools,
    notes: Notes,
) -> None:
    """Check without a trace that rows with some unchanged values lack the same columns as enough of the records."""
    known, shown = _unchanged_keys(promise, release, truth, usable)
    absent, extra = surplus(known, shown)
    reported = np.isin(shown, shown[absent | extra])
    rows = np.flatnonzero(judged & ~reported)
    lacking = [np.concatenate([~one.carried[usable], one.code[rows] < 0]) for one in attributes]
    joined = dense(np.concatenate([known, shown[rows]]), *lacking)
    absent, extra = surplus(*np.split(joined, [len(known)]))
    wrong = np.zeros(len(release), np.bool_)
    wrong[rows] = absent | extra
    sentence = "Too few records with the sensitive and carried values of a row lack what the row lacks."
    notes.violation("wrong-nulls", sentence, rows=wrong)


def _unchanged_keys(promise: ReleasedColumns, release: Rows, truth: Rows, usable: Bools) -> tuple[Ints, Ints]:
    """Number the combinations of values that are published unchanged, of usable records and of released rows."""
    sides = [np.zeros(int(usable.sum()), np.int64)], [np.zeros(len(release), np.int64)]
    for name in (*promise.sensitive, *promise.carry):
        _, true, shown = spelt_codes(name, truth, release)
        sides[0].append(true[usable])
        sides[1].append(shown)
    joined = dense(*(np.concatenate(pair) for pair in zip(*sides, strict=True)))
    known, shown = np.split(joined, [len(sides[0][0])])
    return known, shown


def check_identifiers(
    promise: ReleasedColumns,
    attributes: Sequence[Attribute],
    release: Rows,
    truth: Rows,
    row: Ints | None,
    notes: Notes,
) -> None:
    """Check that no identifier of the truth is in a column that must not be released, or in place of a label.

    Sensitive and carried columns are released unchanged; if a row names its own person there, that is a warning. If
    every row is a person there are no identifiers, only row numbers.
    """
    persons = truth.text(promise.person)
    if promise.person == "row" and are_row_numbers(persons):
        return
    check_metadata(persons, promise.columns, release, notes)
    quasi = {attribute.name for attribute in attributes}
    leaked, named = np.zeros(len(release), np.bool_), np.zeros(len(release), np.bool_)
    for name in release.columns:
        if name not in promise.columns:
            leaked |= is_identifier(persons, release.text(name))
        elif name not in quasi:
            named |= names_someone(persons, release.text(name), row)
    for attribute in attributes:
        strange = attribute.faults.get("unknown-label")
        if strange is not None and strange.any():
            leaked |= strange & is_identifier(persons, release.text(attribute.name))
    notes.violation("raw-identifier", "A released row contains an identifier of the truth.", rows=leaked)
    notes.warning("identifier-in-column", "A row carries the identifier of its person.", rows=named)


def are_row_numbers(persons: Any, first: int = 0) -> bool:
    """Return whether every person is the number of their row; the first has the number ``first``."""
    return all(text is None or text == str(row) for row, text in enumerate(persons.to_pylist(), first))


def is_identifier(persons: Any, column: Any) -> Bools:
    """Mark the values of a column that are identifiers of persons."""
    texts, (known, shown) = shared_codes(persons, column)
    is_person = np.zeros(len(texts) + 1, np.bool_)
    is_person[known] = True
    is_person[-1] = False  # code -1, null, picks the last
    return is_person[shown]


def names_someone(persons: Any, column: Any, row: Ints | None) -> Bools:
    """Mark rows that name their person; if that is not known, any person whose identifier is not just a number."""
    if row is None:
        digits = np.array([text is not None and text.isdigit() for text in column.to_pylist()], np.bool_)
        return is_identifier(persons, column) & ~digits
    _, (known, shown) = shared_codes(persons, column)
    own = np.append(known, -1)[row]  # row -1 picks the last
    same: Bools = own == shown
    return same & (shown >= 0)
