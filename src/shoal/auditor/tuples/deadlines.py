"""When records were decided: deadlines, the age of reused clusters, and records without a verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.trace import VERDICTS, note_pending
from shoal.auditor.tuples.clock import Bounds, Delays, infer_clock, published_late
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.trace import Decisions

_SECOND: Final = 1_000_000_000
_ONLY_WHEN_DUE: Final = ("fads", "k-varp", "iot-anonymization", "castle")
"""Methods that decide nothing before a record is due, so that an earlier decision reveals a flush."""
_LEAST, _MOST = int(np.iinfo(np.int64).min), int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The time of arrivals and decisions: numbers of usable arrivals, or nanoseconds of event time.

    Every time has a lowest and a highest possible value; they are equal if the times of the trace are consistent.
    """

    arrived: Ints
    """The lowest, for every record (refused ones have the time of the arrival before them)."""
    arrived_by: Ints
    """The highest, for every record."""
    decided: Ints
    """The lowest, for every entry of the trace; the smallest integer for entries that are not counted."""
    decided_by: Ints
    """The highest, for every entry of the trace."""
    moment: Ints
    """For every entry the number of the event that decided it, computed from its delay."""
    is_clear: bool
    """Whether the times of the trace are consistent."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What is known of the records: event times, persons, and how many there are."""

    time: Ints | None
    person: Ints | None
    count: int
    """Without the truth as many as the trace names."""


def read_timeline(decisions: Decisions, arrivals: Arrivals, promise: TuplePromise, notes: Notes) -> Timeline | None:
    """Compute when everything was decided, check it, and check that nothing waited too long."""
    written = check_written_delays(decisions, promise, notes)
    if written is not None:
        written.note(promise, notes)
    arrived = _arrived(decisions, arrivals, promise, notes)
    if arrived is None:
        return None
    _check_order_of_release(decisions, arrived, promise, notes)
    if decisions.delay is None:
        return None
    inside = np.flatnonzero(decisions.counted)
    event = None if decisions.event is None else decisions.event[inside]
    # Rows of a new cluster share one decision, every other entry has its own.
    decision = np.where(decisions.formed, decisions.group, -1 - np.arange(len(decisions.row)))
    delays = Delays(decisions.row[inside], decision[inside], decisions.delay[inside], event)
    times = arrived[delays.row] + delays.delay
    decided = _by_entry(times, inside, len(decisions.row))
    moment = decided
    if promise.is_timed:  # the first arrival whose time reaches that of the decision
        moment = np.searchsorted(np.maximum.accumulate(arrived), decided) if len(arrived) else np.zeros_like(decided)
    wrong = _inconsistencies(decisions, decided, moment, arrived, promise)
    bounds = Bounds((arrived, arrived), (times, times))
    if promise.is_timed:
        first = _first_of_last_start(arrived)
        wrong += len(published_late(arrived, first, delays))
        bounds = infer_clock(arrived, first, delays) if wrong else bounds
    _note_inconsistencies(wrong, delays.impossible, promise, notes)
    _check_event_times(delays, bounds, promise, notes)
    low, high = (_by_entry(ends, inside, len(decisions.row)) for ends in bounds.decided)
    return Timeline(*bounds.arrived, low, high, moment, is_clear=not wrong)


def _check_event_times(delays: Delays, bounds: Bounds, promise: TuplePromise, notes: Notes) -> None:
    """Check that no row was published by a record that came after the row was due.

    A due row is published with the first record that reaches its time, so the record before that came no later.
    """
    if delays.event is None or not promise.is_timed:
        return
    first = _first_of_last_start(bounds.arrived[0])
    known = np.flatnonzero((delays.event > first) & (delays.row >= first))
    before = bounds.arrived[0][delays.event[known] - 1]
    notes.violation(
        "trace-event",
        "The trace names an event for a row that came after the row was decided, according to its delay.",
        count=int((bounds.decided[1][known] < before).sum()),
    )


def _first_of_last_start(arrived: Ints) -> int:
    """Return the record with which the stream restarted; 0 if it did not."""
    back = np.flatnonzero(np.diff(arrived) < 0)
    return int(back[-1]) + 1 if len(back) else 0


def _by_entry(times: Ints, inside: Ints, length: int) -> Ints:
    found = np.full(length, _LEAST, np.int64)
    found[inside] = times
    return found


def _arrived(decisions: Decisions, arrivals: Arrivals, promise: TuplePromise, notes: Notes) -> Ints | None:
    dead = np.zeros(arrivals.count, np.bool_)
    dead[decisions.dead_rows] = True
    if not promise.is_timed:
        return np.cumsum(~dead) - 1
    if arrivals.time is None or arrivals.person is None:
        notes.skip("When records arrived is not known: no truth.")
        return None
    return event_clock(arrivals.time, arrivals.person, ~dead, promise.max_gap_ns)


def event_clock(time: Ints, person: Ints, usable: Bools, max_gap: int) -> Ints:
    """Return the stream's time at every arrival: the latest event time so far.

    While only one person was seen, another's record more than ``max_gap`` older restarts the stream's time, once.
    Unusable records have the time of the arrival before them.
    """
    rows = np.flatnonzero(usable)
    if not len(rows):
        return np.zeros(len(usable), np.int64)
    times = time[rows]
    changes = np.flatnonzero(np.diff(person[rows])) + 1
    clock = np.maximum.accumulate(times)
    if len(changes) and int(clock[changes[0] - 1]) - int(times[changes[0]]) > max_gap:
        begin = int(changes[0])
        clock[begin:] = np.maximum.accumulate(times[begin:])
    latest: Ints = np.maximum(np.cumsum(usable) - 1, 0)
    return clock[latest]


@dataclass(frozen=True, slots=True)
class WrittenDelays:
    """The delays that a trace records: how many, their sum, the largest, and how many exceed the deadline."""

    count: int = 0
    total: int = 0
    largest: int = 0
    late: int = 0

    def __add__(self, other: WrittenDelays) -> WrittenDelays:
        return WrittenDelays(
            self.count + other.count,
            self.total + other.total,
            max(self.largest, other.largest) if self.count and other.count else self.largest or other.largest,
            self.late + other.late,
        )

    def note(self, promise: TuplePromise, notes: Notes) -> None:
        """Note the average and the largest delay."""
        unit = _SECOND if promise.is_timed else 1
        notes.metrics["delay"] = {
            "unit": "seconds" if promise.is_timed else "arrivals",
            "mean": self.total / self.count / unit if self.count else None,
            "largest": self.largest / unit if self.count else None,
            "late": self.late,
        }


def check_written_delays(decisions: Decisions, promise: TuplePromise, notes: Notes) -> WrittenDelays | None:
    """Check the delays of a trace by themselves; None if it has none."""
    if decisions.delay is None:
        return None
    delay = decisions.delay[decisions.counted]
    late = decisions.counted & (decisions.delay > promise.deadline)
    _note_late(decisions, late, promise, notes)
    notes.violation("trace-delay", "The trace has no usable delay for a record.", count=int((delay < 0).sum()))
    return WrittenDelays(len(delay), int(delay.sum()), int(delay.max(initial=0)), int(late.sum()))


def _note_late(decisions: Decisions, late: Bools, promise: TuplePromise, notes: Notes) -> None:
    if promise.may_be_late:
        notes.info("late", "Records were released after their deadline, as this method allows.", count=int(late.sum()))
    else:
        decisions.violation("late", "A record was decided after its deadline.", late, notes)


def _check_order_of_release(decisions: Decisions, arrived: Ints, promise: TuplePromise, notes: Notes) -> None:
    """Find records released after one that arrived more than a deadline later, whatever delays the trace claims."""
    entries = np.flatnonzero(decisions.counted)
    at = arrived[decisions.row[entries]]
    if not len(at) or promise.may_be_late:
        return
    waited = _latest_before(at, None if decisions.event is None else decisions.event[entries]) - at
    late = np.zeros(len(decisions.row), np.bool_)
    late[entries] = waited > promise.deadline
    if decisions.delay is not None:
        late &= decisions.delay <= promise.deadline  # the others are reported already
    if not promise.is_timed:
        _note_late(decisions, late, promise, notes)
        return
    notes.warning(
        "late-by-event-time",
        "By event times a record was decided after its deadline; correct only if time was advanced without records.",
        count=int(late.sum()),
    )


def _latest_before(at: Ints, event: Ints | None) -> Ints:
    """Return the latest arrival published up to each entry, without others of its event, which are unordered."""
    latest = np.maximum.accumulate(at)
    if event is None:
        return latest
    published = np.maximum.accumulate(event)  # an entry after a later event's was published with that one
    begins = np.searchsorted(published, published)
    earlier: Ints = np.where(begins > 0, latest[begins - 1], at)
    return np.maximum(earlier, at)


def _inconsistencies(decisions: Decisions, decided: Ints, moment: Ints, arrived: Ints, promise: TuplePromise) -> int:
    """Count events out of order, rows decided apart from their cluster, and rows decided before they arrived."""
    counted = decided[decisions.counted]
    if decisions.event is None:
        in_order = moment[decisions.counted]
    else:
        in_order = counted[np.lexsort((counted, decisions.event[decisions.counted]))]
    wrong = int((in_order[1:] < np.maximum.accumulate(in_order)[:-1]).sum()) if len(counted) else 0
    together = decided[decisions.formed]
    if len(together):
        _, first, turn = np.unique(decisions.group[decisions.formed], return_index=True, return_inverse=True)
        wrong += int((together != together[first][turn]).sum())
    if not promise.is_timed:
        wrong += int((counted > arrived.max(initial=-1)).sum())
        if decisions.event is not None:
            known = decisions.counted & (decisions.event >= 0)
            wrong += int((arrived[decisions.event[known]] != decided[known]).sum())
    return wrong


def _note_inconsistencies(wrong: int, impossible: int, promise: TuplePromise, notes: Notes) -> None:
    if not promise.is_timed:
        notes.violation("trace-delay", "Delays of the trace contradict the order of its rows.", count=wrong)
        return
    sentence = "A record waited longer than one of its cluster that arrived earlier; no clock explains that."
    notes.violation("trace-delay", sentence, count=impossible)
    notes.warning(
        "clock-unclear",
        "Delays do not follow from the event times: time was advanced without records, or the trace is wrong. "
        "Ages of clusters, records without a verdict and the history of k were checked within the remaining bounds.",
        count=wrong,
    )


def check_reuse(decisions: Decisions, timeline: Timeline | None, promise: TuplePromise, notes: Notes) -> None:
    """Check that reused clusters were published before, and not too long before."""
    formed, entries = np.flatnonzero(decisions.formed), np.flatnonzero(decisions.counted & decisions.reused)
    made, place = np.unique(decisions.group[formed], return_index=True)
    found = np.searchsorted(made, decisions.group[entries])
    known = np.isin(decisions.group[entries], made)
    order = np.arange(len(decisions.row)) if decisions.event is None else decisions.event
    last_formed = np.full(len(made), _LEAST)  # the last event (or entry) that formed rows of each cluster
    np.maximum.at(last_formed, np.searchsorted(made, decisions.group[formed]), order[formed])
    first = np.full(len(entries), _MOST)
    first[known] = last_formed[found[known]]
    early = np.zeros(len(decisions.row), np.bool_)
    early[entries[order[entries] < first]] = True
    sentence = "A row was published by a cluster that had not been published before."
    decisions.violation("reuse-before-formation", sentence, early, notes)
    if timeline is None:
        return
    stale = np.zeros(len(decisions.row), np.bool_)
    created = timeline.decided_by[formed[place]][found[known]]
    released = timeline.decided[entries[known]]
    age = (released - np.minimum(created, released)).astype(np.uint64)  # may not fit 63 bits
    stale[entries[known]] = (released > created) & (age > np.uint64(max(promise.reuse, 0)))
    decisions.violation("stale-reuse", "A row was published by a cluster too old to be reused.", stale, notes)


def check_undecided(
    decisions: Decisions, timeline: Timeline | None, promise: TuplePromise, *, records: int, notes: Notes
) -> None:
    """Distinguish records still pending (or not read yet) when the trace ends from lost ones.

    A record is lost if the stream has advanced by a deadline since its arrival, or if it arrived before a flush,
    which leaves nothing pending.
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
    note_pending(len(undecided) - int(lost.sum()), notes)
    verdicts = {name: int((decisions.verdict == number).sum()) for number, name in enumerate(VERDICTS)}
    notes.metrics["verdicts"] = {"in": records, **verdicts, "undecided": len(undecided)}


def _flushed_at(decisions: Decisions, timeline: Timeline, promise: TuplePromise) -> int:
    """Return the latest time at which something was published although nothing was due: only a flush does that."""
    if promise.method not in _ONLY_WHEN_DUE or decisions.delay is None:
        return _LEAST
    entries = np.flatnonzero(decisions.counted)
    low, high = timeline.decided[entries], timeline.decided_by[entries]
    due = decisions.delay[entries] >= promise.deadline
    begun, over = np.searchsorted(np.sort(low[due]), high, side="right"), np.searchsorted(np.sort(high[due]), low)
    return int(low[begun == over].max(initial=_LEAST))  # no due record can have been published then
