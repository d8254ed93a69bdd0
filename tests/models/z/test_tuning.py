"""Choosing z: every z is tried, the choice is checked on what was not used, and what did not hold is said."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError, PolicyError
from shoal.models.z.events import Events
from shoal.models.z.model import ZModel
from shoal.models.z.rhythm import Phase, ZRhythm
from shoal.models.z.search import ModelCurve, Replay, coarse, reach_of
from shoal.models.z.tuning import Target, likely_windows, tune
from tests.reference.effort import tries
from tests.reference.poisson_streams import WINDOW, poisson_events
from tests.reference.released_sets import released_sets, shown_and_anonymous

TABLE_2 = [0.2 / rank for rank in range(1, 21)]
HOUR = [("1h", WINDOW)]
STEADY = [2.0, 0.8, 0.4, 0.2, 0.1, 0.1, 0.05, 0.05]


def one_phase(model):
    return ZRhythm([Phase(np.arange(1), model)])


def brute_force(model, k, p, first, last):
    """The definition: the smallest z whose exact probability reaches p, and so does every z' up to 1.1 z."""
    known = {z: model.p_shown_k_anonymous(z, k, method="exact").lower for z in range(first, last * 11 // 10 + 1)}
    return next((z for z in range(first, last + 1) if all(known[o] >= p for o in range(z, z * 11 // 10 + 1))), None)


@tries(40)
@given(
    users=st.integers(5, 120), k=st.integers(2, 3), p=st.sampled_from([0.3, 0.6, 0.9, 0.99]),
    rates=st.lists(st.sampled_from([0.02, 0.1, 0.3, 0.6, 2.0]), min_size=1, max_size=4),
)  # fmt: skip
def test_the_smallest_z_against_brute_force(users, k, p, rates):
    model = ZModel(users, rates, 1)
    curve = ModelCurve(one_phase(model), k)
    last = curve.last_z(k, 0.01)
    assert last == max([k, *(z for z in range(k, users + 1) if model.released_share(z) >= 0.01)])
    expected = brute_force(model, k, p, k, last)
    found = curve.smallest(p, first=k, last=last)
    if found != expected:  # only where a bound 1e-4 wide cannot tell
        reached = {z: model.p_shown_k_anonymous(z, k, method="exact").value for z in {found or k, expected or k}}
        assert any(abs(value - p) < 2e-4 for value in reached.values())


def bisecting(model, k, p, first, last):
    """What a tuner does that takes the curve for a rising one."""
    while first < last:
        middle = (first + last) // 2
        first, last = (first, middle) if model.p_shown_k_anonymous(middle, k).lower >= p else (middle + 1, last)
    return first


@pytest.fixture(scope="module")
def every_z():
    """The paper's model, and its lower bound at every z from 300 on."""
    model = ZModel(1000, TABLE_2, 12)
    return model, {z: model.p_shown_k_anonymous(z, 2).lower for z in range(300, 1018)}


@pytest.mark.compiled
@pytest.mark.parametrize("p", [0.985, 0.992, 0.9972, 0.9985, 0.9995])
def test_the_papers_setting_against_every_z(every_z, p):
    model, lower = every_z
    curve = ModelCurve(one_phase(model), 2)
    last = curve.last_z(2, 0.01)
    expected = next(z for z in range(300, last + 1) if all(lower[o] >= p for o in range(z, reach_of(z) + 1)))
    assert curve.smallest(p, first=300, last=last) == pytest.approx(expected, abs=1)  # bounds may be nearer or wider


@pytest.mark.compiled
def test_a_tuner_that_bisects_would_be_wrong(every_z):
    """The share falls for z from 340 to 352, from 378 to 411, from 441 to 487 and from 536 to 591."""
    model, lower = every_z
    for high, low in ((340, 352), (378, 411), (441, 487), (536, 591)):
        assert lower[high] > lower[low] + 1e-4
    curve = ModelCurve(one_phase(model), 2)
    p = (lower[441] + lower[487]) / 2  # reached, lost, reached again
    right, wrong = curve.smallest(p, first=2, last=925), bisecting(model, 2, p, 2, 925)
    assert (right, wrong) == (496, 426)
    assert curve.reaches(wrong, p)
    assert curve.holds(right, p)
    assert not curve.holds(wrong, p)  # 1.1 times that z has lost it
    p = 0.2 * lower[378] + 0.8 * lower[411]  # here it misses the smaller z that holds
    assert (curve.smallest(p, first=2, last=925), bisecting(model, 2, p, 2, 925)) == (368, 415)


def test_the_coarse_pass_leaves_no_large_gap():
    grid = list(coarse(2, 5000))
    assert grid[:63] == list(range(2, 65))
    assert all(later - z <= max(1, z**0.5 / 8) for z, later in pairwise(grid))
    assert 5000 - grid[-1] <= 5000**0.5 / 8
    assert list(coarse(5, 4)) == []


def rows_of(events):
    return list(zip(events.times.tolist(), events.persons.tolist(), events.values.tolist(), strict=True))


@tries(60)
@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 8), st.integers(0, 3)), min_size=1, max_size=60),
    st.integers(3, 30), st.integers(2, 3), st.integers(0, 2),
)  # fmt: skip
def test_a_replay_against_counting(rows, window, k, first_epoch):
    ordered = sorted(rows)
    events = Events(*(np.array(column, np.int64) for column in zip(*ordered, strict=True)))
    replay = Replay(events, window, k, epochs=np.arange(first_epoch, 21))
    measured = [row for row in ordered if row[0] // window >= first_epoch]
    people = {row[1] for row in measured}
    active = {(row[0] // window, row[1]) for row in measured}
    epochs = {epoch for epoch, _ in active}
    assert (replay.people, replay.active) == (len(people), len(active))
    assert (replay.events, len(replay.curves)) == (len(measured), len(epochs))
    for z in range(1, 8):
        sets = {e: one for e, one in released_sets(ordered, z=z, window=window, rotation=window).items() if e in epochs}
        counts = [shown_and_anonymous(one, k) for one in sets.values()]
        shown, anonymous = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
        found = replay.at(z, 0.7)
        assert (found.shown, found.anonymous) == (shown, anonymous)
        assert found.over_shown == (anonymous / shown if shown else None)
        assert found.held == sum(1 for seen, alike in counts if seen and alike / seen >= 0.7)
        assert found.with_shown == sum(1 for seen, _ in counts if seen)
        everybody = among_active = 0
        for epoch, own in sets.items():
            alike = Counter(frozenset(own.get(person, ())) for person in people)
            is_safe = {person: alike[frozenset(own.get(person, ()))] >= k for person in people}
            everybody += sum(is_safe.values())
            among_active += sum(is_safe[person] for e, person in active if e == epoch)
        if epochs:
            assert found.over_all == pytest.approx(everybody / len(people) / len(epochs))
            assert found.over_active == pytest.approx(among_active / len(active))
        others = [replay.at(other, 0.7).over_shown or 0.0 for other in range(z, reach_of(z) + 1)]
        assert replay.weakest(z)[1] == pytest.approx(min(others))


def test_the_smallest_z_of_a_replay_against_trying_all():
    events = poisson_events(120, [1.5, 0.6, 0.3, 0.2, 0.1, 0.05], 12)
    replay = Replay(events, WINDOW, 2)
    for p in (0.3, 0.8, 0.95, 0.99, 1.0):
        expected = next((z for z in range(2, replay.highest + 1) if replay.holds(z, p)), None)
        assert replay.smallest(p, first=2, least_released=0.0) == expected
    assert replay.smallest(0.95, first=2, least_released=0.999) is None


def test_too_little_shown_does_not_count():
    events = poisson_events(12, [2.0], 4)
    replay = Replay(events, WINDOW, 2)
    assert replay.weakest(2)[1] == 1.0
    assert not replay.holds(2, 0.9)
    assert replay.smallest(0.9, first=2, least_released=0.0) is None
    assert replay.weakest(500) == (500, 0.0)


def test_windows_that_show_nobody_do_not_make_one_crowd_enough():
    crowd = [(0, person, 0) for person in range(150)]
    alone = [(epoch * WINDOW, epoch, epoch) for epoch in range(1, 9)]
    events = Events(*(np.array(column, np.int64) for column in zip(*crowd, *alone, strict=True)))
    replay = Replay(events, WINDOW, 2)
    found = replay.at(2, 0.9)
    assert (found.epochs, found.with_shown, found.over_shown) == (9, 1, 1.0)
    assert not replay.holds(2, 0.9)


@pytest.fixture(scope="module")
def alike():
    """150 people who are all alike, eight values."""
    return tune(poisson_events(150, STEADY, 40), HOUR, Target(2, 0.95, classes=1))


@pytest.mark.compiled
def test_a_stream_like_the_model_is_tuned(alike):
    (window,) = alike.windows
    by_model = window.candidates[0]
    assert by_model.origin == "model"
    assert by_model.predicted.shown.lower >= 0.95
    assert by_model.held
    found, best = alike.best
    assert found is window
    assert best.held
    assert best.z == min(one.z for one in window.candidates if one.held)
    assert best.weakest >= 0.95
    for said, before, after in window.curve:
        for counted in (before, after):
            if counted.shown > 400:
                assert said.shown.value == pytest.approx(counted.over_shown, abs=0.08)
                assert said.over_active == pytest.approx(counted.over_active, abs=0.08)
                assert said.over_all == pytest.approx(counted.over_all, abs=0.08)
                assert said.released == pytest.approx(counted.released, abs=0.15)  # one value is half of all rows


@pytest.mark.compiled
def test_the_later_part_does_not_change_what_the_model_says(alike):
    """Nothing of it is used for estimating: with the same earlier part and other later ones the model is the same."""
    events = poisson_events(150, STEADY, 40)
    cut = int(events.times[int(0.7 * len(events))]) // WINDOW * WINDOW
    is_later = events.times >= cut
    unlike = Events(events.times, events.persons, np.where(is_later, 1000 + np.arange(len(events)) // 2, events.values))
    other = tune(unlike, HOUR, Target(2, 0.95, classes=1)).windows[0]
    mine = alike.windows[0]
    assert [one.z for one in other.candidates][:2] == [one.z for one in mine.candidates][:2]
    assert np.array_equal(other.estimate.rates, mine.estimate.rates)
    assert other.candidates[0].predicted.shown == mine.candidates[0].predicted.shown
    assert not any(one.held for one in other.candidates)  # and it is not called reached
    assert other.best is None


def day(hours, *, users=1200, days=1, seed=5):
    """People whose number follows the hour: `hours` has the share of people active in each hour of the day."""
    random = np.random.default_rng(seed)
    parts = []
    for number, share in enumerate([*hours] * days):
        present = np.flatnonzero(random.random(users) < share)
        own = poisson_events(len(present), [0.9 / rank for rank in range(1, 41)], 1, seed=seed + number)
        parts.append((own.times + number * WINDOW, present[own.persons], own.values))
    return Events(*(np.concatenate(column) for column in zip(*parts, strict=True)))


WAVE = 0.55 - 0.45 * np.cos(2 * np.pi * np.arange(24) / 24)


@pytest.mark.compiled
@pytest.mark.parametrize("days", [1, pytest.param(4, marks=pytest.mark.exhaustive)])
def test_people_who_follow_the_hour_are_predicted(days):
    """One average window is 15 points off; the times of the day of unused windows are enough to predict them."""
    events = day(WAVE, days=days)
    (window,) = tune(events, HOUR, Target(2, 0.9, classes=1)).windows
    assert window.phases > 6
    assert window.is_interleaved == (days == 1)
    counted = [one for one in window.curve if min(one[1].shown, one[2].shown) > 500]
    assert len(counted) > 10
    assert max(abs(model.shown.value - used.over_shown) for model, used, _ in counted) < 0.05
    assert max(abs(model.ahead.value - unused.over_shown) for model, _, unused in counted) < 0.05
    average = ZModel.of_estimate(window.estimate, WINDOW)
    assert max(abs(average.p_shown_k_anonymous(m.z, 2).value - used.over_shown) for m, used, _ in counted) > 0.15


def test_weights_come_from_the_nearest_times_of_the_day():
    model, hour = ZModel(10, [0.1], WINDOW / 1e9), np.arange(24)
    phases = [Phase(hour[hour % 3 == 0][number : number + 1], model) for number in range(8)]
    rhythm = ZRhythm(phases, 24 * WINDOW)
    assert rhythm.weights_for(np.array([0, 24, 3])).tolist() == [2, 1, 0, 0, 0, 0, 0, 0]
    assert rhythm.weights_for(np.array([23])) == pytest.approx([2 / 3, 0, 0, 0, 0, 0, 0, 1 / 3])
    assert rhythm.weights_for(np.array([25, 26])) == pytest.approx([1, 1, 0, 0, 0, 0, 0, 0])


@pytest.mark.compiled
def test_what_is_not_reached_is_not_called_reached():
    """64 people and six values that most of them expose: there are as many combinations as people at any z."""
    events = poisson_events(64, [1.0] * 6, 30)
    found = tune(events, HOUR, Target(2, 0.99, classes=1))
    (window,) = found.windows
    assert found.best is None
    assert window.best is None
    assert window.hindsight is None or window.hindsight > 2


@pytest.mark.compiled
def test_classes_are_nearer_to_people_who_differ():
    activity = np.random.default_rng(1).lognormal(0, 1, 600)
    events = poisson_events(600, [0.6 / rank for rank in range(1, 101)], 24, seed=3, activity=activity)
    counted = Replay(events, WINDOW, 2)
    misses = []
    for classes in (1, 3):
        (window,) = tune(events, HOUR, Target(2, 0.9, classes=classes)).windows
        misses.append(max(abs(s.shown.value - counted.at(s.z, 0.9).over_shown) for s, _, _ in window.curve if s.z < 60))
    assert misses[1] < misses[0] / 2


@pytest.mark.compiled
def test_windows_are_ranked_and_short_ones_named():
    events = poisson_events(150, [2.0, 0.8, 0.4], 40)
    found = tune(events, [("1h", WINDOW), ("30min", WINDOW // 2), ("90d", 90 * 24 * WINDOW)], Target(2, 0.9, classes=1))
    assert found.too_short == ("90d",)
    released = [one.best.earlier.released if one.best else -1.0 for one in found.windows]
    assert released == sorted(released, reverse=True)
    with pytest.raises(InputError, match="window 90d: the stream is too short"):
        tune(events, [("90d", 90 * 24 * WINDOW)], Target(2, 0.9))
    nothing = np.empty(0, np.int64)
    with pytest.raises(InputError, match="too short"):
        tune(Events(nothing, nothing, nothing), HOUR, Target(2, 0.9))


def test_likely_windows_fit_the_stream():
    events = poisson_events(150, [2.0, 0.8, 0.4], 40)
    assert [name for name, _ in likely_windows(events, 0.3)] == ["10min", "1h"]
    one = Events(np.array([5]), np.array([1]), np.array([1]))
    assert likely_windows(one, 0.3) == HOUR


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"k": 1}, "k:"),
        ({"p": 1.01}, "p:"),
        ({"p": 0}, "p:"),
        ({"holdout": 0.99}, "holdout:"),
        ({"least_released": 1}, "release:"),
        ({"check": "later"}, "check:"),
    ],
    ids=str,
)
def test_wrong_targets_are_refused(wrong, words):
    with pytest.raises(PolicyError, match=words):
        Target(**{"k": 2, "p": 0.9, **wrong})
