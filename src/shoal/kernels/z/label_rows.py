"""The tables of the strict residual rule: rows for people, values and labels, found, made and freed.

State (all int64; StrictLabels allocates it):

``ring``    exposures in time order; expiry reads it from the head. PAIR is -1 once a later exposure of the same person
            and value has a ceiling as high. The others of a pair are linked: older ones have higher ceilings.
``pairs``   one row for each person and value inside the window. TOP is how many steps above the value it counts.
``nodes``   one row for each value or label with a pair at or below it, linked to parent, children and its own pairs.
``people``  one row for each person and label, with the number of the person's pairs that count for the label.
``pair_index``, ``names``, ``people_index``  open-addressed indexes of these rows (index.py).
``marks``   the scalars below. SPAN is the number of labels on the paths of all pairs: no more rows of ``people`` can be
            needed, whatever passes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from shoal.kernels.bundles import bundle
from shoal.kernels.compiling import piece
from shoal.kernels.z.index import (
    after,
    entry,
    erase,
    find_name,
    fold,
    home_of,
    pair_tag,
    position_of,
    tag_of,
)

HEAD, USED, LIVE, SPAN = range(4)
PAIR_ROWS, NODE_ROWS, PEOPLE_ROWS = 4, 7, 10  # three marks each: rows in use, rows ever used, the first free row
MARKS = 13
TIME, PAIR, CEILING, OLDER, NEWER = range(5)
LOW, HIGH, LEAF, TOP, NEWEST, OLDEST, NEXT, PREVIOUS = range(8)
KEY_LOW, KEY_HIGH, PEOPLE, PARENT, DEPTH, PASSES, FIRST_PAIR, FIRST_CHILD, NEXT_CHILD, PREVIOUS_CHILD = range(10)
NODE, COUNT = 2, 3
WIDTHS = {"ring": 5, "pairs": 8, "nodes": 10, "people": 4}


@bundle
class Labels(NamedTuple):
    """All tables."""

    ring: Any
    pairs: Any
    pair_index: Any
    nodes: Any
    names: Any
    people: Any
    people_index: Any
    marks: Any


@piece
def take_row(rows, marks, of):
    """A row that is not in use; freed rows are linked by their first column."""
    marks[of] += 1
    row = marks[of + 2]
    if row >= 0:
        marks[of + 2] = rows[row, 0]
        return row
    marks[of + 1] += 1
    return marks[of + 1] - 1


@piece
def free_row(rows, marks, of, row):
    """Return a row."""
    rows[row, 0] = marks[of + 2]
    marks[of + 2] = row
    marks[of] -= 1


@piece
def find_slot(index, rows, tag, low, high, third):
    """Slot of the row that begins with three numbers, or the empty slot where it belongs."""
    slot = home_of(len(index), tag)
    while index[slot] != 0:
        if tag_of(index[slot]) == tag:
            row = position_of(index[slot])
            if rows[row, 0] == low and rows[row, 1] == high and rows[row, 2] == third:
                break
        slot = after(len(index), slot)
    return slot


@piece
def count_person(s, low, high, node):
    """One more pair of a person counts for a label."""
    tag = pair_tag(low, s.nodes[node, KEY_LOW])
    slot = find_slot(s.people_index, s.people, tag, low, high, node)
    if s.people_index[slot] != 0:
        s.people[position_of(s.people_index[slot]), COUNT] += 1
        return
    row = take_row(s.people, s.marks, PEOPLE_ROWS)
    s.people[row, LOW], s.people[row, HIGH] = low, high
    s.people[row, NODE], s.people[row, COUNT] = node, 1
    s.people_index[slot] = entry(tag, row)
    s.nodes[node, PEOPLE] += 1


@piece
def discount_person(s, low, high, node):
    """One pair of a person counts for a label no more."""
    tag = pair_tag(low, s.nodes[node, KEY_LOW])
    slot = find_slot(s.people_index, s.people, tag, low, high, node)
    row = position_of(s.people_index[slot])
    s.people[row, COUNT] -= 1
    if s.people[row, COUNT] == 0:
        erase(s.people_index, slot)
        free_row(s.people, s.marks, PEOPLE_ROWS, row)
        s.nodes[node, PEOPLE] -= 1


@piece
def find_node(s, keys, begin, end):
    """Row of the value whose path is keys[begin:end]; made, with what is missing above it, if there is none."""
    parent = -1
    for at in range(begin, end):  # the value is nearly always known, or its parent is
        slot = find_name(s.names, s.nodes, fold(keys[at, 0]), keys[at, 0], keys[at, 1])
        if s.names[slot] != 0:
            parent = position_of(s.names[slot])
            end = at
            break
    for at in range(end - 1, begin - 1, -1):
        parent = make_node(s, keys[at, 0], keys[at, 1], parent)
    return parent


@piece
def make_node(s, low, high, parent):
    """A new row for a label."""
    node = take_row(s.nodes, s.marks, NODE_ROWS)
    nodes, tag = s.nodes, fold(low)
    nodes[node, KEY_LOW], nodes[node, KEY_HIGH] = low, high
    nodes[node, PEOPLE], nodes[node, PASSES], nodes[node, PARENT] = 0, 0, parent
    nodes[node, FIRST_PAIR] = nodes[node, FIRST_CHILD] = nodes[node, NEXT_CHILD] = nodes[node, PREVIOUS_CHILD] = -1
    nodes[node, DEPTH] = 0
    if parent >= 0:
        nodes[node, DEPTH] = nodes[parent, DEPTH] + 1
        following = nodes[parent, FIRST_CHILD]
        nodes[node, NEXT_CHILD] = following
        if following >= 0:
            nodes[following, PREVIOUS_CHILD] = node
        nodes[parent, FIRST_CHILD] = node
    s.names[find_name(s.names, nodes, tag, low, high)] = entry(tag, node)
    return node


@piece
def forget_nodes(s, node):
    """Free a label without pairs and children, and then those above it."""
    nodes = s.nodes
    while node >= 0 and nodes[node, FIRST_PAIR] < 0 and nodes[node, FIRST_CHILD] < 0:
        parent, following, previous = nodes[node, PARENT], nodes[node, NEXT_CHILD], nodes[node, PREVIOUS_CHILD]
        if following >= 0:
            nodes[following, PREVIOUS_CHILD] = previous
        if previous >= 0:
            nodes[previous, NEXT_CHILD] = following
        elif parent >= 0:
            nodes[parent, FIRST_CHILD] = following
        low, high = nodes[node, KEY_LOW], nodes[node, KEY_HIGH]
        erase(s.names, find_name(s.names, nodes, fold(low), low, high))
        free_row(nodes, s.marks, NODE_ROWS, node)
        node = parent


@piece
def find_pair(s, low, high, leaf):
    """Row of a person and a value; made if there is none."""
    tag = pair_tag(low, s.nodes[leaf, KEY_LOW])
    slot = find_slot(s.pair_index, s.pairs, tag, low, high, leaf)
    if s.pair_index[slot] != 0:
        return position_of(s.pair_index[slot])
    pair = take_row(s.pairs, s.marks, PAIR_ROWS)
    pairs, following = s.pairs, s.nodes[leaf, FIRST_PAIR]
    pairs[pair, LOW], pairs[pair, HIGH], pairs[pair, LEAF] = low, high, leaf
    pairs[pair, TOP] = pairs[pair, NEWEST] = pairs[pair, OLDEST] = pairs[pair, PREVIOUS] = -1
    pairs[pair, NEXT] = following
    if following >= 0:
        pairs[following, PREVIOUS] = pair
    s.nodes[leaf, FIRST_PAIR] = pair
    s.pair_index[slot] = entry(tag, pair)
    s.marks[SPAN] += s.nodes[leaf, DEPTH] + 1
    return pair


@piece
def forget_pair(s, pair, leaf):
    """Free a pair that counts for nothing."""
    pairs, following, previous = s.pairs, s.pairs[pair, NEXT], s.pairs[pair, PREVIOUS]
    if following >= 0:
        pairs[following, PREVIOUS] = previous
    if previous >= 0:
        pairs[previous, NEXT] = following
    else:
        s.nodes[leaf, FIRST_PAIR] = following
    low, high = pairs[pair, LOW], pairs[pair, HIGH]
    erase(s.pair_index, find_slot(s.pair_index, pairs, pair_tag(low, s.nodes[leaf, KEY_LOW]), low, high, leaf))
    free_row(pairs, s.marks, PAIR_ROWS, pair)
    s.marks[SPAN] -= s.nodes[leaf, DEPTH] + 1
