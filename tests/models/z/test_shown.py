"""The probability over people who are shown: against enumeration, with bounds that hold."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.models.z import classes as z_classes
from shoal.models.z.model import ZModel
from tests.reference.effort import tries

TABLE_2 = [0.2 / rank for rank in range(1, 21)]


def chance_of_few(sizes, chances, k):
    """The probability that fewer than k of people of several classes are among those of a chance, by counting up."""
    counts = [1.0]
    for size, chance in zip(sizes, chances, strict=True):
        own = [math.comb(size, j) * chance**j * (1 - chance) ** (size - j) for j in range(size + 1)]
        counts = [
            sum(counts[i] * own[j - i] for i in range(len(counts)) if 0 <= j - i < len(own))
            for j in range(len(counts) + size)
        ]
    return sum(counts[:k])


def naive_shown(sizes, published, k):
    """Over everybody of whom something is shown: the definition, set by set."""
    above = below = 0.0
    for shown in product((0, 1), repeat=len(published[0])):
        if not any(shown):
            continue
        chances = [math.prod(p if one else 1 - p for one, p in zip(shown, own, strict=True)) for own in published]
        for c, size in enumerate(sizes):
            others = [other - (i == c) for i, other in enumerate(sizes)]
            below += size * chances[c]
            above += size * chances[c] * (1 - chance_of_few(others, chances, k - 1))
    return max(above / below, 0.0) if below else None  # sums of chances round to a little above 1


RATES = st.lists(st.sampled_from([0.0, 0.001, 0.02, 0.1, 0.3, 2.0]), min_size=1, max_size=5)


@tries(60)
@given(
    users=st.integers(1, 12), k=st.integers(2, 4), z=st.integers(1, 8), window=st.sampled_from([0.5, 3, 40]),
    rates=RATES,
)  # fmt: skip
def test_one_class_against_its_definition(users, k, z, window, rates):
    model = ZModel(users, rates, window)
    published = [model.p_published(z).tolist()]
    expected = naive_shown([users], published, k)
    assert model.p_shown(z) == pytest.approx(1 - math.prod(1 - p for p in published[0]), abs=1e-12)
    exact = model.p_shown_k_anonymous(z, k, method="exact")
    if model.p_shown(z) < 1e-7:
        return  # digits are lost where hardly anybody is shown; the bounds say so
    assert exact.value == pytest.approx(expected, abs=1e-9 / model.p_shown(z))
    for width in (0.2, 1e-3):
        found = model.p_shown_k_anonymous(z, k, width=width)
        for one in (found, exact):
            assert one.lower - 1e-12 <= expected <= one.upper + 1e-12
        assert found.upper - found.lower <= width + 1e-8 / model.p_shown(z)


@tries(40)
@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=3), k=st.integers(2, 4), z=st.integers(1, 6),
    rates=st.data(),
)  # fmt: skip
def test_classes_against_the_definition(sizes, k, z, rates):
    length = rates.draw(st.integers(1, 4))
    each = st.lists(st.sampled_from([0.0, 0.02, 0.1, 0.3, 2.0]), min_size=length, max_size=length)
    model = ZModel(classes=[{"users": size, "rates": rates.draw(each)} for size in sizes], window=3)
    expected = naive_shown(sizes, model.p_published(z).tolist(), k)
    if model.p_shown(z) < 1e-7:
        return
    exact = model.p_shown_k_anonymous(z, k)
    assert exact.method == "exact"
    assert exact.value == pytest.approx(expected, abs=1e-9 / model.p_shown(z))
    assert exact.lower <= expected <= exact.upper
    drawn = model.p_shown_k_anonymous(z, k, method="sample", samples=400, confidence=1 - 1e-9)
    assert drawn.lower <= expected + 1e-9
    assert drawn.upper >= expected - 1e-9


@pytest.mark.compiled
def test_the_papers_setting_over_people_shown():
    model = ZModel(1000, TABLE_2, 12)
    for z in (100, 250, 600, 900):
        exact = model.p_shown_k_anonymous(z, 2, method="exact")
        found = model.p_shown_k_anonymous(z, 2)
        assert found.lower <= exact.value <= found.upper
        assert found.upper - found.lower <= 1.01e-4
        drawn = model.p_shown_k_anonymous(z, 2, method="sample", samples=20_000)
        assert drawn.lower <= exact.value <= drawn.upper
        assert drawn.upper - drawn.lower < 0.03


@pytest.mark.compiled
def test_rare_showing_is_drawn_all_the_same():
    """One of 10,000 is shown; drawing everybody would find none of them."""
    model = ZModel(classes=[{"users": 500, "rates": TABLE_2}, {"users": 500, "rates": TABLE_2}], window=0.3)
    single = ZModel(1000, TABLE_2, 0.3)
    assert 1e-6 < single.p_shown(90) < 1e-3
    drawn = model.p_shown_k_anonymous(90, 2, method="sample", samples=20_000)
    exact = single.p_shown_k_anonymous(90, 2, method="exact")
    assert drawn.lower <= exact.value <= drawn.upper


def test_where_nobody_is_shown_nothing_is_known():
    alike = {"users": 5, "rates": [0.0, 0.0]}
    for model in (ZModel(5, [0.0, 0.0], 1), ZModel(classes=[alike, alike], window=1)):
        for method in ("exact", "sample"):
            found = model.p_shown_k_anonymous(2, 2, method=method)
            assert (found.lower, found.upper) == (0.0, 1.0)
    mixed = ZModel(classes=[{"users": 5, "rates": [0.0]}, {"users": 5, "rates": [0.5]}], window=1)
    silent, _ = mixed.p_shown_k_anonymous(1, 2).by_class
    assert (silent.lower, silent.upper) == (0.0, 1.0)
    silent, _ = mixed.p_shown_k_anonymous(1, 2, method="sample", samples=200).by_class
    assert (silent.lower, silent.upper) == (0.0, 1.0)


def test_bad_parameters():
    model = ZModel(5, [0.1], 1)
    for wrong in ({"samples": 0}, {"confidence": 1.0}):
        with pytest.raises(PolicyError):
            model.p_shown_k_anonymous(2, 2, method="sample", **wrong)
    with pytest.raises(PolicyError, match="k"):
        model.p_shown_k_anonymous(2, 1)


def test_values_that_hardly_show_are_left_out_of_drawing_but_not_of_the_interval():
    rates = [0.4, *[1e-7] * 300]
    model = ZModel(classes=[{"users": 6, "rates": rates}, {"users": 6, "rates": rates}], window=1)
    drawn = model.p_shown_k_anonymous(1, 2, method="sample", samples=300)
    assert drawn.lower <= naive_shown([12], [model.p_published(1)[0, :1].tolist()], 2) <= drawn.upper


@tries(30)
@given(
    users=st.lists(st.integers(1, 400), min_size=2, max_size=3), goal=st.integers(0, 140),
    shares=st.lists(st.sampled_from([0.0, 1e-6, 0.01, 0.2, 0.5, 0.97]), min_size=3, max_size=3),
)  # fmt: skip
def test_reaching_a_crowd_is_the_same_listed_and_convolved(users, goal, shares):
    """What is listed for small crowds, convolved for large ones and skipped by Chernoff's bound is one probability."""
    trials, exposed = np.array(users), np.array(shares[: len(users)])
    found = z_classes._reach(trials, np.stack([exposed, exposed[::-1]], axis=1), goal)
    for value, own in zip(found, (exposed, exposed[::-1]), strict=True):
        assert value == pytest.approx(z_classes._at_least(trials, own, goal), abs=1e-12)
