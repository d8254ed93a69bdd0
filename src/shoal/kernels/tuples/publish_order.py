"""A secret order for rows that are published together.

Rows decided by one event (an arrival, ``advance``, ``flush``) are published as one set. Sorted by arrival, or with the
tuple whose deadline came first, their positions would reveal whose they are. So each event is sorted by a keyed hash of
the row number and of the set of rows in the event. The set is part of the input so that two streams under one key,
whose row numbers both start at 0, do not share an order.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import inlined, kernel, piece
from shoal.kernels.siphash import absorb, begin_state, four_rounds
from shoal.kernels.sorting import sort_rows

_EE = np.uint64(0xEE)
_TWO_WORDS = np.uint64(16 << 56)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_FEW = 128
"""Up to this many rows, counting the smaller keys of each is faster than sorting: it takes several at a time."""


@inlined
def spread_out(row):
    """A row number as 64 bits that look random (SplitMix64); their sum identifies a set of rows."""
    z = np.uint64(row) + _STEP
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@piece
def hash_next(v0, v1, v2, v3, row):
    """The first half of SipHash-2-4-128 of two words: one is absorbed already, the other is the row number."""
    v0, v1, v2, v3 = absorb(v0, v1, v2, v3, np.uint64(row))
    v0, v1, v2, v3 = absorb(v0, v1, v2, v3, _TWO_WORDS)
    v0, v1, v2, v3 = four_rounds(v0, v1, v2 ^ _EE, v3)
    return v0 ^ v1 ^ v2 ^ v3


@piece
def rank_few(keys, order, begin, end):
    """Order a few rows by key, stably: the place of each is the number of keys before its own."""
    for i in range(begin, end):
        key, before = keys[i], 0
        for j in range(np.uint64(begin), np.uint64(i)):
            before += keys[j] <= key
        for j in range(np.uint64(i + 1), np.uint64(end)):
            before += keys[j] < key
        order[begin + before] = i


@kernel
def order_events(key, rows, events, keys, order):
    """Write to order[0] the places of the rows in the order in which they are published.

    Rows of one event stand next to each other. `keys` and `order` have two lines, a column a row.
    """
    begin, count = 0, len(rows)
    while begin < count:
        end = begin + 1
        while end < count and events[end] == events[begin]:
            end += 1
        total = np.uint64(0)
        for i in range(begin, end):
            total += spread_out(rows[i])
            order[0, i] = i
        if end - begin > 1:
            v0, v1, v2, v3 = begin_state(key[0], key[1])
            v0, v1, v2, v3 = absorb(v0, v1, v2, v3, total)
            for i in range(begin, end):
                keys[0, i] = np.int64(hash_next(v0, v1, v2, v3, rows[i]))
            if end - begin <= _FEW:
                rank_few(keys[0], order[0], begin, end)
            else:
                sort_rows(keys[:, begin:end], order[:, begin:end], end - begin)
        begin = end
