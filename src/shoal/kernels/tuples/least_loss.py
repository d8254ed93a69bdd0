"""Least loss: a cluster grows by whoever widens it least, and those who are hard to place are worth a little more.

**Growing.** The cluster starts with the tuple that must leave. One by one the candidate with the least score joins:
how much it widens the cluster's ranges and labels, plus what it would lose there itself as one of k, minus its price.
While an attribute lacks carriers it needs to be shown, candidates without it score worse; once it cannot be shown any
more, widening it costs nothing.

**Prices.** What is left behind governs the losses to come: a stream that always takes the easy company keeps the odd
ones until they must leave together. So every held tuple has a price: how far away its nearest neighbours are (the mean
of the least distances it has met), and how long it has waited.

**Exchanging.** Where it pays, members beyond a bound of one attribute are dropped all at once and the cluster grows
back: the bounds that gain most for each member dropped are tried first.

With a limit on candidates only the nearest are looked at, and a new tuple meets fewer of the latest.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.tuples.diversity import diversify
from shoal.kernels.tuples.generalize import draft, generalize_members, meet, width
from shoal.kernels.tuples.layout import (
    AGE,
    ALIVE,
    ALLOWED,
    ARRIVED,
    C_CARRIERS,
    C_HIGH,
    C_LOSS,
    C_LOW,
    C_NODE,
    C_SHOWN,
    CANDIDATES,
    CHAIN,
    COST_OF,
    DEADLINE,
    DISTANCE,
    ELIGIBLE,
    ENDING,
    EXCHANGES,
    FIELDS,
    FIRST_AT,
    FLOOR,
    HEAD,
    HEAP_AT,
    HEAP_KEY,
    INCOMPLETE,
    IS_DIVERSE,
    KIND,
    LAST_AT,
    LATER,
    LEAVES,
    LIVE,
    LOSS_AT,
    MASS,
    MEMBER,
    MIN_CARRIERS,
    NEAR,
    NEXT,
    NOW,
    NULLS,
    NUMERIC,
    PAIRS_AT,
    PART_KEY,
    PEOPLE,
    PERSON,
    PRICE,
    SHOW_ALL,
    SHOW_COMMON,
    SMALL_TREE,
    SPARE,
    TAIL,
    TRIAL,
    TYPICAL,
    TYPICAL_OF,
    VALUES,
    WEIGHT,
    K,
)
from shoal.kernels.tuples.nearest import exclude_own_person, mark_all, measure
from shoal.kernels.tuples.queue import count_keys, gather_front
from shoal.kernels.tuples.run import HAS_ARRIVED, IS_OVER, begin_run, next_event, publish_or_suppress
from shoal.kernels.tuples.top_k import bound_least, least_between, list_up_to

LACK = 3.0
INSIDE = 0.3
MOST_MET = 256
MET_WHERE_EXCHANGED = 128
FEWEST_MET = 32
TRIES = 4
TRIED = 4
MOST_DROPPED = 0.7
_LITTLE = 1e-9
_STRETCH = 64
_BLOCK = 16


@piece
def nears(s):
    """The first row of least distances met."""
    return VALUES + 2 * s.attr_f.shape[1]


@piece
def packed(s):
    """The first row of candidates' values, packed."""
    return VALUES + 2 * s.attr_f.shape[1] + s.plan[NEAR]


@piece
def reaches(s):
    """The first row of what an attribute would lose, as far as the candidate alone says, if it joined."""
    return VALUES + 3 * s.attr_f.shape[1] + s.plan[NEAR]


@piece
def widenings(s):
    """The first row of what each attribute adds to the candidates' scores."""
    return VALUES + 4 * s.attr_f.shape[1] + s.plan[NEAR]


@piece
def first_met(s, at):
    """First index of the recent tuples a new tuple is compared with."""
    left, first, alive = MOST_MET if s.plan[EXCHANGES] == 0 else MET_WHERE_EXCHANGED, at, s.pending_i[ALIVE]
    if s.plan[CANDIDATES] > 0:
        left = max(s.plan[CANDIDATES] // 4, FEWEST_MET)
    while left >= _BLOCK and first - _BLOCK >= s.tally[HEAD]:  # as many at once as cannot be too many
        first -= _BLOCK
        for i in range(np.uint64(first), np.uint64(first + _BLOCK)):
            left -= alive[i]
    while left > 0 and first > s.tally[HEAD]:
        first -= 1
        left -= alive[first]
    return first


@piece
def note_met(near, i, distance):
    """Keep a distance if it is among the least that tuple i has met, which are in order: the greatest drops out."""
    for row in range(np.uint64(near.shape[0])):
        known = near[row, i]
        near[row, i] = distance if distance < known else known
        distance = known if distance < known else distance


@piece
def meet_others(s, at):
    """Let a new tuple and those it meets know how far apart they are."""
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
        if not (found < furthest[i] or found < furthest[at]):  # most are not: look no further
            continue
        if alive[i] and persons[i] != persons[at]:
            if found < furthest[i]:
                note_met(near, i, found)
            if found < furthest[at]:
                note_met(near, at, found)


@piece
def list_candidates(s, t):
    """List the candidates in order of arrival, all or the nearest; return how many there are.

    The tuple that must leave is the first, whatever its place.
    """
    first, last, limit = s.tally[HEAD], s.tally[TAIL], s.plan[CANDIDATES]
    eligible, chain = s.pending_i[ELIGIBLE], s.pending_i[CHAIN]
    mark_all(s, ELIGIBLE, first, last)
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
    """List the candidates and put their values side by side; return how many there are."""
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
    """Note each candidate's price, and one over the weight of all it carries; return the weight of all attributes."""
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
        costs[c] = s.ratios[PRICE] * weights * (costs[c] / near + s.ratios[AGE] * s.sums[TYPICAL] * waited)
    for a in range(attributes):
        values, weight = s.pending_f[packed(s) + a], s.attr_f[WEIGHT, a]
        for c in range(np.uint64(count)):
            shares[c] += weight if values[c] == values[c] else 0.0
    for c in range(np.uint64(count)):
        shares[c] = 1.0 / shares[c] if shares[c] > 0.0 else 0.0
    return weights


@piece
def range_loss(s, a, low, high):
    """What an attribute loses from low to high, before any grid."""
    if s.attr_i[KIND, a] == NUMERIC:
        return high - low
    leaves = s.attr_i[LEAVES, a]
    if leaves <= SMALL_TREE:
        return s.tree_f[s.attr_i[PAIRS_AT, a] + np.int64(low) * leaves + np.int64(high)]
    return s.tree_f[s.attr_i[LOSS_AT, a] + meet(s, a, np.int64(low), np.int64(high))]


@piece
def reach_labels(s, a, leaf, count):
    """Note what the label above a leaf and each candidate's own loses.

    A candidate outside a cluster's label meets it where it meets any leaf below it, so one leaf of the cluster is
    enough as long as it grows; inside, the cluster's own label loses at least as much.
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
def reach_numbers(values, low, high, count, reach):
    """Note how wide a range becomes with each candidate; NaN for one without a value."""
    for c in range(np.uint64(count)):
        value = values[c]
        reach[c] = (high if value <= high else value) - (low if value >= low else value)


@piece
def charge(reach, before, usual, weight, own, shares, count, added, scores):
    """Put what an attribute adds now in place of what it added before, in the scores.

    Up to the usual, a share of what the attribute lost of late, widening costs only a part: to be tighter than usual
    in one attribute is worth little.
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
    """The same for an attribute that is given up: whoever carries it loses it, and widening costs nothing."""
    for c in range(np.uint64(count)):
        now = weight * (own * shares[c]) if values[c] == values[c] else 0.0
        scores[c] += now - added[c]
        added[c] = now


@piece
def widen(s, a, count, own, floor):
    """Bring the scores up to date with what each candidate would widen in one attribute."""
    d, attributes = draft(s), width(s)
    low, high = s.pool_f[d, C_LOW * attributes + a], s.pool_f[d, C_HIGH * attributes + a]
    before, weight = s.pool_f[d, C_LOSS * attributes + a], s.attr_f[WEIGHT, a]
    values, reach, added = s.pending_f[packed(s) + a], s.pending_f[reaches(s) + a], s.pending_f[widenings(s) + a]
    if s.pool_i[d, FIELDS + C_SHOWN * attributes + a]:
        charge_all(values, weight, own, s.pending_f[MASS], count, added, s.pending_f[SPARE])
    elif low <= high:
        if s.attr_i[KIND, a] == NUMERIC:
            reach_numbers(values, low, high, count, reach)
        elif values[0] != values[0]:  # else it was noted from the leaving tuple's leaf, once for all
            reach_labels(s, a, np.int64(low), count)
        usual = max(floor * s.sums[TYPICAL_OF + a], before)
        charge(reach, before, usual, weight, own, s.pending_f[MASS], count, added, s.pending_f[SPARE])


@piece
def start_scores(s, count):
    """Before anything is widened a candidate's score is its price."""
    scores, costs = s.pending_f[SPARE], s.pending_f[COST_OF]
    for c in range(np.uint64(count)):
        scores[c] = -costs[c]
    for a in range(width(s)):
        added = s.pending_f[widenings(s) + a]
        for c in range(np.uint64(count)):
            added[c] = 0.0


@piece
def add_missing(values, worse, count, totals):
    """Let candidates without an attribute score worse."""
    for c in range(np.uint64(count)):
        totals[c] += worse if values[c] != values[c] else 0.0


@piece
def penalize(s, count, needed, left):
    """Scores with a penalty for what carriers are lacking: `needed` an attribute, `left` members still to come.

    Return the row where scores are found: the same as before if none are lacking.
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
def start_cluster(s):
    """Begin a cluster in the draft: no ranges, no carriers, nothing given up."""
    d, attributes = draft(s), width(s)
    for a in range(attributes):
        s.pool_f[d, C_LOW * attributes + a] = np.inf
        s.pool_f[d, C_HIGH * attributes + a] = -np.inf
        s.pool_f[d, C_LOSS * attributes + a] = 0.0
        s.pool_i[d, FIELDS + C_CARRIERS * attributes + a] = 0
        s.pool_i[d, FIELDS + C_SHOWN * attributes + a] = 0
        s.pool_i[d, FIELDS + C_NODE * attributes + a] = 0


@piece
def stretch(s, a, low, high):
    """Let the cluster's range reach from low to high, or as far as the label above both does."""
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
    """Let candidate c join; mark attributes that changed, and those that can be shown no more."""
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
                has_changed = s.pool_i[d, given_up] == 0
        if s.pool_i[d, given_up] == 0 and needed - s.pool_i[d, carriers] > left:
            s.pool_i[d, given_up] = 1
            has_changed = True
        s.pool_i[d, FIELDS + C_NODE * attributes + a] = has_changed


@piece
def retire(s, c, count):
    """Take a candidate, and all others of the same person, out of the running: no score is worse."""
    s.pending_f[SPARE, c] = np.inf
    if s.tally[LIVE] == count_keys(s, PEOPLE):
        return
    person = s.pending_i[PERSON, s.pending_i[CHAIN, c]]
    for other in range(count):
        if s.pending_i[PERSON, s.pending_i[CHAIN, other]] == person:
            s.pending_f[SPARE, other] = np.inf


@piece
def least_score(scores, count):
    """The candidate still in the running with the least score, the earliest of equals; -1 if there is none."""
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
    """Let more join the members listed in one row, until so many are chosen; return how many there are."""
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


@piece
def worth(s, chosen, members):
    """What a cluster loses in all attributes, less its members' prices."""
    needed = carriers_needed(s, members)
    total = 0.0
    for a in range(width(s)):
        low, high, carriers = np.inf, -np.inf, 0
        for m in range(members):
            value = s.pending_f[packed(s) + a, s.pending_i[chosen, m]]
            if value == value:
                low, high, carriers = min(low, value), max(high, value), carriers + 1
        lost = 1.0
        if carriers >= needed:
            lost = range_loss(s, a, low, high) if carriers > 0 else 0.0
        total += s.attr_f[WEIGHT, a] * lost
    for m in range(members):
        total -= s.pending_f[COST_OF, s.pending_i[chosen, m]]
    return total


@piece
def sort_values(s, a, members):
    """Put the members' values of one attribute in order; return how many there are."""
    keys, count = s.pending_f[HEAP_KEY], 0
    for m in range(members):
        value = s.pending_f[packed(s) + a, s.pending_i[MEMBER, m]]
        if value == value:
            place = count
            while place > 0 and keys[place - 1] > value:
                keys[place] = keys[place - 1]
                place -= 1
            keys[place] = value
            count += 1
    return count


@piece
def note_cut(s, cuts, a, low, high, gain):
    """Remember that dropping members outside low and high might pay; return how many cuts are known."""
    if cuts == s.pending_i.shape[1]:
        return cuts
    s.pending_i[HEAP_AT, cuts] = a
    s.pending_f[PART_KEY, cuts] = low
    s.pending_f[LATER, cuts] = high
    s.pending_f[DISTANCE, cuts] = gain
    return cuts + 1


@piece
def cuts_of_numbers(s, a, cuts, count, members):
    """Of the lowest and of the highest members, those that would be dropped with the greatest gain for each."""
    keys, anchor, weight = s.pending_f[HEAP_KEY], s.pending_f[packed(s) + a, 0], s.attr_f[WEIGHT, a]
    low, high = keys[0], keys[count - 1]
    best, bound = 0.0, low
    for dropped in range(1, min(count, members // 2 + 1)):
        if keys[dropped] > anchor:
            break
        gain = weight * (keys[dropped] - low) / dropped
        if gain > best and keys[dropped] > keys[dropped - 1]:
            best, bound = gain, keys[dropped]
    if best > 0.0:
        cuts = note_cut(s, cuts, a, bound, high, best)
    best, bound = 0.0, high
    for dropped in range(1, min(count, members // 2 + 1)):
        if keys[count - 1 - dropped] < anchor:
            break
        gain = weight * (high - keys[count - 1 - dropped]) / dropped
        if gain > best and keys[count - 1 - dropped] < keys[count - dropped]:
            best, bound = gain, keys[count - 1 - dropped]
    return note_cut(s, cuts, a, low, bound, best) if best > 0.0 else cuts


@piece
def cuts_of_labels(s, a, cuts, count, members):
    """The labels above the leaving tuple's own (or the middle member's) and strictly below the cluster's."""
    keys, anchor = s.pending_f[HEAP_KEY], s.pending_f[packed(s) + a, 0]
    low, high = np.int64(keys[0]), np.int64(keys[count - 1])
    first = last = np.int64(anchor) if anchor == anchor else np.int64(keys[count // 2])
    lost = range_loss(s, a, low, high)
    while first > low or last < high:
        dropped = 0
        for place in range(count):
            dropped += keys[place] < first or keys[place] > last
        if 0 < dropped < count and dropped <= MOST_DROPPED * members:
            gain = s.attr_f[WEIGHT, a] * (lost - range_loss(s, a, first, last)) / dropped
            cuts = note_cut(s, cuts, a, first, last, gain)
        first, last = span_above(s, a, first, last)
    return cuts


@piece
def span_above(s, a, first, last):
    """The leaves below the next label above those of a run of leaves."""
    best, low, high = s.attr_i[LEAVES, a] + 1, first, last
    if first > 0:
        node = meet(s, a, first - 1, last)
        below, above = s.tree_i[s.attr_i[FIRST_AT, a] + node], s.tree_i[s.attr_i[LAST_AT, a] + node]
        best, low, high = above - below, below, above
    if last + 1 < s.attr_i[LEAVES, a]:
        node = meet(s, a, first, last + 1)
        below, above = s.tree_i[s.attr_i[FIRST_AT, a] + node], s.tree_i[s.attr_i[LAST_AT, a] + node]
        if above - below < best:
            low, high = below, above
    return low, high


@piece
def find_cuts(s, members):
    """List the cuts that might pay; return how many there are."""
    cuts, needed = 0, carriers_needed(s, members)
    for a in range(width(s)):
        count = sort_values(s, a, members)
        if count == 0 or count < needed or s.pending_f[HEAP_KEY, 0] == s.pending_f[HEAP_KEY, count - 1]:
            continue
        if s.attr_i[KIND, a] == NUMERIC:
            cuts = cuts_of_numbers(s, a, cuts, count, members)
        else:
            cuts = cuts_of_labels(s, a, cuts, count, members)
    return cuts


@piece
def best_cut(s, cuts):
    """The cut of greatest gain, the first of equals, taken off the list; -1 if there is none."""
    best, most = -1, 0.0
    for cut in range(cuts):
        if s.pending_f[DISTANCE, cut] > most:
            best, most = cut, s.pending_f[DISTANCE, cut]
    if best >= 0:
        s.pending_f[DISTANCE, best] = -1.0
    return best


@piece
def keep_inside(s, cut, members):
    """List as the trial's members those a cut keeps; return how many."""
    a, kept = s.pending_i[HEAP_AT, cut], 0
    for m in range(members):
        c = s.pending_i[MEMBER, m]
        value = s.pending_f[packed(s) + a, c]
        if value != value or s.pending_f[PART_KEY, cut] <= value <= s.pending_f[LATER, cut]:
            s.pending_i[TRIAL, kept] = c
            kept += 1
    return kept


@piece
def narrow(s, members, count):
    """Leave only the members and those that scored best in the running; return how many there are.

    A cluster grows back many times, and hardly ever by one that scored badly before.
    """
    if count <= members + TRIED * members:
        return count
    scores, picked, places = s.pending_f[SPARE], s.pending_i[ALLOWED], s.pending_i[HEAP_AT]
    bound, shared, spare = bound_least(scores, 0, count, TRIED * members)
    for m in range(members):
        scores[s.pending_i[MEMBER, m]] = -np.inf
    count = list_up_to(scores, 0, count, bound, shared, spare, picked, 0)
    for c in range(count):
        places[picked[c]] = c
        s.pending_i[CHAIN, c] = s.pending_i[CHAIN, picked[c]]  # never before its own place
    for m in range(members):
        s.pending_i[MEMBER, m] = places[s.pending_i[MEMBER, m]]
    gather_front(s.pending_f[COST_OF], picked, count)
    gather_front(s.pending_f[MASS], picked, count)
    for row in range(packed(s), widenings(s)):
        gather_front(s.pending_f[row], picked, count)
    return count


@piece
def exchange(s, members, count, own):
    """Drop all members beyond a bound at once and grow back, as long as the whole gets better."""
    count = narrow(s, members, count)
    value = worth(s, MEMBER, members)
    for _ in range(s.plan[EXCHANGES]):
        cuts, is_better = find_cuts(s, members), False
        for _ in range(TRIES):
            cut = best_cut(s, cuts)
            if cut < 0:
                break
            kept = keep_inside(s, cut, members)
            if grow(s, TRIAL, kept, count, members, own, 0.0) < members:
                continue
            other = worth(s, TRIAL, members)
            if other < value - _LITTLE:
                value, is_better = other, True
                for m in range(members):
                    s.pending_i[MEMBER, m] = s.pending_i[TRIAL, m]
                break
        if not is_better:
            return


@piece
def carriers_needed(s, wanted):
    """How many members must carry an attribute for it to be shown."""
    if s.plan[NULLS] == SHOW_ALL:
        return s.plan[MIN_CARRIERS]
    return wanted if s.plan[NULLS] == SHOW_COMMON else 1


@piece
def form_least(s, t):
    """Make the cluster of t that is grown by least loss; return its size, 0 if there are too few people.

    At the end of the stream, when fewer than two clusters are left, all leave together.
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
    """Take in arrivals from `start` to `stop`; return how far it came, which is `stop` unless room is needed."""
    begin_run(s, start)
    while True:
        event, t = next_event(s, arrivals, stop)
        if event == IS_OVER:
            return s.tally[NEXT]
        if event == HAS_ARRIVED:
            meet_others(s, t)
        else:
            publish_or_suppress(s, t, form_least(s, t))
