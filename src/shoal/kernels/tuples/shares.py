"""How large a part of a cluster's rows is one person's, where that is capped (max_share)."""

from __future__ import annotations

from shoal.kernels.compiling import piece
from shoal.kernels.tuples.generalize import draft
from shoal.kernels.tuples.layout import (
    BASE,
    J_CLUSTER,
    J_KEYS,
    JOINED,
    KEYS,
    MAX_SHARE,
    MEMBER,
    NEAREST,
    PEOPLE,
    PERSON,
    POOL_HEAD,
    POOL_SIZE,
)

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
    """Log that tuple t is published as the cluster at a place of the pool; the caller has seen to room."""
    row, person = s.tally[JOINED], s.held_i[PERSON, t]
    s.joined[row, J_CLUSTER] = s.tally[BASE] + place
    for word in range(s.joined.shape[1] - J_KEYS):
        s.joined[row, J_KEYS + word] = s.slots[PEOPLE, KEYS + word, person]
    s.tally[JOINED] += 1


@piece
def log_members(s, members):
    """Log the chosen members as rows of the newest cluster of the pool."""
    for m in range(members):
        log_row(s, s.tally[POOL_SIZE] - 1, s.held_i[MEMBER, m])


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
    rows, person = rows_column(s), s.held_i[PERSON, t]
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
    """Whether nobody has more than the cap of the chosen members."""
    most, counts = 0, s.held_i[NEAREST]
    for m in range(members):
        counts[s.held_i[PERSON, s.held_i[MEMBER, m]]] = 0
    for m in range(members):
        person = s.held_i[PERSON, s.held_i[MEMBER, m]]
        counts[person] += 1
        most = max(most, counts[person])
    return most <= s.ratios[MAX_SHARE] * members + _SLACK
