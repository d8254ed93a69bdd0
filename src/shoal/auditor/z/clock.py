"""Find where the stream restarted because its first clock was wrong, and check that nothing late was counted."""

from __future__ import annotations

import numpy as np

from shoal.auditor.findings import Notes
from shoal.auditor.reading.columns import Bools, Ints
from shoal.auditor.z.aligned import Aligned
from shoal.auditor.z.promise import ZPromise


def find_restarts(reached: Bools, late: Bools, ahead: Bools, aligned: Aligned, promise: ZPromise) -> Ints:
    """Return the records at which the stream restarted.

    A first clock far ahead must not stop everyone else: until a second person's record confirms it, another's record
    that is older by more than ``max_gap`` and ``lateness`` restarts the stream, and nothing before counts. All records
    that ``reached`` the clock matter, also those pending at a restart, which refuses them as ahead.
    """
    return find_confirmed_restarts(reached, late, ahead, aligned, promise)[0]


def find_confirmed_restarts(
    reached: Bools, late: Bools, ahead: Bools, aligned: Aligned, promise: ZPromise
) -> tuple[Ints, bool]:
    """Return also whether a record confirmed the clock, so that no later one restarts the stream."""
    longest = max(promise.max_gap_ns, promise.lateness_ns)
    found: list[int] = []
    owner, newest = -1, 0
    for row in np.flatnonzero(reached):  # ends at the first confirmation, usually the second person's first record
        person, time = int(aligned.person[row]), int(aligned.time[row])
        if owner < 0:
            owner, newest = person, time
        elif time - newest > promise.max_gap_ns:
            if not ahead[row]:  # accepted, so another person's record confirmed the jump
                return np.array(found, np.int64), True
        elif person == owner:
            newest = max(newest, time)
        elif newest - time > longest and not late[row]:  # late: time passed without a record, which confirms the clock
            found.append(int(row))
            owner, newest = person, time
        else:
            return np.array(found, np.int64), True
    return np.array(found, np.int64), False


def cannot_wait(rows: Ints, by_time: Bools, start: int, restarts: Ints, last: int) -> Bools:
    """Mark records that cannot be pending.

    A restart decides about everything before it, if it was reached: ``last`` is the newest record with a verdict. The
    last accepted record came after ``start`` restarts; those of the same start are compared with it by their time.
    """
    own = np.searchsorted(restarts, rows, side="right")
    found: Bools = (own < np.searchsorted(restarts, last, side="right")) | ((own == start) & by_time)
    return found


def check_lateness(rows: Ints, time: Ints, start: Ints, promise: ZPromise, notes: Notes) -> None:
    """Check that no counted record came later than ``lateness`` allows; every start of the stream has its own time."""
    late = 0
    for number in range(int(start.max(initial=-1)) + 1):
        own = start == number
        late += count_late(time[own][np.argsort(rows[own])], promise.lateness_ns)
    note_late(late, notes)


def count_late(times: Ints, lateness_ns: int) -> int:
    """Count the times, in order of arrival, that are later than ``lateness`` allows."""
    return int((times < np.maximum.accumulate(times) - lateness_ns).sum())


def note_late(count: int, notes: Notes) -> None:
    """Report records that came too late and were counted."""
    notes.violation("late-accepted", "A record was counted although it came later than lateness allows.", count=count)
