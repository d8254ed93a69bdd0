"""What is published of each person in an epoch, row by row, so that enough people share it.

``pairs``    as in peaks.py, one row [person, value, peak, is published].
``people``   open-addressed, one row [person, sum low, sum high, is shown]: everyone with a published row.
``groups``   the sets that are shown, as in threshold_curves.py.
``tally``    rows taken of each table, people shown, and those of them whose set fewer than k people share.

At most every second row of a table is taken, which bounds every search.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.z.peaks import note_peak
from shoal.kernels.z.threshold_curves import (
    change_by_joining,
    change_by_leaving,
    group_slot,
    join_group,
    leave_group,
    plus_high,
    plus_low,
    scrambled,
)

PAIRS = 0
PEOPLE = 1
GROUPS = 2
SHOWN = 3
ALONE = 4
TALLY = 5

_EXPECTED = 12.0
"""A set is begun, or continued, if this many times the people still missing to k are expected."""
_SURE = 1.5
"""A set is begun if the value has this many times z people."""


@piece
def person_row(people, person):
    """Row of a person, or the free one where it belongs."""
    mask = np.int64(len(people) - 1)
    row = scrambled(person) & mask
    while people[row, 3] != 0 and people[row, 0] != person:
        row = (row + 1) & mask
    return row


@piece
def put(people, groups, tally, person, low, high, k):
    """Show a set of a person; the set shown before, if any, is no longer shown."""
    row = person_row(people, person)
    if people[row, 3] == 0:
        people[row, 0] = person
        people[row, 3] = 1
        tally[PEOPLE] += 1
        tally[SHOWN] += 1
    else:
        tally[ALONE] += leave_group(groups, people[row, 1], people[row, 2], k)
    people[row, 1] = low
    people[row, 2] = high
    if groups[group_slot(groups, low, high), 2] < 0:
        tally[GROUPS] += 1
    tally[ALONE] += join_group(groups, low, high, k)


@piece
def may_show(people, groups, tally, row, low, high, size, z, expected, k, p):
    """Whether one more value of a person may be shown, so that their set becomes another.

    It may if the target is met afterwards or no more people stand alone than before. For more than two people, a set
    that no one shows yet counts double: room is left for those who are to join it. A first value may also be shown if
    enough others are expected to show just that.
    """
    is_shown = people[row, 3] != 0
    alike = max(groups[group_slot(groups, low, high), 2], 0)
    change = change_by_joining(alike, k)
    if is_shown:
        change += change_by_leaving(groups[group_slot(groups, people[row, 1], people[row, 2]), 2], k)
    if change <= 0:
        return True
    shown = tally[SHOWN] + (0 if is_shown else 1)
    counted = (tally[ALONE] + change) * (2 if alike == 0 and k > 2 else 1)
    if shown - counted >= p * shown:
        return True
    is_first = people[row, 1] == 0 and people[row, 2] == 0
    is_sure = alike > 0 or size >= _SURE * z
    return is_first and is_sure and expected >= _EXPECTED * (k - 1 - alike)


@kernel
def publish_rows(
    pairs,
    people,
    groups,
    tally,
    persons,
    values,
    sizes,
    usable,
    times,
    end,
    windows,
    z,
    k,
    p,
    keeps_blank,
    levels,
    first,
):
    """Decide about rows in the order of their times; return the first that does not fit into the tables.

    `values`, `sizes` and `levels` have one row for each column; a size of 0 is a missing value. A level becomes 0
    where the value is published. With `keeps_blank` every person with a usable row is shown, if only by blank rows.
    """
    columns = len(sizes)
    for i in range(first, len(times)):
        if not usable[i]:
            continue
        if (
            2 * (tally[PAIRS] + columns) > len(pairs)
            or 2 * (tally[PEOPLE] + 1) > len(people)
            or 2 * (tally[GROUPS] + columns + 1) > len(groups)
        ):
            return i
        person = persons[i, 0]
        row = person_row(people, person)
        if keeps_blank and people[row, 3] == 0:
            put(people, groups, tally, person, np.int64(0), np.int64(0), k)
        for c in range(columns):
            size = sizes[c, i]
            if size == 0:
                continue
            pair = note_peak(pairs, tally, person, values[c, i], size)
            if size < z:
                continue
            if pairs[pair, 3] == 0:
                low = plus_low(people[row, 1], values[c, i])
                high = plus_high(people[row, 2], values[c, i])
                expected = size * min((end - times[i]) / windows[c], 1.0)
                if not may_show(people, groups, tally, row, low, high, size, z, expected, k, p):
                    continue
                put(people, groups, tally, person, low, high, k)
                pairs[pair, 3] = 1
            levels[c, i] = 0
    return len(times)


@kernel
def show_again(people, roomier, groups, tally, k):
    """Show everyone's set in empty tables; `people` may be a table or just those who are shown."""
    for i in range(len(people)):
        if people[i, 3] != 0:
            put(roomier, groups, tally, people[i, 0], people[i, 1], people[i, 2], k)
