"""Taking items out of sets: what is left is shared by k people, and little is lost."""

from __future__ import annotations

from collections import Counter
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.methods.z.epochs import shared_sets as z_sets
from shoal.methods.z.epochs.shared_sets import shared_by
from tests.reference.effort import tries
from tests.reference.z_combining import as_entries, least_loss

SETS = st.lists(st.dictionaries(st.integers(0, 7), st.integers(1, 5), max_size=6), max_size=14)


def reduced(sets, k):
    """What is left of each set, and the weight that went."""
    owners, items, weights = as_entries(sets)
    keep = shared_by(k, owners, items, weights)
    left = [set(items[keep & (owners == person)].tolist()) for person in range(len(sets))]
    return left, int(weights[~keep].sum())


@given(SETS, st.integers(2, 5))
@tries(120)
def test_every_set_that_is_left_is_shared(sets, k):
    left, lost = reduced(sets, k)
    assert all(found <= set(given) for found, given in zip(left, sets, strict=True))
    assert all(count >= k for found, count in Counter(map(frozenset, left)).items() if found)
    if len(sets) <= 8:
        assert lost >= least_loss(sets, k)


@given(SETS, st.integers(2, 5))
@tries(60)
def test_the_last_look_finds_nothing_to_take_out(sets, k):
    with mock.patch.object(z_sets, "_only_shared", lambda _sets, _k, kept: kept):
        left, _ = reduced(sets, k)
    assert all(count >= k for found, count in Counter(map(frozenset, left)).items() if found)


def test_the_last_look_takes_out_what_a_search_gone_wrong_left():
    with mock.patch.object(z_sets, "_group", lambda sets, _k: np.arange(len(sets))):  # everyone by themselves
        assert reduced([{0: 1, 1: 1}, {0: 1, 1: 1}, {0: 1}, {1: 1}], 2) == ([{0, 1}, {0, 1}, set(), set()], 2)


@given(SETS, st.integers(2, 4))
@tries(60)
def test_people_who_are_alike_lose_nothing(sets, k):
    whole = Counter(frozenset(given) for given in sets)
    left, _ = reduced(sets, k)
    for found, given_set in zip(left, sets, strict=True):
        if whole[frozenset(given_set)] >= k:
            assert found == set(given_set)


def test_nobody_has_anything():
    assert reduced([], 2) == ([], 0)
    assert reduced([{}, {}], 2) == ([set(), set()], 0)
    assert reduced([{0: 3}], 2) == ([set()], 3)


def test_the_lighter_item_goes():
    assert reduced([{0: 1, 1: 5}, {1: 5, 2: 1}], 2) == ([{1}, {1}], 2)
    assert reduced([{0: 9, 1: 1}, {0: 9, 2: 1}, {1: 5}], 2) == ([{0}, {0}, set()], 7)


def test_somebody_joins_a_group_that_shows_less():
    assert reduced([{0: 1}, {0: 1}, {0: 4, 1: 1}], 2) == ([{0}] * 3, 1)


def random_sets(seed, people, kinds, mean):
    random = np.random.default_rng(seed)
    chances = np.minimum(mean / np.arange(1, kinds + 1) / sum(1 / np.arange(1, kinds + 1)), 0.9)
    return [
        {item: int(random.integers(1, 4)) for item in range(kinds) if random.random() < chances[item]}
        for _ in range(people)
    ]


@pytest.mark.parametrize(("k", "people", "kinds"), [(2, 8, 6), (3, 8, 5)])
def test_little_more_is_lost_than_must_be(k, people, kinds):
    """Over 25 small cases at most an eighth more than the least there is."""
    cases = [random_sets(seed, people, kinds, 2.5) for seed in range(25)]
    lost = sum(reduced(sets, k)[1] for sets in cases)
    least = sum(least_loss(sets, k) for sets in cases)
    assert least <= lost <= 1.125 * least


@pytest.mark.compiled
def test_many_people_with_large_sets():
    sets = random_sets(5, 400, 60, 15)
    left, lost = reduced(sets, 3)
    assert all(count >= 3 for found, count in Counter(map(frozenset, left)).items() if found)
    assert lost < 0.6 * sum(sum(given.values()) for given in sets)
