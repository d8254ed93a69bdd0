"""CASTLE: tuples gather in forming clusters; a due tuple's cluster is published, merged or split to suit k."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.tuples.castle.generalize import (
    CROWD,
    FIRST,
    FORMING,
    LOSSES,
    NEXT_LOSS,
    RENAMED,
    TAKEN,
    TUPLES,
    UNION_CROWD,
    clear_hull,
    load_tuple,
    lose_with,
    lost_now,
    lost_then,
    parts_of,
    scratch_of,
    sum_up,
    union_of,
    widen,
)
from shoal.kernels.tuples.castle.split import choose_part, publish_part, split
from shoal.kernels.tuples.diversity import ENOUGH, add_values, count_values, first_failure
from shoal.kernels.tuples.emit import reuse_cluster, suppress, write_decision
from shoal.kernels.tuples.generalize import draft, is_new_person, width
from shoal.kernels.tuples.layout import (
    ALIVE,
    CHAIN,
    COST_OF,
    HEAD,
    IS_RELEASED,
    MEMBER,
    NEXT,
    OPTION,
    SPARE,
    STAMP,
    TAIL,
    K,
)
from shoal.kernels.tuples.layout import CHAIN_HEAD as CHOSEN
from shoal.kernels.tuples.layout import PART as CLUSTER
from shoal.kernels.tuples.layout import PART_SIZE as SHOWN_AS  # CASTLE has no partitions and uses their rows
from shoal.kernels.tuples.patterns import count_alike, is_divided
from shoal.kernels.tuples.queue import close_wide_gaps, remove_pending
from shoal.kernels.tuples.reuse import best_cover, drop_old_clusters, is_capped, is_fair
from shoal.kernels.tuples.run import HAS_ARRIVED, IS_OVER, begin_run, next_event

_END = -1


@piece
def are_like(s, f, c, other):
    """Whether two columns carry the same attributes."""
    attributes = width(s)
    for a in range(attributes):
        is_carried = f.hulls[a, c] <= f.hulls[attributes + a, c]
        if is_carried != (f.hulls[a, other] <= f.hulls[attributes + a, other]):
            return False
    return True


@piece
def exclude_unlike(s, f, other):
    """With OWN, make it infinitely costly to widen clusters that carry other attributes than a column."""
    if not is_divided(s):
        return
    for c in range(f.tally[FORMING]):
        if not are_like(s, f, c, other):
            f.hulls[lost_then(s), c] = np.inf


@piece
def choose_cluster(s, f):
    """The forming cluster that the tuple in scratch should join, or the number of a new one."""
    forming, tau = f.tally[FORMING], f.published[-1]
    lose_with(s, f, scratch_of(f), 0, forming)
    exclude_unlike(s, f, scratch_of(f))
    now, then, sizes = f.hulls[lost_now(s)], f.hulls[lost_then(s)], f.counts[TUPLES]
    least = np.inf
    for c in range(forming):
        least = min(least, then[c] - now[c])
    if least == np.inf:
        return forming
    best, is_best_cheap = -1, False
    for c in range(forming):
        if then[c] - now[c] != least:
            continue
        is_cheap = then[c] <= tau
        if best < 0 or (is_cheap and not is_best_cheap) or (is_cheap == is_best_cheap and sizes[c] < sizes[best]):
            best, is_best_cheap = c, is_cheap
    return best if is_best_cheap or forming >= s.plan[OPTION] else forming


@piece
def open_cluster(s, f):
    """Start one more forming cluster; return its number."""
    c = f.tally[FORMING]
    clear_hull(s, f, c)
    f.counts[TUPLES, c] = 0
    f.tally[FORMING] += 1
    return c


@piece
def join_nearest(s, f, at):
    """Add a new tuple to a forming cluster."""
    load_tuple(s, f, at)
    own = choose_cluster(s, f)
    if own == f.tally[FORMING]:
        open_cluster(s, f)
    widen(s, f, own, scratch_of(f))
    sum_up(s, f, own)
    f.counts[TUPLES, own] += 1
    s.pending_i[CLUSTER, at] = own


# ---- who is in a cluster


@piece
def chain_clusters(s, f):
    """Link the tuples of each forming cluster, oldest first."""
    for c in range(f.tally[FORMING]):
        f.counts[FIRST, c] = _END
    chain, cluster, first = s.pending_i[CHAIN], s.pending_i[CLUSTER], f.counts[FIRST]
    for i in range(s.tally[TAIL] - 1, s.tally[HEAD] - 1, -1):
        if s.pending_i[ALIVE, i]:
            chain[i] = first[cluster[i]]
            first[cluster[i]] = i


@piece
def count_crowd(s, f, c):
    """Count the people of a forming cluster."""
    s.tally[STAMP] += 1
    found, i = 0, f.counts[FIRST, c]
    while i != _END:
        found += is_new_person(s, i)
        i = s.pending_i[CHAIN, i]
    f.counts[CROWD, c] = found


@piece
def join(s, f, c):
    """Add a forming cluster to the union."""
    union, i = union_of(f), f.counts[FIRST, c]
    f.counts[TAKEN, c] = 1
    widen(s, f, union, c)
    sum_up(s, f, union)
    while i != _END:
        f.tally[UNION_CROWD] += is_new_person(s, i)
        add_values(s, draft(s), i, 1.0)
        i = s.pending_i[CHAIN, i]


@piece
def begin_union(s, f, own):
    """Start a union with one cluster."""
    for c in range(f.tally[FORMING]):
        f.counts[TAKEN, c] = 0
    clear_hull(s, f, union_of(f))
    count_values(s, 0)
    s.tally[STAMP] += 1
    f.tally[UNION_CROWD] = 0
    join(s, f, own)


@piece
def is_ready(s, f):
    """Whether the union has enough people, is diverse enough, and no person's share exceeds the cap."""
    if f.tally[UNION_CROWD] < s.plan[K] or first_failure(s, draft(s))[0] != ENOUGH:
        return False
    return not is_capped(s) or is_fair(s, list_union(s, f, MEMBER))


@piece
def list_union(s, f, row):
    """List the tuples of the union in a row of pending_i, in order of arrival; return their number."""
    count = 0
    for i in range(s.tally[HEAD], s.tally[TAIL]):
        if s.pending_i[ALIVE, i] and f.counts[TAKEN, s.pending_i[CLUSTER, i]]:
            s.pending_i[row, count] = i
            count += 1
    return count


# ---- a due tuple


@piece
def is_outlier(s, f, own):
    """Whether fewer than k people are pending, or most forming clusters have more people than `own`.

    Only those count that may be published with it.
    """
    if count_alike(s, f.counts[FIRST, own])[1] < s.plan[K]:
        return True
    forming, bigger, is_any_like = 0, 0, not is_divided(s)
    count_crowd(s, f, own)
    for c in range(f.tally[FORMING]):
        if is_any_like or are_like(s, f, c, own):
            count_crowd(s, f, c)
            forming += 1
            bigger += f.counts[CROWD, c] > f.counts[CROWD, own]
    return 2 * bigger > forming


@piece
def nearest_cluster(s, f):
    """The forming cluster that enlarges the union least, of equals the oldest; -1 if none is left."""
    union, then, best, least = union_of(f), f.hulls[lost_then(s)], -1, np.inf
    lose_with(s, f, union, 0, f.tally[FORMING])
    exclude_unlike(s, f, union)
    for c in range(f.tally[FORMING]):
        growth = then[c] - f.hulls[lost_now(s), union]
        if not f.counts[TAKEN, c] and growth < least:
            best, least = c, growth
    return best


@piece
def merge(s, f, own):
    """Add the nearest clusters to `own` until the union is ready; return whether it is."""
    begin_union(s, f, own)
    while not is_ready(s, f):
        c = nearest_cluster(s, f)
        if c < 0:
            return False
        join(s, f, c)
    return True


@piece
def remove_union(s, f):
    """Remove the clusters of the union; the others keep their order."""
    kept = 0
    for c in range(f.tally[FORMING]):
        f.counts[RENAMED, c] = kept
        if f.counts[TAKEN, c]:
            continue
        if kept != c:
            f.counts[TUPLES, kept] = f.counts[TUPLES, c]
            for row in range(f.hulls.shape[0]):
                f.hulls[row, kept] = f.hulls[row, c]
        kept += 1
    f.tally[FORMING] = kept
    for i in range(s.tally[HEAD], s.tally[TAIL]):
        if s.pending_i[ALIVE, i]:
            s.pending_i[CLUSTER, i] = f.counts[RENAMED, s.pending_i[CLUSTER, i]]


@piece
def shrink_cluster(s, f, own):
    """Update a cluster of which one tuple was decided alone."""
    f.counts[TUPLES, own] -= 1
    if f.counts[TUPLES, own] == 0:
        for c in range(f.tally[FORMING]):
            f.counts[TAKEN, c] = c == own
        remove_union(s, f)
        return
    clear_hull(s, f, own)
    i = f.counts[FIRST, own]
    while i != _END:
        if s.pending_i[ALIVE, i]:
            load_tuple(s, f, i)
            widen(s, f, own, scratch_of(f))
        i = s.pending_i[CHAIN, i]
    sum_up(s, f, own)


# ---- output


@piece
def remember_loss(f, loss):
    """Add the loss of a published cluster to the last `mu` losses."""
    room = len(f.published) - 1
    f.published[f.tally[NEXT_LOSS]] = loss
    f.tally[NEXT_LOSS] = (f.tally[NEXT_LOSS] + 1) % room
    f.tally[LOSSES] = min(f.tally[LOSSES] + 1, room)


@piece
def settle_tau(f):
    """Set tau, what a forming cluster may lose: the average loss of the last published clusters."""
    room, count, total = len(f.published) - 1, f.tally[LOSSES], 0.0
    for place in range(count):
        total += f.published[(f.tally[NEXT_LOSS] - count + place) % room]
    f.published[-1] = total / count if count > 0 else 0.0


@piece
def publish_union(s, f):
    """Split the union, publish its parts, and decide its rows in order of arrival."""
    count = list_union(s, f, CHOSEN)
    parts = split(s, f, count)
    for part in range(parts):
        remember_loss(f, f.hulls[lost_now(s), parts_of(f) + part])
        publish_part(s, choose_part(s, count, part))
    settle_tau(f)
    for m in range(count):
        i = s.pending_i[CHOSEN, m]
        write_decision(s, i, IS_RELEASED, s.pending_i[SHOWN_AS, i], s.pending_f[COST_OF, i], s.pending_f[SPARE, i])
        remove_pending(s, i)
    remove_union(s, f)


# ---- the loop


@piece
def decide(s, f, t):
    """Decide due tuple t: publish its cluster, reuse a published one, merge clusters into its own, or suppress it."""
    own = s.pending_i[CLUSTER, t]
    drop_old_clusters(s)
    chain_clusters(s, f)
    begin_union(s, f, own)
    if is_ready(s, f):
        publish_union(s, f)
        return
    best, _ = best_cover(s, t)
    if best >= 0:
        reuse_cluster(s, best, t)
        shrink_cluster(s, f, own)
    elif not is_outlier(s, f, own) and merge(s, f, own):
        publish_union(s, f)
    else:
        suppress(s, t)
        shrink_cluster(s, f, own)


@kernel
def run_castle(s, f, arrivals, start, stop):
    """Accept arrivals from `start` to `stop`; return how far it came, which is `stop` unless room is needed."""
    begin_run(s, start)
    while True:
        event, t = next_event(s, arrivals, stop)
        if event == IS_OVER:
            return s.tally[NEXT]
        if event == HAS_ARRIVED:
            join_nearest(s, f, t)
        else:
            decide(s, f, t)
            close_wide_gaps(s)


@kernel
def restore_clusters(s, f, clusters):
    """Restore the forming clusters of pending tuples that lie without gaps."""
    for at in range(len(clusters)):
        while f.tally[FORMING] <= clusters[at]:
            open_cluster(s, f)
        s.pending_i[CLUSTER, at] = clusters[at]
        f.counts[TUPLES, clusters[at]] += 1
        load_tuple(s, f, at)
        widen(s, f, clusters[at], scratch_of(f))
    for c in range(f.tally[FORMING]):
        sum_up(s, f, c)
    settle_tau(f)
