"""Pieces of the cap on one person's share, and of exact grids, one by one."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.tuples import layout as t
from shoal.kernels.tuples.castle.generalize import FORMING
from shoal.schema import Numeric
from tests.kernels.tuples.test_castle import castle, parts, placed
from tests.kernels.tuples.test_kernels import fill, make
from tests.reference.effort import tries
from tests.reference.plain import plain_kernels

plain = plain_kernels("tuples.reuse", "tuples.generalize")
sharing, hulls = plain.reuse, plain.generalize


def pool(people, cap=0.5, clusters=2):
    """Tuples of these people, and a pool of empty clusters."""
    s = make(joined=32, clusters=4)
    s.ratios[t.MAX_SHARE] = cap
    fill(s, [(float(place),) for place in range(len(people))], people)
    s.tally[t.POOL_SIZE] = clusters
    return s


def test_a_cap_of_zero_is_none():
    s = pool([1])
    assert sharing.is_capped(s)
    s.ratios[t.MAX_SHARE] = 0.0
    assert not sharing.is_capped(s)


def test_a_logged_row_is_of_its_person():
    s = pool([7, 8, 7])
    sharing.log_row(s, 1, 0)
    persons = [s.pending_i[t.PERSON, place] for place in range(3)]
    assert [sharing.is_of(s, 0, person) for person in persons] == [True, False, True]
    assert s.joined[0, t.J_CLUSTER] == s.tally[t.BASE] + 1
    assert s.tally[t.JOINED] == 1


def test_members_are_rows_of_the_newest_cluster_and_reuse_adds_to_its_own():
    s = pool([7, 8, 7, 9])
    s.tally[t.POOL_HEAD] = 3  # the pool is a ring: place 1 lies at its beginning
    s.pending_i[t.MEMBER, :2] = [0, 1]
    sharing.log_members(s, 2)
    sharing.log_reuse(s, 3, 3)  # the oldest cluster
    sharing.count_rows(s, 2)  # of person 7
    rows = sharing.rows_column(s)
    newest, oldest = (3 + 1) % hulls.draft(s), 3
    assert list(s.pool_i[newest, rows : rows + 2]) == [2, 1]
    assert list(s.pool_i[oldest, rows : rows + 2]) == [1, 0]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.integers(0, 3), st.sampled_from([1 / 3, 0.4, 0.5, 1.0]))
@tries(60)
def test_one_more_row_must_stay_within_the_cap(people, comes, cap):
    s = pool([*people, comes], cap, clusters=1)
    for place in range(len(people)):
        sharing.log_row(s, 0, place)
    sharing.count_rows(s, len(people))
    own, rows = people.count(comes) + 1, len(people) + 1
    assert sharing.stays_fair(s, 0) == (Fraction(own, rows) <= Fraction(cap).limit_denominator(100))


@pytest.mark.parametrize(("people", "cap", "is_fair"), [
    ([1, 2, 3, 4], 0.25, True), ([1, 1, 2, 3], 0.25, False), ([1, 1, 2, 3], 0.5, True), ([1, 1, 1, 2], 0.5, False),
])  # fmt: skip
def test_a_union_of_castle_is_fair(people, cap, is_fair):
    s, f = placed([(place / 10,) for place in range(4)], [0, 0, 1, 1], people)
    s.ratios[t.MAX_SHARE] = cap
    castle.begin_union(s, f, 0)
    for c in range(1, f.tally[FORMING]):
        castle.join(s, f, c)
    members = castle.list_union(s, f, t.MEMBER)
    assert list(s.pending_i[t.MEMBER, :members]) == [0, 1, 2, 3]
    assert plain_kernels("tuples.reuse").reuse.is_fair(s, members) == is_fair


def test_every_part_of_castle_must_be_fair():
    s, f = placed([(place / 10,) for place in range(4)], [0, 0, 0, 0], [1, 1, 2, 3])
    count = 4
    s.ratios[t.MAX_SHARE] = 0.5
    asked = []

    def choose(s, count, part):
        asked.append(part)
        chosen = [[0, 2], [1, 3]] if split_fairly else [[2, 3], [0, 1]]
        s.pending_i[t.MEMBER, :2] = chosen[part]
        return 2

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "choose_part", choose)
        split_fairly = True
        assert parts.are_fair(s, count, 2)
        split_fairly = False
        assert not parts.are_fair(s, count, 2)
    assert asked == [0, 1, 0, 1]
    assert f.tally[FORMING] == 1


@given(st.integers(-900, 900), st.integers(1, 99), st.integers(0, 3), st.integers(0, 400), st.floats(0, 1))
@tries(200)
def test_points_of_a_grid_are_the_nearest_floats_to_the_exact_multiples(low, step, digits, steps, share):
    scale = 10**digits
    lowest, grid = low / scale, step / scale
    s = make([Numeric("x", low=lowest, high=(low + 401 * step) / scale, grid=grid)])
    exact = Fraction(low + steps * step, scale)
    assert hulls.grid_point(s, 0, float(steps)) == float(exact)
    value = lowest + share * 400 * grid
    below = hulls.steps_below(s, 0, value)
    assert below == np.floor(below)
    points = [float(Fraction(low + int(number) * step, scale)) for number in (below, below + 1)]
    assert points[0] <= value < points[1]
