"""Measure how identifying unchanged columns are: people per value, alone and within the class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import Answer, check, look
from shoal.auditor.counting import dense, people_of, shared_codes
from shoal.auditor.findings import ROWS_NAMED, Notes, Severity
from shoal.auditor.policy import Policy
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.errors import PolicyError

MOST_RARE_ROWS: Final = 0.05
"""A column is identifying if a larger share of rows has a value that fewer than k people have."""
LEAST_PEOPLE: Final = 20
"""Times k: with fewer people in the release a carried column is a warning, not a violation."""


@dataclass(frozen=True, slots=True)
class Published:
    """Released rows with their persons and classes; unreadable rows are ignored."""

    rows: Rows
    readable: Bools
    person: Ints | None
    """Numbers from 0, -1 without a person; None: unknown, every row counts as a person."""
    of_class: Ints
    """Equal for rows with equal published values."""


@dataclass(frozen=True, slots=True)
class ColumnCrowds:
    """How many people have the values of a column, alone and within a class: of all rows, or of a part of them."""

    rows: int = 0
    values: int = 0
    lone_values: int = 0
    """Values that one person has."""
    below: int = 0
    """Rows whose value fewer than k people have."""
    single: int = 0
    """Rows whose value one person has."""
    below_in_class: int = 0
    single_in_class: int = 0
    rare: tuple[int, ...] = ()
    """The first rows whose value fewer than k people have."""

    def __add__(self, other: ColumnCrowds) -> ColumnCrowds:
        """The crowds of two parts that have no value in common."""
        return ColumnCrowds(
            self.rows + other.rows,
            self.values + other.values,
            self.lone_values + other.lone_values,
            self.below + other.below,
            self.single + other.single,
            self.below_in_class + other.below_in_class,
            self.single_in_class + other.single_in_class,
            tuple(sorted((*self.rare, *other.rare))[:ROWS_NAMED]),
        )

    def share(self, rows: int) -> float:
        """Return the share of some rows."""
        return rows / self.rows if self.rows else 0.0

    @property
    def is_identifying(self) -> bool:
        """Whether too many rows have a value that fewer than k people have."""
        return self.share(self.below) > MOST_RARE_ROWS


def measure_crowds(value: Ints, person: Ints, of_class: Ints, rows: Ints, k: int) -> ColumnCrowds:
    """Count the people of every value; null is a value. ``rows`` are the numbers of the rows, rising."""
    behind, people = _people_behind(value, person)
    within, _ = _people_behind(dense(of_class, value), person) if len(value) else (behind, people)
    return ColumnCrowds(
        len(value), int((people > 0).sum()), int((people == 1).sum()), int((behind < k).sum()), int((behind < 2).sum()),
        int((within < k).sum()), int((within < 2).sum()), tuple(rows[behind < k][:ROWS_NAMED].tolist()),
    )  # fmt: skip


def _people_behind(value: Ints, person: Ints) -> tuple[Ints, Ints]:
    """Return how many people have the value of every row, and every value."""
    if not len(value):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    value = value - int(value.min())
    people = people_of(value, person)
    return people[value], people


def check_identifying(
    policy: Policy, carry: tuple[str, ...], sensitive: tuple[str, ...], published: Published, k: tuple[str, int],
    notes: Notes,
) -> None:  # fmt: skip
    """Measure every carried and sensitive column. ``k`` is the name and the number of the promise: k or z."""
    allowed = allows_identifying(policy)
    if not carry and not sensitive:
        return
    known = published.readable if published.person is None else published.readable & (published.person >= 0)
    rows = np.flatnonzero(known)
    person = rows if published.person is None else published.person[rows]
    of_class = published.of_class[rows]
    codes = {name: shared_codes(published.rows.text(name))[1][0][rows] for name in dict.fromkeys((*carry, *sensitive))}
    found = {name: measure_crowds(code, person, of_class, rows, k[1]) for name, code in codes.items()}
    joint = None
    if len(carry) > 1:
        joint = measure_crowds(dense(*(codes[name] for name in carry)), person, of_class, rows, k[1])
    note_identifying(found, joint, carry, sensitive, k, len(np.unique(person)), notes, allowed=allowed)


def allows_identifying(policy: Policy) -> bool:
    """Return whether the policy allows carried columns that identify people."""
    allowed = policy.section("stream").get("carry_identifying", False)
    if not isinstance(allowed, bool):
        raise PolicyError("[stream] carry_identifying: must be true or false")
    return allowed


def note_identifying(
    found: Mapping[str, ColumnCrowds], joint: ColumnCrowds | None, carry: tuple[str, ...], sensitive: tuple[str, ...],
    k: tuple[str, int], people: int, notes: Notes, *, allowed: bool,
) -> None:  # fmt: skip
    """Report columns that identify people, and the crowds of all; ``joint`` are those of all carried columns."""
    is_evident = people >= LEAST_PEOPLE * k[1]

    def column(name: str, crowds: ColumnCrowds) -> Column:
        return Column(name, crowds, *k, is_allowed=allowed, is_evident=is_evident)

    for name in carry:
        notes.findings += look(column(name, found[name]), (identifying_carry, possibly_identifying_carry))
    if joint is not None and not any(found[name].is_identifying for name in carry):
        notes.findings += look(column("", joint), (identifying_together,))
    for name in sensitive:
        notes.findings += look(column(name, found[name]), (identifying_sensitive,))
    roles = dict.fromkeys(carry, "carry") | dict.fromkeys(sensitive, "sensitive")
    described = {name: column(name, found[name]).described(role) for name, role in roles.items()}
    notes.metrics["unchanged_columns"] = described


@dataclass(frozen=True, slots=True)
class Column:
    """A column that is published unchanged, or several together."""

    name: str
    crowds: ColumnCrowds
    letter: str
    """What the policy calls the promised number of people."""
    k: int
    is_allowed: bool
    """Whether the policy says carry_identifying = true."""
    is_evident: bool
    """Whether there are enough people to judge by."""

    def answer(self, sentence: str) -> Answer:
        """What a check says of the column if it is identifying."""
        if not self.crowds.is_identifying:
            return Answer(count=0)
        return Answer(count=self.crowds.below, sentence=sentence, named=self.crowds.rare)

    def words(self) -> str:
        """Say how many rows have a rare value."""
        crowds = self.crowds
        return (
            f"{crowds.share(crowds.below):.1%} of the rows have a value that fewer than {self.letter} = {self.k} "
            f"people have, {crowds.share(crowds.single):.1%} one that a single person has"
        )

    def described(self, role: str) -> dict[str, Any]:
        """Return the figures of the column."""
        crowds = self.crowds
        return {
            "role": role,
            self.letter: self.k,
            "values": crowds.values,
            "values_of_one_person": crowds.lone_values,
            "rows_below": crowds.below,
            "rows_of_one_person": crowds.single,
            "share_below": crowds.share(crowds.below),
            "share_of_one_person": crowds.share(crowds.single),
            "share_below_with_class": crowds.share(crowds.below_in_class),
            "share_of_one_person_with_class": crowds.share(crowds.single_in_class),
        }


_of_column = partial(check, families=("z", "tuples", "flexible"), by="value")
_COARSER: Final = "drop it, make it coarser, or make it a quasi-identifier"


@_of_column(
    "identifying-carry",
    "More than 5% of the rows carry a value that fewer than k (z) people have.",
    advice="Drop the column, make it coarser, or make it a quasi-identifier; carry_identifying = true accepts it.",
)
def identifying_carry(column: Column) -> Answer:
    """Count rows whose carried value too few people have."""
    if column.is_allowed or not column.is_evident:
        return Answer(count=0)
    what = f"Column {column.name!r} is carried: {column.words()}; {_COARSER}."
    return column.answer(f"{what} The policy does not set carry_identifying = true.")


@_of_column(
    "identifying-carry",
    "The same, and the policy allows it, or fewer than 20 times k people were released, which is too few to judge.",
    advice="Look at the column: whoever knows such a value finds the row.",
    severity=Severity.WARNING,
)
def possibly_identifying_carry(column: Column) -> Answer:
    """Count rows whose carried value too few people have, where that breaks no promise."""
    if not column.is_allowed and column.is_evident:
        return Answer(count=0)
    few = f"There are fewer than {LEAST_PEOPLE * column.k} people to judge by."
    why = "The policy allows it." if column.is_allowed else few
    return column.answer(f"Column {column.name!r} is carried: {column.words()}; {_COARSER}. {why}")


@_of_column(
    "identifying-together",
    "Carried columns are not identifying one by one, but all of them together are.",
    advice="Carry fewer columns.",
    severity=Severity.WARNING,
)
def identifying_together(column: Column) -> Answer:
    """Count rows whose carried values together too few people have."""
    return column.answer(f"The carried columns together: {column.words()}; carry fewer of them.")


@_of_column(
    "identifying-sensitive",
    "More than 5% of the rows have a sensitive value that fewer than k people have.",
    advice="Make the column coarser, or protect it with l or t.",
    families=("tuples", "flexible"),
    severity=Severity.WARNING,
)
def identifying_sensitive(column: Column) -> Answer:
    """Count rows whose sensitive value too few people have."""
    known = "anyone who knows such a value can find the row"
    return column.answer(f"Column {column.name!r} is sensitive: {column.words()}; {known}.")
