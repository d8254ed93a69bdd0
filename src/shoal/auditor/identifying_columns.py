"""Measure how identifying unchanged columns are: people per value, alone and within the class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import dense, people_of, shared_codes
from shoal.auditor.findings import ROWS_NAMED, Finding, Notes, Severity
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
    checks = _ColumnChecks(k, notes, allowed=allowed, is_evident=people >= LEAST_PEOPLE * k[1])
    for name in carry:
        if found[name].is_identifying:
            checks.carried(name, found[name])
    if joint is not None and joint.is_identifying and not any(found[name].is_identifying for name in carry):
        checks.joint(joint)
    for name in sensitive:
        if found[name].is_identifying:
            checks.sensitive(name, found[name])
    roles = dict.fromkeys(carry, "carry") | dict.fromkeys(sensitive, "sensitive")
    notes.metrics["unchanged_columns"] = {name: checks.described(role, found[name]) for name, role in roles.items()}


class _ColumnChecks:
    """Reports columns published unchanged that identify people."""

    def __init__(self, k: tuple[str, int], notes: Notes, *, allowed: bool, is_evident: bool) -> None:
        self._letter, self._k = k
        self._allowed, self._is_evident, self._notes = allowed, is_evident, notes

    def carried(self, name: str, crowds: ColumnCrowds) -> None:
        """Report a carried column."""
        advice = "drop it, make it coarser, or make it a quasi-identifier"
        what = f"Column {name!r} is carried: {self._words(crowds)}; {advice}."
        if self._allowed:
            self._add(Severity.WARNING, "identifying-carry", f"{what} The policy allows it.", crowds)
        elif not self._is_evident:
            few = f"There are fewer than {LEAST_PEOPLE * self._k} people to judge by."
            self._add(Severity.WARNING, "identifying-carry", f"{what} {few}", crowds)
        else:
            sentence = f"{what} The policy does not set carry_identifying = true."
            self._add(Severity.VIOLATION, "identifying-carry", sentence, crowds)

    def joint(self, crowds: ColumnCrowds) -> None:
        """Report carried columns that are identifying together although none is alone."""
        sentence = f"The carried columns together: {self._words(crowds)}; carry fewer of them."
        self._add(Severity.WARNING, "identifying-together", sentence, crowds)

    def sensitive(self, name: str, crowds: ColumnCrowds) -> None:
        """Report a sensitive column."""
        known = "anyone who knows such a value can find the row"
        sentence = f"Column {name!r} is sensitive: {self._words(crowds)}; {known}."
        self._add(Severity.WARNING, "identifying-sensitive", sentence, crowds)

    def described(self, role: str, crowds: ColumnCrowds) -> dict[str, Any]:
        """Return the figures of a column."""
        return {
            "role": role,
            self._letter: self._k,
            "values": crowds.values,
            "values_of_one_person": crowds.lone_values,
            "rows_below": crowds.below,
            "rows_of_one_person": crowds.single,
            "share_below": crowds.share(crowds.below),
            "share_of_one_person": crowds.share(crowds.single),
            "share_below_with_class": crowds.share(crowds.below_in_class),
            "share_of_one_person_with_class": crowds.share(crowds.single_in_class),
        }

    def _words(self, crowds: ColumnCrowds) -> str:
        return (
            f"{crowds.share(crowds.below):.1%} of the rows have a value that fewer than {self._letter} = {self._k} "
            f"people have, "
            f"{crowds.share(crowds.single):.1%} one that a single person has"
        )

    def _add(self, severity: Severity, code: str, sentence: str, crowds: ColumnCrowds) -> None:
        self._notes.findings.append(Finding(code, severity, crowds.below, sentence, crowds.rare))
