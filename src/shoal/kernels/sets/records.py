"""Sets in rows: who has which items, turned over, put in order and fingerprinted, in linear time.

A collection of sets is two arrays: where each set begins, and the items one after another.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel
from shoal.kernels.randomness import mixed

_SALT = np.uint64(0xA0761D6478BD642F)


@kernel
def count_items(items, counts):
    """How often each item occurs."""
    for at in range(len(items)):
        counts[items[at]] += 1


@kernel
def turn_over(starts, items, ends, owners):
    """List the owners of each item in order. `ends` comes in as where lists begin, and goes out as where they end."""
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            item = items[at]
            owners[ends[item]] = row
            ends[item] += 1


@kernel
def drop_repeats(starts, items, new_starts):
    """Keep one of equal neighbours in every list, in place; return how many entries are left."""
    kept = 0
    begin = starts[0]
    for row in range(len(starts) - 1):
        end = starts[row + 1]
        new_starts[row] = kept
        for at in range(begin, end):
            if at == begin or items[at] != items[at - 1]:
                items[kept] = items[at]
                kept += 1
        begin = end
    new_starts[len(starts) - 1] = kept
    return kept


@kernel
def fingerprint_rows(starts, items, first, second):
    """Two words for every set, which depend on all of its items in order."""
    for row in range(len(starts) - 1):
        one, two = _SALT, ~_SALT
        for at in range(starts[row], starts[row + 1]):
            one = mixed(one + np.uint64(items[at] + 1))
            two = mixed(two ^ (one + _SALT))
        first[row] = one
        second[row] = two


@kernel
def gather_rows(starts, items, order, new_starts, new_items):
    """The sets in another order."""
    filled = 0
    for row in range(len(order)):
        new_starts[row] = filled
        for at in range(starts[order[row]], starts[order[row] + 1]):
            new_items[filled] = items[at]
            filled += 1
    new_starts[len(order)] = filled


@kernel
def generalize_rows(starts, items, block_of, seen, new_starts, new_items):
    """Every set with its items replaced by their blocks, each once, in ascending order; return how many there are."""
    filled = 0
    for row in range(len(starts) - 1):
        begin = filled
        new_starts[row] = begin
        for at in range(starts[row], starts[row + 1]):
            block = block_of[items[at]]
            if seen[block] == row:
                continue
            seen[block] = row
            place = filled
            while place > begin and new_items[place - 1] > block:
                new_items[place] = new_items[place - 1]
                place -= 1
            new_items[place] = block
            filled += 1
    new_starts[len(starts) - 1] = filled
    return filled
