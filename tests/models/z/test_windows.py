"""The curves over all z against Algorithm 1 run once for every z."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.kernels.z import threshold_curves as set_curves
from shoal.models.z.windows import crowd_sizes, set_curve, window_curves
from tests.reference.algorithm1 import algorithm1
from tests.reference.effort import tries
from tests.reference.plain import plain_kernels
from tests.reference.released_sets import released_sets, shown_and_anonymous

PIECES = plain_kernels("z.threshold_curves").threshold_curves

EVENTS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 6), st.integers(0, 4)), max_size=60)


def columns(events):
    ordered = sorted(events, key=lambda event: event[0])
    return ordered, *(np.array(column, dtype=np.int64) for column in zip(*ordered, strict=True))


@tries(200)
@given(EVENTS, st.integers(0, 25), st.integers(1, 30), st.integers(2, 4))
def test_every_z_is_as_algorithm_1_would_have_it(events, window, rotation, k):
    if not events:
        return
    ordered, times, persons, values = columns(events)
    curves = window_curves(times, persons, values, window_ns=window, rotation_ns=rotation, k=k)
    assert [curve.epoch for curve in curves] == sorted({time // rotation for time in times.tolist()})
    for z in range(1, 9):
        sets = released_sets(ordered, z=z, window=window, rotation=rotation)
        leaves = algorithm1(ordered, z=z, window=window)
        for curve in curves:
            inside = [event[0] // rotation == curve.epoch for event in ordered]
            assert curve.at(z) == shown_and_anonymous(sets[curve.epoch], k)
            assert curve.rows_at(z) == sum(a and b for a, b in zip(leaves, inside, strict=True))
            assert curve.events == sum(inside)
            assert curve.active == len({event[1] for event, is_in in zip(ordered, inside, strict=True) if is_in})


def test_no_events_have_no_curve():
    nothing = np.empty(0, dtype=np.int64)
    assert window_curves(nothing, nothing, nothing, window_ns=1, rotation_ns=1, k=2) == []
    assert set_curve(nothing, nothing, nothing, 2).at(1) == (0, 0)


def test_the_window_is_closed():
    times, same = np.array([0, 10, 21]), np.zeros(3, dtype=np.int64)
    assert crowd_sizes(times, np.arange(3), same, window_ns=10).tolist() == [1, 2, 1]


def test_a_set_does_not_depend_on_the_order_it_grew_in():
    person, item = np.array([0, 0, 1, 1]), np.array([7, 8, 8, 7])
    curve = set_curve(person, item, np.array([4, 3, 4, 3]), 2)
    assert curve.at(3) == (2, 2)
    assert curve.at(4) == (2, 0)


def test_a_group_is_left_and_joined_one_person_at_a_time():
    groups = np.zeros((8, 3), dtype=np.int64)
    groups[:, 2] = -1
    changes = [PIECES.join_group(groups, 5, 9, 3) for _ in range(4)]
    assert changes == [1, 1, -2, 0]
    assert groups[PIECES.group_slot(groups, 5, 9)].tolist() == [5, 9, 4]
    assert [PIECES.leave_group(groups, 5, 9, 3) for _ in range(4)] == [0, 2, -1, -1]


@pytest.mark.parametrize("word", [0, 1, -1, 2**62])
def test_scrambling_keeps_words_apart(word):
    assert len({int(PIECES.scrambled(np.int64(word ^ (1 << bit)))) for bit in range(60)}) == 60


def test_kernels_fill_what_they_are_given():
    out = np.empty((3, 2), dtype=np.int64)
    groups = np.full((8, 3), -1, dtype=np.int64)
    found = set_curves.curve_of_sets(
        np.array([0, 1, 1]), np.array([1, 1, 2]), np.array([5, 5, 2]), 2, np.zeros((2, 2), np.int64), groups, *out
    )
    assert (found, out.tolist()) == (2, [[5, 2], [2, 2], [0, 2]])
    sizes = np.empty(2, dtype=np.int64)
    set_curves.count_crowds(np.zeros(2, np.int64), np.array([0, 1]), np.array([-1, -1]), np.array([2, 2]), 5, sizes)
    assert sizes.tolist() == [1, 2]
