"""Candidates of a round: blocks that enough people share.

Blocks are enumerated from the coarsest labels down, one quasi-identifier after the other, as long as enough pending
people are in them; a published block is a candidate for any number of people. Where all rows of a block have the same
finer label, the block gets that label, which loses less.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.flexible.groups import NO_ENTRY, NONE, find_group
from shoal.kernels.flexible.layout import (
    BEGIN,
    BLOCK_ROWS,
    BLOCKS,
    CANDIDATE,
    CROWD,
    FIRST_TUPLE,
    IS_FULL,
    LAST_TUPLE,
    LOSS,
    NEED,
    NEXT,
    PEOPLE,
    PUBLISHED,
    STOP,
    UNLABELLED,
)
from shoal.kernels.sorting import copy_run, sort_rows


@piece
def is_new_person(scratch, person):
    """Whether a person is counted for the first time since the last tick."""
    if scratch.seen[person] == scratch.tick[0]:
        return False
    scratch.seen[person] = scratch.tick[0]
    return True


@piece
def people_in(scratch, persons, rows, begin, end):
    """The number of different people in a run of rows."""
    scratch.tick[0] += 1
    count = 0
    for i in range(begin, end):
        count += is_new_person(scratch, persons[rows[i]])
    return count


@piece
def give_slots(scratch, persons, rows, begin, end, slots, counts):
    """Give every person in a run of rows a slot, the place of their first row; return the number of people."""
    scratch.tick[0] += 1
    people = 0
    for place in range(begin, end):
        person = persons[rows[place]]
        if is_new_person(scratch, person):
            scratch.slot_of[person] = place
            people += 1
        slots[place], counts[place] = scratch.slot_of[person], 0
    return people


@piece
def take_key(pending, scratch, depths, row):
    """Write the codes of a row at some depths into the key."""
    for a in range(len(scratch.key)):
        scratch.key[a] = pending.paths[pending.first[a] + depths[a], row] if a < len(depths) else NONE


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
def _add_block(pending, scratch, blocks, sizes, rows, begin, end, next_attribute):
    """Append rows[begin:end] as a block at `scratch.depth`."""
    block, at = sizes[BLOCKS], sizes[BLOCK_ROWS]
    count = end - begin
    if block == len(blocks.info) or at + count > len(blocks.rows):
        sizes[IS_FULL] = 1
        return
    copy_run(scratch.depth, 0, len(scratch.depth), blocks.depths[block], 0)
    info = blocks.info[block]
    info[NEXT], info[BEGIN], info[STOP] = next_attribute, at, at + count
    info[FIRST_TUPLE], info[LAST_TUPLE], info[PEOPLE] = 0, 0, 0
    for i in range(count):
        blocks.rows[at + i], blocks.finest[at + i] = rows[begin + i], UNLABELLED
    info[CROWD] = give_slots(scratch, pending.persons, blocks.rows, at, at + count, blocks.slots, blocks.counts)
    sizes[BLOCKS] += 1
    sizes[BLOCK_ROWS] += count


@piece
def _rate_block(groups, pending, scratch, blocks, block, is_found):
    """Write what the labels of a block need and lose, and whether it is a candidate.

    Published blocks are found first (`is_found`), for any number of people; found again, they are only divided further.
    """
    info = blocks.info[block]
    row = np.int64(blocks.rows[info[BEGIN]])
    info[NEED] = _crowd_of(pending, blocks.depths[block], row)
    take_key(pending, scratch, blocks.depths[block], row)
    info[PUBLISHED] = is_published(groups, scratch.key, info[NEED])
    info[CANDIDATE] = is_found or (info[CROWD] >= info[NEED] and not info[PUBLISHED])
    info[LOSS] = 0
    for a in range(len(scratch.depth)):
        info[LOSS] += pending.losses[pending.first[a] + blocks.depths[block, a], row]


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
                _add_block(pending, scratch, blocks, sizes, scratch.sort_rows[0], begin, i, len(scratch.depth))
                begin = i


@piece
def _can_divide(pending, blocks, block, a):
    """Whether the labels of a block along an attribute have finer ones."""
    line, row = pending.first[a] + blocks.depths[block, a], blocks.rows[blocks.info[block, BEGIN]]
    return line + 1 < pending.first[a + 1] and pending.paths[line + 1, row] != pending.paths[line, row]


@piece
def _is_single(pending, blocks, block, line):
    """Whether all rows of a block have the same code on a line."""
    first = pending.paths[line, blocks.rows[blocks.info[block, BEGIN]]]
    for i in range(blocks.info[block, BEGIN] + 1, blocks.info[block, STOP]):
        if pending.paths[line, blocks.rows[i]] != first:
            return False
    return True


@piece
def _add_parts(pending, scratch, blocks, sizes, block, a):
    """Add the parts of a block one step down along an attribute."""
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
    first, rows = 0, scratch.sort_rows[0]
    for i in range(1, count + 1):
        if i == count or scratch.sort_keys[0, i] != scratch.sort_keys[0, first]:
            if people_in(scratch, pending.persons, rows, first, i) >= pending.least[1]:
                _add_block(pending, scratch, blocks, sizes, rows, first, i, a)
            first = i


@piece
def find_blocks(groups, pending, scratch, blocks, sizes, order, tops, vectors):
    """Enumerate all blocks; `tops` are ends of runs in `order`: rows whose coarsest labels are the same."""
    _add_published(groups, pending, scratch, blocks, sizes, vectors)
    found = sizes[BLOCKS]
    copy_run(pending.floors, 0, len(pending.floors), scratch.depth, 0)
    begin = 0
    for top in range(len(tops)):
        _add_block(pending, scratch, blocks, sizes, order, begin, tops[top], 0)
        begin = tops[top]
    block = 0
    while block < sizes[BLOCKS]:
        a = blocks.info[block, NEXT]
        while a < len(pending.floors):
            if not _can_divide(pending, blocks, block, a):
                a += 1
            elif _is_single(pending, blocks, block, pending.first[a] + blocks.depths[block, a] + 1):
                blocks.depths[block, a] += 1
            else:
                _add_parts(pending, scratch, blocks, sizes, block, a)
                a += 1
        _rate_block(groups, pending, scratch, blocks, block, block < found)
        block += 1
