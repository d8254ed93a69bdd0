"""Check l, entropy l and t of every class and cluster, and the references of the trace for t.

A missing value protects nobody: only known values count towards l and entropy l, and t holds on the known values and on
all. A class without a known value reveals none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.tuples.classes import Classes
from shoal.auditor.tuples.deadlines import Timeline
from shoal.auditor.tuples.diversity.distances import (
    References,
    Sets,
    away,
    distinct,
    effective,
    gather,
    growing,
    growth_sizes,
    known_sets,
    refer,
)
from shoal.auditor.tuples.diversity.sensitive import Sensitive
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.trace import Decisions, Recorded

_ROUNDING: Final = 1e-7
_MOST_ENTRIES: Final = 200_000_000
_ENTRIES_AT_ONCE: Final = 4_000_000
_SENTENCES: Final = {
    "below-l": "A class or cluster has fewer different sensitive values than promised.",
    "below-entropy-l": "The sensitive values of a class or cluster are less even than promised.",
    "above-t": "The sensitive values of a class or cluster are further from the reference than promised.",
}


@dataclass(frozen=True, slots=True)
class Grown:
    """The growth of clusters: for released rows the cluster and how often it had been reused."""

    row: Ints
    cluster: Ints
    step: Ints
    count: int
    """How many clusters there are."""

    def rows_of(self, clusters: Ints) -> Ints:
        """Return the released rows of some clusters."""
        named = np.zeros(self.count, np.bool_)
        named[clusters] = True
        return self.row[named[self.cluster]]


def read_growth(cluster: Ints, formed: Bools, event: Ints | None, count: int) -> Grown:
    """Number the steps in which clusters grew: the event that formed a cluster, then every event that reused it.

    If events are not known, every reused row is its own step.
    """
    rows = np.flatnonzero(cluster >= 0)
    own = cluster[rows]
    order = np.lexsort((np.arange(len(rows)) if event is None else event[rows], own))
    if event is None:
        later = ~formed[rows][order]
    else:
        later = np.append(False, np.diff(event[rows][order]) != 0)[: len(rows)]
    total = np.cumsum(later.astype(np.int64))
    start = np.searchsorted(own[order], own[order])
    step = np.empty(len(rows), np.int64)
    step[order] = total - total[start] + (later[start] if event is None else 0)
    return Grown(rows, own, step, count)


Overall = Mapping[str, Mapping[str | None, int]]
"""By sensitive column: how often each value is in the whole release."""


def measure_diversity(
    sensitive: Sequence[Sensitive],
    classes: Classes,
    clusters: Ints | None,
    notes: Notes,
    overall: Overall | None = None,
) -> None:
    """Measure l, entropy l and t (against all rows in classes) of the worst class, as pycanon does.

    The same for the worst cluster, if the trace gives the cluster of every released row (-1: none). If the rows are a
    part of the release, `overall` has the values of all of it.
    """
    rows = np.flatnonzero(classes.judged)
    if not sensitive or not len(rows):
        return
    notes.metrics.update(_worst(sensitive, classes.of_row, rows, overall))
    if clusters is not None and (clusters[rows] >= 0).any():
        worst = _worst(sensitive, clusters, rows, overall)
        notes.metrics["worst_cluster"] = {
            f"{name} {column}": value for name, columns in worst.items() for column, value in columns.items()
        }


def _worst(
    sensitive: Sequence[Sensitive], of_row: Ints, rows: Ints, overall: Overall | None
) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {"l": {}, "entropy_l": {}, "t": {}}
    inside = rows[of_row[rows] >= 0]
    for column in sensitive:
        sets = gather(of_row[inside], column.shown[inside], int(of_row.max()) + 1)
        value, weight = column.shown[rows], np.ones(len(rows))
        if overall is not None:
            value = np.array([column.number(text) for text in overall[column.name]], np.int64)
            weight = np.array(list(overall[column.name].values()), np.float64)
        table = refer(np.zeros(len(value), np.int64), value, weight, count=1, width=column.width)
        known = known_sets(sets)
        there = known.sizes > 0
        if not there.any():  # no class reveals a value
            continue
        found["l"][column.name] = int(distinct(known)[there].min())
        found["entropy_l"][column.name] = float(effective(known)[there].min())
        apart = away(sets, table, np.zeros(sets.count, np.int64), is_ordered=column.is_ordered)
        found["t"][column.name] = float(apart[sets.sizes > 0].max())
    return found


def check_diversity(
    sensitive: Sequence[Sensitive],
    classes: Classes,
    grown: Grown | None,
    recorded: dict[str, References] | None,
    promise: TuplePromise,
    notes: Notes,
) -> None:
    """Check the promise for every class, and for every cluster whenever a row was published by it."""
    wanted = promise.diversity
    if wanted.l is None and wanted.entropy_l is None and wanted.t is None:
        return
    found = {code: np.zeros(len(classes.of_row), np.bool_) for code in _SENTENCES}
    rows = np.flatnonzero(classes.judged)
    for column in sensitive:
        sets = gather(classes.of_row[rows], column.shown[rows], len(classes.rows))
        empty = (sets.sizes > 0) & (known_sets(sets).sizes == 0)
        sentence = f"Column {column.name!r}: rows are in classes without a known value; they reveal none of it."
        notes.info("no-known-value", sentence, count=int(classes.marked(empty).sum()))
        declared = _declared(column, promise)
        for code, marked in _failures(column, sets, declared, np.zeros(sets.count, np.int64), promise).items():
            found[code] |= classes.marked(marked)
        if grown is not None and len(grown.row):
            references = declared if recorded is None else recorded[column.name]
            for sets, cluster in _as_they_grew(column, grown, notes):
                of_set = np.zeros(sets.count, np.int64) if recorded is None else cluster
                for code, marked in _failures(column, sets, references, of_set, promise).items():
                    found[code][grown.rows_of(cluster[marked])] = True
    for code, rows_found in found.items():
        notes.violation(code, _SENTENCES[code], rows=rows_found)


def _as_they_grew(column: Sensitive, grown: Grown, notes: Notes) -> Iterator[tuple[Sets, Ints]]:
    """Yield the sets of clusters after every step, some clusters at a time, and the cluster of every set."""
    value = column.shown[grown.row]
    sizes = growth_sizes(grown.cluster, value, grown.step, grown.count)
    if sizes.sum() > _MOST_ENTRIES or sizes.max() > _ENTRIES_AT_ONCE:
        notes.skip("Whether clusters stayed diverse as rows reused them was checked only at the end: too many values.")
        yield gather(grown.cluster, value, grown.count), np.arange(grown.count)
        return
    chunk = np.cumsum(sizes) // _ENTRIES_AT_ONCE
    order = np.argsort(grown.cluster, kind="stable")
    for number in np.unique(chunk).tolist():
        first, after = np.searchsorted(chunk, [number, number + 1]).tolist()
        rows = order[slice(*np.searchsorted(grown.cluster[order], [first, after]).tolist())]
        sets, own = growing(grown.cluster[rows] - first, value[rows], grown.step[rows], after - first)
        yield sets, own + first


def _declared(column: Sensitive, promise: TuplePromise) -> References | None:
    shares = promise.diversity.declared.get(column.name)
    if shares is None:
        return None
    value = np.array([column.number(text) for text in shares], np.int64)
    weight = np.array(list(shares.values()), np.float64)
    return refer(np.zeros(len(value), np.int64), value, weight, count=1, width=column.width)


def _failures(
    column: Sensitive, sets: Sets, references: References | None, of_set: Ints, promise: TuplePromise
) -> dict[str, Bools]:
    wanted, there, known = promise.diversity, sets.sizes > 0, known_sets(sets)
    reveals = known.sizes > 0
    failed = {}
    if wanted.l is not None:
        failed["below-l"] = reveals & (distinct(known) < wanted.l)
    if wanted.entropy_l is not None:
        failed["below-entropy-l"] = reveals & (effective(known) < wanted.entropy_l * (1 - _ROUNDING))
    if wanted.t is not None and references is not None:
        # A cluster without a reference is reported elsewhere.
        there = there & (np.diff(references.begin)[of_set] > 0)
        apart = away(sets, references, of_set, is_ordered=column.is_ordered)
        failed["above-t"] = there & (apart > wanted.t + _ROUNDING)
    return failed


_MOST_TRIED: Final = 1000


def read_references(
    recorded: Recorded, sensitive: Sequence[Sensitive], cluster_of: Ints, count: int
) -> dict[str, References]:
    """Turn recorded references into references by cluster; ``cluster_of`` has a number for every entry of the trace."""
    found = {}
    for column in sensitive:
        own = _entries_of(recorded, column, cluster_of)
        value = np.array([column.number(recorded.value[at]) for at in own.tolist()], np.int64)
        weight = np.maximum(recorded.count[own], 0).astype(np.float64)
        cluster = cluster_of[recorded.entry[own]]
        found[column.name] = refer(cluster, value, weight, count=count, width=column.width)
    return found


def _entries_of(recorded: Recorded, column: Sensitive, cluster_of: Ints) -> Ints:
    named = np.array([name == column.name for name in recorded.column], np.bool_)
    return np.flatnonzero(named & (cluster_of[recorded.entry] >= 0))


def check_recorded(references: dict[str, References], clusters: Bools, notes: Notes) -> None:
    """Check that every cluster has a reference for every sensitive column."""
    missing = np.zeros(len(clusters), np.bool_)
    for found in references.values():
        missing |= clusters & (np.diff(found.begin) == 0)
    notes.violation("wrong-reference", "The trace does not record the reference of t.", count=int(missing.sum()))


@dataclass(frozen=True, slots=True)
class Formed:
    """The number of usable arrivals when each cluster was formed: at least, and at most."""

    least: Ints
    most: Ints


def arrivals_at_formation(
    decisions: Decisions, timeline: Timeline, cluster_of: Ints, count: int, usable: Ints, *, is_timed: bool
) -> Formed:
    """Count the usable arrivals (rows of the truth) up to the formation of each cluster.

    With event times, arrivals at the time of the decision may have come before or after it.
    """
    formed = decisions.formed & (cluster_of >= 0)
    ends = []
    for times in (timeline.decided, timeline.decided_by):
        now = np.full(count, -1, np.int64)
        now[cluster_of[formed]] = times[formed]
        ends.append(now)
    if not is_timed:
        return Formed(ends[0] + 1, ends[0] + 1)
    sooner, later = timeline.arrived[usable], timeline.arrived_by[usable]
    least = np.searchsorted(later, ends[0], side="left")
    return Formed(least, np.maximum(np.searchsorted(sooner, ends[1], side="right"), least))


def check_against_arrivals(
    recorded: Recorded,
    sensitive: Sequence[Sensitive],
    cluster_of: Ints,
    usable: Ints,
    formed: Formed,
    promise: TuplePromise,
    notes: Notes,
) -> None:
    """Check every reference against the last arrivals at formation; ``usable`` are the usable rows of the truth."""
    counted = [_Counted.of(recorded, column, cluster_of, usable) for column in sensitive]
    wrong = np.ones(len(formed.least), np.bool_)
    for more in range(int(min((formed.most - formed.least).max(initial=0), _MOST_TRIED)) + 1):
        after = np.minimum(formed.least + more, formed.most)
        size = np.minimum(after, promise.diversity.reference)
        wrong &= np.logical_or.reduce([column.differs(after - size, after) for column in counted])
        if not wrong.any():
            break
    sentence = "The trace measures t against other values than those that arrived last."
    tried = formed.most - formed.least <= _MOST_TRIED
    notes.violation("wrong-reference", sentence, count=int((wrong & tried).sum()))
    notes.warning(
        "wrong-reference", f"{sentence} Not all possible times were tried.", count=int((wrong & ~tried).sum())
    )


@dataclass(frozen=True, slots=True)
class _Counted:
    """The recorded references of one column, and the positions of its values among the arrivals."""

    cluster: Ints
    value: Ints
    count: Ints
    seen: Ints
    """value * width + arrival, rising."""
    width: int

    @classmethod
    def of(cls, recorded: Recorded, column: Sensitive, cluster_of: Ints, usable: Ints) -> _Counted:
        """Pick what concerns a column."""
        own = _entries_of(recorded, column, cluster_of)
        value = np.array([column.number(recorded.value[at]) for at in own.tolist()], np.int64)
        width = len(usable) + 1
        seen = np.sort(column.true[usable] * width + np.arange(len(usable)))
        return cls(cluster_of[recorded.entry[own]], value, recorded.count[own], seen, width)

    def differs(self, first: Ints, after: Ints) -> Bools:
        """Mark clusters whose record differs from the arrivals from ``first`` to before ``after``.

        Clusters without any record are reported elsewhere.
        """
        begin, end = (self.value * self.width + ends[self.cluster] for ends in (first, after))
        there = np.searchsorted(self.seen, end) - np.searchsorted(self.seen, begin)
        wrong = np.zeros(len(first), np.bool_)
        wrong[self.cluster[there != self.count]] = True
        total = np.bincount(self.cluster, self.count, len(first))
        incomplete: Bools = (total > 0) & (total != after - first)
        return wrong | incomplete
