"""Trees as arrays: leaves in order, what neighbours lose, where pairs meet."""

from __future__ import annotations

import random

import numpy as np
import pytest

from shoal.hierarchies import Hierarchy
from shoal.kernels.tuples import layout as t
from shoal.methods.schema_arrays import Leaves, compile_shape
from shoal.schema import Categorical, Numeric
from tests.methods.tuples.driving import grown, leaves_of

NESTED = {"all": {"left": ["a", "b", "c"], "right": {"far": ["d"], "near": {"e": None, "f": None}}}}
TREE = Hierarchy.from_nested(NESTED)


def test_leaves_stand_in_the_order_of_the_tree():
    leaves = Leaves(TREE)
    assert [TREE.labels[node] for node in leaves.node] == ["a", "b", "c", "d", "e", "f"]
    assert leaves.ranks == {label: rank for rank, label in enumerate("abcdef")}
    assert len(leaves) == 6
    spans = dict(zip(TREE.labels, zip(leaves.first.tolist(), leaves.last.tolist(), strict=True), strict=True))
    assert spans == {
        "all": (0, 5), "left": (0, 2), "a": (0, 0), "b": (1, 1), "c": (2, 2), "right": (3, 5), "far": (3, 3),
        "d": (3, 3), "near": (4, 5), "e": (4, 4), "f": (5, 5),
    }  # fmt: skip
    losses = dict(zip(TREE.labels, leaves.loss.tolist(), strict=True))
    assert (losses["all"], losses["left"], losses["near"], losses["far"], losses["a"]) == (1.0, 0.4, 0.2, 0.0, 0.0)


@pytest.mark.parametrize("nested", [{"root": None}, {"root": {"only": None}}, {"a": {"b": {"c": {"d": None}}}}])
def test_one_leaf(nested):
    leaves = Leaves(Hierarchy.from_nested(nested))
    assert len(leaves) == 1
    assert leaves.loss.tolist() == [0.0] * len(leaves.labels)
    assert leaves.pairs().tolist() == [0.0]
    assert len(leaves.meets()) == 1


@pytest.mark.parametrize(("seed", "count"), [(1, 2), (2, 9), (3, 60), (4, 200)])
def test_pairs_meet_at_their_lowest_common_ancestor(seed, count):
    """Against Hierarchy.lowest_common_ancestor, for every two leaves."""
    tree = Hierarchy.from_nested(grown(random.Random(seed), count))
    leaves = Leaves(tree)
    names = [tree.labels[node] for node in leaves.node]
    assert sorted(names) == sorted(leaves_of(tree_of(tree)))
    pairs = leaves.pairs().reshape(len(leaves), len(leaves))
    chosen = range(0, len(leaves), max(1, len(leaves) // 40))
    for one in chosen:
        for other in chosen:
            meeting = tree.node_of(tree.lowest_common_ancestor([names[one], names[other]]))
            assert pairs[one, other] == leaves.loss[meeting]
            assert leaves.loss[meeting] == (tree.leaf_counts[meeting] - 1) / max(tree.leaf_counts[0] - 1, 1)
    assert np.array_equal(pairs, pairs.T)


def tree_of(tree):
    """A hierarchy as tables in tables, under its root."""
    below = {node: {} for node in range(len(tree.labels))}
    for node in range(len(tree.labels) - 1, 0, -1):
        below[int(tree.parents[node])][tree.labels[node]] = below[node] or None
    return below[0]


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8, 9, 600])
def test_the_table_of_meets_answers_for_any_stretch(count):
    tree = Hierarchy.from_nested(grown(random.Random(count), count))
    leaves, names = Leaves(tree), [label for label in tree.labels if label in Leaves(tree).ranks]
    meets = leaves.meets().reshape(-1, len(leaves))
    assert 2 ** (len(meets) - 1) < len(leaves)
    for level, row in enumerate(meets):
        for rank in range(0, len(leaves) - 2**level, max(1, len(leaves) // 50)):
            stretch = names[rank : rank + 2**level + 1]
            assert tree.labels[row[rank]] == tree.lowest_common_ancestor(stretch)


def test_attributes_and_trees_one_after_another():
    big = Hierarchy.from_nested(grown(random.Random(9), 520))
    quasi = [
        Numeric("x", low=-5, high=20, weight=2, grid=3), Categorical("c", TREE, weight=0.5), Categorical("b", big),
        Numeric("y", low=0, high=1),
    ]  # fmt: skip
    trees = [None, Leaves(TREE), Leaves(big), None]
    shape = compile_shape(quasi, trees)
    assert shape.attr_f[t.WEIGHT].tolist() == [2, 0.5, 1, 1]
    assert shape.attr_f[[t.LOW, t.HIGH, t.STEP], 0].tolist() == [-5, 20, 3]
    assert shape.attr_f[t.STEP, 3] == 0
    assert shape.attr_i[t.KIND].tolist() == [t.NUMERIC, t.CATEGORICAL, t.CATEGORICAL, t.NUMERIC]
    assert shape.attr_i[t.LEAVES].tolist() == [0, 6, len(trees[2]), 0]
    for a, leaves in ((1, trees[1]), (2, trees[2])):
        size, nodes = len(leaves), len(leaves.labels)
        places = shape.attr_i[:, a]
        if size <= t.SMALL_TREE:  # a larger tree has no table of pairs
            assert np.array_equal(shape.tree_f[places[t.PAIRS_AT] :][: size * size], leaves.pairs())
        else:
            assert places[t.LOSS_AT] == places[t.PAIRS_AT]
        assert np.array_equal(shape.tree_f[places[t.LOSS_AT] :][:nodes], leaves.loss)
        assert np.array_equal(shape.tree_i[places[t.FIRST_AT] :][:nodes], leaves.first)
        assert np.array_equal(shape.tree_i[places[t.LAST_AT] :][:nodes], leaves.last)
        assert np.array_equal(shape.tree_i[places[t.LEAF_AT] :][:size], leaves.node)
        assert np.array_equal(shape.tree_i[places[t.MEETS_AT] :][: len(leaves.meets())], leaves.meets())
    lone = compile_shape([quasi[0]], [None])
    assert len(lone.tree_f) == len(lone.tree_i) == 1  # kernels want arrays
