"""What CASTLE's forming clusters cover, what they lose, and what they would lose.

Each cluster has a column: first the forming ones, oldest first, then one for the union of several, a scratch column for
a tuple that may join, and those for the parts of a split union. Lowest and highest are ranks of leaves or scaled
numbers, on the grid already; the highest is below the lowest where no one carries the attribute.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from shoal.kernels.bundles import bundle
from shoal.kernels.compiling import piece
from shoal.kernels.tuples.generalize import range_loss, raws, scaled, snapped_down, snapped_up, width
from shoal.kernels.tuples.layout import KIND, LEAVES, NUMERIC, PAIRS_AT, SMALL_TREE, STEP, VALUES, WEIGHT

# ---- numbers a forming cluster, and numbers of all of them
TUPLES, CROWD, FIRST, TAKEN, RENAMED = range(5)
CLUSTER_COUNTS = 5
FORMING, UNION_CROWD, NEXT_LOSS, LOSSES = range(4)
FORMING_TALLY = 4
HULL_BLOCKS, HULL_SUMS = 3, 2


@bundle
class Forming(NamedTuple):
    """Clusters that are not published yet, and what the last published ones lost."""

    hulls: Any
    """Lowest, highest and lost, a row an attribute each; then the total, and the total with the scratch column."""
    counts: Any
    tally: Any
    published: Any
    """What was lost by the last published clusters, a ring; the last number is its mean."""


@piece
def union_of(f):
    """The column of the clusters joined so far."""
    return f.counts.shape[1]


@piece
def scratch_of(f):
    """The scratch column, for a tuple that may join."""
    return f.counts.shape[1] + 1


@piece
def parts_of(f):
    """The first column of the parts of a union that is split."""
    return f.counts.shape[1] + 2


@piece
def lost_now(s):
    """The row of what clusters lose."""
    return HULL_BLOCKS * s.attr_f.shape[1]


@piece
def lost_then(s):
    """The row of what clusters would lose with the scratch column."""
    return HULL_BLOCKS * s.attr_f.shape[1] + 1


@piece
def range_of(s, a, i):
    """What tuple i alone covers of an attribute, from lowest to highest."""
    value = s.pending_f[VALUES + a, i]
    if value != value:
        return np.inf, -np.inf
    if s.attr_f[STEP, a] == 0.0:
        return value, value
    raw = s.pending_f[raws(s) + a, i]
    return scaled(s, a, snapped_down(s, a, raw)), scaled(s, a, snapped_up(s, a, raw))


@piece
def loss_between(s, a, low, high):
    """What an attribute loses from lowest to highest; nothing where no one carries it."""
    if low > high:
        return 0.0
    return range_loss(s, a, low, high)


@piece
def all_weights(s):
    """The sum of the attributes' weights."""
    total = 0.0
    for a in range(width(s)):
        total += s.attr_f[WEIGHT, a]
    return total


@piece
def clear_hull(s, f, c):
    """Empty a column."""
    attributes = width(s)
    for a in range(attributes):
        f.hulls[a, c] = np.inf
        f.hulls[attributes + a, c] = -np.inf


@piece
def widen(s, f, c, other):
    """Widen a column to cover another one."""
    attributes = width(s)
    for a in range(attributes):
        f.hulls[a, c] = min(f.hulls[a, c], f.hulls[a, other])
        f.hulls[attributes + a, c] = max(f.hulls[attributes + a, c], f.hulls[attributes + a, other])


@piece
def sum_up(s, f, c):
    """Compute what a column loses."""
    attributes = width(s)
    total = 0.0
    for a in range(attributes):
        loss = loss_between(s, a, f.hulls[a, c], f.hulls[attributes + a, c])
        f.hulls[2 * attributes + a, c] = loss
        total += s.attr_f[WEIGHT, a] * loss
    f.hulls[lost_now(s), c] = total / all_weights(s)


@piece
def load_tuple(s, f, i):
    """Load tuple i into the scratch column."""
    attributes, scratch = width(s), scratch_of(f)
    for a in range(attributes):
        f.hulls[a, scratch], f.hulls[attributes + a, scratch] = range_of(s, a, i)


@piece
def add_numeric_growth(lows, highs, low, high, weight, first, last, total):
    """Add what a numeric attribute would lose in some columns if each covered low to high too."""
    for c in range(np.uint64(first), np.uint64(last)):
        top = highs[c] if highs[c] > high else high
        bottom = lows[c] if lows[c] < low else low
        total[c] += weight * (top - bottom)


@piece
def add_tree_growth(lows, highs, low, high, weight, first, last, total, pairs, at, leaves):
    """Add what a categorical attribute would lose, by the table of pairs of leaves."""
    for c in range(np.uint64(first), np.uint64(last)):
        top = highs[c] if highs[c] > high else high
        bottom = lows[c] if lows[c] < low else low
        total[c] += weight * pairs[np.uint64(at) + np.uint64(bottom) * np.uint64(leaves) + np.uint64(top)]


@piece
def add_growth(s, f, a, low, high, first, last):
    """Add what one attribute would lose in some columns if each covered low to high too."""
    attributes, weight = width(s), s.attr_f[WEIGHT, a]
    lows, highs, total = f.hulls[a], f.hulls[attributes + a], f.hulls[lost_then(s)]
    if low > high:
        lost = f.hulls[2 * attributes + a]
        for c in range(np.uint64(first), np.uint64(last)):
            total[c] += weight * lost[c]
    elif s.attr_i[KIND, a] == NUMERIC:
        add_numeric_growth(lows, highs, low, high, weight, first, last, total)
    elif s.attr_i[LEAVES, a] <= SMALL_TREE:
        at, leaves = s.attr_i[PAIRS_AT, a], s.attr_i[LEAVES, a]
        add_tree_growth(lows, highs, low, high, weight, first, last, total, s.tree_f, at, leaves)
    else:
        for c in range(first, last):
            total[c] += weight * loss_between(s, a, min(lows[c], low), max(highs[c], high))


@piece
def lose_with(s, f, scratch, first, last):
    """Compute what each column from first to last would lose if it covered column `scratch` too."""
    attributes, total = width(s), f.hulls[lost_then(s)]
    for c in range(first, last):
        total[c] = 0.0
    for a in range(attributes):
        add_growth(s, f, a, f.hulls[a, scratch], f.hulls[attributes + a, scratch], first, last)
    weights = all_weights(s)
    for c in range(first, last):
        total[c] /= weights
