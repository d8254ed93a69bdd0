"""What the trace says t was measured against: the values that arrived last before each cluster was formed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.auditor.checks import check, look
from shoal.auditor.counting import numbered
from shoal.auditor.engine import Place, Table
from shoal.auditor.findings import Finding, Severity
from shoal.auditor.reading.columns import TEXT, Bools, Ints
from shoal.auditor.reading.rows import Rows
from shoal.auditor.relation import Relation, Shape, Texts
from shoal.auditor.rows.reading import true
from shoal.auditor.rows.texts import stacked
from shoal.auditor.tuples.diversity.sensitive import Sensitive
from shoal.auditor.tuples.ordered import Ordered
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.trace import lists

RECORDED: Final[Shape] = {"group": int, "reference column": str, "reference value": str, "reference count": int}
_KIND: Final = pa.struct([("column", pa.string()), ("value", pa.string()), ("count", pa.int64())])
_MOST_TRIED: Final = 1000
_DAMAGED: Final = "The evidence is damaged: run the method again and keep the trace as it was written."
_in_order: Final = partial(check, families=("tuples",), by="order", needs=("truth", "trace", "t"))


def read_recorded(rows: Rows, _: int) -> Relation:
    """Read the column ``reference`` of a trace: one row for every value of every entry of a cluster that has any."""
    pieces = [lists(piece, pa.list_(_KIND)) for piece in rows.pieces("reference")]
    column = pa.chunked_array(pieces, pa.list_(_KIND)).combine_chunks()
    entry = np.asarray(pc.list_parent_indices(column).to_numpy(zero_copy_only=False), np.int64)
    flat = pc.list_flatten(column)
    names, values = (Texts.from_arrow(flat.field(name).cast(TEXT)) for name in ("column", "value"))
    count = np.asarray(pc.fill_null(flat.field("count"), -1).to_numpy(zero_copy_only=False), np.int64)
    found = Relation({
        "group": rows.numbers("group")[entry], "reference column": names, "reference value": values,
        "reference count": count,
    })  # fmt: skip
    return found.take(found["group"] >= 0)


@_in_order(
    "wrong-reference", "The trace measures t against other values than those that arrived last.", advice=_DAMAGED
)
def wrong_reference(_: Relation, wrong: Bools, tried: Bools) -> int:
    """Count clusters whose reference is not that of any possible time."""
    return int((wrong & tried).sum())


@_in_order(
    "wrong-reference",
    "The trace measures t against other values than those that arrived last. Not all possible times were tried.",
    advice=_DAMAGED,
    severity=Severity.WARNING,
)
def perhaps_wrong_reference(_: Relation, wrong: Bools, tried: Bools) -> int:
    """Count clusters whose reference is not that of any time that was tried."""
    return int((wrong & ~tried).sum())


def columns_of_formation(promise: TuplePromise) -> tuple[str, ...]:
    """The columns of entries that say when clusters were formed, and which values had arrived."""
    return ("entry", "record", "row", "group", "formed", *map(true, (*promise.sensitive, *promise.generalized)))


def look_at_references(
    place: Place, decisions: Table, recorded: Relation, columns: Sequence[Sensitive], ordered: Ordered,
    promise: TuplePromise,
) -> list[Finding]:  # fmt: skip
    """Check every recorded reference against the last arrivals when its cluster was formed."""
    return place.along(decisions, ("entry",), partial(_along, recorded, tuple(columns), ordered, promise))


def _along(
    recorded: Relation, columns: Sequence[Sensitive], ordered: Ordered, promise: TuplePromise,
    batches: Iterator[Relation],
) -> list[Finding]:  # fmt: skip
    rows = stacked(batches)
    records = rows.take(np.unique(rows["record"], return_index=True)[1])
    records = records.take((records["record"] >= 0) & ~np.isin(records["record"], ordered.refused))
    entries = rows.take((rows["entry"] >= 0) & (rows["row"] >= 0) & (rows["group"] >= 0))
    clusters = numbered(entries["group"])[0]
    formed = _arrivals_at_formation(entries, clusters, records["record"], ordered, is_timed=promise.is_timed)
    counted = [_Counted.of(recorded, column, clusters, records) for column in columns]
    wrong = np.ones(len(clusters), np.bool_)
    for more in range(int(min((formed.most - formed.least).max(initial=0), _MOST_TRIED)) + 1):
        after = np.minimum(formed.least + more, formed.most)
        size = np.minimum(after, promise.diversity.reference)
        wrong &= np.logical_or.reduce([column.differs(after - size, after) for column in counted])
        if not wrong.any():
            break
    return look(rows, (wrong_reference, perhaps_wrong_reference), wrong, formed.most - formed.least <= _MOST_TRIED)


@dataclass(frozen=True, slots=True)
class _Formed:
    """The number of usable arrivals when each cluster was formed: at least, and at most."""

    least: Ints
    most: Ints


def _arrivals_at_formation(
    entries: Relation, clusters: Ints, usable: Ints, ordered: Ordered, *, is_timed: bool
) -> _Formed:
    """Count the usable arrivals (rows of the truth) up to the formation of each cluster.

    With event times, arrivals at the time of the decision may have come before or after it.
    """
    times = ordered.times
    assert times is not None
    formed = entries.take(entries["formed"])
    cluster = np.argsort(clusters)[np.searchsorted(np.sort(clusters), formed["group"])]
    ends = []
    for decided in (times.decided, times.decided_by):
        now = np.full(len(clusters), -1, np.int64)
        now[cluster] = decided[formed["entry"]]
        ends.append(now)
    if not is_timed:
        return _Formed(ends[0] + 1, ends[0] + 1)
    sooner, later = times.arrived[usable], times.arrived_by[usable]
    least = np.searchsorted(later, ends[0], side="left")
    return _Formed(least, np.maximum(np.searchsorted(sooner, ends[1], side="right"), least))


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
    def of(cls, recorded: Relation, column: Sensitive, clusters: Ints, records: Relation) -> _Counted:
        """Pick what concerns a column."""
        own = recorded.take(recorded.codes("reference column") == recorded["reference column"].of(column.name))
        own = own.take(np.isin(own["group"], clusters))
        _, (true, value) = column.numbers(records[column.true], own["reference value"])
        width = len(records) + 1
        seen = np.sort(true * width + np.arange(len(records)))
        cluster = np.argsort(clusters)[np.searchsorted(np.sort(clusters), own["group"])]
        return cls(cluster, value, own["reference count"], seen, width)

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
