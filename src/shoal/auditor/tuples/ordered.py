"""One pass along the trace, on small columns: when records arrived and were decided, and what depends on it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np

from shoal.auditor.checks import check, look
from shoal.auditor.engine import Place, Table
from shoal.auditor.findings import Finding, Notes, Severity
from shoal.auditor.reading.columns import Ints
from shoal.auditor.relation import Relation, Shape
from shoal.auditor.rows.texts import kept, only_columns, stacked
from shoal.auditor.sorting import distinct
from shoal.auditor.trace import DEAD, VERDICTS
from shoal.auditor.tuples.order_checks import OF_EVENTS, OF_TIMES, Pass
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.timeline import Timeline, event_clock, read_timeline

_SECOND: Final = 1_000_000_000
COLUMNS: Final[Shape] = {
    "entry": int, "record": int, "row": int, "verdict": int, "group": int, "delay": int, "event": int, "reused": bool,
    "exists": bool, "counted": bool, "formed": bool,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ordered:
    """What the pass found: findings, and when entries were decided, for checks that are divided in another way."""

    findings: list[Finding]
    not_checked: list[str]
    metrics: dict[str, Any]
    times: Timeline | None
    events: Ints | None
    """The event of every entry, if it is not in the trace but known."""
    has_events: bool
    refused: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """Records that were refused."""


def pass_along(place: Place, decisions: Table, promise: TuplePromise, *, has_truth: bool) -> Ordered:
    """Pass along the trace; decisions have the columns of this module, and ``time`` and ``person`` if these matter."""
    timed = {"time": int, "person": str} if promise.is_timed and has_truth else {}
    shape: Shape = {**COLUMNS, **timed}
    there = place.outline("trace").columns
    records = place.outline("truth").rows if has_truth else None
    small = place.each(decisions, partial(only_columns, tuple(shape)), shape)
    work = partial(_along, promise, records, "delay" in there, "event" in there)
    return place.along(small, ("entry",), work)


def _along(
    promise: TuplePromise,
    records: int | None,
    has_delays: bool,  # noqa: FBT001 - private
    has_events: bool,  # noqa: FBT001 - private
    batches: Iterator[Relation],
) -> Ordered:
    rows = stacked(batches)
    rows = rows if len(rows) else Relation({name: np.zeros(0, kind) for name, kind in COLUMNS.items()})
    entries = kept(rows, rows["entry"] >= 0)
    count = records if records is not None else _least_records(entries, has_events=has_events)
    decided = np.zeros(count, np.bool_)
    decided[entries["record"][entries["exists"]]] = True
    notes = Notes()
    arrived = _arrived(rows, entries, promise, count, notes)
    known = Pass(promise, count, has_delays, has_events, arrived, decided)
    if has_delays and arrived is not None:
        known = replace(known, times=read_timeline(entries, arrived, promise, has_events=has_events))
    if not has_delays:
        notes.unchecked("Deadlines and the age of reused clusters were not checked: the trace has no column delay.")
    findings, events = look(entries, OF_TIMES, known), None
    if not has_events:
        events = _events(known, notes)
        entries = entries if events is None else entries.having(event=events)
        known = replace(known, has_events=events is not None)
    findings += look(entries, OF_EVENTS, known)
    notes.metrics = _metrics(entries, known)
    undecided = int((~decided).sum()) - sum(one.count for one in findings if one.code == "lost")
    findings += still_pending(undecided)
    refused = distinct(entries["record"][entries["exists"] & (entries["verdict"] == DEAD)])
    return Ordered(
        [*findings, *notes.findings], notes.not_checked, notes.metrics, known.times, events, known.has_events, refused
    )  # fmt: skip


@check(
    "pending",
    "Records had no verdict yet when the trace ended.",
    advice="Nothing to do: these records are published or suppressed when the run goes on.",
    families=("tuples",),
    by="order",
    needs=("trace",),
    severity=Severity.INFO,
)
def still_pending(undecided: int) -> int:
    """Count usable records without a verdict."""
    return undecided


def _least_records(entries: Relation, *, has_events: bool) -> int:
    """The least number of records that had arrived, as far as the trace shows."""
    seen = [entries["record"][entries["exists"]], *([entries["event"]] if has_events else [])]
    return max(int(numbers.max(initial=-1)) for numbers in seen) + 1


def _arrived(rows: Relation, entries: Relation, promise: TuplePromise, count: int, notes: Notes) -> Ints | None:
    alive = np.ones(count, np.bool_)
    alive[entries["record"][entries["exists"] & (entries["verdict"] == DEAD)]] = False
    if not promise.is_timed:
        return np.cumsum(alive) - 1
    if "time" not in rows or not count:
        notes.skip("When records arrived is not known: no truth.")
        return None
    inside = np.flatnonzero((rows["record"] >= 0) & (rows["record"] < count))
    time, person = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    time[rows["record"][inside]] = rows["time"][inside]
    person[rows["record"][inside]] = rows.codes("person")[inside]
    return event_clock(time, person, alive, promise.max_gap_ns)


def _events(known: Pass, notes: Notes) -> Ints | None:
    """The events of entries of a trace that does not name them, if these can be known."""
    times = known.times
    if times is not None and (times.is_clear or not known.promise.is_timed):
        return times.moment
    report = notes.skip if times is None else notes.unchecked  # without the truth the time is not known
    report("Which rows were published together is not known: the trace has no column event.")
    return None


def _metrics(entries: Relation, known: Pass) -> dict[str, Any]:
    verdicts = {name: int((entries["verdict"] == number).sum()) for number, name in enumerate(VERDICTS)}
    undecided = int((~known.decided).sum())
    metrics: dict[str, Any] = {}
    metrics["verdicts"] = {"in": known.records, **verdicts, "undecided": undecided}
    if known.has_delays:
        delay, is_timed = entries["delay"][entries["counted"]], known.promise.is_timed
        unit = _SECOND if is_timed else 1
        metrics["delay"] = {
            "unit": "seconds" if is_timed else "arrivals",
            "mean": int(delay.sum()) / len(delay) / unit if len(delay) else None,
            "largest": int(delay.max(initial=0)) / unit if len(delay) else None,
            "late": int((delay > known.promise.deadline).sum()),
        }
    return metrics
