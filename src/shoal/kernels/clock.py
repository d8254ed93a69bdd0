"""Which events may move time: late ones are refused, and one wrong clock cannot move the stream's time.

State is one int64 array: the scalars below, then CLAIMS rows of [person low, person high, time]: the most recent
events that are too far ahead and not confirmed by a second person, at most one per person. CLOSED is the time before
which everything is decided; older events come too late.
"""

from __future__ import annotations

from shoal.kernels.compiling import kernel, piece

STARTED, NEWEST, CONFIRMED, OWNER_LOW, OWNER_HIGH, CLAIMED, CLOSED = 0, 1, 2, 3, 4, 5, 6
FIRST_CLAIM = 7
CLAIMS = 8
CLOCK = FIRST_CLAIM + 3 * CLAIMS

TAKEN, RESTART, LATE, AHEAD, UNUSABLE = 0, 1, 2, 3, 4
LONG_AGO = -(2**62)


@piece
def is_backed(clock, low, high, time, max_gap):
    """Whether another person recently claimed a time close to this one."""
    for claim in range(min(clock[CLAIMED], CLAIMS)):
        at = FIRST_CLAIM + 3 * claim
        same_person = clock[at] == low and clock[at + 1] == high
        if not same_person and abs(clock[at + 2] - time) <= max_gap:
            return True
    return False


@piece
def note_claim(clock, low, high, time):
    """Remember an event that no other person confirms yet; it replaces the person's own claim, or else the oldest one.

    One claim per person: a clock that is always wrong must not push out the claims of others.
    """
    for claim in range(min(clock[CLAIMED], CLAIMS)):
        own = FIRST_CLAIM + 3 * claim
        if clock[own] == low and clock[own + 1] == high:
            clock[own + 2] = time
            return
    at = FIRST_CLAIM + 3 * (clock[CLAIMED] % CLAIMS)
    clock[at] = low
    clock[at + 1] = high
    clock[at + 2] = time
    clock[CLAIMED] += 1


@piece
def start_clock(clock, low, high, time):
    """Begin at this event; its time is confirmed by the first event of a second person."""
    clock[STARTED] = 1
    clock[NEWEST] = time
    clock[CONFIRMED] = 0
    clock[OWNER_LOW] = low
    clock[OWNER_HIGH] = high
    clock[CLAIMED] = 0
    clock[CLOSED] = LONG_AGO


@piece
def admit_one(clock, low, high, time, lateness, max_gap):
    """Accept or refuse one event, and move time."""
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
    elif newest - time > max(max_gap, lateness) and clock[CONFIRMED] == 0 and not is_owner:
        start_clock(clock, low, high, time)
        return RESTART
    elif not is_owner:
        clock[CONFIRMED] = 1
    if time < newest - lateness or time < clock[CLOSED]:
        return LATE
    clock[NEWEST] = max(newest, time)
    return TAKEN


@kernel
def admit(clock, persons, times, usable, lateness, max_gap, codes, newest):
    """Accept or refuse events in arrival order; newest[i] is the stream's time after event i.

    Returns how many events are neither accepted as usual nor unusable.
    """
    others = 0
    now = clock[NEWEST]
    for i in range(len(times)):
        if not usable[i]:
            codes[i] = UNUSABLE
        elif now <= times[i] and times[i] - now <= max_gap and clock[CONFIRMED] == 1 and clock[CLOSED] <= times[i]:
            codes[i] = TAKEN  # what admit_one decides, for nearly all events
            now = times[i]
        else:
            clock[NEWEST] = now
            codes[i] = admit_one(clock, persons[i, 0], persons[i, 1], times[i], lateness, max_gap)
            now = clock[NEWEST]
            others += codes[i] != TAKEN
        newest[i] = now
    clock[NEWEST] = now
    return others
