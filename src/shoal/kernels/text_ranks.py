"""Texts as numbers: the rank of each text among known labels, found in a hash table that is built once.

A text of up to 16 bytes is identified by its size, its first eight bytes and its last eight; a longer one is compared
with the label. The table has labels only, never texts of a stream: no input can make its chains longer.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import inlined, kernel, piece
from shoal.kernels.siphash import load_word

WORD = 8
_BOTH = 16
_MULTIPLIER, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_HALF = np.uint64(32)
RANK, FIRST, LAST, SIZE = range(4)
FIELDS = 4
"""Columns of the table: rank + 1, or 0 where a slot is free; what identifies the label."""


@inlined
def mix_word(state, word):
    """Mix a word into the state of a hash."""
    product = (state ^ word) * _MULTIPLIER
    return product ^ (product >> _HALF)


@piece
def ends_of(data, begin, end):
    """The first and the last eight bytes of a text as words; of a longer text a hash of all but the last eight."""
    size = end - begin
    if size > _BOTH:
        state = _OTHER
        for at in range(begin, end - WORD, WORD):
            state = mix_word(state, load_word(data, at))
        return state, load_word(data, end - WORD)
    if begin + WORD <= len(data) and end >= WORD and size > 0:
        unused = np.uint64(8 * max(WORD - size, 0))
        return (load_word(data, begin) << unused) >> unused, load_word(data, end - WORD) >> unused
    first = last = np.uint64(0)
    for place in range(min(size, WORD)):
        shift = np.uint64(8 * place)
        first |= np.uint64(data[np.uint64(begin + place)]) << shift
        last |= np.uint64(data[np.uint64(end - min(size, WORD) + place)]) << shift
    return first, last


@piece
def first_slot(table, first, last, size):
    """Where the search for a text begins."""
    return mix_word(mix_word(first, last * _OTHER), np.uint64(size)) & np.uint64(len(table) - 1)


@piece
def is_same_text(data, begin, end, labels, start):
    """Whether two texts of the same size, longer than a word, are equal."""
    for at in range(0, end - begin - WORD, WORD):
        if load_word(data, begin + at) != load_word(labels, start + at):
            return False
    return True


@kernel
def fill_table(starts, labels, table):
    """Number labels in an empty table: label n is labels[starts[n]:starts[n + 1]].

    The table has a power of two of slots, and more of them than labels.
    """
    for rank in range(len(starts) - 1):
        begin, end = np.int64(starts[rank]), np.int64(starts[rank + 1])
        first, last = ends_of(labels, begin, end)
        slot = first_slot(table, first, last, end - begin)
        while table[slot, RANK]:
            slot = (slot + np.uint64(1)) & np.uint64(len(table) - 1)
        table[slot, RANK] = rank + 1
        table[slot, FIRST] = first
        table[slot, LAST] = last
        table[slot, SIZE] = end - begin


@kernel
def read_labels(offsets, data, present, table, starts, labels, raws, values, refused):
    """Read texts as ranks of labels: NaN where a text is missing, or unknown and refused."""
    mask = np.uint64(len(table) - 1)
    for i in range(len(present)):
        begin, end = np.int64(offsets[i]), np.int64(offsets[i + 1])
        first, last = ends_of(data, begin, end)
        slot, number = first_slot(table, first, last, end - begin), np.nan
        for _ in range(len(table)):
            rank = np.int64(table[slot, RANK]) - 1
            if rank < 0:
                break
            is_like = (table[slot, FIRST] == first) & (table[slot, LAST] == last)
            is_like &= np.int64(table[slot, SIZE]) == end - begin
            if is_like and (end - begin <= _BOTH or is_same_text(data, begin, end, labels, np.int64(starts[rank]))):
                number = np.float64(rank)
                break
            slot = (slot + np.uint64(1)) & mask
        number = number if present[i] else np.nan
        refused[i] = present[i] and number != number
        raws[i] = number
        values[i] = number
