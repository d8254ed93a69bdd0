"""Exchange of members: drop all members beyond a bound of one attribute and let the cluster grow back.

The bounds that gain most per dropped member are tried first; a cluster that is not better is not kept.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.tuples.generalize import meet, range_loss, width
from shoal.kernels.tuples.layout import (
    ALLOWED,
    CHAIN,
    COST_OF,
    DISTANCE,
    EXCHANGES,
    FIRST_AT,
    HEAP_AT,
    HEAP_KEY,
    KIND,
    LAST_AT,
    LATER,
    LEAVES,
    MASS,
    MEMBER,
    NUMERIC,
    PART_KEY,
    SPARE,
    TRIAL,
    WEIGHT,
)
from shoal.kernels.tuples.least_loss.candidates import packed, widenings
from shoal.kernels.tuples.least_loss.growth import carriers_needed, grow
from shoal.kernels.tuples.least_loss.top_k import bound_least, list_up_to
from shoal.kernels.tuples.queue import gather_front

TRIES = 8
TRIED = 3
MOST_DROPPED = 0.7
_LITTLE = 1e-9


@piece
def worth(s, chosen, members):
    """What a cluster loses in all attributes, minus its members' prices."""
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
    """Sort the members' values of one attribute; return their number."""
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
    """Record the cut that drops the members outside low..high; return the number of cuts."""
    if cuts == s.pending_i.shape[1]:
        return cuts
    s.pending_i[HEAP_AT, cuts] = a
    s.pending_f[PART_KEY, cuts] = low
    s.pending_f[LATER, cuts] = high
    s.pending_f[DISTANCE, cuts] = gain
    return cuts + 1


@piece
def cuts_of_numbers(s, a, cuts, count, members):
    """The cut at the low end and the cut at the high end with the greatest gain per dropped member."""
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
def span_above(s, a, first, last):
    """First and last leaf of the next label above a run of leaves."""
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
def cuts_of_labels(s, a, cuts, count, members):
    """One cut per label above the due tuple's leaf (or the middle member's) and strictly below the cluster's label."""
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
def find_cuts(s, members):
    """List the cuts worth trying; return their number."""
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
    """Remove and return the cut of greatest gain, the first of equals; -1 if there is none."""
    best, most = -1, 0.0
    for cut in range(cuts):
        if s.pending_f[DISTANCE, cut] > most:
            best, most = cut, s.pending_f[DISTANCE, cut]
    if best >= 0:
        s.pending_f[DISTANCE, best] = -1.0
    return best


@piece
def keep_inside(s, cut, members):
    """List the members that a cut keeps as the trial's; return their number."""
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
    """Keep only the members and the best-scored candidates; return their number.

    A cluster grows back many times, and hardly ever by a candidate that scored badly before.
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
    """Apply the best cut and grow back, as long as the cluster gets better."""
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
