"""The most people ever behind each (person, value) pair of an epoch.

``pairs``   open-addressed, one row [person, value, peak, …]; a peak is at least 1, so 0 says that a row is free. A row
            in two at most is taken, which bounds every probe.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.z.threshold_curves import scrambled


@piece
def pair_row(pairs, person, value):
    """Row of a pair, or the free one where it belongs."""
    mask = np.int64(len(pairs) - 1)
    row = scrambled(person + scrambled(value)) & mask  # people may be numbered one after another
    while pairs[row, 2] != 0 and (pairs[row, 0] != person or pairs[row, 1] != value):
        row = (row + 1) & mask
    return row


@piece
def note_peak(pairs, taken, person, value, size):
    """Record how many people stand behind a value of a person; return the row of the pair."""
    row = pair_row(pairs, person, value)
    if pairs[row, 2] == 0:
        pairs[row, 0] = person
        pairs[row, 1] = value
        taken[0] += 1
    pairs[row, 2] = max(pairs[row, 2], size)
    return row


@kernel
def note_peaks(pairs, taken, persons, values, sizes, first):
    """Record how many people stand behind each event (0: it does not count); return the first that does not fit."""
    for i in range(first, len(sizes)):
        if sizes[i] == 0:
            continue
        if 2 * (taken[0] + 1) > len(pairs):
            return i
        note_peak(pairs, taken, persons[i, 0], values[i, 0], sizes[i])
    return len(sizes)


@kernel
def move_peaks(pairs, roomier):
    """Put every pair into an empty table with more room."""
    for i in range(len(pairs)):
        if pairs[i, 2] != 0:
            row = pair_row(roomier, pairs[i, 0], pairs[i, 1])
            for field in range(pairs.shape[1]):
                roomier[row, field] = pairs[i, field]
