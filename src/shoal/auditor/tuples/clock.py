"""Bound the stream's time when records arrived and when they were decided.

The clock of a stream with durations is the latest event time, unless it was advanced without records
(``advance``). A trace has delays only, so such calls must be inferred. Clusters whose delays agree with at least
two different event times fix the clock for their rows. All other rows have bounds: the clock never goes back,
rows of one event are not decided after rows of a later event, and the rows of a new cluster are decided at
one moment.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from shoal.auditor.reading.columns import Bools, Ints

_FAR: Final = 2**62
"""No upper bound."""
_LONGEST: Final = 2**60
_ROUNDS: Final = 30
"""Bounds hold after any number of rounds; more rounds make them tighter."""
_MOSTLY: Final = 0.5
"""The share of clusters that must agree with the event times before others are checked against these."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Lowest and highest possible times: of arrivals by record, of decisions by entry."""

    arrived: tuple[Ints, Ints]
    decided: tuple[Ints, Ints]


@dataclass(frozen=True, slots=True)
class Delays:
    """Entries of the trace in their order: record, decision (entries with one number were released together), delay."""

    row: Ints
    decision: Ints
    delay: Ints
    event: Ints | None = None
    """The event (an arrival, or a flush) that published each entry, in order."""

    @property
    def impossible(self) -> int:
        """Count entries that waited longer than an earlier arrival of the same decision: no clock explains that."""
        order = np.lexsort((self.row, self.decision))
        decision, delay = self.decision[order], self.delay[order]
        return int(((decision[1:] == decision[:-1]) & (delay[1:] > delay[:-1])).sum())


def infer_clock(clock: Ints, first: int, delays: Delays) -> Bounds:
    """Bound a clock that may have been ahead of ``clock``, the latest event time at every record.

    Records before ``first`` arrived before the stream restarted; those pending then count as arrived with the restart.
    """
    top = int(clock.max(initial=0))
    base = max(int(clock.min(initial=0)), top - _LONGEST)  # 36 years suffice
    decision = np.unique(delays.decision, return_inverse=True)[1]
    event = None if delays.event is None else np.unique(delays.event, return_inverse=True)[1]
    inner = Delays(delays.row, decision, np.clip(delays.delay, 0, _LONGEST), event)
    found = _Inference(np.maximum(clock, base) - base, first, inner, published_late(clock, first, delays))
    return Bounds(_moved(found.arrived, base), _moved(found.decided, base))


def published_late(clock: Ints, first: int, delays: Delays) -> Ints:
    """Return records published by a later event than the first that reached their time, by the latest event times.

    If the trace is true, time had been advanced without records when such a record arrived.
    """
    if delays.event is None:
        return delays.row[:0]
    known = np.flatnonzero((delays.event > first) & (delays.row >= first))
    waited = clock[delays.event[known] - 1] - clock[delays.row[known]]
    found: Ints = delays.row[known[delays.delay[known] < waited]]
    return found


def _moved(bounds: tuple[Ints, Ints], base: int) -> tuple[Ints, Ints]:
    """Shift bounds by ``base``; no upper bound becomes the largest integer."""
    low, high = bounds
    return low + base, np.where(high >= _FAR, np.iinfo(np.int64).max, np.maximum(high, low) + base)


class _Inference:
    """Times relative to the earliest one, so that sums of two fit 64 bits."""

    def __init__(self, clock: Ints, first: int, delays: Delays, ahead: Ints) -> None:
        self._delays, self._count = delays, int(delays.decision.max(initial=-1)) + 1
        self._late_records = slice(first, None)
        self._late_entries = np.flatnonzero(delays.row >= first)
        earliest = clock.copy()
        earliest[:first] = clock[first : first + 1]
        by_event_time = earliest[delays.row] + delays.delay
        low = earliest.copy(), by_event_time.copy()
        self._repeat(self._raise, low)
        fixed = self._fixed(earliest, by_event_time) & (low[0][delays.row] == earliest[delays.row])
        high = np.full(len(clock), _FAR, np.int64), np.where(fixed, by_event_time, _FAR)
        high[0][:first] = clock[:first]
        plain = self._plain(earliest, low[0], delays.row[fixed], ahead)
        high[0][plain] = earliest[plain]
        self._repeat(self._lower, high)
        self.arrived, self.decided = (low[0], high[0]), (low[1], high[1])

    def _fixed(self, clock: Ints, by_event_time: Ints) -> Bools:
        """Mark entries of decisions that agree with at least two event times, if most decisions do."""
        is_wide = self._spread(clock[self._delays.row]) > 0
        agrees = self._spread(by_event_time) == 0
        if not is_wide.any() or agrees[is_wide].mean() < _MOSTLY:
            return np.zeros(len(by_event_time), np.bool_)
        found: Bools = (is_wide & agrees)[self._delays.decision]
        return found

    @staticmethod
    def _plain(clock: Ints, low: Ints, fixed: Ints, ahead: Ints) -> Bools:
        """Mark fixed records, and those after the last of them unless the clock must have been ahead."""
        found = np.zeros(len(clock), np.bool_)
        found[fixed] = True
        tail = slice(int(fixed.max(initial=-1)) + 1, None)
        must_be_ahead = (low[tail] > clock[tail]).any() or (ahead >= tail.start).any()
        if len(fixed) and not must_be_ahead:
            found[tail] = True
        return found

    def _spread(self, value: Ints) -> Ints:
        return self._highest(value) - self._lowest(value)

    def _lowest(self, value: Ints) -> Ints:
        low = np.full(self._count, _FAR, np.int64)
        np.minimum.at(low, self._delays.decision, value)
        return low

    def _highest(self, value: Ints) -> Ints:
        high = np.full(self._count, -_FAR, np.int64)
        np.maximum.at(high, self._delays.decision, value)
        return high

    @staticmethod
    def _repeat(step: Callable[[Ints, Ints], None], bounds: tuple[Ints, Ints]) -> None:
        """Propagate bounds between arrivals and decisions until they are stable."""
        for _ in range(_ROUNDS):
            before = bounds[1].copy()
            step(*bounds)
            if np.array_equal(before, bounds[1]):
                return

    def _raise(self, arrived: Ints, decided: Ints) -> None:
        row, delay = self._delays.row, self._delays.delay
        arrived[self._late_records] = np.maximum.accumulate(arrived[self._late_records])
        decided[:] = self._highest(np.maximum(decided, arrived[row] + delay))[self._delays.decision]
        self._raise_by_events(decided)
        np.minimum(decided, _FAR - 1, out=decided)
        np.maximum.at(arrived, row, decided - delay)

    def _lower(self, arrived: Ints, decided: Ints) -> None:
        row, delay = self._delays.row, self._delays.delay
        arrived[self._late_records] = np.minimum.accumulate(arrived[self._late_records][::-1])[::-1]
        by_arrival = np.where(arrived[row] < _FAR, arrived[row] + delay, _FAR)
        decided[:] = self._lowest(np.minimum(decided, by_arrival))[self._delays.decision]
        self._lower_by_events(decided)
        bounded = decided < _FAR
        np.minimum.at(arrived, row[bounded], (decided - delay)[bounded])

    def _raise_by_events(self, decided: Ints) -> None:
        """Nothing was decided before what an earlier event published."""
        event, late = self._delays.event, self._late_entries
        if event is not None and len(late):
            latest = np.full(int(event.max()) + 2, -_FAR, np.int64)
            np.maximum.at(latest, event[late] + 1, decided[late])
            decided[late] = np.maximum(decided[late], np.maximum.accumulate(latest)[event[late]])

    def _lower_by_events(self, decided: Ints) -> None:
        """Nothing was decided after what a later event published."""
        event, late = self._delays.event, self._late_entries
        if event is not None and len(late):
            earliest = np.full(int(event.max()) + 2, _FAR, np.int64)
            np.minimum.at(earliest, event[late], decided[late])
            after = np.minimum.accumulate(earliest[::-1])[::-1]
            decided[late] = np.minimum(decided[late], after[event[late] + 1])
