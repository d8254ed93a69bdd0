"""Growth of a cluster: the candidate with the least score joins, again and again.

The score is how much a candidate widens the cluster's ranges and labels, plus what it would lose there itself as one of
k, minus its price. While an attribute has fewer carriers than it needs to be shown, candidates without it score worse;
once it can no longer be shown, widening it costs nothing.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.tuples.generalize import draft, meet, width
from shoal.kernels.tuples.layout import (
    ALLOWED,
    C_CARRIERS,
    C_HIGH,
    C_LOSS,
    C_LOW,
    C_NODE,
    C_SHOWN,
    CHAIN,
    COST_OF,
    COVERED,
    FIELDS,
    FIRST_AT,
    HEAP_KEY,
    HIDDEN,
    INCOMPLETE,
    KIND,
    LAST_AT,
    LIVE,
    LOSS_AT,
    MASS,
    MIN_CARRIERS,
    MISSING_MODE,
    NUMERIC,
    PEOPLE,
    PERSON,
    SPARE,
    TYPICAL,
    TYPICAL_OF,
    WEIGHT,
)
from shoal.kernels.tuples.least_loss.candidates import packed, reach_labels, reaches, widenings
from shoal.kernels.tuples.least_loss.top_k import least_between
from shoal.kernels.tuples.queue import count_keys

LACK = 3.0
RARE = 0.5
"""Share of the candidates that must carry an attribute which the due tuple lacks, for the cluster to try to show it."""
PLANNED, GIVEN_UP, NOT_PLANNED = range(3)
INSIDE = 0.3
_STRETCH = 64


@piece
def carriers_needed(s, wanted):
    """Number of members that must carry an attribute for it to be shown."""
    if s.plan[MISSING_MODE] == COVERED:
        return s.plan[MIN_CARRIERS]
    return wanted if s.plan[MISSING_MODE] == HIDDEN else 1


@piece
def plan_attributes(s, count, wanted):
    """Decide which attributes the cluster tries to show: all but some that the due tuple lacks.

    Showing an attribute takes carriers, and not showing it costs its carriers everything. So an attribute that the due
    tuple lacks and less than half of the candidates carry is left out, the rarest first, as long as enough candidates
    remain that carry none of those left out.
    """
    d, attributes, is_free = draft(s), width(s), s.pending_i[ALLOWED]
    carriers, plan = C_LOSS * attributes, FIELDS + C_SHOWN * attributes
    for a in range(attributes):
        s.pool_i[d, plan + a] = PLANNED
        s.pool_f[d, carriers + a] = np.inf
    if s.tally[INCOMPLETE] == 0:
        return
    for a in range(attributes):
        if s.pending_f[packed(s) + a, 0] != s.pending_f[packed(s) + a, 0]:
            s.pool_f[d, carriers + a] = count - count_missing(s.pending_f[packed(s) + a], count)
    for c in range(np.uint64(count)):
        is_free[c] = 1
    while True:
        a = rarest(s.pool_f[d], carriers, attributes)
        if s.pool_f[d, carriers + a] >= RARE * count:
            return
        s.pool_f[d, carriers + a] = np.inf
        values, left = s.pending_f[packed(s) + a], 0
        for c in range(np.uint64(count)):
            left += is_free[c] and values[c] != values[c]
        if left >= wanted:
            s.pool_i[d, plan + a] = NOT_PLANNED
            for c in range(np.uint64(count)):
                is_free[c] = is_free[c] and values[c] != values[c]


@piece
def count_missing(values, count):
    """Number of candidates without an attribute."""
    missing = 0
    for c in range(np.uint64(count)):
        missing += values[c] != values[c]
    return missing


@piece
def rarest(row, first, attributes):
    """The attribute with the fewest carriers, the first of equals."""
    best = 0
    for a in range(1, attributes):
        if row[first + a] < row[first + best]:
            best = a
    return best


@piece
def start_cluster(s):
    """Start an empty cluster in the draft: no ranges, no carriers, no attribute given up that is planned."""
    d, attributes = draft(s), width(s)
    for a in range(attributes):
        s.pool_f[d, C_LOW * attributes + a] = np.inf
        s.pool_f[d, C_HIGH * attributes + a] = -np.inf
        s.pool_f[d, C_LOSS * attributes + a] = 0.0
        s.pool_i[d, FIELDS + C_CARRIERS * attributes + a] = 0
        if s.pool_i[d, FIELDS + C_SHOWN * attributes + a] != NOT_PLANNED:
            s.pool_i[d, FIELDS + C_SHOWN * attributes + a] = PLANNED
        s.pool_i[d, FIELDS + C_NODE * attributes + a] = 0


@piece
def stretch(s, a, low, high):
    """Set the cluster's range to low..high, or to the leaves of the label above both."""
    d, attributes = draft(s), width(s)
    lost = high - low
    if s.attr_i[KIND, a] != NUMERIC:
        node = meet(s, a, np.int64(low), np.int64(high))
        low, high = s.tree_i[s.attr_i[FIRST_AT, a] + node], s.tree_i[s.attr_i[LAST_AT, a] + node]
        lost = s.tree_f[s.attr_i[LOSS_AT, a] + node]
    s.pool_f[d, C_LOW * attributes + a] = low
    s.pool_f[d, C_HIGH * attributes + a] = high
    s.pool_f[d, C_LOSS * attributes + a] = lost


@piece
def join_cluster(s, c, needed, left):
    """Add candidate c; mark the attributes that changed, and give up those that can no longer be shown."""
    d, attributes = draft(s), width(s)
    for a in range(attributes):
        value = s.pending_f[packed(s) + a, c]
        low, high = s.pool_f[d, C_LOW * attributes + a], s.pool_f[d, C_HIGH * attributes + a]
        carriers, given_up = FIELDS + C_CARRIERS * attributes + a, FIELDS + C_SHOWN * attributes + a
        has_changed = False
        if value == value:
            s.pool_i[d, carriers] += 1
            if value < low or value > high:
                stretch(s, a, min(low, value), max(high, value))
                has_changed = s.pool_i[d, given_up] == PLANNED
        if s.pool_i[d, given_up] == PLANNED and needed - s.pool_i[d, carriers] > left:
            s.pool_i[d, given_up] = GIVEN_UP
            has_changed = True
        s.pool_i[d, FIELDS + C_NODE * attributes + a] = has_changed


@piece
def reach_numbers(values, low, high, count, reach):
    """For each candidate: how wide the range becomes with it; NaN without a value."""
    for c in range(np.uint64(count)):
        value = values[c]
        reach[c] = (high if value <= high else value) - (low if value >= low else value)


@piece
def charge(reach, before, usual, weight, own, shares, count, added, scores):
    """Replace what an attribute added to the scores before by what it adds now.

    Up to `usual`, a share of what the attribute lost in recent clusters, widening costs only a part: being tighter
    than usual in one attribute gains little.
    """
    for c in range(np.uint64(count)):
        reached = reach[c]
        lost = reached if reached > before else before
        more = (lost - usual if lost > usual else 0.0) + INSIDE * ((lost if lost < usual else usual) - before)
        now = weight * (more + own * shares[c] * lost) if reached == reached else 0.0
        scores[c] += now - added[c]
        added[c] = now


@piece
def charge_all(values, weight, own, shares, count, added, scores):
    """The same for an attribute that is given up: its carriers lose it, and widening costs nothing."""
    for c in range(np.uint64(count)):
        now = weight * (own * shares[c]) if values[c] == values[c] else 0.0
        scores[c] += now - added[c]
        added[c] = now


@piece
def widen(s, a, count, own, floor):
    """Update the scores with what each candidate would widen in one attribute."""
    d, attributes = draft(s), width(s)
    low, high = s.pool_f[d, C_LOW * attributes + a], s.pool_f[d, C_HIGH * attributes + a]
    before, weight = s.pool_f[d, C_LOSS * attributes + a], s.attr_f[WEIGHT, a]
    values, reach, added = s.pending_f[packed(s) + a], s.pending_f[reaches(s) + a], s.pending_f[widenings(s) + a]
    if s.pool_i[d, FIELDS + C_SHOWN * attributes + a]:
        charge_all(values, weight, own, s.pending_f[MASS], count, added, s.pending_f[SPARE])
    elif low <= high:
        if s.attr_i[KIND, a] == NUMERIC:
            reach_numbers(values, low, high, count, reach)
        elif values[0] != values[0]:  # otherwise computed once, from the due tuple's leaf
            reach_labels(s, a, np.int64(low), count)
        usual = max(floor * s.sums[TYPICAL_OF + a], before)
        charge(reach, before, usual, weight, own, s.pending_f[MASS], count, added, s.pending_f[SPARE])


@piece
def start_scores(s, count):
    """Start with minus the price as each candidate's score."""
    scores, costs = s.pending_f[SPARE], s.pending_f[COST_OF]
    for c in range(np.uint64(count)):
        scores[c] = -costs[c]
    for a in range(width(s)):
        added = s.pending_f[widenings(s) + a]
        for c in range(np.uint64(count)):
            added[c] = 0.0


@piece
def add_missing(values, worse, count, totals):
    """Add `worse` to the scores of candidates without an attribute."""
    for c in range(np.uint64(count)):
        totals[c] += worse if values[c] != values[c] else 0.0


@piece
def penalize(s, count, needed, left):
    """Add penalties for missing carriers: an attribute needs `needed` of them, and `left` members are still to come.

    Return the row of pending_f with the scores to use; the unchanged one if no attribute lacks carriers.
    """
    d, attributes, scores, totals = draft(s), width(s), s.pending_f[SPARE], s.pending_f[HEAP_KEY]
    is_lacking = False
    for a in range(attributes if s.tally[INCOMPLETE] > 0 else 0):
        lacking = needed - s.pool_i[d, FIELDS + C_CARRIERS * attributes + a]
        if lacking <= 0 or s.pool_i[d, FIELDS + C_SHOWN * attributes + a]:
            continue
        if not is_lacking:
            for c in range(np.uint64(count)):
                totals[c] = 0.0
        is_lacking = True
        share = lacking / left
        hopes = 1.0 - s.pool_f[d, C_LOSS * attributes + a]
        worse = LACK * s.sums[TYPICAL] * s.attr_f[WEIGHT, a] * hopes * share * share
        add_missing(s.pending_f[packed(s) + a], worse, count, totals)
    if not is_lacking:
        return SPARE
    for c in range(np.uint64(count)):
        totals[c] += scores[c]
    return HEAP_KEY


@piece
def retire(s, c, count):
    """Exclude a candidate and all others of the same person by an infinite score."""
    s.pending_f[SPARE, c] = np.inf
    if s.tally[LIVE] == count_keys(s, PEOPLE):
        return
    person = s.pending_i[PERSON, s.pending_i[CHAIN, c]]
    for other in range(count):
        if s.pending_i[PERSON, s.pending_i[CHAIN, other]] == person:
            s.pending_f[SPARE, other] = np.inf


@piece
def least_score(scores, count):
    """The candidate with the least score, the earliest of equals; -1 if all are excluded."""
    begin, least = -1, np.inf
    for first in range(0, count, _STRETCH):
        found = least_between(scores, first, min(first + _STRETCH, count))
        if found < least:
            begin, least = first, found
    while begin >= 0 and scores[begin] != least:
        begin += 1
    return begin


@piece
def grow(s, chosen, members, count, wanted, own, floor):
    """Add candidates to the members listed in row `chosen` until there are `wanted`; return their number."""
    needed = carriers_needed(s, wanted)
    start_cluster(s)
    start_scores(s, count)
    for m in range(members):
        retire(s, s.pending_i[chosen, m], count)
        join_cluster(s, s.pending_i[chosen, m], needed, wanted - m - 1)
    is_first = True
    while members < wanted:
        for a in range(width(s)):
            if is_first or s.pool_i[draft(s), FIELDS + C_NODE * width(s) + a]:
                widen(s, a, count, own, floor)
        is_first = False
        c = least_score(s.pending_f[penalize(s, count, needed, wanted - members)], count)
        if c < 0:
            break
        s.pending_i[chosen, members] = c
        members += 1
        retire(s, c, count)
        join_cluster(s, c, needed, wanted - members)
    return members
