"""The time of a tuple stream: it never goes back, and one wrong clock cannot move it far ahead."""

from __future__ import annotations

from shoal.kernels.clock import (
    AHEAD,
    CLAIMED,
    CONFIRMED,
    NEWEST,
    OWNER_HIGH,
    OWNER_LOW,
    RESTART,
    STARTED,
    TAKEN,
    is_backed,
    note_claim,
    start_clock,
)
from shoal.kernels.compiling import kernel


@kernel
def move_clock(clock, low, high, time, max_gap):
    """Move time with one person's event, unless it is too far ahead and no second person confirms it."""
    if clock[STARTED] == 0:
        start_clock(clock, low, high, time)
        return TAKEN
    newest = clock[NEWEST]
    is_owner = clock[OWNER_LOW] == low and clock[OWNER_HIGH] == high
    if time - newest > max_gap:
        if not is_backed(clock, low, high, time, max_gap):
            note_claim(clock, low, high, time)
            return AHEAD
        clock[CLAIMED] = 0
        clock[CONFIRMED] = 1
    elif newest - time > max_gap and clock[CONFIRMED] == 0 and not is_owner:
        start_clock(clock, low, high, time)
        clock[CONFIRMED] = 1  # once is enough: or clocks ever further behind would put every deadline off
        return RESTART
    elif not is_owner:
        clock[CONFIRMED] = 1
    clock[NEWEST] = max(newest, time)
    return TAKEN


@kernel
def move_by_all(clock, persons, times, max_gap, codes, newest):
    """Move time with events in order of arrival; newest[i] is the stream's time after event i."""
    for i in range(len(times)):
        codes[i] = move_clock(clock, persons[i, 0], persons[i, 1], times[i], max_gap)
        newest[i] = clock[NEWEST]
