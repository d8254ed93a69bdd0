"""Checks of the entries of a trace in their order: deadlines, events, the age of reused clusters, lost records.

An event is an arrival, or a call without records (``advance``, ``flush``). All rows decided by one event are published
as one set, in random order. So every check compares events, never positions within one. The trace names the event of
every row: the record that arrived last before it was decided. If an older trace does not, the event follows from the
delay, provided that the clock is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from shoal.auditor.checks import Answer, check
from shoal.auditor.findings import Severity
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.relation import Relation
from shoal.auditor.tuples.promise import TuplePromise
from shoal.auditor.tuples.timeline import LEAST, Timeline

_ONLY_WHEN_DUE: Final = ("fads", "k-varp", "iot-anonymization", "castle")
"""Methods that decide nothing before a record is due, so that an earlier decision reveals a flush."""
_CHANCE: Final = 1e-10
"""Shuffled rows cause a warning with at most this probability."""
_TILTS: Final = tuple(2.0 ** (step / 4) - 1 for step in range(1, 160))
_LATE: Final = "People waited longer than the policy allows: raise the deadline, or look for what stopped the run."
_DAMAGED: Final = "The evidence is damaged: run the method again and keep the trace as it was written."
_FAMILIES: Final = ("tuples",)


@dataclass(frozen=True, slots=True)
class Pass:
    """What the checks along the trace know besides its entries."""

    promise: TuplePromise
    records: int
    """How many there are; without the truth as many as the trace names."""
    has_delays: bool
    has_events: bool
    arrived: Ints | None
    """When every record arrived, by event times; None if that is not known."""
    decided: Bools
    """Which records have a verdict."""
    times: Timeline | None = None


def _order_check(code: str, sentence: str, advice: str, **more: Any) -> Callable[[Any], Any]:
    return check(code, sentence, advice=advice, families=_FAMILIES, by="order", needs=("trace",), **more)


# ---- delays and events


@_order_check("late", "A record was decided after its deadline.", _LATE)
def late(entries: Relation, known: Pass) -> Bools | int:
    """Mark entries that waited too long, as the trace says, or as the order of the release shows."""
    return 0 if known.promise.may_be_late else _late(entries, known)


@_order_check(
    "late",
    "Records were released after their deadline, as this method allows.",
    "Choose another method if they must not.",
    severity=Severity.INFO,
)
def late_as_allowed(entries: Relation, known: Pass) -> int:
    """Count entries that waited longer, where the method has no deadline."""
    return int(_late(entries, known).sum()) if known.promise.may_be_late else 0


def _late(entries: Relation, known: Pass) -> Bools:
    written: Bools = known.has_delays & entries["counted"] & (entries["delay"] > known.promise.deadline)
    return written if known.promise.is_timed else written | _overtaken(entries, known)


@_order_check(
    "late-by-event-time",
    "By event times a record was decided after its deadline; correct only if time was advanced without records.",
    _LATE,
    severity=Severity.WARNING,
)
def late_by_event_time(entries: Relation, known: Pass) -> int:
    """Count entries that later event times overtook."""
    return int(_overtaken(entries, known).sum()) if known.promise.is_timed else 0


def _overtaken(entries: Relation, known: Pass) -> Bools:
    """Find records released after one that arrived more than a deadline later, whatever delays the trace claims."""
    found, inside = np.zeros(len(entries), np.bool_), np.flatnonzero(entries["counted"])
    if known.arrived is None or known.promise.may_be_late or not len(inside):
        return found
    at = known.arrived[entries["record"][inside]]
    waited = _latest_before(at, entries["event"][inside] if known.has_events else None) - at
    found[inside] = waited > known.promise.deadline
    if known.has_delays:
        found &= entries["delay"] <= known.promise.deadline  # the others are reported already
    return found


def _latest_before(at: Ints, event: Ints | None) -> Ints:
    """Return the latest arrival published up to each entry, without others of its event, which are unordered."""
    latest = np.maximum.accumulate(at)
    if event is None:
        return latest
    published = np.maximum.accumulate(event)  # an entry after a later event's was published with that one
    begins = np.searchsorted(published, published)
    earlier: Ints = np.where(begins > 0, latest[begins - 1], at)
    return np.maximum(earlier, at)


@_order_check("trace-delay", "The trace has no usable delay for a record.", _DAMAGED)
def missing_delay(entries: Relation, known: Pass) -> int:
    """Count entries without a delay."""
    return int((entries["counted"] & (entries["delay"] < 0)).sum()) if known.has_delays else 0


@_order_check("trace-delay", "Delays of the trace contradict the order of its rows.", _DAMAGED)
def wrong_delay(_: Relation, known: Pass) -> Answer | int:
    """Count delays that contradict each other; with event times, those that no clock explains."""
    if known.times is None:
        return 0
    if not known.promise.is_timed:
        return known.times.wrong
    sentence = "A record waited longer than one of its cluster that arrived earlier; no clock explains that."
    return Answer(count=known.times.impossible, sentence=sentence)


@_order_check(
    "clock-unclear",
    "Delays do not follow from the event times: time was advanced without records, or the trace is wrong. "
    "Ages of clusters, records without a verdict and the history of k were checked within the remaining bounds.",
    "If nothing advances the stream's time without records, the trace is wrong: treat the release as not checked.",
    severity=Severity.WARNING,
)
def clock_unclear(_: Relation, known: Pass) -> int:
    """Count contradictions that a clock ahead of the event times would explain."""
    return known.times.wrong if known.times is not None and known.promise.is_timed else 0


@_order_check("trace-event", "The trace names no event for a row, or one before the row arrived.", _DAMAGED)
def wrong_event(entries: Relation, known: Pass) -> Bools | int:
    """Mark entries that were decided before they arrived."""
    return entries["counted"] & (entries["event"] < entries["record"]) if known.has_events else 0


@_order_check(
    "trace-event",
    "The trace names an event for a row that came after the row was decided, according to its delay.",
    _DAMAGED,
)
def event_too_late(_: Relation, known: Pass) -> int:
    """Count entries with an event after their decision."""
    return 0 if known.times is None else known.times.published_early


@_order_check("decision-order", "Rows were not published in the order of their events.", _DAMAGED)
def decision_order(entries: Relation, known: Pass) -> Bools | int:
    """Mark entries that come after one of a later event."""
    return _displaced(entries) if known.has_events else 0


def _displaced(entries: Relation) -> Bools:
    found, counted = np.zeros(len(entries), np.bool_), entries["counted"]
    if counted.any():
        event = entries["event"][counted]
        found[counted] = event < np.maximum.accumulate(event)
    return found


OF_TIMES: Final = (
    late, late_as_allowed, late_by_event_time, missing_delay, wrong_delay, clock_unclear, wrong_event, event_too_late,
    decision_order,
)  # fmt: skip


# ---- clusters


@_order_check(
    "split-cluster",
    "The rows of a cluster were not published together: they were decided at different times.",
    "Who saw the release grow saw fewer than k people: do not publish it, and report how it was made.",
)
def split_cluster(entries: Relation, known: Pass) -> Bools:
    """Mark rows of new clusters with several events, or of which a later arrival waited longer.

    All rows of a new cluster belong to one event, and none comes after a row of a later one. They are decided at one
    moment, so a row that arrived later does not wait longer. No clock is needed for this.
    """
    apart, inside = np.zeros(len(entries), np.bool_), np.flatnonzero(entries["formed"])
    if not len(inside):
        return apart
    turn = np.unique(entries["group"][inside], return_inverse=True)[1]
    is_split = np.zeros(int(turn.max()) + 1, np.bool_)
    order = np.lexsort((entries["record"][inside], turn))
    delay, own = entries["delay"][inside][order], turn[order]
    # Missing delays are reported elsewhere.
    longer = known.has_delays & (own[1:] == own[:-1]) & (delay[1:] > delay[:-1]) & (delay[:-1] >= 0)
    is_split[own[1:][longer]] = True
    if known.has_events:
        event = entries["event"][inside]
        first = np.zeros(len(is_split), np.int64)
        first[turn] = event
        is_split[turn[event != first[turn]]] = True
        is_split[turn[_displaced(entries)[inside]]] = True
    apart[inside] = is_split[turn]
    return apart


@_order_check(
    "in-arrival-order",
    "Clusters begin with the row that arrived first, so positions reveal who arrived when; shuffle the rows.",
    "Publish the rows of a cluster in random order.",
    severity=Severity.WARNING,
)
def in_arrival_order(entries: Relation, _known: Pass) -> int:
    """Count clusters that begin with the row that arrived first, if these are far more than chance allows.

    In a random order the first row of a cluster of n is the earliest with probability 1/n, independently of the other
    clusters. The warning needs a number of such clusters that a random order reaches with a probability below 1e-10.
    """
    inside = np.flatnonzero(entries["formed"])
    _, first, turn, size = np.unique(
        entries["group"][inside], return_index=True, return_inverse=True, return_counts=True
    )
    earliest = np.full(len(size), np.iinfo(np.int64).max)
    np.minimum.at(earliest, turn, entries["record"][inside])
    found = int(((entries["record"][inside[first]] == earliest) & (size > 1)).sum())
    sizes, times = np.unique(size[size > 1], return_counts=True)
    return found if log_chance(1.0 / sizes, times.astype(np.float64), found) < np.log(_CHANCE) else 0


def log_chance(share: npt.NDArray[np.float64], times: npt.NDArray[np.float64], found: int) -> float:
    """Bound the log of the probability that at least ``found`` of independent events happen (Chernoff).

    ``times`` says how many events have each probability.
    """
    if found <= (share * times).sum():
        return 0.0
    return min(float((times * np.log1p(share * tilt)).sum() - found * np.log1p(tilt)) for tilt in _TILTS)


@_order_check(
    "reuse-before-formation",
    "A row was published by a cluster that had not been published before.",
    "The row was alone when it was published: do not publish this release, and report how it was made.",
)
def reuse_before_formation(entries: Relation, known: Pass) -> Bools:
    """Mark reused rows that precede the last row that formed their cluster, or whose cluster was never formed."""
    formed, reused = np.flatnonzero(entries["formed"]), np.flatnonzero(entries["counted"] & entries["reused"])
    order = entries["event"] if known.has_events else np.arange(len(entries))
    made, turn = np.unique(entries["group"][formed], return_inverse=True)
    last = np.full(len(made) + 1, LEAST)
    np.maximum.at(last, turn, order[formed])
    last[-1] = np.iinfo(np.int64).max  # never formed
    early = np.zeros(len(entries), np.bool_)
    early[reused[order[reused] < last[_cluster_of(entries["group"][reused], made)]]] = True
    return early


def _cluster_of(groups: Ints, made: Ints) -> Ints:
    """The place of each group among those that were formed; one more than the last if it was not."""
    found = np.searchsorted(made, groups)
    return np.where(np.isin(groups, made), found, len(made))


@_order_check(
    "stale-reuse",
    "A row was published by a cluster too old to be reused.",
    "k does not hold over the promised stretch of time: do not publish this release, and report how it was made.",
)
def stale_reuse(entries: Relation, known: Pass) -> Bools | int:
    """Mark rows of clusters that are older than the policy's reuse."""
    times = known.times
    if times is None:
        return 0
    formed, reused = np.flatnonzero(entries["formed"]), np.flatnonzero(entries["counted"] & entries["reused"])
    made, place = np.unique(entries["group"][formed], return_index=True)
    own = _cluster_of(entries["group"][reused], made)
    reused, own = reused[own < len(made)], own[own < len(made)]
    created, released = times.decided_by[formed[place]][own], times.decided[reused]
    age = (released - np.minimum(created, released)).astype(np.uint64)  # may not fit 63 bits
    stale = np.zeros(len(entries), np.bool_)
    stale[reused] = (released > created) & (age > np.uint64(max(known.promise.reuse, 0)))
    return stale


# ---- records without a verdict


@_order_check(
    "lost",
    "The trace has no verdict on a record that should have one.",
    "The run lost records, or its trace is incomplete: compare the counts of the run's report.",
)
def lost(entries: Relation, known: Pass) -> int:
    """Count records without a verdict that are not merely pending.

    A record is lost if the stream has advanced by a deadline since its arrival, or if it arrived before a flush, which
    leaves nothing pending.
    """
    undecided, times = np.flatnonzero(~known.decided), known.times
    if times is None or not len(undecided) or not known.decided.any():
        return 0
    newest = max(int(times.arrived[known.decided].max()), int(times.decided.max()))
    arrived = times.arrived_by[undecided]
    found = arrived <= _flushed_at(entries, times, known.promise)
    if not known.promise.may_be_late:
        found |= arrived <= newest - known.promise.deadline
    return int(found.sum())


def _flushed_at(entries: Relation, times: Timeline, promise: TuplePromise) -> int:
    """Return the latest time at which something was published although nothing was due: only a flush does that."""
    if promise.method not in _ONLY_WHEN_DUE:
        return LEAST
    inside = np.flatnonzero(entries["counted"])
    low, high = times.decided[inside], times.decided_by[inside]
    due = entries["delay"][inside] >= promise.deadline
    begun, over = np.searchsorted(np.sort(low[due]), high, side="right"), np.searchsorted(np.sort(high[due]), low)
    return int(low[begun == over].max(initial=LEAST))  # no due record can have been published then


OF_EVENTS: Final = (split_cluster, in_arrival_order, reuse_before_formation, stale_reuse, lost)
"""Checks that need events, which a trace may not name."""
