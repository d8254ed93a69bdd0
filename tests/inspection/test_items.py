"""Trees over items: every item once, popular ones apart from rare ones, counts of rare ones not revealed."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.inspection.columns.facts import look
from shoal.inspection.sets import count_items, popular_tree
from tests.reference.effort import tries


@tries(60)
@given(st.dictionaries(st.text("ab +*1", min_size=1, max_size=6).filter(str.strip), st.integers(1, 30), min_size=2))
def test_every_item_is_a_leaf_once(counts):
    tree = shoal.Hierarchy.from_nested(popular_tree(counts, 3))
    leaves = [label for label, below in zip(tree.labels, tree.leaf_counts, strict=True) if below == 1]
    assert {leaf for leaf in leaves if leaf in counts} == set(counts)
    assert tree.leaf_counts.max() == len(counts)


def test_rare_items_do_not_show_how_rare_they_are():
    some = {f"item {number}": 20 for number in range(9)} | {"x": 1, "y": 4, "z": 2}
    others = {**some, "x": 4, "y": 1, "z": 3}
    assert popular_tree(some, 5) == popular_tree(others, 5)
    assert popular_tree(some, 2) != popular_tree(others, 2)


def test_no_label_names_an_item_that_few_people_have():
    counts = {f"item {number}": 20 for number in range(8)} | {f"Jane {number}": 1 for number in range(70)}
    tree = shoal.Hierarchy.from_nested(popular_tree(counts, 5))
    assert [label for label in tree.labels if "Jane" in label and label not in counts] == []
    assert "5 rare items (2)" in tree.labels


@pytest.mark.parametrize("by_person", [True, False])
def test_items_are_counted_in_people(by_person):
    table = pa.table({"who": ["ann", "ann", "bob", None], "item": ["tea", "tea ", "tea", "gin"]})
    facts = look(table)
    found = count_items(facts["item"], facts["who"] if by_person else None)
    assert found == ({"tea": 2} if by_person else {"tea": 3, "gin": 1})


def test_lists_and_joined_texts_are_counted_alike():
    sets = [["tea", "gin"], ["tea", "tea", None], [], ["rum", "tea"]] * 30
    listed = count_items(look(pa.table({"items": sets}))["items"], None)
    assert listed == {"tea": 90, "gin": 30, "rum": 30}


def test_it_loses_less_than_an_alphabetical_tree():
    baskets = [{"a1"} | {f"b{row % 3}"} | ({f"a{2 + row % 40}"} if row % 7 == 0 else set()) for row in range(600)]
    counts = count_items(look(pa.table({"items": [sorted(one) for one in baskets]}))["items"], None)
    trees = (shoal.Hierarchy.from_nested(popular_tree(counts, 5)), shoal.Hierarchy.balanced(sorted(counts), 5))
    popular, named = (shoal.KmApriori(k=5, m=1, generalize=tree).anonymize(baskets) for tree in trees)
    assert popular.error < named.error
    assert {"a1", "b0", "b1", "b2"} <= set(popular.blocks)
