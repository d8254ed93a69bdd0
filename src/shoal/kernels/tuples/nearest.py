"""How far tuples are from one that must leave, and which people are nearest to it."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.tuples.generalize import meet, width
from shoal.kernels.tuples.interning import how_many
from shoal.kernels.tuples.layout import (
    ALIVE,
    DISTANCE,
    ELIGIBLE,
    HEAP_AT,
    HEAP_KEY,
    INCOMPLETE,
    KIND,
    LEAVES,
    LIVE,
    LOSS_AT,
    MASS,
    MEMBER,
    NEAREST,
    NUMERIC,
    PAIRS_AT,
    PEOPLE,
    PERSON,
    SMALL_TREE,
    STAMP,
    STAMPED,
    VALUES,
    WEIGHT,
)


@piece
def add_numeric(column, value, weight, first, last, distance):
    """Add one numeric attribute that all carry."""
    for i in range(np.uint64(first), np.uint64(last)):
        distance[i] += weight * abs(column[i] - value)


@piece
def add_numeric_gaps(column, value, weight, first, last, distance, mass):
    """Add one numeric attribute to the distances of those that carry it."""
    for i in range(np.uint64(first), np.uint64(last)):
        found = column[i]
        is_there = found == found
        distance[i] += weight * abs(found - value) if is_there else 0.0
        mass[i] += weight if is_there else 0.0


@piece
def add_pairs(column, pairs, at, weight, first, last, distance):
    """Add one categorical attribute that all carry, by a table of what a leaf loses with each other."""
    for i in range(np.uint64(first), np.uint64(last)):
        distance[i] += weight * pairs[np.uint64(at) + np.uint64(np.int64(column[i]))]


@piece
def add_pairs_gaps(column, pairs, at, weight, first, last, distance, mass):
    """Add one categorical attribute to the distances of those that carry it, by the table."""
    for i in range(np.uint64(first), np.uint64(last)):
        found = column[i]
        if found == found:
            distance[i] += weight * pairs[np.uint64(at) + np.uint64(np.int64(found))]
            mass[i] += weight


@piece
def add_meets(s, a, leaf, weight, first, last, distance):
    """Add one categorical attribute of a large tree to the distances of those that carry it."""
    column = s.held_f[VALUES + a]
    for i in range(first, last):
        found = column[i]
        if found == found:
            other = np.int64(found)
            node = meet(s, a, min(leaf, other), max(leaf, other))
            distance[i] += weight * s.tree_f[s.attr_i[LOSS_AT, a] + node]


@piece
def add_mass(column, weight, first, last, mass):
    """Add the weight of one attribute to those that carry it."""
    for i in range(np.uint64(first), np.uint64(last)):
        mass[i] += weight if column[i] == column[i] else 0.0


@piece
def measure(s, t, first, last):
    """Distances from tuple t to all in a stretch; those of gaps mean nothing."""
    if s.tally[INCOMPLETE] == 0:
        measure_whole(s, t, first, last)
    else:
        measure_gaps(s, t, first, last)


@piece
def measure_whole(s, t, first, last):
    """Distances where nothing is missing: on its own, because what is short is compiled into one loop after another."""
    distance, total = s.held_f[DISTANCE], 0.0
    for i in range(np.uint64(first), np.uint64(last)):
        distance[i] = 0.0
    for a in range(width(s)):
        column, weight = s.held_f[VALUES + a], s.attr_f[WEIGHT, a]
        value = column[t]
        total += weight
        if s.attr_i[KIND, a] == NUMERIC:
            add_numeric(column, value, weight, first, last, distance)
        elif s.attr_i[LEAVES, a] <= SMALL_TREE:
            at = s.attr_i[PAIRS_AT, a] + np.int64(value) * s.attr_i[LEAVES, a]
            add_pairs(column, s.tree_f, at, weight, first, last, distance)
        else:
            add_meets(s, a, np.int64(value), weight, first, last, distance)
    for i in range(np.uint64(first), np.uint64(last)):
        distance[i] = distance[i] / total if total > 0.0 else 1.0


@piece
def measure_gaps(s, t, first, last):
    """Distances over the attributes that both carry; those that share none are as far as can be."""
    distance, mass = s.held_f[DISTANCE], s.held_f[MASS]
    for i in range(np.uint64(first), np.uint64(last)):
        distance[i] = 0.0
        mass[i] = 0.0
    for a in range(width(s)):
        column, weight = s.held_f[VALUES + a], s.attr_f[WEIGHT, a]
        value = column[t]
        if value != value:
            continue
        if s.attr_i[KIND, a] == NUMERIC:
            add_numeric_gaps(column, value, weight, first, last, distance, mass)
        elif s.attr_i[LEAVES, a] <= SMALL_TREE:
            at = s.attr_i[PAIRS_AT, a] + np.int64(value) * s.attr_i[LEAVES, a]
            add_pairs_gaps(column, s.tree_f, at, weight, first, last, distance, mass)
        else:
            add_meets(s, a, np.int64(value), weight, first, last, distance)
            add_mass(column, weight, first, last, mass)
    for i in range(np.uint64(first), np.uint64(last)):
        distance[i] = distance[i] / mass[i] if mass[i] > 0.0 else 1.0


@piece
def is_after(key, at, left, right):
    """Whether one entry of a heap comes after another: further away, or as far and later."""
    return key[left] > key[right] or (key[left] == key[right] and at[left] > at[right])


@piece
def swap(key, at, left, right):
    """Exchange two entries of a heap."""
    key[left], key[right] = key[right], key[left]
    at[left], at[right] = at[right], at[left]


@piece
def sink_last(key, at, size, place):
    """Restore a heap that has the last entry on top, from a place down."""
    while True:
        child = 2 * place + 1
        if child >= size:
            return
        if child + 1 < size and is_after(key, at, child + 1, child):
            child += 1
        if not is_after(key, at, child, place):
            return
        swap(key, at, place, child)
        place = child


@piece
def rise_last(key, at, place):
    """Restore a heap that has the last entry on top, from a place up."""
    while place > 0:
        parent = (place - 1) >> 1
        if not is_after(key, at, place, parent):
            return
        swap(key, at, place, parent)
        place = parent


@piece
def keep_one_a_person(s, t, first, last):
    """Let only the nearest tuple of each person stay eligible, and none of t's own person."""
    s.tally[STAMP] += 1
    stamp, distance = s.tally[STAMP], s.held_f[DISTANCE]
    eligible, persons = s.held_i[ELIGIBLE], s.held_i[PERSON]
    stamped, best = s.held_i[STAMPED], s.held_i[NEAREST]
    for i in range(first, last):
        if not eligible[i]:
            continue
        person = persons[i]
        if person == persons[t]:
            eligible[i] = False
        elif stamped[person] != stamp:
            stamped[person] = stamp
            best[person] = i
        elif distance[i] < distance[best[person]]:
            eligible[best[person]] = False
            best[person] = i
        else:
            eligible[i] = False


@piece
def leave_out_own(s, t, first, last):
    """Let t not be eligible itself, nor what else there is of its person, nor more than one tuple of any other."""
    if s.tally[LIVE] == how_many(s, PEOPLE):  # nobody is held twice
        s.held_i[ELIGIBLE, t] = False
    else:
        keep_one_a_person(s, t, first, last)


@piece
def nearest(s, first, last, wanted):
    """Let the nearest eligible tuples be members from the second on, in no order; return how many there are."""
    key, at = s.held_f[HEAP_KEY], s.held_i[HEAP_AT]
    eligible, distance = s.held_i[ELIGIBLE], s.held_f[DISTANCE]
    size = 0
    for i in range(first, last):
        if not eligible[i]:
            continue
        found = distance[i]
        if size < wanted:
            key[size] = found
            at[size] = i
            size += 1
            rise_last(key, at, size - 1)
        elif found < key[0]:  # as far and later does not displace
            key[0] = found
            at[0] = i
            sink_last(key, at, size, 0)
    for place in range(size):
        s.held_i[MEMBER, place + 1] = at[place]
    return size


@piece
def mark_all(s, row, first, last):
    """Mark every held tuple, as eligible or as allowed."""
    for i in range(np.uint64(first), np.uint64(last)):
        s.held_i[row, i] = s.held_i[ALIVE, i]


@piece
def choose_nearest(s, t, first, last, wanted):
    """Choose t and the nearest eligible tuples of different people; return how many were chosen, t included."""
    s.held_i[MEMBER, 0] = t
    leave_out_own(s, t, first, last)
    return 1 + nearest(s, first, last, wanted - 1)
