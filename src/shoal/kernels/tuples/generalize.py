"""Generalizes a cluster to ranges and labels, and computes their loss."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.tuples.layout import (
    C_CARRIERS,
    C_HIGH,
    C_LOSS,
    C_LOW,
    C_NODE,
    C_SHOWN,
    FIELDS,
    FIRST_AT,
    HIDDEN,
    HIGH,
    KIND,
    LAST_AT,
    LEAF_AT,
    LEAVES,
    LOSS_AT,
    LOW,
    LOW_UNITS,
    MEETS_AT,
    MEMBER,
    MIN_CARRIERS,
    MISSING_MODE,
    NUMERIC,
    OWN,
    PAIRS_AT,
    PAPER,
    PERSON,
    SIZE,
    SMALL_TREE,
    STAMP,
    STAMPED,
    STEP,
    STEP_UNITS,
    UNIT,
    VALUES,
    WEIGHT,
)


@piece
def width(s):
    """How many attributes there are."""
    return s.attr_f.shape[1]


@piece
def draft(s):
    """The row of the cluster being made."""
    return s.pool_i.shape[0] - 1


@piece
def raws(s):
    """The first row of values as they came."""
    return VALUES + s.attr_f.shape[1]


@piece
def meet(s, attribute, first, last):
    """The lowest node above all leaves from first to last."""
    if first == last:
        return s.tree_i[s.attr_i[LEAF_AT, attribute] + first]
    # Nodes are numbered with ancestors first, so the LCA is the minimum over adjacent LCAs.
    span = last - first
    level = 0
    while (2 << level) <= span:
        level += 1
    row = s.attr_i[MEETS_AT, attribute] + level * s.attr_i[LEAVES, attribute]
    return min(s.tree_i[row + first], s.tree_i[row + last - (1 << level)])


@piece
def range_loss(s, a, low, high):
    """What an attribute loses from low to high, ignoring its grid."""
    if s.attr_i[KIND, a] == NUMERIC:
        return high - low
    leaves = s.attr_i[LEAVES, a]
    if leaves <= SMALL_TREE:
        return s.tree_f[s.attr_i[PAIRS_AT, a] + np.int64(low) * leaves + np.int64(high)]
    return s.tree_f[s.attr_i[LOSS_AT, a] + meet(s, a, np.int64(low), np.int64(high))]


@piece
def scaled(s, attribute, value):
    """Where a number lies in its domain, from 0 to 1."""
    low = s.attr_f[LOW, attribute]
    return (value - low) / (s.attr_f[HIGH, attribute] - low)


@piece
def grid_point(s, attribute, steps):
    """The point of the grid `steps` above the low end."""
    return (s.attr_f[LOW_UNITS, attribute] + steps * s.attr_f[STEP_UNITS, attribute]) / s.attr_f[UNIT, attribute]


@piece
def steps_below(s, attribute, value):
    """The number of the highest point of the grid that is not above the value."""
    first, step = s.attr_f[LOW_UNITS, attribute], s.attr_f[STEP_UNITS, attribute]
    steps = np.floor((value * s.attr_f[UNIT, attribute] - first) / step)
    # The quotient is rounded and may be one off; points are exact, so they decide.
    if grid_point(s, attribute, steps) > value:
        return steps - 1.0
    if grid_point(s, attribute, steps + 1.0) <= value:
        return steps + 1.0
    return steps


@piece
def snapped_down(s, attribute, value):
    """The highest point of the grid that is not above the value."""
    if s.attr_f[STEP, attribute] == 0.0:
        return value
    return max(grid_point(s, attribute, steps_below(s, attribute, value)), s.attr_f[LOW, attribute])


@piece
def snapped_up(s, attribute, value):
    """The lowest point of the grid that is not below the value, or the end of the domain."""
    if s.attr_f[STEP, attribute] == 0.0:
        return value
    steps = steps_below(s, attribute, value)
    if grid_point(s, attribute, steps) < value:
        steps += 1.0
    return min(grid_point(s, attribute, steps), s.attr_f[HIGH, attribute])


@piece
def is_shown(plan, carriers, members):
    """Whether a cluster shows an attribute, given how many of its members carry it."""
    if plan[MISSING_MODE] == HIDDEN:
        return carriers == members
    if plan[MISSING_MODE] == PAPER or plan[MISSING_MODE] == OWN:  # with OWN all members carry it, or none
        return carriers > 0
    return carriers >= plan[MIN_CARRIERS]


@piece
def generalize_range(s, c, a, low, high):
    """Write the range or label that covers an attribute from low to high into cluster c, and what it loses."""
    attributes = width(s)
    if s.attr_i[KIND, a] == NUMERIC:
        low, high = snapped_down(s, a, low), snapped_up(s, a, high)
        s.pool_f[c, C_LOW * attributes + a] = low
        s.pool_f[c, C_HIGH * attributes + a] = high
        s.pool_f[c, C_LOSS * attributes + a] = scaled(s, a, high) - scaled(s, a, low)
        s.pool_i[c, FIELDS + C_NODE * attributes + a] = 0
        return
    node = meet(s, a, np.int64(low), np.int64(high))
    s.pool_f[c, C_LOW * attributes + a] = s.tree_i[s.attr_i[FIRST_AT, a] + node]
    s.pool_f[c, C_HIGH * attributes + a] = s.tree_i[s.attr_i[LAST_AT, a] + node]
    s.pool_f[c, C_LOSS * attributes + a] = s.tree_f[s.attr_i[LOSS_AT, a] + node]
    s.pool_i[c, FIELDS + C_NODE * attributes + a] = node


@piece
def generalize_members(s, members):
    """Generalize the chosen members into the draft: ranges, labels, what is shown, what is lost."""
    c, attributes, first_raw = draft(s), width(s), raws(s)
    for a in range(attributes):
        carriers = 0
        low, high = np.inf, -np.inf
        for m in range(members):
            value = s.pending_f[first_raw + a, s.pending_i[MEMBER, m]]
            if value == value:
                carriers += 1
                low = min(low, value)
                high = max(high, value)
        s.pool_i[c, FIELDS + C_CARRIERS * attributes + a] = carriers
        s.pool_i[c, FIELDS + C_SHOWN * attributes + a] = is_shown(s.plan, carriers, members)
        if carriers > 0:
            generalize_range(s, c, a, low, high)
        else:
            s.pool_f[c, C_LOW * attributes + a] = s.pool_f[c, C_HIGH * attributes + a] = 0.0
            s.pool_f[c, C_LOSS * attributes + a] = 0.0
            s.pool_i[c, FIELDS + C_NODE * attributes + a] = 0
    s.pool_i[c, SIZE] = members


@piece
def is_new_person(s, i):
    """Whether tuple i is the first of its person since the stamp changed; marks the person."""
    person = s.pending_i[PERSON, i]
    if s.pending_i[STAMPED, person] == s.tally[STAMP]:
        return False
    s.pending_i[STAMPED, person] = s.tally[STAMP]
    return True


@piece
def count_carriers(s, members):
    """Count different people, not tuples, as carriers of the draft's attributes."""
    c, attributes = draft(s), width(s)
    for a in range(attributes):
        s.tally[STAMP] += 1
        carriers = 0
        for m in range(members):
            i = s.pending_i[MEMBER, m]
            if s.pending_f[VALUES + a, i] == s.pending_f[VALUES + a, i]:
                carriers += is_new_person(s, i)
        s.pool_i[c, FIELDS + C_CARRIERS * attributes + a] = carriers
        if s.plan[MISSING_MODE] != HIDDEN:  # which is about every tuple
            s.pool_i[c, FIELDS + C_SHOWN * attributes + a] = is_shown(s.plan, carriers, members)


@piece
def own_loss(s, c, i):
    """What tuple i loses in cluster c, over the attributes it carries; one that is not shown is lost."""
    attributes = width(s)
    total, mass = 0.0, 0.0
    for a in range(attributes):
        value = s.pending_f[VALUES + a, i]
        if value == value:
            is_there = s.pool_i[c, FIELDS + C_SHOWN * attributes + a] != 0
            total += s.attr_f[WEIGHT, a] * (s.pool_f[c, C_LOSS * attributes + a] if is_there else 1.0)
            mass += s.attr_f[WEIGHT, a]
    return total / mass if mass > 0.0 else 0.0


@piece
def whole_loss(s, c, i):
    """What tuple i loses in cluster c over all attributes; one that its row does not show is lost."""
    attributes = width(s)
    total, mass = 0.0, 0.0
    for a in range(attributes):
        value = s.pending_f[VALUES + a, i]
        is_there = s.pool_i[c, FIELDS + C_SHOWN * attributes + a] != 0
        is_there = is_there and (s.plan[MISSING_MODE] != PAPER or value == value)
        total += s.attr_f[WEIGHT, a] * (s.pool_f[c, C_LOSS * attributes + a] if is_there else 1.0)
        mass += s.attr_f[WEIGHT, a]
    return total / mass
