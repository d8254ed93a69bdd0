"""Partitions against their naive twins, move by move."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shoal
from shoal.errors import PolicyError
from shoal.hierarchies import Graph
from shoal.kernels.sets.errors import distance_cost
from shoal.methods.sets.graph_partition import GraphPartition
from shoal.methods.sets.km_anonymity import make_partition
from shoal.methods.sets.partition import Move
from shoal.methods.sets.tree_partition import TreePartition
from tests.hierarchies.test_hierarchy import naive_path, nested, trees
from tests.reference import km_partition as naive
from tests.reference.effort import tries

CITIES = shoal.Hierarchy.from_nested({"US": {"West": ["LA", "Seattle"], "East": ["New York", "Boston"]}})
STEPS = st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=12)
MANY = tries(60)


def weights_for(data, count: int) -> list[int]:
    return data.draw(st.lists(st.integers(0, 5), min_size=count, max_size=count))


def same_state(partition, twin, weights, cost) -> None:
    blocks = {frozenset(partition.members(block)) for block in set(partition.block_of.tolist())}
    assert blocks == twin.blocks
    assert partition.blocks_left == len(blocks)
    assert math.isclose(partition.error, naive.error(blocks, weights, cost), rel_tol=1e-9, abs_tol=1e-9)
    for block in blocks:
        assert {int(partition.block_of[item]) for item in block} == {min(block)}
        assert partition.members(min(block)) == tuple(sorted(block))
    assert len({partition.label(min(block)) for block in blocks}) == len(blocks)


def same_moves(partition, twin, chosen, weights, cost) -> list[Move]:
    moves = partition.moves([min(block) for block in chosen])
    assert moves == sorted(moves)
    wanted = {joined for block in chosen for joined in twin.coarser(block)}
    found = [frozenset(item for block in move.blocks for item in partition.members(block)) for move in moves]
    assert len(found) == len(wanted)
    assert set(found) == wanted
    before = naive.error(twin.blocks, weights, cost)
    for move, joined in zip(moves, found, strict=True):
        after = {block for block in twin.blocks if not block <= joined} | {joined}
        assert move.blocks == tuple(sorted(min(block) for block in twin.blocks if block <= joined))
        assert move.size == len(joined)
        rise = naive.error(after, weights, cost) - before
        assert math.isclose(move.rise, rise, rel_tol=1e-9, abs_tol=1e-7)
    return moves


def walk(partition, twin, weights, cost, steps) -> None:
    """Random merges; a copy made before each merge does not change."""
    partition.start(np.array(weights))
    same_state(partition, twin, weights, cost)
    for which, width in steps:
        blocks = sorted(twin.blocks, key=min)
        chosen = [blocks[(which + at) % len(blocks)] for at in range(1 + width % 3)]
        moves = same_moves(partition, twin, chosen, weights, cost)
        if not moves:
            assert partition.blocks_left == 1
            break
        kept = partition.copy()
        move = moves[which % len(moves)]
        joined = frozenset(item for block in move.blocks for item in partition.members(block))
        same_state(kept, twin, weights, cost)
        assert partition.merge(move) == min(joined)
        twin_before = twin.blocks
        twin.join(joined)
        assert partition.label(min(joined)) == move.name
        same_state(partition, twin, weights, cost)
        assert {frozenset(kept.members(block)) for block in set(kept.block_of.tolist())} == twin_before
    partition.start(np.array(weights))
    assert partition.blocks_left == len(set(partition.block_of.tolist()))


@MANY
@given(trees(), STEPS, st.data())
@example((["r"], [-1]), [(0, 0)], None)
@example((["r", "a", "b", "c"], [-1, 0, 1, 2]), [(0, 0)], None)
def test_cuts_of_a_tree(tree, steps, data):
    labels, parents = tree
    leaves = sorted(label for node, label in enumerate(labels) if node not in parents)
    partition = TreePartition(shoal.Hierarchy.from_nested(nested(labels, parents)))
    assert partition.names == tuple(leaves)
    weights = weights_for(data, len(leaves)) if data else [1] * len(leaves)
    twin = naive.NaiveTree([naive_path(labels, parents, labels.index(leaf)) for leaf in leaves])
    walk(partition, twin, weights, naive.ncp(weights), steps)


@MANY
@given(
    st.sets(st.sampled_from(["a", "b.a", "c.b.a", "d.b.a", "b", "c.b", "*", "x.*", ""]), min_size=1), STEPS, st.data()
)
@example({"a", "b.a"}, [(0, 0)], None)
def test_cuts_of_an_open_hierarchy(items, steps, data):
    """A value with others below it is also an item, directly below itself."""
    hierarchy = shoal.Hierarchy.by_suffix()
    partition = make_partition(hierarchy, items=iter(items))
    names = sorted(items)
    assert partition.names == tuple(names)
    assert [partition.label(item) for item in range(len(names))] == names
    inner = {label for name in names for label in hierarchy.path(name)[1:]}
    twin = naive.NaiveTree([((name,) if name in inner else ()) + hierarchy.path(name) for name in names])
    weights = weights_for(data, len(names)) if data else [1] * len(names)
    walk(partition, twin, weights, naive.ncp(weights), steps)


@MANY
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))), STEPS, st.data())
@example([(0, 1), (1, 2)], [(1, 0), (0, 0)], None)
def test_blocks_of_a_graph(pairs, steps, data):
    graph = Graph([(str(one), str(other)) for one, other in pairs], names=map(str, range(10)))
    weights = weights_for(data, 10) if data else [1] * 10
    twin = naive.NaiveGraph(10, graph.edges.tolist())
    walk(make_partition(graph), twin, weights, naive.ncp(weights), steps)
    assert all(map(twin.hangs_together, twin.blocks))


@MANY
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=10), STEPS, st.booleans(), st.data()
)
@example([(0, 0), (0, 0), (3, 3)], [(0, 0)], True, None)
@example([(0, 0), (0, 2), (0, 5), (1, 1), (1, 6)], [], True, None)  # GEOS 3.14 draws a cell over others
def test_blocks_of_places(points, steps, geographic, data):
    names = [f"{number:02d}" for number in range(len(points))]
    x, y = zip(*points, strict=True)
    places = shoal.Places(names, x, y, geographic=geographic)
    weights = weights_for(data, len(points)) if data else [1] * len(points)
    site_of = places.site_of.tolist()
    sites = [
        frozenset(item for item in range(len(points)) if site_of[item] == site) for site in range(len(places.sites))
    ]
    pairs = [(one, other) for a, b in places.edges.tolist() for one in sites[a] for other in sites[b]]
    cells = list(zip(places.areas.tolist(), map(tuple, places.centroids.tolist()), strict=True))
    metres = naive.haversine if geographic else math.dist
    cost = naive.distance(weights, points, site_of, cells, metres)
    pairs += [(one, other) for site in sites for one in site for other in site]
    twin = naive.NaiveGraph(len(points), pairs, sites)
    walk(make_partition(places), twin, weights, cost, steps)
    assert all(map(twin.hangs_together, twin.blocks))


def test_the_cities_of_the_paper():
    """Table I with its tree: New York and Boston are merged first, because fewer people have been there."""
    partition = make_partition(CITIES)
    assert partition.names == ("Boston", "LA", "New York", "Seattle")
    partition.start(np.array([3, 5, 5, 4]))
    east, west = partition.moves([0, 1])
    assert east == Move(8 * 2 / 4 / 17, 2, "East", (0, 2))
    assert west == Move(9 * 2 / 4 / 17, 2, "West", (1, 3))
    assert partition.merge(east) == 0
    assert partition.block_of.tolist() == [0, 1, 0, 3]
    assert [partition.label(block) for block in (0, 1, 3)] == ["East", "LA", "Seattle"]
    assert partition.error == 8 * 2 / 4 / 17
    (top,) = partition.moves([0])
    assert (top.name, top.blocks, top.size) == ("US", (0, 1, 3), 4)
    assert partition.merge(top) == 0
    assert (partition.error, partition.blocks_left, partition.moves([0])) == (1.0, 1, [])


# ---- order, ties, labels


def test_equal_rises_are_ordered_by_size_then_name():
    tree = shoal.Hierarchy.from_nested({"r": {"z": ["a", "b"], "y": ["c", "d"], "x": ["e", "f", "g"]}})
    partition = make_partition(tree)
    partition.start(np.zeros(7, dtype=np.int64))
    assert [(move.rise, move.name) for move in partition.moves(range(7))] == [(0, "y"), (0, "z"), (0, "x")]
    partition.start(np.array([3, 3, 3, 3, 2, 1, 1]))  # 6 * 2 = 12 = 4 * 3
    assert [move.name for move in partition.moves(range(7))] == ["y", "z", "x"]
    assert len({move.rise for move in partition.moves(range(7))}) == 1


def test_a_block_is_named_after_its_first_item_regardless_of_weights():
    partition = make_partition([("a", "b"), ("b", "c"), ("c", "d")])
    partition.start(np.array([1, 2, 2, 0]))
    partition.merge(next(move for move in partition.moves([0]) if move.blocks == (0, 1)))
    assert partition.label(0) == "a +1"
    partition.merge(next(move for move in partition.moves([0]) if move.blocks == (0, 2)))
    assert partition.label(0) == "a +2"
    assert partition.label(3) == "d"


def test_a_place_may_have_the_name_of_a_block():
    partition = make_partition([("a", "b"), ("b", "a +1"), ("a +1", "a +1'")])
    (move,) = (move for move in partition.moves([0]) if move.size == 2)
    assert partition.names == ("a", "a +1", "a +1'", "b")
    partition.merge(move)
    assert sorted(map(partition.label, (0, 1, 2))) == ["a +1", "a +1'", "a +1''"]


def test_the_view_of_blocks_follows_merges_and_is_read_only():
    partition = make_partition({"a": ["b"]})
    seen = partition.block_of
    partition.merge(partition.moves([0])[0])
    assert seen.tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        seen[0] = 1


@pytest.mark.parametrize("generalize", [CITIES, [("a", "b"), ("b", "c"), ("c", "d")]])
def test_a_stale_move_is_refused(generalize):
    partition = make_partition(generalize)
    first, second = partition.moves([0])[0], partition.moves([1])[0]
    partition.merge(first)
    with pytest.raises(ValueError, match="list the moves again"):
        partition.merge(first)
    while partition.blocks_left > 1:
        partition.merge(partition.moves([0])[0])
    with pytest.raises(ValueError, match="list the moves again"):
        partition.merge(second)


@pytest.mark.parametrize("weights", [[1, 2], [1, 2, 3, -1], [[1, 2, 3, 4]]])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(ValueError, match="one number that is not negative for every item"):
        make_partition(CITIES).start(np.array(weights))


# ---- errors


@pytest.mark.parametrize("generalize", [CITIES, [("Boston", "LA"), ("LA", "New York"), ("New York", "Seattle")]])
def test_a_user_function(generalize):
    asked = []

    def spread(items, weights):
        asked.append((items, weights))
        return (len(items) - 1) ** 2 * max(weights)

    partition = make_partition(generalize, spread)
    partition.start(np.array([3, 5, 5, 4]))
    assert partition.error == 0
    move = partition.moves([0])[0]
    assert move.rise == 5 / 17
    partition.merge(move)
    assert partition.error == 5 / 17
    assert all(list(items) == sorted(items) and len(items) == len(weights) for items, weights in asked)
    assert {type(weight) for _, weights in asked for weight in weights} == {int}


@pytest.mark.parametrize("answer", [-1, math.nan, math.inf, None, "1", 1j])
def test_a_user_function_with_an_invalid_result(answer):
    with pytest.raises(PolicyError, match="finite and not negative"):
        make_partition(CITIES, lambda items, weights: answer)


def test_what_make_partition_accepts_and_refuses():
    places = shoal.Places(["a", "b"], [1, 2], [1, 2])
    assert isinstance(make_partition(CITIES, "ncp"), TreePartition)
    for given_one in (places, Graph([("a", "b")]), {"a": ["b"]}, [("a", "b")], iter([("a", "b")])):
        assert isinstance(make_partition(given_one), GraphPartition)
    far = make_partition(places)
    far.merge(far.moves([0])[0])
    assert far.error > 50_000  # metres
    near = make_partition(places, "ncp")
    near.merge(near.moves([0])[0])
    assert near.error == 1.0
    for given_one in (CITIES, {"a": ["b"]}):
        with pytest.raises(PolicyError, match=r"needs shoal\.Places"):
            make_partition(given_one, "distance")
    for wrong in (7, "towers.csv", None):
        with pytest.raises(PolicyError, match="generalize: give a"):
            make_partition(wrong)
    with pytest.raises(PolicyError, match="error: must be"):
        make_partition(CITIES, "loss")
    for items in (None, []):
        with pytest.raises(PolicyError, match="give the items that there are"):
            make_partition(shoal.Hierarchy.by_suffix(), items=items)


# ---- the kernel


def test_distance_cost_in_a_plane_and_on_the_globe():
    members = np.array([0, 2], dtype=np.int32)
    weights = np.array([1, 100, 3])
    shares = np.array([1.0, 7.0, 3.0])
    flat = np.array([[0.0, 0.0, 0.0], [9.0, 9.0, 0.0], [8.0, 0.0, 0.0]])
    # The centre is a quarter of the way from the big cell to the small one: (6, 0).
    assert distance_cost(members, weights, flat, flat[:, :2].copy(), shares, 0.0) == 6 * 1 + 2 * 3
    angles = np.radians([[10.0, 0.0], [0.0, 0.0], [10.0, 80.0]])
    x, y = angles.T
    points = np.column_stack([np.cos(y) * np.cos(x), np.cos(y) * np.sin(x), np.sin(y)])
    found = distance_cost(members, weights, points, angles, shares, 2.0)
    assert found == pytest.approx(2 * math.radians(60 * 1 + 20 * 3))
    opposite = distance_cost(members[:1], weights, -points, angles, shares, 1.0)
    assert opposite == pytest.approx(math.pi)
