"""Labels for the sparse quasi-identifiers of a block: as fine as enough people share, then one common criterion.

Labels of all sparse attributes are numbered together, values included. `starts` and `above` list what lies above a
value, without the root; `rank` orders labels from the preferred one on (values, then fewest leaves, then the property's
priority, then the name), `by_rank` is its inverse; `kinds` is VALUE, IS_A, or a higher number for other properties.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.flexible.groups import NO_ENTRY, NONE, find_group
from shoal.kernels.sorting import copy_run, sort_rows

VALUE = -1
IS_A = 0
END = -1


class Labels(NamedTuple):
    """What lies above each value of the sparse attributes, and what labels lose."""

    starts: np.ndarray
    above: np.ndarray
    rank: np.ndarray
    by_rank: np.ndarray
    kinds: np.ndarray
    loss: np.ndarray
    roots: np.ndarray
    """The root label of each attribute, NONE where it may not be published."""
    k_s: np.ndarray
    """Number of people a label needs, by the number its block needs."""


class Desk(NamedTuple):
    """Scratch space."""

    block: np.ndarray
    """Rows of the current block; after labelling, the labelled ones, sorted by label."""
    seen: np.ndarray
    """By person: the last count in which they were counted."""
    tick: np.ndarray
    heads: np.ndarray
    """By label: its first pair, END where there is none."""
    pair_rows: np.ndarray
    pair_next: np.ndarray
    present: np.ndarray
    """Ranks of the labels that have pairs."""
    given: np.ndarray
    """By sparse attribute and row: the label."""
    common: np.ndarray
    """By sparse attribute and row: whether the label is the block's common criterion."""
    sort_keys: np.ndarray
    sort_rows: np.ndarray
    shown: np.ndarray
    """Common criteria of the current block: those it has published, then those just chosen, NONE for free places."""
    bounds: np.ndarray
    """Ends of the segments of the current block, before and after an attribute is labelled: two rows."""
    key: np.ndarray


@piece
def people_in(desk, persons, rows, begin, end):
    """The number of different people in a run of rows."""
    desk.tick[0] += 1
    tick = desk.tick[0]
    count = 0
    for i in range(begin, end):
        person = persons[rows[i]]
        if desk.seen[person] != tick:
            desk.seen[person] = tick
            count += 1
    return count


@piece
def _listed_people(desk, persons, s, label):
    """Different people, and records, in the list of a label that have no label yet."""
    desk.tick[0] += 1
    tick = desk.tick[0]
    people, records = 0, 0
    pair = desk.heads[label]
    while pair != END:
        row = desk.pair_rows[pair]
        if desk.given[s, row] == NONE:
            records += 1
            if desk.seen[persons[row]] != tick:
                desk.seen[persons[row]] = tick
                people += 1
        pair = desk.pair_next[pair]
    return people, records


@piece
def _give(desk, s, label, is_common):
    """Label every row in the list of a label that has none yet."""
    given = 0
    pair = desk.heads[label]
    while pair != END:
        row = desk.pair_rows[pair]
        if desk.given[s, row] == NONE:
            desk.given[s, row] = label
            desk.common[s, row] = is_common
            given += 1
        pair = desk.pair_next[pair]
    return given


@piece
def _add_pair(desk, labels, label, row, pairs, present):
    """Put a row into the list of a label; return how many labels have lists now."""
    if desk.heads[label] == END:
        desk.present[present] = labels.rank[label]
        present += 1
    desk.pair_rows[pairs] = row
    desk.pair_next[pairs] = desk.heads[label]
    desk.heads[label] = pairs
    return present


@piece
def _list_rows(labels, desk, values, s, begin, end, of_all):
    """Lists of the rows without a label under the labels above them: classes alone, with the value, or all kinds."""
    pairs, present = 0, 0
    for i in range(begin, end):
        row = desk.block[i]
        if desk.given[s, row] != NONE:
            continue
        value = values[s, row]
        if not of_all:
            present = _add_pair(desk, labels, value, row, pairs, present)
            pairs += 1
        for j in range(labels.starts[value], labels.starts[value + 1]):
            label = labels.above[j]
            if of_all or labels.kinds[label] == IS_A:
                present = _add_pair(desk, labels, label, row, pairs, present)
                pairs += 1
    return present


@piece
def _sort_present(desk, present):
    """Put the labels that have lists into the order of preference."""
    copy_run(desk.present, 0, present, desk.sort_keys[0], 0)
    sort_rows(desk.sort_keys, desk.sort_rows, present)
    copy_run(desk.sort_keys[0], 0, present, desk.present, 0)


@piece
def _clear_lists(labels, desk, present):
    """Empty all lists."""
    for i in range(present):
        desk.heads[labels.by_rank[desk.present[i]]] = END


@piece
def _published(groups, desk, at, label, prefix, k_s):
    """Whether a label is published in this block for enough people already."""
    if prefix == NO_ENTRY:
        return False
    desk.key[at] = label
    entry = find_group(groups, desk.key)
    desk.key[at] = NONE
    return entry != NO_ENTRY and groups.counts[entry] >= k_s


@piece
def _climb(groups, labels, desk, values, persons, s, at, begin, end, prefix, k_s):
    """Give values and classes, the finest first, wherever enough people share one; return how many rows are left."""
    present = _list_rows(labels, desk, values, s, begin, end, 0)
    left = end - begin
    _sort_present(desk, present)
    for i in range(present):
        label = labels.by_rank[desk.present[i]]
        people, _ = _listed_people(desk, persons, s, label)
        if people and (people >= k_s or _published(groups, desk, at, label, prefix, k_s)):
            left -= _give(desk, s, label, 0)
    _clear_lists(labels, desk, present)
    return left


@piece
def _start_criteria(groups, desk, prefix):
    """Load the criteria that a block has published."""
    for i in range(len(desk.shown)):
        desk.shown[i] = NONE if prefix == NO_ENTRY else groups.criteria[prefix, i]


@piece
def _may_show(desk, label):
    """Whether a label is a criterion of the block, or may become one."""
    for i in range(len(desk.shown)):
        if desk.shown[i] in (NONE, label):
            return True
    return False


@piece
def _show(desk, label):
    """Make a label a criterion of the block."""
    for i in range(len(desk.shown)):
        if desk.shown[i] == NONE:
            desk.shown[i] = label
        if desk.shown[i] == label:
            return


@piece
def _choose_criterion(groups, labels, desk, values, persons, s, at, begin, end, prefix, k_s):
    """Give the label that covers most of the rest; return the number of rows.

    A block publishes a fixed number of criteria and keeps those it has published.
    """
    present = _list_rows(labels, desk, values, s, begin, end, 1)
    best, most = NONE, 0
    for i in range(present):
        label = labels.by_rank[desk.present[i]]
        if not _may_show(desk, label):
            continue
        people, records = _listed_people(desk, persons, s, label)
        if people < k_s and not (people and _published(groups, desk, at, label, prefix, k_s)):
            continue
        if records > most or (records == most and labels.rank[label] < labels.rank[best]):
            best, most = label, records
    given = 0
    if best != NONE:
        given = _give(desk, s, best, 1)
        _show(desk, best)
    _clear_lists(labels, desk, present)
    return given


@piece
def _give_root(groups, labels, desk, values, persons, s, at, begin, end, prefix, k_s):
    """Give the rest the root label if it may be published and enough people get it.

    A missing value (the label after the root) is covered by no other label.
    """
    root = labels.roots[s]
    if root == NONE:
        return
    desk.tick[0] += 1
    people = 0
    for i in range(begin, end):
        row = desk.block[i]
        is_left = desk.given[s, row] == NONE and values[s, row] != root + 1
        if is_left and desk.seen[persons[row]] != desk.tick[0]:
            desk.seen[persons[row]] = desk.tick[0]
            people += 1
    if people >= k_s or (people and _published(groups, desk, at, root, prefix, k_s)):
        for i in range(begin, end):
            row = desk.block[i]
            if desk.given[s, row] == NONE and values[s, row] != root + 1:
                desk.given[s, row] = root
                desk.common[s, row] = 0


@piece
def _gather(desk, s, begin, end, out):
    """Move the labelled rows of a segment to `out` on, sorted by label; return where they end."""
    count = 0
    for i in range(begin, end):
        row = desk.block[i]
        if desk.given[s, row] != NONE:
            desk.sort_keys[0, count] = desk.given[s, row]
            desk.sort_rows[0, count] = row
            count += 1
    sort_rows(desk.sort_keys, desk.sort_rows, count)
    copy_run(desk.sort_rows[0], 0, count, desk.block, out)
    return out + count


@piece
def label_block(groups, labels, desk, values, persons, wide, count, k, criteria):
    """Give the first `count` rows of the block labels; return how many got one for every sparse attribute.

    `desk.key` holds the block's codes. Afterwards the labelled rows come first, sorted by label.
    """
    deep = len(values)
    k_s = labels.k_s[k]
    desk.bounds[0, 0] = count
    segments = 1
    for s in range(deep):
        out, made, begin = 0, 0, 0
        for segment in range(segments):
            end = desk.bounds[0, segment]
            for before in range(s):
                desk.key[wide + before] = desk.given[before, desk.block[begin]]
            for i in range(begin, end):
                desk.given[s, desk.block[i]] = NONE
            prefix = find_group(groups, desk.key)
            at = wide + s
            left = _climb(groups, labels, desk, values, persons, s, at, begin, end, prefix, k_s)
            _start_criteria(groups, desk, prefix)
            for _ in range(criteria):
                if left:
                    left -= _choose_criterion(groups, labels, desk, values, persons, s, at, begin, end, prefix, k_s)
            if left:
                _give_root(groups, labels, desk, values, persons, s, at, begin, end, prefix, k_s)
            first = out
            out = _gather(desk, s, begin, end, out)
            for i in range(first + 1, out + 1):
                if i == out or desk.given[s, desk.block[i]] != desk.given[s, desk.block[i - 1]]:
                    desk.bounds[1, made] = i
                    made += 1
            begin = end
        desk.key[wide:] = NONE
        copy_run(desk.bounds[1], 0, made, desk.bounds[0], 0)
        segments, count = made, out
    return count
