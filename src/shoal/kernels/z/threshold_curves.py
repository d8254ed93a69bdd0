"""Who would be k-anonymous by their released sets, for every threshold z at once.

With a fixed z an attribute belongs to what is released of a person exactly when, at one of the person's exposures, at
least z people stood behind it: when its peak is at least z. Taking (person, attribute) pairs from the highest peak down
therefore runs through the sets of all thresholds, one pair at a time.

``groups``   open-addressed table of sets, one row [sum low, sum high, people]; a set is known by the sum of its
             attributes' hashed words, which does not depend on their order. Rows of sets that no one has any more stay.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel, piece

_MIX = np.int64(-7046029254386353131)
_MIX_AGAIN = np.int64(-4658895280553007687)


@piece
def scrambled(word):
    """A word whose bits all depend on all bits of another."""
    word = (word ^ ((word >> 30) & np.int64(0x3FFFFFFFF))) * _MIX_AGAIN
    word = (word ^ ((word >> 27) & np.int64(0x1FFFFFFFFF))) * np.int64(-7723592293110705685)
    return word ^ ((word >> 31) & np.int64(0x1FFFFFFFF))


@piece
def group_slot(groups, low, high):
    """Row of a set, or the free row where it belongs: one that was never used has no people and no sum."""
    mask = np.int64(len(groups) - 1)
    slot = scrambled(low + high) & mask
    while groups[slot, 2] >= 0 and (groups[slot, 0] != low or groups[slot, 1] != high):
        slot = (slot + 1) & mask
    return slot


@piece
def plus_low(low, item):
    """The first half of the sum of a set and one more attribute."""
    return low + scrambled(item + _MIX)


@piece
def plus_high(high, item):
    """The second half."""
    return high + scrambled(item ^ _MIX_AGAIN)


@piece
def change_by_leaving(people, k):
    """By how much the number of people in groups below k changes if one of a group leaves it."""
    if people == k:
        return k - 1
    return -1 if people < k else 0


@piece
def change_by_joining(people, k):
    """By how much the number of people in groups below k changes if a group of `people` gets one more."""
    if people + 1 == k:
        return 1 - k
    return 1 if people + 1 < k else 0


@piece
def leave_group(groups, low, high, k):
    """Take a person out of a group; return by how much the number of people in groups below k changes."""
    slot = group_slot(groups, low, high)
    people = groups[slot, 2]
    groups[slot, 2] = people - 1
    return change_by_leaving(people, k)


@piece
def join_group(groups, low, high, k):
    """Put a person into a group; return by how much the number of people in groups below k changes."""
    slot = group_slot(groups, low, high)
    people = max(groups[slot, 2], 0)
    groups[slot, 0] = low
    groups[slot, 1] = high
    groups[slot, 2] = people + 1
    return change_by_joining(people, k)


@kernel
def curve_of_sets(person, item, peak, k, sums, groups, thresholds, shown, alone):
    """For every threshold from the highest down: how many people are shown, and how many of them are not k-anonymous.

    Pairs stand from the highest peak down, each once; `sums` is 0 for every person and `groups` has people -1
    throughout. Returns how many thresholds there are.
    """
    found = 0
    visible = 0
    exposed = 0
    for i in range(len(person)):
        who = person[i]
        low = sums[who, 0]
        high = sums[who, 1]
        if low == 0 and high == 0:
            visible += 1
        else:
            exposed += leave_group(groups, low, high, k)
        low = plus_low(low, item[i])
        high = plus_high(high, item[i])
        sums[who, 0] = low
        sums[who, 1] = high
        exposed += join_group(groups, low, high, k)
        if i + 1 == len(person) or peak[i + 1] != peak[i]:
            thresholds[found] = peak[i]
            shown[found] = visible
            alone[found] = exposed
            found += 1
    return found


@kernel
def count_crowds(value, time, before, after, window, out):
    """For events by value and time, how many people exposed the value within the closed window up to each.

    `before` and `after` are the places of the same person's neighbouring events of that value, -1 and the number of
    events where there is none.
    """
    head = 0
    people = 0
    for i in range(len(value)):
        if i > 0 and value[i] != value[i - 1]:
            head = i
            people = 0
        while time[head] < time[i] - window:
            if after[head] >= i:
                people -= 1
            head += 1
        if before[i] < head:
            people += 1
        out[i] = people
