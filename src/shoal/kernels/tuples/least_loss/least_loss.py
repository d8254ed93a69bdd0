"""Least loss: the cluster of a due tuple grows by the candidates that widen it least, then members are exchanged."""

from __future__ import annotations

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.tuples.diversity import (
    ENOUGH,
    add_values,
    count_values,
    diversify,
    exchange_for_diversity,
    first_failure,
    stays_diverse,
)
from shoal.kernels.tuples.emit import publish_draft
from shoal.kernels.tuples.generalize import count_carriers, draft, generalize_members, is_new_person
from shoal.kernels.tuples.layout import (
    ALIVE,
    ALLOWED,
    CHAIN,
    ELIGIBLE,
    ENDING,
    EXCHANGED_FROM,
    EXCHANGES,
    FLOOR,
    HEAD,
    INCOMPLETE,
    IS_DIVERSE,
    LIVE,
    MEMBER,
    MISSING_MODE,
    NEXT,
    OWN,
    PEOPLE,
    PERSON,
    STAMP,
    STAMPED,
    TAIL,
    TYPICAL,
    K,
)
from shoal.kernels.tuples.least_loss.candidates import always_exchanges, meet_others, pack_candidates, price_candidates
from shoal.kernels.tuples.least_loss.exchange import exchange
from shoal.kernels.tuples.least_loss.growth import grow, plan_attributes
from shoal.kernels.tuples.nearest import measure
from shoal.kernels.tuples.patterns import count_alike, mark_alike
from shoal.kernels.tuples.queue import count_keys
from shoal.kernels.tuples.reuse import best_cover, covers, is_capped, is_fair, keep_within_share
from shoal.kernels.tuples.run import HAS_ARRIVED, IS_OVER, begin_run, next_event, publish_or_suppress

IS_MEMBER = 2
EARLIEST_STAY, REUSABLE_GO = False, True
"""Which tuples of a person with too many stay: the earliest, or first those that cannot be reused."""


@piece
def form_least(s, t):
    """Form the cluster of due tuple t in the draft; return its size, 0 if there are too few people."""
    tuples, people = count_alike(s, t)
    if people < s.plan[K]:
        return 0
    if not s.tally[ENDING]:
        return choose_members(s, t)
    is_last = people == tuples and people < 2 * s.plan[K]  # no second cluster is possible
    members = settle_end(s, t, 0) if is_last else 0
    return members if members > 0 else settle_end(s, t, choose_members(s, t))


@piece
def choose_members(s, t):
    """Choose the members of due tuple t's cluster and generalize them; return their number, 0 if it cannot be done."""
    count = pack_candidates(s, t)
    own = price_candidates(s, count) / s.plan[K]
    plan_attributes(s, count, s.plan[K])
    s.pending_i[MEMBER, 0] = 0
    lacks_carriers = s.tally[INCOMPLETE] > 0 and s.plan[MISSING_MODE] != OWN
    floor = s.ratios[FLOOR] if always_exchanges(s) or lacks_carriers else 0.0
    members = grow(s, MEMBER, 1, count, s.plan[K], own, floor)
    if members < s.plan[K]:
        return 0
    if s.plan[EXCHANGES] > 0 and s.sums[TYPICAL] >= s.ratios[EXCHANGED_FROM]:
        exchange(s, members, count, own)
    for m in range(members):
        s.pending_i[MEMBER, m] = s.pending_i[CHAIN, s.pending_i[MEMBER, m]]
    if s.plan[IS_DIVERSE]:
        measure(s, t, s.tally[HEAD], s.tally[TAIL])
        mark_alike(s, ALLOWED, t, s.tally[HEAD], s.tally[TAIL])
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


# ---- the end of the stream


@piece
def settle_end(s, t, members):
    """At the end, leave no one behind: return the members if the rest can be published, else all if they can.

    These are the tuples that may be published with t. If a cap on shares forbids both, return the members or the most
    that can be published together, whichever suppresses fewer. `members` is the size of the chosen cluster, 0 if there
    is none.
    """
    mark_alike(s, ELIGIBLE, t, s.tally[HEAD], s.tally[TAIL])
    for m in range(members):
        s.pending_i[ELIGIBLE, s.pending_i[MEMBER, m]] = IS_MEMBER
    if members > 0 and is_publishable(s, list_marked(s, 1)):
        return generalize_again(s, list_marked(s, IS_MEMBER))
    after = members + most_saved(s, list_marked(s, 1), EARLIEST_STAY)[1] if members > 0 else 0
    for i in range(s.tally[HEAD], s.tally[TAIL]):
        s.pending_i[ALLOWED, i] = s.pending_i[ELIGIBLE, i]
    mark_alike(s, ELIGIBLE, t, s.tally[HEAD], s.tally[TAIL])
    together, saved = most_saved(s, list_marked(s, 1), REUSABLE_GO)
    if together == 0 and is_capped(s):
        together, saved = most_saved(s, list_marked(s, 1), EARLIEST_STAY)
    if together > 0 and saved > after:
        return generalize_again(s, together)
    for i in range(s.tally[HEAD], s.tally[TAIL]):
        s.pending_i[ELIGIBLE, i] = s.pending_i[ALLOWED, i]
    return generalize_again(s, list_marked(s, IS_MEMBER))


@piece
def list_marked(s, mark):
    """List the pending tuples with a mark as members; return their number."""
    members = 0
    for i in range(s.tally[HEAD], s.tally[TAIL]):
        if s.pending_i[ALIVE, i] and s.pending_i[ELIGIBLE, i] == mark:
            s.pending_i[MEMBER, members] = i
            members += 1
    return members


@piece
def is_publishable(s, members):
    """Whether the listed members could be one class (k people, diverse, no share above the cap), or are none."""
    people = 0
    s.tally[STAMP] += 1
    for m in range(members):
        people += is_new_person(s, s.pending_i[MEMBER, m])
    if members > 0 and people < s.plan[K]:
        return False
    count_values(s, members)
    if s.plan[IS_DIVERSE] and members > 0 and first_failure(s, draft(s))[0] != ENOUGH:
        return False
    return not is_capped(s) or is_fair(s, members)


@piece
def most_publishable(s, listed, by_reuse):
    """Keep the most of the listed members that could be one class; return their number, 0 if there is none.

    With `by_reuse`, of a person with too many those stay first that no published cluster accepts.
    """
    members = listed
    if is_capped(s):
        members = keep_within_share(s, listed, by_reuse)
        if s.plan[IS_DIVERSE] and s.plan[K] <= members < listed:
            count_values(s, members)
            exchange_for_diversity(s, members, listed)
    return members if is_publishable(s, members) else 0


@piece
def most_saved(s, listed, by_reuse):
    """Keep the most of the listed members that could be one class; return their number, and how many are published.

    Where shares are capped, the dropped ones that a published cluster accepts count as published too.
    """
    members = most_publishable(s, listed, by_reuse)
    saved = members
    for m in range(members, listed if is_capped(s) else members):
        saved += best_cover(s, s.pending_i[MEMBER, m])[0] >= 0
    return members, saved


@piece
def generalize_again(s, members):
    """Generalize the listed members into the draft; return their number."""
    if members > 0:
        generalize_members(s, members)
        count_values(s, members)
        if s.tally[LIVE] != count_keys(s, PEOPLE):
            count_carriers(s, members)
    return members


@piece
def more_without(s, t):
    """At the end: how many more tuples can be published if t joins a published cluster, instead of a new one."""
    if count_alike(s, t)[1] < s.plan[K]:  # there is no new one
        return 1
    mark_alike(s, ELIGIBLE, t, s.tally[HEAD], s.tally[TAIL])
    together = most_publishable(s, list_marked(s, 1), EARLIEST_STAY)
    s.pending_i[ELIGIBLE, t] = 0
    return 1 + most_publishable(s, list_marked(s, 1), EARLIEST_STAY) - together


@piece
def may_leave_alone(s, t):
    """Whether at the end t may be published without a cluster: only if the others can be published too."""
    mark_alike(s, ELIGIBLE, t, s.tally[HEAD], s.tally[TAIL])
    s.pending_i[ELIGIBLE, t] = 0
    return is_publishable(s, list_marked(s, 1))


@piece
def decide_least(s, t):
    """Publish due tuple t in a published cluster or a new one, or suppress it."""
    may_reuse = True
    if s.tally[ENDING] and is_capped(s):
        more = more_without(s, t)
        may_reuse = more >= 0
        if more > 0 and best_cover(s, t)[0] >= 0:
            publish_or_suppress(s, t, 0)
            return
    elif s.tally[ENDING]:
        may_reuse = may_leave_alone(s, t)
    members = form_least(s, t)
    if members > 0 and not may_reuse:
        publish_draft(s, members)
    else:
        publish_or_suppress(s, t, members)


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
            decide_least(s, t)
