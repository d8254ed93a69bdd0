"""Tuples that wait: taking them in, letting them go, closing the gaps they leave."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.tuples.generalize import width
from shoal.kernels.tuples.interning import forget_name, name_key
from shoal.kernels.tuples.layout import (
    ALIVE,
    ARRIVED,
    DEADLINE,
    HEAD,
    INCOMPLETE,
    IS_PARTED,
    JOINED,
    KEPT,
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
    SLACK,
    TAIL,
    VALUES,
    VISIBLE,
)

_WORTH_CLOSING = 64


@piece
def mask_words(s):
    """How many words say which attributes a tuple carries."""
    return s.held_i.shape[0] - MASKS - s.recent.shape[0]


@piece
def move_up(row, places, count):
    """Put what is at so many places of a row at its front; the places are in order."""
    for target in range(np.uint64(count)):
        row[target] = row[np.uint64(places[target])]


@piece
def close_gaps(s):
    """Move all held tuples together at the front, in their order; row by row, as they lie in memory."""
    places, count = s.held_i[MEMBER], 0
    for source in range(s.tally[HEAD], s.tally[TAIL]):
        if s.held_i[ALIVE, source]:
            places[count] = source
            count += 1
    for row in range(VALUES, VALUES + 2 * width(s) + s.plan[NEAR]):
        move_up(s.held_f[row], places, count)
    for row in range(s.held_i.shape[0]):
        if row < KEPT or row >= MASKS:
            move_up(s.held_i[row], places, count)
    for gap in range(count, s.tally[TAIL]):
        s.held_i[ALIVE, gap] = 0
    s.tally[HEAD] = 0
    s.tally[TAIL] = count


@piece
def close_wide_gaps(s):
    """Close the gaps when looking at them costs more than a third of looking at the tuples."""
    stretch = s.tally[TAIL] - s.tally[HEAD]
    if stretch - s.tally[LIVE] > _WORTH_CLOSING + s.tally[LIVE] // 3:
        close_gaps(s)


@piece
def has_place(s):
    """Whether one more tuple can be held; closes gaps if it must."""
    if s.tally[TAIL] == s.held_i.shape[1]:
        close_gaps(s)
    return s.tally[TAIL] < s.held_i.shape[1]


@piece
def is_complete(s, i):
    """Whether a held tuple carries every attribute."""
    for a in range(width(s)):
        if s.held_f[VALUES + a, i] != s.held_f[VALUES + a, i]:
            return False
    return True


@piece
def hold(s, arrivals, i):
    """Take in arrival i; the caller has seen to room. Return its place."""
    at, attributes, words = s.tally[TAIL], width(s), mask_words(s)
    for a in range(attributes):
        s.held_f[VALUES + a, at] = arrivals.values[a, i]
        s.held_f[VALUES + attributes + a, at] = arrivals.raws[a, i]
    for word in range(words):
        s.held_i[MASKS + word, at] = arrivals.masks[i, word]
    for column in range(arrivals.sensitive.shape[0]):
        s.held_i[MASKS + words + column, at] = arrivals.sensitive[column, i]
    s.held_i[ARRIVED, at] = s.tally[NOW]
    s.held_i[ROW, at] = arrivals.rows[i]
    s.held_i[PERSON, at] = name_key(s, PEOPLE, arrivals.persons[i])
    s.held_i[PART, at] = name_key(s, PATTERNS, arrivals.masks[i]) if s.plan[IS_PARTED] else -1
    s.held_i[ALIVE, at] = 1
    s.held_i[LATE, at] = 0
    s.tally[TAIL] += 1
    s.tally[LIVE] += 1
    s.tally[INCOMPLETE] += not is_complete(s, at)
    return at


@piece
def let_go(s, at):
    """A held tuple leaves."""
    s.held_i[ALIVE, at] = 0
    s.tally[LIVE] -= 1
    if s.tally[INCOMPLETE] > 0 and not is_complete(s, at):
        s.tally[INCOMPLETE] -= 1
        for a in range(width(s)):  # a gap is looked at as if it were complete when all that is held is
            s.held_f[VALUES + a, at] = 0.0
    s.tally[LATES] -= s.held_i[LATE, at]
    forget_name(s, PEOPLE, s.held_i[PERSON, at], 2)
    if s.plan[IS_PARTED]:
        forget_name(s, PATTERNS, s.held_i[PART, at], mask_words(s))


@piece
def oldest(s):
    """The place of the tuple that has waited longest; the caller knows that there is one."""
    while not s.held_i[ALIVE, s.tally[HEAD]]:
        s.tally[HEAD] += 1
    return s.tally[HEAD]


@piece
def is_due(s, at, now):
    """Whether a tuple is due now, or before the next check if that time is known."""
    return now + s.tally[SLACK] - s.held_i[ARRIVED, at] >= s.plan[DEADLINE]


@piece
def begin_again(s, now):
    """The first clock was wrong: what is held came when the right one starts, and nothing was formed before."""
    for at in range(s.tally[HEAD], s.tally[TAIL]):
        s.held_i[ARRIVED, at] = now
    s.tally[NOW] = now
    s.tally[POOL_SIZE] = s.tally[VISIBLE] = s.tally[JOINED] = 0


@kernel
def take_back(s, count, keys, masks):
    """Make the first so many held tuples live again, as they were when their state was written down."""
    s.tally[HEAD] = 0
    s.tally[TAIL] = s.tally[LIVE] = count
    for at in range(s.held_i.shape[1]):
        s.held_i[ALIVE, at] = at < count
    for at in range(count):
        s.held_i[PERSON, at] = name_key(s, PEOPLE, keys[at])
        if s.plan[IS_PARTED]:
            s.held_i[PART, at] = name_key(s, PATTERNS, masks[at])


@kernel
def pack_held(s):
    """Close all gaps, so that what is held can be written down."""
    close_gaps(s)
