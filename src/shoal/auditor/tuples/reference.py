"""Check what the trace says t was held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.tuples.deadlines import Timeline
from shoal.auditor.tuples.distances import References, refer
from shoal.auditor.tuples.diversity import Sensitive
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.trace import Decisions, Recorded

_MOST_TRIED: Final = 1000


def read_references(
    recorded: Recorded, sensitive: Sequence[Sensitive], cluster_of: Ints, count: int
) -> dict[str, References]:
    """Turn what was recorded into references by cluster; ``cluster_of`` has a number for every entry of the trace."""
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
    notes.violation("wrong-reference", "The trace does not say what t was held against.", count=int(missing.sum()))


@dataclass(frozen=True, slots=True)
class Formed:
    """How many usable arrivals there were when each cluster was formed: at least, and at most."""

    least: Ints
    most: Ints


def arrivals_at_formation(
    decisions: Decisions, timeline: Timeline, cluster_of: Ints, count: int, usable: Ints, *, is_timed: bool
) -> Formed:
    """Count the usable arrivals (rows of the truth) that were there when clusters were formed.

    Where time is event time, arrivals at the very moment of the decision may have come before it or after.
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
    """Recount every reference over the last arrivals at formation; ``usable`` are the usable rows of the truth."""
    counted = [_Counted.of(recorded, column, cluster_of, usable) for column in sensitive]
    wrong = np.ones(len(formed.least), np.bool_)
    for more in range(int(min((formed.most - formed.least).max(initial=0), _MOST_TRIED)) + 1):
        after = np.minimum(formed.least + more, formed.most)
        size = np.minimum(after, promise.diversity.reference)
        wrong &= np.logical_or.reduce([column.differs(after - size, after) for column in counted])
        if not wrong.any():
            break
    sentence = "The trace holds t against other values than those that arrived last."
    tried = formed.most - formed.least <= _MOST_TRIED
    notes.violation("wrong-reference", sentence, count=int((wrong & tried).sum()))
    notes.warning(
        "wrong-reference", f"{sentence} Not all possible moments were tried.", count=int((wrong & ~tried).sum())
    )


@dataclass(frozen=True, slots=True)
class _Counted:
    """What was recorded of one column, and where its values stand among the arrivals."""

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
        """Mark clusters whose record is not what arrived from ``first`` to before ``after``.

        Clusters without any record are told of elsewhere.
        """
        begin, end = (self.value * self.width + ends[self.cluster] for ends in (first, after))
        there = np.searchsorted(self.seen, end) - np.searchsorted(self.seen, begin)
        wrong = np.zeros(len(first), np.bool_)
        wrong[self.cluster[there != self.count]] = True
        total = np.bincount(self.cluster, self.count, len(first))
        incomplete: Bools = (total > 0) & (total != after - first)
        return wrong | incomplete
