"""l-diversity, entropy l-diversity and t-closeness of clusters, and which tuples to add to satisfy them.

A missing value protects nobody: only known values count towards l and entropy l, and t holds on the known values and on
all. A cluster without a known value reveals none and is diverse.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.tuples.generalize import draft
from shoal.kernels.tuples.layout import (
    ALLOWED,
    CLASS_COUNT,
    CLASS_REFERENCE,
    CLOSENESS,
    DECLARED,
    DISTANCE,
    DISTINCT,
    ENTROPY,
    GAIN,
    IS_ORDERED,
    MEMBER,
    MISSING,
    ORDER,
    PERSON,
    RECENT_COUNT,
    REF_NEXT,
    REF_SIZE,
    REFERENCE,
    STAMP,
    STAMPED,
    USED,
)

ENOUGH, DISTINCT_FAILS, ENTROPY_FAILS, CLOSENESS_FAILS = range(4)
NONE_MISSING = -1
"""In place of the number of the missing value: every value counts."""
MOST_EXCHANGED = 16
"""How many exchanges are made for diversity, and how many tuples are considered for one."""
_SLACK = 1e-12


@piece
def sensitive_columns(s):
    """How many sensitive columns there are."""
    return s.recent.shape[0]


@piece
def value_row(s, column):
    """The row of pending_i with a sensitive column's values."""
    return s.pending_i.shape[0] - s.recent.shape[0] + column


@piece
def remember_recent(s, arrivals, i):
    """Add a new arrival's values to the reference of recent arrivals."""
    if s.plan[REFERENCE] == 0:
        return
    place, columns = s.tally[REF_NEXT], sensitive_columns(s)
    if s.tally[REF_SIZE] == s.plan[REFERENCE]:
        for column in range(columns):
            s.sens_f[RECENT_COUNT, column, s.recent[column, place]] -= 1.0
    else:
        s.tally[REF_SIZE] += 1
    for column in range(columns):
        value = arrivals.sensitive[column, i]
        s.recent[column, place] = value
        s.sens_f[RECENT_COUNT, column, value] += 1.0
    s.tally[REF_NEXT] = (place + 1) % s.plan[REFERENCE]


@piece
def distinct_values(counts, used, missing):
    """How many known values occur."""
    found = 0
    for value in range(used):
        if counts[value] > 0.0 and value != missing:
            found += 1
    return found


@piece
def total_of(counts, used, missing):
    """How many rows have a known value."""
    total = 0.0
    for value in range(used):
        if value != missing:
            total += counts[value]
    return total


@piece
def entropy_of(counts, used, missing):
    """Entropy of the known values, in nats; 0 if there are none."""
    total = total_of(counts, used, missing)
    found = 0.0
    for value in range(used):
        if counts[value] > 0.0 and value != missing:
            share = counts[value] / total
            found -= share * np.log(share)
    return found


@piece
def distance_to(counts, reference, order, used, is_ordered, missing):
    """Earth mover's distance of the known values to those of a reference: all moves alike, or by rank.

    0 if there are no known values, 1 if the reference alone has none.
    """
    total, whole = total_of(counts, used, missing), total_of(reference, used, missing)
    if total == 0.0 or whole == 0.0:
        return 0.0 if total == 0.0 else 1.0
    found, surplus, kinds = 0.0, 0.0, 0
    for place in range(used):
        value = np.int64(order[place]) if is_ordered else place
        if value == missing or (counts[value] == 0.0 and reference[value] == 0.0):
            continue
        kinds += 1
        more = counts[value] / total - reference[value] / whole
        surplus += more
        found += abs(surplus) if is_ordered else abs(more)
    if not is_ordered:
        return found / 2.0
    return found / (kinds - 1) if kinds > 1 else 0.0


@piece
def fails(s, c, column, kind):
    """Whether a cluster's values in one column are too few, too uneven, or too far from the reference."""
    used, missing, counts = s.sens_i[USED, column], s.sens_i[MISSING, column], s.class_f[c, CLASS_COUNT, column]
    if kind == DISTINCT_FAILS:
        return s.plan[DISTINCT] > 1 and 0 < distinct_values(counts, used, missing) < s.plan[DISTINCT]
    if kind == ENTROPY_FAILS:
        is_uneven = s.ratios[ENTROPY] > 0.0 and entropy_of(counts, used, missing) < s.ratios[ENTROPY] - _SLACK
        return is_uneven and total_of(counts, used, missing) > 0.0
    return s.ratios[CLOSENESS] >= 0.0 and distance_of(s, c, column) > s.ratios[CLOSENESS] + _SLACK


@piece
def distance_of(s, c, column):
    """The distance of a cluster's values from their reference: of all, or of those that are known if it is greater."""
    counts, reference, order = (
        s.class_f[c, CLASS_COUNT, column],
        s.class_f[c, CLASS_REFERENCE, column],
        s.sens_f[ORDER, column],
    )
    used, is_ordered, missing = s.sens_i[USED, column], s.sens_i[IS_ORDERED, column], s.sens_i[MISSING, column]
    found = distance_to(counts, reference, order, used, is_ordered, NONE_MISSING)
    if missing != NONE_MISSING and (counts[missing] > 0.0 or reference[missing] > 0.0):
        found = max(found, distance_to(counts, reference, order, used, is_ordered, missing))
    return found


@piece
def first_failure(s, c):
    """What fails first in a cluster, and in which column; ENOUGH when nothing does."""
    for kind in range(DISTINCT_FAILS, CLOSENESS_FAILS + 1):
        for column in range(sensitive_columns(s)):
            if fails(s, c, column, kind):
                return kind, column
    return ENOUGH, 0


@piece
def count_values(s, members):
    """Count the sensitive values of the chosen members into the draft, and copy the reference."""
    c = draft(s)
    source = RECENT_COUNT if s.plan[REFERENCE] > 0 else DECLARED
    for column in range(sensitive_columns(s)):
        for value in range(s.sens_i[USED, column]):
            s.class_f[c, CLASS_COUNT, column, value] = 0.0
            s.class_f[c, CLASS_REFERENCE, column, value] = s.sens_f[source, column, value]
        for m in range(members):
            value = s.pending_i[value_row(s, column), s.pending_i[MEMBER, m]]
            s.class_f[c, CLASS_COUNT, column, value] += 1.0


@piece
def helps(s, column, value, kind):
    """Whether one more of this value makes what fails in the draft better."""
    c = draft(s)
    counts, used, missing = s.class_f[c, CLASS_COUNT, column], s.sens_i[USED, column], s.sens_i[MISSING, column]
    if kind == DISTINCT_FAILS:
        return counts[value] == 0.0 and value != missing
    if kind == ENTROPY_FAILS:
        before = entropy_of(counts, used, missing)
        counts[value] += 1.0
        after = entropy_of(counts, used, missing)
        counts[value] -= 1.0
        return after > before + _SLACK
    before = distance_of(s, c, column)
    counts[value] += 1.0
    after = distance_of(s, c, column)
    counts[value] -= 1.0
    return after < before - _SLACK


@piece
def next_helper(s, first, last, column, kind):
    """The nearest allowed tuple of a person not chosen yet that helps; -1 if there is none."""
    gain, distance, values = s.sens_f[GAIN, column], s.pending_f[DISTANCE], s.pending_i[value_row(s, column)]
    for value in range(s.sens_i[USED, column]):
        gain[value] = -1.0
    best = -1
    for i in range(first, last):
        if not s.pending_i[ALLOWED, i] or s.pending_i[STAMPED, s.pending_i[PERSON, i]] == s.tally[STAMP]:
            continue
        if best >= 0 and distance[i] >= distance[best]:
            continue
        value = values[i]
        if gain[value] < 0.0:
            gain[value] = 1.0 if helps(s, column, value, kind) else 0.0
        if gain[value] > 0.0:
            best = i
    return best


@piece
def diversify(s, first, last, members):
    """Add people until the chosen are diverse enough; return how many are chosen then, 0 if it cannot be done."""
    c = draft(s)
    count_values(s, members)
    s.tally[STAMP] += 1
    for m in range(members):
        s.pending_i[STAMPED, s.pending_i[PERSON, s.pending_i[MEMBER, m]]] = s.tally[STAMP]
    while True:
        kind, column = first_failure(s, c)
        if kind == ENOUGH:
            return members
        added = next_helper(s, first, last, column, kind)
        if added < 0:
            return 0
        s.pending_i[MEMBER, members] = added
        members += 1
        s.pending_i[STAMPED, s.pending_i[PERSON, added]] = s.tally[STAMP]
        add_values(s, c, added, 1.0)


@piece
def add_values(s, c, i, times):
    """Count a tuple's sensitive values in a cluster, or take them out again."""
    for column in range(sensitive_columns(s)):
        s.class_f[c, CLASS_COUNT, column, s.pending_i[value_row(s, column), i]] += times


@piece
def stays_diverse(s, c, t):
    """Whether a cluster is still diverse enough with tuple t in it; it is left as it was."""
    add_values(s, c, t, 1.0)
    kind, _ = first_failure(s, c)
    add_values(s, c, t, -1.0)
    return kind == ENOUGH


@piece
def exchange_for_diversity(s, members, listed):
    """Exchange members for tuples listed after them, of the same person, as long as that helps what fails first.

    The members' sensitive values are counted in the draft, before and after.
    """
    chosen, c = s.pending_i[MEMBER], draft(s)
    for _ in range(MOST_EXCHANGED):
        kind, column = first_failure(s, c)
        if kind == ENOUGH:
            return
        added, dropped = helping_pair(s, members, listed, column, kind)
        if added < 0:
            return
        add_values(s, c, chosen[dropped], -1.0)
        add_values(s, c, chosen[added], 1.0)
        chosen[added], chosen[dropped] = chosen[dropped], chosen[added]


@piece
def helping_pair(s, members, listed, column, kind):
    """One of the first tuples listed after the members, and a member of its person, that help if exchanged; else -1."""
    chosen, c, persons, values = s.pending_i[MEMBER], draft(s), s.pending_i[PERSON], s.pending_i[value_row(s, column)]
    for added in range(members, min(listed, members + MOST_EXCHANGED)):
        for dropped in range(members):
            old, new = chosen[dropped], chosen[added]
            if persons[old] == persons[new] and values[old] != values[new]:
                add_values(s, c, old, -1.0)
                is_better = helps(s, column, values[new], kind) and not helps(s, column, values[old], kind)
                add_values(s, c, old, 1.0)
                if is_better:
                    return added, dropped
    return -1, -1
