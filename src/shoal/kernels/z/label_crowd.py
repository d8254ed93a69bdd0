"""Who counts for which label of a hierarchy: the strict residual rule, kept up to date event by event.

An exposure counts for a label while it is inside the window, was not released at a label strictly below, and no label
strictly below it on its path passes now. So an exposure counts from its own value up to the first label that passes,
but not above its *ceiling*: the label it was released at, or the root where it was suppressed. Where a label begins or
ceases to pass, the exposures below it stop or begin to count above it.
"""

from __future__ import annotations

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.z.crowd import PRIVATE, ring_row
from shoal.kernels.z.label_rows import (
    CEILING,
    DEPTH,
    FIRST_CHILD,
    FIRST_PAIR,
    HEAD,
    HIGH,
    KEY_HIGH,
    KEY_LOW,
    LEAF,
    LIVE,
    LOW,
    NEWER,
    NEWEST,
    NEXT,
    NEXT_CHILD,
    NODE_ROWS,
    OLDER,
    OLDEST,
    PAIR,
    PAIR_ROWS,
    PARENT,
    PASSES,
    PEOPLE,
    SPAN,
    TIME,
    TOP,
    USED,
    count_person,
    discount_person,
    find_node,
    find_pair,
    forget_nodes,
    forget_pair,
)


@piece
def above(nodes, node, steps):
    """The label some steps above another."""
    for _ in range(steps):
        node = nodes[node, PARENT]
    return node


@piece
def extend(s, pair):
    """Let a pair count for more labels: up to its ceiling, or to the first one that passes."""
    top, ceiling = s.pairs[pair, TOP], s.ring[s.pairs[pair, OLDEST], CEILING]
    node = above(s.nodes, s.pairs[pair, LEAF], top)
    while top < ceiling and s.nodes[node, PASSES] == 0:
        node = s.nodes[node, PARENT]
        count_person(s, s.pairs[pair, LOW], s.pairs[pair, HIGH], node)
        top += 1
    s.pairs[pair, TOP] = top


@piece
def retract(s, pair, node, top):
    """Let a pair count no higher than a label, which is `top` steps above its value."""
    for _ in range(top, s.pairs[pair, TOP]):
        node = s.nodes[node, PARENT]
        discount_person(s, s.pairs[pair, LOW], s.pairs[pair, HIGH], node)
    s.pairs[pair, TOP] = top


@piece
def next_open(nodes, node):
    """The first of some siblings, from one on, that does not pass; -1 for none."""
    while node >= 0 and nodes[node, PASSES] != 0:
        node = nodes[node, NEXT_CHILD]
    return node


@piece
def next_below(nodes, node, top):
    """The next label of a walk through the labels below `top` that skips those that pass; -1 at its end."""
    child = next_open(nodes, nodes[node, FIRST_CHILD])
    while child < 0 and node != top:
        child = next_open(nodes, nodes[node, NEXT_CHILD])
        node = nodes[node, PARENT]
    return child


@piece
def turn_label(s, label):
    """A label begins or ceases to pass: the pairs that count for it cease or begin to count above it."""
    s.nodes[label, PASSES] = 1 - s.nodes[label, PASSES]
    node = label
    while node >= 0:
        steps = s.nodes[node, DEPTH] - s.nodes[label, DEPTH]
        pair = s.nodes[node, FIRST_PAIR]
        while pair >= 0:
            if s.pairs[pair, TOP] >= steps:
                if s.nodes[label, PASSES] != 0:
                    retract(s, pair, label, steps)
                else:
                    extend(s, pair)
            pair = s.pairs[pair, NEXT]
        node = next_below(s.nodes, node, label)


@piece
def settle(s, node, z):
    """Turn the labels from one up to the root that pass, or do not, other than they did."""
    while node >= 0:
        if (s.nodes[node, PEOPLE] >= z) != (s.nodes[node, PASSES] != 0):
            turn_label(s, node)
        node = s.nodes[node, PARENT]


@piece
def add_exposure(s, pair, time, ceiling):
    """Append an exposure to the ring."""
    newest = s.pairs[pair, NEWEST]
    while newest >= 0 and s.ring[newest, CEILING] <= ceiling:
        s.ring[newest, PAIR] = -1
        s.marks[LIVE] -= 1
        newest = s.ring[newest, OLDER]
    row = ring_row(s.ring, s.marks[HEAD], s.marks[USED])
    s.ring[row, TIME], s.ring[row, PAIR], s.ring[row, CEILING] = time, pair, ceiling
    s.ring[row, OLDER], s.ring[row, NEWER] = newest, -1
    if newest >= 0:
        s.ring[newest, NEWER] = row
    else:
        s.pairs[pair, OLDEST] = row
    s.pairs[pair, NEWEST] = row
    s.marks[USED] += 1
    s.marks[LIVE] += 1


@piece
def drop_oldest(s, pair, z):
    """Forget the oldest exposure of a pair, which has its highest ceiling."""
    leaf, newer = s.pairs[pair, LEAF], s.ring[s.pairs[pair, OLDEST], NEWER]
    s.marks[LIVE] -= 1
    if newer >= 0:
        s.ring[newer, OLDER] = -1
        s.pairs[pair, OLDEST] = newer
        ceiling = s.ring[newer, CEILING]
        if s.pairs[pair, TOP] > ceiling:
            retract(s, pair, above(s.nodes, leaf, ceiling), ceiling)
            settle(s, leaf, z)
        return
    retract(s, pair, leaf, 0)
    discount_person(s, s.pairs[pair, LOW], s.pairs[pair, HIGH], leaf)
    s.pairs[pair, TOP] = -1
    forget_pair(s, pair, leaf)
    settle(s, leaf, z)
    forget_nodes(s, leaf)


@kernel
def expire_labels(s, oldest_time, z):
    """Forget every exposure before a time; one at exactly that time still counts."""
    while s.marks[USED] > 0:
        row = s.marks[HEAD]
        if s.ring[row, PAIR] >= 0:
            if s.ring[row, TIME] >= oldest_time:
                break
            drop_oldest(s, s.ring[row, PAIR], z)
        s.marks[HEAD] = ring_row(s.ring, row, 1)
        s.marks[USED] -= 1


@piece
def has_room_for(s, labels):
    """Whether one more exposure with a path of this many labels, all new at worst, finds room."""
    marks = s.marks
    return (
        marks[USED] < len(s.ring)
        and marks[PAIR_ROWS] < len(s.pairs)
        and marks[NODE_ROWS] + labels <= len(s.nodes)
        and marks[SPAN] + labels <= len(s.people)
    )


@kernel
def decide_strictly(s, persons, keys, starts, times, z, window, first, levels):
    """Decide events in time order at the most specific label that passes z by the strict residual rule.

    keys[starts[i]:starts[i + 1]] are the keys from the value of event i up to the root. Returns the first event not
    decided, where room is missing.
    """
    for i in range(first, len(times)):
        levels[i] = PRIVATE
        if starts[i] == starts[i + 1]:
            continue
        expire_labels(s, times[i] - window, z)
        if not has_room_for(s, starts[i + 1] - starts[i]):
            return i
        leaf = find_node(s, keys, starts[i], starts[i + 1])
        pair = find_pair(s, persons[i, 0], persons[i, 1], leaf)
        node, level = leaf, 0
        while True:
            if s.pairs[pair, TOP] < level:
                count_person(s, persons[i, 0], persons[i, 1], node)
                s.pairs[pair, TOP] = level
            if s.nodes[node, PEOPLE] >= z:
                levels[i] = level
                break
            if s.nodes[node, PARENT] < 0:
                break
            node = s.nodes[node, PARENT]
            level += 1
        add_exposure(s, pair, times[i], level)
        settle(s, leaf, z)
    return len(times)


@kernel
def pack_labels(s, exposures, labels, renumbered):
    """Copy live exposures in time order, and the labels on their paths, numbered as they first appear.

    Rows are [person low, person high, time, value, ceiling] and [key low, key high, parent, 0]. The result depends on
    what was seen alone. renumbered is -1 for all.
    """
    live, known = 0, 0
    for step in range(s.marks[USED]):
        row = ring_row(s.ring, s.marks[HEAD], step)
        pair = s.ring[row, PAIR]
        if pair < 0:
            continue
        leaf = s.pairs[pair, LEAF]
        node = leaf
        while node >= 0 and renumbered[node] < 0:
            renumbered[node] = known
            labels[known, KEY_LOW], labels[known, KEY_HIGH] = s.nodes[node, KEY_LOW], s.nodes[node, KEY_HIGH]
            labels[known, 2] = known + 1  # the parent is numbered next, if it is not yet
            labels[known, 3] = 0
            known += 1
            node = s.nodes[node, PARENT]
        if known > 0 and node != leaf:
            labels[known - 1, 2] = renumbered[node] if node >= 0 else -1
        exposures[live, 0], exposures[live, 1] = s.pairs[pair, LOW], s.pairs[pair, HIGH]
        exposures[live, 2], exposures[live, 3] = s.ring[row, TIME], renumbered[leaf]
        exposures[live, 4] = s.ring[row, CEILING]
        live += 1
    return live, known


@kernel
def load_labels(s, exposures, labels, z, path):
    """Add the exposures that pack_labels wrote to empty tables with room for them; `path` is scratch for keys."""
    for at in range(len(exposures)):
        length, label = 0, exposures[at, 3]
        while label >= 0:
            path[length, 0], path[length, 1] = labels[label, KEY_LOW], labels[label, KEY_HIGH]
            label = labels[label, 2]
            length += 1
        low, high = exposures[at, 0], exposures[at, 1]
        leaf = find_node(s, path, 0, length)
        pair = find_pair(s, low, high, leaf)
        add_exposure(s, pair, exposures[at, 2], exposures[at, 4])
        if s.pairs[pair, TOP] < 0:
            count_person(s, low, high, leaf)
            s.pairs[pair, TOP] = 0
        extend(s, pair)
        settle(s, leaf, z)
