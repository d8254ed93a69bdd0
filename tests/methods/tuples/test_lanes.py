"""Lanes: where they are cut, and that neither threads nor pieces nor rounds run apart change what comes out."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

from shoal import Fast
from shoal.hierarchies import Hierarchy
from shoal.methods.quasi_readers import reader_of
from shoal.methods.schema_arrays import compile_shape
from shoal.methods.tuples import fast as fast_module
from shoal.methods.tuples.decider.lane_assignment import LaneAssignment
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.streams import remove_values
from shoal.schema import Categorical, Numeric, Schema

STREAM = remove_values(imitate_adult(900, seed=5), at_most=2, seed=1)


def outcome(**settings):
    made = Fast(STREAM.schema, key=bytes(16), k=5, **{"deadline": 80, "reuse": 10, "threads": 2, **settings})
    first = made.push_batch(STREAM.table.slice(0, 500))
    kept = made._engine.decider.dump()
    rest = [made.push_batch(STREAM.table.slice(500)), made.flush()]
    rows, traces = (pa.concat_batches([getattr(one, name) for one in (first, *rest)]) for name in ("rows", "trace"))
    return rows, traces, {name: array.tolist() for name, array in kept.items()}, made.metrics


def sharing_every_round():
    return mock.patch("shoal.methods.tuples.decider.lanes.Lanes._rounds_apart", return_value=[])


@pytest.mark.parametrize("settings", [{}, {"threads": 1}, {"threads": 3}, {"reuse": 19}, {"round": 80, "reuse": 79}])
def test_rounds_run_apart_like_together(settings):
    apart = outcome(**settings)
    with sharing_every_round():
        together = outcome(**settings)
    assert apart[0].equals(together[0])
    assert apart[1].equals(together[1])
    assert str(apart[2:]) == str(together[2:])  # NaN is itself here


@pytest.mark.parametrize(
    ("settings", "are_apart"),
    [({"reuse": 19}, True), ({"reuse": 20}, False), ({"reuse": 0, "l": 2}, False), ({"reuse": 9, "round": 9}, False)],
)
def test_rounds_run_apart_only_where_no_cluster_outlives_one(settings, are_apart):
    schema = Schema(person="id", quasi=[Numeric("x", low=0, high=1)], sensitive=["ill"])
    assert Fast(schema, k=5, deadline=80, **settings)._engine.decider.are_apart == are_apart


@pytest.mark.parametrize("rows", [2, 46, 200])
def test_pieces_do_not_show(rows):
    whole = outcome(reuse=100)
    with mock.patch.object(fast_module, "CHUNK_ROWS", rows):
        in_pieces = outcome(reuse=100)
    assert in_pieces[0].equals(whole[0])
    assert in_pieces[1].equals(whole[1])


# ---- where lanes are cut

QUASI = [
    Numeric("x", low=0, high=1, weight=2),
    Categorical("few", hierarchy=Hierarchy.from_nested({"*": {"n": ["a", "b"], "s": ["c", "d"]}})),
    Categorical("many", hierarchy=Hierarchy.from_nested({"*": [str(n) for n in range(600)]})),
]


def assignment():
    return LaneAssignment(2, compile_shape(QUASI, [reader_of(role).leaves for role in QUASI]))


def naive_distance(one, other):
    total = mass = 0.0
    for a, weight in enumerate((2, 1, 1)):
        x, y = one[a], other[a]
        if math.isnan(x) or math.isnan(y):
            continue
        near = 1 / 3 if {x, y} in ({0, 1}, {2, 3}) else 1.0
        total += weight * (abs(x - y) if a == 0 else 0.0 if x == y else near if a == 1 else 1.0)
        mass += weight
    return total / mass if mass else 1.0


def test_distances_of_pairs():
    chance = np.random.default_rng(1)
    values = np.array([chance.random(40), chance.integers(0, 4, 40), chance.integers(0, 600, 40)], dtype=np.float64)
    values[:, 20:][chance.random((3, 20)) < 0.5] = np.nan
    left, right = chance.integers(0, 40, 200), chance.integers(0, 40, 200)
    found = assignment()._distances(values, left, right)
    expected = [naive_distance(values[:, i], values[:, j]) for i, j in zip(left, right, strict=True)]
    assert found.tolist() == pytest.approx(expected)


def test_the_cut_leaves_like_with_like():
    values = np.array([np.tile([0.1, 0.9], 50), np.tile([0, 1, 2, 3], 25), np.arange(100)], dtype=np.float64)
    made = assignment()
    made.choose(values, np.arange(100))
    assert made.dump().tolist() == [[0, 1, 0, 0.1]]
    assert made.lanes_of(values, np.arange(100)).tolist() == [0, 1] * 50


@pytest.mark.parametrize("value", [0.5, math.nan])
def test_without_a_fair_cut_numbers_decide(value):
    values, rows = np.full((3, 10), value if math.isnan(value) else 0.0), np.arange(10)
    made = assignment()
    made.choose(values, rows)
    assert made.dump().tolist() == [[0, 1, -1, 0]]
    assert made.lanes_of(values, rows).tolist() == [0, 1] * 5


def test_clusters_of_a_flush_within_a_round_are_reused_in_it():
    """They are younger than those of the round before, which no round with so short a reuse can see."""
    schema = Schema(person="id", quasi=[Numeric("age", low=0, high=100)])
    fast = Fast(schema, k=2, deadline=12, reuse=1, round=3, threads=1, key=bytes(range(32)))
    people = pa.table({"id": [f"p{n % 3}" for n in range(17)], "age": [float(n) for n in range(17)]})
    fast.push_batch(people)
    fast.flush()
    fast.push_batch(pa.table({"id": ["p0"], "age": [14.0]}))
    last = fast.flush()
    assert [(row["verdict"], row["reused"]) for row in last.trace.to_pylist()] == [("released", True)]
