"""The loop of the tuple methods: it gives a method's kernel one event after another.

An event is a tuple that has arrived, or a pending tuple that must be decided now. Each method has a kernel of its own
that handles both, so that compiling one method does not compile the others. Between two events the loop keeps its
place in the tally (STAGE, THEN, UP_TO, NEXT).
"""

from __future__ import annotations

from shoal.kernels.compiling import piece
from shoal.kernels.tuples.diversity import remember_recent
from shoal.kernels.tuples.emit import has_output_room, publish_draft, reuse_cluster, suppress
from shoal.kernels.tuples.generalize import draft, own_loss
from shoal.kernels.tuples.layout import (
    ALIVE,
    ARRIVED,
    AT,
    DEADLINE,
    ENDING,
    FULL,
    HEAD,
    LANE,
    LANES,
    LATE,
    LATE_PART,
    LATES,
    LEAST_LOSS,
    LIVE,
    MAY_STOP,
    METHOD,
    NEXT,
    NOW,
    NUMBER,
    PART,
    PASSING,
    PERSON,
    REFERENCE,
    STAGE,
    STAMP,
    STAMPED,
    STUCK,
    TAIL,
    THEN,
    TIMED,
    UNTIL,
    UP_TO,
    VARIED,
    K,
)
from shoal.kernels.tuples.patterns import has_all_alike
from shoal.kernels.tuples.queue import add_pending, begin_again, close_wide_gaps, has_pending_room, is_due, oldest
from shoal.kernels.tuples.reuse import best_cover, is_capped

HAS_ARRIVED, IS_DUE, IS_OVER = range(3)
"""Events: a tuple has arrived; a tuple is due; the call ends; if FULL is set, call again with more memory."""
_ARRIVE, _ACCEPT, _DECIDE_DUE, _DECIDE_LATE, _END = range(5)
"""Stages of the loop."""
MOST_TRIED = 3
"""How often a flush tries to publish a tuple, where shares are capped."""


@piece
def begin_run(s, start):
    """Begin a call at arrival `start`: decide first what an earlier call could not decide for lack of room."""
    s.tally[FULL] = s.tally[STUCK] = 0
    s.tally[NEXT] = start
    s.tally[STAGE] = _ARRIVE
    decide_waiting(s)


@piece
def decide_by(s, now, then):
    """Decide all that is due by `now`, then continue with another stage."""
    s.tally[STAGE] = _DECIDE_DUE
    s.tally[UP_TO] = now
    s.tally[THEN] = then


@piece
def decide_waiting(s):
    """Decide what an accepted arrival, or a call without arrivals, makes due."""
    if s.tally[PASSING]:
        decide_by(s, s.tally[UNTIL], _ARRIVE)
    elif s.tally[ENDING] or not s.plan[TIMED]:
        decide_by(s, s.tally[NOW], _DECIDE_LATE)
    else:
        s.tally[STAGE] = _DECIDE_LATE


@piece
def next_event(s, arrivals, stop):
    """Continue to the next event: return which it is, and the place of its tuple.

    Where arrivals are counted, an arrival is accepted before what it makes due is decided; where they have times, time
    passes first.
    """
    while not s.tally[STUCK]:
        stage, t = s.tally[STAGE], -1
        if stage == _ARRIVE:
            expect_arrival(s, arrivals, stop)
        elif stage == _ACCEPT:
            if not has_pending_room(s):
                s.tally[FULL] = 1
                return IS_OVER, t
            t = accept_arrival(s, arrivals, s.tally[NEXT])
            if t >= 0:
                return HAS_ARRIVED, t
        elif stage == _END:
            return IS_OVER, t
        else:
            t = next_due(s) if stage == _DECIDE_DUE else next_late(s)
            if t < 0:
                continue
            if not has_output_room(s):
                return IS_OVER, t
            if stage == _DECIDE_DUE and s.plan[TIMED] and not s.tally[ENDING]:
                s.tally[NOW] = s.pending_i[ARRIVED, t] + s.plan[DEADLINE]
            return IS_DUE, t
    return IS_OVER, -1


@piece
def expect_arrival(s, arrivals, stop):
    """Move time to the next arrival; after the last one, end the call."""
    i = pass_other_lanes(s, arrivals, stop)
    if i >= stop:
        s.tally[STAGE] = _END
        return
    s.tally[STAGE] = _ACCEPT
    s.tally[AT] = arrivals.rows[i]
    if s.plan[TIMED]:
        if arrivals.times[i] < s.tally[NOW]:
            begin_again(s, arrivals.times[i])
        decide_by(s, arrivals.times[i], _ACCEPT)


@piece
def pass_other_lanes(s, arrivals, stop):
    """Number the next arrivals of other lanes, as long as they make nothing due; return the arrival after them."""
    i = s.tally[NEXT]
    if s.plan[LANES] < 2 or s.plan[TIMED] or s.plan[REFERENCE] > 0:
        return i
    number, first_due = s.tally[NUMBER], s.tally[NUMBER] + stop
    if s.tally[LIVE] > 0:
        first_due = s.pending_i[ARRIVED, oldest(s)] + s.plan[DEADLINE]
    while i < stop and number < first_due and arrivals.lanes[i] != s.tally[LANE]:
        number += 1
        i += 1
    if i > s.tally[NEXT]:
        s.tally[NOW] = number - 1
        s.tally[NUMBER] = number
        s.tally[NEXT] = i
    return i


@piece
def accept_arrival(s, arrivals, i):
    """Number arrival i and buffer it; return its place, -1 where it belongs to another lane."""
    if not s.plan[TIMED]:
        s.tally[NOW] = s.tally[NUMBER]
    s.tally[NUMBER] += 1
    s.tally[NEXT] = i + 1
    remember_recent(s, arrivals, i)
    at = -1
    if arrivals.lanes[i] == s.tally[LANE]:
        at = add_pending(s, arrivals, i)
        s.tally[LATE_PART] = s.pending_i[PART, at] + 1
    s.tally[STAGE] = _ARRIVE
    decide_waiting(s)
    return at


@piece
def next_due(s):
    """The oldest tuple that is due and not late yet; at the end everything is due.

    Return -1 and move to the next stage if there is none.
    """
    if s.tally[LIVE] > 0:
        at = oldest(s)
        if s.tally[LATES] > 0 and tries_again(s):
            at = least_tried(s)
        elif s.tally[LATES] > 0 and not s.tally[ENDING]:
            while at < s.tally[TAIL] and (not s.pending_i[ALIVE, at] or s.pending_i[LATE, at]):
                at += 1
        if at < s.tally[TAIL] and (s.tally[ENDING] or is_due(s, at, s.tally[UP_TO])):
            return at
    s.tally[NOW] = s.tally[UP_TO]
    s.tally[STAGE] = s.tally[THEN]
    return -1


@piece
def tries_again(s):
    """Whether a tuple that cannot be published is tried again: at the end of LeastLoss, where shares are capped.

    The rows of others that join a published cluster make room for one more of its person.
    """
    return s.plan[METHOD] == LEAST_LOSS and s.tally[ENDING] and is_capped(s)


@piece
def least_tried(s):
    """The oldest of the pending tuples that were tried the fewest times; LATE counts how often."""
    best = oldest(s)
    for at in range(best + 1, s.tally[TAIL]):
        if s.pending_i[ALIVE, at] and s.pending_i[LATE, at] < s.pending_i[LATE, best]:
            best = at
    return best


@piece
def next_late(s):
    """The oldest late tuple of the partition that has just got one more, if it has enough people. Else go on: -1."""
    part = s.tally[LATE_PART] - 1
    if part >= 0 and s.tally[LATES] > 0:
        t = oldest_late(s, part)
        if t >= 0 and part_people(s, part) >= s.plan[K]:
            return t
    s.tally[LATE_PART] = 0
    s.tally[STAGE] = _ARRIVE
    return -1


@piece
def oldest_late(s, part):
    """The oldest late tuple of a partition; -1 if there is none."""
    for at in range(s.tally[HEAD], s.tally[TAIL]):
        if s.pending_i[ALIVE, at] and s.pending_i[LATE, at] and s.pending_i[PART, at] == part:
            return at
    return -1


@piece
def part_people(s, part):
    """How many different people a partition has."""
    s.tally[STAMP] += 1
    people = 0
    for at in range(s.tally[HEAD], s.tally[TAIL]):
        if s.pending_i[ALIVE, at] and s.pending_i[PART, at] == part:
            person = s.pending_i[PERSON, at]
            people += s.pending_i[STAMPED, person] != s.tally[STAMP]
            s.pending_i[STAMPED, person] = s.tally[STAMP]
    return people


@piece
def publish_or_suppress(s, t, members):
    """Reuse a published cluster if it loses no more; else publish the new cluster; else suppress t.

    `members` is the size of the new cluster, 0 if there is none. Instead of suppressing t, a method that may be late
    keeps it, and a lane that is one of several stops if t may find a cluster among the tuples of all lanes.
    """
    best, loss = best_cover(s, t)
    if best >= 0 and (members == 0 or loss <= own_loss(s, draft(s), t)):
        reuse_cluster(s, best, t)
    elif members > 0:
        publish_draft(s, members)
    elif s.plan[METHOD] == VARIED and not s.tally[ENDING]:
        keep_past_deadline(s, t)
    elif tries_again(s) and s.pending_i[LATE, t] + 1 < MOST_TRIED:
        s.pending_i[LATE, t] += 1
        s.tally[LATES] += 1
    elif s.tally[MAY_STOP] and not has_all_alike(s, t):
        s.tally[STUCK] = 1
    else:
        suppress(s, t)
    if s.tally[STAGE] == _DECIDE_DUE:
        close_wide_gaps(s)


@piece
def keep_past_deadline(s, t):
    """Keep tuple t until its partition has enough people.

    If it still cannot be published, stop retrying this partition.
    """
    if s.tally[STAGE] == _DECIDE_LATE:
        s.tally[LATE_PART] = 0
    else:
        s.pending_i[LATE, t] = 1
        s.tally[LATES] += 1
