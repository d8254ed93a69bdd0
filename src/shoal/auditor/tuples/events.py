"""Events: the sets of rows that were published together.

An event is an arrival, or a call without records (``advance``, ``flush``). All rows decided by one event are published
as one set, in random order. So every check compares events, never positions within one. The trace names the event of
every row: the record that arrived last before it was decided. If an older trace does not, the event follows from the
delay, provided that the clock is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.tuples.deadlines import Timeline
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.trace import Decisions

_CHANCE: Final = 1e-10
"""Shuffled rows cause a warning with at most this probability."""
_TILTS: Final = tuple(2.0 ** (step / 4) - 1 for step in range(1, 160))


def with_events(decisions: Decisions, timeline: Timeline | None, promise: TuplePromise, notes: Notes) -> Decisions:
    """Return the decisions with their events, if these can be known."""
    if decisions.event is not None:
        return decisions
    if timeline is not None and (timeline.is_clear or not promise.is_timed):
        return replace(decisions, event=timeline.moment)
    report = notes.skip if timeline is None else notes.unchecked  # without the truth the time is not known
    report("Which rows were published together is not known: the trace has no column event.")
    return decisions


def check_events(decisions: Decisions, notes: Notes) -> None:
    """Check that events follow one another, and that no row was decided before it arrived."""
    if decisions.event is None:
        return
    note_events(decisions, decisions.event < decisions.row, _displaced(decisions), notes)


def note_events(decisions: Decisions, early: Bools, displaced: Bools, notes: Notes) -> None:
    """Report entries whose event is before their record, and those that come after an entry of a later event."""
    sentence = "The trace names no event for a row, or one before the row arrived."
    decisions.violation("trace-event", sentence, decisions.counted & early, notes)
    sentence = "Rows were not published in the order of their events."
    decisions.violation("decision-order", sentence, displaced, notes)


def _displaced(decisions: Decisions) -> Bools:
    """Mark entries that come after one of a later event."""
    found = np.zeros(len(decisions.row), np.bool_)
    if decisions.event is not None and decisions.counted.any():
        event = decisions.event[decisions.counted]
        found[decisions.counted] = event < np.maximum.accumulate(event)
    return found


def check_together(decisions: Decisions, notes: Notes, displaced: Bools | None = None) -> None:
    """Find clusters whose rows were not published together.

    All rows of a new cluster belong to one event, and none comes after a row of a later one. They are decided at
    one moment, so a row that arrived later does not wait longer. No clock is needed for this. Of a part of the trace,
    ``displaced`` says which entries come after one of a later event.
    """
    entries = np.flatnonzero(decisions.formed)
    if not len(entries):
        return
    _, turn = np.unique(decisions.group[entries], return_inverse=True)
    is_split = _waits_differ(decisions, entries, turn)
    if decisions.event is not None:
        is_split |= _spread(decisions.event[entries], turn) > 0
        is_split[turn[(_displaced(decisions) if displaced is None else displaced)[entries]]] = True
    apart = np.zeros(len(decisions.row), np.bool_)
    apart[entries] = is_split[turn]
    sentence = "The rows of a cluster were not published together: they were decided at different times."
    decisions.violation("split-cluster", sentence, apart, notes)


def _spread(value: Ints, turn: Ints) -> Ints:
    """Return the difference between the largest and the smallest value of every group."""
    count = int(turn.max(initial=-1)) + 1
    low, high = np.full(count, np.iinfo(np.int64).max), np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(low, turn, value)
    np.maximum.at(high, turn, value)
    spread: Ints = high - low
    return spread


def _waits_differ(decisions: Decisions, entries: Ints, turn: Ints) -> Bools:
    """Mark clusters in which a row that arrived later waited longer."""
    found = np.zeros(int(turn.max()) + 1, np.bool_)
    if decisions.delay is None:
        return found
    order = np.lexsort((decisions.row[entries], turn))
    delay, own = decisions.delay[entries][order], turn[order]
    longer = (
        (own[1:] == own[:-1]) & (delay[1:] > delay[:-1]) & (delay[:-1] >= 0)
    )  # missing delays are reported elsewhere
    found[own[1:][longer]] = True
    return found


def check_arrival_order(decisions: Decisions, notes: Notes) -> None:
    """Warn when clusters begin with the row that arrived first far more often than chance allows.

    In a random order the first row of a cluster of n is the earliest with probability 1/n, independently of the other
    clusters. The warning needs a number of such clusters that a random order reaches with a probability below 1e-10.
    """
    first_rows(decisions).note(notes)


@dataclass(frozen=True, slots=True)
class FirstRows:
    """How many clusters have each size above 1, and how many begin with the row that arrived first."""

    sizes: Mapping[int, int]
    found: int

    def __add__(self, other: FirstRows) -> FirstRows:
        return FirstRows(Counter(self.sizes) + Counter(other.sizes), self.found + other.found)

    def note(self, notes: Notes) -> None:
        """Warn if that is too many for chance."""
        size, times = (np.array(list(part), np.float64) for part in (self.sizes.keys(), self.sizes.values()))
        if _log_chance(1.0 / size, times, self.found) < np.log(_CHANCE):
            notes.warning(
                "in-arrival-order",
                "Clusters begin with the row that arrived first, so positions reveal who arrived when; "
                "shuffle the rows.",
                count=self.found,
            )


def first_rows(decisions: Decisions) -> FirstRows:
    """Count the clusters that begin with the row that arrived first."""
    entries = np.flatnonzero(decisions.formed)
    _, first, turn, size = np.unique(
        decisions.group[entries], return_index=True, return_inverse=True, return_counts=True
    )
    earliest = np.full(len(size), np.iinfo(np.int64).max)
    np.minimum.at(earliest, turn, decisions.row[entries])
    begins = (decisions.row[entries[first]] == earliest) & (size > 1)
    return FirstRows(Counter(size[size > 1].tolist()), int(begins.sum()))


def _log_chance(share: npt.NDArray[np.float64], times: npt.NDArray[np.float64], found: int) -> float:
    """Bound the log of the probability that at least ``found`` of independent events happen (Chernoff).

    ``times`` says how many events have each probability.
    """
    if found <= (share * times).sum():
        return 0.0
    return min(float((times * np.log1p(share * tilt)).sum() - found * np.log1p(tilt)) for tilt in _TILTS)
