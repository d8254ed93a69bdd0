"""Least loss: the cluster of a due tuple grows by the candidates that widen it least, then members are exchanged."""

from __future__ import annotations

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.tuples.candidates import meet_others, pack_candidates, price_candidates
from shoal.kernels.tuples.diversity import diversify
from shoal.kernels.tuples.exchange import exchange
from shoal.kernels.tuples.generalize import generalize_members
from shoal.kernels.tuples.growth import grow
from shoal.kernels.tuples.layout import (
    ALLOWED,
    CHAIN,
    ENDING,
    EXCHANGES,
    FLOOR,
    HEAD,
    IS_DIVERSE,
    MEMBER,
    NEXT,
    PEOPLE,
    TAIL,
    K,
)
from shoal.kernels.tuples.nearest import mark_all, measure
from shoal.kernels.tuples.queue import count_keys
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
    if members:
        generalize_members(s, members)
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
