"""Times: a column and a single value are read alike."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.times import EARLIEST, LATEST, column_ns, is_time_type, now_ns, value_ns
from tests.reference.effort import tries

SECOND = 10**9
instants = st.integers(EARLIEST, LATEST)
anywhere = st.one_of(instants, st.integers(-(2**63) + 1, 2**63 - 1))


def column_values(column):
    times, usable = column_ns(column)
    assert times.dtype == np.int64
    assert not times[~usable].any()
    return [int(time) if good else None for time, good in zip(times, usable, strict=True)]


def both(values, kind=None):
    """What the column gives, after checking that single values give the same."""
    column = pa.array(values, kind)
    found = column_values(column)
    assert found == [None if value is None else value_ns(value) for value in values]
    return found


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**33), 2**33)), max_size=8))
@example([LATEST // SECOND, LATEST // SECOND + 1, EARLIEST // SECOND, EARLIEST // SECOND + 1])
@tries(60)
def test_whole_seconds(seconds):
    for second, found in zip(seconds, both(seconds, pa.int64()), strict=True):
        is_usable = second is not None and EARLIEST <= second * SECOND <= LATEST
        assert found == (second * SECOND if is_usable else None)


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8(), pa.int32(), pa.uint32()])
def test_narrow_whole_numbers(kind):
    assert both([1, None, 100], kind) == [SECOND, None, 100 * SECOND]


def test_numbers_beyond_all_times():
    assert both([2**64 - 1, 5], pa.uint64()) == [None, 5 * SECOND]
    assert value_ns(2**200) is None
    assert value_ns(np.int32(5)) == value_ns(np.uint64(5)) == 5 * SECOND


@given(st.lists(st.one_of(st.none(), st.floats(), st.floats(-5e9, 5e9)), max_size=8))
@example([float("nan"), float("inf"), -float("inf"), -0.0, 1e300])
@example([2.0**62 / SECOND, float(np.nextafter(2.0**62, 0)) / SECOND, -(2.0**62) / SECOND, 4611686018.427388])
@tries(100)
def test_seconds_with_a_fraction(seconds):
    assert all(found is None or EARLIEST <= found <= LATEST for found in both(seconds, pa.float64()))


def test_floats_are_rounded_to_the_nearest_nanosecond():
    assert both([1.5, 0.1, 1e-9, 0.4e-9]) == [1_500_000_000, 100_000_000, 1, 0]
    assert column_values(pa.array([1.5, None], pa.float32())) == [1_500_000_000, None]
    assert value_ns(np.float32(1.5)) == 1_500_000_000


@given(st.lists(st.one_of(st.none(), anywhere), max_size=6), st.sampled_from(["s", "ms", "us", "ns"]), st.booleans())
@example([EARLIEST, EARLIEST - 1, LATEST, LATEST + 1], "ns", False)
@tries(80)
def test_timestamps_of_every_unit(instants, unit, zoned):
    per_unit = {"s": SECOND, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
    units = [None if instant is None else instant // per_unit for instant in instants]
    column = pa.array(units, pa.timestamp(unit, tz="Asia/Tokyo" if zoned else None))
    found = column_values(column)
    for number, time in zip(units, found, strict=True):
        is_usable = number is not None and EARLIEST <= number * per_unit <= LATEST
        assert time == (number * per_unit if is_usable else None)
        if number is not None:
            assert value_ns(np.datetime64(number, unit)) == time


@given(st.datetimes(), st.sampled_from([None, UTC, timezone(timedelta(hours=-9, minutes=-30))]))
@tries(80)
def test_datetimes(naive, zone):
    value = naive.replace(tzinfo=zone)
    shift = (value.utcoffset() or timedelta()) // timedelta(microseconds=1)
    micros = (naive - datetime(1970, 1, 1)) // timedelta(microseconds=1) - shift
    expected = micros * 1000 if EARLIEST <= micros * 1000 <= LATEST else None
    assert value_ns(value) == expected
    assert column_values(pa.array([value])) == [expected]


@given(st.dates())
@tries(50)
def test_dates(day):
    assert column_values(pa.array([day], pa.date32())) == column_values(pa.array([day], pa.date64())) == [value_ns(day)]


@given(instants, st.sampled_from([None, "UTC", "America/Lima"]))
@tries(50)
def test_pandas_timestamps_keep_their_nanoseconds(instant, zone):
    stamp = pd.Timestamp(instant, unit="ns", tz=zone)
    assert value_ns(stamp) == instant
    assert value_ns(stamp.to_datetime64()) == instant


def test_no_time_at_all():
    assert value_ns(pd.NaT) is value_ns(np.datetime64("NaT")) is value_ns(None) is None
    assert value_ns(True) is value_ns(np.True_) is value_ns(object()) is value_ns(b"5") is None
    assert column_values(pa.nulls(2)) == [None, None]


def test_years_out_of_range_are_no_times():
    far = ["1600-01-01", "2500-01-01", "9999-12-31"]
    assert both(far) == [None] * 3
    assert [value_ns(np.datetime64(text, unit)) for text in far for unit in ("D", "s", "us")] == [None] * 9
    assert value_ns(pd.Timestamp("9999-01-01")) is None
    assert value_ns(np.datetime64("2020", "Y")) == value_ns("2020-01-01")


ISO = {
    "1970-01-02": 86_400 * SECOND,
    "1970-01-01T00:01": 60 * SECOND,
    "1970-01-01 00:00:01": SECOND,
    "1970-01-01T00:00:01Z": SECOND,
    "1970-01-01T00:00:01.5": 1_500_000_000,
    "1970-01-01T00:00:00.123456789Z": 123_456_789,
    "1970-01-01T00:00:00.000000001": 1,
    "1970-01-01T01:00:00+01:00": 0,
    "1970-01-01T01:00:00+0100": 0,
    "1970-01-01T01:00+01": 0,
    "1969-12-31T23:30:00-00:30": 0,
    "2000-02-29T00:00:00Z": 951_782_400 * SECOND,
    "5": 5 * SECOND,
    "+5": 5 * SECOND,
    "-5": -5 * SECOND,
    "0005": 5 * SECOND,
    "5.25": 5_250_000_000,
    "-1e3": -1000 * SECOND,
    "1.5E+1": 15 * SECOND,
}
NOT_ISO = (
    "", " ", "5 ", " 5", "5\n", "1970-01-01\n", "1.5\n", "1970-01-01T00:00:01Z\n", "nan", "inf", "1e999", "5.", ".5",
    "yesterday", "1970-13-01", "1970-02-30", "2001-02-29", "1970-01-01T24:00:00", "1970-01-01T00:60", "1970-01-01T",
    "1970-01-01T00:00:60", "1970-01-01T00:00:61Z", "1970-01-01T00", "1970-01-01Z", "1970-1-1", "0x10",
    "1970-01-01T00:00:00.1234567890", "1970-01-01T00:00+24:00", "1970-01-01T00:00+00:60", "1970-01-01t00:00",
    "0000-01-01", "٣", "99999999999999999999", "0" * 40 + "5", "1_000", "5\x00", "é",
)  # fmt: skip


@pytest.mark.parametrize("text", ISO)
def test_texts_that_are_times(text):
    assert both([text]) == [ISO[text]]


@pytest.mark.parametrize("text", NOT_ISO)
def test_texts_that_are_not_times(text):
    assert both([text]) == [None]


def test_mixed_texts_are_read_one_by_one_where_need_be():
    texts = [*ISO, None, *NOT_ISO] * 3
    assert both(texts) == [*ISO.values(), None, *[None] * len(NOT_ISO)] * 3


@pytest.mark.parametrize("bad", ["1970-02-30T00:00Z", "9999-01-01T00:00Z"])
@pytest.mark.parametrize("at", [0, 77, 199])
def test_one_bad_text_among_many(bad, at):
    texts = [f"1970-01-01T00:{number % 60:02d}Z" for number in range(200)]
    texts[at] = bad
    found = both(texts)
    assert found[at] is None
    assert sum(time is not None for time in found) == 199


def as_iso(instant):
    return str(np.datetime64(instant, "ns"))


zones = st.from_regex(r"[+-][0-9]{2}(:?[0-9]{2})?", fullmatch=True)
numbers = st.from_regex(r"[+-]?[0-9]{1,12}([.][0-9]{1,4})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
clocks = st.from_regex(r"[0-9]{4}-[0-3][0-9]-[0-3][0-9]([T ][0-2][0-9]:[0-6][0-9](:[0-6][0-9])?)?Z?\n?", fullmatch=True)
forms = st.one_of(
    instants.map(as_iso),
    instants.map(lambda instant: as_iso(instant) + "Z"),
    st.builds(lambda instant, zone: as_iso(instant)[:19] + zone, instants, zones),
    numbers,
    clocks,
    st.text(max_size=12),
)


@given(st.lists(st.one_of(st.none(), forms), max_size=40))
@tries(150)
def test_any_text_is_read_alike_alone_and_in_a_column(texts):
    found = both(texts, pa.string())
    for kind in (pa.large_string(), pa.string_view()):
        assert column_values(pa.array(texts, pa.string()).cast(kind)) == found
    assert column_values(pa.array(texts, pa.string()).dictionary_encode()) == found


@given(instants)
@tries(40)
def test_iso_text_is_exact(instant):
    assert both([as_iso(instant), as_iso(instant) + "Z"]) == [instant, instant]


def test_sliced_columns():
    column = pa.array([1, None, 3, 4], pa.int64()).slice(1, 2)
    assert column_values(column) == [None, 3 * SECOND]
    assert column_values(pa.array(["1", None, "x", "4"]).slice(1)) == [None, None, 4 * SECOND]


@pytest.mark.parametrize(
    ("kind", "is_time"),
    [
        (pa.timestamp("ns"), True), (pa.date32(), True), (pa.int8(), True), (pa.float16(), True), (pa.string(), True),
        (pa.string_view(), True), (pa.null(), True), (pa.dictionary(pa.int8(), pa.string()), True),
        (pa.bool_(), False), (pa.binary(), False), (pa.time64("ns"), False), (pa.duration("s"), False),
        (pa.list_(pa.int64()), False), (pa.dictionary(pa.int8(), pa.binary()), False), (pa.decimal128(9), False),
    ],
)  # fmt: skip
def test_which_types_can_be_times(kind, is_time):
    assert is_time_type(kind) is is_time


def test_now_must_be_a_time():
    assert now_ns(date(1970, 1, 2), name="now") == 86_400 * SECOND
    with pytest.raises(InputError, match="now: not a time") as caught:
        now_ns("soon, said ann", name="now")
    assert "ann" not in str(caught.value)
