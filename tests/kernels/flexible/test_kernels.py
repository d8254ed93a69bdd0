"""The parts of the flexible kernels that are tested alone. The others are compared with the naive twin."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit

from shoal.kernels.flexible.blocks import is_published, people_in
from shoal.kernels.flexible.groups import (
    ENTRIES,
    NO_ENTRY,
    NONE,
    find_group,
    join_groups,
    keep_group,
    place_groups,
)
from shoal.kernels.sorting import copy_run, sort_rows
from shoal.methods.flexible.group_table import GroupTable
from shoal.methods.flexible.round_space import RoundSpace
from tests.reference.plain import plain_kernels

SEED = np.array([3, 5], dtype=np.uint64)
WIDE = 2**62

publishing = plain_kernels("flexible.publishing").publishing


@njit
def sort_all(keys, rows, count):
    sort_rows(keys, rows, count)


@njit
def copy_all(source, begin, end, target, at):
    copy_run(source, begin, end, target, at)


@njit
def keep(groups, key, people):
    return keep_group(groups, key, people)


@njit
def find(groups, key):
    return find_group(groups, key)


@njit
def count_people(scratch, persons, rows, begin, end):
    return people_in(scratch, persons, rows, begin, end)


@njit
def has_enough(groups, key, people):
    return is_published(groups, key, people)


@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 33, 100, 1000])
def test_sorting_is_numpys_stable_sort(count):
    random = np.random.default_rng(count)
    given = random.choice([-1, 0, 5, WIDE, -WIDE, 7], size=count)
    keys, rows = np.zeros((2, count + 3), np.int64), np.full((2, count + 3), -9, np.int64)
    keys[0, :count], rows[0, :count] = given, np.arange(count)
    sort_all(keys, rows, count)
    order = np.argsort(given, kind="stable")
    assert keys[0, :count].tolist() == given[order].tolist()
    assert rows[0, :count].tolist() == order.tolist()
    assert rows[0, count:].tolist() == [-9] * 3


def test_copying_a_run():
    target = np.zeros(6, np.int64)
    copy_all(np.arange(10), 3, 6, target, 2)
    assert target.tolist() == [0, 0, 3, 4, 5, 0]


def test_groups_are_found_by_their_whole_key_near_capacity():
    table, random = GroupTable(3, SEED, remember=10**6), np.random.default_rng(1)
    known = {}
    for _ in range(3000):
        key = tuple(random.choice([0, 1, 2, WIDE, -WIDE, NONE, 17], size=3).tolist())
        people = int(random.integers(1, 50))
        table.reserve(1)
        entry = keep(table.groups, np.array(key), people)
        known[key] = (entry, max(people, known.get(key, (0, 0))[1]))
    assert len(table) == len(known) == table.groups.meta[ENTRIES]
    for key, (entry, people) in known.items():
        assert find(table.groups, np.array(key)) == entry
        assert table.groups.counts[entry] == people
    assert find(table.groups, np.array([99, 99, 99])) == NO_ENTRY
    place_groups(table.groups)
    assert all(find(table.groups, np.array(key)) == entry for key, (entry, _) in known.items())


def test_what_is_used_least_recently_is_forgotten_first():
    table = GroupTable(1, SEED, remember=6)
    table.reserve(10)
    for number in range(10):
        table.groups.meta[1] = number
        keep(table.groups, np.array([number]), 3)
    table.forget()
    assert [number for number in range(10) if find(table.groups, np.array([number])) != NO_ENTRY] == [7, 8, 9]
    assert [table.groups.numbers[find(table.groups, np.array([number]))] for number in (7, 8, 9)] == [7, 8, 9]


def test_a_table_comes_back_from_its_arrays():
    table = GroupTable(2, SEED, remember=100)
    table.reserve(70)
    for number in range(70):
        keep(table.groups, np.array([number, -number]), number)
    other = GroupTable(2, SEED, remember=100)
    other.load(table.dump())
    assert [find(other.groups, np.array([number, -number])) for number in range(70)] == list(range(70))
    assert all((other.dump()[name] == array).all() for name, array in table.dump().items())


@pytest.mark.parametrize(
    ("crowd", "in_block", "in_label", "joins"),
    [(3, 3, 2, True), (3, 2, 2, False), (3, 3, 1, False), (4, 3, 3, False), (4, 4, 2, False), (4, 4, 3, True)],
)
def test_a_row_joins_only_what_has_enough_people_for_it(crowd, in_block, in_label, joins):
    table = GroupTable(3, SEED, remember=100)
    table.reserve(2)
    keep(table.groups, np.array([5, 6, NONE]), in_block)
    keep(table.groups, np.array([5, 6, 9]), in_label)
    k_s, joined = np.array([0, 0, 0, 2, 3]), np.zeros(1, np.int64)
    join_groups(
        table.groups, np.array([[5], [6]]), np.array([[9]]), np.array([crowd]), k_s, np.zeros(3, np.int64), joined
    )
    assert (joined[0] != NO_ENTRY) == joins


@pytest.mark.parametrize(("label", "k_s", "expected"), [(9, 4, True), (9, 5, True), (9, 6, False), (8, 1, False)])
def test_a_label_counts_as_published_only_for_enough_people(label, k_s, expected):
    """Density classes need different numbers of people, so a published label may be too small for a later one."""
    table = GroupTable(2, SEED, remember=100)
    table.reserve(1)
    keep(table.groups, np.array([5, 9]), 5)
    assert has_enough(table.groups, np.array([5, label]), k_s) == expected


def test_people_are_counted_once():
    scratch = RoundSpace(labels=1, normal=1, sparse=1).arrays(count=8, people=8, space=8)[0]
    persons = np.array([3, 3, 1, 0, 3])
    assert count_people(scratch, persons, np.array([0, 1, 4]), 0, 3) == 1
    assert count_people(scratch, persons, np.array([0, 2, 3, 1]), 0, 4) == 3
    assert count_people(scratch, persons, np.array([0, 2, 3, 1]), 1, 3) == 2


BLOCK_OF_TUPLE = [0, 0, 1]
K_S, NEED = 2, 3


@pytest.mark.parametrize(
    ("people_of_tuples", "published_tuples", "is_published_block", "expected"),
    [
        ([[1, 2], [3, 4]], [], False, True),
        ([[1, 2], [2, 3]], [], False, True),
        ([[1, 2], [2, 1]], [], False, False),  # two people in all, three needed
        ([[1, 2], [2, 1]], [], True, True),
        ([[1, 2, 3], [4]], [], False, False),  # one person under a label, two needed
        ([[1, 2, 3], [4, 4]], [], False, False),
        ([[1, 2, 3], [4]], [], True, False),
        ([[1, 2, 3], [4]], [1], False, True),
        ([[4], [1, 2, 3]], [], False, False),
        ([[4], [1, 2, 3]], [0], False, True),
    ],
)
def test_people_are_counted_once_more_before_anything_is_published(
    people_of_tuples, published_tuples, is_published_block, expected
):
    persons = [0, *(person for people in people_of_tuples for person in people), 0]
    tuple_of = [2, *(t for t, people in enumerate(people_of_tuples) for _ in people), 2]
    blocks, tuples = np.zeros((2, 16), np.int64), np.zeros((3, 16), np.int64)
    blocks[:, publishing.K_S], blocks[:, publishing.NEED] = K_S, NEED
    blocks[:, publishing.PUBLISHED] = is_published_block
    tuples[:, publishing.BLOCK] = BLOCK_OF_TUPLE
    tuples[published_tuples, publishing.PUBLISHED] = 1
    found = publishing._has_enough(
        SimpleNamespace(persons=persons),
        SimpleNamespace(tick=[0], seen=[0] * 9),
        SimpleNamespace(info=blocks),
        SimpleNamespace(info=tuples),
        SimpleNamespace(tuple_of=tuple_of),
        SimpleNamespace(rows=range(len(persons))),
        1,
        len(persons) - 1,
    )
    assert bool(found) == expected
