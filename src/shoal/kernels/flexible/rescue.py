"""Rows that would stay pending: all rows under the same coarsest labels are assigned again, fewest labels first."""

from __future__ import annotations

from shoal.kernels.compiling import piece
from shoal.kernels.flexible.assignment import is_open, keep_moves, list_tuples, move, take_back
from shoal.kernels.flexible.layout import (
    BEGIN,
    BLOCKS,
    CANDIDATE,
    FIRST_TUPLE,
    K_S,
    LAST_TUPLE,
    MOVES,
    PENDING,
    PEOPLE,
    PUBLISHED,
    STOP,
)
from shoal.kernels.flexible.opening import lend, take

_FIRST_CHOICES = 64
"""Number of labels that an assignment may begin with."""


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
            take(blocks, tuples, a, t)
            if t == best:
                return True
            if tuples.is_filled[t]:
                best, most = t, count
            take_back(blocks, tuples, a, moves)
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
            move(blocks, tuples, a, blocks.rows[i], PENDING, 0)
    take(blocks, tuples, a, choice)
    if tuples.info[choice, PEOPLE] < k_s and not tuples.info[choice, PUBLISHED]:
        return blocks.info[block, STOP] - blocks.info[block, BEGIN]
    while _take_widest(blocks, tuples, a, block):
        pass
    for t in range(blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE]):
        if _pending_in(a, tuples.rows, tuples.info[t, BEGIN], tuples.info[t, STOP]):
            moves = a.counts[MOVES]
            take(blocks, tuples, a, t)
            lend(blocks, tuples, a, t, 1 if tuples.info[t, PUBLISHED] else k_s)
            if tuples.info[t, PEOPLE] < k_s and not tuples.info[t, PUBLISHED]:
                take_back(blocks, tuples, a, moves)
    if not is_open(blocks, block):
        return blocks.info[block, STOP] - blocks.info[block, BEGIN]
    return _pending_in(a, blocks.rows, blocks.info[block, BEGIN], blocks.info[block, STOP])


@piece
def _rescue(blocks, tuples, a, block):
    """Assign the rows of a block again if that leaves fewer of them pending; return whether it does."""
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
        take_back(blocks, tuples, a, 0)
        t -= 1
        if best != PENDING and (t < first or fewest == 0):
            t = best  # once more, and keep it
    return fewest < was_pending


@piece
def rescue_all(blocks, tuples, sizes, a, tops, top_of):
    """Rescue pending rows in blocks that hold all rows of the same coarsest labels; return whether any was rescued."""
    is_better = False
    for block in range(sizes[BLOCKS]):
        if not blocks.info[block, CANDIDATE]:
            continue
        top = top_of[blocks.rows[blocks.info[block, BEGIN]]]
        size = tops[top] - (tops[top - 1] if top else 0)
        if blocks.info[block, STOP] - blocks.info[block, BEGIN] == size:
            is_better |= _rescue(blocks, tuples, a, block)
            keep_moves(a)
            list_tuples(tuples, a, blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE])
    return is_better
