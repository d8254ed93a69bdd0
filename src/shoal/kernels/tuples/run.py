"""The loop of the clustering methods: time passes, what is due is decided, one more arrives."""

from __future__ import annotations

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.tuples.diversity import note_recent
from shoal.kernels.tuples.emit import has_outlet, publish_draft, reuse_cluster, suppress
from shoal.kernels.tuples.fads import form_nearest
from shoal.kernels.tuples.generalize import draft, own_loss
from shoal.kernels.tuples.k_varp import form_partitioned
from shoal.kernels.tuples.layout import (
    ALIVE,
    ARRIVED,
    AT,
    DEADLINE,
    ENDING,
    FADS,
    FULL,
    HEAD,
    IN_ROUNDS,
    LANE,
    LATE,
    LATE_PART,
    LATES,
    LEAST_LOSS,
    LIVE,
    METHOD,
    NOW,
    NUMBER,
    PART,
    PASSING,
    PERSON,
    STAMP,
    STAMPED,
    TAIL,
    TIMED,
    UNTIL,
    VARIED,
    K,
)
from shoal.kernels.tuples.least_loss import form_least, meet_others
from shoal.kernels.tuples.queue import begin_again, close_wide_gaps, has_place, hold, is_due, oldest
from shoal.kernels.tuples.reuse import best_cover


@piece
def form(s, t):
    """Make a cluster for tuple t as the method does it; return its size, 0 where it cannot be made."""
    if s.plan[METHOD] == FADS:
        return form_nearest(s, t)
    if s.plan[METHOD] == LEAST_LOSS:
        return form_least(s, t)
    return form_partitioned(s, t)


@piece
def leave(s, t):
    """Let tuple t leave: by reuse when that is not worse than a new cluster, with the cluster, or not at all.

    Return whether anything left: a method that may be late keeps the tuple instead of suppressing it.
    """
    members = form(s, t)
    best, loss = best_cover(s, t)
    if best >= 0 and (members == 0 or loss <= own_loss(s, draft(s), t)):
        reuse_cluster(s, best, t)
    elif members > 0:
        publish_draft(s, members)
    elif s.plan[METHOD] == VARIED and not s.tally[ENDING]:
        return False
    else:
        suppress(s, t)
    return True


@piece
def next_due(s, now):
    """The oldest tuple that is due and not late yet; -1 if there is none. At the end everything is due."""
    at = oldest(s)
    if s.tally[LATES] > 0 and not s.tally[ENDING]:
        while at < s.tally[TAIL] and (not s.held_i[ALIVE, at] or s.held_i[LATE, at]):
            at += 1
        if at == s.tally[TAIL]:
            return -1
    return at if s.tally[ENDING] or is_due(s, at, now) else -1


@piece
def decide_due(s, now):
    """Decide what is due by now, or everything at the end; False when the caller must make room first."""
    while s.tally[LIVE] > 0:
        t = next_due(s, now)
        if t < 0:
            break
        if not has_outlet(s):
            return False
        if s.plan[TIMED] and not s.tally[ENDING] and not s.plan[IN_ROUNDS]:
            s.tally[NOW] = s.held_i[ARRIVED, t] + s.plan[DEADLINE]
        if not leave(s, t):
            s.held_i[LATE, t] = 1
            s.tally[LATES] += 1
        close_wide_gaps(s)
    s.tally[NOW] = now
    return True


@piece
def oldest_late(s, part):
    """The oldest late tuple of a partition; -1 if there is none."""
    for at in range(s.tally[HEAD], s.tally[TAIL]):
        if s.held_i[ALIVE, at] and s.held_i[LATE, at] and s.held_i[PART, at] == part:
            return at
    return -1


@piece
def part_people(s, part):
    """How many different people a partition has."""
    s.tally[STAMP] += 1
    people = 0
    for at in range(s.tally[HEAD], s.tally[TAIL]):
        if s.held_i[ALIVE, at] and s.held_i[PART, at] == part:
            person = s.held_i[PERSON, at]
            people += s.held_i[STAMPED, person] != s.tally[STAMP]
            s.held_i[STAMPED, person] = s.tally[STAMP]
    return people


@piece
def decide_late(s):
    """Decide late tuples of the partition that has just got one more, as long as it has enough people.

    False when the caller must make room first.
    """
    part = s.tally[LATE_PART] - 1
    while part >= 0 and s.tally[LATES] > 0:
        t = oldest_late(s, part)
        if t < 0 or part_people(s, part) < s.plan[K]:
            break
        if not has_outlet(s):
            return False
        if not leave(s, t):
            break
    s.tally[LATE_PART] = 0
    return True


@piece
def take_in(s, arrivals, i):
    """Number one arrival and hold it, unless it is another lane's."""
    if not s.plan[TIMED]:
        s.tally[NOW] = s.tally[NUMBER]
    s.tally[NUMBER] += 1
    note_recent(s, arrivals, i)
    if arrivals.lanes[i] != s.tally[LANE]:
        return
    at = hold(s, arrivals, i)
    s.tally[LATE_PART] = s.held_i[PART, at] + 1
    if s.plan[METHOD] == LEAST_LOSS:
        meet_others(s, at)


@piece
def decide_waiting(s):
    """Decide what a call without arrivals is for, or what an earlier call left for lack of room."""
    if s.plan[IN_ROUNDS]:
        if not s.tally[PASSING]:
            return True
        s.tally[NOW] = s.tally[UNTIL]
    if s.tally[PASSING]:
        return decide_due(s, s.tally[UNTIL])
    if (s.tally[ENDING] or not s.plan[TIMED]) and not decide_due(s, s.tally[NOW]):
        return False
    return decide_late(s)


@kernel
def run_tuples(s, arrivals, start, stop):
    """Take in arrivals from `start` to `stop`; return how far it came, which is `stop` unless room is needed.

    In rounds everything is held first and what is due is decided when the round is over. Else an arrival that is
    counted is held before what it makes due is decided; one that has a time lets the time pass first.
    """
    s.tally[FULL] = 0
    if not s.plan[IN_ROUNDS] and not decide_waiting(s):
        return start
    for i in range(start, stop):
        s.tally[AT] = arrivals.rows[i]
        if s.plan[TIMED]:
            if arrivals.times[i] < s.tally[NOW]:
                begin_again(s, arrivals.times[i])
            if s.plan[IN_ROUNDS]:
                s.tally[NOW] = arrivals.times[i]
            elif not decide_due(s, arrivals.times[i]):
                return i
        if not has_place(s):
            s.tally[FULL] = 1
            return i
        take_in(s, arrivals, i)
        if not s.plan[IN_ROUNDS] and not decide_waiting(s):
            return i + 1
    if s.plan[IN_ROUNDS]:
        decide_waiting(s)
    return stop
