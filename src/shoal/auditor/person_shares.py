"""How large a part of a class one person owns: k people say little where one of them has nearly all rows."""

from __future__ import annotations

from typing import Final

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Ints
from shoal.auditor.tuples.classes import Classes

MOST: Final = 0.5
"""A larger share of a class draws a warning."""
LEAST_ROWS: Final = 10
"""Smaller classes draw none."""
_ROUNDING: Final = 1e-9


def check_shares(
    classes: Classes, person: Ints | None, max_share: float | None, notes: Notes, *, can_cap: bool = True
) -> None:
    """Measure the largest share of one person in every class, and check it against the cap, if there is one."""
    if person is None:
        if max_share is not None:
            notes.skip("Whether nobody has more than max_share of a class was not checked: persons are not known.")
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
        f"One person has more than half of the rows of a class, up to {float(largest.max(initial=0)):.2f}: "
        f"k people say little about whose a row is{'; cap it with max_share' if can_cap else ''}.",
        rows=classes.marked(owned),
    )
    if max_share is not None:
        notes.violation(
            "above-max-share",
            f"One person has more than max_share = {max_share:g} of the rows of a class.",
            rows=classes.marked(largest > max_share + _ROUNDING),
        )


def _largest(classes: Classes, person: Ints) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the largest share of one person in each class; a row with person -1 is nobody's."""
    named = classes.judged & (person >= 0)
    width = int(person.max(initial=0)) + 1
    pair, rows = np.unique(classes.of_row[named] * width + person[named], return_counts=True)
    most = np.zeros(len(classes.rows), np.int64)
    np.maximum.at(most, pair // width, rows)
    return most / np.maximum(classes.rows, 1)
