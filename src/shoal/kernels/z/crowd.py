"""Who exposed what within the window: exact counts of people per attribute, O(1) per event.

State (all int64; CrowdTable allocates it):

``pool``    ring of sightings in time order, one row [person low, person high, time, attribute]; attribute is -1
            if the same pair was seen again later. Expiry reads it from the head, so nothing idle stays.
``pairs``   index of ``pool``: lines of eight words. The first word of a line is the number of the last sighting
            whose entry found no room in this line and went to the next one; the others are entries,
            tag << 32 | number of the sighting. Sightings are numbered as they enter the ring, from 1 to LAST_NUMBER;
            then the caller makes room and numbering starts again. An entry whose number has left the ring is stale:
            it is overwritten, never erased.
``attrs``   one row [key low, key high, people, next free] for each attribute inside the window.
``names``   open-addressed index of ``attrs`` (index.py). It has no stale entries.
``marks``   the scalars below. OLDEST is the number of the sighting at HEAD.

ATTR_LIMIT keeps ``names`` from filling up, which bounds
every probe; ``pairs`` has more entries than the ring has rows. A kernel that finds no room stops and returns how far it
came; the caller makes room and calls it again.

People behind one value never matter for another, so values are dealt to shards: each has tables of its own, and threads
count them side by side.

Indices are converted to unsigned numbers on purpose: a signed index may count from the end, and checking that on every
access took a third of the time.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import inlined, kernel, piece
from shoal.kernels.instructions import WORDS, compare_line, lowest_bit, prefetch
from shoal.kernels.z.index import LOW32, entry, erase, find_name, find_position, fold, home_of, pair_tag, position_of

HEAD, USED, LIVE, OLDEST, ATTRS, TOP, FREE, ATTR_LIMIT = range(8)
MARKS = 8
PERSON_LOW, PERSON_HIGH, TIME, ATTRIBUTE = 0, 1, 2, 3
KEY_LOW, KEY_HIGH, PEOPLE, NEXT_FREE = 0, 1, 2, 3

_ENTRIES = np.int64(0xFE)  # the words of a line that are entries
LAST_NUMBER = 2**32 - 1
PRIVATE = -1
AHEAD = 12  # events between prefetching memory and using it: longer than memory takes, shorter than the cache


@inlined
def line_of(pairs, tag):
    """The first word of the line where the search for a pair begins."""
    return home_of(len(pairs) >> 3, tag) << 3


@inlined
def next_line(pairs, line):
    """The next line, round the end."""
    following = line + WORDS
    return following if following < len(pairs) else 0


@inlined
def ring_row(pool, head, steps):
    """The row of the ring some steps after its head."""
    at = head + steps
    return at if at < len(pool) else at - len(pool)


@piece
def find_word(pairs, pool, head, oldest, used, tag, low, high, attribute):
    """The word of a pair's live entry and True; else the first stale word where an entry can be written, and False."""
    line = line_of(pairs, tag)
    stale_word = np.int64(-1)
    for _ in range(len(pairs) >> 3):
        found = compare_line(pairs, line, tag, oldest, used)
        matches = found & _ENTRIES
        while matches != 0:
            word = line + lowest_bit(matches)
            at = ring_row(pool, head, (pairs[np.uint64(word)] & LOW32) - oldest)
            if pool[np.uint64(at), 0] == low and pool[np.uint64(at), 1] == high and pool[np.uint64(at), 3] == attribute:
                return word, True
            matches &= matches - 1
        stale = ~(found >> WORDS) & _ENTRIES
        if stale_word < 0 and stale != 0:
            stale_word = line + lowest_bit(stale)
        if stale_word >= 0 and pairs[np.uint64(line)] < oldest:
            break
        line = next_line(pairs, line)
    return stale_word, False


@piece
def write_entry(pairs, tag, word, number):
    """Write the entry of a sighting; every line that a search passes before it gets the sighting's number."""
    line = line_of(pairs, tag)
    while line != word & ~np.int64(7):
        pairs[np.uint64(line)] = number
        line = next_line(pairs, line)
    pairs[np.uint64(word)] = np.int64((tag << 32) | number)


@piece
def expire_ring(pool, attrs, names, marks, head, used, live, oldest_time):
    """Remove sightings before a time from the ring; return its new head, the rows used and the live ones."""
    while used > 0:
        attribute = pool[np.uint64(head), 3]
        if attribute >= 0:
            if pool[np.uint64(head), 2] >= oldest_time:
                break
            live -= 1
            attrs[np.uint64(attribute), 2] -= 1
            if attrs[np.uint64(attribute), 2] == 0:
                forget_attribute(attrs, names, marks, attribute)
        head = ring_row(pool, head, 1)
        used -= 1
    return head, used, live


@kernel
def expire(pool, attrs, names, marks, oldest_time):
    """Forget every sighting before a time; one at exactly that time still counts."""
    head, used, live = expire_ring(pool, attrs, names, marks, marks[HEAD], marks[USED], marks[LIVE], oldest_time)
    marks[OLDEST] += marks[USED] - used
    marks[HEAD] = head
    marks[USED] = used
    marks[LIVE] = live


@piece
def forget_attribute(attrs, names, marks, attribute):
    """Free the row of an attribute that no one in the window has."""
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
def see_in_ring(pool, pairs, attrs, head, oldest, used, low, high, time, attribute):
    """Record that a person exposed an attribute at a time: 0 if that is known, 1 if a row is used, 2 if for a new pair.

    The scalars of the ring are arguments and not marks: the compiler keeps them in registers.
    """
    tag = pair_tag(low, attrs[np.uint64(attribute), 0])
    word, is_known = find_word(pairs, pool, head, oldest, used, tag, low, high, attribute)
    if is_known:
        at = ring_row(pool, head, (pairs[np.uint64(word)] & LOW32) - oldest)
        if pool[np.uint64(at), 2] == time:
            return 0
        pool[np.uint64(at), 3] = -1
    else:
        attrs[np.uint64(attribute), 2] += 1
    write_entry(pairs, tag, word, oldest + used)
    tail = np.uint64(ring_row(pool, head, used))
    pool[tail, 0] = low
    pool[tail, 1] = high
    pool[tail, 2] = time
    pool[tail, 3] = attribute
    return 1 if is_known else 2


@piece
def see(pool, pairs, attrs, marks, low, high, time, attribute):
    """Record that a person exposed an attribute at a time; return how many people now have it."""
    seen = see_in_ring(pool, pairs, attrs, marks[HEAD], marks[OLDEST], marks[USED], low, high, time, attribute)
    marks[USED] += seen > 0
    marks[LIVE] += seen > 1
    return attrs[np.uint64(attribute), 2]


@kernel
def has_room(pool, marks, sightings):
    """Whether this many more sightings, each of a new attribute at worst, find room."""
    return (
        len(pool) - marks[USED] >= sightings
        and marks[ATTRS] + sightings <= marks[ATTR_LIMIT]
        and marks[OLDEST] + marks[USED] + sightings <= LAST_NUMBER + 1
    )


@kernel
def prefetch_pair(pairs, person_low, value_low):
    """Prefetch the line that a pair will need soon."""
    prefetch(pairs, line_of(pairs, pair_tag(person_low, value_low)))


@inlined
def shard_of(value_high, shards):
    """The shard of a value; processes that share a stream split it by other bits of the key."""
    return ((value_high & LOW32) * shards) >> 32


@kernel
def deal_rows(values, present, rows, bounds):
    """Deal rows to shards by value: those of shard s become rows[bounds[s]:bounds[s + 1]], in order.

    Rows without a value are left out. `bounds` has one entry more than there are shards, `rows` one more than values.
    """
    shards = len(bounds) - 1
    at = 0
    for shard in range(shards):
        bounds[shard] = at
        for i in range(len(values)):
            rows[np.uint64(at)] = i  # the next row overwrites it unless it belongs here: no branch to guess
            at += present[i] & (shard_of(values[np.uint64(i), 1], shards) == shard)
    bounds[shards] = at


@kernel
def count_values(pool, pairs, attrs, names, marks, persons, values, times, usable, rows, window, first, sizes):
    """Count the people who exposed the value of some events within the window, 0 for an event that is not usable.

    The events in `rows` are in time order; counting begins at rows[first]. Algorithm 1 of the paper, with one expiry
    order for all attributes instead of one list each. Returns the place of the first row not counted.
    """
    head, used, live = marks[HEAD], marks[USED], marks[LIVE]
    end = marks[OLDEST] + used
    reached = len(rows)
    for at in range(first, len(rows)):
        i = rows[at]
        sizes[i] = 0
        if not usable[i]:
            continue
        if at + AHEAD < len(rows):
            coming = rows[at + AHEAD]
            prefetch_pair(pairs, persons[coming, 0], values[coming, 0])
            prefetch(names, home_of(len(names), fold(values[coming, 0])))
        head, used, live = expire_ring(pool, attrs, names, marks, head, used, live, times[i] - window)
        if used == len(pool) or marks[ATTRS] == marks[ATTR_LIMIT] or end > LAST_NUMBER:
            reached = at
            break
        attribute = attribute_row(attrs, names, marks, values[i, 0], values[i, 1])
        low, high = persons[i, 0], persons[i, 1]
        seen = see_in_ring(pool, pairs, attrs, head, end - used, used, low, high, times[i], attribute)
        used += seen > 0
        end += seen > 0
        live += seen > 1
        sizes[i] = attrs[np.uint64(attribute), 2]
    marks[HEAD] = head
    marks[USED] = used
    marks[LIVE] = live
    marks[OLDEST] = end - used
    return reached


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


@kernel
def index_pairs(pool, attrs, marks, pairs):
    """Fill an empty index with the live sightings of a packed ring: all its rows, from the first on."""
    for at in range(marks[USED]):
        ahead = min(at + AHEAD, marks[USED] - 1)
        prefetch_pair(pairs, pool[np.uint64(ahead), 0], attrs[np.uint64(pool[np.uint64(ahead), 3]), 0])
        low, high, attribute = pool[np.uint64(at), 0], pool[np.uint64(at), 1], pool[np.uint64(at), 3]
        tag = pair_tag(low, attrs[np.uint64(attribute), 0])
        word, _ = find_word(pairs, pool, np.int64(0), marks[OLDEST], at, tag, low, high, attribute)
        write_entry(pairs, tag, word, marks[OLDEST] + at)
