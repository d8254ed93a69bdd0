"""Publish the rows that are assigned: count once more, and record their groups."""

from __future__ import annotations

from shoal.kernels.compiling import piece
from shoal.kernels.flexible.blocks import people_in, take_key
from shoal.kernels.flexible.groups import keep_group
from shoal.kernels.flexible.layout import BLOCK, K_S, NEED, PENDING, PUBLISHED
from shoal.kernels.sorting import copy_run, sort_rows


@piece
def _same_before(out, s, row, other):
    """Whether two rows have the same labels before the s-th."""
    for before in range(s):
        if out.given[before, row] != out.given[before, other]:
            return False
    return True


@piece
def _record_labels(groups, pending, scratch, out, wide, s, begin, end):
    """Record the groups of the s-th sparse attribute's labels, of rows sorted by them."""
    first = begin
    for i in range(begin + 1, end + 1):
        if i < end and out.given[s, out.rows[i]] == out.given[s, out.rows[i - 1]]:
            continue
        scratch.key[wide + s] = out.given[s, out.rows[first]]
        entry = keep_group(groups, scratch.key, people_in(scratch, pending.persons, out.rows, first, i))
        for j in range(first, i):
            out.group_of[out.rows[j]] = entry
        first = i


@piece
def _publish_block(groups, pending, scratch, blocks, out, block, begin, end):
    """Publish the rows of a block, out.rows[begin:end], sorted by their labels: record all their groups."""
    wide = len(pending.floors)
    take_key(pending, scratch, blocks.depths[block], out.rows[begin])
    entry = keep_group(groups, scratch.key, people_in(scratch, pending.persons, out.rows, begin, end))
    for i in range(begin, end):
        out.block_of[out.rows[i]] = block
        out.group_of[out.rows[i]] = entry
    for s in range(len(pending.values)):
        first = begin
        for i in range(begin + 1, end + 1):
            if i < end and _same_before(out, s, out.rows[i], out.rows[i - 1]):
                continue
            for before in range(s):
                scratch.key[wide + before] = out.given[before, out.rows[first]]
            _record_labels(groups, pending, scratch, out, wide, s, first, i)
            first = i


@piece
def _has_enough(pending, scratch, blocks, tuples, a, out, begin, end):
    """Count once more, without the counters of the assignment, whether rows of a block may be published."""
    block = tuples.info[a.tuple_of[out.rows[begin]], BLOCK]
    need = blocks.info[block, NEED]
    first = begin
    for i in range(begin + 1, end + 1):
        if i < end and a.tuple_of[out.rows[i]] == a.tuple_of[out.rows[first]]:
            continue
        people = people_in(scratch, pending.persons, out.rows, first, i)
        if people < blocks.info[block, K_S] and not tuples.info[a.tuple_of[out.rows[first]], PUBLISHED]:
            return False
        first = i
    return blocks.info[block, PUBLISHED] or people_in(scratch, pending.persons, out.rows, begin, end) >= need


@piece
def publish(groups, pending, scratch, blocks, tuples, a, out):
    """Publish all assigned rows; return how many."""
    count = 0
    for row in range(len(a.tuple_of)):
        t = a.tuple_of[row]
        if t != PENDING:
            for s in range(len(pending.values)):
                out.given[s, row] = tuples.labels[t, s]
            scratch.sort_keys[0, count] = t
            scratch.sort_rows[0, count] = row
            count += 1
    sort_rows(scratch.sort_keys, scratch.sort_rows, count)
    copy_run(scratch.sort_rows[0], 0, count, out.rows, 0)
    published, begin = 0, 0
    for i in range(1, count + 1):
        block = tuples.info[a.tuple_of[out.rows[begin]], BLOCK]
        if i < count and tuples.info[a.tuple_of[out.rows[i]], BLOCK] == block:
            continue
        if _has_enough(pending, scratch, blocks, tuples, a, out, begin, i):
            _publish_block(groups, pending, scratch, blocks, out, block, begin, i)
            published += i - begin
        begin = i
    return published
