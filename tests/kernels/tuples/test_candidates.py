"""Candidates of a cluster: neighbours, prices and packed values, step by step as plain Python."""

from __future__ import annotations

import numpy as np
import pytest

from shoal.hierarchies import Hierarchy
from shoal.kernels.tuples import layout as t
from shoal.schema import Categorical, Numeric
from tests.kernels.tuples.least_loss_streams import BOTH, NAN, TREE, held, packed, plain

generalize, candidates, growth = plain.generalize, plain.candidates, plain.growth


def test_rows_follow_one_another():
    s = held([(0.1,)])
    assert candidates.nears(s) == t.VALUES + 2
    assert candidates.packed(s) == candidates.nears(s) + 2
    assert candidates.reaches(s) == candidates.packed(s) + 1
    assert candidates.widenings(s) == candidates.reaches(s) + 1


def test_a_new_tuple_meets_the_latest_pending_ones():
    s = held([(0.1,)] * 6)
    assert candidates.first_met(s, 5) == 0
    s.plan[t.CANDIDATES] = 8  # then it meets 32 at most
    assert candidates.first_met(s, 5) == 0
    s.pending_i[t.ALIVE, 0] = 0
    s.tally[t.HEAD] = 1
    assert candidates.first_met(s, 5) == 1


@pytest.mark.parametrize(("plan", "met"), [({"CANDIDATES": 160}, 40), ({"EXCHANGES": 1}, 128), ({}, 256)])
def test_number_of_tuples_met_without_gaps(plan, met):
    s = held([(0.1,)], **plan)
    s = s._replace(pending_i=np.ones((len(s.pending_i), 400), dtype=np.int64))
    assert candidates.first_met(s, 399) == 399 - met
    s.pending_i[t.ALIVE, 380:383] = 0
    assert candidates.first_met(s, 399) == 399 - met - 3


def test_least_distances_are_sorted():
    s = held([(0.0,)])
    for distance in (0.5, 0.7, 0.2, 0.9):
        candidates.note_met(s.pending_f[candidates.nears(s) : candidates.nears(s) + 2], 0, distance)
    assert s.pending_f[candidates.nears(s) : candidates.nears(s) + 2, 0].tolist() == [0.2, 0.5]


def test_both_sides_record_the_distance_except_to_the_same_person():
    s = held([(0.0,), (0.3,), (0.4,)], people=[1, 2, 1])
    candidates.meet_others(s, 2)
    near = s.pending_f[candidates.nears(s) : candidates.nears(s) + 2]
    assert near[:, 1].tolist() == pytest.approx([0.1, 1.0])
    assert near[:, 2].tolist() == pytest.approx([0.1, 1.0])
    assert near[:, 0].tolist() == [1.0, 1.0]


def test_candidates_are_listed_after_the_due_tuple():
    s, count = packed([(0.5,), (0.9,), (0.6,)])
    assert count == 3
    assert s.pending_i[t.CHAIN, :3].tolist() == [0, 1, 2]
    s = held([(0.5,), (0.9,), (0.6,), (0.55,)], CANDIDATES=2)
    assert candidates.list_candidates(s, 0) == 3
    assert candidates.pack_candidates(s, 0) == 3
    assert s.pending_i[t.CHAIN, :3].tolist() == [0, 2, 3]
    assert s.pending_f[candidates.packed(s), :3].tolist() == [0.5, 0.6, 0.55]


def test_prices_depend_on_distance_and_age():
    s = held([(0.5,), (0.9,)])
    s.ratios[[t.PRICE, t.AGE]] = 2.0, 0.5
    s.plan[t.DEADLINE], s.tally[t.NOW], s.sums[t.TYPICAL] = 10, 5, 0.4
    s.pending_i[t.ARRIVED, :2] = 0, 5
    s.pending_f[candidates.nears(s), 0] = 0.2
    count = candidates.pack_candidates(s, 0)
    assert candidates.price_candidates(s, count) == 1.0
    assert s.pending_f[t.COST_OF, :2].tolist() == pytest.approx([2 * (0.6 + 0.5 * 0.4 * 0.5), 2.0])


def test_what_a_range_loses():
    s = held([(0.5, 0)], quasi=BOTH)
    assert generalize.range_loss(s, 0, 0.25, 0.75) == 0.5
    assert generalize.range_loss(s, 1, 0.0, 1.0) == pytest.approx(1 / 3)
    assert generalize.range_loss(s, 1, 1.0, 2.0) == 1.0


@pytest.mark.parametrize("leaves", [4, 600])
def test_what_labels_and_ranges_lose_with_each_candidate(leaves):
    tree = TREE if leaves == 4 else {"top": {"left": ["a", "b"], "right": [str(leaf) for leaf in range(598)]}}
    quasi = [Numeric("x", low=0, high=1), Categorical("y", Hierarchy.from_nested(tree))]
    s, count = packed([(0.5, 0), (0.9, 1), (NAN, NAN), (0.1, 3)], quasi=quasi)
    candidates.reach_labels(s, 1, 0, count)
    assert s.pending_f[candidates.reaches(s) + 1, :4].tolist() == pytest.approx(
        [0, 1 / (leaves - 1), NAN, 1], nan_ok=True
    )
    growth.reach_numbers(s.pending_f[candidates.packed(s)], 0.4, 0.5, count, s.pending_f[candidates.reaches(s)])
    assert s.pending_f[candidates.reaches(s), :4].tolist() == pytest.approx([0.1, 0.5, NAN, 0.4], nan_ok=True)
