"""The z that follows a stream: what an epoch needed, what is chosen next, and what is never done."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.kernels.z import peaks as peaks_kernel
from shoal.models.z.target.controller import ZController
from shoal.models.z.target.epoch_needs import EDGES, EpochProfile, Lesson, lesson_of, missed_bins, needed
from shoal.models.z.target.target import NOTHING, KTarget
from shoal.models.z.windows import SetCurve, window_curves
from tests.reference.effort import tries
from tests.reference.plain import plain_kernels

PIECES = plain_kernels("z.peaks").peaks
HOUR = 3600 * 10**9


def curve_of(steps):
    thresholds, shown, anonymous = (np.array(column, dtype=np.int64) for column in zip(*steps, strict=True))
    return SetCurve(thresholds, shown, anonymous)


def visits(windows, *, people=200, sites=12, visits=4, seed=1):
    """Curves of hourly windows of a stream that stays as it is."""
    random = np.random.default_rng(seed)
    weights = 1 / np.arange(1, sites + 1)
    count = people * visits * windows
    times = np.sort(random.integers(0, windows * HOUR, count))
    persons, values = random.integers(people, size=count), random.choice(sites, count, p=weights / weights.sum())
    return window_curves(times, persons, values, window_ns=HOUR, rotation_ns=HOUR, k=2)


def profile(curve, epoch, people=1000):
    return EpochProfile(epoch, getattr(curve, "active", people), curve, *curve.at(0))


def follow(curves, target, *, first=0, controller=None):
    """Every z chosen; the first epoch is not whole."""
    controller = controller or ZController(target, rotation_ns=HOUR)
    chosen = []
    for number, curve in enumerate(curves, start=first):
        chosen.append(controller.open(number))
        controller.close(profile(curve, number), counts=number > 0)
    return chosen


class TestTarget:
    @pytest.mark.parametrize(
        ("given", "word"),
        [
            ({"k": 1, "p": 0.9}, "k must be"),
            ({"k": True, "p": 0.9}, "k must be"),
            ({"k": 2, "p": 0}, "p must be"),
            ({"k": 2, "p": 1.01}, "p must be"),
            ({"k": 2, "p": "much"}, "p must be"),
            ({"k": 2, "p": 0.9, "floor": 0}, "floor must be"),
            ({"k": 5, "p": 0.9, "start": 4}, "start must be at least 5"),
            ({"k": 2, "p": 0.9, "floor": 9, "start": 8}, "start must be at least 9"),
        ],
    )
    def test_what_cannot_be_aimed_at(self, given, word):
        with pytest.raises(PolicyError, match=word):
            KTarget(**given)

    def test_nobody_shown_is_fine(self):
        assert KTarget(k=2, p=1).is_met(0, 0)
        assert KTarget(k=2, p=0.9).is_met(10, 9)
        assert not KTarget(k=2, p=0.9).is_met(10, 8)


class TestBins:
    def test_every_number_has_a_bin(self):
        assert EDGES[0] == 1
        assert (np.diff(EDGES) > 0).all()
        assert (np.diff(EDGES) <= np.maximum(1, EDGES[:-1] // 50)).all()
        assert EDGES[-1] < NOTHING

    @tries(200)
    @given(st.data())
    def test_bins_are_bad_exactly_where_a_z_in_them_is(self, data):
        thresholds = sorted(data.draw(st.sets(st.integers(1, 400), min_size=1, max_size=12)))
        shown = sorted(data.draw(st.lists(st.integers(1, 99), min_size=len(thresholds), max_size=len(thresholds))))[
            ::-1
        ]
        anonymous = [data.draw(st.integers(0, people)) for people in shown]
        curve = curve_of(list(zip(thresholds, shown, anonymous, strict=True)))
        target = KTarget(k=2, p=0.7)
        missed = missed_bins(curve, target)
        for place in range(len(EDGES[EDGES < 500])):
            inside = [curve.at(z) for z in range(EDGES[place], EDGES[place + 1])]
            assert missed[place] == any(not target.is_met(*found) for found in inside)

    def test_a_gap_in_the_bad_ones_must_be_a_stretch(self):
        # met from 20 to 22 alone, and again from 60 on: 22 is not 1.25 times 20
        curve = curve_of([(19, 100, 10), (22, 90, 90), (59, 80, 10), (100, 70, 70)])
        assert needed(missed_bins(curve, KTarget(k=2, p=0.9)), 2) == 60

    def test_not_below_the_least(self):
        curve = curve_of([(100, 70, 70)])
        assert needed(missed_bins(curve, KTarget(k=2, p=0.9)), 7) == 7


class TestLesson:
    def test_two_thirds_of_what_was_needed(self):
        curve = curve_of([(89, 900, 10), (400, 800, 800)])
        assert lesson_of(profile(curve, 7), KTarget(k=2, p=0.9)) == Lesson(7, 60)

    @pytest.mark.parametrize(("k", "floor", "least"), [(2, None, 2), (5, None, 5), (2, 70, 70)])
    def test_never_below_k_or_the_floor(self, k, floor, least):
        curve = curve_of([(1, 900, 10), (400, 800, 800)])
        assert lesson_of(profile(curve, 7), KTarget(k=k, p=0.9, floor=floor)).z == least

    def test_a_fifth_of_the_people_should_be_shown(self):
        curve = curve_of([(40, 300, 10), (45, 200, 10), (99, 199, 10), (400, 80, 80)])
        assert lesson_of(profile(curve, 1), KTarget(k=2, p=0.9)).z == 45
        assert lesson_of(profile(curve, 1, people=900), KTarget(k=2, p=0.9)).z == 67

    def test_too_few_people_are_rather_not_shown(self):
        shown = curve_of([(10, 30, 30)]), curve_of([(10, 29, 29)])
        assert [lesson_of(profile(one, 1, people=40), KTarget(k=2, p=0.9)).z for one in shown] == [2, NOTHING]


class TestChoosing:
    def test_nothing_is_released_before_anything_is_known(self):
        chosen = follow(visits(3), KTarget(k=2, p=0.9))
        assert chosen[:2] == [NOTHING, NOTHING]
        assert chosen[2] < NOTHING

    def test_or_a_start_that_was_given(self):
        assert follow(visits(3), KTarget(k=2, p=0.9, start=77))[:2] == [77, 77]

    def test_the_last_epoch_or_the_same_hour_of_the_day_before(self):
        high, low = curve_of([(89, 900, 10), (400, 800, 800)]), curve_of([(29, 900, 10), (400, 800, 800)])
        hours = [low if number % 24 in (8, 9) else high for number in range(24 * 3)]
        chosen = follow(hours, KTarget(k=2, p=0.9))
        assert chosen[7:12] == [60, 60, 20, 20, 60]
        assert chosen[24 + 7 : 24 + 12] == [60, 20, 20, 20, 60]

    def test_what_is_too_old_is_forgotten(self):
        controller = ZController(KTarget(k=2, p=0.9), rotation_ns=HOUR)
        follow(visits(10), KTarget(k=2, p=0.9), controller=controller)
        assert controller.open(12) < NOTHING
        assert controller.open(9 + 26) == NOTHING
        assert controller.is_empty

    @pytest.mark.parametrize(("hour", "z"), [(3, 8), (5, 9), (1, 30)])
    def test_an_earlier_stream_counts_as_the_day_before(self, hour, z):
        controller = ZController(KTarget(k=2, p=0.9), rotation_ns=HOUR)
        controller.adopt((Lesson(24 + 1, 30), Lesson(24 + 3, 8), Lesson(24 + 4, 9), Lesson(24 + 23, 50)), 2400 + hour)
        # at 3:00 by that hour; at 5:00 by the last one, 4:00; at 1:00 by that hour, because 23:00 has more
        assert controller.open(2400 + hour) == z

    @pytest.mark.parametrize("rotation", [HOUR, 7 * HOUR, 60 * 10**9, 48 * HOUR])
    def test_any_rotation_will_do(self, rotation):
        controller = ZController(KTarget(k=2, p=0.9), rotation_ns=rotation)
        assert follow(visits(8), KTarget(k=2, p=0.9), controller=controller)[-1] < NOTHING


def test_the_state_is_all_there_is():
    curves, target = visits(40), KTarget(k=2, p=0.9)
    whole = follow(curves, target)
    for cut in (0, 1, 2, 17, 39):
        first, other = (ZController(target, rotation_ns=HOUR) for _ in range(2))
        begun = follow(curves[:cut], target, controller=first)
        other.load(first.dump())
        assert begun + follow(curves[cut:], target, first=cut, controller=other) == whole


def test_the_state_stays_small():
    curves, controller = visits(20), ZController(KTarget(k=2, p=0.9), rotation_ns=HOUR)
    for number in range(120):
        controller.open(number)
        controller.close(profile(curves[number % 20], number), counts=True)
    assert len(controller.dump()["taught"]) == 2 * 24


class TestPeaks:
    def test_pairs_keep_their_peak(self):
        table, taken = np.zeros((4, 3), dtype=np.int64), np.zeros(1, dtype=np.int64)
        persons, values = np.array([[1], [1], [2], [1], [3]]), np.array([[7], [7], [7], [8], [9]])
        sizes = np.array([3, 5, 2, 0, 4])
        assert peaks_kernel.note_peaks(table, taken, persons, values, sizes, 0) == 4  # no room for a third pair
        roomier = np.zeros((8, 3), dtype=np.int64)
        peaks_kernel.move_peaks(table, roomier)
        assert peaks_kernel.note_peaks(roomier, taken, persons, values, sizes, 4) == 5
        assert sorted(roomier[roomier[:, 2] > 0].tolist()) == [[1, 7, 5], [2, 7, 2], [3, 9, 4]]
        assert roomier[PIECES.pair_row(roomier, 2, 7)].tolist() == [2, 7, 2]

    def test_people_who_are_numbered_one_after_another_are_spread_over_the_table(self):
        people, values = 500, 8
        taken, table = (
            np.zeros(1, dtype=np.int64),
            np.zeros((1 << (2 * people * values).bit_length(), 3), dtype=np.int64),
        )
        persons = np.tile(np.arange(people), values)[:, np.newaxis]
        shown = np.repeat(np.arange(values), people)[:, np.newaxis]
        peaks_kernel.note_peaks(table, taken, persons, shown, np.ones(people * values, dtype=np.int64), 0)
        free = np.flatnonzero(table[:, 2] == 0)
        assert np.diff(free).max() < people / 4, "a search would go through rows of many others"
