"""Writes decisions: tuples published as a new cluster, published as one more row of a cluster, or suppressed."""

from __future__ import annotations

from shoal.kernels.compiling import piece
from shoal.kernels.tuples.diversity import add_values
from shoal.kernels.tuples.generalize import draft, own_loss, whole_loss, width
from shoal.kernels.tuples.layout import (
    ALPHA,
    ARRIVED,
    AT,
    C_HIGH,
    C_LOSS,
    C_SHOWN,
    CLASS_REFERENCE,
    COST,
    COVERED,
    DEADLINE,
    DELAYS,
    ENDING,
    FIELDS,
    FILLED,
    FORMED,
    FULL,
    G_FIELDS,
    G_NUMBER,
    G_REUSED,
    GROUP,
    GROUPS,
    IN_GROUPS,
    INCOMPLETE,
    IS_DIVERSE,
    IS_RELEASED,
    IS_SUPPRESSED,
    JOINED,
    LANES,
    LIVE,
    LONGEST,
    LOSS,
    LOSS_ALL,
    MASKS,
    MEMBER,
    MERGED,
    MISSING_MODE,
    NO_GROUP,
    NOW,
    O_AT,
    O_DELAY,
    O_GROUP,
    O_ROW,
    O_VERDICT,
    OUT_GROUPS,
    OUT_MASKS,
    OUT_ROWS,
    PENALTY,
    PEOPLE,
    POOL_SIZE,
    RARE,
    RELEASED,
    REUSED,
    ROW,
    SKIP_MERGED,
    SUPPRESSED,
    TIMED,
    TYPICAL,
    TYPICAL_OF,
    VALUES,
    VARIED_AT_END,
    K,
)
from shoal.kernels.tuples.patterns import count_alike, is_divided
from shoal.kernels.tuples.queue import count_keys, mask_words, remove_pending
from shoal.kernels.tuples.reuse import is_capped, is_uniform, keep_draft, log_reuse

_SECOND = 1e9
LARGEST_GROWTH = 1e200
LEARN = 0.05
"""The weight of one cluster in the running average of losses."""


@piece
def has_output_room(s):
    """Whether there is room to write one more decision; sets FULL if not."""
    most = s.tally[LIVE] // s.plan[K] + 2  # clusters that one decision can make
    is_full = (
        s.tally[OUT_ROWS] + s.tally[LIVE] > s.out_i.shape[0]
        or s.tally[OUT_GROUPS] + most > s.group_i.shape[0]
        or s.tally[POOL_SIZE] + most > draft(s)
        or (is_capped(s) and s.tally[JOINED] + s.tally[LIVE] > s.joined.shape[0])
    )
    s.tally[FULL] = is_full
    return not is_full


@piece
def compounded(rate, times):
    """(1 + rate) ** times, capped so that 0 · inf never gives NaN."""
    return min((1.0 + rate) ** times, LARGEST_GROWTH) if rate != 0.0 else 1.0


@piece
def write_decision(s, at, verdict, group, own, whole):
    """Write one decision and add it to the sums."""
    row, delay = s.tally[OUT_ROWS], s.tally[NOW] - s.pending_i[ARRIVED, at]
    s.out_i[row, O_ROW] = s.pending_i[ROW, at]
    s.out_i[row, O_VERDICT] = verdict
    s.out_i[row, O_GROUP] = group
    s.out_i[row, O_DELAY] = delay
    s.out_i[row, O_AT] = s.tally[AT]
    for word in range(mask_words(s)):
        s.out_i[row, OUT_MASKS + word] = s.pending_i[MASKS + word, at]
    s.tally[OUT_ROWS] += 1
    unit = _SECOND if s.plan[TIMED] else 1.0
    if s.ratios[PENALTY] > 0.0 and delay > s.plan[DEADLINE]:
        growth = compounded(s.ratios[PENALTY], (delay - s.plan[DEADLINE]) / unit)
        own, whole = min(1.0, own * growth), min(1.0, whole * growth)
    s.sums[LOSS] += own
    s.sums[LOSS_ALL] += whole
    s.sums[COST] += own * compounded(s.ratios[ALPHA], delay / unit)
    s.tally[DELAYS] += delay
    s.tally[LONGEST] = max(s.tally[LONGEST], delay)
    s.tally[RELEASED if verdict == IS_RELEASED else SUPPRESSED] += 1


@piece
def count_filled(s, c, i):
    """Count the attributes that a row of cluster c shows although tuple i lacks them; nothing is filled with OWN."""
    if s.tally[INCOMPLETE] == 0 or s.plan[MISSING_MODE] != COVERED:
        return
    attributes = width(s)
    for a in range(attributes):
        value = s.pending_f[VALUES + a, i]
        s.tally[FILLED] += value != value and s.pool_i[c, FIELDS + C_SHOWN * attributes + a] != 0


@piece
def is_rare(s, t):
    """Whether t has no cluster because too few others lack the same: k people are pending, but not alike.

    During a flush, the people count that were pending when it began.
    """
    people = count_keys(s, PEOPLE) if is_divided(s) else 0
    if s.tally[ENDING]:
        people = s.tally[VARIED_AT_END]
    return people >= s.plan[K] and count_alike(s, t)[1] < s.plan[K]


@piece
def suppress(s, t):
    """Decide not to publish tuple t."""
    s.tally[RARE] += is_rare(s, t)
    write_decision(s, t, IS_SUPPRESSED, NO_GROUP, 1.0, 1.0)
    remove_pending(s, t)


@piece
def sort_members(s, members):
    """Sort the chosen members by arrival."""
    chosen = s.pending_i[MEMBER]
    for m in range(1, members):
        at = chosen[m]
        place = m
        while place > 0 and chosen[place - 1] > at:
            chosen[place] = chosen[place - 1]
            place -= 1
        chosen[place] = at


@piece
def write_group(s, c, number, reused):
    """Write a cluster's generalization; return its place."""
    group, attributes = s.tally[OUT_GROUPS], width(s)
    s.group_i[group, G_NUMBER] = number
    s.group_i[group, G_REUSED] = reused
    for column in range((C_HIGH + 1) * attributes):
        s.group_f[group, column] = s.pool_f[c, column]
    for column in range(3 * attributes):
        s.group_i[group, G_FIELDS + column] = s.pool_i[c, FIELDS + column]
    for column in range(s.group_r.shape[1]):
        for value in range(s.group_r.shape[2]):
            s.group_r[group, column, value] = s.class_f[c, CLASS_REFERENCE, column, value]
    s.tally[OUT_GROUPS] += 1
    return group


@piece
def publish_draft(s, members):
    """Publish the cluster just made, in order of arrival, and keep it for reuse."""
    c, number, uniform = draft(s), s.tally[GROUPS], is_uniform(s, members)
    group = write_group(s, c, number, 0)
    s.tally[GROUPS] += max(s.plan[LANES], 1)  # lanes number their clusters in turn, so that no number is used twice
    s.tally[FORMED] += 1
    s.tally[MERGED] += not uniform
    if not s.plan[IN_GROUPS] and (uniform or not s.plan[SKIP_MERGED]):
        keep_draft(s, number, uniform, members)
    sort_members(s, members)
    lost, own, whole = 0.0, 0.0, 0.0
    do_all_lose_the_same = s.tally[INCOMPLETE] == 0
    for m in range(members):
        at = s.pending_i[MEMBER, m]
        if m == 0 or not do_all_lose_the_same:
            own, whole = own_loss(s, c, at), whole_loss(s, c, at)
        lost += own
        count_filled(s, c, at)
        write_decision(s, at, IS_RELEASED, group, own, whole)
        remove_pending(s, at)
    learn_typical(s, c, lost / members)


@piece
def learn_typical(s, c, lost):
    """Update the running averages of what clusters lose, in all and in each attribute."""
    attributes = width(s)
    s.sums[TYPICAL] += LEARN * (lost - s.sums[TYPICAL])
    for a in range(attributes):
        is_there = s.pool_i[c, FIELDS + C_SHOWN * attributes + a] != 0
        own = s.pool_f[c, C_LOSS * attributes + a] if is_there else 1.0
        s.sums[TYPICAL_OF + a] += LEARN * (own - s.sums[TYPICAL_OF + a])


@piece
def reuse_cluster(s, c, t):
    """Publish tuple t as one more row of a published cluster."""
    group = write_group(s, c, s.pool_i[c, GROUP], 1)
    count_filled(s, c, t)
    write_decision(s, t, IS_RELEASED, group, own_loss(s, c, t), whole_loss(s, c, t))
    if s.plan[IS_DIVERSE]:
        add_values(s, c, t, 1.0)
    if is_capped(s):
        log_reuse(s, c, t)
    s.tally[REUSED] += 1
    remove_pending(s, t)
