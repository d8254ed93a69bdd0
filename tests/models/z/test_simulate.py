"""The model's people, played: Algorithm 1 recounted, releases compared by hand, and the papers' numbers."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.models import ZModel
from shoal.models.proportions import students_t
from shoal.models.z import simulate as z_simulate
from tests.reference.algorithm1 import algorithm1
from tests.reference.effort import tries

TABLE_2 = [0.2 / rank for rank in range(1, 21)]


@tries(300)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), max_size=50).map(sorted),
    st.integers(1, 15),
    st.integers(1, 8),
)
def test_crowds_are_those_of_algorithm_1(events, window, z):
    times = np.array([time for time, _ in events], dtype=np.float64)
    people = np.array([person for _, person in events], dtype=np.int64)
    expected = algorithm1(((time, person, "a") for time, person in events), z=z, window=window)
    assert (z_simulate.crowds(times, people, float(window)) >= z).tolist() == expected


def test_the_window_is_closed():
    times, people = np.array([0.0, 5.0, 5.5]), np.array([1, 2, 3])
    assert z_simulate.crowds(times, people, 5.0).tolist() == [1, 2, 2]


def by_algorithm_1(users, rates, window, z, k, seed, run):
    """The same exposures through the twin; who shows the same set is counted in a dict."""
    events = sorted(
        (time, int(person), attribute)
        for attribute, times, people in z_simulate.exposures(users, rates, window, seed, run)
        for time, person in zip(times.tolist(), people.tolist(), strict=True)
    )
    shown = {person: set() for person in range(users.sum())}
    for (time, person, attribute), is_released in zip(events, algorithm1(events, z=z, window=window), strict=True):
        if is_released and time >= window:
            shown[person].add(attribute)
    sizes = Counter(frozenset(one) for one in shown.values())
    classes = np.repeat(np.arange(len(users)), users)
    found = np.zeros((len(users), 3), dtype=np.int64)
    for person, released in shown.items():
        is_alike = sizes[frozenset(released)] >= k
        found[classes[person]] += (is_alike, bool(released), is_alike and bool(released))
    return found


@pytest.mark.parametrize(("sizes", "seed"), [((30,), 1), ((12, 25), 2), ((5, 1, 20), 3)])
def test_a_run_is_algorithm_1_on_its_exposures(sizes, seed):
    users = np.array(sizes)
    rates = np.array([[0.3, 0.1, 0.0, 0.05, 0.02]] * len(sizes)) * np.arange(1, len(sizes) + 1)[:, None]
    zs, ks = [1, 3, 8, 40], [2, 3]
    found = z_simulate.play(users, rates, 3.0, zs, ks, runs=3, seed=seed)
    for run in range(3):
        for i, z in enumerate(zs):
            for j, k in enumerate(ks):
                expected = by_algorithm_1(users, rates, 3.0, z, k, seed, run)
                assert found[run, i, j].tolist() == expected.tolist()
    assert found[:, 0, 0, :, z_simulate.SHOWN].any()
    assert not found[:, 3, 0, :, z_simulate.SHOWN].any()


def test_what_is_published_is_what_is_compared():
    """With one attribute, everyone who shows it is alike."""
    users, rates = np.array([40]), np.array([[0.2]])
    shares = z_simulate.publishing(users, rates, 2.0, [5], runs=4, seed=1)
    shown = z_simulate.play(users, rates, 2.0, [5], [2], runs=4, seed=1)[:, 0, 0, 0, z_simulate.SHOWN]
    assert shares[:, 0, 0].tolist() == (shown / 40).tolist()


def test_exposures_are_poisson():
    """As many as expected, and each person as often."""
    users, rates = np.array([200, 100]), np.array([[0.5], [2.0]])
    counts = np.zeros(300)
    for run in range(20):
        for _, times, people in z_simulate.exposures(users, rates, 4.0, 7, run):
            assert 0 <= times[0] <= times[-1] < 8
            assert (np.diff(times) >= 0).all()
            counts += np.bincount(people, minlength=300)
    assert counts[:200].mean() == pytest.approx(20 * 8 * 0.5, rel=0.03)
    assert counts[200:].mean() == pytest.approx(20 * 8 * 2.0, rel=0.03)
    assert counts[:200].var() == pytest.approx(80, rel=0.4)  # of a Poisson count the variance is the mean


@pytest.mark.compiled
@pytest.mark.parametrize(("z", "expected"), [(150, 0.424692), (250, 0.930808)])
def test_the_papers_setting(z, expected):
    found = ZModel(1000, TABLE_2, 12).p_k_anonymous(z, 2, method="simulate", runs=120, seed=5)
    assert found.value == pytest.approx(expected, abs=0.02)
    assert found.lower < found.value < found.upper
    assert found.upper - found.lower < 0.05
    assert (found.method, found.confidence, found.by_class) == ("simulate", 0.999, ())


@pytest.mark.compiled
def test_the_papers_classes():
    fast = [2 * rate / 1.1 for rate in TABLE_2]
    listed = [{"users": 500, "rates": fast}, {"users": 500, "rates": [0.1 * one for one in fast]}]
    found = ZModel(classes=listed, window=12).p_k_anonymous(50, 2, method="simulate", runs=100)
    assert [one.value for one in found.by_class] == pytest.approx([0.024877, 0.796809], abs=0.01)
    assert found.value == pytest.approx(0.410843, abs=0.01)
    assert found.value == pytest.approx(np.mean([one.value for one in found.by_class]))
    assert found.lower < 0.410843 < found.upper


def test_among_people_who_show_anything():
    """Counted again from what was played; where no one is shown nothing is known."""
    users, rates = np.array([30, 20]), np.array([[0.2, 0.1], [0.02, 0.3]])
    asked = {"runs": 4, "seed": 3, "confidence": 0.9, "among_shown": True}
    found = z_simulate.simulated(users, rates, 2.0, 6, 2, **asked)
    counted = z_simulate.play(users, rates, 2.0, [6], [2], runs=4, seed=3)[:, 0, 0]
    whole = counted.sum(axis=1)
    assert found.value == pytest.approx(np.mean(whole[:, z_simulate.SHOWN_ALIKE] / whole[:, z_simulate.SHOWN]))
    assert found.value < z_simulate.simulated(users, rates, 2.0, 6, 2, **{**asked, "among_shown": False}).value
    nobody = z_simulate.simulated(users, rates, 2.0, 60, 2, **asked)
    assert (nobody.lower, nobody.upper, nobody.by_class[0].upper) == (0.0, 1.0, 1.0)


def test_the_seed_says_it_all():
    model = ZModel(60, [0.3, 0.3, 0.2, 0.2, 0.1, 0.1], 2)
    first, again, other = (model.p_k_anonymous(5, 2, method="simulate", runs=5, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_students_interval():
    """Against tables; with one degree of freedom it is Cauchy's, whose quantiles are tangents."""
    assert students_t(1, 0.95) == pytest.approx(math.tan(math.pi * 0.475), rel=1e-9)
    assert [round(students_t(n, 0.99), 3) for n in (2, 5, 30, 1000)] == [9.925, 4.032, 2.750, 2.581]
    found = z_simulate.averaged(np.array([0.2, 0.3, 0.4]), 0.95)
    half = 4.302653 * 0.1 / math.sqrt(3)
    assert (found.value, found.lower, found.upper) == pytest.approx((0.3, 0.3 - half, 0.3 + half), abs=1e-6)


def test_progress_is_told():
    calls = []
    z_simulate.play(np.array([5]), np.array([[1.0]]), 1.0, [2], [2], runs=3, seed=1, progress=calls.append)
    assert calls == [1, 2, 3]


def test_wrong_questions_are_told():
    model = ZModel(5, [1.0], 1)
    for wrong in ({"runs": 1}, {"runs": 2.5}, {"confidence": 1.0}, {"confidence": 0.0}):
        with pytest.raises(PolicyError, match=next(iter(wrong))):
            model.p_k_anonymous(1, 2, method="simulate", **wrong)
    with pytest.raises(PolicyError, match='"simulate" would draw'):
        ZModel(10**9, [1.0], 1).p_k_anonymous(1, 2, method="simulate")


def test_the_share_among_people_shown_can_be_simulated_too():
    model = ZModel(users=300, rates=[0.05, 0.02, 0.004], window=10)
    formula = model.p_shown_k_anonymous(60, 2, method="exact")
    played = model.p_shown_k_anonymous(60, 2, method="simulate", runs=40, seed=3)
    assert played.lower - 0.03 <= formula.value <= played.upper + 0.03
    with pytest.raises(PolicyError, match="confidence"):
        model.p_shown_k_anonymous(60, 2, method="simulate", confidence=2)
