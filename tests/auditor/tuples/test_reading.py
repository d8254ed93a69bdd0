"""Numbers, ranges, quasi-identifiers and promises, however they are written."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from shoal.auditor import audit
from shoal.auditor.counting import combined
from shoal.auditor.policy import METHODS, read_policy
from shoal.auditor.reading.numbers import read_numbers, read_ranges
from shoal.auditor.reading.rows import Rows
from shoal.auditor.rows.attributes import read_attribute
from shoal.auditor.tuples.promise import read_tuple_promise
from shoal.auditor.tuples.timeline import event_clock
from shoal.errors import PolicyError
from tests.auditor.tuples.naive import RELEASE, TRUTH, Run, policy, records, table

DAY = 86_400_000_000
NAN = float("nan")


def rows_of(**columns):
    length = len(next(iter(columns.values())))
    return Rows(((columns, np.zeros(length, np.bool_)),), "rows")


@pytest.mark.parametrize(
    ("column", "value", "unreadable"),
    [
        (pa.array([1, None], pa.int8()), [1, NAN], [False, False]),
        (pa.array([1.5, NAN]), [1.5, NAN], [False, False]),
        (pa.array([Decimal("2.50"), None]), [2.5, NAN], [False, False]),
        (pa.array(["3", "x", None, " 4 ", "nan", "inf"]), [3, NAN, NAN, 4, NAN, np.inf], [0, 1, 0, 0, 0, 0]),
        (pa.array(["5", "5"]).dictionary_encode(), [5, 5], [False, False]),
        (pa.array([True, None]), [NAN, NAN], [True, False]),
        (pa.nulls(2), [NAN, NAN], [False, False]),
        ([1, 2.5, None, "7", True, []], [1, 2.5, NAN, NAN, NAN, NAN], [0, 0, 0, 1, 1, 1]),
    ],
)
def test_numbers(column, value, unreadable):
    found = read_numbers([column])
    np.testing.assert_array_equal(found.value, value)
    assert found.unreadable.tolist() == [bool(mark) for mark in unreadable]
    assert not found.are_moments


@pytest.mark.parametrize(
    "column",
    [
        pa.array([datetime(1970, 1, 2, tzinfo=UTC), None], pa.timestamp("ms", "UTC")),
        pa.array([date(1970, 1, 2), None]),
        pa.array(["1970-01-02T00:00:00Z", None]),
        ["1970-01-02", None],
    ],
)
def test_moments(column):
    found = read_numbers([column])
    np.testing.assert_array_equal(found.value, [DAY, NAN])
    assert found.are_moments


def test_moments_and_seconds_in_parts():
    found = read_numbers([pa.array(["1970-01-02T00:00:00Z"]), pa.array([2.0])])
    assert found.value.tolist() == [DAY, 2e6]


@pytest.mark.parametrize(
    "column",
    [
        pa.array([{"lo": 1, "hi": 2}, None], pa.struct([("lo", pa.int64()), ("hi", pa.int64())])),
        pa.array([[1.0, 2.0], None]),
        pa.array(["[1, 2]", None]),
        pa.array(["[1.0,2]", None]).dictionary_encode(),
        [[1, 2], None],
        [{"lo": 1, "hi": 2.0}, None],
        ["[1, 2]", None],
    ],
)
def test_ranges(column):
    found = read_ranges([column])
    np.testing.assert_array_equal(found.low.value, [1, NAN])
    np.testing.assert_array_equal(found.high.value, [2, NAN])
    assert not found.unreadable.any()


@pytest.mark.parametrize("value", ["5", "[5]", "[1, 2, 3]", "[a, b]", "[, ]", "", "[1, x]"])
def test_no_range(value):
    assert read_ranges([pa.array([value])]).unreadable.all()
    assert read_ranges([[value]]).unreadable.all()


@pytest.mark.parametrize("value", [5, [5], {"lo": 5}, True, [None, 5], [[], 5]])
def test_no_range_in_json(value):
    assert read_ranges([[value]]).unreadable.all()


def test_ranges_of_moments():
    found = read_ranges([["[1970-01-02T00:00:00Z, 1970-01-03T00:00:00Z]", '["1970-01-02", "1970-01-03"]']])
    assert found.are_moments
    assert found.low.value.tolist() == [DAY, DAY]
    assert found.high.value.tolist() == [2 * DAY, 2 * DAY]


def rule_of(**numeric):
    return read_tuple_promise(read_policy(policy(numeric=numeric))).quasi[0]


def spans(begin, end, true, **numeric):
    column = pa.StructArray.from_arrays([pa.array(begin), pa.array(end)], names=["lo", "hi"])
    return read_attribute(rule_of(**numeric), rows_of(age=column), rows_of(age=pa.array(true)))


def test_a_grid_of_fractions():
    begin, end = [0.3, 0.7, 0.35, 0.1 + 0.2], [0.4, 1.0, 0.7, 0.4]
    attribute = spans(begin, end, [0.33, 0.9, 0.5, 0.33], low=0, high=1, grid=0.1)
    assert attribute.faults["off-grid"].tolist() == [False, False, True, True]
    assert attribute.covers(np.arange(4), np.arange(4)).all()


def test_whole_ends_on_a_grid_of_fractions():
    """Of whole numbers [2.5, 7.5] has 3 to 7."""
    attribute = spans([3, 2, 5, 3, 3], [5, 5, 10, 7, 8], [3, 4, 6, 4, 4], low=0, high=10, grid=2.5)
    assert attribute.faults["off-grid"].tolist() == [False, True, False, False, True]


def test_the_last_cell_of_a_grid_may_be_cut():
    attribute = spans([90, 90, 91], [97, 96, 97], [95, 95, 95], low=0, high=97, grid=10)
    assert attribute.faults["off-grid"].tolist() == [False, True, True]
    assert attribute.faults["out-of-domain"].tolist() == [False, False, False]


def test_whole_ends_in_a_domain_of_fractions():
    attribute = spans([16, 17, 17], [90, 91, 90], [20, 30, 30], low=16.5, high=90.5)
    assert attribute.faults["out-of-domain"].tolist() == [True, True, False]
    assert attribute.at_root.tolist() == [False, False, True]


def test_a_domain_of_moments():
    rules = {"low": "2020-01-01", "high": datetime(2020, 2, 1, tzinfo=UTC), "grid": "1d"}
    low = pa.array([datetime(2020, 1, 3, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC"))
    high = pa.array([datetime(2020, 1, day, tzinfo=UTC) for day in (4, 5, 6)], pa.timestamp("us", "UTC"))
    true = ["2020-01-03T10:00:00Z", "2020-01-05T00:00:01Z", None]
    attribute = spans(low, high, true, **rules)
    assert not any(marks.any() for marks in attribute.faults.values())
    assert attribute.covers(np.arange(2), np.arange(2)).tolist() == [True, False]
    assert attribute.carried.tolist() == [True, True, False]
    assert attribute.loss.tolist() == pytest.approx([1 / 31, 2 / 31, 3 / 31])
    seconds = spans(low, high, [1_578_045_600.0] * 3, **rules)
    assert seconds.covers(np.arange(3), np.arange(3)).all()


def test_values_that_may_not_be_published():
    attribute = spans([0], [100], [101.0, -1.0, None, 50.0, np.inf])
    assert attribute.usable.tolist() == [False, False, True, True, False]
    clamped = spans([0], [100], [101.0, -1.0, None, 50.0, np.inf], outside="clamp")
    assert clamped.usable.all()
    assert clamped.covers(np.zeros(4, int), np.array([0, 1, 3, 4])).all()


def test_labels():
    rule = read_tuple_promise(read_policy(policy())).quasi[1]
    shown = pa.array(["north", "*", None, "ash", "oak"])
    attribute = read_attribute(rule, rows_of(tree=shown), rows_of(tree=pa.array(["ash", "elm", "north", None, "oak"])))
    assert attribute.loss.tolist() == [0.25, 1.0, 1.0, 0.0, 0.0]
    assert attribute.at_root.tolist() == [False, True, False, False, False]
    assert attribute.faults["unknown-label"].tolist() == [False, False, False, False, True]
    assert attribute.usable.tolist() == [True, True, False, True, False]
    assert attribute.covers(np.array([0, 0, 1, 3]), np.array([0, 1, 1, 0])).tolist() == [True, False, True, True]


def test_combinations_of_many_wide_columns():
    draw = np.random.default_rng(3)
    columns = [draw.integers(-1, 2**20, 500) // (2**18) * 2**18 for _ in range(12)]
    found = combined(columns, 500)
    expected = {row: number for number, row in enumerate(dict.fromkeys(zip(*columns, strict=True)))}
    assert found.tolist() == [expected[row] for row in zip(*columns, strict=True)]


def test_the_clock_starts_anew_after_one_wrong_one():
    time, person = np.array([900, 910, 5, 7, 6]), np.array([0, 0, 1, 0, 1])
    every = np.ones(5, np.bool_)
    assert event_clock(time, person, every, 100).tolist() == [900, 910, 5, 7, 7]
    assert event_clock(time, person, every, 1000).tolist() == [900, 910, 910, 910, 910]
    assert event_clock(time, person, np.array([False, False, True, True, False]), 0).tolist() == [5, 5, 5, 7, 7]


# ---- promises


@pytest.mark.parametrize("method", [name for name, family in METHODS.items() if family == "tuples"])
def test_every_method_is_known(method):
    assert Run().audit().method == "fads"
    report = audit(table([], RELEASE), table([], TRUTH), None, policy(method=method))
    assert report.method == method


@pytest.mark.parametrize(
    "rules",
    [
        {"k": 0},
        {"k": True},
        {"deadline": "1h"},
        {"deadline": "1h", "reuse": "5min"},
        {"deadline": -1},
        {"reuse": 1.5},
        {"missing": "other"},
        {"suppressed": "keep"},
        {"min_carriers": 0},
        {"sensitive": [], "l": 2},
        {"l": "two"},
        {"t": 0.2, "reference": {"other": {"a": 1}}},
        {"t": 0.2, "reference": {"ill": {"a": 0}}},
        {"t": 0.2, "reference": {"ill": 5}},
        {"t": 0.2, "reference": 0},
        {"quasi": {}},
        {"quasi": {"age": 5}},
        {"quasi": {"age": {"kind": "other"}}},
        {"quasi": {"age": {"kind": "numeric", "low": 5, "high": 1}}},
        {"quasi": {"age": {"kind": "numeric", "low": "soon", "high": 1}}},
        {"quasi": {"age": {"kind": "numeric", "low": 5}}},
        {"quasi": {"age": {"kind": "numeric", "low": 0, "high": 1, "grid": 0}}},
        {"quasi": {"age": {"kind": "numeric", "low": 0, "high": 1, "weight": 0}}},
        {"quasi": {"age": {"kind": "numeric", "low": 0, "high": 1, "outside": "drop"}}},
        {"quasi": {"tree": {"kind": "categorical"}}},
        {"quasi": {"tree": {"kind": "categorical", "hierarchy": {"kind": "suffix"}}}},
        {"quasi": {"tree": {"kind": "categorical", "hierarchy": {"kind": "flat"}}}},
    ],
)
def test_a_policy_that_promises_nothing_clear(rules):
    with pytest.raises(PolicyError):
        read_tuple_promise(read_policy(policy(**rules)))


def test_a_policy_without_a_person():
    promised = policy()
    del promised["stream"]["person"]
    with pytest.raises(PolicyError):
        read_tuple_promise(read_policy(promised))


def test_a_flat_hierarchy_lists_its_values():
    flat = {"tree": {"kind": "categorical", "hierarchy": {"kind": "flat", "values": ["b", "a"], "root": "any"}}}
    (rule,) = read_tuple_promise(read_policy(policy(quasi=flat))).quasi
    assert rule.tree.root == "any"
    assert rule.tree.leaf_counts() == {"any": 2, "a": 1, "b": 1}


def test_only_numbers_have_an_order():
    truth = records(60)
    for place, row in enumerate(truth):
        row["ill"] = str(place % 4)
    run = Run(truth)
    as_text = run.audit().metrics["t"]["ill"]
    run.promised["source"] = {"types": {"ill": "int64"}}
    assert run.audit().metrics["t"]["ill"] < as_text
