"""Count the sets that have all of some blocks, starting from the rarest block and stopping early.

Every block has a sorted list of the sets it occurs in; common blocks also have a bitmap with one bit per set. Sets are
numbered from the largest on: large sets have most combinations, so counting stops soonest when it begins with them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.compiling import inlined, kernel, piece

MOST = 64
"""Largest number of blocks in one query."""


class Index(NamedTuple):
    """Where each block occurs."""

    lists: np.ndarray
    """Numbers of sets, all lists one after another."""
    starts: np.ndarray
    lengths: np.ndarray
    slots: np.ndarray
    """Row of each block in `bits`; -1 if it has none."""
    bits: np.ndarray


@inlined
def has_bit(bits, slot, row):
    """Whether the bit of a set is set in a row."""
    return (bits[slot, row >> 6] >> np.uint64(row & 63)) & np.uint64(1) != np.uint64(0)


@piece
def sort_by_length(index, blocks, count):
    """Put the rarest block first."""
    for m in range(1, count):
        block = blocks[m]
        place = m
        while place > 0 and index.lengths[blocks[place - 1]] > index.lengths[block]:
            blocks[place] = blocks[place - 1]
            place -= 1
        blocks[place] = block


@piece
def leap(lists, at, end, row):
    """The first position from `at` on whose value is at least `row`, by galloping search."""
    if at < end and lists[at] >= row:
        return at
    step = 1
    while at + step < end and lists[at + step] < row:
        at += step
        step <<= 1
    low, high = at, min(at + step, end)
    while low < high:
        middle = (low + high) >> 1
        if lists[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low


IN, OUT, OVER = 1, 0, -1


@piece
def begin_lists(index, blocks, count, cursors):
    """Sort the blocks, rarest first, and set a cursor to the start of every list."""
    sort_by_length(index, blocks, count)
    for m in range(count):
        cursors[m] = index.starts[blocks[m]]


@piece
def has_rest(index, blocks, count, cursors, row):
    """Whether a set has all blocks after the first: IN or OUT; OVER if no later set can."""
    for m in range(1, count):
        block = blocks[m]
        slot = index.slots[block]
        if slot >= 0:
            if not has_bit(index.bits, slot, row):
                return OUT
            continue
        end = index.starts[block] + index.lengths[block]
        cursors[m] = leap(index.lists, cursors[m], end, row)
        if cursors[m] == end:
            return OVER
        if index.lists[cursors[m]] != row:
            return OUT
    return IN


@piece
def have_bits(index, blocks, count):
    """Whether all blocks have bits and scanning their bit words is cheaper than scanning the rarest block's list."""
    if index.lengths[blocks[0]] < index.bits.shape[1]:
        return False
    for m in range(count):
        if index.slots[blocks[m]] < 0:
            return False
    return True


@piece
def count_bits(index, blocks, count, wanted):
    """Number of sets that have all these blocks, from their bitmaps, counted up to `wanted`."""
    found = 0
    for at in range(index.bits.shape[1]):
        word = index.bits[index.slots[blocks[0]], at]
        for m in range(1, count):
            if word == np.uint64(0):
                break
            word &= index.bits[index.slots[blocks[m]], at]
        while word != np.uint64(0):
            word &= word - np.uint64(1)
            found += 1
        if found >= wanted:
            return wanted
    return found


@piece
def support(index, blocks, count, cursors, wanted):
    """Number of sets that have all these blocks, counted up to `wanted`. Reorders the blocks."""
    begin_lists(index, blocks, count, cursors)
    if have_bits(index, blocks, count):
        return count_bits(index, blocks, count, wanted)
    found = 0
    begin = cursors[0]
    for at in range(begin, begin + index.lengths[blocks[0]]):
        answer = has_rest(index, blocks, count, cursors, index.lists[at])
        if answer == OVER:
            break
        found += answer
        if found >= wanted:
            break
    return found


@piece
def weigh(index, blocks, count, cursors, starts, weights):
    """The sum, over all sets that have these blocks, of a weight by the size of the set.

    `starts` begins with the smallest set, numbers of sets with the largest.
    """
    begin_lists(index, blocks, count, cursors)
    total = 0.0
    begin = cursors[0]
    for at in range(begin, begin + index.lengths[blocks[0]]):
        row = index.lists[at]
        answer = has_rest(index, blocks, count, cursors, row)
        if answer == OVER:
            break
        if answer == IN:
            at_size = len(starts) - 2 - row
            total += weights[starts[at_size + 1] - starts[at_size]]
    return total


@kernel
def support_of(index, blocks, cursors, wanted):
    """`support` for callers in Python."""
    return support(index, blocks, len(blocks), cursors, wanted)


@kernel
def join_lists(lists, left, left_count, right, right_count, target):
    """Write the union of two sorted lists at `target`; return its length."""
    i, j, filled = left, right, target
    left_end, right_end = left + left_count, right + right_count
    while i < left_end or j < right_end:
        if j == right_end or (i < left_end and lists[i] < lists[j]):
            lists[filled] = lists[i]
            i += 1
        else:
            if i < left_end and lists[i] == lists[j]:
                i += 1
            lists[filled] = lists[j]
            j += 1
        filled += 1
    return filled - target


@kernel
def set_bits(lists, start, count, bits, slot):
    """Set the bits of all sets in a list."""
    for at in range(start, start + count):
        row = lists[at]
        bits[slot, row >> 6] |= np.uint64(1) << np.uint64(row & 63)
