"""The assignment of rows to tuples: rows move, and moves can be taken back.

A row may leave what it was assigned to only if enough people stay there, or if all others leave it too.
"""

from __future__ import annotations

from shoal.kernels.compiling import piece
from shoal.kernels.flexible.layout import (
    BEGIN,
    BLOCK,
    CHANGED,
    END,
    ENTRIES,
    ENTRY_PLACE,
    ENTRY_TUPLE,
    IS_LISTED,
    K_S,
    LOSS,
    MOVES,
    NEED,
    NEXT_ENTRY,
    PENDING,
    PEOPLE,
    PUBLISHED,
    STOP,
    UNLABELLED,
    VERSION,
)


@piece
def _count_row(blocks, tuples, t, place, step):
    """Count a row in, or out if `step` is -1, of the people assigned to its tuple and its block."""
    slot, block_slot = tuples.slots[place], tuples.block_slots[place]
    fewest = step > 0  # rows of the person on the side of the change where they begin or cease to count
    tuples.counts[slot] += step
    if tuples.counts[slot] == fewest:
        tuples.info[t, PEOPLE] += step
        tuples.is_filled[t] = tuples.info[t, PUBLISHED] or tuples.info[t, PEOPLE] >= tuples.info[t, K_S]
    blocks.counts[block_slot] += step
    if blocks.counts[block_slot] == fewest:
        blocks.info[tuples.info[t, BLOCK], PEOPLE] += step


@piece
def _place(blocks, tuples, a, row, t, place):
    """Assign a row to a tuple; PENDING for none."""
    old = a.tuple_of[row]
    if old != PENDING:
        _count_row(blocks, tuples, old, a.place_of[row], -1)
    a.tuple_of[row], a.place_of[row], a.loss_of[row] = t, place, UNLABELLED
    if t != PENDING:
        a.loss_of[row] = tuples.info[t, LOSS]
        _count_row(blocks, tuples, t, place, 1)


@piece
def move(blocks, tuples, a, row, t, place):
    """Assign a row to another tuple, in a way that can be taken back."""
    at = a.counts[MOVES]
    a.moves[0, at], a.moves[1, at], a.moves[2, at] = row, a.tuple_of[row], a.place_of[row]
    a.counts[MOVES] += 1
    _place(blocks, tuples, a, a.moves[0, at], t, place)


@piece
def take_back(blocks, tuples, a, moves):
    """Take back all moves but the first ones."""
    while a.counts[MOVES] > moves:
        a.counts[MOVES] -= 1
        at = a.counts[MOVES]
        _place(blocks, tuples, a, a.moves[0, at], a.moves[1, at], a.moves[2, at])


@piece
def keep_moves(a):
    """Keep all moves: a new version of the assignment."""
    a.counts[VERSION] += 1
    for at in range(a.counts[MOVES]):
        old, new = a.moves[1, at], a.tuple_of[a.moves[0, at]]
        if old != PENDING:
            a.states[old, CHANGED] = a.counts[VERSION]
        if new != PENDING:
            a.states[new, CHANGED] = a.counts[VERSION]
    a.counts[MOVES] = 0


@piece
def may_leave(blocks, tuples, a, row, target):
    """Whether enough people stay where a row is assigned if it moves to the block `target`."""
    if a.counts[MOVES] == a.moves.shape[1]:
        return False
    t = a.tuple_of[row]
    if t == PENDING:
        return True
    at, block = a.place_of[row], tuples.info[t, BLOCK]
    is_last = tuples.counts[tuples.slots[at]] == 1
    if is_last and not tuples.info[t, PUBLISHED] and tuples.info[t, PEOPLE] <= tuples.info[t, K_S]:
        return False
    if block == target or blocks.counts[tuples.block_slots[at]] > 1:
        return True
    return blocks.info[block, PUBLISHED] or blocks.info[block, PEOPLE] > blocks.info[block, NEED]


@piece
def is_open(blocks, block):
    """Whether enough people for a block are published, or assigned to it."""
    return blocks.info[block, PUBLISHED] != 0 or blocks.info[block, PEOPLE] >= blocks.info[block, NEED]


@piece
def list_tuples(tuples, a, first, last):
    """Enter open tuples into the lists of their rows."""
    for t in range(first, last):
        if not tuples.is_filled[t] or a.states[t, IS_LISTED]:
            continue
        a.states[t, IS_LISTED] = True
        for place in range(tuples.info[t, BEGIN], tuples.info[t, STOP]):
            entry, row = a.counts[ENTRIES], tuples.rows[place]
            a.entries[entry, ENTRY_TUPLE], a.entries[entry, ENTRY_PLACE], a.entries[entry, NEXT_ENTRY] = (
                t,
                place,
                a.heads[row],
            )
            a.heads[row] = entry
            a.counts[ENTRIES] += 1


@piece
def _is_better(tuples, one, other):
    """Whether a tuple loses less than another, or the same with a smaller number."""
    return tuples.info[one, LOSS] < tuples.info[other, LOSS] or (
        tuples.info[one, LOSS] == tuples.info[other, LOSS] and one < other
    )


@piece
def _place_in(tuples, t, row):
    """The place of a row in a tuple, PENDING if it is not there."""
    low, high = tuples.info[t, BEGIN], tuples.info[t, STOP]
    while low < high:
        middle = (low + high) // 2
        if tuples.rows[middle] < row:
            low = middle + 1
        else:
            high = middle
    return low if low < tuples.info[t, STOP] and tuples.rows[low] == row else PENDING


@piece
def _other_tuple(blocks, tuples, a, row, t, block, target):
    """The row's best tuple that is open, or `target`, and its place there; PENDING if there is none.

    The row's own tuple `t` and those of `block` do not count.
    """
    best, best_place = PENDING, PENDING
    if target != PENDING:
        best_place = _place_in(tuples, target, row)
        best = target if best_place != PENDING else PENDING
    entry = a.heads[row]
    while entry != END:
        other, place = a.entries[entry, ENTRY_TUPLE], a.entries[entry, ENTRY_PLACE]
        entry = a.entries[entry, NEXT_ENTRY]
        if tuples.is_filled[other] and other != t and (best == PENDING or _is_better(tuples, other, best)):
            home = tuples.info[other, BLOCK]
            if home != block and is_open(blocks, home):
                best, best_place = other, place
    return best, best_place


@piece
def move_out(blocks, tuples, a, t, block, target):
    """Move all rows of a tuple to others that are open, or `target`; return the loss saved and whether all could."""
    saved = 0
    for place in range(tuples.info[t, BEGIN], tuples.info[t, STOP]):
        row = tuples.rows[place]
        if a.tuple_of[row] != t:
            continue
        other, other_place = _other_tuple(blocks, tuples, a, row, t, block, target)
        if other == PENDING or a.counts[MOVES] == a.moves.shape[1]:
            return 0, False
        saved += tuples.info[t, LOSS] - tuples.info[other, LOSS]
        move(blocks, tuples, a, row, other, other_place)
    return saved, True
