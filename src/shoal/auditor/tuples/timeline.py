"""When records arrived and when they were decided, as far as the trace and the event times say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.counting import numbered
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation
from shoal.auditor.tuples.clock import Bounds, Delays, infer_clock, published_late
from shoal.auditor.tuples.promise import TuplePromise

LEAST: Final = int(np.iinfo(np.int64).min)


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
    wrong: int
    """How many times of the trace contradict each other."""
    impossible: int
    """How many entries waited as no clock explains."""
    published_early: int
    """How many entries name an event that came after they were decided, according to their delay."""
    latest: Ints | None
    """For every entry the latest of the lowest times up to its event; None if times are consistent."""

    @property
    def is_clear(self) -> bool:
        """Whether the times of the trace are consistent."""
        return not self.wrong

    def shown(self, entries: Ints) -> Ints:
        """The lowest times of some entries: nothing was decided before what an earlier event published."""
        return (self.decided if self.latest is None else self.latest)[entries]


def read_timeline(entries: Relation, arrived: Ints, promise: TuplePromise, *, has_events: bool) -> Timeline:
    """Compute when everything was decided; ``arrived``: when every record was."""
    inside, length = np.flatnonzero(entries["counted"]), len(entries)
    event = entries["event"][inside] if has_events else None
    # Rows of a new cluster share one decision, every other entry has its own.
    decision = np.where(entries["formed"], entries["group"], -1 - np.arange(length))
    delays = Delays(entries["record"][inside], decision[inside], entries["delay"][inside], event)
    times = arrived[delays.row] + delays.delay
    decided = _by_entry(times, inside, length)
    moment = decided
    if promise.is_timed:  # the first arrival whose time reaches that of the decision
        moment = np.searchsorted(np.maximum.accumulate(arrived), decided) if len(arrived) else np.zeros_like(decided)
    wrong = _inconsistencies(entries, decided, moment, arrived, promise, has_events=has_events)
    bounds = Bounds((arrived, arrived), (times, times))
    if promise.is_timed:
        first = _first_of_last_start(arrived)
        wrong += len(published_late(arrived, first, delays))
        bounds = infer_clock(arrived, first, delays) if wrong else bounds
    low, high = (_by_entry(ends, inside, length) for ends in bounds.decided)
    early = _published_early(delays, bounds) if promise.is_timed else 0
    latest = _latest(low, entries, has_events=has_events) if wrong else None
    return Timeline(*bounds.arrived, low, high, moment, wrong, delays.impossible, early, latest)


def _latest(low: Ints, entries: Relation, *, has_events: bool) -> Ints:
    """Raise the lowest times of released rows to those of the events that were published before theirs."""
    shown, found = np.flatnonzero(entries["row"] >= 0), low.copy()
    published = numbered(entries["event"][shown])[1] if has_events else np.arange(len(shown))
    order = shown[np.lexsort((low[shown], published))]
    found[order] = np.maximum.accumulate(low[order])
    return found


def _by_entry(times: Ints, inside: Ints, length: int) -> Ints:
    found = np.full(length, LEAST, np.int64)
    found[inside] = times
    return found


def _published_early(delays: Delays, bounds: Bounds) -> int:
    """Count rows published by a record that came after the row was due.

    A due row is published with the first record that reaches its time, so the record before that came no later.
    """
    if delays.event is None:
        return 0
    first = _first_of_last_start(bounds.arrived[0])
    known = np.flatnonzero((delays.event > first) & (delays.row >= first))
    before = bounds.arrived[0][delays.event[known] - 1]
    return int((bounds.decided[1][known] < before).sum())


def _first_of_last_start(arrived: Ints) -> int:
    """Return the record with which the stream restarted; 0 if it did not."""
    back = np.flatnonzero(np.diff(arrived) < 0)
    return int(back[-1]) + 1 if len(back) else 0


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


def _inconsistencies(
    entries: Relation, decided: Ints, moment: Ints, arrived: Ints, promise: TuplePromise, *, has_events: bool
) -> int:
    """Count events out of order, rows decided apart from their cluster, and rows decided before they arrived."""
    inside, event = entries["counted"], entries["event"]
    counted, in_order = decided[inside], moment[inside]
    if has_events:
        in_order = counted[np.lexsort((counted, event[inside]))]
    wrong = int((in_order[1:] < np.maximum.accumulate(in_order)[:-1]).sum()) if len(counted) else 0
    together = decided[entries["formed"]]
    if len(together):
        _, first, turn = np.unique(entries["group"][entries["formed"]], return_index=True, return_inverse=True)
        wrong += int((together != together[first][turn]).sum())
    if not promise.is_timed:
        wrong += int((counted > arrived.max(initial=-1)).sum())
        if has_events:
            known = inside & (event >= 0)
            wrong += int((arrived[event[known]] != decided[known]).sum())
    return wrong
