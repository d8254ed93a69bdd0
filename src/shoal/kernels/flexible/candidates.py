"""Candidates of a round: blocks that enough people share, and in each block the labels that enough people share.

A block is one label for each normal quasi-identifier. Blocks are enumerated from the coarsest labels down, one
quasi-identifier after the other, as long as enough pending people are in them; a published block is a candidate for any
number of people. A tuple is a block with one label for each sparse quasi-identifier.

Labels of all sparse attributes are numbered together, values included. `starts` and `above` list what lies above a
value, without the root; `rank` orders labels by preference (values, then fewest leaves, then the property's priority,
then the name), `by_rank` is its inverse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.flexible.groups import NO_ENTRY, NONE, find_group
from shoal.kernels.randomness import mixed
from shoal.kernels.sorting import copy_run, sort_rows

END = -1
BLOCKS, BLOCK_ROWS, TUPLES, TUPLE_ROWS, IS_FULL = range(5)
SIZES = 5
"""Number of blocks, rows of blocks, tuples and rows of tuples in use, and whether there was no space for more."""


class Labels(NamedTuple):
    """What lies above each value of the sparse attributes, and what labels lose."""

    starts: np.ndarray
    above: np.ndarray
    rank: np.ndarray
    by_rank: np.ndarray
    loss: np.ndarray
    roots: np.ndarray
    """The root label of each attribute, NONE where it may not be published; the next label is a missing value."""
    k_s: np.ndarray
    """Number of people a label needs, by the number its block needs."""


class Pending(NamedTuple):
    """Pending rows: `paths` and `losses` have a line for each depth of each normal quasi-identifier."""

    paths: np.ndarray
    losses: np.ndarray
    first: np.ndarray
    """The line of each attribute's root; one more for the end."""
    floors: np.ndarray
    """The coarsest depth of each attribute that may be published."""
    values: np.ndarray
    persons: np.ndarray
    crowds: np.ndarray
    """Number of people each label needs, in lines like `paths`: the largest number of any value below it."""
    least: np.ndarray
    """Number of people every block needs, and the smallest number that any block needs."""


BLOCK, BEGIN, STOP, LOSS, PUBLISHED, PEOPLE = range(6)
"""Numbers of a tuple: its block, begin and end of its rows, whether it is published, people assigned to it."""
NEED, K_S, CANDIDATE, NEXT, FIRST_TUPLE, LAST_TUPLE = range(6, 12)
"""Further numbers of a block: people it needs, and each of its labels; the next attribute to divide it by."""
TUPLE_NUMBERS, BLOCK_NUMBERS = 6, 12


class Blocks(NamedTuple):
    """Blocks; the rows of one are contiguous in `rows`, in order of arrival."""

    depths: np.ndarray
    info: np.ndarray
    """By block: its numbers."""
    rows: np.ndarray
    slots: np.ndarray
    """By place in `rows`: a number for the person within the block."""
    counts: np.ndarray
    """By slot: the person's rows that are assigned to the block."""


class Tuples(NamedTuple):
    """Blocks with labels of the sparse attributes; like blocks, with the slot of each row in its block."""

    info: np.ndarray
    labels: np.ndarray
    rows: np.ndarray
    slots: np.ndarray
    block_slots: np.ndarray
    counts: np.ndarray


class Scratch(NamedTuple):
    """Scratch space."""

    seen: np.ndarray
    """By person: the last count in which they were counted."""
    slot_of: np.ndarray
    tick: np.ndarray
    heads: np.ndarray
    """By label: its first place, END if there is none."""
    place_of: np.ndarray
    next_place: np.ndarray
    present: np.ndarray
    """Ranks of the labels that have places."""
    sizes: np.ndarray
    sums: np.ndarray
    """Numbers of rows, and checksums of them, of the labels accepted so far: equal for equal sets of rows."""
    sort_keys: np.ndarray
    sort_rows: np.ndarray
    depth: np.ndarray
    key: np.ndarray


@piece
def people_in(scratch, persons, rows, begin, end):
    """The number of different people in a run of rows."""
    scratch.tick[0] += 1
    tick = scratch.tick[0]
    count = 0
    for i in range(begin, end):
        person = persons[rows[i]]
        if scratch.seen[person] != tick:
            scratch.seen[person] = tick
            count += 1
    return count


@piece
def take_key(pending, scratch, depths, row):
    """Write the codes of a row at some depths into the key."""
    scratch.key[:] = NONE
    for a in range(len(depths)):
        scratch.key[a] = pending.paths[pending.first[a] + depths[a], row]


@piece
def _crowd_of(pending, depths, row):
    """Number of people the block of a row at some depths needs; it depends on the labels only, not on the rows."""
    k = pending.least[0]
    for a in range(len(depths)):
        k = max(k, pending.crowds[pending.first[a] + depths[a], row])
    return k


@piece
def is_published(groups, key, people):
    """Whether the labels of a key are published for enough people already."""
    entry = find_group(groups, key)
    return entry != NO_ENTRY and groups.counts[entry] >= people


@piece
def _add_block(groups, pending, scratch, blocks, sizes, rows, begin, end, people, next_attribute):
    """Append rows[begin:end] as a block at `scratch.depth`.

    Published blocks are found first, for any number of people; found again, they are only divided further.
    """
    block, at = sizes[BLOCKS], sizes[BLOCK_ROWS]
    count = end - begin
    if block == len(blocks.info) or at + count > len(blocks.rows):
        sizes[IS_FULL] = 1
        return
    row = rows[begin]
    need = _crowd_of(pending, scratch.depth, row)
    take_key(pending, scratch, scratch.depth, row)
    blocks.info[block, PUBLISHED] = is_published(groups, scratch.key, need)
    is_found = next_attribute == len(scratch.depth)
    blocks.info[block, CANDIDATE] = is_found or (people >= need and not blocks.info[block, PUBLISHED])
    copy_run(scratch.depth, 0, len(scratch.depth), blocks.depths[block], 0)
    blocks.info[block, NEXT] = next_attribute
    blocks.info[block, BEGIN], blocks.info[block, STOP], blocks.info[block, NEED] = at, at + count, need
    blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE], blocks.info[block, PEOPLE] = 0, 0, 0
    blocks.info[block, LOSS] = 0
    for a in range(len(scratch.depth)):
        blocks.info[block, LOSS] += pending.losses[pending.first[a] + scratch.depth[a], row]
    _fill(scratch, pending.persons, rows, begin, end, blocks.rows, blocks.slots, blocks.counts, at)
    sizes[BLOCKS] += 1
    sizes[BLOCK_ROWS] += count


@piece
def _fill(scratch, persons, rows, begin, end, into, slots, counts, at):
    """Copy rows, and give every person among them a slot."""
    scratch.tick[0] += 1
    tick = scratch.tick[0]
    for i in range(begin, end):
        place = at + i - begin
        person = persons[rows[i]]
        into[place] = rows[i]
        counts[place] = 0
        if scratch.seen[person] != tick:
            scratch.seen[person] = tick
            scratch.slot_of[person] = place
        slots[place] = scratch.slot_of[person]


@piece
def _has_depths(pending, depths, row):
    """Whether a row has a label of its own at each of these depths; the last label of a path is repeated below."""
    for a in range(len(depths)):
        line = pending.first[a] + depths[a]
        if depths[a] > pending.floors[a] and pending.paths[line, row] == pending.paths[line - 1, row]:
            return False
    return True


@piece
def _add_published(groups, pending, scratch, blocks, sizes, vectors):
    """Add the published blocks that pending rows are in; `vectors` lists the depths of all published blocks."""
    count = len(pending.persons)
    for vector in range(len(vectors)):
        copy_run(vectors[vector], 0, len(scratch.depth), scratch.depth, 0)
        found = 0
        for row in range(count):
            if not _has_depths(pending, scratch.depth, row):
                continue
            take_key(pending, scratch, scratch.depth, row)
            entry = find_group(groups, scratch.key)
            if entry != NO_ENTRY and groups.counts[entry] >= _crowd_of(pending, scratch.depth, row):
                scratch.sort_keys[0, found] = entry
                scratch.sort_rows[0, found] = row
                found += 1
        sort_rows(scratch.sort_keys, scratch.sort_rows, found)
        begin = 0
        for i in range(1, found + 1):
            if i == found or scratch.sort_keys[0, i] != scratch.sort_keys[0, begin]:
                rows = scratch.sort_rows[0]
                _add_block(groups, pending, scratch, blocks, sizes, rows, begin, i, 0, len(scratch.depth))
                begin = i


@piece
def _divide(groups, pending, scratch, blocks, sizes, block, a):
    """Add the parts of a block one step down along an attribute; return whether there is a single part."""
    begin, end = blocks.info[block, BEGIN], blocks.info[block, STOP]
    count = end - begin
    line = pending.first[a] + blocks.depths[block, a] + 1
    for i in range(count):
        row = blocks.rows[begin + i]
        scratch.sort_keys[0, i] = pending.paths[line, row]
        scratch.sort_rows[0, i] = row
    sort_rows(scratch.sort_keys, scratch.sort_rows, count)
    copy_run(blocks.depths[block], 0, len(scratch.depth), scratch.depth, 0)
    scratch.depth[a] += 1
    first = 0
    for i in range(1, count + 1):
        if i == count or scratch.sort_keys[0, i] != scratch.sort_keys[0, first]:
            people = people_in(scratch, pending.persons, scratch.sort_rows[0], first, i)
            if people >= pending.least[1]:
                rows = scratch.sort_rows[0]
                _add_block(groups, pending, scratch, blocks, sizes, rows, first, i, people, a)
            if first == 0 and i == count:
                return True
            first = i
    return False


@piece
def find_blocks(groups, pending, scratch, blocks, sizes, order, tops, vectors):
    """Enumerate all blocks; `tops` are ends of runs in `order`: rows whose coarsest labels are the same."""
    _add_published(groups, pending, scratch, blocks, sizes, vectors)
    block = sizes[BLOCKS]
    copy_run(pending.floors, 0, len(pending.floors), scratch.depth, 0)
    begin = 0
    for top in range(len(tops)):
        people = people_in(scratch, pending.persons, order, begin, tops[top])
        _add_block(groups, pending, scratch, blocks, sizes, order, begin, tops[top], people, 0)
        begin = tops[top]
    while block < sizes[BLOCKS]:
        for a in range(blocks.info[block, NEXT], len(pending.floors)):
            line, row = pending.first[a] + blocks.depths[block, a], blocks.rows[blocks.info[block, BEGIN]]
            if line + 1 == pending.first[a + 1] or pending.paths[line + 1, row] == pending.paths[line, row]:
                continue
            if _divide(groups, pending, scratch, blocks, sizes, block, a):
                # All rows have the same finer label, which loses less.
                blocks.info[block, CANDIDATE] = False
                break
        block += 1


# ---- labels


@piece
def _add_place(labels, scratch, label, place, places, present):
    """Append a place to the list of a label; return the number of labels with lists."""
    if scratch.heads[label] == END:
        scratch.present[present] = labels.rank[label]
        present += 1
    scratch.place_of[places] = place
    scratch.next_place[places] = scratch.heads[label]
    scratch.heads[label] = places
    return present


@piece
def _list_places(labels, pending, scratch, tuples, source, s):
    """List the places of a tuple by the labels above their values; return the number of labels, finest first."""
    places, present = 0, 0
    root = labels.roots[s]
    for place in range(tuples.info[source, STOP] - 1, tuples.info[source, BEGIN] - 1, -1):
        value = pending.values[s, tuples.rows[place]]
        present = _add_place(labels, scratch, value, place, places, present)
        places += 1
        for j in range(labels.starts[value], labels.starts[value + 1]):
            present = _add_place(labels, scratch, labels.above[j], place, places, present)
            places += 1
        if root != NONE and value != root + 1:
            present = _add_place(labels, scratch, root, place, places, present)
            places += 1
    copy_run(scratch.present, 0, present, scratch.sort_keys[0], 0)
    sort_rows(scratch.sort_keys, scratch.sort_rows, present)
    copy_run(scratch.sort_keys[0], 0, present, scratch.present, 0)
    return present


@piece
def _is_new(scratch, label, tuples, accepted):
    """Whether no finer label has the same rows; otherwise that one loses less."""
    count, total = 0, np.uint64(0)
    at = scratch.heads[label]
    while at != END:
        count += 1
        total += mixed(np.uint64(tuples.rows[scratch.place_of[at]]) + np.uint64(1))
        at = scratch.next_place[at]
    scratch.sizes[accepted], scratch.sums[accepted] = count, total
    for i in range(accepted):
        if scratch.sizes[i] == count and scratch.sums[i] == total:
            return False
    return True


@piece
def _add_tuple(labels, pending, scratch, tuples, sizes, source, s, label):
    """Write the rows of a label as the next tuple; return how many people have it."""
    made, at = sizes[TUPLES], sizes[TUPLE_ROWS]
    scratch.tick[0] += 1
    tick = scratch.tick[0]
    people, count = 0, 0
    place = scratch.heads[label]
    while place != END:
        if at + count == len(tuples.rows) or made == len(tuples.info):
            sizes[IS_FULL] = 1
            return 0
        row = tuples.rows[scratch.place_of[place]]
        person = pending.persons[row]
        if scratch.seen[person] != tick:
            scratch.seen[person] = tick
            scratch.slot_of[person] = at + count
            people += 1
        tuples.rows[at + count] = row
        tuples.slots[at + count] = scratch.slot_of[person]
        tuples.block_slots[at + count] = tuples.block_slots[scratch.place_of[place]]
        tuples.counts[at + count] = 0
        count += 1
        place = scratch.next_place[place]
    tuples.info[made, BLOCK] = tuples.info[source, BLOCK]
    tuples.info[made, BEGIN], tuples.info[made, STOP], tuples.info[made, PEOPLE] = at, at + count, 0
    copy_run(tuples.labels[source], 0, s, tuples.labels[made], 0)
    tuples.labels[made, s] = label
    tuples.info[made, LOSS] = tuples.info[source, LOSS] + labels.loss[label]
    return people


@piece
def _add_level(groups, labels, pending, scratch, tuples, sizes, source, s, wide, k_s):
    """Add the labels of one more sparse attribute to a tuple."""
    present = _list_places(labels, pending, scratch, tuples, source, s)
    for before in range(s):
        scratch.key[wide + before] = tuples.labels[source, before]
    accepted = 0
    for i in range(present):
        label = labels.by_rank[scratch.present[i]]
        scratch.key[wide + s] = label
        has_published = is_published(groups, scratch.key, k_s)
        scratch.key[wide + s] = NONE
        if not (_is_new(scratch, label, tuples, accepted) or has_published):
            continue
        accepted += 1
        people = _add_tuple(labels, pending, scratch, tuples, sizes, source, s, label)
        if people >= k_s or (people and has_published):
            tuples.info[sizes[TUPLES], PUBLISHED] = has_published
            sizes[TUPLE_ROWS] = tuples.info[sizes[TUPLES], STOP]
            sizes[TUPLES] += 1
    for i in range(present):
        scratch.heads[labels.by_rank[scratch.present[i]]] = END


@piece
def find_tuples(groups, labels, pending, scratch, blocks, tuples, sizes, block):
    """Enumerate the tuples of a block."""
    wide, deep = len(pending.floors), len(pending.values)
    begin, end = blocks.info[block, BEGIN], blocks.info[block, STOP]
    source, at = sizes[TUPLES], sizes[TUPLE_ROWS]
    if source == len(tuples.info) or at + end - begin > len(tuples.rows):
        sizes[IS_FULL] = 1
        return
    _fill(scratch, pending.persons, blocks.rows, begin, end, tuples.rows, tuples.slots, tuples.counts, at)
    copy_run(blocks.slots, begin, end, tuples.block_slots, at)
    tuples.info[source, BLOCK], tuples.info[source, LOSS] = block, blocks.info[block, LOSS]
    tuples.info[source, BEGIN], tuples.info[source, STOP], tuples.info[source, PEOPLE] = at, at + end - begin, 0
    tuples.info[source, PUBLISHED] = blocks.info[block, PUBLISHED]
    sizes[TUPLES] += 1
    sizes[TUPLE_ROWS] = tuples.info[source, STOP]
    take_key(pending, scratch, blocks.depths[block], blocks.rows[begin])
    k_s = labels.k_s[blocks.info[block, NEED]]
    blocks.info[block, K_S] = k_s
    first, last = source, source + 1
    for s in range(deep):
        for t in range(first, last):
            _add_level(groups, labels, pending, scratch, tuples, sizes, t, s, wide, k_s)
        first, last = last, sizes[TUPLES]
    blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE] = first, last
