"""Classes of rows with equal published values: how many people each has, and the share of one person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from shoal.auditor.counting import combined, people_of
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.rows.attributes import Attribute
from shoal.auditor.tuples.promise import TuplePromise


@dataclass(frozen=True, slots=True)
class Classes:
    """Classes of released rows by their published quasi-identifiers; null is a value."""

    of_row: Ints
    """The class of every released row, from 0; -1 for rows that are not checked."""
    rows: Ints
    people: Ints
    """Different people of every class; its rows if persons are not known."""
    are_people: bool

    @property
    def judged(self) -> Bools:
        """Which released rows belong to a class."""
        return self.of_row >= 0

    def marked(self, classes: Bools) -> Bools:
        """Mark the rows of some classes."""
        return np.append(classes, False)[self.of_row]  # class -1 picks the last


def read_classes(attributes: Sequence[Attribute], judged: Bools, person: Ints | None) -> Classes:
    """Group the rows to check; persons, if known, are numbers from 0 (-1: none)."""
    of_row = np.full(len(judged), -1, np.int64)
    rows = np.flatnonzero(judged)
    of_row[rows] = combined([attribute.code[rows] for attribute in attributes], len(rows))
    count = int(of_row.max(initial=-1)) + 1
    size = np.bincount(of_row[rows], minlength=count)
    if person is None:
        return Classes(of_row, size, size, are_people=False)
    named = rows[person[rows] >= 0]
    return Classes(of_row, size, people_of(of_row[named], person[named], count), are_people=True)


def check_classes(classes: Classes, promise: TuplePromise, notes: Notes) -> None:
    """Check that every class has k people."""
    sentence = "A class of the release has fewer than k different people."
    notes.violation("below-k", sentence, rows=classes.marked(classes.people < promise.k))


def measure_classes(classes: Classes, promise: TuplePromise, person: Ints | None, notes: Notes) -> None:
    """Measure the sizes of classes, and how many rows are unique."""
    judged = int(classes.judged.sum())
    below = classes.marked(classes.people < promise.k)
    notes.metrics["classes"] = len(classes.rows)
    notes.metrics["smallest_k"] = int(classes.people.min()) if judged else None
    notes.metrics["counted_in_classes"] = "people" if classes.are_people else "rows (at least as many as people)"
    notes.metrics["rows_below_k_share"] = float(below.sum() / judged) if judged else None
    notes.metrics["unique_rows"] = int((classes.rows == 1).sum())
    if person is not None:
        named = classes.judged & (person >= 0)
        people, exposed = len(np.unique(person[named])), len(np.unique(person[named & below]))
        notes.metrics["released_people"] = people
        notes.metrics["people_below_k_share"] = exposed / people if people else None


def measure_nulls(attributes: Sequence[Attribute], judged: Bools, notes: Notes) -> None:
    """Measure the patterns of nulls: how many, the rarest one, and the share of rows with a null."""
    rows = np.flatnonzero(judged)
    if not len(rows):
        return
    pattern = combined([(attribute.code[rows] < 0).astype(np.int64) for attribute in attributes], len(rows))
    has_null = np.logical_or.reduce([attribute.code[rows] < 0 for attribute in attributes])
    sizes = np.bincount(pattern)
    found: dict[str, Any] = {"patterns": len(sizes), "share": float(has_null.mean()), "rarest": int(sizes.min())}
    notes.metrics["nulls"] = found


MOST: Final = 0.5
"""A larger share of a class is a warning."""
LEAST_ROWS: Final = 10
"""Smaller classes cause no warning."""
_ROUNDING: Final = 1e-9


def share_sentence(largest: float, *, can_cap: bool = True) -> str:
    """Say that one person has most rows of a class."""
    return (
        f"One person has more than half of the rows of a class, up to {largest:.2f}: "
        f"k people then protect little{'; cap it with max_share' if can_cap else ''}."
    )


def check_shares(
    classes: Classes, person: Ints | None, max_share: float | None, notes: Notes, *, can_cap: bool = True
) -> None:
    """Measure the largest share of one person in every class, and check it against the limit, if there is one."""
    if person is None:
        if max_share is not None:
            notes.skip("The shares of a class (max_share) were not checked: persons are not known.")
        return
    largest = _largest(classes, person)
    owned = (largest > MOST) & (classes.rows >= LEAST_ROWS)
    notes.metrics["largest_share_of_one_person"] = float(largest.max()) if len(largest) else None
    notes.metrics["classes_mostly_of_one_person"] = {
        "classes": int(owned.sum()),
        "rows": int(classes.rows[owned].sum()),
    }
    notes.warning(
        "one-person-share",
        share_sentence(float(largest.max(initial=0)), can_cap=can_cap),
        rows=classes.marked(owned),
    )
    if max_share is not None:
        notes.violation(
            "above-max-share",
            f"One person has more than max_share = {max_share:g} of the rows of a class.",
            rows=classes.marked(largest > max_share + _ROUNDING),
        )


def _largest(classes: Classes, person: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the largest share of one person in each class; -1 means no person."""
    named = classes.judged & (person >= 0)
    width = int(person.max(initial=0)) + 1
    pair, rows = np.unique(classes.of_row[named] * width + person[named], return_counts=True)
    most = np.zeros(len(classes.rows), np.int64)
    np.maximum.at(most, pair // width, rows)
    return most / np.maximum(classes.rows, 1)
