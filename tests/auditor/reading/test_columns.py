from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.auditor.reading.columns import as_ns, as_text, as_whole, plain
from tests.reference.effort import tries

DAY = 86_400_000_000_000
NOON = 1_709_208_000_000_000_000  # 2024-02-29 12:00 UTC


def moments(column):
    values, valid = as_ns(column)
    return [value if good else None for value, good in zip(values.tolist(), valid.tolist(), strict=True)]


@pytest.mark.parametrize(
    "text",
    [
        "2024-02-29T12:00:00Z",
        "2024-02-29 12:00",
        "2024-02-29T12",
        "2024-02-29T14:00:00+02:00",
        "2024-02-29T14:00:00+0200",
        "2024-02-29T06:30:00.000-05:30",
        "2024-02-29T12:00:00,000000000",
        "20240229T120000Z",
        "1709208000",
        "1709208000.0",
        "1.709208e9",
    ],
)
def test_one_moment_in_many_spellings(text):
    assert moments(pa.array([text])) == [NOON]
    assert moments([text]) == [NOON]
    assert moments(pa.array([text, "nonsense", None])) == [NOON, None, None]


@pytest.mark.parametrize("text", ["2023-02-29", "2024-01-01T24:00", "2024-01-01T10:60", "nan", "inf", "1_0", "٣", ""])
def test_invalid_times(text):
    assert moments(pa.array([text])) == moments([text]) == [None]


@tries(100)
@given(st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1)))
def test_iso_text_and_timestamps_agree(moment):
    typed = pa.array([moment], pa.timestamp("us"))
    text = moment.isoformat()
    assert moments(typed) == moments(pa.array([text])) == moments([text]) == moments(pa.array([text, "x"]))[:1]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([1, None]), [1_000_000_000, None]),
        (pa.array([1], pa.uint64()), [1_000_000_000]),
        (pa.array([2**62, -(2**62)]), [None, None]),
        (pa.array([0.1, float("nan"), float("inf"), 1e300]), [100_000_000, None, None, None]),
        (pa.array([1.5], pa.float32()), [1_500_000_000]),
        (pa.array([dt.date(1970, 1, 2)]), [DAY]),
        (pa.array([1], pa.timestamp("ms")), [1_000_000]),
        (pa.array([2**60], pa.timestamp("s")), [None]),
        (pa.array(["1970-01-02"]).dictionary_encode(), [DAY]),
        (pa.array(["1970-01-02"], pa.string_view()), [DAY]),
        (pa.array([Decimal("0.5")]), [500_000_000]),
        (pa.array([True]), [None]),
        (pa.nulls(1), [None]),
        ([1, 0.5, "2", None, True, [1], 10**30], [10**9, 5 * 10**8, 2 * 10**9, None, None, None, None]),
    ],
)
def test_times_of_every_type(column, expected):
    assert moments(column) == expected


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([5, None]), ["5", None]),
        (pa.array([5.0, 0.1, 1e22, float("nan"), float("inf")]), ["5", "0.1", "1" + "0" * 22, None, "inf"]),
        (pa.array([True]), ["true"]),
        (pa.array([Decimal("5.0")]), ["5"]),
        (pa.array([b"a", b"\xff"]), ["a", None]),
        (pa.array(["a"]).dictionary_encode(), ["a"]),
        (pa.array([[1]]), ["[1]"]),
        (pa.nulls(1), [None]),
        ([5, 5.0, "5", None, True, {"b": 1, "a": 2}], ["5", "5", "5", None, "true", '{"a": 2, "b": 1}']),
    ],
)
def test_texts_of_every_type(column, expected):
    assert as_text(column).to_pylist() == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1.50", "1.5"),
        ("007", "7"),
        ("1e3", "1000"),
        ("2024-01-01T00:00:00Z", "2024-01-01 00:00"),
        ("True", "true"),
    ],
)
def test_plain_spelling_is_common(one, other):
    assert plain(one) == plain(other)


def test_plain_spelling_keeps_different_texts_apart():
    assert len({plain(text) for text in ("a", "A", "1", "1.5", "2024-01-01", "x1")}) == 6


@pytest.mark.parametrize(
    "column", [pa.array([3, None]), pa.array(["3", "x"]), [3, "9" * 30], pa.array([3, 4], pa.uint8())]
)
def test_whole_numbers(column):
    assert as_whole(column).tolist()[0] == 3
    assert as_whole(column).tolist()[1] in {-1, 4}
