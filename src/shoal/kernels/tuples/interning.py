"""Small numbers for long keys: tables that forget a key when nothing held has it any more."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import inlined, kernel, piece
from shoal.kernels.tuples.layout import COUNT, FREE, FREE_PEOPLE, KEYS

NOBODY = -1
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@inlined
def mixed(seed, word):
    """Spread the bits of a word over those of a hash."""
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
    """Whether a number is that of a key."""
    for word in range(len(key)):
        if slots[KEYS + word, number] != key[word]:
            return False
    return True


@piece
def name_key(s, kind, key):
    """The number of a key, a new one if nothing held has it; the caller sees to room."""
    table, slots = s.tables[kind], s.slots[kind]
    place = home_of_key(table, key)
    while table[place] != NOBODY:
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
def forget_name(s, kind, number, words):
    """One thing with this key has left; the last one takes the key with it."""
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
        if table[place] == NOBODY:
            break
        begin = home_of(table, slots, table[place], words)
        if ((place - begin) & last) >= ((place - gap) & last):
            table[gap] = table[place]
            gap = place
    table[gap] = NOBODY
    slots[FREE, s.tally[FREE_PEOPLE + kind]] = number
    s.tally[FREE_PEOPLE + kind] += 1


@kernel
def clear_names(s, kind):
    """Forget everything."""
    table, slots = s.tables[kind], s.slots[kind]
    for place in range(len(table)):
        table[place] = NOBODY
    room = slots.shape[1]
    for number in range(room):
        slots[FREE, number] = room - 1 - number
        slots[COUNT, number] = 0
    s.tally[FREE_PEOPLE + kind] = room


@piece
def how_many(s, kind):
    """Different keys known."""
    return s.slots.shape[2] - s.tally[FREE_PEOPLE + kind]
