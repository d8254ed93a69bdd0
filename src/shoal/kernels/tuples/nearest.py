"""Distances from a tuple that is due to all others, and the nearest of different people."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.tuples.generalize import meet, width
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
from shoal.kernels.tuples.queue import count_keys


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
    """Add one categorical attribute that all carry, by the table of losses of pairs of leaves."""
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
    column = s.pending_f[VALUES + a]
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
    """Distances from tuple t to all places from first to last; those of gaps mean nothing."""
    if s.tally[INCOMPLETE] == 0:
        measure_whole(s, t, first, last)
    else:
        measure_gaps(s, t, first, last)


@piece
def measure_whole(s, t, first, last):
    """Distances where nothing is missing; in a function of its own, or LLVM does not vectorize the loops."""
    distance, total = s.pending_f[DISTANCE], 0.0
    for i in range(np.uint64(first), np.uint64(last)):
        distance[i] = 0.0
    for a in range(width(s)):
        column, weight = s.pending_f[VALUES + a], s.attr_f[WEIGHT, a]
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
    """Distances over the attributes that both carry; 1 where they share none."""
    distance, mass = s.pending_f[DISTANCE], s.pending_f[MASS]
    for i in range(np.uint64(first), np.uint64(last)):
        distance[i] = 0.0
        mass[i] = 0.0
    for a in range(width(s)):
        column, weight = s.pending_f[VALUES + a], s.attr_f[WEIGHT, a]
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
def keep_one_per_person(s, t, first, last):
    """Keep only the nearest tuple of each person eligible, and none of t's own person."""
    s.tally[STAMP] += 1
    stamp, distance = s.tally[STAMP], s.pending_f[DISTANCE]
    eligible, persons = s.pending_i[ELIGIBLE], s.pending_i[PERSON]
    stamped, best = s.pending_i[STAMPED], s.pending_i[NEAREST]
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
def exclude_own_person(s, t, first, last):
    """Make t and its person's other tuples ineligible, and all but one tuple of every other person."""
    if s.tally[LIVE] == count_keys(s, PEOPLE):  # no one has two pending tuples
        s.pending_i[ELIGIBLE, t] = False
    else:
        keep_one_per_person(s, t, first, last)


@piece
def nearest(s, first, last, wanted):
    """Make the nearest eligible tuples members, from the second on, in no order; return how many."""
    key, at = s.pending_f[HEAP_KEY], s.pending_i[HEAP_AT]
    eligible, distance = s.pending_i[ELIGIBLE], s.pending_f[DISTANCE]
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
        s.pending_i[MEMBER, place + 1] = at[place]
    return size


@piece
def mark_all(s, row, first, last):
    """Mark every pending tuple, as eligible or as allowed."""
    for i in range(np.uint64(first), np.uint64(last)):
        s.pending_i[row, i] = s.pending_i[ALIVE, i]


@piece
def choose_nearest(s, t, first, last, wanted):
    """Choose t and the nearest eligible tuples of different people; return how many were chosen, t included."""
    s.pending_i[MEMBER, 0] = t
    exclude_own_person(s, t, first, last)
    return 1 + nearest(s, first, last, wanted - 1)
