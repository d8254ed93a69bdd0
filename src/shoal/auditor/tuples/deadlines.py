"""When records were decided: deadlines, the age of reused clusters, and records without a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.tuples.clock import Bounds, Delays, infer_clock
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.trace import VERDICTS, Decisions

_SECOND: Final = 1_000_000_000
_ONLY_WHEN_DUE: Final = ("fads", "k-varp", "iot-anonymization", "castle")
"""Methods that decide nothing before a record is due, so that an earlier decision tells of a flush."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The time of arrivals and decisions: numbers of usable arrivals, or nanoseconds of event time.

    Every time has a lowest and a highest possible value; they are equal where the times of the trace fit together.
    """

    arrived: Ints
    """For every record, at least (dead ones have the time of the arrival before them)."""
    arrived_by: Ints
    """For every record, at most."""
    decided: Ints
    """For every entry of the trace, at least; what is not counted has the lowest number there is."""
    decided_by: Ints
    """For every entry of the trace, at most."""
    moment: Ints
    """For every entry the number of the event it was decided in, computed from its delay."""
    is_clear: bool
    """Whether the times of the trace fit together."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What is known of the records themselves: their event times, persons, and which were dead."""

    time: Ints | None
    person: Ints | None
    count: int
    """How many records there are; without the truth as many as the trace names."""


def read_timeline(decisions: Decisions, arrivals: Arrivals, promise: TuplePromise, notes: Notes) -> Timeline | None:
    """Find out when everything was decided, check it, and check that nothing waited too long."""
    _check_written_delays(decisions, promise, notes)
    arrived = _arrived(decisions, arrivals, promise, notes)
    if arrived is None:
        return None
    _check_order_of_leaving(decisions, arrived, promise, notes)
    if decisions.delay is None:
        return None
    inside = np.flatnonzero(decisions.counted)
    event = None if decisions.event is None else decisions.event[inside]
    delays = Delays(decisions.row[inside], _decision_of(decisions)[inside], decisions.delay[inside], event)
    times = arrived[delays.row] + delays.delay
    decided = _by_entry(times, inside, len(decisions.row))
    moment = _moments(decided, arrived, promise)
    wrong = _misfits(decisions, decided, moment, arrived, promise)
    bounds = Bounds((arrived, arrived), (times, times))
    if promise.is_timed and wrong:
        bounds = infer_clock(arrived, _first_of_last_start(arrived), delays)
    _note_misfits(wrong, delays.impossible, promise, notes)
    _check_event_times(delays, bounds, promise, notes)
    low, high = (_by_entry(ends, inside, len(decisions.row)) for ends in bounds.decided)
    return Timeline(*bounds.arrived, low, high, moment, is_clear=not wrong)


def _check_event_times(delays: Delays, bounds: Bounds, promise: TuplePromise, notes: Notes) -> None:
    """Check that no row was published by a record that came when the row's moment had already passed.

    What is due leaves with the first record that reaches its moment, so the record before that came no later.
    """
    if delays.event is None or not promise.is_timed:
        return
    first = _first_of_last_start(bounds.arrived[0])
    known = np.flatnonzero((delays.event > first) & (delays.row >= first))
    before = bounds.arrived[0][delays.event[known] - 1]
    notes.violation(
        "trace-event",
        "The trace names an event for a row that came after the row had been decided, as its delay tells.",
        count=int((bounds.decided[1][known] < before).sum()),
    )


def _decision_of(decisions: Decisions) -> Ints:
    """Number the decisions: rows of a new cluster share one, every other entry has its own."""
    return np.where(decisions.formed, decisions.group, -1 - np.arange(len(decisions.row)))


def _first_of_last_start(arrived: Ints) -> int:
    """Return the record with which the stream started anew; 0 where it did not."""
    back = np.flatnonzero(np.diff(arrived) < 0)
    return int(back[-1]) + 1 if len(back) else 0


def _by_entry(times: Ints, inside: Ints, length: int) -> Ints:
    found = np.full(length, np.iinfo(np.int64).min, np.int64)
    found[inside] = times
    return found


def _arrived(decisions: Decisions, arrivals: Arrivals, promise: TuplePromise, notes: Notes) -> Ints | None:
    dead = np.zeros(arrivals.count, np.bool_)
    dead[decisions.dead_rows] = True
    if not promise.is_timed:
        return np.cumsum(~dead) - 1
    if arrivals.time is None or arrivals.person is None:
        notes.skip("When records arrived is not known: that needs the truth.")
        return None
    return event_clock(arrivals.time, arrivals.person, ~dead, promise.max_gap_ns)


def event_clock(time: Ints, person: Ints, usable: Bools, max_gap: int) -> Ints:
    """Return the stream's time at every arrival: the latest event time so far.

    While only one person was seen, another's record more than ``max_gap`` older starts the stream's time anew, once.
    """
    rows = np.flatnonzero(usable)
    times = time[rows]
    changes = np.flatnonzero(np.diff(person[rows])) + 1
    clock = np.maximum.accumulate(times) if len(times) else times
    if len(changes) and int(clock[changes[0] - 1]) - int(times[changes[0]]) > max_gap:
        begin = int(changes[0])
        clock[begin:] = np.maximum.accumulate(times[begin:])
    return _carried_on(clock, usable)


def _carried_on(clock: Ints, usable: Bools) -> Ints:
    """Give unusable records the clock of the arrival before them."""
    if not len(clock):
        return np.zeros(len(usable), np.int64)
    latest: Ints = np.maximum(np.cumsum(usable) - 1, 0)
    return clock[latest]


def _check_written_delays(decisions: Decisions, promise: TuplePromise, notes: Notes) -> None:
    if decisions.delay is None:
        return
    delay = decisions.delay[decisions.counted]
    late = decisions.counted & (decisions.delay > promise.deadline)
    _note_late(decisions, late, promise, notes)
    unit = _SECOND if promise.is_timed else 1
    notes.metrics["delay"] = {
        "unit": "seconds" if promise.is_timed else "arrivals",
        "mean": float(delay.mean() / unit) if len(delay) else None,
        "largest": float(delay.max() / unit) if len(delay) else None,
        "late": int(late.sum()),
    }
    missing = decisions.counted & (decisions.delay < 0)
    notes.violation("trace-delay", "The trace has no usable delay for a record.", count=int(missing.sum()))


def _note_late(decisions: Decisions, late: Bools, promise: TuplePromise, notes: Notes) -> None:
    if promise.may_be_late:
        notes.info("late", "Records left after their deadline, as this method allows.", count=int(late.sum()))
    else:
        rows = decisions.marked(late, int(decisions.leaves.sum()))
        notes.violation("late", "A record was decided after its deadline.", rows=rows, count=int(late.sum()))


def _check_order_of_leaving(decisions: Decisions, arrived: Ints, promise: TuplePromise, notes: Notes) -> None:
    """Find records that left after one that arrived more than a deadline later, whatever the trace says of delays."""
    entries = np.flatnonzero(decisions.counted)
    at = arrived[decisions.row[entries]]
    if not len(at) or promise.may_be_late:
        return
    waited = _latest_before(at, None if decisions.event is None else decisions.event[entries]) - at
    late = np.zeros(len(decisions.row), np.bool_)
    late[entries] = waited > promise.deadline
    if decisions.delay is not None:
        late &= decisions.delay <= promise.deadline  # the others are told of already
    if not promise.is_timed:
        _note_late(decisions, late, promise, notes)
        return
    notes.warning(
        "late-by-event-time",
        "By the times of the records one was decided after its deadline. Right only if time was moved on without them.",
        count=int(late.sum()),
    )


def _latest_before(at: Ints, event: Ints | None) -> Ints:
    """The latest arrival published up to each entry; rows of one event have no order, so theirs do not count."""
    latest = np.maximum.accumulate(at)
    if event is None:
        return latest
    published = np.maximum.accumulate(event)  # an entry after a later event's was published with that, whatever it says
    begins = np.searchsorted(published, published)
    earlier: Ints = np.where(begins > 0, latest[begins - 1], at)
    return np.maximum(earlier, at)


def _moments(decided: Ints, arrived: Ints, promise: TuplePromise) -> Ints:
    """The event of every decision: with durations, the first arrival whose time reaches the moment of the decision."""
    if not promise.is_timed:
        return decided
    return np.searchsorted(np.maximum.accumulate(arrived), decided) if len(arrived) else np.zeros_like(decided)


def _misfits(decisions: Decisions, decided: Ints, moment: Ints, arrived: Ints, promise: TuplePromise) -> int:
    """Count events out of order, rows that did not leave with their cluster, and rows that left before they arrived."""
    counted = decided[decisions.counted]
    if decisions.event is None:
        in_order = moment[decisions.counted]
    else:
        in_order = counted[np.lexsort((counted, decisions.event[decisions.counted]))]
    back = int((in_order[1:] < np.maximum.accumulate(in_order)[:-1]).sum()) if len(counted) else 0
    split = int(_differs_within(decisions.group[decisions.formed], decided[decisions.formed]).sum())
    ahead = 0
    if not promise.is_timed:
        ahead = int((counted > arrived.max(initial=-1)).sum())
        if decisions.event is not None:
            known = decisions.counted & (decisions.event >= 0)
            ahead += int((arrived[decisions.event[known]] != decided[known]).sum())
    return back + split + ahead


def _note_misfits(wrong: int, impossible: int, promise: TuplePromise, notes: Notes) -> None:
    if not promise.is_timed:
        notes.violation("trace-delay", "Delays of the trace contradict the order of its rows.", count=wrong)
        return
    notes.violation(
        "trace-delay",
        "A record waited longer than one of its cluster that arrived before it; no clock explains that.",
        count=impossible,
    )
    notes.warning(
        "clock-unclear",
        "Delays do not follow from the times of the records: time was moved on without them, or the trace errs. "
        "Ages of clusters, records without a verdict and the history of k were checked within the bounds that remain.",
        count=wrong,
    )


def _differs_within(group: Ints, value: Ints) -> Bools:
    """Mark values that differ from the first of their group."""
    if not len(group):
        return np.zeros(0, np.bool_)
    _, first, turn = np.unique(group, return_index=True, return_inverse=True)
    differs: Bools = value != value[first][turn]
    return differs


def check_reuse(decisions: Decisions, timeline: Timeline | None, promise: TuplePromise, notes: Notes) -> None:
    """Check that rows left by clusters that had left before, and not too long before."""
    formed, reused = np.flatnonzero(decisions.formed), decisions.counted & decisions.reused
    length = int(decisions.leaves.sum())
    made, place = np.unique(decisions.group[formed], return_index=True)
    entries = np.flatnonzero(reused)
    found = np.searchsorted(made, decisions.group[entries])
    known = np.isin(decisions.group[entries], made)
    order = np.arange(len(decisions.row)) if decisions.event is None else decisions.event
    first = np.full(len(entries), np.iinfo(np.int64).max)
    first[known] = _last_formed(decisions, formed, made, order)[found[known]]
    early = np.zeros(len(decisions.row), np.bool_)
    early[entries[order[entries] < first]] = True
    notes.violation(
        "reuse-before-formation",
        "A row left by a cluster that had not left before.",
        rows=decisions.marked(early, length),
        count=int(early.sum()),
    )
    if timeline is None:
        return
    stale = np.zeros(len(decisions.row), np.bool_)
    created = timeline.decided_by[formed[place]]
    left = timeline.decided[entries[known]]
    stale[entries[known]] = _is_later(left, created[found[known]], promise.reuse)
    notes.violation(
        "stale-reuse",
        "A row left by a cluster that was too old to be reused.",
        rows=decisions.marked(stale, length),
        count=int(stale.sum()),
    )


def _is_later(time: Ints, other: Ints, by: int) -> Bools:
    """Tell which times are later than others by more than ``by``; differences may not fit 64 bits."""
    later: Bools = (time > other) & ((time - np.minimum(other, time)).astype(np.uint64) > np.uint64(max(by, 0)))
    return later


def _last_formed(decisions: Decisions, formed: Ints, made: Ints, order: Ints) -> Ints:
    """Return the last event (or entry) in which rows of each cluster were formed."""
    last = np.full(len(made), np.iinfo(np.int64).min)
    np.maximum.at(last, np.searchsorted(made, decisions.group[formed]), order[formed])
    return last


def check_undecided(
    decisions: Decisions, timeline: Timeline | None, promise: TuplePromise, *, records: int, notes: Notes
) -> None:
    """Tell records still held (or not read yet) when the trace ends from records that got lost.

    A record is lost when the stream has gone on by a deadline since it arrived, or when it had arrived before
    a flush, which holds nothing back.
    """
    has_verdict = np.zeros(records, np.bool_)
    has_verdict[decisions.row[decisions.exists]] = True
    undecided = np.flatnonzero(~has_verdict)
    lost = np.zeros(len(undecided), np.bool_)
    if timeline is not None and len(undecided) and has_verdict.any():
        newest = max(int(timeline.arrived[has_verdict].max()), int(timeline.decided.max()))
        arrived = timeline.arrived_by[undecided]
        if not promise.may_be_late:
            lost |= arrived <= newest - promise.deadline
        lost |= arrived <= _flushed_at(decisions, timeline, promise)
    notes.violation("lost", "The trace has no verdict on a record that should have one.", count=int(lost.sum()))
    notes.info("held", "Records had no verdict yet when the trace ended.", count=len(undecided) - int(lost.sum()))
    verdicts = {name: int((decisions.verdict == number).sum()) for number, name in enumerate(VERDICTS)}
    notes.metrics["verdicts"] = {"in": records, **verdicts, "undecided": len(undecided)}


def _flushed_at(decisions: Decisions, timeline: Timeline, promise: TuplePromise) -> int:
    """Return the latest time at which something left although nothing was due: only a flush does that."""
    never = int(np.iinfo(np.int64).min)
    if promise.method not in _ONLY_WHEN_DUE or decisions.delay is None:
        return never
    entries = np.flatnonzero(decisions.counted)
    low, high = timeline.decided[entries], timeline.decided_by[entries]
    due = decisions.delay[entries] >= promise.deadline
    begun, over = np.searchsorted(np.sort(low[due]), high, side="right"), np.searchsorted(np.sort(high[due]), low)
    return int(low[begun == over].max(initial=never))  # no record that was due can have left then
