"""Published clusters that may be reused, and how large a part of their rows is one person's (max_share)."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import piece
from shoal.kernels.tuples.diversity import sensitive_columns, stays_diverse
from shoal.kernels.tuples.generalize import draft, own_loss, raws, width
from shoal.kernels.tuples.layout import (
    BASE,
    C_HIGH,
    C_LOW,
    C_SHOWN,
    CHAIN,
    CREATED,
    FIELDS,
    GROUP,
    HEAP_AT,
    HIDDEN,
    IN_GROUPS,
    IS_DIVERSE,
    J_CLUSTER,
    J_KEYS,
    JOINED,
    KEYS,
    MASKS,
    MAX_SHARE,
    MEMBER,
    MISSING_MODE,
    NEAREST,
    NOW,
    OWN,
    PEOPLE,
    PERSON,
    POOL_HEAD,
    POOL_SIZE,
    REUSE,
    SAME_PATTERN,
    TRIAL,
    UNIFORM,
    USED,
)
from shoal.kernels.tuples.queue import mask_words

_SLACK = 1e-9
"""Rounding must not decide: 49 times 1/49 is less than 1."""


@piece
def is_capped(s):
    """Whether a person's share of a cluster is capped."""
    return s.ratios[MAX_SHARE] > 0.0


@piece
def rows_column(s):
    """The column of pool_i that counts a cluster's rows; the next one counts those of one person."""
    return s.pool_i.shape[1] - 2


@piece
def log_row(s, place, t):
    """Log that tuple t is published as the cluster at a place of the pool; the caller has made room."""
    row, person = s.tally[JOINED], s.pending_i[PERSON, t]
    s.joined[row, J_CLUSTER] = s.tally[BASE] + place
    for word in range(s.joined.shape[1] - J_KEYS):
        s.joined[row, J_KEYS + word] = s.slots[PEOPLE, KEYS + word, person]
    s.tally[JOINED] += 1


@piece
def log_members(s, members):
    """Log the chosen members as rows of the newest cluster of the pool."""
    for m in range(members):
        log_row(s, s.tally[POOL_SIZE] - 1, s.pending_i[MEMBER, m])


@piece
def log_reuse(s, c, t):
    """Log that tuple t reuses cluster c."""
    log_row(s, (c - s.tally[POOL_HEAD]) % draft(s), t)


@piece
def is_of(s, row, person):
    """Whether a logged row is of the person with this number."""
    for word in range(s.joined.shape[1] - J_KEYS):
        if s.joined[row, J_KEYS + word] != s.slots[PEOPLE, KEYS + word, person]:
            return False
    return True


@piece
def count_rows(s, t):
    """Count the rows of every cluster of the pool, and how many of them are of tuple t's person."""
    rows, person = rows_column(s), s.pending_i[PERSON, t]
    for place in range(s.tally[POOL_SIZE]):
        c = (s.tally[POOL_HEAD] + place) % draft(s)
        s.pool_i[c, rows] = s.pool_i[c, rows + 1] = 0
    for row in range(s.tally[JOINED]):
        place = s.joined[row, J_CLUSTER] - s.tally[BASE]
        if 0 <= place < s.tally[POOL_SIZE]:
            c = (s.tally[POOL_HEAD] + place) % draft(s)
            s.pool_i[c, rows] += 1
            s.pool_i[c, rows + 1] += is_of(s, row, person)


@piece
def stays_fair(s, c):
    """Whether one more row of the person counted last keeps its share of cluster c within the cap."""
    rows = rows_column(s)
    return s.pool_i[c, rows + 1] + 1 <= s.ratios[MAX_SHARE] * (s.pool_i[c, rows] + 1) + _SLACK


@piece
def is_fair(s, members):
    """Whether no one has more than the cap of the chosen members."""
    most, counts = 0, s.pending_i[NEAREST]
    for m in range(members):
        counts[s.pending_i[PERSON, s.pending_i[MEMBER, m]]] = 0
    for m in range(members):
        person = s.pending_i[PERSON, s.pending_i[MEMBER, m]]
        counts[person] += 1
        most = max(most, counts[person])
    return most <= s.ratios[MAX_SHARE] * members + _SLACK


@piece
def rows_within_share(s, members):
    """The most of the chosen members that can be one cluster under the cap.

    Dropping rows lowers what everyone may have, so it is repeated until nothing changes: the largest number n for which
    n rows remain if no one has more than the cap of n. Dividing them into several clusters would not save more, since
    clusters within the cap are within it together.
    """
    kept, counts = members, s.pending_i[NEAREST]
    while True:
        most, left = np.int64(s.ratios[MAX_SHARE] * kept + _SLACK), 0
        for m in range(members):
            counts[s.pending_i[PERSON, s.pending_i[MEMBER, m]]] = 0
        for m in range(members):
            person = s.pending_i[PERSON, s.pending_i[MEMBER, m]]
            counts[person] += 1
            left += counts[person] <= most
        if left == kept:
            return kept
        kept = left


@piece
def drop_old_clusters(s):
    """Forget clusters that were formed too long ago."""
    while s.tally[POOL_SIZE] > 0 and s.tally[NOW] - s.pool_i[s.tally[POOL_HEAD], CREATED] > s.plan[REUSE]:
        s.tally[POOL_HEAD] = (s.tally[POOL_HEAD] + 1) % draft(s)
        s.tally[POOL_SIZE] -= 1
        s.tally[BASE] += 1


@piece
def has_same_pattern(s, c, t):
    """Whether all members of a cluster carried exactly what t carries."""
    if not s.pool_i[c, UNIFORM]:
        return False
    at = FIELDS + 3 * width(s)
    for word in range(mask_words(s)):
        if s.pool_i[c, at + word] != s.pending_i[MASKS + word, t]:
            return False
    return True


@piece
def covers(s, c, t):
    """Whether tuple t lies in a cluster's ranges and below its labels."""
    attributes, first_raw = width(s), raws(s)
    for a in range(attributes):
        value = s.pending_f[first_raw + a, t]
        is_shown = s.pool_i[c, FIELDS + C_SHOWN * attributes + a]
        if value != value:
            if is_shown and (s.plan[MISSING_MODE] == HIDDEN or s.plan[MISSING_MODE] == OWN):
                return False
        elif (
            not is_shown or value < s.pool_f[c, C_LOW * attributes + a] or value > s.pool_f[c, C_HIGH * attributes + a]
        ):
            return False
    return not s.plan[SAME_PATTERN] or has_same_pattern(s, c, t)


@piece
def best_cover(s, t):
    """The cluster tuple t may join with least loss, the oldest of equals, and that loss; -1 if there is none."""
    drop_old_clusters(s)
    best, least = np.int64(-1), np.inf
    if s.plan[IN_GROUPS]:
        return best, least
    if is_capped(s):
        count_rows(s, t)
    for place in range(s.tally[POOL_SIZE]):
        c = (s.tally[POOL_HEAD] + place) % draft(s)
        if covers(s, c, t):
            loss = own_loss(s, c, t)
            if (
                loss < least
                and (not s.plan[IS_DIVERSE] or stays_diverse(s, c, t))
                and (not is_capped(s) or stays_fair(s, c))
            ):
                best, least = c, loss
    return best, least


@piece
def keep_within_share(s, members, by_reuse):
    """Keep the most of the chosen members that can be one cluster under the cap; return their number.

    Of a person with too many the earliest stay; with `by_reuse`, those first that no published cluster accepts. The
    dropped ones are listed after those that stay.
    """
    kept = rows_within_share(s, members)
    if kept == members:
        return members
    most = np.int64(s.ratios[MAX_SHARE] * kept + _SLACK)
    rows, taken, stays, order = s.pending_i[NEAREST], s.pending_i[HEAP_AT], s.pending_i[TRIAL], s.pending_i[CHAIN]
    for m in range(members):
        taken[s.pending_i[PERSON, s.pending_i[MEMBER, m]]] = 0
        stays[m] = 0
    for turn in range(2 if by_reuse else 1):
        for m in range(members):
            i = s.pending_i[MEMBER, m]
            person = s.pending_i[PERSON, i]
            if stays[m] or taken[person] >= most:
                continue
            stays[m] = not by_reuse or turn == 1 or rows[person] <= most or best_cover(s, i)[0] < 0
            taken[person] += stays[m]
    place, spare = 0, kept
    for m in range(members):
        order[place if stays[m] else spare] = s.pending_i[MEMBER, m]
        place += stays[m]
        spare += 1 - stays[m]
    for m in range(members):
        s.pending_i[MEMBER, m] = order[m]
    return kept


@piece
def is_uniform(s, members):
    """Whether all chosen members carry the same attributes."""
    first = s.pending_i[MEMBER, 0]
    for m in range(1, members):
        for word in range(mask_words(s)):
            if s.pending_i[MASKS + word, s.pending_i[MEMBER, m]] != s.pending_i[MASKS + word, first]:
                return False
    return True


@piece
def keep_draft(s, group, uniform, members):
    """Keep the cluster just made, of the chosen members, for reuse; the caller has made room."""
    made = draft(s)
    c = (s.tally[POOL_HEAD] + s.tally[POOL_SIZE]) % made
    s.tally[POOL_SIZE] += 1
    for column in range(s.pool_f.shape[1]):
        s.pool_f[c, column] = s.pool_f[made, column]
    for column in range(s.pool_i.shape[1]):
        s.pool_i[c, column] = s.pool_i[made, column]
    s.pool_i[c, CREATED] = s.tally[NOW]
    s.pool_i[c, GROUP] = group
    s.pool_i[c, UNIFORM] = uniform
    at = FIELDS + 3 * width(s)
    for word in range(mask_words(s)):
        s.pool_i[c, at + word] = s.pending_i[MASKS + word, s.pending_i[MEMBER, 0]]
    for kind in range(s.class_f.shape[1]):
        for column in range(sensitive_columns(s)):
            for value in range(s.sens_i[USED, column]):
                s.class_f[c, kind, column, value] = s.class_f[made, kind, column, value]
    if is_capped(s):
        log_members(s, members)
