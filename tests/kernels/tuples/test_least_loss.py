"""The steps by which LeastLoss grows a cluster, one by one and as plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shoal.hierarchies import Hierarchy
from shoal.kernels.tuples import layout as t
from shoal.schema import Categorical, Numeric
from tests.kernels.tuples.test_kernels import fill, make
from tests.reference.plain import plain_kernels

plain = plain_kernels("tuples.least_loss")
least = plain.least_loss
NAN = math.nan
LINE = [Numeric("x", low=0, high=1)]
TREE = {"top": {"left": ["a", "b"], "right": ["c", "d"]}}
BOTH = [Numeric("x", low=0, high=1), Categorical("y", Hierarchy.from_nested(TREE))]


def held(rows, people=None, quasi=LINE, **plan):
    """A stream that holds tuples, whose values are scaled or ranks already."""
    s = make(quasi, METHOD=t.LEAST_LOSS, NEAR=2, **plan)
    s.ratios[[t.PRICE, t.AGE, t.FLOOR]] = 0.0
    fill(s, rows, people or list(range(100, 100 + len(rows))))
    for row in range(least.nears(s), least.nears(s) + 2):
        s.pending_f[row] = 1.0
    return s


def packed(rows, people=None, quasi=LINE, **plan):
    s = held(rows, people, quasi, **plan)
    count = least.pack_candidates(s, 0)
    least.price_candidates(s, count)
    return s, count


def test_rows_follow_one_another():
    s = held([(0.1,)])
    assert least.nears(s) == t.VALUES + 2
    assert least.packed(s) == least.nears(s) + 2
    assert least.reaches(s) == least.packed(s) + 1
    assert least.widenings(s) == least.reaches(s) + 1


def test_a_new_tuple_meets_the_latest():
    s = held([(0.1,)] * 6)
    assert least.first_met(s, 5) == 0
    s.plan[t.CANDIDATES] = 8  # then it meets 32 at most
    assert least.first_met(s, 5) == 0
    s.pending_i[t.ALIVE, 0] = 0
    s.tally[t.HEAD] = 1
    assert least.first_met(s, 5) == 1


@pytest.mark.parametrize(("plan", "met"), [({"CANDIDATES": 160}, 40), ({"EXCHANGES": 1}, 128), ({}, 256)])
def test_how_many_it_meets_and_gaps_do_not_count(plan, met):
    s = held([(0.1,)], **plan)
    s = s._replace(pending_i=np.ones((len(s.pending_i), 400), dtype=np.int64))
    assert least.first_met(s, 399) == 399 - met
    s.pending_i[t.ALIVE, 380:383] = 0
    assert least.first_met(s, 399) == 399 - met - 3


def test_the_least_distances_are_kept_in_order():
    s = held([(0.0,)])
    for distance in (0.5, 0.7, 0.2, 0.9):
        least.note_met(s.pending_f[least.nears(s) : least.nears(s) + 2], 0, distance)
    assert s.pending_f[least.nears(s) : least.nears(s) + 2, 0].tolist() == [0.2, 0.5]


def test_meeting_tells_both_and_not_of_oneself():
    s = held([(0.0,), (0.3,), (0.4,)], people=[1, 2, 1])
    least.meet_others(s, 2)
    near = s.pending_f[least.nears(s) : least.nears(s) + 2]
    assert near[:, 1].tolist() == pytest.approx([0.1, 1.0])
    assert near[:, 2].tolist() == pytest.approx([0.1, 1.0])
    assert near[:, 0].tolist() == [1.0, 1.0]


def test_candidates_stand_behind_the_one_that_leaves():
    s, count = packed([(0.5,), (0.9,), (0.6,)])
    assert count == 3
    assert s.pending_i[t.CHAIN, :3].tolist() == [0, 1, 2]
    s = held([(0.5,), (0.9,), (0.6,), (0.55,)], CANDIDATES=2)
    assert least.list_candidates(s, 0) == 3
    assert least.pack_candidates(s, 0) == 3
    assert s.pending_i[t.CHAIN, :3].tolist() == [0, 2, 3]
    assert s.pending_f[least.packed(s), :3].tolist() == [0.5, 0.6, 0.55]


def test_prices_are_of_distance_and_age():
    s = held([(0.5,), (0.9,)])
    s.ratios[[t.PRICE, t.AGE]] = 2.0, 0.5
    s.plan[t.DEADLINE], s.tally[t.NOW], s.sums[t.TYPICAL] = 10, 5, 0.4
    s.pending_i[t.ARRIVED, :2] = 0, 5
    s.pending_f[least.nears(s), 0] = 0.2
    count = least.pack_candidates(s, 0)
    assert least.price_candidates(s, count) == 1.0
    assert s.pending_f[t.COST_OF, :2].tolist() == pytest.approx([2 * (0.6 + 0.5 * 0.4 * 0.5), 2.0])


def test_what_a_range_loses():
    s = held([(0.5, 0)], quasi=BOTH)
    assert least.range_loss(s, 0, 0.25, 0.75) == 0.5
    assert least.range_loss(s, 1, 0.0, 1.0) == pytest.approx(1 / 3)
    assert least.range_loss(s, 1, 1.0, 2.0) == 1.0


def test_a_cluster_widens_and_gives_up():
    s, count = packed([(0.5, NAN), (0.9, 2), (0.6, NAN)], quasi=BOTH, MIN_CARRIERS=2)
    wide, draft = 2, s.pool_i.shape[0] - 1
    least.start_cluster(s)
    least.join_cluster(s, 0, 2, 2)
    assert s.pool_i[draft, t.FIELDS + t.C_SHOWN * wide + 1] == 0
    least.join_cluster(s, 2, 2, 1)
    assert s.pool_f[draft, [t.C_LOW * wide, t.C_HIGH * wide]].tolist() == [0.5, 0.6]
    assert s.pool_i[draft, t.FIELDS + t.C_SHOWN * wide + 1] == 1  # two carriers are needed and one is left
    least.start_scores(s, count)
    least.widen(s, 0, count, 0.0, 0.0)
    assert s.pending_f[least.widenings(s), :3].tolist() == pytest.approx([0.0, 0.3, 0.0])
    least.widen(s, 1, count, 2.0, 0.0)  # is lost to the one that carries it: a half of all it has
    assert s.pending_f[least.widenings(s) + 1, :3].tolist() == [0.0, 1.0, 0.0]


def test_a_label_reaches_as_far_as_all_below_it():
    s, _ = packed([(0.5, 0), (0.9, 1), (0.6, 3)], quasi=BOTH)
    draft = s.pool_i.shape[0] - 1
    least.start_cluster(s)
    least.stretch(s, 1, 0.0, 1.0)
    columns = [t.C_LOW * 2 + 1, t.C_HIGH * 2 + 1, t.C_LOSS * 2 + 1]
    assert s.pool_f[draft, columns].tolist() == pytest.approx([0, 1, 1 / 3])
    least.stretch(s, 1, 1.0, 2.0)
    assert s.pool_f[draft, columns].tolist() == [0, 3, 1]


@pytest.mark.parametrize("leaves", [4, 600])
def test_how_far_candidates_reach(leaves):
    tree = TREE if leaves == 4 else {"top": {"left": ["a", "b"], "right": [str(leaf) for leaf in range(598)]}}
    quasi = [Numeric("x", low=0, high=1), Categorical("y", Hierarchy.from_nested(tree))]
    s, count = packed([(0.5, 0), (0.9, 1), (NAN, NAN), (0.1, 3)], quasi=quasi)
    least.reach_labels(s, 1, 0, count)
    assert s.pending_f[least.reaches(s) + 1, :4].tolist() == pytest.approx([0, 1 / (leaves - 1), NAN, 1], nan_ok=True)
    least.reach_numbers(s.pending_f[least.packed(s)], 0.4, 0.5, count, s.pending_f[least.reaches(s)])
    assert s.pending_f[least.reaches(s), :4].tolist() == pytest.approx([0.1, 0.5, NAN, 0.4], nan_ok=True)


def test_a_label_reaches_from_another_leaf_where_the_one_that_leaves_has_none():
    s, count = packed([(0.5, NAN), (0.5, 0), (0.5, 1), (0.5, 3)], quasi=BOTH)
    least.start_cluster(s)
    least.start_scores(s, count)
    least.join_cluster(s, 0, 1, 3)
    least.join_cluster(s, 1, 1, 2)
    least.widen(s, 1, count, 0.0, 0.0)
    assert s.pending_f[t.SPARE, :4].tolist() == pytest.approx([0.0, 0.0, 1 / 3, 1.0])


def test_what_is_added_takes_the_place_of_what_was():
    added, scores, shares = np.array([0.5, 0.5, 0.5]), np.ones(3), np.ones(3)
    least.charge(np.array([0.1, 0.8, NAN]), 0.2, 0.4, 2.0, 0.5, shares, 3, added, scores)
    assert added.tolist() == pytest.approx([2 * 0.5 * 0.2, 2 * (0.4 + 0.3 * 0.2 + 0.5 * 0.8), 0.0])
    assert scores.tolist() == pytest.approx((added + 0.5).tolist())
    least.charge_all(np.array([0.1, 0.8, NAN]), 2.0, 0.5, shares, 3, added, scores)
    assert added.tolist() == [1.0, 1.0, 0.0]
    assert scores.tolist() == pytest.approx([1.5, 1.5, 0.5])


def test_up_to_the_usual_widening_costs_a_part():
    s, count = packed([(0.5,), (0.9,), (0.6,)])
    s.sums[t.TYPICAL_OF] = 0.2
    least.start_cluster(s)
    least.start_scores(s, count)
    least.join_cluster(s, 0, 1, 2)
    least.widen(s, 0, count, 0.0, 1.0)
    assert s.pending_f[least.widenings(s), :3].tolist() == pytest.approx([0.0, 0.2 + 0.3 * 0.2, 0.3 * 0.1])


def test_scores_and_the_least_of_them():
    s, count = packed([(0.5,), (0.9,), (0.6,), (0.6,)])
    least.start_cluster(s)
    least.start_scores(s, count)
    least.join_cluster(s, 0, 1, 2)
    least.retire(s, 0, count)
    least.widen(s, 0, count, 0.0, 0.0)
    assert least.penalize(s, count, 1, 2) == t.SPARE
    assert least.least_score(s.pending_f[t.SPARE], count) == 2
    least.retire(s, 2, count)
    assert least.least_score(s.pending_f[t.SPARE], count) == 3


@pytest.mark.parametrize("place", [0, 3, 64, 150, 159])
def test_the_least_is_found_wherever_it_is(place):
    scores = np.full(160, 2.0)
    scores[[place, 159]] = 1.0
    assert least.least_score(scores, 160) == place
    assert least.least_score(np.full(9, np.inf), 9) == -1


def test_lacking_carriers_score_worse():
    s, count = packed([(0.5, 0), (0.5, NAN), (0.5, 0)], quasi=BOTH, MIN_CARRIERS=2)
    least.start_cluster(s)
    least.start_scores(s, count)
    least.join_cluster(s, 0, 2, 1)
    for a in range(2):
        least.widen(s, a, count, 0.0, 0.0)
    assert least.penalize(s, count, 2, 1) == t.HEAP_KEY
    assert s.pending_f[t.HEAP_KEY, 1] > s.pending_f[t.HEAP_KEY, 2]
    totals = np.zeros(2)
    least.add_missing(np.array([0.5, NAN]), 0.25, 2, totals)
    assert totals.tolist() == [0.0, 0.25]


def test_a_person_retires_whole():
    s, count = packed([(0.5,), (0.6,), (0.7,)], people=[1, 2, 2])
    least.start_scores(s, count)
    least.retire(s, 1, count)
    assert np.isinf(s.pending_f[t.SPARE, :3]).tolist() == [False, True, True]


def test_growing_and_what_it_is_worth():
    s, count = packed([(0.5,), (0.9,), (0.6,), (0.1,)])
    s.pending_i[t.MEMBER, 0] = 0
    assert least.grow(s, t.MEMBER, 1, count, 3, 0.0, 0.0) == 3
    assert s.pending_i[t.MEMBER, :3].tolist() == [0, 2, 1]
    assert least.worth(s, t.MEMBER, 3) == pytest.approx(0.4)
    assert least.grow(s, t.MEMBER, 1, count, 9, 0.0, 0.0) == 4


def test_cuts_of_numbers():
    s, _ = packed([(0.5,), (0.9,), (0.6,), (0.1,), (0.45,)])
    s.pending_i[t.MEMBER, :5] = range(5)
    count = least.sort_values(s, 0, 5)
    assert s.pending_f[t.HEAP_KEY, :count].tolist() == [0.1, 0.45, 0.5, 0.6, 0.9]
    assert least.cuts_of_numbers(s, 0, 0, count, 5) == 2
    assert s.pending_f[t.DISTANCE, :2].tolist() == pytest.approx([0.35, 0.3])
    assert s.pending_f[[t.PART_KEY, t.LATER], 0].tolist() == [0.45, 0.9]
    assert s.pending_f[[t.PART_KEY, t.LATER], 1].tolist() == [0.1, 0.6]
    assert least.keep_inside(s, 0, 5) == 4


def test_cuts_of_labels():
    s, _ = packed([(0.5, 0), (0.5, 1), (0.5, 2)], quasi=BOTH)
    s.pending_i[t.MEMBER, :3] = range(3)
    count = least.sort_values(s, 1, 3)
    assert least.cuts_of_labels(s, 1, 0, count, 3) == 2
    assert s.pending_f[t.PART_KEY, :2].tolist() == [0.0, 0.0]
    assert s.pending_f[t.LATER, :2].tolist() == [0.0, 1.0]
    assert s.pending_f[t.DISTANCE, :2].tolist() == pytest.approx([0.5, 2 / 3])
    assert least.span_above(s, 1, 0, 0) == (0, 1)
    assert least.span_above(s, 1, 0, 1) == (0, 3)


def test_the_best_cut_comes_first_and_once():
    s, _ = packed([(0.5,), (0.9,)])
    cuts = least.note_cut(s, 0, 0, 0.0, 0.5, 0.2)
    cuts = least.note_cut(s, cuts, 0, 0.0, 0.4, 0.7)
    assert [least.best_cut(s, cuts) for _ in range(3)] == [1, 0, -1]
    s.pending_i[t.MEMBER, :2] = range(2)
    assert least.find_cuts(s, 2) == 1


def test_exchanging_keeps_what_is_better():
    """The one at 0.9 was taken; two at 0.5 are there instead."""
    s, count = packed([(0.5,), (0.9,), (0.5,), (0.51,)], EXCHANGES=3)
    s.pending_i[t.MEMBER, :3] = 0, 1, 2
    least.exchange(s, 3, count, 0.0)
    assert sorted(s.pending_i[t.MEMBER, :3].tolist()) == [0, 2, 3]


def test_only_the_best_are_tried_again(monkeypatch):
    monkeypatch.setattr(least, "TRIED", 1)
    s, count = packed([(0.5,), (0.1,), (0.6,), (0.9,), (0.55,), (0.58,)])
    s.pending_i[t.MEMBER, 0] = 0
    assert least.grow(s, t.MEMBER, 1, count, 2, 0.0, 0.0) == 2
    assert s.pending_i[t.MEMBER, :2].tolist() == [0, 4]
    assert least.narrow(s, 2, count) == 4
    assert s.pending_i[t.CHAIN, :4].tolist() == [0, 2, 4, 5]
    assert s.pending_f[least.packed(s), :4].tolist() == [0.5, 0.6, 0.55, 0.58]
    assert s.pending_i[t.MEMBER, :2].tolist() == [0, 2]
    assert least.narrow(s, 2, 4) == 4


@pytest.mark.parametrize(("nulls", "needed"), [(t.SHOW_ALL, 2), (t.SHOW_COMMON, 3), (t.SHOW_OWN, 1)])
def test_carriers_that_are_needed(nulls, needed):
    s = held([(0.5,)], MIN_CARRIERS=2, NULLS=nulls)
    assert least.carriers_needed(s, 3) == needed


def test_a_cluster_is_formed_only_of_enough_people():
    s = held([(0.5,), (0.6,), (0.9,)], K=2, MIN_CARRIERS=1)
    assert least.form_least(s, 0) == 2
    assert s.pending_i[t.MEMBER, :2].tolist() == [0, 1]
    s.plan[t.K] = 4
    assert least.form_least(s, 0) == 0
    assert np.isfinite(np.delete(s.pending_f, t.SPARE, axis=0)).all()  # scores of those that are out are infinite
