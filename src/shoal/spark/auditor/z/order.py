"""The order of arrivals and of decisions, range by range: each range receives the last entries of the ranges before it.

The records of a bin arrived one after another. So a bin needs only the newest times of the bins before it to know
which of its records were late. Entries of the trace are divided into ranges in the same way.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.auditor.findings import Finding, Notes
from shoal.auditor.reading.columns import Ints
from shoal.auditor.z.clock import count_late, note_late
from shoal.auditor.z.combined import NO_EPOCH, is_misplaced, note_misplaced
from shoal.auditor.z.promise import ZPromise
from shoal.auditor.z.trace import (
    LONG_AGO,
    Refused,
    count_backward,
    count_in_time,
    newest_before,
    note_backward,
    note_misjudged,
)
from shoal.spark.auditor.engine import Message, result
from shoal.spark.auditor.packing import divided, packed, unpacked
from shoal.spark.auditor.z.entries import Events
from shoal.spark.auditor.z.plan import ORDER, Plan


@dataclass(frozen=True, slots=True)
class OfOrder:
    """What was found about a range of records and a range of entries."""

    misplaced: int = 0
    """Entries in the wrong order."""
    late: int = 0
    """Accepted records that came too late."""
    in_time: int = 0
    """Records refused as late that were not."""


def order_findings(parts: Sequence[OfOrder], promise: ZPromise) -> list[Finding]:
    """What one machine reports of the order; without `combine`, lateness only if the order is right."""
    notes, misplaced = Notes(), sum(part.misplaced for part in parts)
    (note_backward if promise.k is None else note_misplaced)(misplaced, notes)
    if promise.k is not None or not misplaced:
        note_late(sum(part.late for part in parts), notes)
    note_misjudged(sum(part.in_time for part in parts), notes)
    return notes.findings


# ---- arrivals


def send_arrivals(plan: Plan, number: int, events: Events, refused: Refused) -> Iterator[Message]:
    """Send the times of a bin to where lateness is judged, and the newest ones to all later bins."""
    aligned = events.aligned
    order = np.argsort(events.rows)
    time, start = aligned.time[events.rows[order]], events.start[order]
    times = {at: time[start == at] for at in np.unique(start).tolist()}
    late = refused.rows(lambda reason: reason == "late")
    yield Message(
        plan.at(ORDER, number), "arrivals", pickle.dumps((times, aligned.time[late], newest_before(aligned)[late]))
    )
    newest = int(aligned.time[aligned.usable].max(initial=LONG_AGO))
    told = pickle.dumps(({at: int(own.max()) for at, own in times.items()}, newest))
    yield from (Message(plan.at(ORDER, later), "arrived before", told) for later in range(number + 1, plan.bins))


def judge_arrivals(kinds: Mapping[str, Sequence[bytes]], promise: ZPromise) -> OfOrder:
    """Count accepted records that were late, and records refused as late that were not."""
    if not kinds.get("arrivals"):
        return OfOrder()
    newest_of, newest = dict[int, int](), LONG_AGO
    for of_starts, of_all in map(pickle.loads, kinds.get("arrived before", ())):
        newest = max(newest, of_all)
        for at, own in of_starts.items():
            newest_of[at] = max(own, newest_of.get(at, own))
    ((times, refused, before),) = map(pickle.loads, kinds["arrivals"])
    late = sum(
        count_late(np.insert(own, 0, newest_of[at]) if at in newest_of else own, promise.lateness_ns)
        for at, own in times.items()
    )
    return OfOrder(late=late, in_time=count_in_time(refused, np.maximum(before, newest), promise))


# ---- decisions


def send_decided(plan: Plan, events: Events) -> Iterator[Message]:
    """Send accepted records to the ranges of their entries, and what decides about later ranges to these."""
    size = max(-(-sum(plan.trace.entries.values()) // plan.bins), 1)
    entry, waited = events.entries.entry[events.counted], events.entries.waited
    columns = {
        "entry": entry,
        "time": events.aligned.time[events.rows],
        "row": events.rows + events.first,
        "waited": np.zeros(len(entry), np.bool_) if waited is None else waited[events.counted] != NO_EPOCH,
    }
    batch = pa.record_batch({name: pa.array(values) for name, values in columns.items()})
    for number, part in divided(batch, entry // size):
        yield Message(plan.at(ORDER, number), "decided", packed(part))
    for later in range(1, plan.bins):
        before = _decisive(columns, events.start, int(np.searchsorted(entry, later * size)), plan.promise)
        if len(before):
            yield Message(plan.at(ORDER, later), "decided before", packed(batch.take(pa.array(before))))


def _decisive(columns: Mapping[str, Any], start: Ints, count: int, promise: ZPromise) -> Ints:
    """Of the first accepted records those that show whether a later one is misplaced.

    The last one; with `combine` the one that belongs last, and of those that waited the one that belongs last.
    """
    if promise.k is None or not count:
        return np.arange(count)[-1:]
    order = np.lexsort((columns["row"][:count], columns["time"][:count], start[:count]))
    return np.unique(np.append(order[-1:], order[columns["waited"][:count][order]][-1:]))


def judge_decided(plan: Plan, kinds: Mapping[str, Sequence[bytes]]) -> OfOrder:
    """Count the entries of a range that are in the wrong order."""
    if not kinds.get("decided"):
        return OfOrder()
    before = _joined(kinds.get("decided before", ()))
    own = _joined(kinds["decided"]).sort_by("entry")
    if plan.promise.k is None:
        before = before.sort_by("entry").slice(max(before.num_rows - 1, 0))
    both = pa.concat_tables([before, own])
    rows, time = both["row"].to_numpy(), both["time"].to_numpy()
    if plan.promise.k is None:
        return OfOrder(count_backward(rows, time, plan.starts(rows)))
    waited = both["waited"].to_numpy()
    return OfOrder(int(is_misplaced(rows, time, plan.starts(rows), waited, plan.promise)[before.num_rows :].sum()))


def _joined(parts: Sequence[bytes]) -> pa.Table:
    names = {"entry": pa.int64(), "time": pa.int64(), "row": pa.int64(), "waited": pa.bool_()}
    return pa.Table.from_batches([unpacked(data) for data in parts], pa.schema(list(names.items())))


def judge_order(plan: Plan, kinds: Mapping[str, Sequence[bytes]]) -> Iterator[Message]:
    """Judge a range of arrivals and a range of entries."""
    for found in (judge_arrivals(kinds, plan.promise), judge_decided(plan, kinds)):
        if found != OfOrder():
            yield result(found)
