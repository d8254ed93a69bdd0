"""Open-addressed indexes: which row of a table has a key. The tag of the key alone says where the search begins.

An index has at least twice as many slots as its table has rows, so every search ends; 0 is an empty slot, else
tag << 32 | position + 1.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import inlined, kernel, piece

LOW32 = np.int64(0xFFFFFFFF)


@inlined
def fold(word):
    """The tag of a key: 32 well-mixed bits."""
    return (word ^ (word >> 32)) & LOW32


@inlined
def pair_tag(person_low, value_low):
    """The tag of a pair: both words are hashes under keys of their own, so their sum is as good as one."""
    return fold(person_low + value_low)


@inlined
def entry(tag, position):
    """The entry of ``names`` for a position."""
    return np.int64((tag << 32) | (position + 1))


@inlined
def home_of(size, tag):
    """The slot where the search for a tag begins: tags spread evenly over any size."""
    return (tag * size) >> 32


@inlined
def after(size, slot):
    """The next slot, round the end."""
    following = slot + 1
    return following if following < size else 0


@inlined
def steps_between(size, start, stop):
    """Slots from start on to stop, round the end."""
    steps = stop - start
    return steps if steps >= 0 else steps + size


@inlined
def tag_of(found):
    """The tag of an entry."""
    return (found >> 32) & LOW32


@inlined
def position_of(found):
    """The position that an entry of ``names`` points at."""
    return (found & LOW32) - 1


@piece
def find_name(names, attrs, tag, low, high):
    """Slot of the attribute's entry, or of the empty slot where it belongs."""
    slot = home_of(len(names), tag)
    while names[np.uint64(slot)] != 0:
        if tag_of(names[np.uint64(slot)]) == tag:
            at = position_of(names[np.uint64(slot)])
            if attrs[np.uint64(at), 0] == low and attrs[np.uint64(at), 1] == high:
                break
        slot = after(len(names), slot)
    return slot


@piece
def find_position(index, tag, position):
    """Slot of the entry that points at a position; it must be there."""
    slot = home_of(len(index), tag)
    wanted = entry(tag, position)
    while index[np.uint64(slot)] != wanted:
        slot = after(len(index), slot)
    return slot


@piece
def erase(index, slot):
    """Empty a slot and close the gap, so that no search stops too early."""
    gap = slot
    probe = after(len(index), slot)
    while index[np.uint64(probe)] != 0:
        home = home_of(len(index), tag_of(index[np.uint64(probe)]))
        if steps_between(len(index), home, probe) >= steps_between(len(index), gap, probe):
            index[np.uint64(gap)] = index[np.uint64(probe)]
            gap = probe
        probe = after(len(index), probe)
    index[np.uint64(gap)] = 0


@piece
def put(index, tag, position):
    """Add an entry that is not there yet."""
    slot = home_of(len(index), tag)
    while index[np.uint64(slot)] != 0:
        slot = after(len(index), slot)
    index[np.uint64(slot)] = entry(tag, position)


@kernel
def index_names(attrs, known, names):
    """Fill an empty index with the first rows of packed attributes."""
    for at in range(known):
        put(names, fold(attrs[np.uint64(at), 0]), at)
