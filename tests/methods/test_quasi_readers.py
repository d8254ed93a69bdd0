"""Quasi-identifiers as numbers and back: every type of column, alike for batches and single values."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from shoal.errors import InputError
from shoal.hierarchies import Hierarchy
from shoal.methods.quasi_readers import REFUSED, CategoricalReader, NumericReader, reader_of
from shoal.schema import Categorical, Numeric

TREE = Hierarchy.from_nested({"*": {"north": ["a", "b"], "south": ["7", "true"]}})
DAY = 86_400.0


def numbers(column, **domain):
    reader = NumericReader(Numeric("x", **{"low": -10, "high": 10, **domain}))
    reader.check_type(column.type)
    raws, refused = reader.read(column)
    return reader, [None if math.isnan(raw) else raw for raw in raws.tolist()], refused.tolist()


@pytest.mark.parametrize(
    "kind",
    [pa.int8(), pa.int64(), pa.float16(), pa.float32(), pa.float64(), pa.decimal128(5, 1), pa.decimal256(40, 2)],
)
def test_numbers_of_every_type(kind):
    values = [Decimal(3), None, Decimal(-10)] if pa.types.is_decimal(kind) else [3, None, -10]
    given = pa.array([np.float16(v) if v is not None else None for v in values]) if kind == pa.float16() else values
    column = given.cast(kind) if isinstance(given, pa.Array) else pa.array(given, kind)
    reader, raws, refused = numbers(column)
    assert raws == [3.0, None, -10.0]
    assert refused == [False] * 3
    singles = [reader.read_one(value) for value in column.to_pylist()]
    assert [None if math.isnan(one) else one for one in singles] == raws


def test_unsigned_and_unread():
    assert numbers(pa.array([1, 2**64 - 1], pa.uint64()))[1:] == ([1.0, float("inf")], [False, True])
    assert numbers(pa.nulls(2))[1:] == ([None, None], [False, False])
    for kind in (pa.string(), pa.bool_(), pa.binary(), pa.list_(pa.int64()), pa.duration("s"), pa.time32("s")):
        with pytest.raises(InputError, match=r"column 'x': .* is not a number"):
            NumericReader(Numeric("x", low=0, high=1)).check_type(kind)


def test_what_is_outside_is_refused():
    column = pa.array([-10.0, math.nextafter(-10, -11), 10.0, 10.5, math.inf, -math.inf, math.nan, None])
    reader, raws, refused = numbers(column)
    assert refused == [False, True, False, True, True, True, False, False]
    assert raws[6:] == [None, None]
    singles = [reader.read_one(value) for value in column.to_pylist()]
    assert [one is REFUSED for one in singles] == refused
    assert reader.count_clamped(column, np.ones(8, dtype=bool)) == 0
    assert not reader.is_clamped(99.0)


def test_what_is_outside_is_clamped():
    column = pa.array([-11.0, 10.0, 11.0, math.inf, -math.inf, math.nan, None])
    reader, raws, refused = numbers(column, outside="clamp")
    assert raws == [-10.0, 10.0, 10.0, 10.0, -10.0, None, None]
    assert refused == [False] * 7
    singles = [reader.read_one(value) for value in column.to_pylist()]
    assert [None if math.isnan(one) else one for one in singles] == raws
    assert reader.count_clamped(column, np.ones(7, dtype=bool)) == 4
    assert reader.count_clamped(column, np.array([False, True, True] + [False] * 4)) == 1
    assert [reader.is_clamped(value) for value in column.to_pylist()] == [True, False, True, True, True, False, False]


MOMENTS = {"low": "1970-01-01", "high": "1970-02-01"}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "+05:30"])
def test_moments(unit, zone):
    column = pa.array([datetime(1970, 1, 2), None], pa.timestamp(unit, tz=zone))
    reader, raws, refused = numbers(column, **MOMENTS)
    assert (raws, refused) == ([DAY, None], [False, False])
    moment = datetime(1970, 1, 2, tzinfo=UTC)
    for one in (moment, moment.replace(tzinfo=None), moment.astimezone(timezone(timedelta(hours=5)))):
        assert reader.read_one(one) == DAY


def test_days_and_parts_of_seconds():
    assert numbers(pa.array([date(1970, 1, 3)]), **MOMENTS)[1] == [2 * DAY]
    assert numbers(pa.array([2 * 86_400_000], pa.date64()), **MOMENTS)[1] == [2 * DAY]
    reader, raws, _ = numbers(pa.array([1_500_001, 1_999_999], pa.timestamp("us")), **MOMENTS)
    assert raws == [1.500001, 1.999999]
    assert reader.read_one(date(1970, 1, 3)) == 2 * DAY
    assert reader.read_one(datetime(1970, 1, 1, 0, 0, 1, 500_001, tzinfo=UTC)) == 1.500001
    assert math.isnan(reader.read_one(None))


@pytest.mark.parametrize("value", ["3", True, np.bool_(True), [3], 3j, np.datetime64("2020-01-01")])
def test_single_values_that_are_no_numbers(value):
    with pytest.raises(InputError, match="a value is not a number"):
        NumericReader(Numeric("x", low=0, high=10)).read_one(value)


@pytest.mark.parametrize("value", [3, 3.0, Decimal(3), np.int16(3), np.float32(3)])
def test_single_values_that_are(value):
    assert NumericReader(Numeric("x", low=0, high=10)).read_one(value) == 3.0


def test_scaling():
    reader = NumericReader(Numeric("x", low=-5, high=20))
    assert reader.scaled(np.array([-5.0, 0.0, 20.0])).tolist() == [0.0, 0.2, 1.0]
    assert reader.root() == (-5, 20, 0)


# ---- what leaves


def leaving(reader, kind, low, high, hidden=False):
    """Both ways of one range."""
    shape = reader.output_type(kind)
    column = reader.publish(np.array([low]), np.array([high]), np.array([0]), np.array([hidden]), shape)
    column.validate(full=True)
    assert column.type == shape
    (one,) = column.to_pylist()
    if not hidden:
        assert reader.publish_one(low, high, 0, shape) == one
    return one


def test_whole_numbers_are_published_as_whole_numbers():
    reader = NumericReader(Numeric("x", low=-9.5, high=9.5))
    for kind in (pa.int8(), pa.int64(), pa.uint16()):
        assert reader.output_type(kind) == pa.struct([("lo", pa.int64()), ("hi", pa.int64())])
    assert leaving(reader, pa.int64(), 2.0, 5.0) == {"lo": 2, "hi": 5}
    # of whole numbers [2.5, 4.5] has 3 and 4
    assert leaving(reader, pa.int64(), 2.5, 4.5) == {"lo": 3, "hi": 4}
    assert leaving(reader, pa.int64(), -2.5, -0.5) == {"lo": -2, "hi": -1}
    assert leaving(reader, pa.int64(), 2.0, 5.0, hidden=True) is None


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.decimal128(5, 1), pa.null()])
def test_other_numbers_are_published_as_floats(kind):
    reader = NumericReader(Numeric("x", low=0, high=9))
    assert reader.output_type(kind) == pa.struct([("lo", pa.float64()), ("hi", pa.float64())])
    assert leaving(reader, kind, 0.1, 0.30000000000000004) == {"lo": 0.1, "hi": 0.30000000000000004}


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("us", tz="+02:00"), pa.date32(), pa.date64()])
def test_moments_are_published_as_moments(kind):
    reader = NumericReader(Numeric("x", **MOMENTS))
    reader.check_type(kind)
    bound = pa.timestamp("us", tz="UTC")
    assert reader.output_type(kind) == pa.struct([("lo", bound), ("hi", bound)])
    shown = leaving(reader, kind, DAY, 1.5 * DAY)
    assert shown == {"lo": datetime(1970, 1, 2, tzinfo=UTC), "hi": datetime(1970, 1, 2, 12, tzinfo=UTC)}


def test_nanoseconds_are_covered():
    reader, raws, _ = numbers(pa.array([1_500, 2_999], pa.timestamp("ns")), low=0, high=10)
    shown = leaving(reader, pa.timestamp("ns"), min(raws), max(raws))
    begin = datetime(1970, 1, 1, tzinfo=UTC)
    assert shown == {"lo": begin + timedelta(microseconds=1), "hi": begin + timedelta(microseconds=3)}
    assert leaving(reader, pa.timestamp("ns"), 0.0, 10.0)["hi"] == begin + timedelta(seconds=10)  # within the domain


@pytest.mark.parametrize("year", [1850, 1969, 1999, 2026, 2100])
def test_microseconds_come_back_unchanged(year):
    random = np.random.default_rng(year)
    begin = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    micros = begin * 1_000_000 + random.integers(0, 10**13, 500)
    reader = NumericReader(Numeric("x", low="1800-01-01", high="2200-01-01"))
    raws, _ = reader.read(pa.array(micros, pa.timestamp("us")))
    shown = reader.publish(raws, raws, raws.astype(np.int64), raws < -1e18, reader.output_type(pa.timestamp("us")))
    assert shown.field(0).cast(pa.int64()).to_pylist() == micros.tolist()
    assert shown.field(1).cast(pa.int64()).to_pylist() == micros.tolist()


# ---- labels


def labels(column):
    reader = CategoricalReader(Categorical("c", TREE))
    reader.check_type(column.type)
    raws, refused = reader.read(column)
    return reader, [None if math.isnan(raw) else raw for raw in raws.tolist()], refused.tolist()


DICTIONARY = pa.dictionary(pa.int8(), pa.string())


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), DICTIONARY])
def test_texts_are_ranks_of_leaves(kind):
    column = pa.array(["b", None, "7", "north", "x", "", "*"]).cast(kind)
    reader, raws, refused = labels(column)
    assert raws[:3] == [1.0, None, 2.0]
    assert refused == [False, False, False, True, True, True, True]
    singles = [reader.read_one(value) for value in column.to_pylist()]
    assert [one is REFUSED for one in singles] == refused
    assert singles[0] == 1.0
    assert math.isnan(singles[1])


def test_whole_numbers_and_truth_values_are_texts_too():
    assert labels(pa.array([7, 8, None]))[1:] == ([2.0, None, None], [False, True, False])
    assert labels(pa.array([True, False]))[1:] == ([3.0, None], [False, True])
    assert labels(pa.nulls(2))[1:] == ([None, None], [False, False])
    reader = labels(pa.array([7]))[0]
    assert [reader.read_one(value) for value in (7, True, np.int8(7))] == [2.0, 3.0, 2.0]
    assert reader.read_one(7.0) is REFUSED
    assert reader.read_one("a\ud800") is REFUSED


def test_a_dictionary_with_a_hole_and_with_more_than_is_used():
    column = pa.DictionaryArray.from_arrays(pa.array([0, 2, None, 1], pa.int8()), pa.array(["a", None, "no leaf"]))
    assert labels(column)[1:] == ([0.0, None, None, None], [False, True, False, False])


@pytest.mark.parametrize("kind", [pa.float64(), pa.binary(), pa.list_(pa.string()), pa.timestamp("s")])
def test_what_has_no_labels(kind):
    with pytest.raises(InputError, match=r"column 'c': .* has no labels"):
        CategoricalReader(Categorical("c", TREE)).check_type(kind)


def test_labels_are_published_as_text():
    reader = reader_of(Categorical("c", TREE))
    nodes = np.array([TREE.node_of(label) for label in ("*", "north", "b", "south")])
    nothing, hidden = np.zeros(4), np.array([False, False, False, True])
    shown = reader.publish(nothing, nothing, nodes, hidden, reader.output_type(pa.int64()))
    assert shown.type == pa.string()
    assert shown.to_pylist() == ["*", "north", "b", None]
    assert [reader.publish_one(0, 0, int(node), pa.string()) for node in nodes] == ["*", "north", "b", "south"]
    assert reader.root() == (0.0, 3.0, 0)
    assert reader.scaled(np.array([2.0])).tolist() == [2.0]
    assert isinstance(reader_of(Numeric("x", low=0, high=1)), NumericReader)
