"""Least loss: the cluster of a due tuple grows by the candidates that widen it least, then members are exchanged."""

from __future__ import annotations

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.tuples.candidates import meet_others, pack_candidates, price_candidates
from shoal.kernels.tuples.diversity import add_values, diversify, stays_diverse
from shoal.kernels.tuples.exchange import exchange
from shoal.kernels.tuples.generalize import count_carriers, draft, generalize_members
from shoal.kernels.tuples.growth import grow, plan_attributes
from shoal.kernels.tuples.layout import (
    ALIVE,
    ALLOWED,
    CHAIN,
    ELIGIBLE,
    ENDING,
    EXCHANGES,
    FLOOR,
    HEAD,
    IS_DIVERSE,
    LIVE,
    MEMBER,
    NEXT,
    PEOPLE,
    PERSON,
    STAMP,
    STAMPED,
    TAIL,
    K,
)
from shoal.kernels.tuples.nearest import mark_all, measure
from shoal.kernels.tuples.queue import count_keys
from shoal.kernels.tuples.reuse import covers, is_capped
from shoal.kernels.tuples.run import HAS_ARRIVED, IS_OVER, begin_run, next_event, publish_or_suppress


@piece
def form_least(s, t):
    """Form the cluster of due tuple t in the draft; return its size, 0 if there are too few people.

    At the end of the stream, when fewer than 2k people are left, they form one cluster.
    """
    people = count_keys(s, PEOPLE)
    if people < s.plan[K]:
        return 0
    count = pack_candidates(s, t)
    wanted = people if s.tally[ENDING] and people < 2 * s.plan[K] else s.plan[K]
    own = price_candidates(s, count) / s.plan[K]
    plan_attributes(s, count, wanted)
    s.pending_i[MEMBER, 0] = 0
    members = grow(s, MEMBER, 1, count, wanted, own, s.ratios[FLOOR])
    if members < s.plan[K]:
        return 0
    if s.plan[EXCHANGES] > 0:
        exchange(s, members, count, own)
    for m in range(members):
        s.pending_i[MEMBER, m] = s.pending_i[CHAIN, s.pending_i[MEMBER, m]]
    if s.plan[IS_DIVERSE]:
        measure(s, t, s.tally[HEAD], s.tally[TAIL])
        mark_all(s, ALLOWED, s.tally[HEAD], s.tally[TAIL])
        members = diversify(s, s.tally[HEAD], s.tally[TAIL], members)
    if members == 0:
        return 0
    generalize_members(s, members)
    if s.tally[LIVE] == count_keys(s, PEOPLE) or is_capped(s):
        return members
    return add_further_tuples(s, members)


@piece
def add_further_tuples(s, members):
    """Add the other pending tuples of the members' people that the cluster covers; return the number of members.

    They cost the cluster nothing. If they stayed, the window would fill up with tuples of the few people who send most,
    and clusters of k different people would have little choice.
    """
    d, enough = draft(s), members
    s.tally[STAMP] += 1
    for i in range(s.tally[HEAD], s.tally[TAIL]):
        s.pending_i[ELIGIBLE, i] = s.pending_i[ALIVE, i]
    for m in range(enough):
        s.pending_i[ELIGIBLE, s.pending_i[MEMBER, m]] = 0
        s.pending_i[STAMPED, s.pending_i[PERSON, s.pending_i[MEMBER, m]]] = s.tally[STAMP]
    for i in range(s.tally[HEAD], s.tally[TAIL]):
        if not s.pending_i[ELIGIBLE, i] or s.pending_i[STAMPED, s.pending_i[PERSON, i]] != s.tally[STAMP]:
            continue
        if covers(s, d, i) and (not s.plan[IS_DIVERSE] or stays_diverse(s, d, i)):
            s.pending_i[MEMBER, members] = i
            members += 1
            if s.plan[IS_DIVERSE]:
                add_values(s, d, i, 1.0)
    if members > enough:
        count_carriers(s, members)
    return members


@kernel
def run_least_loss(s, arrivals, start, stop):
    """Accept arrivals from `start` to `stop`; return how far it came, which is `stop` unless room is needed."""
    begin_run(s, start)
    while True:
        event, t = next_event(s, arrivals, stop)
        if event == IS_OVER:
            return s.tally[NEXT]
        if event == HAS_ARRIVED:
            meet_others(s, t)
        else:
            publish_or_suppress(s, t, form_least(s, t))
