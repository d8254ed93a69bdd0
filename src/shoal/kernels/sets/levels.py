"""Publish a label more precisely in those records in which k people still share every set of labels.

Every entry of a record is published as a node at or above its item. A label is refined in some of the records that have
it: there its entries get the nodes one step below. The records start as all that have the label. Two rules take records
out of them until both hold: every new set of labels is in k refined records, and every old one is in k of the others or
in none. Sets of labels are counted in a hash table; a set's hash is the sum of the hashes of its labels.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.randomness import mixed

_SALT = np.uint64(0x9E3779B97F4A7C15)


class Levels(NamedTuple):
    """Records whose entries have nodes of a tree."""

    starts: np.ndarray
    leaves: np.ndarray
    """The item of every entry, as a leaf."""
    nodes: np.ndarray
    """What every entry is published as."""
    lift: np.ndarray
    """By node: the nearest ancestor with more leaves."""


class Crowds(NamedTuple):
    """How often sets of labels occur."""

    keys: np.ndarray
    """Hashes; 0 means free. The length is a power of two, more than the sets there are."""
    counts: np.ndarray
    least: np.ndarray
    """By number of labels: the records that every set needs; up to m."""


class Work(NamedTuple):
    """Scratch space."""

    hashes: np.ndarray
    """The labels of one record: the refined ones first."""
    seen: np.ndarray
    """By node: the number of the last record that had it."""
    tally: np.ndarray
    """Numbers of records; labels of the record: refined ones, all."""
    sums: np.ndarray
    next_at: np.ndarray


_MOST_COMPLETED = 16
"""Records that complete this many sets of the others at once are taken out first, then those that complete half."""
NUMBER, REFINED, ALL = range(3)
ADD, REMOVE, IS_SHORT, IS_LEFT_SHORT = range(4)


@piece
def hash_of_label(node):
    """A word for a label."""
    return mixed(np.uint64(node + 1) * _SALT)


@piece
def refined_node(levels, entry, label):
    """The node one step below a label, on the way to an entry's item."""
    node = levels.leaves[entry]
    while levels.lift[node] != label:
        node = levels.lift[node]
    return node


@piece
def note_label(work, node, filled):
    """Note a label of the current record, once; return how many there are."""
    if work.seen[node] == work.tally[NUMBER]:
        return filled
    work.seen[node] = work.tally[NUMBER]
    work.hashes[filled] = hash_of_label(node)
    return filled + 1


@piece
def load_labels(levels, record, label, work):
    """Load what a record would have: the nodes below the label, then its other labels."""
    work.tally[NUMBER] += 1
    filled = 0
    for entry in range(levels.starts[record], levels.starts[record + 1]):
        if levels.nodes[entry] == label:
            filled = note_label(work, refined_node(levels, entry, label), filled)
    work.tally[REFINED] = filled
    for entry in range(levels.starts[record], levels.starts[record + 1]):
        if levels.nodes[entry] != label:
            filled = note_label(work, levels.nodes[entry], filled)
    work.tally[ALL] = filled


@piece
def slot_of(crowds, word):
    """Where a set is, or would be, in the table."""
    key = mixed(word) | np.uint64(1)
    mask = len(crowds.keys) - 1
    at = np.int64(key >> np.uint64(1)) & mask
    while crowds.keys[at] != np.uint64(0) and crowds.keys[at] != key:
        at = (at + 1) & mask
    return at, key


@piece
def visit(crowds, word, labels, action):
    """Do something with a set; return whether it has too few records."""
    at, key = slot_of(crowds, word)
    if action == ADD:
        crowds.keys[at] = key
        crowds.counts[at] += 1
    elif action == REMOVE:
        crowds.counts[at] -= 1
    elif action == IS_SHORT:
        return crowds.counts[at] < crowds.least[labels]
    else:
        return 0 < crowds.counts[at] < crowds.least[labels]
    return False


@piece
def visit_sets(crowds, work, base, begin, action, wanted):
    """Visit a label together with up to m - 1 of the loaded labels from `begin` on.

    Return the number of sets with too few records, counted up to `wanted`.
    """
    most = len(crowds.least) - 1
    depth = 0
    work.sums[0] = base
    work.next_at[0] = begin
    short = np.int64(visit(crowds, base, 1, action))
    while depth >= 0 and short < wanted:
        at = work.next_at[depth]
        if at >= work.tally[ALL] or depth == most - 1:
            depth -= 1
            continue
        work.next_at[depth] = at + 1
        word = work.sums[depth] + work.hashes[at]
        short += visit(crowds, word, depth + 2, action)
        depth += 1
        work.sums[depth] = word
        work.next_at[depth] = at + 1
    return short


@piece
def visit_new(crowds, work, action):
    """Visit all sets with a label that the loaded record would get; return whether one has too few records."""
    for first in range(work.tally[REFINED]):
        if visit_sets(crowds, work, work.hashes[first], first + 1, action, 1) > 0:
            return True
    return False


@piece
def visit_old(crowds, work, label, action, wanted):
    """Visit all sets with the label itself in the loaded record; return whether `wanted` of them have too few."""
    return visit_sets(crowds, work, hash_of_label(label), work.tally[REFINED], action, wanted) >= wanted


@piece
def take_out(levels, label, holders, is_refined, crowds, work, wanted):
    """Take records out until none breaks a rule; return their number.

    With `wanted` 0 the rule for new sets; else records go to the others that complete `wanted` of their sets.
    """
    taken, before = 0, -1
    while taken != before:
        before = taken
        for at in range(len(holders)):
            if not is_refined[at]:
                continue
            load_labels(levels, holders[at], label, work)
            if wanted > 0:
                is_bad = visit_old(crowds, work, label, IS_LEFT_SHORT, wanted)
            else:
                is_bad = visit_new(crowds, work, IS_SHORT)
            if is_bad:
                is_refined[at] = False
                taken += 1
                visit_new(crowds, work, REMOVE)
                visit_old(crowds, work, label, ADD, 1)
    return taken


@kernel
def choose_records(levels, label, holders, is_refined, crowds, work):
    """Mark the holders of a label in which it can be refined; return their number. The table must be empty."""
    for at in range(len(holders)):
        is_refined[at] = True
        load_labels(levels, holders[at], label, work)
        visit_new(crowds, work, ADD)
    left, wanted = len(holders), _MOST_COMPLETED
    while left > 0 and wanted > 0:
        left -= take_out(levels, label, holders, is_refined, crowds, work, 0)
        taken = take_out(levels, label, holders, is_refined, crowds, work, wanted)
        left -= taken
        wanted = _MOST_COMPLETED if taken > 0 and wanted == 1 else wanted >> 1
    return left


@kernel
def refine_records(levels, label, holders, is_refined, work, new_nodes, owners):
    """Refine a label in the marked records; list their new nodes, with the record of each; return how many."""
    listed = 0
    for at in range(len(holders)):
        if not is_refined[at]:
            continue
        work.tally[NUMBER] += 1
        for entry in range(levels.starts[holders[at]], levels.starts[holders[at] + 1]):
            if levels.nodes[entry] != label:
                continue
            node = refined_node(levels, entry, label)
            levels.nodes[entry] = node
            if work.seen[node] != work.tally[NUMBER]:
                work.seen[node] = work.tally[NUMBER]
                new_nodes[listed] = node
                owners[listed] = holders[at]
                listed += 1
    return listed
