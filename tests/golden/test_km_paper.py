"""The worked example of the paper on k^m-anonymity: Table I with its tree gives Figure 1."""

from __future__ import annotations

import pytest

import shoal
from tests.reference import km as naive

TREE = {"US": {"West": ["LA", "Seattle"], "East": ["New York", "Boston"]}}
TABLE_I = [
    {"LA"},
    {"LA", "Seattle"},
    {"New York", "Boston"},
    {"New York", "Boston"},
    {"LA", "Seattle", "New York"},
    {"LA", "Seattle", "New York"},
    {"LA", "Seattle", "New York", "Boston"},
]
FIGURE_1 = [
    {"LA"},
    {"LA", "Seattle"},
    {"East"},
    {"East"},
    {"LA", "Seattle", "East"},
    {"LA", "Seattle", "East"},
    {"LA", "Seattle", "East"},
]
BLOCKS = {"East": ("Boston", "New York"), "LA": ("LA",), "Seattle": ("Seattle",)}
CITIES = {"Boston": (-71.06, 42.36), "LA": (-118.24, 34.05), "New York": (-74.01, 40.71), "Seattle": (-122.33, 47.61)}


def test_the_statements_of_the_paper_about_table_i():
    """Not 2²-anonymous: {LA, Boston} and {Seattle, Boston} occur in the last record alone; all cities occur twice."""
    assert naive.rare(TABLE_I, 1, 2) == set()
    assert naive.rare(TABLE_I, 2, 2) == {frozenset({"LA", "Boston"}), frozenset({"Seattle", "Boston"})}


def check_figure_1(**settings):
    made = shoal.KmAnonymity(2, 2, generalize=shoal.Hierarchy.from_nested(TREE), **settings)
    check(made.anonymize(TABLE_I))


def check(result):
    assert result.records == FIGURE_1
    assert result.blocks == BLOCKS
    assert result.error == pytest.approx(8 * (2 / 4) / 17)  # 8 of 17 occurrences fall into a block of 2 of 4 items
    assert naive.rare(result.records, 1, 2) == naive.rare(result.records, 2, 2) == set()
    assert sorted(map(sorted, result.published()["items"].to_pylist())) == sorted(map(sorted, FIGURE_1))


@pytest.mark.parametrize("settings", [{"sigma": 1}, {"sigma": 0.99}, {"sigma": 0.9, "counted": 0}])
def test_figure_1(settings):
    check_figure_1(**settings)


@pytest.mark.compiled
def test_figure_1_by_the_paper_s_chain():
    check_figure_1(sigma=0.99, counted=0, sampler="chain", seed=1)


def test_figure_1_for_certain():
    check(shoal.KmApriori(2, 2, generalize=shoal.Hierarchy.from_nested(TREE)).anonymize(TABLE_I))


def test_example_1_with_distances():
    """Boston is closer to New York than LA to Seattle: by distance they are joined too."""
    places = shoal.Places(list(CITIES), *zip(*CITIES.values(), strict=True))
    result = shoal.KmAnonymity(2, 2, 1, generalize=places).anonymize(TABLE_I)
    assert ("Boston", "New York") in result.blocks.values()
    assert len(result.blocks) == 3
    assert result.records == [{"Boston +1" if city == "East" else city for city in shown} for shown in FIGURE_1]
