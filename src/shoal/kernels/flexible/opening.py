"""Open a candidate: move all rows to it that lose less there.

A tuple that rows may not leave one by one is closed if that saves loss in sum. Where rows would stay pending, people of
labels that have more than enough are lent to them. A block that no single label fills is opened with several labels
together.
"""

from __future__ import annotations

from shoal.kernels.compiling import piece
from shoal.kernels.flexible.assignment import is_open, may_leave, move, move_out, take_back
from shoal.kernels.flexible.blocks import is_new_person
from shoal.kernels.flexible.layout import (
    BEGIN,
    BLOCK,
    FIRST_TUPLE,
    K_S,
    LAST_TUPLE,
    LOSS,
    MOVES,
    NEED,
    PENDING,
    PEOPLE,
    PUBLISHED,
    STOP,
    TAKES,
    TRIED,
)


@piece
def _give_way(blocks, tuples, a, t, target):
    """Close a tuple in favour of `target`, if its rows lose less then; return the loss saved."""
    moves, home = a.counts[MOVES], tuples.info[t, BLOCK]
    was_open = is_open(blocks, home)
    saved, could = move_out(blocks, tuples, a, t, PENDING, target)
    is_fine = blocks.info[home, PEOPLE] == 0 or not was_open or is_open(blocks, home)
    if could and is_fine and saved > 0:
        return saved
    take_back(blocks, tuples, a, moves)
    return 0


@piece
def take(blocks, tuples, a, t):
    """Move all rows to a tuple that lose less there; return the loss they save, and how many were pending."""
    saved, placed = 0, 0
    a.counts[TAKES] += 1
    own = tuples.info[t, LOSS]
    for place in range(tuples.info[t, BEGIN], tuples.info[t, STOP]):
        row = tuples.rows[place]
        loss = a.loss_of[row]
        if loss <= own:
            continue
        old = a.tuple_of[row]
        if may_leave(blocks, tuples, a, row, tuples.info[t, BLOCK]):
            saved += loss - own
            placed += old == PENDING
            move(blocks, tuples, a, row, t, place)
        elif a.states[old, TRIED] != a.counts[TAKES]:
            a.states[old, TRIED] = a.counts[TAKES]
            saved += _give_way(blocks, tuples, a, old, t)
    return saved, placed


@piece
def lend(blocks, tuples, a, t, need):
    """Move further people to a tuple until it has enough, those first who lose least by it; return that loss."""
    lost = 0
    while tuples.info[t, PEOPLE] < need:
        best, least = PENDING, 0
        for place in range(tuples.info[t, BEGIN], tuples.info[t, STOP]):
            row = tuples.rows[place]
            if tuples.counts[tuples.slots[place]]:
                continue
            loss = tuples.info[t, LOSS] - a.loss_of[row]
            if (best == PENDING or loss < least) and may_leave(blocks, tuples, a, row, tuples.info[t, BLOCK]):
                best, least = place, loss
        if best == PENDING:
            break
        lost += least
        move(blocks, tuples, a, tuples.rows[best], t, best)
    return lost


@piece
def need_of(blocks, tuples, t):
    """Number of people a tuple must have to be opened."""
    block = tuples.info[t, BLOCK]
    if tuples.info[t, PUBLISHED] and blocks.info[block, PUBLISHED]:
        return 1
    return tuples.info[t, K_S] if is_open(blocks, block) else max(tuples.info[t, K_S], blocks.info[block, NEED])


@piece
def open_tuple(blocks, tuples, a, t):
    """Assign rows to a tuple; return the loss saved, 0 if there are too few people (then nothing is moved)."""
    moves, need = a.counts[MOVES], need_of(blocks, tuples, t)
    saved, placed = take(blocks, tuples, a, t)
    if placed and tuples.info[t, PEOPLE] < need:
        saved = max(saved - lend(blocks, tuples, a, t, need), 1)
    if tuples.info[t, PEOPLE] < need:
        take_back(blocks, tuples, a, moves)
        return 0
    return saved


@piece
def _could_fill(scratch, persons, tuples, a, t, k_s):
    """Whether enough people would lose less in a tuple."""
    people = 0
    scratch.tick[0] += 1
    for place in range(tuples.info[t, BEGIN], tuples.info[t, STOP]):
        row = tuples.rows[place]
        if a.loss_of[row] > tuples.info[t, LOSS]:
            people += is_new_person(scratch, persons[row])
            if people == k_s:
                return True
    return False


@piece
def open_block(scratch, persons, blocks, tuples, a, block):
    """Assign rows to a block with several labels, the finest first; return the loss saved, 0 if people are too few."""
    moves, saved = a.counts[MOVES], 0
    k_s = blocks.info[block, K_S]
    for lends in range(2):
        for t in range(blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE]):
            if blocks.info[block, PEOPLE] >= blocks.info[block, NEED] and lends:
                break
            if not lends and tuples.info[t, PEOPLE] == 0 and not _could_fill(scratch, persons, tuples, a, t, k_s):
                continue
            before, people = a.counts[MOVES], blocks.info[block, PEOPLE]
            found, _ = take(blocks, tuples, a, t)
            if lends and blocks.info[block, PEOPLE] > people:
                found -= lend(blocks, tuples, a, t, k_s)
            if tuples.info[t, PEOPLE] < k_s:
                take_back(blocks, tuples, a, before)
            else:
                saved += found
    if blocks.info[block, PEOPLE] < blocks.info[block, NEED] or saved <= 0:
        take_back(blocks, tuples, a, moves)
        return 0
    return saved
