"""CASTLE: tuples gather in forming clusters; a due tuple's cluster leaves, merged or split as k people need it."""

from __future__ import annotations

import numpy as np

from shoal.kernels.compiling import kernel, piece
from shoal.kernels.tuples.castle_generalize import (
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
    foresee,
    guest_of,
    invite,
    lost_now,
    lost_then,
    parts_of,
    sum_up,
    union_of,
    widen,
)
from shoal.kernels.tuples.castle_split import choose_part, is_new_face, publish_part, split
from shoal.kernels.tuples.diversity import ENOUGH, add_values, count_values, first_failure
from shoal.kernels.tuples.emit import reuse_cluster, suppress, write_decision
from shoal.kernels.tuples.generalize import draft
from shoal.kernels.tuples.layout import (
    ALIVE,
    CHAIN,
    COST_OF,
    HEAD,
    IS_RELEASED,
    MEMBER,
    NEXT,
    OPTION,
    PEOPLE,
    SPARE,
    STAMP,
    TAIL,
    K,
)
from shoal.kernels.tuples.layout import CHAIN_HEAD as LEAVING
from shoal.kernels.tuples.layout import PART as HOME
from shoal.kernels.tuples.layout import PART_SIZE as SHOWN_AS  # CASTLE has no partitions, and other use for their rows
from shoal.kernels.tuples.queue import close_wide_gaps, count_keys, remove_pending
from shoal.kernels.tuples.reuse import best_cover, drop_old_clusters, is_capped, is_fair
from shoal.kernels.tuples.run import HAS_ARRIVED, IS_OVER, begin_run, next_event

_END = -1


@piece
def find_home(s, f):
    """The forming cluster the guest belongs to, or the number of a new one."""
    forming, tau = f.tally[FORMING], f.published[-1]
    foresee(s, f, guest_of(f), 0, forming)
    now, then, sizes = f.hulls[lost_now(s)], f.hulls[lost_then(s)], f.counts[TUPLES]
    least = np.inf
    for c in range(forming):
        least = min(least, then[c] - now[c])
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
    """Begin one more forming cluster; return its number."""
    c = f.tally[FORMING]
    clear_hull(s, f, c)
    f.counts[TUPLES, c] = 0
    f.tally[FORMING] += 1
    return c


@piece
def settle_in(s, f, at):
    """Let a tuple that has just come join a forming cluster."""
    invite(s, f, at)
    home = find_home(s, f)
    if home == f.tally[FORMING]:
        open_cluster(s, f)
    widen(s, f, home, guest_of(f))
    sum_up(s, f, home)
    f.counts[TUPLES, home] += 1
    s.pending_i[HOME, at] = home


# ---- who is in a cluster


@piece
def chain_clusters(s, f):
    """String the tuples of each forming cluster together, oldest first."""
    for c in range(f.tally[FORMING]):
        f.counts[FIRST, c] = _END
    chain, home, first = s.pending_i[CHAIN], s.pending_i[HOME], f.counts[FIRST]
    for i in range(s.tally[TAIL] - 1, s.tally[HEAD] - 1, -1):
        if s.pending_i[ALIVE, i]:
            chain[i] = first[home[i]]
            first[home[i]] = i


@piece
def count_crowd(s, f, c):
    """Count the different people of a forming cluster."""
    s.tally[STAMP] += 1
    found, i = 0, f.counts[FIRST, c]
    while i != _END:
        found += is_new_face(s, i)
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
        f.tally[UNION_CROWD] += is_new_face(s, i)
        add_values(s, draft(s), i, 1.0)
        i = s.pending_i[CHAIN, i]


@piece
def begin_union(s, f, home):
    """Begin a union with one cluster."""
    for c in range(f.tally[FORMING]):
        f.counts[TAKEN, c] = 0
    clear_hull(s, f, union_of(f))
    count_values(s, 0)
    s.tally[STAMP] += 1
    f.tally[UNION_CROWD] = 0
    join(s, f, home)


@piece
def is_ready(s, f):
    """Whether the union has enough people, is diverse enough, and nobody has more of it than the cap."""
    if f.tally[UNION_CROWD] < s.plan[K] or first_failure(s, draft(s))[0] != ENOUGH:
        return False
    return not is_capped(s) or is_fair(s, choose_union(s, f))


@piece
def choose_union(s, f):
    """Let the tuples of the union be the members; return how many they are."""
    members = 0
    for i in range(s.tally[HEAD], s.tally[TAIL]):
        if s.pending_i[ALIVE, i] and f.counts[TAKEN, s.pending_i[HOME, i]]:
            s.pending_i[MEMBER, members] = i
            members += 1
    return members


# ---- a due tuple


@piece
def is_outlier(s, f, home):
    """Whether there are too few people in all, or more than half of the forming clusters have more than this one."""
    if count_keys(s, PEOPLE) < s.plan[K]:
        return True
    forming, bigger = f.tally[FORMING], 0
    for c in range(forming):
        count_crowd(s, f, c)
    for c in range(forming):
        bigger += f.counts[CROWD, c] > f.counts[CROWD, home]
    return 2 * bigger > forming


@piece
def nearest_cluster(s, f):
    """The forming cluster that enlarges the union least, of equals the oldest; -1 if none is left."""
    union, then, best, least = union_of(f), f.hulls[lost_then(s)], -1, np.inf
    foresee(s, f, union, 0, f.tally[FORMING])
    for c in range(f.tally[FORMING]):
        growth = then[c] - f.hulls[lost_now(s), union]
        if not f.counts[TAKEN, c] and growth < least:
            best, least = c, growth
    return best


@piece
def merge(s, f, home):
    """Join clusters to one until the union is ready; return whether it ever is."""
    begin_union(s, f, home)
    while not is_ready(s, f):
        c = nearest_cluster(s, f)
        if c < 0:
            return False
        join(s, f, c)
    return True


@piece
def close_ranks(s, f):
    """Forget the clusters that were taken; the others keep their order."""
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
            s.pending_i[HOME, i] = f.counts[RENAMED, s.pending_i[HOME, i]]


@piece
def leave_home(s, f, home):
    """One tuple of a cluster has left alone; the others stay."""
    f.counts[TUPLES, home] -= 1
    if f.counts[TUPLES, home] == 0:
        for c in range(f.tally[FORMING]):
            f.counts[TAKEN, c] = c == home
        close_ranks(s, f)
        return
    clear_hull(s, f, home)
    i = f.counts[FIRST, home]
    while i != _END:
        if s.pending_i[ALIVE, i]:
            invite(s, f, i)
            widen(s, f, home, guest_of(f))
        i = s.pending_i[CHAIN, i]
    sum_up(s, f, home)


# ---- output


@piece
def gather(s, f):
    """List the tuples of the union in order of arrival; return how many there are."""
    count = 0
    for i in range(s.tally[HEAD], s.tally[TAIL]):
        if s.pending_i[ALIVE, i] and f.counts[TAKEN, s.pending_i[HOME, i]]:
            s.pending_i[LEAVING, count] = i
            count += 1
    return count


@piece
def remember_loss(f, loss):
    """Remember what a published cluster lost."""
    room = len(f.published) - 1
    f.published[f.tally[NEXT_LOSS]] = loss
    f.tally[NEXT_LOSS] = (f.tally[NEXT_LOSS] + 1) % room
    f.tally[LOSSES] = min(f.tally[LOSSES] + 1, room)


@piece
def settle_tau(f):
    """Work out what the last published clusters lost on average: what a forming one may lose."""
    room, count, total = len(f.published) - 1, f.tally[LOSSES], 0.0
    for place in range(count):
        total += f.published[(f.tally[NEXT_LOSS] - count + place) % room]
    f.published[-1] = total / count if count > 0 else 0.0


@piece
def put_out(s, f):
    """Let the union leave: split, published part by part, its rows in order of arrival."""
    count = gather(s, f)
    parts = split(s, f, count)
    for part in range(parts):
        remember_loss(f, f.hulls[lost_now(s), parts_of(f) + part])
        publish_part(s, choose_part(s, count, part))
    settle_tau(f)
    for m in range(count):
        i = s.pending_i[LEAVING, m]
        write_decision(s, i, IS_RELEASED, s.pending_i[SHOWN_AS, i], s.pending_f[COST_OF, i], s.pending_f[SPARE, i])
        remove_pending(s, i)
    close_ranks(s, f)


# ---- the loop


@piece
def decide(s, f, t):
    """Let due tuple t leave: with its cluster, as one of an old one, with clusters merged into its own, or alone."""
    home = s.pending_i[HOME, t]
    drop_old_clusters(s)
    chain_clusters(s, f)
    begin_union(s, f, home)
    if is_ready(s, f):
        put_out(s, f)
        return
    best, _ = best_cover(s, t)
    if best >= 0:
        reuse_cluster(s, best, t)
        leave_home(s, f, home)
    elif not is_outlier(s, f, home) and merge(s, f, home):
        put_out(s, f)
    else:
        suppress(s, t)
        leave_home(s, f, home)


@kernel
def run_castle(s, f, arrivals, start, stop):
    """Take in arrivals from `start` to `stop`; return how far it came, which is `stop` unless room is needed."""
    begin_run(s, start)
    while True:
        event, t = next_event(s, arrivals, stop)
        if event == IS_OVER:
            return s.tally[NEXT]
        if event == HAS_ARRIVED:
            settle_in(s, f, t)
        else:
            decide(s, f, t)
            close_wide_gaps(s)


@kernel
def take_homes_back(s, f, homes):
    """Let held tuples, all of them without gaps, be in the forming clusters they were in."""
    for at in range(len(homes)):
        while f.tally[FORMING] <= homes[at]:
            open_cluster(s, f)
        s.pending_i[HOME, at] = homes[at]
        f.counts[TUPLES, homes[at]] += 1
        invite(s, f, at)
        widen(s, f, homes[at], guest_of(f))
    for c in range(f.tally[FORMING]):
        sum_up(s, f, c)
    settle_tau(f)
