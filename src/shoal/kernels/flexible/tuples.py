"""Candidates of a round: in each block, the labels of sparse quasi-identifiers that enough people share.

Of labels with the same rows only the most preferred one is a candidate.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.flexible.blocks import give_slots, is_published, take_key
from shoal.kernels.flexible.groups import NO_ENTRY, NONE, find_group
from shoal.kernels.flexible.layout import (
    BEGIN,
    BLOCK,
    CROWD,
    FIRST_TUPLE,
    IS_FULL,
    K_S,
    LABEL_ROWS,
    LABEL_SUM,
    LAST_TUPLE,
    LOSS,
    NEED,
    NEXT_PLACE,
    NOWHERE,
    PEOPLE,
    PUBLISHED,
    STOP,
    TUPLE_ROWS,
    TUPLES,
)
from shoal.kernels.randomness import mixed
from shoal.kernels.sorting import copy_run, sort_rows


@piece
def _count_labels(labels, pending, scratch, s, rows, begin, end):
    """Count the rows of all labels above the values of rows; return how many labels there are."""
    present = 0
    for place in range(begin, end):
        row = rows[place]
        value = pending.values[s, row]
        check = np.int64(mixed(np.uint64(row) + np.uint64(1)))
        for j in range(labels.starts[value], labels.starts[value + 1]):
            label = labels.above[j]
            if scratch.labels[label, LABEL_ROWS] == 0:
                scratch.present[present] = label
                present += 1
                scratch.labels[label, LABEL_SUM] = 0
            scratch.labels[label, LABEL_ROWS] += 1
            scratch.labels[label, LABEL_SUM] += check
    return present


@piece
def _choose_labels(groups, labels, scratch, present, wide, s, k_s, is_known):
    """Sort the labels that have enough rows, or are published, by preference; return their number.

    `sort_rows` gets whether they are published.
    """
    chosen = 0
    for i in range(present):
        label = scratch.present[i]
        has_published = False
        if is_known:  # no label of a block that is not published is published
            scratch.key[wide + s] = label
            has_published = is_published(groups, scratch.key, k_s)
        if has_published or scratch.labels[label, LABEL_ROWS] >= k_s:
            scratch.sort_keys[0, chosen] = labels.rank[label]
            scratch.sort_rows[0, chosen] = has_published
            chosen += 1
    scratch.key[wide + s] = NONE
    sort_rows(scratch.sort_keys, scratch.sort_rows, chosen)
    return chosen


@piece
def _is_new(scratch, label):
    """Whether no label before has the same rows, by their checksum; otherwise that one loses less."""
    mask = len(scratch.sums) - 1
    total = scratch.labels[label, LABEL_SUM]
    slot = total & mask
    while scratch.sums[slot, 1] == scratch.tick[0]:
        if scratch.sums[slot, 0] == total:
            return False
        slot = (slot + 1) & mask
    scratch.sums[slot, 0], scratch.sums[slot, 1] = total, scratch.tick[0]
    return True


@piece
def _add_tuple(tuples, sizes, block, loss, k_s, rows, has_published):
    """Append a tuple without its rows; return whether there is space."""
    t, at = sizes[TUPLES], sizes[TUPLE_ROWS]
    if t == len(tuples.info) or at + rows > len(tuples.rows):
        sizes[IS_FULL] = 1
        return False
    info = tuples.info[t]
    info[BLOCK], info[BEGIN], info[STOP], info[LOSS], info[K_S] = block, at, at + rows, loss, k_s
    info[PUBLISHED], info[PEOPLE] = has_published, 0
    sizes[TUPLES] += 1
    sizes[TUPLE_ROWS] += rows
    return True


@piece
def _write_rows(labels, pending, scratch, tuples, s, rows, block_slots, begin, end):
    """Write rows into the tuples of all their labels."""
    for place in range(begin, end):
        row = rows[place]
        value = pending.values[s, row]
        for j in range(labels.starts[value], labels.starts[value + 1]):
            at = scratch.labels[labels.above[j], NEXT_PLACE]
            if at != NOWHERE:
                scratch.labels[labels.above[j], NEXT_PLACE] += 1
                tuples.rows[at], tuples.block_slots[at] = row, block_slots[place]


@piece
def _keep_filled(pending, scratch, tuples, sizes, first):
    """Of the last tuples, keep those that enough people have or that are published."""
    kept = first
    for t in range(first, sizes[TUPLES]):
        begin, end = tuples.info[t, BEGIN], tuples.info[t, STOP]
        people = give_slots(scratch, pending.persons, tuples.rows, begin, end, tuples.slots, tuples.counts)
        if people >= tuples.info[t, K_S] or tuples.info[t, PUBLISHED]:
            if kept < t:
                copy_run(tuples.info[t], 0, len(tuples.info[t]), tuples.info[kept], 0)
                copy_run(tuples.labels[t], 0, len(tuples.labels[t]), tuples.labels[kept], 0)
            tuples.info[kept, CROWD] = people
            tuples.is_filled[kept] = tuples.info[kept, PUBLISHED]
            kept += 1
    sizes[TUPLES] = kept


@piece
def _add_level(groups, labels, pending, scratch, tuples, sizes, block, loss, s, k_s, source, part, is_known):
    """Add the labels of one more sparse attribute to rows of a block, `part`, which have the labels of `source`."""
    rows, block_slots, begin, end = part
    wide, first = len(pending.floors), sizes[TUPLES]
    for before in range(s):
        scratch.key[wide + before] = source[before]
    present = _count_labels(labels, pending, scratch, s, rows, begin, end)
    chosen = _choose_labels(groups, labels, scratch, present, wide, s, k_s, is_known)
    scratch.tick[0] += 1
    for i in range(chosen):
        label, has_published = labels.by_rank[scratch.sort_keys[0, i]], scratch.sort_rows[0, i]
        if not _is_new(scratch, label) and not has_published:
            continue
        t, count = sizes[TUPLES], scratch.labels[label, LABEL_ROWS]
        if _add_tuple(tuples, sizes, block, loss + labels.loss[label], k_s, count, has_published):
            copy_run(source, 0, s, tuples.labels[t], 0)
            tuples.labels[t, s] = label
            scratch.labels[label, NEXT_PLACE] = tuples.info[t, BEGIN]
    _write_rows(labels, pending, scratch, tuples, s, rows, block_slots, begin, end)
    _keep_filled(pending, scratch, tuples, sizes, first)
    for i in range(present):
        scratch.labels[scratch.present[i], LABEL_ROWS] = 0
        scratch.labels[scratch.present[i], NEXT_PLACE] = NOWHERE


@piece
def _add_whole(pending, scratch, tuples, sizes, blocks, block):
    """Add a whole block as a tuple: there are no sparse attributes."""
    info, t = blocks.info[block], sizes[TUPLES]
    if _add_tuple(tuples, sizes, block, info[LOSS], info[K_S], info[STOP] - info[BEGIN], info[PUBLISHED]):
        at = tuples.info[t, BEGIN]
        copy_run(blocks.rows, info[BEGIN], info[STOP], tuples.rows, at)
        copy_run(blocks.slots, info[BEGIN], info[STOP], tuples.block_slots, at)
        _keep_filled(pending, scratch, tuples, sizes, t)


@piece
def _note_finest(scratch, blocks, tuples, block):
    """Note the least loss that each row of a block may have in it."""
    for place in range(blocks.info[block, BEGIN], blocks.info[block, STOP]):
        scratch.place_of[blocks.rows[place]] = place
    for t in range(blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE]):
        for i in range(tuples.info[t, BEGIN], tuples.info[t, STOP]):
            place = scratch.place_of[tuples.rows[i]]
            blocks.finest[place] = min(blocks.finest[place], tuples.info[t, LOSS])


@piece
def find_tuples(groups, labels, pending, scratch, blocks, tuples, sizes, block):
    """Enumerate the tuples of a block."""
    info = blocks.info[block]
    begin, end = info[BEGIN], info[STOP]
    take_key(pending, scratch, blocks.depths[block], np.int64(blocks.rows[begin]))
    is_known = find_group(groups, scratch.key) != NO_ENTRY
    info[K_S] = labels.k_s[info[NEED]]
    first = sizes[TUPLES]
    if len(pending.values) == 0:
        _add_whole(pending, scratch, tuples, sizes, blocks, block)
    begin_of, end_of = NOWHERE, 0  # the first attribute divides the block, the next ones the tuples made before
    for s in range(len(pending.values)):
        for t in range(begin_of, end_of):
            if s == 0:
                part, loss = (blocks.rows, blocks.slots, begin, end), info[LOSS]
            else:
                part = (tuples.rows, tuples.block_slots, tuples.info[t, BEGIN], tuples.info[t, STOP])
                loss = tuples.info[t, LOSS]
            source = tuples.labels[max(t, 0)]
            _add_level(
                groups, labels, pending, scratch, tuples, sizes, block, loss, s, info[K_S], source, part, is_known
            )
        first = first if s == 0 else end_of
        begin_of, end_of = first, sizes[TUPLES]
    info[FIRST_TUPLE], info[LAST_TUPLE] = first, sizes[TUPLES]
    _note_finest(scratch, blocks, tuples, block)
