"""The most people ever behind each (person, value) pair of an epoch.

``table``   open-addressed, one row [person, value, peak]; a peak is at least 1, so 0 says that a row is free. A row in
            two at most is taken, which bounds every probe.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.z.threshold_curves import scrambled


@piece
def pair_row(table, person, value):
    """Row of a pair, or the free one where it belongs."""
    mask = np.int64(len(table) - 1)
    row = (person + scrambled(value)) & mask
    while table[row, 2] != 0 and (table[row, 0] != person or table[row, 1] != value):
        row = (row + 1) & mask
    return row


@kernel
def note_peaks(table, taken, persons, values, sizes, first):
    """Note how many people stood behind each event (0: it does not count); returns the first that does not fit."""
    for i in range(first, len(sizes)):
        if sizes[i] == 0:
            continue
        if 2 * (taken[0] + 1) > len(table):
            return i
        row = pair_row(table, persons[i, 0], values[i, 0])
        if table[row, 2] == 0:
            table[row, 0] = persons[i, 0]
            table[row, 1] = values[i, 0]
            taken[0] += 1
        table[row, 2] = max(table[row, 2], sizes[i])
    return len(sizes)


@kernel
def move_peaks(table, roomier):
    """Put every pair into an empty table with more room."""
    for i in range(len(table)):
        if table[i, 2] != 0:
            row = pair_row(roomier, table[i, 0], table[i, 1])
            roomier[row, 0] = table[i, 0]
            roomier[row, 1] = table[i, 1]
            roomier[row, 2] = table[i, 2]
