"""Who exposed what within the window: exact counts of people per attribute, O(1) an event.

State (all int64; see CrowdTable for who allocates it):

``pool``    ring of sightings in time order, one row [person low, person high, time, attribute]; attribute is -1
            where the same pair was seen again later. Expiry reads it from the head, so nothing idle stays.
``pairs``   open-addressed index of ``pool``; 0 is empty, else tag << 32 | position + 1. Entries of sightings that
            have expired stay until the index is made anew, and are told by where they point: outside the ring's
            live part, or at another pair.
``attrs``   one row [key low, key high, people, next free] for each attribute inside the window.
``names``   open-addressed index of ``attrs``, in the same form as ``pairs``, but without stale entries.
``marks``   the scalars below.

The tag alone says an entry's home slot, so entries move without looking at what they point to. PAIR_LIMIT and
ATTR_LIMIT keep both indexes from filling up, which bounds every probe: a kernel that finds no room stops and says
how far it came, the caller makes room and goes on.

Indices are turned into unsigned numbers on purpose: a signed index may count from the end, and asking which way it
counts on every access took a third of the time.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import inlined, kernel, piece
from shoal.kernels.prefetching import prefetch

HEAD, USED, LIVE, FILLED, ATTRS, TOP, FREE, PAIR_LIMIT, ATTR_LIMIT = range(9)
MARKS = 9
PERSON_LOW, PERSON_HIGH, TIME, ATTRIBUTE = 0, 1, 2, 3
KEY_LOW, KEY_HIGH, PEOPLE, NEXT_FREE = 0, 1, 2, 3

_LOW32 = np.int64(0xFFFFFFFF)
PRIVATE = -1
AHEAD = 12  # events between asking for memory and using it: longer than memory takes, shorter than the cache


@inlined
def fold(word):
    """The tag of a key: 32 well-mixed bits."""
    return (word ^ (word >> 32)) & _LOW32


@inlined
def pair_tag(person_low, value_low):
    """The tag of a pair: both words are hashes under keys of their own, so their sum is as good as one."""
    return fold(person_low + value_low)


@inlined
def entry(tag, position):
    """What an index holds for a position."""
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
def tag_of(held):
    """The tag of what an index holds."""
    return (held >> 32) & _LOW32


@inlined
def position_of(held):
    """The position an index entry points at."""
    return (held & _LOW32) - 1


@piece
def is_pair_at(pool, marks, at, low, high, attribute):
    """Whether a position holds a live sighting of this pair."""
    return (
        pool[np.uint64(at), 0] == low
        and pool[np.uint64(at), 1] == high
        and pool[np.uint64(at), 3] == attribute
        and steps_between(len(pool), marks[HEAD], at) < marks[USED]
    )


@piece
def find_pair(pairs, pool, marks, tag, low, high, attribute):
    """Slot of the pair's live entry, or of the empty slot where it belongs."""
    slot = home_of(len(pairs), tag)
    while pairs[np.uint64(slot)] != 0:
        held = pairs[np.uint64(slot)]
        if tag_of(held) == tag and is_pair_at(pool, marks, position_of(held), low, high, attribute):
            break
        slot = after(len(pairs), slot)
    return slot


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


@kernel
def expire(pool, attrs, names, marks, oldest):
    """Forget every sighting before `oldest`; a sighting at exactly `oldest` still counts."""
    capacity = len(pool)
    head = marks[HEAD]
    used = marks[USED]
    while used > 0:
        attribute = pool[np.uint64(head), 3]
        if attribute >= 0:
            if pool[np.uint64(head), 2] >= oldest:
                break
            marks[LIVE] -= 1
            attrs[np.uint64(attribute), 2] -= 1
            if attrs[np.uint64(attribute), 2] == 0:
                forget_attribute(attrs, names, marks, attribute)
        head += 1
        if head == capacity:
            head = 0
        used -= 1
    marks[HEAD] = head
    marks[USED] = used


@piece
def forget_attribute(attrs, names, marks, attribute):
    """Free the row of an attribute nobody in the window has."""
    erase(names, find_position(names, fold(attrs[np.uint64(attribute), 0]), attribute))
    attrs[np.uint64(attribute), 3] = marks[FREE]
    marks[FREE] = attribute
    marks[ATTRS] -= 1


@piece
def attribute_row(attrs, names, marks, low, high):
    """Row of an attribute, made if there is none."""
    tag = fold(low)
    slot = find_name(names, attrs, tag, low, high)
    if names[np.uint64(slot)] != 0:
        return position_of(names[np.uint64(slot)])
    row = marks[FREE]
    if row >= 0:
        marks[FREE] = attrs[np.uint64(row), 3]
    else:
        row = marks[TOP]
        marks[TOP] += 1
    attrs[np.uint64(row), 0] = low
    attrs[np.uint64(row), 1] = high
    attrs[np.uint64(row), 2] = 0
    names[np.uint64(slot)] = entry(tag, row)
    marks[ATTRS] += 1
    return row


@piece
def see(pool, pairs, attrs, marks, low, high, time, attribute):
    """Note that a person exposed an attribute at a time; return how many people now have it."""
    tag = pair_tag(low, attrs[np.uint64(attribute), 0])
    slot = find_pair(pairs, pool, marks, tag, low, high, attribute)
    held = pairs[np.uint64(slot)]
    if held != 0:
        at = position_of(held)
        if pool[np.uint64(at), 2] == time:
            return attrs[np.uint64(attribute), 2]
        pool[np.uint64(at), 3] = -1
    else:
        attrs[np.uint64(attribute), 2] += 1
        marks[LIVE] += 1
        marks[FILLED] += 1
    tail = marks[HEAD] + marks[USED]
    if tail >= len(pool):
        tail -= len(pool)
    pool[np.uint64(tail), 0] = low
    pool[np.uint64(tail), 1] = high
    pool[np.uint64(tail), 2] = time
    pool[np.uint64(tail), 3] = attribute
    pairs[np.uint64(slot)] = entry(tag, tail)
    marks[USED] += 1
    return attrs[np.uint64(attribute), 2]


@kernel
def has_room(pool, marks, sightings):
    """Whether this many more sightings, each of a new attribute at worst, find room."""
    return (
        len(pool) - marks[USED] >= sightings
        and marks[FILLED] + sightings <= marks[PAIR_LIMIT]
        and marks[ATTRS] + sightings <= marks[ATTR_LIMIT]
    )


@kernel
def foresee_value(pairs, person_low, value_low):
    """Ask for the slot an event will need soon."""
    prefetch(pairs, home_of(len(pairs), pair_tag(person_low, value_low)))


@kernel
def decide_values(pool, pairs, attrs, names, marks, persons, values, times, usable, z, window, first, levels):
    """Decide events in time order from `first` on: level 0 where at least z people exposed the value, else PRIVATE.

    Algorithm 1 of the paper, with one expiry order for all attributes instead of one list each. Returns the first
    event not decided.
    """
    for i in range(first, len(times)):
        levels[i] = PRIVATE
        if not usable[i]:
            continue
        time = times[i]
        if i + AHEAD < len(times):
            foresee_value(pairs, persons[i + AHEAD, 0], values[i + AHEAD, 0])
        expire(pool, attrs, names, marks, time - window)
        if not has_room(pool, marks, np.int64(1)):
            return i
        attribute = attribute_row(attrs, names, marks, values[i, 0], values[i, 1])
        people = see(pool, pairs, attrs, marks, persons[i, 0], persons[i, 1], time, attribute)
        if people >= z:
            levels[i] = 0
    return len(times)


@kernel
def count_values(pool, pairs, attrs, names, marks, persons, values, times, usable, window, first, sizes):
    """Count the people behind events in time order from `first` on, as decide_values does; 0 for one that is unusable.

    Returns the first event not counted.
    """
    for i in range(first, len(times)):
        sizes[i] = 0
        if not usable[i]:
            continue
        time = times[i]
        if i + AHEAD < len(times):
            foresee_value(pairs, persons[i + AHEAD, 0], values[i + AHEAD, 0])
        expire(pool, attrs, names, marks, time - window)
        if not has_room(pool, marks, np.int64(1)):
            return i
        attribute = attribute_row(attrs, names, marks, values[i, 0], values[i, 1])
        sizes[i] = see(pool, pairs, attrs, marks, persons[i, 0], persons[i, 1], time, attribute)
    return len(times)


@kernel
def decide_paths(pool, pairs, attrs, names, marks, persons, nodes, starts, times, z, window, first, levels):
    """Decide events in time order at the most specific node that passes z by the residual rule.

    nodes[starts[i]:starts[i + 1]] are the keys from the value of event i up to the root. A node passes when z
    people have an exposure under it that was not released strictly below it, so an exposure is noted at every
    node up to the one it is released at, and at all of them when it is not released. Returns the first event not
    decided.
    """
    for i in range(first, len(times)):
        levels[i] = PRIVATE
        if starts[i] == starts[i + 1]:
            continue
        time = times[i]
        expire(pool, attrs, names, marks, time - window)
        if not has_room(pool, marks, starts[i + 1] - starts[i]):
            return i
        for at in range(starts[i], starts[i + 1]):
            attribute = attribute_row(attrs, names, marks, nodes[at, 0], nodes[at, 1])
            people = see(pool, pairs, attrs, marks, persons[i, 0], persons[i, 1], time, attribute)
            if people >= z:
                levels[i] = at - starts[i]
                break
    return len(times)


@kernel
def pack(pool, attrs, marks, new_pool, new_attrs, renumbered):
    """Copy what is live, in time order, to the front of new arrays; number attributes as they first appear.

    The result depends on what was seen alone, not on how the old arrays came about. renumbered is -1 for all.
    """
    capacity = len(pool)
    at = marks[HEAD]
    live = 0
    known = 0
    for _ in range(marks[USED]):
        attribute = pool[np.uint64(at), 3]
        if attribute >= 0:
            if renumbered[attribute] < 0:
                renumbered[attribute] = known
                new_attrs[known, 0] = attrs[np.uint64(attribute), 0]
                new_attrs[known, 1] = attrs[np.uint64(attribute), 1]
                new_attrs[known, 2] = attrs[np.uint64(attribute), 2]
                known += 1
            new_pool[live, 0] = pool[np.uint64(at), 0]
            new_pool[live, 1] = pool[np.uint64(at), 1]
            new_pool[live, 2] = pool[np.uint64(at), 2]
            new_pool[live, 3] = renumbered[attribute]
            live += 1
        at += 1
        if at == capacity:
            at = 0
    return live, known


@piece
def put(index, tag, position):
    """Add an entry that is not there yet."""
    slot = home_of(len(index), tag)
    while index[np.uint64(slot)] != 0:
        slot = after(len(index), slot)
    index[np.uint64(slot)] = entry(tag, position)


@kernel
def foresee_entry(pool, attrs, marks, pairs, nth):
    """Ask for the slot that the nth sighting of the ring will get."""
    at = marks[HEAD] + nth
    if at >= len(pool):
        at -= len(pool)
    if nth < marks[USED] and pool[np.uint64(at), 3] >= 0:
        foresee_value(pairs, pool[np.uint64(at), 0], attrs[pool[np.uint64(at), 3], 0])


@kernel
def index_pairs(pool, attrs, marks, pairs):
    """Fill an empty index with what is live in the ring."""
    at = marks[HEAD]
    for nth in range(marks[USED]):
        foresee_entry(pool, attrs, marks, pairs, nth + AHEAD)
        attribute = pool[np.uint64(at), 3]
        if attribute >= 0:
            put(pairs, pair_tag(pool[np.uint64(at), 0], attrs[np.uint64(attribute), 0]), at)
        at = after(len(pool), at)
    marks[FILLED] = marks[LIVE]


@kernel
def index_names(attrs, known, names):
    """Fill an empty index with the first rows of packed attributes."""
    for at in range(known):
        put(names, fold(attrs[np.uint64(at), 0]), at)
