"""Lanes: where they are cut, when they are dealt, and that neither threads nor batches change what comes out."""

from __future__ import annotations

import math
import random
from functools import partial
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal import Fads, Fast, LeastLoss
from shoal.hierarchies import Hierarchy
from shoal.methods.quasi_readers import reader_of
from shoal.methods.schema_arrays import compile_shape
from shoal.methods.tuples.decider import lanes as lanes_module
from shoal.methods.tuples.decider.lane_assignment import LaneAssignment
from shoal.methods.tuples.decider.lanes import Lanes
from shoal.reproduce.data.adult_imitation import imitate_adult
from shoal.reproduce.data.streams import remove_values
from shoal.schema import Categorical, Numeric, Schema
from tests.methods.tuples import driving
from tests.reference.fast import LanesOf
from tests.reference.least_loss import LeastLossTwin

STREAM = remove_values(imitate_adult(900, seed=5), at_most=2, seed=1)
SETTINGS = {"k": 3, "deadline": 120, "reuse": 40, "threads": 2}
METHODS = [Fast, LeastLoss]
every_method = pytest.mark.parametrize("method", METHODS)


def outcome(method, sizes=(900,), **settings):
    made = method(STREAM.schema, key=bytes(16), **{**SETTINGS, **settings})
    releases, start = [], 0
    for size in sizes:
        releases.append(made.push_batch(STREAM.table.slice(start, size)))
        start += size
    kept = made.snapshot()
    releases.append(made.flush())
    rows, traces = (pa.concat_batches([getattr(one, name) for one in releases]) for name in ("rows", "trace"))
    return rows, traces, made.metrics, kept


@every_method
@pytest.mark.parametrize("settings", [{}, {"groups": True}, {"max_share": 0.5}], ids=str)
def test_batches_and_threads_do_not_show(method, settings):
    whole = outcome(method, **settings)
    in_parts = outcome(method, (1, 7, 192, 300, 400), **settings)
    with mock.patch.object(lanes_module, "WORTH_THREADS", 10**9):
        in_one_thread = outcome(method, **settings)
    for other in (in_parts, in_one_thread):
        assert other[0].equals(whole[0])
        assert other[1].equals(whole[1])
        assert other[2] == whole[2]


@every_method
def test_a_stream_goes_on_from_a_snapshot(method):
    made = method(STREAM.schema, key=bytes(16), **SETTINGS)
    made.push_batch(STREAM.table.slice(0, 500))
    again = shoal.restore(made.snapshot(), key=bytes(16))
    assert [len(one._engine.decider.used) for one in (made, again)] == [2, 2]
    releases = [(one.push_batch(STREAM.table.slice(500)), one.flush()) for one in (made, again)]
    for left, right in zip(*releases, strict=True):
        assert left.rows.equals(right.rows)
        assert left.trace.equals(right.trace)
    assert made.metrics == again.metrics


# ---- how many there are


@pytest.mark.parametrize(
    ("threads", "k", "deadline", "lanes"),
    [(2, 50, 2000, 2), (4, 50, 2000, 2), (5, 20, 30, 1), (5, 5, 400, 5), (1, 5, 2000, 1), (5, 5, 30, 1)],
)
def test_lanes_that_could_not_find_k_people_do_not_exist(threads, k, deadline, lanes):
    for method in METHODS:
        made = method(STREAM.schema, k=k, deadline=deadline, threads=threads)
        assert made.guarantee.parameters["options"]["lanes"] == lanes
        decider = made._engine.decider
        assert isinstance(decider, Lanes) == (lanes > 1)


def test_one_lane_is_fads():
    table = STREAM.table.slice(0, 400)
    releases = []
    for made in (Fads(STREAM.schema, k=20, deadline=30, key=bytes(16)),
                 Fast(STREAM.schema, k=20, deadline=30, threads=5, key=bytes(16))):  # fmt: skip
        releases.append([made.push_batch(table), made.flush()])
    for fads, fast in zip(*releases, strict=True):
        assert fads.rows.equals(fast.rows)
        assert fads.trace.equals(fast.trace)


def test_durations_have_lanes_once_there_are_enough_people():
    schema = Schema(person="id", time="t", quasi=[Numeric("x", low=0, high=1)])
    made = Fast(schema, k=5, deadline="100s", reuse="10s", threads=3, round=50, key=bytes(16))
    used = []
    for step in (10.0, 0.5, 5.0):
        times = 1e9 + 10_000 * len(used) + step * np.arange(200)
        people = [f"p{len(used)}-{n}" for n in range(200)]
        made.push_batch(pa.table({"id": people, "t": times, "x": np.arange(200) * 0.37 % 1}))
        used.append(len(made._engine.decider.used))
    assert used == [1, 3, 1]


def test_nothing_is_stranded_in_a_lane():
    """Nine people of ten are on one side of the cut: what is left of the other side is published with them."""
    schema = Schema(person="id", quasi=[Numeric("x", low=0, high=1)])
    made = Fast(schema, k=4, deadline=160, reuse=0, threads=2, key=bytes(16))
    places = np.concatenate([np.arange(200) % 2 * 0.9, np.zeros(200), np.tile([*[0.0] * 60, 1.0], 5)])
    table = pa.table({"id": [f"p{n}" for n in range(len(places))], "x": places})
    releases = [made.push_batch(table), made.flush()]
    assert made.metrics["suppressed"] <= 3
    assert sum(one.rows.num_rows for one in releases) >= len(places) - 3


def test_tuples_are_dealt_again_when_the_stream_drifts():
    schema = Schema(person="id", quasi=[Numeric("x", low=0, high=1)])
    made = Fast(schema, k=2, deadline=64, reuse=0, threads=2, round=100, key=bytes(16))
    chance = np.random.default_rng(1)
    cuts = []
    for first in (0.0, 0.5):
        table = pa.table({"id": [f"p{first}-{n}" for n in range(400)], "x": first + chance.random(400) / 2})
        made.push_batch(table)
        cuts.append(made._engine.decider.assignment.dump()[0, 3])
    assert 0.1 < cuts[0] < 0.4
    assert 0.6 < cuts[1] < 0.9


# ---- against the naive twin


@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_least_loss_in_lanes_is_its_twin(seed, timed):
    draw, scene = random.Random(seed), driving.scenes()["mixed"]
    with driving.small_lanes(), mock.patch.dict(driving.TWINS, {"least-loss": partial(LanesOf, lane=LeastLossTwin)}):
        given = {"k": draw.choice([2, 3]), "deadline": draw.choice([9, 14]), "reuse": 5, "threads": draw.choice([2, 3]),
                 "by": "time" if timed else "count", **draw.choice([{}, {"l": 2}, {"max_share": 0.6}])}  # fmt: skip
        pair = driving.Pair("least-loss", scene, given)
        twin, decider = pair.run.twin, pair.made._engine.decider
        twin.round = decider._round = draw.choice([5, 11])
        twin.first = decider._soon = min(twin.first, twin.round)
        records = driving.random_records(scene, 90, seed=seed, people=40, missing=0.2)
        start = 0
        while start < len(records):
            size = draw.choice([1, 4, 30])
            pair.push_batch(records[start : start + size])
            start += size
        pair.flush()
        pair.compare_metrics()
    assert len(pair.formed) > 3


# ---- where lanes are cut

QUASI = [
    Numeric("x", low=0, high=1, weight=2),
    Categorical("few", hierarchy=Hierarchy.from_nested({"*": {"n": ["a", "b"], "s": ["c", "d"]}})),
    Categorical("many", hierarchy=Hierarchy.from_nested({"*": [str(n) for n in range(600)]})),
]


def assignment():
    return LaneAssignment(compile_shape(QUASI, [reader_of(role).leaves for role in QUASI]))


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
    made.choose(values, np.arange(100), 2)
    assert made.dump().tolist() == [[0, 1, 0, 0.1]]
    assert made.lanes_of(values, np.arange(100)).tolist() == [0, 1] * 50


@pytest.mark.parametrize("value", [0.5, math.nan])
def test_without_a_fair_cut_numbers_decide(value):
    values, rows = np.full((3, 10), value if math.isnan(value) else 0.0), np.arange(10)
    made = assignment()
    made.choose(values, rows, 2)
    assert made.dump().tolist() == [[0, 1, -1, 0]]
    assert made.lanes_of(values, rows).tolist() == [0, 1] * 5


def test_without_tuples_numbers_decide():
    made = assignment()
    made.choose(np.empty((3, 0)), np.arange(0), 2)
    assert made.dump().tolist() == [[0, 1, -1, 0]]
