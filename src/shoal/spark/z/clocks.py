"""Parts of the clock of admission: what shards, logs and epochs need of it.

A clock has an entry for each distinct time, which may be as many as there are records. Rows that wait for late ones
need all of them: each is decided with the arrival that moves time past it. Without lateness a row is decided with its
own arrival. A log needs few entries in any case: what is decided again is not published again, so of the clock it
matters only which rows are due at the end, and where time started over.
"""

from __future__ import annotations

import numpy as np

from shoal.methods.z.admission import Clock


def clock_between(clock: Clock, start: int, stop: int) -> Clock:
    """How time moved with the arrivals from `start` up to, not including, `stop`; it has at least one entry."""
    first, last = np.searchsorted(clock.numbers, [start, stop]).tolist()
    numbers, newest = clock.numbers[first:last], clock.newest[first:last]
    if first and (not len(numbers) or numbers[0] > start):
        numbers, newest = np.append(start, numbers), np.append(clock.newest[first - 1], newest)
    return Clock(numbers, newest, tuple(number for number in clock.restarts if start <= number < stop))


def clock_outline(clock: Clock, *, rotation_ns: int | None = None) -> Clock:
    """The first and the last entry of every stretch of time.

    With `rotation_ns` also the first entry of every epoch: it ends the epoch before.
    """
    starts = np.searchsorted(clock.numbers, clock.restarts)
    kept = np.zeros(len(clock.numbers), dtype=np.bool_)
    kept[starts] = kept[np.maximum(starts - 1, 0)] = True
    kept[:1] = kept[-1:] = True
    if rotation_ns is not None:
        epochs = clock.newest // rotation_ns
        kept[1:] |= epochs[1:] != epochs[:-1]
    return Clock(clock.numbers[kept], clock.newest[kept], clock.restarts, clock.is_end)
