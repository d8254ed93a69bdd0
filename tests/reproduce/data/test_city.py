"""The invented city: the published statistics at any number of people, and the same city from the same seed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from numba import njit

from shoal.errors import PolicyError
from shoal.kernels.sets.city import Habits, Lots, draw_lot, fill_lots, visit_places
from shoal.reproduce.data import city as cities
from shoal.reproduce.data.city import City, make_city

PEOPLE = 20_000


@pytest.fixture(scope="module")
def city() -> City:
    """One city for all."""
    return make_city(PEOPLE, seed=3)


def make_lots(weights: list[list[float]]) -> Lots:
    """Walker's tables of weights."""
    rows = np.array(weights)
    lots = Lots(np.empty_like(rows), np.empty(rows.shape, np.int32))
    fill_lots(rows, lots, *np.empty((2, rows.shape[1]), np.int64))
    return lots


def chances(lots: Lots) -> np.ndarray:
    """The chance of every place, from what is kept and what is exchanged."""
    found = np.zeros(lots.keeps.shape)
    for row, place in np.ndindex(*found.shape):
        keeps = min(lots.keeps[row, place], 1.0)
        found[row, place] += keeps
        found[row, lots.instead[row, place]] += 1 - keeps
    return found / found.shape[1]


def test_lots_have_the_chances_of_the_weights() -> None:
    weights = [[1.0, 2.0, 3.0, 4.0], [5.0, 5.0, 5.0, 5.0], [1.0, 0.0, 0.0, 0.0], [0.01, 3.0, 9.0, 0.4]]
    expected = np.array(weights) / np.sum(weights, axis=1, keepdims=True)
    assert chances(make_lots(weights)) == pytest.approx(expected)


@njit
def draw_many(lots, row, coins, drawn):
    """Draw as kernels do."""
    for number in range(len(drawn)):
        drawn[number] = draw_lot(lots, row, coins)


def test_draw_lot_keeps_to_the_chances() -> None:
    drawn = np.empty(20_000, np.int64)
    draw_many(make_lots([[1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 0.0, 5.0]]), 1, np.array([7], np.uint64), drawn)
    counts = np.bincount(drawn, minlength=4)
    expected = len(drawn) * np.array([1, 2, 0, 5]) / 8
    assert counts[2] == 0
    assert sum((counts[i] - expected[i]) ** 2 / expected[i] for i in (0, 1, 3)) < 18.4  # chi-square, 1 in 10,000


def visits(starts: list[int], first: int, last: int, lots: Lots) -> list[list[int]]:
    """Places of everybody between two people."""
    places = np.full(starts[-1], -1, np.int32)
    habits = Habits(lots, 0.6, np.full(9, 0.5))
    room = np.full(4, -1, np.int64), np.zeros(1, np.uint64)
    visit_places(np.array(starts), first, last, habits, np.array([1, 2], np.uint64), *room, places)
    return [places[begin:end].tolist() for begin, end in pairwise(starts)][first:last]


def test_places_of_a_person_are_different_even_if_there_is_no_other() -> None:
    lots = make_lots([[1.0, 1e-9, 1e-9, 1e-9]] * 5)
    assert [sorted(one) for one in visits([0, 4, 8, 9], 0, 3, lots)] == [[0, 1, 2, 3], [0, 1, 2, 3], [0]]


def test_who_draws_changes_nothing() -> None:
    lots, starts = make_lots([[1.0, 2.0, 3.0, 4.0]] * 5), list(range(0, 40, 2))
    apart = [visits(starts, person, person + 1, lots)[0] for person in range(19)]
    assert visits(starts, 0, 19, lots) == apart
    assert len({tuple(one) for one in apart}) > 5


@pytest.mark.compiled
@pytest.mark.parametrize("people", [2000, PEOPLE, 300_000])
def test_sizes_have_the_published_statistics(people: int) -> None:
    sizes = np.diff(make_city(people, seed=people).starts)
    assert sizes.mean() == pytest.approx(cities.MEAN_SIZE, rel=0.02)
    assert sizes.std() == pytest.approx(cities.SIZE_DEVIATION, rel=0.05)
    assert sizes.min() == 1
    assert sizes.max() <= cities.LONGEST


@pytest.mark.compiled
def test_the_longest_are_as_long_as_published() -> None:
    sizes = cities._draw_sizes(cities.PEOPLE, seed=1)
    assert sizes.max() == pytest.approx(cities.LONGEST, rel=0.05)
    assert sizes.mean() == pytest.approx(cities.MEAN_SIZE, rel=0.001)


@pytest.mark.compiled
def test_towers_and_their_popularity(city: City) -> None:
    assert len(city.places) == cities.TOWERS == len(city.places.sites)
    assert city.places.areas.sum() == pytest.approx(cities.AREA_KM2, rel=0.005)
    people = city.people_per_tower
    assert people.std() / people.mean() == pytest.approx(cities.POPULARITY_VARIATION, rel=0.1)


@pytest.mark.compiled
def test_towers_are_denser_in_the_middle(city: City) -> None:
    middle = city.places.centroids.mean(axis=0)
    distance = city.places.distance(city.places.sites, middle)
    areas = city.places.areas
    assert areas[distance < np.median(distance)].mean() < 0.7 * areas[distance > np.median(distance)].mean()


@pytest.mark.compiled
def test_places_of_a_person_are_near_each_other(city: City) -> None:
    pairs = city.starts[:-1][city.sizes == 2]
    points = np.column_stack([city.places.x, city.places.y])
    first, second = points[city.towers[pairs]], points[city.towers[pairs + 1]]
    together = city.places.distance(first, second)
    strangers = city.places.distance(first, np.roll(second, 1, axis=0))
    assert np.median(together) < 0.7 * np.median(strangers)


@pytest.mark.compiled
def test_records_are_sets_of_names(city: City) -> None:
    records = city.records
    assert isinstance(records, pa.LargeListArray)
    assert len(records) == len(city) == PEOPLE
    listed = records.slice(0, 500).to_pylist()
    assert all(len(set(one)) == len(one) > 0 for one in listed)
    assert {name for one in listed for name in one} <= set(city.places.names)


@pytest.mark.compiled
def test_the_seed_decides(city: City) -> None:
    again, other = make_city(PEOPLE, seed=3), make_city(PEOPLE, seed=4)
    assert np.array_equal(again.towers, city.towers)
    assert again.places == city.places
    assert not np.array_equal(other.starts, city.starts)


def test_a_city_needs_people() -> None:
    with pytest.raises(PolicyError, match="people"):
        make_city(0)
