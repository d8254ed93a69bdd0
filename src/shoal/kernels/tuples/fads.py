"""FADS: a tuple that is due is published with its k - 1 nearest."""

from __future__ import annotations

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.tuples.diversity import diversify
from shoal.kernels.tuples.generalize import generalize_members
from shoal.kernels.tuples.layout import ALLOWED, ELIGIBLE, HEAD, IS_DIVERSE, NEXT, PEOPLE, TAIL, K
from shoal.kernels.tuples.nearest import choose_nearest, measure
from shoal.kernels.tuples.patterns import mark_alike
from shoal.kernels.tuples.queue import count_keys
from shoal.kernels.tuples.run import IS_DUE, IS_OVER, begin_run, next_event, publish_or_suppress


@piece
def form_nearest(s, t):
    """Make the cluster of t and its nearest pending tuples; return its size, 0 if there are too few people."""
    if count_keys(s, PEOPLE) < s.plan[K]:
        return 0
    first, last = s.tally[HEAD], s.tally[TAIL]
    measure(s, t, first, last)
    mark_alike(s, ELIGIBLE, t, first, last)
    members = choose_nearest(s, t, first, last, s.plan[K])
    if members < s.plan[K]:
        return 0
    if s.plan[IS_DIVERSE]:
        mark_alike(s, ALLOWED, t, first, last)
        members = diversify(s, first, last, members)
    if members:
        generalize_members(s, members)
    return members


@kernel
def run_fads(s, arrivals, start, stop):
    """Accept arrivals from `start` to `stop`; return how far it came, which is `stop` unless room is needed."""
    begin_run(s, start)
    while True:
        event, t = next_event(s, arrivals, stop)
        if event == IS_OVER:
            return s.tally[NEXT]
        if event == IS_DUE:
            publish_or_suppress(s, t, form_nearest(s, t))
