"""Measure how identifying unchanged columns are: people per value, alone and within the class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import dense, people_of, shared_codes
from shoal.auditor.findings import Notes
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
class Crowds:
    """How many people have the value of each row."""

    behind: Ints
    """For every row."""
    values: int
    lone_values: int
    """Values that one person has."""

    def share(self, fewer_than: int) -> float:
        """Return the share of rows whose value fewer people have."""
        return float((self.behind < fewer_than).mean()) if len(self.behind) else 0.0


def check_identifying(
    policy: Policy, carry: tuple[str, ...], sensitive: tuple[str, ...], published: Published, k: tuple[str, int],
    notes: Notes,
) -> None:  # fmt: skip
    """Measure every carried and sensitive column. ``k`` is the name and the number of the promise: k or z."""
    allowed = policy.section("stream").get("carry_identifying", False)
    if not isinstance(allowed, bool):
        raise PolicyError("[stream] carry_identifying: must be true or false")
    if not carry and not sensitive:
        return
    known = published.readable if published.person is None else published.readable & (published.person >= 0)
    rows = np.flatnonzero(known)
    person = rows if published.person is None else published.person[rows]
    checks = _ColumnChecks(k, rows, person, published, notes, allowed=allowed)
    codes = {name: shared_codes(published.rows.text(name))[1][0][rows] for name in dict.fromkeys((*carry, *sensitive))}
    found: dict[str, Any] = {}
    is_any = False
    for name in carry:
        found[name], is_identifying = checks.carried(name, codes[name])
        is_any |= is_identifying
    if len(carry) > 1 and not is_any:
        checks.joint(dense(*(codes[name] for name in carry)))
    for name in sensitive:
        found[name] = checks.sensitive(name, codes[name])
    notes.metrics["unchanged_columns"] = found


class _ColumnChecks:
    """Checks of the columns published unchanged."""

    def __init__(
        self, k: tuple[str, int], rows: Ints, person: Ints, published: Published, notes: Notes, *, allowed: bool
    ) -> None:
        self._letter, self._k = k
        self._allowed, self._notes = allowed, notes
        self._rows, self._person = rows, person
        self._of_class = published.of_class[rows]
        self._count = len(published.readable)
        self._is_evident = len(np.unique(person)) >= LEAST_PEOPLE * self._k

    def carried(self, name: str, value: Ints) -> tuple[Mapping[str, Any], bool]:
        """Check one carried column; also return whether it is identifying."""
        crowds = _crowds(value, self._person)
        if self._is_identifying(crowds):
            advice = "drop it, make it coarser, or make it a quasi-identifier"
            what = f"Column {name!r} is carried: {self._words(crowds)}; {advice}."
            if self._allowed:
                self._notes.warning("identifying-carry", f"{what} The policy allows it.", rows=self._rare(crowds))
            elif not self._is_evident:
                few = f"There are fewer than {LEAST_PEOPLE * self._k} people to judge by."
                self._notes.warning("identifying-carry", f"{what} {few}", rows=self._rare(crowds))
            else:
                self._notes.violation(
                    "identifying-carry",
                    f"{what} The policy does not set carry_identifying = true.",
                    rows=self._rare(crowds),
                )
        return self._described("carry", crowds, value), self._is_identifying(crowds)

    def joint(self, value: Ints) -> None:
        """Warn if carried columns are identifying together although none is alone."""
        crowds = _crowds(value, self._person)
        if self._is_identifying(crowds):
            self._notes.warning(
                "identifying-together",
                f"The carried columns together: {self._words(crowds)}; carry fewer of them.",
                rows=self._rare(crowds),
            )

    def sensitive(self, name: str, value: Ints) -> Mapping[str, Any]:
        """Check one sensitive column."""
        crowds = _crowds(value, self._person)
        if self._is_identifying(crowds):
            self._notes.warning(
                "identifying-sensitive",
                f"Column {name!r} is sensitive: {self._words(crowds)}; anyone who knows such a value can find the row.",
                rows=self._rare(crowds),
            )
        return self._described("sensitive", crowds, value)

    def _is_identifying(self, crowds: Crowds) -> bool:
        return crowds.share(self._k) > MOST_RARE_ROWS

    def _words(self, crowds: Crowds) -> str:
        return (
            f"{crowds.share(self._k):.1%} of the rows have a value that fewer than {self._letter} = {self._k} people "
            f"have, "
            f"{crowds.share(2):.1%} one that a single person has"
        )

    def _rare(self, crowds: Crowds) -> Bools:
        marked = np.zeros(self._count, np.bool_)
        marked[self._rows[crowds.behind < self._k]] = True
        return marked

    def _described(self, role: str, crowds: Crowds, value: Ints) -> dict[str, Any]:
        within = _crowds(dense(self._of_class, value), self._person)
        return {
            "role": role,
            self._letter: self._k,
            "values": crowds.values,
            "values_of_one_person": crowds.lone_values,
            "rows_below": int((crowds.behind < self._k).sum()),
            "rows_of_one_person": int((crowds.behind < 2).sum()),
            "share_below": crowds.share(self._k),
            "share_of_one_person": crowds.share(2),
            "share_below_with_class": within.share(self._k),
            "share_of_one_person_with_class": within.share(2),
        }


def _crowds(value: Ints, person: Ints) -> Crowds:
    """Count the different people of every value; null is a value."""
    if not len(value):
        return Crowds(np.zeros(0, np.int64), 0, 0)
    value = value - int(value.min())
    people = people_of(value, person)
    return Crowds(people[value], int((people > 0).sum()), int((people == 1).sum()))
