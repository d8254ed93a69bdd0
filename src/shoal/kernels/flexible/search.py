"""Search for the assignment with the least loss: open the candidate that saves most, close those not needed any more.

Candidates are tuples, then blocks. A candidate's bound says how much loss its rows would save if all of them could
move. Bounds only guide the search: the bound of the best candidate is computed again when its turn comes, and rows are
moved only for a candidate that no other one clearly exceeds.
"""

from __future__ import annotations

from shoal.kernels.compiling import piece
from shoal.kernels.flexible.assignment import is_open, keep_moves, list_tuples, move_out, take_back
from shoal.kernels.flexible.blocks import is_new_person
from shoal.kernels.flexible.layout import (
    BEGIN,
    BLOCK,
    BLOCKS,
    BUCKETS,
    CANDIDATE,
    CHANGED,
    CROWD,
    END,
    FAILED,
    FIRST_TUPLE,
    IS_QUEUED,
    LAST_TUPLE,
    LOSS,
    MOVES,
    NEXT_QUEUED,
    PENDING,
    PEOPLE,
    STOP,
    TOP,
    TUPLES,
    UNLABELLED,
    VERSION,
)
from shoal.kernels.flexible.opening import need_of, open_block, open_tuple

# ---- a queue of candidates: buckets of bounds that differ by at most a thousandth


@piece
def _bucket_of(bound):
    """The bucket of a bound: 1024 for each power of two."""
    power = 0
    while bound >= 2048 << 8:
        bound >>= 8
        power += 8
    while bound >= 2048:
        bound >>= 1
        power += 1
    return 1024 * power + bound


@piece
def _push(a, candidate, bucket):
    """Add a candidate to the queue, before others of its bucket."""
    a.candidates[candidate, NEXT_QUEUED] = a.buckets[bucket]
    a.buckets[bucket] = candidate
    a.candidates[candidate, IS_QUEUED] = True
    a.counts[TOP] = max(a.counts[TOP], bucket)


@piece
def _pop(a):
    """Remove a candidate of the best bucket."""
    candidate = a.buckets[a.counts[TOP]]
    a.candidates[candidate, IS_QUEUED] = False
    a.buckets[a.counts[TOP]] = a.candidates[candidate, NEXT_QUEUED]
    return candidate


@piece
def _has_more(a):
    """Whether there are candidates in the queue; find their best bucket."""
    while a.counts[TOP] > 0 and a.buckets[a.counts[TOP]] == END:
        a.counts[TOP] -= 1
    return a.counts[TOP] > 0


@piece
def _is_postponed(a, candidate, saved):
    """Put a candidate back into the queue if others may save clearly more; return whether it is not to be opened."""
    bucket = _bucket_of(saved)
    is_exceeded = _has_more(a) and bucket < a.counts[TOP]
    if is_exceeded and saved > 0:
        _push(a, candidate, bucket)
    return is_exceeded or saved <= 0


# ---- bounds


@piece
def _tuple_bound(scratch, persons, blocks, tuples, a, t):
    """At most this much loss is saved by opening a tuple; 0 if too few people lose less there and no row is pending."""
    need, loss = need_of(blocks, tuples, t), tuples.info[t, LOSS]
    if tuples.info[t, CROWD] < need:
        return 0
    bound, people, waits = 0, 0, False
    scratch.tick[0] += 1
    for place in range(tuples.info[t, BEGIN], tuples.info[t, STOP]):
        row = tuples.rows[place]
        own = a.loss_of[row]
        if own >= loss:
            bound += own - loss
            waits |= own == UNLABELLED
            people += is_new_person(scratch, persons[row])
    return bound if people >= need or waits else 0


@piece
def _block_bound(blocks, a, block):
    """At most this much loss is saved by opening a block with several labels."""
    bound = 0
    for place in range(blocks.info[block, BEGIN], blocks.info[block, STOP]):
        bound += max(a.loss_of[blocks.rows[place]] - blocks.finest[place], 0)
    return bound


@piece
def _is_touched(a, candidate, rows, begin, end):
    """Whether anything changed for the rows of a candidate since it could not be opened."""
    for place in range(begin, end):
        t = a.tuple_of[rows[place]]
        if t == PENDING or a.states[t, CHANGED] > a.candidates[candidate, FAILED]:
            return True
    return False


# ---- opening and closing


@piece
def _push_unpriced(a, candidate, rows, begin, end, only_touched):
    """Add a candidate to the queue, before all that have a bound: it is computed when its turn comes."""
    if not a.candidates[candidate, IS_QUEUED] and (not only_touched or _is_touched(a, candidate, rows, begin, end)):
        _push(a, candidate, BUCKETS - 1)


@piece
def _push_tuples(blocks, tuples, a, block, only_touched):
    """Add the tuples of a block to the queue."""
    for t in range(blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE]):
        _push_unpriced(a, t, tuples.rows, tuples.info[t, BEGIN], tuples.info[t, STOP], only_touched)


@piece
def _fill_queue(blocks, tuples, sizes, a, with_blocks, only_touched):
    """Add all candidates to the queue, or those for whose rows something has changed."""
    a.counts[TOP] = 0
    for block in range(sizes[BLOCKS]):
        if blocks.info[block, CANDIDATE]:
            _push_tuples(blocks, tuples, a, block, only_touched)
            if with_blocks and not is_open(blocks, block):
                begin, end = blocks.info[block, BEGIN], blocks.info[block, STOP]
                _push_unpriced(a, sizes[TUPLES] + block, blocks.rows, begin, end, only_touched)


@piece
def improve(scratch, persons, blocks, tuples, sizes, a, with_blocks, only_touched):
    """Open candidates, the one that saves most first; return how many were opened."""
    opened = 0
    _fill_queue(blocks, tuples, sizes, a, with_blocks, only_touched)
    while _has_more(a):
        candidate = _pop(a)
        is_block = candidate >= sizes[TUPLES]
        block = candidate - sizes[TUPLES] if is_block else tuples.info[candidate, BLOCK]
        was_open = is_open(blocks, block)
        if is_block and was_open:
            continue
        first, last = blocks.info[block, FIRST_TUPLE], blocks.info[block, LAST_TUPLE]
        if is_block:
            saved = _block_bound(blocks, a, block)
        else:
            saved = _tuple_bound(scratch, persons, blocks, tuples, a, candidate)
            first, last = candidate, candidate + 1
        if _is_postponed(a, candidate, saved):
            continue
        a.counts[MOVES] = 0
        if is_block:
            saved = open_block(scratch, persons, blocks, tuples, a, block)
        else:
            saved = open_tuple(blocks, tuples, a, candidate)
        if saved == 0:
            a.candidates[candidate, FAILED] = a.counts[VERSION]
        if _is_postponed(a, candidate, saved):
            take_back(blocks, tuples, a, 0)
            continue
        opened += 1
        keep_moves(a)
        list_tuples(tuples, a, first, last)
        if not was_open:
            _push_tuples(blocks, tuples, a, block, was_open)
    return opened


@piece
def _close(blocks, tuples, a, first, last, block):
    """Close tuples if all their rows lose less elsewhere; return whether they were closed."""
    a.counts[MOVES] = 0
    total = 0
    home = tuples.info[first, BLOCK]
    for t in range(first, last):
        if tuples.info[t, PEOPLE] == 0:
            continue
        saved, could = move_out(blocks, tuples, a, t, block, PENDING)
        total += saved
        if not could:
            total = 0
            break
    if total > 0 and (blocks.info[home, PEOPLE] == 0 or is_open(blocks, home)):
        keep_moves(a)
        return True
    take_back(blocks, tuples, a, 0)
    return False


@piece
def close_all(blocks, tuples, sizes, a):
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
