"""Splitting a large cluster of CASTLE into parts of at least k people."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.tuples.castle.generalize import (
    UNION_CROWD,
    clear_hull,
    load_tuple,
    lose_with,
    lost_now,
    lost_then,
    parts_of,
    scratch_of,
    sum_up,
    union_of,
    widen,
)
from shoal.kernels.tuples.diversity import ENOUGH, count_values, diversify, first_failure
from shoal.kernels.tuples.emit import count_filled, write_group
from shoal.kernels.tuples.generalize import (
    count_carriers,
    draft,
    generalize_members,
    is_new_person,
    own_loss,
    whole_loss,
)
from shoal.kernels.tuples.layout import (
    ALLOWED,
    COST_OF,
    ELIGIBLE,
    FORMED,
    GROUPS,
    IN_GROUPS,
    IS_DIVERSE,
    LIVE,
    MEMBER,
    MERGED,
    PEOPLE,
    SPARE,
    STAMP,
    K,
)
from shoal.kernels.tuples.layout import CHAIN_HEAD as CHOSEN
from shoal.kernels.tuples.layout import PART_LIKE as PORTION
from shoal.kernels.tuples.layout import PART_SIZE as SHOWN_AS  # CASTLE has no partitions and uses their rows
from shoal.kernels.tuples.nearest import choose_nearest, measure
from shoal.kernels.tuples.queue import count_keys
from shoal.kernels.tuples.reuse import is_capped, is_fair, is_uniform, keep_draft

_REST = -1


@piece
def keep_whole(s, f, count):
    """Make one part of everything; return the number of parts."""
    for m in range(count):
        s.pending_i[PORTION, s.pending_i[CHOSEN, m]] = 0
    clear_hull(s, f, parts_of(f))
    widen(s, f, parts_of(f), union_of(f))
    sum_up(s, f, parts_of(f))
    return 1


@piece
def mark_rest(s, count):
    """Mark the tuples in no part as eligible; return the first of them, -1 if they are fewer than k people."""
    s.tally[STAMP] += 1
    first, crowd = -1, 0
    for m in range(count):
        i = s.pending_i[CHOSEN, m]
        is_left = s.pending_i[PORTION, i] == _REST
        s.pending_i[ELIGIBLE, i] = s.pending_i[ALLOWED, i] = is_left
        if is_left:
            crowd += is_new_person(s, i)
            first = i if first < 0 else first
    return first if crowd >= s.plan[K] else -1


@piece
def cut_part(s, f, part, members):
    """Make a part of the chosen members."""
    c = parts_of(f) + part
    clear_hull(s, f, c)
    for m in range(members):
        i = s.pending_i[MEMBER, m]
        s.pending_i[PORTION, i] = part
        load_tuple(s, f, i)
        widen(s, f, c, scratch_of(f))
    sum_up(s, f, c)


@piece
def cut_parts(s, f, count):
    """Repeatedly make a part of the first remaining tuple and its nearest; return the number of parts."""
    parts, begin, end = 0, s.pending_i[CHOSEN, 0], s.pending_i[CHOSEN, count - 1] + 1
    for i in range(begin, end):
        s.pending_i[ELIGIBLE, i] = s.pending_i[ALLOWED, i] = 0
    for m in range(count):
        s.pending_i[PORTION, s.pending_i[CHOSEN, m]] = _REST
    while True:
        first = mark_rest(s, count)
        if first < 0:
            return parts
        measure(s, first, begin, end)
        members = choose_nearest(s, first, begin, end, s.plan[K])
        if s.plan[IS_DIVERSE]:
            members = diversify(s, begin, end, members)
        if members == 0:
            return parts
        cut_part(s, f, parts, members)
        parts += 1


@piece
def nearest_part(s, f, parts):
    """The part that the tuple in scratch widens least, the first of equals."""
    begin, best, least = parts_of(f), 0, np.inf
    now, then = f.hulls[lost_now(s)], f.hulls[lost_then(s)]
    lose_with(s, f, scratch_of(f), begin, begin + parts)
    for part in range(parts):
        growth = then[begin + part] - now[begin + part]
        if growth < least:
            best, least = part, growth
    return best


@piece
def assign_rest(s, f, count, parts):
    """Add each tuple in no part to the part it widens least."""
    for m in range(count):
        i = s.pending_i[CHOSEN, m]
        if s.pending_i[PORTION, i] != _REST:
            continue
        load_tuple(s, f, i)
        part = nearest_part(s, f, parts)
        s.pending_i[PORTION, i] = part
        widen(s, f, parts_of(f) + part, scratch_of(f))
        sum_up(s, f, parts_of(f) + part)


@piece
def choose_part(s, count, part):
    """List the tuples of a part as members; return their number."""
    members = 0
    for m in range(count):
        i = s.pending_i[CHOSEN, m]
        if s.pending_i[PORTION, i] == part:
            s.pending_i[MEMBER, members] = i
            members += 1
    return members


@piece
def are_diverse(s, count, parts):
    """Whether every part is diverse enough."""
    for part in range(parts):
        count_values(s, choose_part(s, count, part))
        if first_failure(s, draft(s))[0] != ENOUGH:
            return False
    return True


@piece
def are_fair(s, count, parts):
    """Whether no one has more than the cap of any part."""
    for part in range(parts):
        if not is_fair(s, choose_part(s, count, part)):
            return False
    return True


@piece
def split(s, f, count):
    """Divide what leaves into parts of k people and more; return how many parts there are."""
    if f.tally[UNION_CROWD] < 2 * s.plan[K]:
        return keep_whole(s, f, count)
    parts = cut_parts(s, f, count)
    if parts == 0:
        return keep_whole(s, f, count)
    assign_rest(s, f, count, parts)
    if s.plan[IS_DIVERSE] and not are_diverse(s, count, parts):
        return keep_whole(s, f, count)
    if is_capped(s) and not are_fair(s, count, parts):
        return keep_whole(s, f, count)
    return parts


@piece
def publish_part(s, members):
    """Publish the chosen members as a cluster; they still have to leave."""
    generalize_members(s, members)
    if s.tally[LIVE] != count_keys(s, PEOPLE):  # a person has two pending tuples
        count_carriers(s, members)
    count_values(s, members)
    c, number, uniform = draft(s), s.tally[GROUPS], is_uniform(s, members)
    group = write_group(s, c, number, 0)
    s.tally[GROUPS] += 1
    s.tally[FORMED] += 1
    s.tally[MERGED] += not uniform
    if not s.plan[IN_GROUPS]:
        keep_draft(s, number, uniform, members)
    for m in range(members):
        i = s.pending_i[MEMBER, m]
        s.pending_i[SHOWN_AS, i] = group
        count_filled(s, c, i)
        s.pending_f[COST_OF, i] = own_loss(s, c, i)
        s.pending_f[SPARE, i] = whole_loss(s, c, i)
