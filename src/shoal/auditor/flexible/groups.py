"""How many people stand behind what was published: by the normal quasi-identifiers, and by all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.flexible.calibration import Calibration
from shoal.auditor.flexible.trace import Trace
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.tuples.classes import Classes, read_classes
from shoal.auditor.tuples.values import Attribute


@dataclass(frozen=True, slots=True)
class Groups:
    """Released rows published alike in some columns, and how many people each group has to have."""

    classes: Classes
    needed: Ints

    def asked(self) -> Ints:
        """For every released row what its group has to have; 0 for rows that are not judged."""
        return np.append(self.needed, 0)[self.classes.of_row]

    def small(self) -> Bools:
        """Mark the rows of groups that have too few people."""
        return self.classes.marked(self.classes.people < self.needed)


def read_groups(attributes: Sequence[Attribute], judged: Bools, person: Ints | None, k: Ints) -> Groups:
    """Group rows by what was published; a group has to have the largest k of its rows."""
    classes = read_classes(attributes, judged, person)
    needed = np.zeros(len(classes.rows), np.int64)
    np.maximum.at(needed, classes.of_row[judged], k[judged])
    return Groups(classes, needed)


def check_groups(normal: Groups, every: Groups, notes: Notes) -> None:
    """Check that enough people stand in every group."""
    notes.violation(
        "below-k", "Fewer than K people share the normal quasi-identifiers of a released row.", rows=normal.small()
    )
    notes.violation(
        "below-k-s", "Fewer than K_s people share all quasi-identifiers of a released row.", rows=every.small()
    )


def measure_groups(normal: Groups, every: Groups, person: Ints | None, notes: Notes) -> None:
    """Write down how large groups are."""
    rows = int(normal.classes.judged.sum())
    notes.metrics["counted_in_classes"] = "people" if person is not None else "rows (at least as many as people)"
    notes.metrics["normal_groups"] = _sizes(normal, rows)
    notes.metrics["groups"] = _sizes(every, rows)
    if person is not None:
        named = person[person >= 0]
        notes.metrics["released_people"] = len(np.unique(named))


def _sizes(groups: Groups, rows: int) -> dict[str, Any]:
    people = groups.classes.people
    return {
        "count": len(people),
        "smallest": int(people.min()) if len(people) else None,
        "median": float(np.median(people)) if len(people) else None,
        "rows_below_share": float(groups.small().sum() / rows) if rows else None,
    }


def check_in_force(trace: Trace, k: Ints, calibration: Calibration, notes: Notes) -> None:
    """Check what the trace says was in force for every row against what its record asks for."""
    if trace.k is not None:
        notes.violation("k-lowered", "The trace says that a lower k was in force than promised.", rows=trace.k < k)
    if trace.k_s is not None:
        notes.violation(
            "k-s-lowered",
            "The trace says that a lower K_s was in force than follows from the policy and the truth.",
            rows=trace.k_s < calibration.k_s(k),
        )


def check_one_vector(attributes: Sequence[Attribute], group: Ints, notes: Notes) -> None:
    """Check that rows of one group of the trace were published alike."""
    rows = np.flatnonzero(group >= 0)
    if not len(rows):
        return
    number = np.unique(group[rows], return_inverse=True)[1]
    first = np.full(int(number.max()) + 1, -1, np.int64)
    first[number[::-1]] = rows[::-1]  # the first one is written last
    differs = np.zeros(len(group), np.bool_)
    for attribute in attributes:
        differs[rows] |= attribute.code[rows] != attribute.code[first[number]]
    notes.violation("group-differs", "Rows of one group were published in different ways.", rows=differs)
