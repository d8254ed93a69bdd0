"""The model of z-anonymity: the papers' numbers, enumeration, and bounds that hold."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from shoal.errors import PolicyError
from shoal.kernels.z.binomials import (
    at_least,
    chances_of,
    chances_of_logs,
    deviance,
    log_chance,
    spread_out,
    stirling_error,
    tails,
    tails_of_each,
    tails_of_logs,
)
from shoal.models.z.model import ZModel
from tests.reference.effort import tries

TABLE_2 = [0.2 / rank for rank in range(1, 21)]


@njit
def tail(found, trials, share):
    return at_least(found, trials, share)


@njit
def log_pmf(found, trials, share):
    return log_chance(found, trials, share)


@njit
def parts(x, mean):
    return stirling_error(x), deviance(x, mean)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("z", "expected"),
    [
        (100, (0.173974, 0.067909, 0.033873)),
        (150, (0.424692, 0.248550, 0.163040)),
        (250, (0.930808, 0.869856, 0.814907)),
        (350, (0.991965, 0.980913, 0.968174)),
    ],
)
def test_the_papers_setting(z, expected):
    model = ZModel(1000, TABLE_2, 12)
    for k, value in zip((2, 3, 4), expected, strict=True):
        exact, lattice = model.p_k_anonymous(z, k, method="exact"), model.p_k_anonymous(z, k)
        assert round(exact.value, 6) == value
        assert lattice.lower <= exact.value <= lattice.upper
        assert lattice.upper - lattice.lower <= 1e-4


@pytest.mark.compiled
def test_other_settings_of_the_paper():
    assert round(ZModel(1000, TABLE_2, 8).p_k_anonymous(150, 2, method="exact").value, 6) == 0.855431
    model = ZModel(1000, TABLE_2, 12)
    assert (round(model.entropy(1), 6), round(model.entropy(150), 6)) == (9.991294, 8.045191)
    assert model.information_loss(150) == pytest.approx(9.991294 - 8.045191, abs=1e-6)


@pytest.mark.compiled
def test_it_is_not_monotone_in_z():
    model = ZModel(1000, TABLE_2, 12)
    found = {z: model.p_k_anonymous(z, 2, method="exact").value for z in (340, 352, 378, 411, 441, 487, 536, 591)}
    assert found[340] > found[352]
    assert found[378] > found[411]
    assert found[441] > found[487]
    assert found[536] > found[591]


def naive(users, shares, k):
    """Equation 5 as it stands."""
    total = 0.0
    for shown in product((0, 1), repeat=len(shares)):
        chance = 1.0
        for one, share in zip(shown, shares, strict=True):
            chance *= share if one else 1 - share
        few = sum(
            math.comb(users - 1, j) * chance**j * (1 - chance) ** (users - 1 - j) for j in range(min(k - 1, users))
        )
        total += chance * (1 - few)
    return total


@tries(60)
@given(
    users=st.integers(1, 30), k=st.integers(2, 5), z=st.integers(1, 12), window=st.sampled_from([0.5, 3, 40]),
    rates=st.lists(st.sampled_from([0.0, 0.001, 0.02, 0.1, 0.3, 2.0]), min_size=1, max_size=6),
)  # fmt: skip
def test_bounds_hold_against_enumeration(users, k, z, window, rates):
    model = ZModel(users, rates, window)
    exposed = [-math.expm1(-rate * window) for rate in rates]
    published = []
    for share in exposed:
        others = range(z - 1, users)
        passes = sum(math.comb(users - 1, j) * share**j * (1 - share) ** (users - 1 - j) for j in others)
        published.append(share * passes)
    assert np.allclose(model.p_published(z), published, rtol=1e-11, atol=1e-15)
    expected = naive(users, published, k)
    assert model.p_k_anonymous(z, k, method="exact").value == pytest.approx(expected, abs=1e-12)
    for width in (0.5, 1e-2, 1e-5):
        found = model.p_k_anonymous(z, k, width=width)
        assert found.lower - 1e-15 <= expected <= found.upper + 1e-15
        assert found.upper - found.lower <= width


@tries(200)
@given(trials=st.integers(1, 60), found=st.integers(0, 61), parts_of_97=st.integers(1, 96))
def test_tails_against_fractions(trials, found, parts_of_97):
    exact, share = Fraction(parts_of_97, 97), parts_of_97 / 97
    expected = sum(math.comb(trials, j) * exact**j * (1 - exact) ** (trials - j) for j in range(found, trials + 1))
    assert tail(float(found), float(trials), share) == pytest.approx(float(expected), rel=1e-11, abs=1e-300)


@pytest.mark.compiled
@pytest.mark.parametrize("share", [1e-9, 2.5e-7, 0.001, 0.3])
def test_tails_of_a_thousand_million(share):
    """Against the largest term by its definition, and against one another: P(X >= x) - P(X >= x + 1) = P(X = x)."""
    trials = 1e9
    for found in {math.floor(trials * share), math.floor(trials * share * 1.0001) + 1, 3}:
        chance = math.exp(log_pmf(float(found), trials, share))
        step = tail(float(found), trials, share) - tail(found + 1.0, trials, share)
        assert step == pytest.approx(chance, rel=1e-6, abs=1e-13)
    mean = trials * share
    if mean < 1000:  # nearly Poisson
        poisson = math.exp(-mean) * sum(mean**j / math.factorial(j) for j in range(5))
        assert 1 - tail(5.0, trials, share) == pytest.approx(poisson, rel=1e-6)


def test_the_parts_of_a_probability():
    assert parts(3.0, 3.0)[1] == 0.0
    assert parts(1e9, 1e9 + 1)[1] == pytest.approx(5e-10, rel=1e-6)
    assert parts(20.0, 1.0)[0] == pytest.approx(
        math.lgamma(21) - 20.5 * math.log(20) + 20 - 0.5 * math.log(2 * math.pi)
    )


@tries(80)
@given(st.lists(st.tuples(st.floats(0.01, 0.5), st.integers(0, 9)), max_size=6), st.integers(1, 20))
def test_spreading_out_against_enumeration(terms, cells):
    mass = np.zeros(cells + 1)
    mass[0] = 1.0
    spread_out(np.array([q for q, _ in terms]), np.array([n for _, n in terms], dtype=np.int64), mass)
    expected = np.zeros(cells + 1)
    for shown in product((0, 1), repeat=len(terms)):
        chance = math.prod(q if one else 1 - q for one, (q, _) in zip(shown, terms, strict=True))
        expected[min(sum(n for one, (_, n) in zip(shown, terms, strict=True) if one), cells)] += chance
    assert np.allclose(mass, expected, atol=1e-12)


def test_rows_of_tails():
    out, logs = np.empty(3), np.empty(3)
    tails(2.0, 10.0, np.array([0.0, 0.5, 1.0]), out)
    assert out.tolist() == pytest.approx([0.0, 1 - 11 / 1024, 1.0])
    chances_of(0.0, 2.0, 0.5, logs)
    assert logs.tolist() == pytest.approx([0.25, 0.5, 0.25])
    chances_of_logs(1.0, 2.0, np.array([math.log(0.5), -np.inf, 0.0]), logs)
    assert logs.tolist() == pytest.approx([0.5, 0.0, 0.0])
    tails_of_logs(2.0, 10.0, math.log(0.5), math.log(2), logs)
    tails(2.0, 10.0, np.array([0.5, 0.25, 0.125]), out)
    assert logs.tolist() == pytest.approx(out.tolist())
    tails_of_each(2.0, np.array([10.0, 2.0, 2.0]), np.array([0.5, 0.5, 1.0]), out)
    assert out.tolist() == pytest.approx([1 - 11 / 1024, 0.25, 1.0])


@pytest.mark.compiled
@pytest.mark.parametrize(("users", "z"), [(1000, 50), (10**5, 500), (10**9, 1000), (10**9, 10**6)])
def test_many_attributes_have_narrow_bounds(users, z):
    model = ZModel(users, [0.2 / rank for rank in range(1, 10_001)], 12)
    found = model.p_k_anonymous(z, 2, width=1e-3)
    assert 0 <= found.lower <= found.value <= found.upper <= 1
    assert found.upper - found.lower <= 1e-3


def test_who_is_alone_is_never_k_anonymous_and_silence_always_is():
    assert ZModel(1, [1.0], 1).p_k_anonymous(1, 2).upper <= 1e-4
    assert ZModel(50, [0.0], 1).p_k_anonymous(1, 2).lower >= 1 - 1e-4
    assert ZModel(50, [0.1], 1).p_k_anonymous(51, 2).lower >= 1 - 1e-4  # nothing passes, nothing tells anybody apart
    assert ZModel(50, [0.1], 1).released_share(51) == 0.0


@pytest.mark.compiled
def test_classes_of_activity():
    """The paper's classes: 500 people each, one ten times as active, the mean rate kept."""
    fast = [2 * rate / 1.1 for rate in TABLE_2]
    model = ZModel(
        classes=[{"users": 500, "rates": fast}, {"users": 500, "rates": [0.1 * one for one in fast]}], window=12
    )
    found = model.p_k_anonymous(50, 2, method="exact")
    assert [round(one.value, 6) for one in found.by_class] == [0.024877, 0.796809]
    assert round(found.value, 6) == 0.410843
    drawn = model.p_k_anonymous(50, 2, method="sample", samples=20_000)
    assert drawn.lower <= found.value <= drawn.upper
    assert all(one.lower <= exact.value <= one.upper for one, exact in zip(drawn.by_class, found.by_class, strict=True))
    assert drawn.confidence == pytest.approx(0.998)


@tries(30)
@given(
    parts_=st.lists(st.integers(1, 12), min_size=2, max_size=3), k=st.integers(2, 4), z=st.integers(1, 8),
    rates=st.lists(st.sampled_from([0.0, 0.02, 0.3, 2.0]), min_size=1, max_size=5),
)  # fmt: skip
def test_classes_that_are_alike_are_one(parts_, k, z, rates):
    whole = ZModel(sum(parts_), rates, 1)
    split = ZModel(classes=[{"users": users, "rates": rates} for users in parts_], window=1)
    assert np.allclose(split.p_published(z), whole.p_published(z), atol=1e-12)
    expected = whole.p_k_anonymous(z, k, method="exact").value
    found = split.p_k_anonymous(z, k, method="exact")
    assert found.value == pytest.approx(expected, abs=1e-9)
    assert all(one.value == pytest.approx(expected, abs=1e-9) for one in found.by_class)
    assert split.entropy(z) == pytest.approx(whole.entropy(z), abs=1e-12)
    assert split.released_share(z) == pytest.approx(whole.released_share(z), abs=1e-12)


def test_classes_with_other_interests_are_enumerated_one_by_one():
    rates = ([0.5, 0.0, 0.1], [0.0, 0.4, 0.1])
    sizes = (3, 4)
    model = ZModel(classes=[{"users": n, "rates": own} for n, own in zip(sizes, rates, strict=True)], window=2)
    published = model.p_published(2)
    for c in range(2):
        total = 0.0
        for shown in product((0, 1), repeat=3):
            chances = [
                math.prod(p if one else 1 - p for one, p in zip(shown, published[i], strict=True)) for i in range(2)
            ]
            others = [sizes[i] - (i == c) for i in range(2)]
            nobody = math.prod((1 - chances[i]) ** others[i] for i in range(2))
            total += chances[c] * (1 - nobody)
        assert model.p_k_anonymous(2, 2, method="exact").by_class[c].value == pytest.approx(total, abs=1e-12)


def test_a_window_may_be_a_duration():
    assert ZModel(10, [0.001], "1h").window == 3600
    assert ZModel(10, [0.001], "1h").p_exposed()[0] == pytest.approx(1 - math.exp(-3.6))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((0, [1.0], 1), "users"), ((10**10, [1.0], 1), "users"), ((5, [], 1), "rates"), ((5, [-1.0], 1), "rates"),
        ((5, ["a"], 1), "rates"), ((5, [1.0], 0), "window"), ((5, [1.0], "soon"), "window"),
        ((5, [math.nan], 1), "rates"),
    ],
)  # fmt: skip
def test_wrong_settings_are_told(given, words):
    with pytest.raises(PolicyError, match=words):
        ZModel(*given)


def test_wrong_classes_are_told():
    one = {"users": 5, "rates": [1.0]}
    for wrong in ({"classes": []}, {"classes": 3}, {"classes": [one, {"users": 5, "rates": [1.0, 2.0]}]},
                  {"classes": [one], "users": 3}, {"classes": [{"users": 5}]}):  # fmt: skip
        with pytest.raises(PolicyError):
            ZModel(window=1, **wrong)


def test_wrong_questions_are_told():
    model = ZModel(5, [1.0] * 30, 1)
    for z, k, options in ((0, 2, {}), (1, 1, {}), (1, 2, {"method": "magic"}), (1, 2, {"width": 0}), (True, 2, {})):
        with pytest.raises(PolicyError):
            model.p_k_anonymous(z, k, **options)
    with pytest.raises(PolicyError, match="at most 26"):
        model.p_k_anonymous(1, 2, method="exact")
