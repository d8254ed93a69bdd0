"""Operations on collections of sets, in linear time: invert, reorder, deduplicate, fingerprint, generalize.

A collection is two arrays: where each set begins, and the items of all sets one after another.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel
from shoal.kernels.randomness import mixed

_SALT = np.uint64(0xA0761D6478BD642F)


@kernel
def count_items(items, counts):
    """Count the occurrences of each item."""
    for at in range(len(items)):
        counts[items[at]] += 1


@kernel
def turn_over(starts, items, ends, owners):
    """List the owners of each item in order. `ends` is where lists begin on entry, and where they end on return."""
    for row in range(len(starts) - 1):
        for at in range(starts[row], starts[row + 1]):
            item = items[at]
            owners[ends[item]] = row
            ends[item] += 1


@kernel
def drop_repeats(starts, items, new_starts):
    """Keep one of equal neighbours in every list, in place; return the number of entries left."""
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
    """A hash of two words for every set, over its items in order."""
    for row in range(len(starts) - 1):
        one, two = _SALT, ~_SALT
        for at in range(starts[row], starts[row + 1]):
            one = mixed(one + np.uint64(items[at] + 1))
            two = mixed(two ^ (one + _SALT))
        first[row] = one
        second[row] = two


@kernel
def gather_rows(starts, items, order, new_starts, new_items):
    """Copy the sets in another order."""
    filled = 0
    for row in range(len(order)):
        new_starts[row] = filled
        for at in range(starts[order[row]], starts[order[row] + 1]):
            new_items[filled] = items[at]
            filled += 1
    new_starts[len(order)] = filled


@kernel
def generalize_rows(starts, items, block_of, seen, new_starts, new_items):
    """Replace the items of every set by their blocks, ascending and without repeats; return the number of entries."""
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
