"""Pieces of CASTLE's kernels, one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.hierarchies import Hierarchy
from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.castle.generalize import (
    CLUSTER_COUNTS,
    CROWD,
    FIRST,
    FORMING,
    FORMING_TALLY,
    HULL_BLOCKS,
    HULL_SUMS,
    TAKEN,
    TUPLES,
    UNION_CROWD,
    Forming,
)
from shoal.schema import Categorical, Numeric
from tests.kernels.tuples.test_kernels import arrivals, fill, make
from tests.reference.plain import plain_kernels

plain = plain_kernels("tuples.castle.castle", "tuples.castle.generalize", "tuples.castle.split", "tuples.diversity")
hulls, parts, castle = plain.generalize, plain.split, plain.castle
UNIT = [Numeric("x", low=0, high=1)]
TREE = {"all": {"left": ["a", "b", "c"], "right": {"far": ["d"], "near": ["e", "f"]}}}
TWO = [Numeric("x", low=0, high=1, weight=3), Categorical("c", Hierarchy.from_nested(TREE))]
NONE = math.nan


def forming(s, *, beta=4, mu=3):
    """Memory for forming clusters, with none in it."""
    s.plan[t.OPTION] = beta
    wide = s.attr_f.shape[1]
    return Forming(
        np.zeros((HULL_BLOCKS * wide + HULL_SUMS, beta + 2 + s.pending_i.shape[1])),
        np.zeros((CLUSTER_COUNTS, beta), dtype=np.int64),
        np.zeros(FORMING_TALLY, dtype=np.int64),
        np.zeros(mu + 1),
    )


def placed(rows, clusters, people=None, sensitive=(), quasi=UNIT, **settings):
    """Held tuples, each in the forming cluster named for it, and their chains."""
    s = make(quasi, sensitive=len(sensitive), **settings)
    for column in range(len(sensitive)):
        s.sens_i[t.USED, column] = 4
    f = forming(s)
    fill(s, rows, people, sensitive)
    castle.restore_clusters(s, f, np.array(clusters, dtype=np.int64))
    castle.chain_clusters(s, f)
    return s, f


def hull_of(s, f, c):
    wide = s.attr_f.shape[1]
    return [(f.hulls[a, c], f.hulls[wide + a, c]) for a in range(wide)]


def leaving(s, f):
    """Let all be in a union that leaves; return how many they are."""
    castle.begin_union(s, f, 0)
    for c in range(1, f.tally[FORMING]):
        castle.join(s, f, c)
    return castle.list_union(s, f, t.CHAIN_HEAD)


# ---- what clusters cover


def test_what_one_tuple_covers():
    s = make([Numeric("x", low=0, high=1), Numeric("y", low=0, high=1, grid=0.25), TWO[1]])
    fill(s, [(0.3, 0.3, 2.0), (NONE, NONE, NONE)])
    assert [hulls.range_of(s, a, 0) for a in range(3)] == [(0.3, 0.3), (0.25, 0.5), (2.0, 2.0)]
    assert [hulls.range_of(s, a, 1) for a in range(3)] == [(math.inf, -math.inf)] * 3


def test_what_is_lost_between_two_ends():
    s = make(TWO)
    assert hulls.loss_between(s, 0, 0.25, 0.75) == 0.5
    assert hulls.loss_between(s, 1, 0.0, 2.0) == 2 / 5
    assert hulls.loss_between(s, 1, 4.0, 4.0) == 0.0
    assert hulls.loss_between(s, 1, 2.0, 3.0) == 1.0
    assert hulls.loss_between(s, 0, math.inf, -math.inf) == 0.0
    assert hulls.all_weights(s) == 4.0


def test_columns_widen_and_are_summed_up():
    s = make(TWO)
    f = forming(s)
    fill(s, [(0.25, 0.0), (0.75, NONE), (0.5, 1.0)])
    hulls.clear_hull(s, f, 0)
    for at in (0, 1, 2):
        hulls.load_tuple(s, f, at)
        hulls.widen(s, f, 0, hulls.scratch_of(f))
    hulls.sum_up(s, f, 0)
    assert hull_of(s, f, 0) == [(0.25, 0.75), (0.0, 1.0)]
    assert f.hulls[hulls.lost_now(s), 0] == (3 * 0.5 + 2 / 5) / 4
    assert len({hulls.union_of(f), hulls.scratch_of(f), hulls.parts_of(f), *range(f.counts.shape[1])}) == 7


def test_what_a_guest_would_cost():
    rows = [(0.25, 0.0), (0.75, 1.0), (0.5, NONE), (1.0, 5.0), (NONE, 3.0)]
    s, f = placed(rows, [0, 0, 1, 2, 2], quasi=TWO)
    now, then = f.hulls[hulls.lost_now(s)], f.hulls[hulls.lost_then(s)]
    assert now[:3].tolist() == [(1.5 + 2 / 5) / 4, 0.0, 2 / 5 / 4]
    hulls.load_tuple(s, f, 1)
    hulls.lose_with(s, f, hulls.scratch_of(f), 0, 3)
    assert then[:3].tolist() == [now[0], 3 * 0.25 / 4, (3 * 0.25 + 1.0) / 4]
    hulls.load_tuple(s, f, 4)
    hulls.lose_with(s, f, hulls.scratch_of(f), 0, 3)
    assert then[:3].tolist() == [(1.5 + 1.0) / 4, 0.0, now[2]]


def test_growth_is_that_of_the_wider_range():
    """All three ways, and an attribute the scratch does not carry, add the same as looking at each column alone."""
    s, f = placed([(0.25, 0.0), (0.75, 2.0), (1.0, 4.0)], [0, 0, 1], quasi=TWO)
    lows, highs, total = f.hulls[0], f.hulls[2], np.zeros(2)
    hulls.add_numeric_growth(lows, highs, 0.5, 0.5, 2.0, 0, 2, total)
    assert total.tolist() == [1.0, 1.0]
    total[:] = 0.0
    at, leaves = s.attr_i[t.PAIRS_AT, 1], s.attr_i[t.LEAVES, 1]
    hulls.add_tree_growth(f.hulls[1], f.hulls[3], 5.0, 5.0, 2.0, 0, 2, total, s.tree_f, at, leaves)
    assert total.tolist() == [2.0, 2 / 5]
    then = f.hulls[hulls.lost_then(s)]
    for low, high, expected in ((5.0, 5.0, [1.0, 1 / 5]), (math.inf, -math.inf, [2 / 5, 0.0])):
        then[:2] = 0.0
        hulls.add_growth(s, f, 1, low, high, 0, 2)
        assert then[:2].tolist() == expected


# ---- arrivals


def home_of(s, f, x):
    fill(s, [(x,)])
    hulls.load_tuple(s, f, s.tally[t.TAIL] - 1)
    return castle.choose_cluster(s, f)


def test_the_home_of_a_guest():
    s, f = placed([(0.0,), (0.25,), (1.0,), (1.0,), (0.0,)], [0, 0, 1, 1, 2])
    assert home_of(s, f, 1.0) == 1  # it costs nothing there
    assert home_of(s, f, 0.0) == 2  # nothing in two of them: the one with fewer tuples, and within tau
    assert home_of(s, f, 0.5) == 3  # dear everywhere: a new one
    f.published[-1] = 0.5
    assert home_of(s, f, 0.5) == 0  # it grows least
    f.published[-1] = 0.0
    s.plan[t.OPTION] = 3
    assert home_of(s, f, 0.5) == 0  # no more may form


def test_settling_in():
    s = make(UNIT)
    f = forming(s)
    fill(s, [(0.25,), (0.75,), (0.25,)])
    for at in range(3):
        castle.join_nearest(s, f, at)
    assert s.pending_i[t.PART, :3].tolist() == [0, 1, 0]
    assert f.counts[TUPLES, :2].tolist() == [2, 1]
    assert castle.open_cluster(s, f) == 2
    assert hull_of(s, f, 2) == [(math.inf, -math.inf)]


# ---- who is in a cluster


def test_chains_and_crowds():
    s, f = placed([(0.0,)] * 6, [0, 1, 0, 1, 0, 1], [7, 7, 8, 9, 7, 6])
    assert f.counts[FIRST, :2].tolist() == [0, 1]
    assert [s.pending_i[t.CHAIN, at] for at in (0, 2, 4)] == [2, 4, -1]
    for c in range(2):
        castle.count_crowd(s, f, c)
    assert f.counts[CROWD, :2].tolist() == [2, 3]
    s.tally[t.STAMP] += 1
    assert [parts.is_new_person(s, at) for at in range(6)] == [True, False, True, True, False, True]


def test_a_union_is_ready_when_it_has_the_people_and_their_values():
    s, f = placed([(0.0,), (1.0,), (0.5,)], [0, 0, 1], [7, 7, 8], [[0, 0, 0]], DISTINCT=2)
    castle.begin_union(s, f, 0)
    assert (f.tally[UNION_CROWD], castle.is_ready(s, f)) == (1, False)
    castle.join(s, f, 1)
    assert (f.tally[UNION_CROWD], castle.is_ready(s, f)) == (2, False)
    s.plan[t.DISTINCT] = 1
    assert castle.is_ready(s, f)
    assert f.counts[TAKEN, :2].tolist() == [1, 1]


def test_outliers():
    s, f = placed([(0.0,)] * 6, [0, 1, 1, 2, 2, 0], [1, 2, 3, 4, 5, 1])
    assert [castle.is_outlier(s, f, c) for c in range(3)] == [True, False, False]
    s.plan[t.K] = 6
    assert castle.is_outlier(s, f, 1)


def test_merging_takes_the_nearest_until_it_is_enough():
    s, f = placed([(0.5,), (1.0,), (0.25,), (0.0,)], [0, 1, 2, 3], K=3)
    castle.begin_union(s, f, 0)
    assert castle.nearest_cluster(s, f) == 2
    assert castle.merge(s, f, 0)
    assert f.counts[TAKEN, :4].tolist() == [1, 0, 1, 1]
    s.plan[t.K] = 5
    assert not castle.merge(s, f, 0)
    assert castle.nearest_cluster(s, f) == -1


def test_those_who_stay_close_ranks():
    s, f = placed([(0.0,), (0.25,), (0.5,), (0.75,)], [0, 1, 2, 2])
    f.counts[TAKEN, :3] = 0, 1, 0
    s.pending_i[t.ALIVE, 1] = 0
    castle.remove_union(s, f)
    assert f.tally[FORMING] == 2
    assert s.pending_i[t.PART, [0, 2, 3]].tolist() == [0, 1, 1]
    assert f.counts[TUPLES, :2].tolist() == [1, 2]
    assert hull_of(s, f, 1) == [(0.5, 0.75)]


def test_leaving_home():
    s, f = placed([(0.0,), (0.25,), (1.0,), (0.5,)], [0, 1, 0, 0])
    for at in (2, 1):
        s.pending_i[t.ALIVE, at] = 0
        castle.shrink_cluster(s, f, s.pending_i[t.PART, at])
    assert f.tally[FORMING] == 1
    assert hull_of(s, f, 0) == [(0.0, 0.5)]


# ---- parts


def test_a_whole_is_one_part():
    s, f = placed([(0.0,), (1.0,), (0.5,)], [0, 1, 0])
    count = leaving(s, f)
    assert parts.keep_whole(s, f, count) == 1
    assert parts.choose_part(s, count, 0) == 3
    assert s.pending_i[t.MEMBER, :3].tolist() == [0, 1, 2]
    assert hull_of(s, f, hulls.parts_of(f)) == [(0.0, 1.0)]
    assert parts.split(s, f, count) == 1  # three people are no two crowds of two


def test_cutting_parts_and_dealing_the_rest():
    s, f = placed([(0.0,), (1.0,), (0.125,), (0.875,), (0.75,)], [0] * 5)
    count = leaving(s, f)
    assert parts.cut_parts(s, f, count) == 2
    assert [parts.choose_part(s, count, part) for part in (0, 1, -1)] == [2, 2, 1]
    assert parts.mark_rest(s, count) == -1
    parts.assign_rest(s, f, count, 2)
    assert parts.choose_part(s, count, 1) == 3
    assert s.pending_i[t.MEMBER, :3].tolist() == [1, 3, 4]
    assert hull_of(s, f, hulls.parts_of(f) + 1) == [(0.75, 1.0)]
    hulls.load_tuple(s, f, 2)
    assert parts.nearest_part(s, f, 2) == 0
    assert parts.split(s, f, count) == 2


def test_the_rest_counts_people():
    s, f = placed([(0.0,), (1.0,), (0.5,)], [0] * 3, [7, 7, 7])
    count = leaving(s, f)
    s.pending_i[t.PART_LIKE, :3] = -1
    assert parts.mark_rest(s, count) == -1
    s.plan[t.K] = 1
    assert parts.mark_rest(s, count) == 0
    assert s.pending_i[t.ELIGIBLE, :3].tolist() == [1, 1, 1]


def test_parts_that_are_not_diverse_stay_together():
    rows = [(0.0,), (1.0,), (0.125,), (0.875,)]
    s, f = placed(rows, [0] * 4, sensitive=[[0, 1, 0, 1]], DISTINCT=2, IS_DIVERSE=1)
    count = leaving(s, f)
    s.pending_i[t.MEMBER, :2] = 0, 2
    parts.cut_part(s, f, 0, 2)
    s.pending_i[t.MEMBER, :2] = 1, 3
    parts.cut_part(s, f, 1, 2)
    assert not parts.are_diverse(s, count, 2)
    assert parts.are_diverse(s, count, 0)
    assert parts.split(s, f, count) == 1  # a third helps the first two, and one is left
    assert parts.choose_part(s, count, 0) == 4


@pytest.mark.parametrize(("missing", "shown"), [(t.COVERED, [1, 0]), (t.HIDDEN, [1, 0]), (t.PAPER, [1, 1])])
def test_carriers_are_people(missing, shown):
    quasi = [Numeric("x", low=0, high=1), Numeric("y", low=0, high=1)]
    rows = [(0.0, 0.0), (1.0, 0.5), (0.5, NONE)]
    s, f = placed(rows, [0] * 3, [7, 7, 8], quasi=quasi, MISSING_MODE=missing, MIN_CARRIERS=2)
    count = leaving(s, f)
    parts.keep_whole(s, f, count)
    parts.publish_part(s, parts.choose_part(s, count, 0))
    made = s.pool_i[-1, t.FIELDS :]
    assert made[2 * t.C_CARRIERS : 2 * t.C_CARRIERS + 2].tolist() == [2, 1]
    assert made[2 * t.C_SHOWN : 2 * t.C_SHOWN + 2].tolist() == shown
    s.pending_i[t.MEMBER, 0] = 2
    parts.count_carriers(s, 1)
    assert made[2 * t.C_CARRIERS : 2 * t.C_CARRIERS + 2].tolist() == [1, 0]


# ---- what is lost by and by, and the loop


def test_tau_is_the_mean_of_the_last_losses():
    f = forming(make(UNIT), mu=3)
    castle.settle_tau(f)
    assert f.published[-1] == 0.0
    for loss in (0.9, 0.1, 0.2, 0.3):
        castle.remember_loss(f, loss)
    castle.settle_tau(f)
    assert f.published[-1] == (0.1 + 0.2 + 0.3) / 3


def test_what_is_put_out_has_left():
    s, f = placed([(0.0,), (1.0,), (0.25,), (0.5,)], [0, 1, 0, 1])
    castle.begin_union(s, f, 0)
    castle.publish_union(s, f)
    assert s.out_i[:2, t.O_ROW].tolist() == [0, 2]
    assert s.tally[t.LIVE] == 2
    assert (f.tally[FORMING], f.published[-1]) == (1, 0.25)
    assert s.pending_i[t.PART, [1, 3]].tolist() == [0, 0]


def test_one_tuple_after_another_is_decided():
    s, f = placed([(0.0,), (0.0,), (1.0,)], [0, 0, 1], REUSE=9)
    castle.decide(s, f, 0)
    assert s.out_i[: s.tally[t.OUT_ROWS], t.O_VERDICT].tolist() == [t.IS_RELEASED] * 2
    s.tally[t.ENDING] = 1
    s.tally[t.NOW] = 7
    assert castle.run_castle(s, f, arrivals([(0.0,)]), 0, 0) == 0
    assert s.out_i[2, t.O_VERDICT] == t.IS_SUPPRESSED
    assert s.tally[t.LIVE] == 0


def test_the_whole_loop():
    s = make(UNIT, DEADLINE=2)
    f = forming(s)
    assert castle.run_castle(s, f, arrivals([(0.0,), (1.0,), (0.0,), (1.0,)]), 0, 4) == 4
    assert s.out_i[: s.tally[t.OUT_ROWS], t.O_ROW].tolist() == [0, 2, 1, 3]
    assert s.tally[t.LIVE] == f.tally[FORMING] == 0
