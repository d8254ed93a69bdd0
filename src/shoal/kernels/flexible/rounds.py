"""One round of the flexible method: pending rows are assigned to blocks and labels, at the least loss that is found.

The candidate that lowers the loss of its rows most is opened first, then the next one, until none lowers it. A row may
leave what it was assigned to before only if enough people stay there, or if all others leave it too. A block that no
single label fills is opened with several labels together. Where rows would stay pending, people of labels that have
more than enough are lent to them, and if that fails, all rows under the same coarsest labels are assigned anew, fewest
labels first.

Losses are integers, so the order of additions does not matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.flexible.candidates import (
    BEGIN,
    BLOCK,
    BLOCKS,
    CANDIDATE,
    FIRST_TUPLE,
    IS_FULL,
    K_S,
    LAST_TUPLE,
    LOSS,
    NEED,
    PEOPLE,
    PUBLISHED,
    STOP,
    TUPLES,
    find_blocks,
    find_tuples,
    people_in,
    take_key,
)
from shoal.kernels.flexible.groups import ROUND, keep_group
from shoal.kernels.sorting import copy_run, sort_rows

SCALE = 1 << 30
"""The loss of a row whose labels say nothing."""
UNLABELLED = 2 * SCALE
"""The loss of a row that stays pending."""
MISSING = -1
"""The code of a missing value at every depth; no other label covers it."""
PENDING = -1
FULL = -1
MOVES, HEAP, TAKES = range(3)
COUNTS = 3
_PASSES = 4
_FIRST_CHOICES = 64


class Assignment(NamedTuple):
    """The tuple of each row, and the moves that may still be taken back."""

    tuple_of: np.ndarray
    """By row: its tuple, PENDING if there is none."""
    place_of: np.ndarray
    """By row: its place in the rows of its tuple."""
    moves: np.ndarray
    """Rows that were moved, their tuples and places before: three lines."""
    heap: np.ndarray
    bounds: np.ndarray
    """By candidate: at most this much loss is saved by opening it."""
    is_queued: np.ndarray
    counts: np.ndarray
    """Number of moves, of candidates in the heap, and of calls of `_take`."""
    tried: np.ndarray
    """By tuple: the last call of `_take` that tried to close it."""
    row_ends: np.ndarray
    """By row: the end of its tuples in `row_tuples`."""
    row_tuples: np.ndarray
    row_places: np.ndarray


class Published(NamedTuple):
    """What is published."""

    given: np.ndarray
    """By sparse attribute and row: the label."""
    block_of: np.ndarray
    """By row: its block, PENDING if there is none."""
    group_of: np.ndarray
    rows: np.ndarray
    """Scratch space: rows by their labels."""


# ---- moving rows


@piece
def _loss_of(tuples, a, row):
    """The present loss of a row."""
    t = a.tuple_of[row]
    return UNLABELLED if t == PENDING else tuples.info[t, LOSS]


@piece
def _place(blocks, tuples, a, row, t, place):
    """Assign a row to a tuple; PENDING for none."""
    old = a.tuple_of[row]
    if old != PENDING:
        at = a.place_of[row]
        tuples.counts[tuples.slots[at]] -= 1
        if tuples.counts[tuples.slots[at]] == 0:
            tuples.info[old, PEOPLE] -= 1
        blocks.counts[tuples.block_slots[at]] -= 1
        if blocks.counts[tuples.block_slots[at]] == 0:
            blocks.info[tuples.info[old, BLOCK], PEOPLE] -= 1
    a.tuple_of[row], a.place_of[row] = t, place
    if t != PENDING:
        tuples.counts[tuples.slots[place]] += 1
        if tuples.counts[tuples.slots[place]] == 1:
            tuples.info[t, PEOPLE] += 1
        blocks.counts[tuples.block_slots[place]] += 1
        if blocks.counts[tuples.block_slots[place]] == 1:
            blocks.info[tuples.info[t, BLOCK], PEOPLE] += 1


@piece
def _move(blocks, tuples, a, row, t, place):
    """Assign a row to another tuple, in a way that can be taken back."""
    move = a.counts[MOVES]
    a.moves[0, move], a.moves[1, move], a.moves[2, move] = row, a.tuple_of[row], a.place_of[row]
    a.counts[MOVES] += 1
    _place(blocks, tuples, a, row, t, place)


@piece
def _take_back(blocks, tuples, a, moves):
    """Take back all moves but the first ones."""
    while a.counts[MOVES] > moves:
        a.counts[MOVES] -= 1
        move = a.counts[MOVES]
        _place(blocks, tuples, a, a.moves[0, move], a.moves[1, move], a.moves[2, move])


@piece
def _may_leave(blocks, tuples, a, row, target):
    """Whether enough people stay where a row is assigned if it moves to the block `target`."""
    if a.counts[MOVES] == a.moves.shape[1]:
        return False
    t = a.tuple_of[row]
    if t == PENDING:
        return True
    at, block = a.place_of[row], tuples.info[t, BLOCK]
    need = blocks.info[block, NEED]
    is_last = tuples.counts[tuples.slots[at]] == 1
    if is_last and not tuples.info[t, PUBLISHED] and tuples.info[t, PEOPLE] <= blocks.info[block, K_S]:
        return False
    is_last = blocks.counts[tuples.block_slots[at]] == 1
    return not (
        is_last and block != target and not blocks.info[block, PUBLISHED] and blocks.info[block, PEOPLE] <= need
    )


@piece
def _is_open(blocks, block):
    """Whether enough people for a block are published, or assigned to it."""
    return blocks.info[block, PUBLISHED] or blocks.info[block, PEOPLE] >= blocks.info[block, NEED]


@piece
def _index_rows(tuples, blocks, sizes, a):
    """List the tuples of every row."""
    a.row_ends[:] = 0
    for block in range(sizes[BLOCKS]):
        for t in range(blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE]):
            for place in range(tuples.info[t, BEGIN], tuples.info[t, STOP]):
                a.row_ends[tuples.rows[place]] += 1
    total = 0
    for row in range(len(a.row_ends)):
        total += a.row_ends[row]
        a.row_ends[row] = total - a.row_ends[row]
    for block in range(sizes[BLOCKS]):
        for t in range(blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE]):
            for place in range(tuples.info[t, BEGIN], tuples.info[t, STOP]):
                at = a.row_ends[tuples.rows[place]]
                a.row_tuples[at], a.row_places[at] = t, place
                a.row_ends[tuples.rows[place]] += 1


@piece
def _other_place(blocks, tuples, a, row, t, block, target):
    """The place in `row_places` of the row's best tuple that is open, or `target`; PENDING if there is none.

    The row's own tuple `t` and those of `block` do not count.
    """
    best = PENDING
    for at in range(a.row_ends[row - 1] if row else 0, a.row_ends[row]):
        other = a.row_tuples[at]
        home = tuples.info[other, BLOCK]
        if other == t or home == block or (other != target and not _is_open(blocks, home)):
            continue
        has_enough = tuples.info[other, PUBLISHED] or tuples.info[other, PEOPLE] >= blocks.info[home, K_S]
        is_less = best == PENDING or tuples.info[other, LOSS] < tuples.info[a.row_tuples[best], LOSS]
        if is_less and (other == target or has_enough):
            best = at
    return best


@piece
def _move_out(blocks, tuples, a, t, block, target):
    """Move all rows of a tuple to others that are open, or `target`; return the loss saved and whether all could."""
    saved = 0
    for place in range(tuples.info[t, BEGIN], tuples.info[t, STOP]):
        row = tuples.rows[place]
        if a.tuple_of[row] != t:
            continue
        at = _other_place(blocks, tuples, a, row, t, block, target)
        if at == PENDING or a.counts[MOVES] == a.moves.shape[1]:
            return 0, False
        saved += tuples.info[t, LOSS] - tuples.info[a.row_tuples[at], LOSS]
        _move(blocks, tuples, a, row, a.row_tuples[at], a.row_places[at])
    return saved, True


@piece
def _give_way(blocks, tuples, a, t, target):
    """Close a tuple in favour of `target`, if its rows lose less then; return the loss saved."""
    moves, home = a.counts[MOVES], tuples.info[t, BLOCK]
    was_open = _is_open(blocks, home)
    saved, could = _move_out(blocks, tuples, a, t, PENDING, target)
    is_fine = blocks.info[home, PEOPLE] == 0 or not was_open or _is_open(blocks, home)
    if could and is_fine and saved > 0:
        return saved
    _take_back(blocks, tuples, a, moves)
    return 0


@piece
def _take(blocks, tuples, a, t):
    """Move all rows to a tuple that lose less there; return the loss they save, and how many were pending."""
    saved, placed = 0, 0
    a.counts[TAKES] += 1
    for place in range(tuples.info[t, BEGIN], tuples.info[t, STOP]):
        row = tuples.rows[place]
        old, loss = a.tuple_of[row], _loss_of(tuples, a, row)
        if loss <= tuples.info[t, LOSS]:
            continue
        if _may_leave(blocks, tuples, a, row, tuples.info[t, BLOCK]):
            saved += loss - tuples.info[t, LOSS]
            placed += old == PENDING
            _move(blocks, tuples, a, row, t, place)
        elif a.tried[old] != a.counts[TAKES]:
            a.tried[old] = a.counts[TAKES]
            saved += _give_way(blocks, tuples, a, old, t)
    return saved, placed


@piece
def _lend(blocks, tuples, a, t, need):
    """Move further people to a tuple until it has enough, those first who lose least by it; return that loss."""
    lost = 0
    while tuples.info[t, PEOPLE] < need:
        best, least = PENDING, 0
        for place in range(tuples.info[t, BEGIN], tuples.info[t, STOP]):
            row = tuples.rows[place]
            if tuples.counts[tuples.slots[place]]:
                continue
            loss = tuples.info[t, LOSS] - _loss_of(tuples, a, row)
            if (best == PENDING or loss < least) and _may_leave(blocks, tuples, a, row, tuples.info[t, BLOCK]):
                best, least = place, loss
        if best == PENDING:
            break
        lost += least
        _move(blocks, tuples, a, tuples.rows[best], t, best)
    return lost


@piece
def _need(blocks, tuples, t):
    """Number of people a tuple must have."""
    block = tuples.info[t, BLOCK]
    if tuples.info[t, PUBLISHED] and blocks.info[block, PUBLISHED]:
        return 1
    k_s = blocks.info[block, K_S]
    return k_s if _is_open(blocks, block) else max(k_s, blocks.info[block, NEED])


@piece
def _open_tuple(blocks, tuples, a, t):
    """Assign rows to a tuple; return the loss saved, 0 if there are too few people (then nothing is moved)."""
    moves, need = a.counts[MOVES], _need(blocks, tuples, t)
    saved, placed = _take(blocks, tuples, a, t)
    if placed and tuples.info[t, PEOPLE] < need:
        saved = max(saved - _lend(blocks, tuples, a, t, need), 1)
    if tuples.info[t, PEOPLE] < need:
        _take_back(blocks, tuples, a, moves)
        return 0
    return saved


@piece
def _open_block(blocks, tuples, a, block):
    """Assign rows to a block with several labels, the finest first; return the loss saved, 0 if people are too few."""
    moves, saved = a.counts[MOVES], 0
    k_s = blocks.info[block, K_S]
    for lends in range(2):
        for t in range(blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE]):
            if blocks.info[block, PEOPLE] >= blocks.info[block, NEED] and lends:
                break
            before, people = a.counts[MOVES], blocks.info[block, PEOPLE]
            found, _ = _take(blocks, tuples, a, t)
            if lends and blocks.info[block, PEOPLE] > people:
                found -= _lend(blocks, tuples, a, t, k_s)
            if tuples.info[t, PEOPLE] < k_s:
                _take_back(blocks, tuples, a, before)
            else:
                saved += found
    if blocks.info[block, PEOPLE] < blocks.info[block, NEED] or saved <= 0:
        _take_back(blocks, tuples, a, moves)
        return 0
    return saved


# ---- the candidate that saves most


@piece
def _is_before(a, one, other):
    """Whether a candidate saves more than another; the first one if both save the same."""
    return a.bounds[one] > a.bounds[other] or (a.bounds[one] == a.bounds[other] and one < other)


@piece
def _push(a, candidate):
    """Add a candidate to the heap."""
    at = a.counts[HEAP]
    a.counts[HEAP] += 1
    a.is_queued[candidate] = True
    while at and _is_before(a, candidate, a.heap[(at - 1) // 2]):
        a.heap[at] = a.heap[(at - 1) // 2]
        at = (at - 1) // 2
    a.heap[at] = candidate


@piece
def _pop(a):
    """Remove the best candidate from the heap."""
    best = a.heap[0]
    a.is_queued[best] = False
    a.counts[HEAP] -= 1
    count = a.counts[HEAP]
    last, at = a.heap[count], 0
    while 2 * at + 1 < count:
        below = 2 * at + 1
        if below + 1 < count and _is_before(a, a.heap[below + 1], a.heap[below]):
            below += 1
        if not _is_before(a, a.heap[below], last):
            break
        a.heap[at] = a.heap[below]
        at = below
    a.heap[at] = last
    return best


@piece
def _push_range(tuples, a, rows, begin, end, loss, candidate):
    """Add a candidate that is not in the heap, with the loss its rows would save if all of them could move."""
    if a.is_queued[candidate]:
        return
    bound = 0
    for place in range(begin, end):
        bound += max(_loss_of(tuples, a, rows[place]) - loss, 0)
    a.bounds[candidate] = bound
    if bound:
        _push(a, candidate)


@piece
def _push_tuples(blocks, tuples, a, block):
    """Add the tuples of a block to the heap."""
    for t in range(blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE]):
        _push_range(tuples, a, tuples.rows, tuples.info[t, BEGIN], tuples.info[t, STOP], tuples.info[t, LOSS], t)


@piece
def _improve(blocks, tuples, sizes, a, with_blocks):
    """Open candidates, the one that saves most first; return how many were opened."""
    a.counts[HEAP] = 0
    for block in range(sizes[BLOCKS]):
        if blocks.info[block, CANDIDATE]:
            _push_tuples(blocks, tuples, a, block)
            if with_blocks and not _is_open(blocks, block):
                begin, end, loss = blocks.info[block, BEGIN], blocks.info[block, STOP], blocks.info[block, LOSS]
                _push_range(tuples, a, blocks.rows, begin, end, loss, sizes[TUPLES] + block)
    opened = 0
    while a.counts[HEAP]:
        candidate = _pop(a)
        is_block = candidate >= sizes[TUPLES]
        block = candidate - sizes[TUPLES] if is_block else tuples.info[candidate, BLOCK]
        was_open = _is_open(blocks, block)
        if is_block and was_open:
            continue
        a.counts[MOVES] = 0
        if is_block:
            saved = _open_block(blocks, tuples, a, block)
        else:
            saved = _open_tuple(blocks, tuples, a, candidate)
        if saved == 0:
            continue
        if a.counts[HEAP] and saved < a.bounds[a.heap[0]]:
            _take_back(blocks, tuples, a, 0)
            a.bounds[candidate] = saved
            _push(a, candidate)
            continue
        opened += 1
        if not was_open:
            _push_tuples(blocks, tuples, a, block)
    return opened


# ---- candidates that are not needed any more


@piece
def _close(blocks, tuples, a, first, last, block):
    """Close tuples if all their rows lose less elsewhere; return whether they were closed."""
    a.counts[MOVES] = 0
    total = 0
    home = tuples.info[first, BLOCK]
    for t in range(first, last):
        saved, could = _move_out(blocks, tuples, a, t, block, PENDING)
        total += saved
        if not could:
            total = 0
            break
    if total > 0 and (blocks.info[home, PEOPLE] == 0 or _is_open(blocks, home)):
        return True
    _take_back(blocks, tuples, a, 0)
    return False


@piece
def _close_all(blocks, tuples, sizes, a):
    """Close blocks, then single tuples, whose rows lose less elsewhere; return how many."""
    closed = 0
    for block in range(sizes[BLOCKS]):
        first, last = blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE]
        if blocks.info[block, PEOPLE]:
            closed += _close(blocks, tuples, a, first, last, block)
        if blocks.info[block, PEOPLE]:
            for t in range(first, last):
                if tuples.info[t, PEOPLE]:
                    closed += _close(blocks, tuples, a, t, t + 1, PENDING)
    return closed


# ---- rows that would stay pending


@piece
def _pending_in(a, rows, begin, end):
    """The number of pending rows in a run."""
    count = 0
    for i in range(begin, end):
        count += a.tuple_of[rows[i]] == PENDING
    return count


@piece
def _take_widest(blocks, tuples, a, block):
    """Assign pending rows to the tuple that most of them fit; return whether there was one."""
    best, most = PENDING, 0
    t, last = blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE]
    while t < last:
        count = _pending_in(a, tuples.rows, tuples.info[t, BEGIN], tuples.info[t, STOP])
        if t == best or (count > most and tuples.info[t, PEOPLE] == 0):
            moves = a.counts[MOVES]
            _take(blocks, tuples, a, t)
            if t == best:
                return True
            if tuples.info[t, PEOPLE] >= blocks.info[block, K_S] or tuples.info[t, PUBLISHED]:
                best, most = t, count
            _take_back(blocks, tuples, a, moves)
        t += 1
        if t == last and best != PENDING:
            t = best  # once more, and keep it
    return False


@piece
def _assign_anew(blocks, tuples, a, block, choice):
    """Assign all rows of a block within it, beginning with the tuple `choice`; return how many rows stay pending."""
    k_s = blocks.info[block, K_S]
    for i in range(blocks.info[block, BEGIN], blocks.info[block, STOP]):
        if a.tuple_of[blocks.rows[i]] != PENDING:
            _move(blocks, tuples, a, blocks.rows[i], PENDING, 0)
    _take(blocks, tuples, a, choice)
    if tuples.info[choice, PEOPLE] < k_s and not tuples.info[choice, PUBLISHED]:
        return blocks.info[block, STOP] - blocks.info[block, BEGIN]
    while _take_widest(blocks, tuples, a, block):
        pass
    for t in range(blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE]):
        if _pending_in(a, tuples.rows, tuples.info[t, BEGIN], tuples.info[t, STOP]):
            moves = a.counts[MOVES]
            _take(blocks, tuples, a, t)
            _lend(blocks, tuples, a, t, 1 if tuples.info[t, PUBLISHED] else k_s)
            if tuples.info[t, PEOPLE] < k_s and not tuples.info[t, PUBLISHED]:
                _take_back(blocks, tuples, a, moves)
    if not _is_open(blocks, block):
        return blocks.info[block, STOP] - blocks.info[block, BEGIN]
    return _pending_in(a, blocks.rows, blocks.info[block, BEGIN], blocks.info[block, STOP])


@piece
def _rescue(blocks, tuples, a, block):
    """Assign the rows of a block anew if that leaves fewer of them pending; return whether it does."""
    fewest = _pending_in(a, blocks.rows, blocks.info[block, BEGIN], blocks.info[block, STOP])
    best, was_pending = PENDING, fewest
    first = blocks.info[block, FIRST_TUPLE]
    t = min(blocks.info[block, LAST_TUPLE], first + _FIRST_CHOICES) - 1
    while was_pending and t >= first:
        a.counts[MOVES] = 0
        found = _assign_anew(blocks, tuples, a, block, t)
        if t == best:
            break
        if found < fewest:
            best, fewest = t, found
        _take_back(blocks, tuples, a, 0)
        t -= 1
        if best != PENDING and (t < first or fewest == 0):
            t = best  # once more, and keep it
    return fewest < was_pending


@piece
def _rescue_all(blocks, tuples, sizes, a, tops, top_of):
    """Rescue pending rows in blocks that hold all rows of the same coarsest labels; return whether any was rescued."""
    is_better = False
    for block in range(sizes[BLOCKS]):
        if not blocks.info[block, CANDIDATE]:
            continue
        top = top_of[blocks.rows[blocks.info[block, BEGIN]]]
        size = tops[top] - (tops[top - 1] if top else 0)
        if blocks.info[block, STOP] - blocks.info[block, BEGIN] == size:
            is_better |= _rescue(blocks, tuples, a, block)
    return is_better


# ---- publishing


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
def _publish(groups, pending, scratch, blocks, tuples, a, out):
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


@kernel
def form_groups(
    groups, labels, pending, scratch, blocks, tuples, sizes, a, out, order, tops, top_of, vectors, may_grow
):
    """Publish what is possible; return the number of published rows, FULL if there was no space for all candidates.

    `tops` are ends of runs in `order`: rows whose coarsest labels that may be published are the same; `top_of` is the
    run of each row. `vectors` lists the depths of all published blocks. Published rows get a block and a group; their
    sparse labels are in `out.given`. Without `may_grow` candidates that do not fit are left out.
    """
    find_blocks(groups, pending, scratch, blocks, sizes, order, tops, vectors)
    for block in range(sizes[BLOCKS]):
        if blocks.info[block, CANDIDATE]:
            find_tuples(groups, labels, pending, scratch, blocks, tuples, sizes, block)
    if sizes[IS_FULL] and may_grow:
        return FULL
    _index_rows(tuples, blocks, sizes, a)
    passes, is_last = 0, False
    while True:  # one call of each, or all would be compiled several times
        changed = _improve(blocks, tuples, sizes, a, passes) + _close_all(blocks, tuples, sizes, a)
        passes += 1
        if is_last:
            break
        if passes == _PASSES or (passes > 1 and changed == 0):
            if not _rescue_all(blocks, tuples, sizes, a, tops, top_of):
                break
            is_last = True
    groups.meta[ROUND] += 1
    published = _publish(groups, pending, scratch, blocks, tuples, a, out)
    if published == 0:
        groups.meta[ROUND] -= 1
    return published
