"""The candidates of a cluster: the neighbours a tuple has met, its price, and its values next to the others'.

The price says how hard a tuple is to place: how far away its nearest neighbours are (the mean of the least distances it
has met) and how long it has waited. Distances count a little more as time passes, because some of those neighbours have
been published. Without prices the easy tuples are always taken first, and the unusual ones have to be published
together at their deadlines.

With a limit on candidates only the nearest are considered, and a new tuple meets fewer of the latest.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.tuples.generalize import range_loss, width
from shoal.kernels.tuples.layout import (
    AGE,
    ALIVE,
    ARRIVED,
    CANDIDATES,
    CHAIN,
    COST_OF,
    DEADLINE,
    DISTANCE,
    ELIGIBLE,
    EXCHANGED_FROM,
    EXCHANGES,
    HEAD,
    KIND,
    LEAVES,
    LIVE,
    MASS,
    NEAR,
    NOW,
    NUMERIC,
    PAIRS_AT,
    PERSON,
    PRICE,
    SMALL_TREE,
    STALENESS,
    TAIL,
    TYPICAL,
    VALUES,
    WEIGHT,
)
from shoal.kernels.tuples.least_loss.top_k import bound_least, list_up_to
from shoal.kernels.tuples.nearest import exclude_own_person, measure
from shoal.kernels.tuples.patterns import mark_alike

MOST_MET = 256
MET_WHERE_EXCHANGED = 128
FEWEST_MET = 32
_BLOCK = 16


@piece
def nears(s):
    """First row of pending_f with the least distances that tuples have met."""
    return VALUES + 2 * s.attr_f.shape[1]


@piece
def packed(s):
    """First row of pending_f with the candidates' values, side by side."""
    return VALUES + 2 * s.attr_f.shape[1] + s.plan[NEAR]


@piece
def reaches(s):
    """First row of pending_f with what each attribute would lose between a leaf of the cluster and the candidate."""
    return VALUES + 3 * s.attr_f.shape[1] + s.plan[NEAR]


@piece
def widenings(s):
    """First row of pending_f with what each attribute adds to the candidates' scores."""
    return VALUES + 4 * s.attr_f.shape[1] + s.plan[NEAR]


@piece
def always_exchanges(s):
    """Whether every cluster exchanges members, whatever clusters lose."""
    return s.plan[EXCHANGES] > 0 and s.ratios[EXCHANGED_FROM] == 0.0


@piece
def first_met(s, at):
    """First place of the latest tuples that the new tuple at `at` meets."""
    left, first, alive = MET_WHERE_EXCHANGED if always_exchanges(s) else MOST_MET, at, s.pending_i[ALIVE]
    if s.plan[CANDIDATES] > 0:
        left = max(s.plan[CANDIDATES] // 4, FEWEST_MET)
    while left >= _BLOCK and first - _BLOCK >= s.tally[HEAD]:  # count whole blocks while they cannot be too many
        first -= _BLOCK
        for i in range(np.uint64(first), np.uint64(first + _BLOCK)):
            left -= alive[i]
    while left > 0 and first > s.tally[HEAD]:
        first -= 1
        left -= alive[first]
    return first


@piece
def note_met(near, i, distance):
    """Insert a distance into the sorted least distances of tuple i; the greatest drops out."""
    for row in range(np.uint64(near.shape[0])):
        known = near[row, i]
        near[row, i] = distance if distance < known else known
        distance = known if distance < known else distance


@piece
def meet_others(s, at):
    """Record the distances between a new tuple and the latest ones, for both sides."""
    near = s.pending_f[nears(s) : nears(s) + s.plan[NEAR]]
    for row in range(near.shape[0]):
        near[row, at] = 1.0
    first = first_met(s, at)
    measure(s, at, first, at)
    distance, furthest, alive, persons = (
        s.pending_f[DISTANCE],
        near[s.plan[NEAR] - 1],
        s.pending_i[ALIVE],
        s.pending_i[PERSON],
    )
    for i in range(np.uint64(first), np.uint64(at)):
        found = distance[i]
        if not (found < furthest[i] or found < furthest[at]):  # true for most
            continue
        if alive[i] and persons[i] != persons[at]:
            if found < furthest[i]:
                note_met(near, i, found)
            if found < furthest[at]:
                note_met(near, at, found)


@piece
def reach_labels(s, a, leaf, count):
    """For each candidate: what the label loses that covers its leaf and the given one.

    The label above a cluster and a candidate outside it is the same for every leaf of the cluster, so one leaf is
    enough while the cluster grows. For a candidate inside, the cluster's own label loses at least as much.
    """
    values, reach, leaves = s.pending_f[packed(s) + a], s.pending_f[reaches(s) + a], s.attr_i[LEAVES, a]
    if leaves <= SMALL_TREE:
        at = s.attr_i[PAIRS_AT, a] + leaf * leaves
        for c in range(np.uint64(count)):
            value = values[c]
            reach[c] = s.tree_f[np.uint64(at + np.int64(value))] if value == value else value
    else:
        for c in range(count):
            value = values[c]
            reach[c] = range_loss(s, a, min(value, leaf), max(value, leaf)) if value == value else value


@piece
def list_candidates(s, t):
    """List the candidates in order of arrival, all or the nearest; return their number.

    The due tuple is always the first.
    """
    first, last, limit = s.tally[HEAD], s.tally[TAIL], s.plan[CANDIDATES]
    eligible, chain = s.pending_i[ELIGIBLE], s.pending_i[CHAIN]
    mark_alike(s, ELIGIBLE, t, first, last)
    chain[0] = t
    if 0 < limit < s.tally[LIVE] - 1:
        measure(s, t, first, last)
        exclude_own_person(s, t, first, last)
        distance = s.pending_f[DISTANCE]
        for i in range(np.uint64(first), np.uint64(last)):
            distance[i] = distance[i] if eligible[i] else np.inf
        bound, shared, spare = bound_least(distance, first, last, limit)
        return list_up_to(distance, first, last, bound, shared, spare, chain, 1)
    eligible[t] = 0
    count = 1
    for i in range(first, last):
        if eligible[i]:
            chain[count] = i
            count += 1
    return count


@piece
def pack_candidates(s, t):
    """List the candidates and copy their values side by side; return their number."""
    count = list_candidates(s, t)
    for a in range(width(s)):
        source, target = s.pending_f[VALUES + a], s.pending_f[packed(s) + a]
        for c in range(np.uint64(count)):
            target[c] = source[np.uint64(s.pending_i[CHAIN, c])]
        if s.attr_i[KIND, a] != NUMERIC and target[0] == target[0]:
            reach_labels(s, a, np.int64(target[0]), count)
    return count


@piece
def price_candidates(s, count):
    """Compute each candidate's price and 1 / the weight of what it carries; return the weight of all attributes."""
    attributes, near, costs, shares = width(s), s.plan[NEAR], s.pending_f[COST_OF], s.pending_f[MASS]
    weights = 0.0
    for a in range(attributes):
        weights += s.attr_f[WEIGHT, a]
    for c in range(np.uint64(count)):
        costs[c] = 0.0
        shares[c] = 0.0
    for row in range(nears(s), nears(s) + near):
        for c in range(np.uint64(count)):
            costs[c] += s.pending_f[row, np.uint64(s.pending_i[CHAIN, c])]
    for c in range(np.uint64(count)):
        waited = (s.tally[NOW] - s.pending_i[ARRIVED, np.uint64(s.pending_i[CHAIN, c])]) / s.plan[DEADLINE]
        apart = costs[c] / near * (1.0 + s.ratios[STALENESS] * waited)
        costs[c] = s.ratios[PRICE] * weights * (apart + s.ratios[AGE] * s.sums[TYPICAL] * waited)
    for a in range(attributes):
        values, weight = s.pending_f[packed(s) + a], s.attr_f[WEIGHT, a]
        for c in range(np.uint64(count)):
            shares[c] += weight if values[c] == values[c] else 0.0
    for c in range(np.uint64(count)):
        costs[c] *= np.sqrt(shares[c] / weights)  # distances over few attributes say little
        shares[c] = 1.0 / shares[c] if shares[c] > 0.0 else 0.0
    return weights
