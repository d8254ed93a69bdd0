"""Published groups of the flexible method: a table from labels to how many people are known to share them.

A key is a row of numbers: a code for each normal quasi-identifier, then a label for each sparse one, NONE for
those that the group does not depend on. Keys are compared whole, so two groups never share an entry.
Counts are lower bounds: the most different people that one round published in the group.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.randomness import mixed
from shoal.kernels.sorting import copy_run

NONE = -2
"""Instead of a label: the group does not depend on it."""
NO_ENTRY = -1
ENTRIES, ROUND, NUMBERS = range(3)
GROUPS_META = 3


class Groups(NamedTuple):
    """The table; `slots` is a power of two, `meta` counts entries, rounds, and assigned numbers."""

    slots: np.ndarray
    keys: np.ndarray
    counts: np.ndarray
    used: np.ndarray
    numbers: np.ndarray
    seed: np.ndarray
    meta: np.ndarray


@piece
def _slot_of(groups, key):
    """The slot of a key, or the free one where it belongs."""
    word = groups.seed[0]
    for i in range(len(key)):
        word = mixed(word ^ np.uint64(key[i])) + groups.seed[1]
    mask = np.uint64(len(groups.slots) - 1)
    slot = np.int64(mixed(word) & mask)
    for _ in range(len(groups.slots)):
        entry = groups.slots[slot]
        if entry == NO_ENTRY:
            return slot
        is_same = True
        for i in range(len(key)):
            if groups.keys[entry, i] != key[i]:
                is_same = False
                break
        if is_same:
            return slot
        slot = np.int64(np.uint64(slot + 1) & mask)
    return np.int64(0)  # never: half of the slots are free


@piece
def find_group(groups, key):
    """The entry of a key, NO_ENTRY where there is none."""
    return groups.slots[_slot_of(groups, key)]


@piece
def keep_group(groups, key, people):
    """Record that this number of people share a key now; return its entry."""
    slot = _slot_of(groups, key)
    entry = groups.slots[slot]
    if entry == NO_ENTRY:
        entry = groups.meta[ENTRIES]
        groups.meta[ENTRIES] += 1
        groups.slots[slot] = entry
        copy_run(key, 0, len(key), groups.keys[entry], 0)
        groups.counts[entry] = 0
        groups.numbers[entry] = groups.meta[NUMBERS]
        groups.meta[NUMBERS] += 1
    groups.counts[entry] = max(groups.counts[entry], people)
    groups.used[entry] = groups.meta[ROUND]
    return entry


@kernel
def place_groups(groups):
    """Fill the slots again with all entries."""
    for slot in range(len(groups.slots)):
        groups.slots[slot] = NO_ENTRY
    for entry in range(groups.meta[ENTRIES]):
        groups.slots[_slot_of(groups, groups.keys[entry])] = entry


@kernel
def join_groups(groups, finest, values, crowds, k_s, key, joined):
    """Find rows that may be published unchanged: their cell and own sparse values are published for enough people.

    `joined` gets the entry of each such row, NO_ENTRY for the others.
    """
    wide, deep = len(finest), len(values)
    for row in range(len(crowds)):
        joined[row] = NO_ENTRY
        for a in range(len(key)):
            key[a] = finest[a, row] if a < wide else NONE
        entry = find_group(groups, key)
        if entry == NO_ENTRY or groups.counts[entry] < crowds[row]:
            continue
        whole = entry
        for s in range(deep):
            key[wide + s] = values[s, row]
        if deep:
            whole = find_group(groups, key)
            if whole == NO_ENTRY or groups.counts[whole] < k_s[crowds[row]]:
                continue
        groups.used[entry] = groups.meta[ROUND]
        groups.used[whole] = groups.meta[ROUND]
        joined[row] = whole
