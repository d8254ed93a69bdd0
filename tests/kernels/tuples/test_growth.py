"""Growth of a cluster, step by step as plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.kernels.tuples import layout as t
from tests.kernels.tuples.least_loss_streams import BOTH, NAN, held, packed, plain

candidates, growth, exchange = plain.candidates, plain.growth, plain.exchange


def test_a_cluster_widens_and_gives_up_attributes():
    s, count = packed([(0.5, NAN), (0.9, 2), (0.6, NAN)], quasi=BOTH, MIN_CARRIERS=2)
    wide, draft = 2, s.pool_i.shape[0] - 1
    growth.start_cluster(s)
    growth.join_cluster(s, 0, 2, 2)
    assert s.pool_i[draft, t.FIELDS + t.C_SHOWN * wide + 1] == 0
    growth.join_cluster(s, 2, 2, 1)
    assert s.pool_f[draft, [t.C_LOW * wide, t.C_HIGH * wide]].tolist() == [0.5, 0.6]
    assert s.pool_i[draft, t.FIELDS + t.C_SHOWN * wide + 1] == 1  # two carriers are needed and one is left
    growth.start_scores(s, count)
    growth.widen(s, 0, count, 0.0, 0.0)
    assert s.pending_f[candidates.widenings(s), :3].tolist() == pytest.approx([0.0, 0.3, 0.0])
    growth.widen(s, 1, count, 2.0, 0.0)  # is lost to the one that carries it: a half of all it has
    assert s.pending_f[candidates.widenings(s) + 1, :3].tolist() == [0.0, 1.0, 0.0]


def test_a_label_covers_all_leaves_below_it():
    s, _ = packed([(0.5, 0), (0.9, 1), (0.6, 3)], quasi=BOTH)
    draft = s.pool_i.shape[0] - 1
    growth.start_cluster(s)
    growth.stretch(s, 1, 0.0, 1.0)
    columns = [t.C_LOW * 2 + 1, t.C_HIGH * 2 + 1, t.C_LOSS * 2 + 1]
    assert s.pool_f[draft, columns].tolist() == pytest.approx([0, 1, 1 / 3])
    growth.stretch(s, 1, 1.0, 2.0)
    assert s.pool_f[draft, columns].tolist() == [0, 3, 1]


def test_a_label_is_measured_from_another_leaf_if_the_due_tuple_has_none():
    s, count = packed([(0.5, NAN), (0.5, 0), (0.5, 1), (0.5, 3)], quasi=BOTH)
    growth.start_cluster(s)
    growth.start_scores(s, count)
    growth.join_cluster(s, 0, 1, 3)
    growth.join_cluster(s, 1, 1, 2)
    growth.widen(s, 1, count, 0.0, 0.0)
    assert s.pending_f[t.SPARE, :4].tolist() == pytest.approx([0.0, 0.0, 1 / 3, 1.0])


def test_new_charges_replace_old_ones():
    added, scores, shares = np.array([0.5, 0.5, 0.5]), np.ones(3), np.ones(3)
    growth.charge(np.array([0.1, 0.8, NAN]), 0.2, 0.4, 2.0, 0.5, shares, 3, added, scores)
    assert added.tolist() == pytest.approx([2 * 0.5 * 0.2, 2 * (0.4 + 0.3 * 0.2 + 0.5 * 0.8), 0.0])
    assert scores.tolist() == pytest.approx((added + 0.5).tolist())
    growth.charge_all(np.array([0.1, 0.8, NAN]), 2.0, 0.5, shares, 3, added, scores)
    assert added.tolist() == [1.0, 1.0, 0.0]
    assert scores.tolist() == pytest.approx([1.5, 1.5, 0.5])


def test_up_to_the_usual_widening_costs_a_part():
    s, count = packed([(0.5,), (0.9,), (0.6,)])
    s.sums[t.TYPICAL_OF] = 0.2
    growth.start_cluster(s)
    growth.start_scores(s, count)
    growth.join_cluster(s, 0, 1, 2)
    growth.widen(s, 0, count, 0.0, 1.0)
    assert s.pending_f[candidates.widenings(s), :3].tolist() == pytest.approx([0.0, 0.2 + 0.3 * 0.2, 0.3 * 0.1])


def test_scores_and_the_least_of_them():
    s, count = packed([(0.5,), (0.9,), (0.6,), (0.6,)])
    growth.start_cluster(s)
    growth.start_scores(s, count)
    growth.join_cluster(s, 0, 1, 2)
    growth.retire(s, 0, count)
    growth.widen(s, 0, count, 0.0, 0.0)
    assert growth.penalize(s, count, 1, 2) == t.SPARE
    assert growth.least_score(s.pending_f[t.SPARE], count) == 2
    growth.retire(s, 2, count)
    assert growth.least_score(s.pending_f[t.SPARE], count) == 3


@pytest.mark.parametrize("place", [0, 3, 64, 150, 159])
def test_the_least_is_found_wherever_it_is(place):
    scores = np.full(160, 2.0)
    scores[[place, 159]] = 1.0
    assert growth.least_score(scores, 160) == place
    assert growth.least_score(np.full(9, np.inf), 9) == -1


def test_lacking_carriers_score_worse():
    s, count = packed([(0.5, 0), (0.5, NAN), (0.5, 0)], quasi=BOTH, MIN_CARRIERS=2)
    growth.start_cluster(s)
    growth.start_scores(s, count)
    growth.join_cluster(s, 0, 2, 1)
    for a in range(2):
        growth.widen(s, a, count, 0.0, 0.0)
    assert growth.penalize(s, count, 2, 1) == t.HEAP_KEY
    assert s.pending_f[t.HEAP_KEY, 1] > s.pending_f[t.HEAP_KEY, 2]
    totals = np.zeros(2)
    growth.add_missing(np.array([0.5, NAN]), 0.25, 2, totals)
    assert totals.tolist() == [0.0, 0.25]


def test_all_tuples_of_a_member_are_excluded():
    s, count = packed([(0.5,), (0.6,), (0.7,)], people=[1, 2, 2])
    growth.start_scores(s, count)
    growth.retire(s, 1, count)
    assert np.isinf(s.pending_f[t.SPARE, :3]).tolist() == [False, True, True]


def test_grow_adds_the_least_scores():
    s, count = packed([(0.5,), (0.9,), (0.6,), (0.1,)])
    s.pending_i[t.MEMBER, 0] = 0
    assert growth.grow(s, t.MEMBER, 1, count, 3, 0.0, 0.0) == 3
    assert s.pending_i[t.MEMBER, :3].tolist() == [0, 2, 1]
    assert exchange.worth(s, t.MEMBER, 3) == pytest.approx(0.4)
    assert growth.grow(s, t.MEMBER, 1, count, 9, 0.0, 0.0) == 4


@pytest.mark.parametrize(("missing", "needed"), [(t.COVERED, 2), (t.HIDDEN, 3), (t.PAPER, 1)])
def test_carriers_needed(missing, needed):
    s = held([(0.5,)], MIN_CARRIERS=2, MISSING_MODE=missing)
    assert growth.carriers_needed(s, 3) == needed


def test_rare_attributes_that_the_due_tuple_lacks_are_not_planned():
    rows = [(0.5, NAN), (0.5, NAN), (0.5, 1), (0.5, NAN), (NAN, NAN)]
    s, count = packed(rows, quasi=BOTH)
    shown = t.FIELDS + t.C_SHOWN * 2
    growth.plan_attributes(s, count, 2)
    assert s.pool_i[-1, shown : shown + 2].tolist() == [growth.PLANNED, growth.NOT_PLANNED]
    growth.start_cluster(s)
    assert s.pool_i[-1, shown : shown + 2].tolist() == [growth.PLANNED, growth.NOT_PLANNED]
    growth.plan_attributes(s, count, 5)  # four candidates without it are too few
    assert s.pool_i[-1, shown : shown + 2].tolist() == [growth.PLANNED, growth.PLANNED]
    s, count = packed([*rows[:3], (0.5, 1), (0.5, 2)], quasi=BOTH)
    growth.plan_attributes(s, count, 2)  # most carry it
    assert s.pool_i[-1, shown : shown + 2].tolist() == [growth.PLANNED, growth.PLANNED]
    assert growth.count_missing(np.array([0.5, NAN, NAN]), 3) == 2
    assert growth.rarest(np.array([9.0, 3.0, 2.0, 2.0]), 1, 3) == 1
