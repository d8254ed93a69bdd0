"""One round of the flexible method: pending rows are divided into blocks with labels as fine as possible.

Down from the coarsest labels that may be published, a node is split along the quasi-identifier that costs least, as
long as that lowers the cost; a part with too few people stays with the node. Then, from the finest nodes up, each
publishes the rows it can label and passes the rest to the node above. What the topmost nodes cannot publish stays
pending.

Costs are integers, so the order of additions does not matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.flexible.groups import NO_ENTRY, NONE, ROUND, find_group, keep_criterion, keep_group
from shoal.kernels.flexible.labels import END, label_block, people_in
from shoal.kernels.sorting import copy_run, sort_rows

SCALE = 1 << 30
"""The loss of a row whose labels say nothing."""
UNLABELLED = 2 * SCALE
"""The cost of a row that a block cannot label: it would be passed up, or stay pending."""
MISSING = -1
"""The code of a missing value at every depth; no other label covers it."""
NO_SPLIT = -1
FULL = -1


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
    """Number of people every block needs."""


class Nodes(NamedTuple):
    """Blocks while they are formed; a node comes after its parent."""

    depths: np.ndarray
    above: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    passed: np.ndarray
    """The first row passed up to the node, END if there is none."""


class Parting(NamedTuple):
    """Scratch space for splitting."""

    order: np.ndarray
    """All rows; those of a node are contiguous."""
    ends: np.ndarray
    """Ends of the parts of the current split."""
    fits: np.ndarray
    """Which parts have enough people to be nodes."""
    rest: np.ndarray
    done: np.ndarray
    """Attributes along which the current node cannot be split."""
    next_passed: np.ndarray
    node_of: np.ndarray
    """By row: the node that publishes it, -1 while it is pending."""
    group_of: np.ndarray
    depth: np.ndarray


@piece
def _take_key(pending, desk, depths, row):
    """Write the codes of a row at some depths into the key."""
    desk.key[:] = NONE
    for a in range(len(depths)):
        desk.key[a] = pending.paths[pending.first[a] + depths[a], row]


@piece
def _crowd_of(pending, depths, row):
    """Number of people the block of a row at some depths needs; it depends on the labels only, not on the rows."""
    k = pending.least[0]
    for a in range(len(depths)):
        k = max(k, pending.crowds[pending.first[a] + depths[a], row])
    return k


@piece
def _is_crowd(groups, pending, desk, depths, rows, begin, end):
    """Whether rows, or published rows of the same key, have enough people for their block."""
    k = _crowd_of(pending, depths, rows[begin])
    if people_in(desk, pending.persons, rows, begin, end) >= k:
        return True
    entry = find_group(groups, desk.key)
    return entry != NO_ENTRY and groups.counts[entry] >= k


@piece
def _cost(groups, labels, pending, desk, depths, rows, begin, end, criteria):
    """The loss of rows under labels of these depths; afterwards the key is that of their block."""
    if begin == end:
        return 0
    _take_key(pending, desk, depths, rows[begin])
    count = end - begin
    copy_run(rows, begin, end, desk.block, 0)
    k = _crowd_of(pending, depths, rows[begin])
    wide = len(depths)
    got = label_block(groups, labels, desk, pending.values, pending.persons, wide, count, k, criteria)
    if people_in(desk, pending.persons, desk.block, 0, got) < k:
        entry = find_group(groups, desk.key)
        if entry == NO_ENTRY or groups.counts[entry] < k:
            return count * UNLABELLED
    cost = (count - got) * UNLABELLED
    for i in range(got):
        row = desk.block[i]
        for a in range(wide):
            cost += pending.losses[pending.first[a] + depths[a], row]
        for s in range(len(pending.values)):
            cost += labels.loss[desk.given[s, row]]
    return cost


@piece
def _part(pending, desk, parting, a, line, begin, end):
    """Sort the rows of a node by their code one step down; return how many parts there are."""
    count = end - begin
    for i in range(count):
        row = parting.order[begin + i]
        desk.sort_keys[0, i] = pending.paths[line, row]
        desk.sort_rows[0, i] = row
    sort_rows(desk.sort_keys, desk.sort_rows, count)
    parts = 0
    for i in range(1, count + 1):
        if i == count or desk.sort_keys[0, i] != desk.sort_keys[0, i - 1]:
            parting.ends[parts] = i
            parts += 1
    return parts


@piece
def _gather_rest(parting, rows, parts):
    """Collect the rows of the parts that stay; return how many."""
    count, begin = 0, 0
    for part in range(parts):
        end = parting.ends[part]
        if not parting.fits[part]:
            copy_run(rows, begin, end, parting.rest, count)
            count += end - begin
        begin = end
    return count


@piece
def _smallest_fitting(parting, parts):
    """The part with the fewest rows among those with enough people, NO_SPLIT if there is none."""
    found, fewest, begin = NO_SPLIT, 0, 0
    for part in range(parts):
        size = parting.ends[part] - begin
        if parting.fits[part] and (found == NO_SPLIT or size < fewest):
            found, fewest = part, size
        begin = parting.ends[part]
    return found


@piece
def _split(groups, pending, desk, parting, rows, a, begin, end):
    """Divide a node's rows along an attribute into `rows`; return the number of parts, and of rows that stay.

    The number of parts is NO_SPLIT if no part has enough people. `parting.depth` is the node's, afterwards one deeper.
    """
    parts = _part(pending, desk, parting, a, pending.first[a] + parting.depth[a] + 1, begin, end)
    copy_run(desk.sort_rows[0], 0, end - begin, rows, 0)
    parting.depth[a] += 1
    first = 0
    for part in range(parts):
        _take_key(pending, desk, parting.depth, rows[first])
        parting.fits[part] = _is_crowd(groups, pending, desk, parting.depth, rows, first, parting.ends[part])
        first = parting.ends[part]
    parting.depth[a] -= 1
    stay = _gather_rest(parting, rows, parts)
    _take_key(pending, desk, parting.depth, rows[0])
    # If not even all rows are enough people, keeping parts back gains nothing.
    can_stay = stay and _is_crowd(groups, pending, desk, parting.depth, rows, 0, end - begin)
    while stay and can_stay:
        _take_key(pending, desk, parting.depth, parting.rest[0])
        if _is_crowd(groups, pending, desk, parting.depth, parting.rest, 0, stay):
            break
        part = _smallest_fitting(parting, parts)
        if part == NO_SPLIT:
            break
        parting.fits[part] = False
        stay = _gather_rest(parting, rows, parts)
    parting.depth[a] += 1
    return (NO_SPLIT if _smallest_fitting(parting, parts) == NO_SPLIT else parts), stay


@piece
def _split_cost(groups, labels, pending, desk, parting, rows, a, begin, end, criteria):
    """The loss of the node's rows after a split along an attribute, NO_SPLIT if there is none."""
    parts, stay = _split(groups, pending, desk, parting, rows, a, begin, end)
    cost, first = 0, 0
    for part in range(parts):  # none where parts is NO_SPLIT
        last = parting.ends[part]
        if parting.fits[part]:
            cost += _cost(groups, labels, pending, desk, parting.depth, rows, first, last, criteria)
        first = last
    parting.depth[a] -= 1
    if parts == NO_SPLIT:
        return NO_SPLIT
    if stay:
        cost += _cost(groups, labels, pending, desk, parting.depth, parting.rest, 0, stay, criteria)
    return cost


@piece
def _can_descend(pending, parting, a, row):
    """Whether there is anything below the node's label of an attribute."""
    line = pending.first[a] + parting.depth[a]
    return line + 1 < pending.first[a + 1] and pending.paths[line + 1, row] != pending.paths[line, row]


@piece
def _best_split(groups, labels, pending, desk, parting, rows, begin, end, criteria):
    """The attribute along which a split costs least, NO_SPLIT where staying costs no more."""
    cost = _cost(groups, labels, pending, desk, parting.depth, parting.order, begin, end, criteria)
    best = NO_SPLIT
    for a in range(len(parting.depth)):
        if parting.done[a] or not _can_descend(pending, parting, a, parting.order[begin]):
            continue
        found = _split_cost(groups, labels, pending, desk, parting, rows, a, begin, end, criteria)
        if found == NO_SPLIT:
            parting.done[a] = True
        elif found < cost:
            best, cost = a, found
    return best


@piece
def _make_nodes(pending, nodes, parting, rows, parent, parts, begin, made):
    """Turn the parts that fit into nodes below another; the rows that stay come last. Return how many nodes now."""
    at, first = begin, 0
    for part in range(parts):
        last = parting.ends[part]
        if parting.fits[part]:
            size = last - first
            copy_run(rows, first, last, parting.order, at)
            copy_run(parting.depth, 0, len(parting.depth), nodes.depths[made], 0)
            nodes.above[made], nodes.passed[made] = parent, END
            nodes.begins[made], nodes.ends[made] = at, at + size
            made += 1
            at += size
        first = last
    nodes.begins[parent] = at
    return made


@piece
def _part_node(groups, labels, pending, desk, nodes, parting, rows, node, made, criteria):
    """Split a node as long as that lowers the loss; return the number of nodes, FULL if there is no space for more."""
    parting.done[:] = False
    while nodes.begins[node] < nodes.ends[node]:
        copy_run(nodes.depths[node], 0, len(parting.depth), parting.depth, 0)
        begin, end = nodes.begins[node], nodes.ends[node]
        a = _best_split(groups, labels, pending, desk, parting, rows, begin, end, criteria)
        if a == NO_SPLIT:
            break
        parts, stay = _split(groups, pending, desk, parting, rows, a, begin, end)
        if made + parts > len(nodes.above):
            return FULL
        made = _make_nodes(pending, nodes, parting, rows, node, parts, begin, made)
        copy_run(parting.rest, 0, stay, parting.order, end - stay)
        parting.done[a] = True
    return made


@piece
def _pass_up(nodes, parting, node, row):
    """Pass a row to the node above; without one it stays pending."""
    above = nodes.above[node]
    if above >= 0:
        parting.next_passed[row] = nodes.passed[above]
        nodes.passed[above] = row


@piece
def _collect(nodes, parting, rows, node):
    """Collect the rows left at a node: its own, then those passed up; return how many."""
    begin, end = nodes.begins[node], nodes.ends[node]
    count = end - begin
    copy_run(parting.order, begin, end, rows, 0)
    row = nodes.passed[node]
    while row != END:
        rows[count] = row
        count += 1
        row = parting.next_passed[row]
    return count


@piece
def _is_labelled(desk, deep, row):
    """Whether a row has a label for every sparse attribute."""
    for s in range(deep):
        if desk.given[s, row] == NONE:
            return False
    return True


@piece
def _record_labels(groups, pending, desk, parting, wide, s, begin, end):
    """Record the groups of the s-th sparse attribute's labels, of rows sorted by them."""
    first = begin
    for i in range(begin + 1, end + 1):
        if i < end and desk.given[s, desk.block[i]] == desk.given[s, desk.block[i - 1]]:
            continue
        desk.key[wide + s] = desk.given[s, desk.block[first]]
        people = people_in(desk, pending.persons, desk.block, first, i)
        entry = keep_group(groups, desk.key, people)
        for j in range(first, i):
            parting.group_of[desk.block[j]] = entry
        first = i
    desk.key[wide + s] = NONE


@piece
def _record_groups(groups, pending, desk, parting, node, got, people):
    """Publish the labelled rows of a block: record all their groups."""
    wide, deep = len(pending.floors), len(pending.values)
    whole = keep_group(groups, desk.key, people)
    for i in range(got):
        parting.node_of[desk.block[i]] = node
        parting.group_of[desk.block[i]] = whole
    for s in range(deep):
        first = 0
        for i in range(1, got + 1):
            if i < got and _same_before(desk, s, desk.block[i], desk.block[i - 1]):
                continue
            for before in range(s):
                desk.key[wide + before] = desk.given[before, desk.block[first]]
            prefix = find_group(groups, desk.key)
            for j in range(first, i):
                if desk.common[s, desk.block[j]]:
                    keep_criterion(groups, prefix, desk.given[s, desk.block[j]])
            _record_labels(groups, pending, desk, parting, wide, s, first, i)
            first = i
        desk.key[wide:] = NONE


@piece
def _same_before(desk, s, row, other):
    """Whether two rows have the same labels before the s-th."""
    for before in range(s):
        if desk.given[before, row] != desk.given[before, other]:
            return False
    return True


@piece
def _publish_node(groups, labels, pending, desk, nodes, parting, rows, node, criteria):
    """Publish what a node can and pass the rest up; return the number of published rows."""
    count = _collect(nodes, parting, rows, node)
    if not count:
        return 0
    wide, deep = len(pending.floors), len(pending.values)
    _take_key(pending, desk, nodes.depths[node], rows[0])
    k = _crowd_of(pending, nodes.depths[node], rows[0])
    copy_run(rows, 0, count, desk.block, 0)
    got = label_block(groups, labels, desk, pending.values, pending.persons, wide, count, k, criteria)
    people = people_in(desk, pending.persons, desk.block, 0, got)
    entry = find_group(groups, desk.key)
    is_published = got and (people >= k or (entry != NO_ENTRY and groups.counts[entry] >= k))
    if is_published:
        _record_groups(groups, pending, desk, parting, node, got, people)
    for i in range(count):
        if not is_published or not _is_labelled(desk, deep, rows[i]):
            _pass_up(nodes, parting, node, rows[i])
    return got if is_published else 0


@kernel
def form_groups(groups, labels, pending, desk, nodes, parting, rows, tops, criteria):
    """Publish what is possible; return the number of published rows, FULL if there was no space for more nodes.

    `tops` are ends of runs in `parting.order`: rows whose coarsest labels that may be published are the same.
    Published rows get a node and a group; their sparse labels are in `desk.given`.
    """
    begin = 0
    for top in range(len(tops)):
        copy_run(pending.floors, 0, len(pending.floors), nodes.depths[top], 0)
        nodes.above[top], nodes.passed[top] = NO_SPLIT, END
        nodes.begins[top], nodes.ends[top] = begin, tops[top]
        begin = tops[top]
    made, node = len(tops), 0
    while node < made:
        made = _part_node(groups, labels, pending, desk, nodes, parting, rows, node, made, criteria)
        if made == FULL:
            return FULL
        node += 1
    left = 0
    groups.meta[ROUND] += 1
    for node in range(made - 1, -1, -1):
        left += _publish_node(groups, labels, pending, desk, nodes, parting, rows, node, criteria)
    if left == 0:
        groups.meta[ROUND] -= 1
    return left
