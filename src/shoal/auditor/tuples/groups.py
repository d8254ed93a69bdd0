"""Clusters: rows that the trace says were published as one. How many people formed each, and what it shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.checks import Found, check, look
from shoal.auditor.counting import numbered, people_of
from shoal.auditor.findings import Severity
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation
from shoal.auditor.rows.quasi import Quasi
from shoal.auditor.sorting import distinct
from shoal.auditor.tuples.promise import TuplePromise

_FAMILIES: Final = ("tuples",)
_BUG: Final = "Do not publish this release: whoever watches it sees fewer people together. Report how it was made."
_of_cluster: Final = partial(check, families=_FAMILIES, by="group", needs=("trace",))


@dataclass(frozen=True, slots=True)
class Clusters:
    """The clusters of some rows as they were formed."""

    promise: TuplePromise
    quasi: Sequence[Quasi]
    number: Ints
    """The cluster of every row, from 0; -1 for none."""
    first: Ints
    """The first row of every cluster."""
    people: Ints
    """Different people who formed it; without persons its rows."""
    carriers: npt.NDArray[np.int64] | None
    """How many of them carried each attribute; None without the truth."""
    shown: npt.NDArray[np.bool_]
    """Which attributes its first row shows."""

    def rows_of(self, marked: Bools) -> Bools:
        """Mark the rows of marked clusters."""
        return np.append(marked, False)[self.number]  # number -1 picks the last


def read_clusters(rows: Relation, quasi: Sequence[Quasi], promise: TuplePromise) -> Clusters:
    """Count the people of every cluster when it was formed. Rows are in the order of the release."""
    number = np.full(len(rows), -1, np.int64)
    grouped = np.flatnonzero(rows["group"] >= 0)
    names, number[grouped] = numbered(rows["group"][grouped])
    first = np.zeros(len(names), np.int64)
    first[number[grouped[::-1]]] = grouped[::-1]  # the first row is assigned last
    shown = np.zeros((len(names), len(quasi)), np.bool_)
    carriers = np.zeros((len(names), len(quasi)), np.int64) if "person" in rows else None
    formed = np.flatnonzero(rows["formed"])
    people = _people(number[formed], rows, formed, len(names))
    are_people = int(people.sum()) == len(formed)  # nobody formed a cluster with two rows
    for at, one in enumerate(quasi):
        shown[:, at] = one.is_shown(rows)[first]
        if carriers is not None:
            carried = formed[rows["usable"][formed] & one.is_recorded(rows)[formed]]
            rows_of = np.bincount(number[carried], minlength=len(names))
            carriers[:, at] = rows_of if are_people else _people(number[carried], rows, carried, len(names))
    return Clusters(promise, quasi, number, first, people, carriers, shown)


def _people(number: Ints, rows: Relation, some: Ints, count: int) -> Ints:
    """Count the different people of clusters among some rows; a record without a person counts for nobody."""
    if "person" not in rows:
        return np.bincount(number, minlength=count)
    person = rows.codes("person")[some]
    known = person >= 0
    return people_of(number[known], person[known], count)


@_of_cluster("group-differs", "Rows of one group have different published values.", advice=_BUG)
def group_differs(rows: Relation, clusters: Clusters) -> Bools:
    """Mark rows that are published unlike the first row of their cluster, but for the nulls that a record keeps."""
    grouped = (clusters.number >= 0) & ~rows["is_root"]
    first = np.append(_first_of(clusters, grouped), 0)[clusters.number]
    if not clusters.promise.keeps_record_nulls:
        unlike: Bools = grouped & (rows["class"] != rows["class"][first])
        return unlike
    differs = np.zeros(len(rows), np.bool_)
    for one in clusters.quasi:
        shows, code = grouped & one.is_shown(rows), one.codes(rows)
        first = np.append(_first_of(clusters, shows), 0)[clusters.number]
        differs |= shows & (code != code[first])
    return differs


def _first_of(clusters: Clusters, marked: Bools) -> Ints:
    """The first marked row of every cluster."""
    found, at = clusters.first.copy(), np.flatnonzero(marked)[::-1]
    found[clusters.number[at]] = at
    return found


@_of_cluster("group-below-k", "Fewer than k people were published together in a new cluster.", advice=_BUG)
def group_below_k(_: Relation, clusters: Clusters) -> Bools:
    """Mark the rows of clusters that too few people formed."""
    return clusters.rows_of(clusters.people < clusters.promise.k)


@check(
    "reused-in-groups",
    "A row was published alone; rows must be published in groups.",
    advice="The policy says groups = true: this release does not keep it.",
    families=_FAMILIES,
    by="group",
    needs=("trace", "groups"),
)
def reused_in_groups(rows: Relation, clusters: Clusters) -> Bools:
    """Mark rows that an earlier cluster published."""
    found: Bools = clusters.promise.groups & (clusters.number >= 0) & ~rows["formed"]
    return found


@check(
    "few-carriers",
    "A cluster shows an attribute that too few of its people carried.",
    advice="The value tells who of the cluster has it: do not publish this release, or lower min_carriers knowingly.",
    families=_FAMILIES,
    by="group",
    needs=("truth", "trace"),
)
def few_carriers(_: Relation, clusters: Clusters) -> Bools | int:
    """Mark the rows of clusters that show what fewer than min_carriers people have."""
    if clusters.promise.missing != "covered" or clusters.carriers is None:
        return 0
    few: Bools = clusters.shown & (clusters.carriers < clusters.promise.min_carriers)
    return clusters.rows_of(np.logical_or.reduce(few, axis=1))


@check(
    "hidden-without-need",
    "A cluster hides an attribute that enough of its people carried.",
    advice="Nobody is exposed, but the release says less than it could.",
    families=_FAMILIES,
    by="group",
    needs=("truth", "trace"),
    severity=Severity.WARNING,
)
def hidden_without_need(_: Relation, clusters: Clusters) -> Bools | int:
    """Mark the rows of clusters that hide what enough people have."""
    if clusters.promise.missing != "covered" or clusters.carriers is None:
        return 0
    hidden: Bools = ~clusters.shown & (clusters.carriers >= clusters.promise.min_carriers)
    return clusters.rows_of(np.logical_or.reduce(hidden, axis=1))


@check(
    "wrong-carriers",
    "The trace counts other carriers than the truth has.",
    advice="The evidence is damaged, or the method counted wrongly: report how the release was made.",
    families=_FAMILIES,
    by="group",
    needs=("truth", "trace"),
)
def wrong_carriers(rows: Relation, clusters: Clusters) -> Bools:
    """Mark rows with other carriers than their cluster; reused rows repeat those of their cluster."""
    assert clusters.carriers is not None
    wrong, grouped = np.zeros(len(rows), np.bool_), np.flatnonzero(clusters.number >= 0)
    lists = [[int(count) for count in text.split()] for text in rows["carriers"].texts]
    nobody = np.full((1, len(clusters.quasi)), -1, np.int64)
    written = np.concatenate([np.array(lists, np.int64).reshape(len(lists), -1), nobody]) if lists else nobody
    of_row = written[rows.codes("carriers")[grouped]]
    wrong[grouped] = (of_row != clusters.carriers[clusters.number[grouped]]).any(axis=1)
    return wrong


_CHECKS: Final = (group_differs, group_below_k, reused_in_groups, few_carriers, hidden_without_need)


def look_at_clusters(
    quasi: Sequence[Quasi],
    promise: TuplePromise,
    has_carriers: bool,  # noqa: FBT001 - the rows come last
    rows: Relation,
) -> Found:
    """Look at all clusters, and count them."""
    rows = in_order(rows)
    clusters = read_clusters(rows, quasi, promise)
    checks = (*_CHECKS, wrong_carriers) if has_carriers and clusters.carriers is not None else _CHECKS
    grouped = clusters.number >= 0
    counts = {
        "clusters": len(distinct(clusters.number[rows["formed"]])),
        "grouped": int(grouped.sum()),
        "reused": int((grouped & ~rows["formed"]).sum()),
    }
    return Found(look(rows, checks, clusters), counts)


def in_order(rows: Relation) -> Relation:
    """The rows in the order of the release."""
    is_ordered = bool((rows["row"][1:] > rows["row"][:-1]).all())
    return rows if is_ordered else rows.take(np.argsort(rows["row"], kind="stable"))
