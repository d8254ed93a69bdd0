"""Pending tuples in order of arrival, and small numbers for their people and patterns of attributes."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import inlined, kernel, piece
from shoal.kernels.tuples.generalize import width
from shoal.kernels.tuples.layout import (
    ALIVE,
    ARRIVED,
    COUNT,
    DEADLINE,
    FREE,
    FREE_PEOPLE,
    HEAD,
    INCOMPLETE,
    IS_PARTED,
    JOINED,
    KEPT,
    KEYS,
    LATE,
    LATES,
    LIVE,
    MASKS,
    MEMBER,
    NEAR,
    NOW,
    PART,
    PATTERNS,
    PEOPLE,
    PERSON,
    POOL_SIZE,
    ROW,
    TAIL,
    VALUES,
)

NO_ONE = -1
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@inlined
def mixed(seed, word):
    """Mix a word into a hash."""
    found = (seed ^ np.uint64(word)) * _SPREAD
    return found ^ (found >> _HALF)


@piece
def home_of_key(table, key):
    """Where in the table the search for a key begins."""
    found = np.uint64(0)
    for word in range(len(key)):
        found = mixed(found, key[word])
    return np.int64(found & np.uint64(len(table) - 1))


@piece
def home_of(table, slots, number, words):
    """Where in the table the search for a key that has a number begins."""
    found = np.uint64(0)
    for word in range(words):
        found = mixed(found, slots[KEYS + word, number])
    return np.int64(found & np.uint64(len(table) - 1))


@piece
def has_key(slots, number, key):
    """Whether a key has this number."""
    for word in range(len(key)):
        if slots[KEYS + word, number] != key[word]:
            return False
    return True


@piece
def intern_key(s, kind, key):
    """The number of a key, a new one if no pending tuple has it; the caller has made room."""
    table, slots = s.tables[kind], s.slots[kind]
    place = home_of_key(table, key)
    while table[place] != NO_ONE:
        found = table[place]
        if has_key(slots, found, key):
            slots[COUNT, found] += 1
            return found
        place = (place + 1) & (len(table) - 1)
    s.tally[FREE_PEOPLE + kind] -= 1
    number = slots[FREE, s.tally[FREE_PEOPLE + kind]]
    for word in range(len(key)):
        slots[KEYS + word, number] = key[word]
    slots[COUNT, number] = 1
    table[place] = number
    return number


@piece
def release_key(s, kind, number, words):
    """Count one tuple less with this key; with the last one, its number becomes free."""
    table, slots = s.tables[kind], s.slots[kind]
    slots[COUNT, number] -= 1
    if slots[COUNT, number] > 0:
        return
    last = len(table) - 1
    gap = home_of(table, slots, number, words)
    while table[gap] != number:
        gap = (gap + 1) & last
    place = gap
    while True:  # close the gap, so that a search never ends too early
        place = (place + 1) & last
        if table[place] == NO_ONE:
            break
        begin = home_of(table, slots, table[place], words)
        if ((place - begin) & last) >= ((place - gap) & last):
            table[gap] = table[place]
            gap = place
    table[gap] = NO_ONE
    slots[FREE, s.tally[FREE_PEOPLE + kind]] = number
    s.tally[FREE_PEOPLE + kind] += 1


@kernel
def clear_keys(s, kind):
    """Forget all keys."""
    table, slots = s.tables[kind], s.slots[kind]
    for place in range(len(table)):
        table[place] = NO_ONE
    room = slots.shape[1]
    for number in range(room):
        slots[FREE, number] = room - 1 - number
        slots[COUNT, number] = 0
    s.tally[FREE_PEOPLE + kind] = room


@piece
def count_keys(s, kind):
    """The number of different keys."""
    return s.slots.shape[2] - s.tally[FREE_PEOPLE + kind]


_WORTH_CLOSING = 64


@piece
def mask_words(s):
    """Words of the mask of attributes that a tuple carries."""
    return s.pending_i.shape[0] - MASKS - s.recent.shape[0]


@piece
def gather_front(row, places, count):
    """Move the first `count` of these places, which ascend, to the front of a row."""
    for target in range(np.uint64(count)):
        row[target] = row[np.uint64(places[target])]


@piece
def close_gaps(s):
    """Move all pending tuples to the front, in their order; row by row, as they lie in memory."""
    places, count = s.pending_i[MEMBER], 0
    for source in range(s.tally[HEAD], s.tally[TAIL]):
        if s.pending_i[ALIVE, source]:
            places[count] = source
            count += 1
    for row in range(VALUES, VALUES + 2 * width(s) + s.plan[NEAR]):
        gather_front(s.pending_f[row], places, count)
    for row in range(s.pending_i.shape[0]):
        if row < KEPT or row >= MASKS:
            gather_front(s.pending_i[row], places, count)
    for gap in range(count, s.tally[TAIL]):
        s.pending_i[ALIVE, gap] = 0
    s.tally[HEAD] = 0
    s.tally[TAIL] = count


@piece
def close_wide_gaps(s):
    """Close the gaps when scanning them costs more than a third of scanning the tuples."""
    stretch = s.tally[TAIL] - s.tally[HEAD]
    if stretch - s.tally[LIVE] > _WORTH_CLOSING + s.tally[LIVE] // 3:
        close_gaps(s)


@piece
def has_pending_room(s):
    """Whether there is room for one more tuple; closes gaps if needed."""
    if s.tally[TAIL] == s.pending_i.shape[1]:
        close_gaps(s)
    return s.tally[TAIL] < s.pending_i.shape[1]


@piece
def is_complete(s, i):
    """Whether a pending tuple carries every attribute."""
    for a in range(width(s)):
        if s.pending_f[VALUES + a, i] != s.pending_f[VALUES + a, i]:
            return False
    return True


@piece
def add_pending(s, arrivals, i):
    """Add arrival i and return its place; the caller has made room."""
    at, attributes, words = s.tally[TAIL], width(s), mask_words(s)
    for a in range(attributes):
        s.pending_f[VALUES + a, at] = arrivals.values[a, i]
        s.pending_f[VALUES + attributes + a, at] = arrivals.raws[a, i]
    for word in range(words):
        s.pending_i[MASKS + word, at] = arrivals.masks[i, word]
    for column in range(arrivals.sensitive.shape[0]):
        s.pending_i[MASKS + words + column, at] = arrivals.sensitive[column, i]
    s.pending_i[ARRIVED, at] = s.tally[NOW]
    s.pending_i[ROW, at] = arrivals.rows[i]
    s.pending_i[PERSON, at] = intern_key(s, PEOPLE, arrivals.persons[i])
    s.pending_i[PART, at] = intern_key(s, PATTERNS, arrivals.masks[i]) if s.plan[IS_PARTED] else -1
    s.pending_i[ALIVE, at] = 1
    s.pending_i[LATE, at] = 0
    s.tally[TAIL] += 1
    s.tally[LIVE] += 1
    s.tally[INCOMPLETE] += not is_complete(s, at)
    return at


@piece
def remove_pending(s, at):
    """Remove a decided tuple."""
    s.pending_i[ALIVE, at] = 0
    s.tally[LIVE] -= 1
    if s.tally[INCOMPLETE] > 0 and not is_complete(s, at):
        s.tally[INCOMPLETE] -= 1
        for a in range(width(s)):  # zero the gap so that measure_whole never reads NaN
            s.pending_f[VALUES + a, at] = 0.0
    s.tally[LATES] -= s.pending_i[LATE, at]
    release_key(s, PEOPLE, s.pending_i[PERSON, at], 2)
    if s.plan[IS_PARTED]:
        release_key(s, PATTERNS, s.pending_i[PART, at], mask_words(s))


@piece
def oldest(s):
    """The place of the oldest pending tuple; there must be one."""
    while not s.pending_i[ALIVE, s.tally[HEAD]]:
        s.tally[HEAD] += 1
    return s.tally[HEAD]


@piece
def is_due(s, at, now):
    """Whether a tuple is due now."""
    return now - s.pending_i[ARRIVED, at] >= s.plan[DEADLINE]


@piece
def begin_again(s, now):
    """The first clock was wrong: pending tuples arrived when the right one starts; forget all clusters."""
    for at in range(s.tally[HEAD], s.tally[TAIL]):
        s.pending_i[ARRIVED, at] = now
    s.tally[NOW] = now
    s.tally[POOL_SIZE] = s.tally[JOINED] = 0


@kernel
def restore_pending(s, count, keys, masks):
    """Make the first `count` tuples pending again, as a snapshot has them."""
    s.tally[HEAD] = 0
    s.tally[TAIL] = s.tally[LIVE] = count
    for at in range(s.pending_i.shape[1]):
        s.pending_i[ALIVE, at] = at < count
    for at in range(count):
        s.pending_i[PERSON, at] = intern_key(s, PEOPLE, keys[at])
        if s.plan[IS_PARTED]:
            s.pending_i[PART, at] = intern_key(s, PATTERNS, masks[at])


@kernel
def pack_pending(s):
    """Close all gaps before a snapshot."""
    close_gaps(s)
