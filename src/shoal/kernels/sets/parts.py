"""Sets that are divided among machines: proposals drawn without looking at a set, and counts of one part of the sets.

A combination of ranks r₁ < r₂ < … has the number C(r₁, 1) + C(r₂, 2) + …, so combinations of a size are numbered
without gaps. `table[r, i]` is C(r, i + 1).
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.randomness import next_below, next_unit, start_coins
from shoal.kernels.sets.sampling import pick_set
from shoal.kernels.sets.support import support


@piece
def size_of(sizes, lengths, row):
    """Number of items of a set, by its number."""
    low, high = 0, len(sizes.first) - 1
    while low < high:
        middle = (low + high + 1) >> 1
        if sizes.first[middle] <= row:
            low = middle
        else:
            high = middle - 1
    return lengths[low]


@kernel
def propose_places(draws, lengths, first, coins, rows, places, limits):
    """Draw proposals from number `first` on as `draw_one` does: the set, the places of its items, and the most people.

    `lengths` are the set sizes of `draws.sizes`. A proposal is accepted if at most `limit` people have the itemset.
    """
    for at in range(len(rows)):
        start_coins(coins, draws.key, first + at)
        rows[at] = pick_set(draws.sizes, coins)
        total = size_of(draws.sizes, lengths, rows[at])
        for m in range(draws.size):
            last = total - draws.size + m
            place = next_below(coins, last + 1)
            for other in range(m):
                if places[at, other] == place:
                    place = last
                    break
            places[at, m] = place
        limits[at] = np.int64(9e18) if draws.by_person else np.int64(min(1.0 / next_unit(coins), 9e18))


@kernel
def count_supports(index, images, wanted, blocks, cursors, counts):
    """Number of sets that have all blocks of each image, counted up to `wanted`; negative blocks are skipped."""
    for at in range(len(images)):
        count = 0
        for m in range(images.shape[1]):
            if images[at, m] >= 0:
                blocks[count] = images[at, m]
                count += 1
        counts[at] = support(index, blocks, count, cursors, wanted[at])


@piece
def begin_combination(places, size):
    """The first places."""
    for m in range(size):
        places[m] = m


@piece
def next_combination(places, size, total):
    """Move on to the next places; False if there are none."""
    m = size - 1
    while m >= 0 and places[m] == total - size + m:
        m -= 1
    if m < 0:
        return False
    places[m] += 1
    for other in range(m + 1, size):
        places[other] = places[other - 1] + 1
    return True


@piece
def number_of(ranks, begin, places, size, table):
    """The number of the combination at these places of a set."""
    number = np.int64(0)
    for m in range(size):
        number += table[ranks[begin + places[m]], m]
    return number


@kernel
def tally_combinations(starts, ranks, size, table, places, counts):
    """Count the sets that have each combination of a size."""
    for row in range(len(starts) - 1):
        begin, total = starts[row], starts[row + 1] - starts[row]
        if total < size:
            continue
        begin_combination(places, size)
        while True:
            counts[number_of(ranks, begin, places, size, table)] += 1
            if not next_combination(places, size, total):
                break


@kernel
def list_combinations(starts, ranks, size, table, first, places, numbers):
    """List the combinations of the sets from `first` on while there is room for those of a whole set, or half of one.

    `places` holds where listing stopped within a set; its last entry is 0 if it stopped between two sets. Return the
    set to continue with, and how many numbers are listed.
    """
    filled = 0
    for row in range(first, len(starts) - 1):
        begin, total = starts[row], starts[row + 1] - starts[row]
        if total < size:
            continue
        if places[size] == 0:
            begin_combination(places, size)
        places[size] = 0
        while True:
            if filled == len(numbers):
                places[size] = 1
                return row, filled
            numbers[filled] = number_of(ranks, begin, places, size, table)
            filled += 1
            if not next_combination(places, size, total):
                break
    return len(starts) - 1, filled
