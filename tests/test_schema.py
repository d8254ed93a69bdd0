"""Durations in words and numbers; what a column is for."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.hierarchies import Hierarchy
from shoal.schema import NANOSECONDS, Categorical, Numeric, Schema, duration_ns, format_duration
from tests.reference.effort import tries


@pytest.mark.parametrize(
    ("written", "nanoseconds"),
    [
        ("90s", 90 * 10**9), ("1h30min", 5400 * 10**9), (" 1 h 30 m ", 5400 * 10**9), ("1.5s", 1_500_000_000),
        ("1d", 86_400 * 10**9), ("2w", 14 * 86_400 * 10**9), ("1ns", 1), ("3us", 3000), ("3ms", 3_000_000),
        ("0s", 0), (0, 0), (1.5, 1_500_000_000), (90, 90 * 10**9), (1e-9, 1), ("1sec", 10**9),
    ],
)  # fmt: skip
def test_durations(written, nanoseconds):
    assert duration_ns(written, name="window") == nanoseconds


@pytest.mark.parametrize(
    "written",
    ["", "90", "s", "90 seconds", "-5s", "1h-30min", "1h 30", "five", None, True, -1, float("nan"), float("inf"), [1],
     "200w years", 10**10, "8000w", 4_611_686_019],
)  # fmt: skip
def test_invalid_durations(written):
    with pytest.raises(PolicyError, match="window"):
        duration_ns(written, name="window")


@given(st.lists(st.tuples(st.integers(0, 1000), st.sampled_from(sorted(NANOSECONDS))), min_size=1, max_size=4))
@tries(50)
def test_parts_add_up(parts):
    total = sum(number * NANOSECONDS[unit] for number, unit in parts)
    text = " ".join(f"{number}{unit}" for number, unit in parts)
    if total <= 2**62:
        assert duration_ns(text, name="window") == total


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("7d", "7d"), ("1w", "7d"), ("24h", "1d"), ("1h", "1h"), ("36h", "36h"), ("1h30min", "90min"), ("60s", "1min"),
        ("61s", "61s"), (0, "0s"), ("1.5s", "1.5s"), ("250ms", "250ms"), (0.0015, "1.5ms"), ("1ns", "1ns"),
        ("1us1ns", "1.001us"), (604_800, "7d"),
    ],
)  # fmt: skip
def test_durations_are_shown_in_the_largest_unit_that_is_exact(written, shown):
    assert format_duration(duration_ns(written, name="window")) == shown


@given(st.one_of(st.integers(0, 2**62), st.integers(0, 2**51), st.integers(0, 10**7)))
@example(2**62)
@example(2**50)
@example(2**50 + 1)
@example(999_999_999)
@tries(100)
def test_a_formatted_duration_reads_back(nanoseconds):
    assert duration_ns(format_duration(nanoseconds), name="window") == nanoseconds


# ---- roles of columns

TREE = Hierarchy.flat(["a", "b"])


def problems_of(make):
    with pytest.raises(PolicyError) as caught:
        make()
    return list(caught.value.problems)


@pytest.mark.parametrize(
    ("given", "saying"),
    [
        ({"name": ""}, ["name: must be the name of a column"]),
        ({"name": 3}, ["name: must be the name of a column"]),
        ({"low": 5, "high": 5}, ["column 'x': low must be below high"]),
        ({"low": 6}, ["column 'x': low must be below high"]),
        ({"low": "yesterday"}, ["column 'x': low must be a number below 2^53, or a moment in ISO 8601"]),
        ({"low": True}, ["column 'x': low must be a number"]),
        ({"high": None}, ["column 'x': high must be a number"]),
        ({"high": float("nan")}, ["column 'x': high must be a number"]),
        ({"high": float("inf")}, ["column 'x': high must be a number"]),
        ({"high": 2**53 + 2}, ["column 'x': high must be a number"]),
        ({"weight": 0}, ["column 'x': weight must be a number above 0"]),
        ({"weight": "2"}, ["column 'x': weight must be a number above 0"]),
        ({"weight": True}, ["column 'x': weight must be a number above 0"]),
        ({"weight": float("nan")}, ["column 'x': weight must be a number above 0"]),
        ({"weight": float("inf")}, ["column 'x': weight must be a number above 0"]),
        ({"grid": 0}, ["column 'x': grid must be a number above 0, or a duration"]),
        ({"grid": -1}, ["column 'x': grid must be a number above 0, or a duration"]),
        ({"grid": "five"}, ["column 'x': grid must be a number above 0, or a duration"]),
        ({"grid": "0s"}, ["column 'x': grid must be a number above 0, or a duration"]),
        ({"grid": True}, ["column 'x': grid must be a number above 0, or a duration"]),
        ({"grid": float("inf")}, ["column 'x': grid must be a number above 0, or a duration"]),
        ({"outside": "drop"}, ["column 'x': outside must be"]),
        (
            {"name": "", "weight": -1, "low": "no", "high": None, "grid": 0, "outside": 1},
            ["name: ", "weight must", "low must", "high must", "grid must", "outside must"],
        ),
    ],
)
def test_invalid_numbers(given, saying):
    found = problems_of(lambda: Numeric(**{"name": "x", "low": 0, "high": 5, **given}))
    assert len(found) == len(saying)
    assert all(part in problem for part, problem in zip(saying, found, strict=True))


def test_bounds_may_be_moments():
    when = Numeric("when", low="1970-01-02", high=datetime(1970, 1, 3, 1, tzinfo=UTC), grid="6h")
    assert (when.low, when.high, when.grid) == (86_400.0, 176_400.0, 21_600.0)
    assert Numeric("when", low="1970-01-01T01:00+01:00", high=datetime(1970, 1, 2)).low == 0
    assert Numeric("when", low=datetime(1969, 12, 31), high="1970-01-02").low == -86_400
    assert when.describe() == {
        "kind": "numeric", "name": "when", "low": 86_400.0, "high": 176_400.0, "weight": 1.0, "grid": 21_600.0,
        "outside": "refuse",
    }  # fmt: skip


def test_invalid_categories():
    assert problems_of(lambda: Categorical("", TREE)) == ["name: must be the name of a column"]
    assert problems_of(lambda: Categorical("c", TREE, weight=0)) == ["column 'c': weight must be a number above 0"]
    assert problems_of(lambda: Categorical("c", {"a": None})) == ["column 'c': hierarchy must be a shoal.Hierarchy"]
    (problem,) = problems_of(lambda: Categorical("c", Hierarchy.by_suffix()))
    assert "the hierarchy must list its values" in problem
    assert len(problems_of(lambda: Categorical("", Hierarchy.by_suffix(), weight=-1))) == 3
    described = Categorical("c", TREE, weight=2).describe()
    assert described == {"kind": "categorical", "name": "c", "hierarchy": TREE.to_dict(), "weight": 2}


AGE = Numeric("age", low=0, high=100)


@pytest.mark.parametrize(
    ("given", "saying"),
    [
        ({"person": ""}, "person: must be the name of a column"),
        ({"person": None}, "person: must be the name of a column"),
        ({"time": ""}, "time: must be the name of a column"),
        ({"time": 3}, "time: must be the name of a column"),
        ({"quasi": []}, "quasi: give a list"),
        ({"quasi": None}, "quasi: give a list"),
        ({"quasi": ["age"]}, "quasi: give a list"),
        ({"quasi": [AGE, "age"]}, "quasi: give a list"),
        ({"quasi": {"age": AGE}}, "quasi: give a list"),
        ({"sensitive": [3]}, "sensitive: must be the name of a column"),
        ({"sensitive": None}, "sensitive: must be the name of a column"),
        ({"sensitive": {"ill": 1}}, "sensitive: must be the name of a column"),
        ({"carry": [""]}, "carry: must be the name of a column"),
        ({"quasi": [AGE, AGE]}, "column 'age': has two roles"),
        ({"sensitive": ["id"]}, "column 'id': has two roles"),
        ({"sensitive": ["age", "age"]}, "column 'age': has two roles"),
        ({"sensitive": ["age"], "carry": ["age"]}, "column 'age': has two roles"),
        ({"sensitive": ["ill", "ill"]}, "column 'ill': has two roles"),
        ({"carry": ["age"]}, "column 'age': has two roles"),
        ({"sensitive": "ill", "carry": "ill"}, "column 'ill': has two roles"),
        ({"time": "id"}, "column 'id': has two roles"),
    ],
)
def test_invalid_schemas(given, saying):
    (problem,) = problems_of(lambda: Schema(**{"person": "id", "quasi": [AGE], **given}))
    assert problem.startswith(saying)


def test_all_problems_of_a_schema_at_once():
    found = problems_of(lambda: Schema(person="", time="", quasi=(), sensitive=[1], carry=[2]))
    assert [problem.split(":")[0] for problem in found] == ["person", "time", "quasi", "sensitive", "carry"]
    found = problems_of(lambda: Schema(person="id", quasi=[AGE], carry=["age"], sensitive=["id"]))
    assert [problem.split("'")[1] for problem in found] == ["age", "id"]


def test_a_sensitive_column_may_be_generalized():
    schema = Schema(person="id", quasi=[AGE], sensitive=["age", "ill"], carry=["note"])
    assert schema.columns == ("id", "age", "ill", "note")
    assert schema.unchanged == ("ill", "note")


def test_the_columns_that_a_schema_reads():
    schema = Schema(person="id", time="ts", quasi=AGE, sensitive="ill", carry=iter(["note", "ts"]))
    assert schema.columns == ("id", "ts", "age", "ill", "note")  # time may be carried, and a quasi-identifier
    assert (schema.quasi, schema.sensitive, schema.carry) == ((AGE,), ("ill",), ("note", "ts"))
    assert Schema(person="id", time="age", quasi=[AGE]).columns == ("id", "age")
    assert schema.describe()["quasi"] == [AGE.describe()]
    assert schema.describe()["carry"] == ["note", "ts"]
