from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.auditor.counting import Paths, dense, pair_codes, surplus
from shoal.auditor.hierarchies.hierarchy import Separated
from shoal.auditor.z.crowds import crowds
from shoal.auditor.z.membership import lone_links
from tests.reference.effort import tries

BIG = 2**62
ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.one_of(st.integers(0, 12), st.integers(-BIG, BIG))),
    max_size=30,
).map(lambda rows: sorted(rows, key=lambda row: row[2]))


def by_definition(rows, window, *, ties_together):
    """Count people one row at a time, one pair at a time."""
    counts = []
    for number, (value, _, time) in enumerate(rows):
        people = set()
        for other, (other_value, person, then) in enumerate(rows):
            before = other <= number or (ties_together and then == time)
            if other_value == value and before and then >= time - window:
                people.add(person)
        counts.append(len(people))
    return counts


def as_arrays(rows):
    return (np.array([row[place] for row in rows], np.int64) for place in range(3))


@tries(100)
@given(ROWS, st.integers(0, 14), st.booleans())
@example([(0, 0, 0), (0, 1, 10)], 10, False)  # exactly the window old: counts
@example([(0, 0, 0), (0, 1, 11)], 10, False)  # one older: does not
@example([(0, 0, 5), (0, 0, 5), (0, 1, 5)], 0, True)
@example([(0, 0, 2**63 - 1), (0, 1, 2**63 - 1)], BIG, False)  # the window's end does not overflow
def test_crowds_are_those_of_the_definition(rows, window, together):
    counted = crowds(*as_arrays(rows), window, ties_together=together)
    assert counted.tolist() == by_definition(rows, window, ties_together=together)


def test_the_current_person_always_counts():
    assert crowds(*as_arrays([(0, 0, 5)]), 0, ties_together=False).tolist() == [1]


KEYS = st.lists(st.integers(0, 4), max_size=12)


@tries(100)
@given(KEYS, KEYS)
def test_surplus_counts_keys_beyond_the_known_ones(known, shown):
    left = list(known)
    absent, repeated = surplus(np.array(known, np.int64), np.array(shown, np.int64))
    for number, key in enumerate(shown):
        assert absent[number] == (key not in known)
        assert repeated[number] == (key in known and key not in left)
        if key in left:
            left.remove(key)


@tries(100)
@given(KEYS, KEYS)
def test_lone_links_join_keys_that_stand_once_on_both_sides(known, shown):
    links = lone_links(np.array(known, np.int64), np.array(shown, np.int64)).tolist()
    lone = [key for key in shown if known.count(key) == 1 and shown.count(key) == 1]
    assert links == [known.index(key) if key in lone else -1 for key in shown]


@tries(100)
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1))
def test_dense_numbers_are_equal_exactly_where_the_keys_are(pairs):
    left, right = (np.array(side, np.int64) for side in zip(*pairs, strict=True))
    numbers = dense(left, right).tolist()
    assert len(set(numbers)) == len(set(pairs)) == len(set(zip(numbers, pairs, strict=True)))


def test_pair_codes_are_common_to_both_sides():
    left, right = pair_codes((np.array([1, 2]),), (np.array([2, 3]),))
    assert left[1] == right[0]
    assert len({*left, *right}) == 3


@pytest.fixture
def domains() -> Paths:
    return Paths(["a.b", "b", "*"], Separated(".", keeps_end=True))


def test_paths_climb_to_the_root(domains):
    owner, step, label = domains.expand(np.array([0, -1, 1]))
    assert owner.tolist() == [0, 0, 0, 2, 2]
    assert step.tolist() == [0, 1, 2, 0, 1]
    assert label.tolist() == [0, 1, 2, 1, 2]


def test_paths_stop_at_the_given_depth(domains):
    assert domains.expand(np.array([0, 1]), np.array([1, 9]))[2].tolist() == [0, 1, 1, 2]


def test_level_is_the_place_of_the_published_label(domains):
    assert domains.level(np.array([0, 0, 1, -1]), np.array([1, -1, 0, 1])).tolist() == [1, -1, -1, -1]
