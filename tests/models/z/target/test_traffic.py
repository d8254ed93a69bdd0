"""How busy epochs were and will be: the busiest window that ends in an epoch, and the quarters to come."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.models.z.target.traffic import Traffic
from tests.reference.effort import tries

HOUR = 3600 * 10**9


def traffic_of(epochs, *, window=HOUR, rotation=HOUR, kept=30):
    made = Traffic(window_ns=window, rotation_ns=rotation, kept=kept)
    for quarters in epochs:
        made.add(np.array(quarters, dtype=np.int64))
    return made


@tries(50)
@given(st.lists(st.lists(st.integers(0, 99), min_size=4, max_size=4), min_size=1, max_size=6), st.integers(1, 12))
def test_the_busiest_window_is_the_largest_sum_of_its_quarters(epochs, span):
    made = traffic_of(epochs, window=span * HOUR // 4)
    for number, busiest in enumerate(made.busiest.tolist()):
        before = [one for quarters in epochs[:number] for one in quarters]
        mean = np.mean(before[-span:] or epochs[number])
        known = [mean] * span + before + epochs[number]
        sums = [sum(known[end - span : end]) for end in range(len(known) - 4, len(known) + 1)]
        assert busiest == pytest.approx(max(*sums, 1))


def test_where_events_fall_the_busiest_window_is_that_at_the_start():
    made = traffic_of([[100] * 4, [40, 30, 20, 10]])
    assert made.busiest.tolist() == [400, 400]
    assert made.busiest_with(np.full(4, 5)) == 100


def test_the_trend_goes_on_within_bounds():
    assert traffic_of([[100, 110, 120, 130]]).by_trend().tolist() == pytest.approx([140, 150, 160, 170])
    assert traffic_of([[10, 20, 200, 400]]).by_trend().max() == pytest.approx(2.5 * 157.5)
    assert traffic_of([[40, 30, 20, 10]]).by_trend().tolist() == [12.5] * 4
    assert traffic_of([[1, 5, 9, 13]]).by_trend().tolist() == [7] * 4  # too few events for a trend


def test_the_day_before_is_scaled_to_today():
    made = traffic_of([[10] * 4, [20, 24, 28, 32], [30] * 4])  # two epochs make a day
    assert made.by_day(2).tolist() == [60, 72, 84, 96]
    assert made.not_falling(np.array([10.0, 50, 20, 40])).tolist() == [30, 50, 30, 40]


def test_epochs_without_a_lesson_are_steady():
    made = traffic_of([[10, 20, 30, 40]])
    made.add_unknown(2)
    assert made.by_trend().tolist() == [25] * 4
    assert len(made.busiest) == 3


def test_only_recent_epochs_are_kept_and_restored():
    made, other = traffic_of([[number] * 4 for number in range(50)], kept=7), traffic_of([], kept=7)
    other.load(made.dump())
    assert len(other.busiest) == 7
    for one in (made, other):
        one.add(np.array([9, 8, 7, 6]))
    assert {name: array.tolist() for name, array in made.dump().items()} == {
        name: array.tolist() for name, array in other.dump().items()
    }
