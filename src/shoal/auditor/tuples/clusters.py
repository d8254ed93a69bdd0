"""Check every published value against its record, and every cluster against its people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shoal.auditor.counting import numbered
from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.rows.attributes import Attribute
from shoal.auditor.trace import SUPPRESSED
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.trace import read_lists
Decisions = object


@dataclass(frozen=True, slots=True)
class Link:
    """Every released row with its entry of the trace."""

    row: Ints
    """The row of the truth; -1 if the trace names none that exists."""
    group: Ints
    is_root: Bools
    """Suppressed rows published at the root."""
    formed: Bools
    """Rows published together with the cluster they form."""
    known: Bools
    """Rows whose record is in the truth and usable."""


def read_link(decisions: Decisions, usable: Bools | None) -> Link:
    """Pair released rows with the trace, in order."""
    entries = np.flatnonzero(decisions.is_shown)
    row = decisions.row[entries]
    if usable is None:
        known = np.zeros(len(entries), np.bool_)
    else:
        inside = (row >= 0) & (row < len(usable))
        known = inside.copy()
        known[inside] = usable[row[inside]]
        row = np.where(inside, row, -1)
    return Link(
        row=row,
        group=decisions.group[entries],
        is_root=decisions.verdict[entries] == SUPPRESSED,
        formed=decisions.formed[entries],
        known=known,
    )


def check_values(attributes: Sequence[Attribute], broken: Bools, notes: Notes) -> None:
    """Check the release alone: labels, ranges, domain, grid."""
    notes.violation("unreadable-row", "A released row cannot be read.", rows=broken)
    for code, sentence in FAULTS.items():
        marked = [attribute.faults[code] for attribute in attributes if code in attribute.faults]
        notes.violation(code, sentence, rows=np.logical_or.reduce([np.zeros_like(broken), *marked]) & ~broken)


def check_cover(
    attributes: Sequence[Attribute], row: Ints, known: Bools, notes: Notes, *, missing: str, exempt: Bools | None = None
) -> None:
    """Check that every row covers its record, and shows only what `missing` allows.

    Parameters
    ----------
    missing
        ``exact``: a row lacks what its record lacks. ``hidden``: a shown attribute was carried by all of its cluster.
        With ``covered`` enough people must carry it, which is checked by cluster.
    exempt
        Rows whose nulls are not checked.
    """
    wrong, odd = np.zeros(len(row), np.bool_), np.zeros(len(row), np.bool_)
    rows = np.flatnonzero(known)
    for attribute in attributes:
        shown, carried = attribute.code[rows] >= 0, attribute.carried[row[rows]]
        both = rows[shown & carried]
        wrong[both] |= ~attribute.covers(both, row[both])
        if missing in ("exact", "hidden"):
            odd[rows] |= (shown ^ carried) if missing == "exact" else shown & ~carried
    notes.violation("not-covered", "A published value does not cover the record's value.", rows=wrong)
    sentence = "A row shows a value or a null that `missing` does not allow."
    notes.violation("wrong-nulls", sentence, rows=odd if exempt is None else odd & ~exempt)


def check_roots(attributes: Sequence[Attribute], is_root: Bools, notes: Notes) -> None:
    """Check that published suppressed rows show only the root."""
    at_root = np.logical_and.reduce([attribute.at_root for attribute in attributes])
    notes.violation("root-row", "A suppressed row was published with more than the root.", rows=is_root & ~at_root)


def check_one_vector(attributes: Sequence[Attribute], group: Ints, notes: Notes, *, record_nulls: bool = False) -> None:
    """Check that rows of one group (-1: none) have equal published values, except for their records' nulls."""
    rows = np.flatnonzero(group >= 0)
    if not len(rows):
        return
    names, number = numbered(group[rows])
    differs = np.zeros(len(group), np.bool_)
    for attribute in attributes:
        code = attribute.code[rows]
        judged = code >= 0 if record_nulls else np.ones(len(rows), np.bool_)
        first = np.full(len(names), -1, np.int64)
        first[number[judged][::-1]] = code[judged][::-1]  # the first row is assigned last
        differs[rows] |= judged & (code != first[number])
    notes.violation("group-differs", "Rows of one group have different published values.", rows=differs)


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters as they were formed."""

    number: Ints
    """The cluster of every released row, from 0; -1 for none."""
    people: Ints
    carriers: npt.NDArray[np.int64]
    """Different people of every cluster that carried each attribute; no columns without the truth."""
    shown: npt.NDArray[np.bool_]
    """Which attributes the first row of every cluster shows."""


def read_clusters(attributes: Sequence[Attribute], link: Link, person: Ints | None, *, with_carriers: bool) -> Clusters:
    """Count the people of every cluster when it was formed; without persons every row counts as one."""
    number = np.full(len(link.group), -1, np.int64)
    grouped = np.flatnonzero(link.group >= 0)
    names, number[grouped] = numbered(link.group[grouped])
    count = len(names)
    formed = np.flatnonzero(link.formed)
    people = np.arange(len(formed)) if person is None else person[formed]
    lone = _first_of_person(number[formed], people)
    shown = np.zeros((count, len(attributes)), np.bool_)
    carriers = np.zeros((count, len(attributes) if with_carriers else 0), np.int64)
    for at, attribute in enumerate(attributes):
        shown[number[grouped][::-1], at] = attribute.code[grouped][::-1] >= 0
        if with_carriers:
            carried = np.flatnonzero(link.known[formed])
            carried = carried[attribute.carried[link.row[formed[carried]]]]
            if not lone.all():
                carried = carried[_first_of_person(number[formed][carried], people[carried])]
            carriers[:, at] = np.bincount(number[formed][carried], minlength=count)
    return Clusters(number, np.bincount(number[formed][lone], minlength=count), carriers, shown)


def _first_of_person(group: Ints, person: Ints) -> Bools:
    """Mark the first row of every person within a group."""
    first = np.zeros(len(group), np.bool_)
    if len(group):
        pair = group * (int(person.max()) + 1) + person
        first[np.unique(pair, return_index=True)[1]] = True
    return first


def check_clusters(clusters: Clusters, link: Link, promise: TuplePromise, notes: Notes) -> None:
    """Check that k people formed every cluster, and enough of them carried what it shows."""
    small = clusters.people < promise.k
    notes.violation(
        "group-below-k", "Fewer than k people were published together in a new cluster.", rows=_rows_of(small, clusters)
    )
    if promise.groups:
        alone = (clusters.number >= 0) & ~link.formed
        notes.violation("reused-in-groups", "A row was published alone; rows must be published in groups.", rows=alone)
    if promise.missing == "covered" and clusters.carriers.shape[1]:
        few = clusters.shown & (clusters.carriers < promise.min_carriers)
        notes.violation(
            "few-carriers",
            "A cluster shows an attribute that too few of its people carried.",
            rows=_rows_of(np.logical_or.reduce(few, axis=1), clusters),
        )
        hidden = ~clusters.shown & (clusters.carriers >= promise.min_carriers)
        notes.warning(
            "hidden-without-need",
            "A cluster hides an attribute that enough of its people carried.",
            rows=_rows_of(np.logical_or.reduce(hidden, axis=1), clusters),
        )
    notes.metrics["clusters"] = int((clusters.people > 0).sum())
    grouped = clusters.number >= 0
    notes.metrics["reused_share"] = float((grouped & ~link.formed).sum() / grouped.sum()) if grouped.any() else None


def _rows_of(marked: Bools, clusters: Clusters) -> Bools:
    return np.append(marked, False)[clusters.number]  # number -1 picks the last


def check_carriers(trace: Rows, decisions: Decisions, clusters: Clusters, width: int, notes: Notes) -> None:
    """Check the carriers recorded in the trace; reused rows repeat those of their cluster."""
    if "carriers" not in trace.columns:
        notes.skip("The trace's own count of carriers was not checked: it has no column carriers.")
        return
    compare_carriers(read_lists(trace, "carriers", width)[decisions.is_shown], clusters, notes)


def compare_carriers(written: npt.NDArray[np.int64], clusters: Clusters, notes: Notes) -> None:
    """Check the recorded carriers of every released row."""
    grouped = np.flatnonzero(clusters.number >= 0)
    wrong = np.zeros(len(written), np.bool_)
    wrong[grouped] = (written[grouped] != clusters.carriers[clusters.number[grouped]]).any(axis=1)
    notes.violation("wrong-carriers", "The trace counts other carriers than the truth has.", rows=wrong)


@dataclass(frozen=True, slots=True)
class Losses:
    """Sums of losses, from 0 (nothing) to 1 (everything) for each record.

    ``all``: over all attributes, 1 for null. ``own``: over the attributes a record carries (0 if it carries none).
    A suppressed record loses 1.
    """

    everything: float = 0.0
    released: int = 0
    own: float = 0.0
    known: int = 0
    """Released rows whose record is known."""
    suppressed: int = 0

    def __add__(self, other: Losses) -> Losses:
        return Losses(
            self.everything + other.everything,
            self.released + other.released,
            self.own + other.own,
            self.known + other.known,
            self.suppressed + other.suppressed,
        )

    def note(self, notes: Notes, *, has_records: bool) -> None:
        """Note the average over released and suppressed records."""
        count = self.released + self.suppressed
        if not count:
            return
        found = {"all": (self.everything + self.suppressed) / count}
        if has_records:
            found["own"] = (self.own + self.suppressed) / max(self.known + self.suppressed, 1)
        notes.metrics["loss"] = found


def sum_loss(attributes: Sequence[Attribute], link: Link, decisions: Decisions) -> Losses:
    """Sum the losses of released and suppressed records."""
    weights = np.array([attribute.weight for attribute in attributes])
    losses = np.array([attribute.loss for attribute in attributes]).reshape(len(attributes), -1)
    released = ~link.is_root
    everything = weights @ losses[:, released] / weights.sum()
    rows = np.flatnonzero(released & link.known)
    carried = np.array([attribute.carried[link.row[rows]] for attribute in attributes])
    total = weights @ carried
    own = (weights[:, None] * losses[:, rows] * carried).sum(axis=0) / np.where(total > 0, total, 1)
    suppressed = int((decisions.verdict == SUPPRESSED).sum())
    return Losses(float(everything.sum()), int(released.sum()), float(own.sum()), len(rows), suppressed)


FAULTS = {
    "unreadable-value": "A published value is neither a range nor a label.",
    "unknown-label": "A published label is not in the hierarchy.",
    "too-fine": "A published moment is finer than a microsecond.",
    "bad-range": "A published range ends before it begins.",
    "out-of-domain": "A published range reaches beyond the declared domain.",
    "off-grid": "A published range does not begin and end on the declared grid.",
    "not-a-cell": "A published range is not a cell of the declared grid.",
}
