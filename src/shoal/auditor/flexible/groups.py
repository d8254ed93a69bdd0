"""Count the people of every group: by the normal quasi-identifiers, and by all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.auditor.counting import combined, people_of
from shoal.auditor.findings import Notes
from shoal.auditor.flexible.calibration import Calibration, Records
from shoal.auditor.flexible.promise import FlexiblePromise
from shoal.auditor.flexible.trace import Trace
from shoal.auditor.flexible.values import finest_codes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.rows.attributes import Attribute, Labels, Spans
from shoal.auditor.tuples.classes import Classes, read_classes


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups of released rows with equal published values in some columns, and how many people each needs."""

    classes: Classes
    needed: Ints

    def needed_by_row(self) -> Ints:
        """For every released row the number of people its group needs; 0 for rows that are not checked."""
        return np.append(self.needed, 0)[self.classes.of_row]

    def small(self) -> Bools:
        """Mark the rows of groups with too few people."""
        return self.classes.marked(self.classes.people < self.needed)


def read_groups(attributes: Sequence[Attribute], judged: Bools, person: Ints | None, k: Ints) -> Groups:
    """Group rows by their published values; a group needs the largest k of its rows."""
    classes = read_classes(attributes, judged, person)
    needed = np.zeros(len(classes.rows), np.int64)
    np.maximum.at(needed, classes.of_row[judged], k[judged])
    return Groups(classes, needed)


def check_groups(normal: Groups, every: Groups, notes: Notes) -> None:
    """Check that every group has enough people."""
    notes.violation(
        "below-k", "Fewer than K people share the normal quasi-identifiers of a released row.", rows=normal.small()
    )
    notes.violation(
        "below-k-s", "Fewer than K_s people share all quasi-identifiers of a released row.", rows=every.small()
    )


def measure_groups(normal: Groups, every: Groups, person: Ints | None, notes: Notes) -> None:
    """Measure the sizes of groups."""
    rows = int(normal.classes.judged.sum())
    notes.metrics["counted_in_classes"] = "people" if person is not None else "rows (at least as many as people)"
    notes.metrics["smallest_k"] = int(normal.classes.people.min()) if len(normal.classes.people) else None
    notes.metrics["rows_below_k_share"] = float(normal.small().sum() / rows) if rows else None
    notes.metrics["normal_groups"] = _sizes(normal, rows)
    notes.metrics["groups"] = _sizes(every, rows)
    if person is not None:
        released, exposed = (len(np.unique(person[rows & (person >= 0)])) for rows in (person >= 0, normal.small()))
        notes.metrics["released_people"] = released
        notes.metrics["people_below_k_share"] = exposed / released if released else None


def _sizes(groups: Groups, rows: int) -> dict[str, Any]:
    people = groups.classes.people
    return {
        "count": len(people),
        "smallest": int(people.min()) if len(people) else None,
        "median": float(np.median(people)) if len(people) else None,
        "rows_below_share": float(groups.small().sum() / rows) if rows else None,
    }


def check_in_force(trace: Trace, k: Ints, calibration: Calibration, notes: Notes) -> None:
    """Check the k and K_s that the trace records for every row against what its record needs."""
    if trace.k is not None:
        notes.violation("k-lowered", "The trace says that a lower k was in force than promised.", rows=trace.k < k)
    if trace.k_s is not None:
        notes.violation(
            "k-s-lowered",
            "The trace says that a lower K_s was in force than follows from the policy and the truth.",
            rows=trace.k_s < calibration.k_s(k),
        )


def check_pending(
    promise: FlexiblePromise, attributes: Sequence[Attribute], trace: Trace, records: Records, notes: Notes
) -> None:
    """Warn of pending records that a round of grouping could have grouped.

    There is a round after every window of records, and one when the stream is flushed.
    """
    person, pending = records.person, records.usable.copy()
    pending[trace.decided] = False
    arrivals = np.flatnonzero(records.usable)
    seen = len(arrivals) // promise.window * promise.window
    if len(arrivals) > seen and (trace.delayed >= arrivals[seen]).any():
        seen = len(arrivals)  # some of the last ones were pending and were released, so there was a round for them
    rows = arrivals[:seen][pending[arrivals[:seen]]]
    if not len(rows):
        return
    values = [finest_codes(attribute, rule)[rows] for attribute, rule in zip(attributes, promise.quasi, strict=True)]
    alike = combined(values, len(rows))
    people = people_of(alike, person[rows])
    needed = np.zeros(len(people), np.int64)
    np.maximum.at(needed, alike, records.k[rows])
    notes.warning(
        "held-back",
        "A record is pending although K people with pending records have the same values.",
        count=int((people >= needed)[alike].sum()),
    )


def check_root(attributes: Sequence[Attribute], notes: Notes) -> None:
    """Check that no row shows a root label or a range that is the whole domain."""
    nowhere = np.zeros_like(attributes[0].at_root)
    labels = [attribute.at_root for attribute in attributes if isinstance(attribute, Labels)]
    ranges = [attribute.at_root for attribute in attributes if isinstance(attribute, Spans)]
    root, whole = (np.logical_or.reduce([nowhere, *marked]) for marked in (labels, ranges))
    notes.violation("root-label", "A root label was published; the policy forbids it.", rows=root)
    notes.violation("whole-domain", "A range over the whole domain was published; the policy forbids it.", rows=whole)


def measure_loss(attributes: Sequence[Attribute], judged: Bools, notes: Notes) -> None:
    """Measure the average loss, from 0 to 1: the share of other values a label covers, or the width of a range.

    By column over the rows with a value there; over all columns a missing value counts as no loss.
    """
    if not judged.any():
        return
    weights = np.array([attribute.weight for attribute in attributes])
    losses = np.array([attribute.loss[judged] for attribute in attributes])
    notes.metrics["loss"] = {"all": float((weights @ losses).mean() / weights.sum())}
    notes.metrics["loss_by_column"] = {attribute.name: _mean(attribute, judged) for attribute in attributes}


def _mean(attribute: Attribute, judged: Bools) -> float | None:
    shown = judged & (attribute.code >= 0)
    return float(attribute.loss[shown].mean()) if shown.any() else None
