"""Columns that leave unchanged, and small numbers for sensitive values."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import InputError
from shoal.methods.carried_columns import CarriedColumns
from shoal.methods.tuples import sensitive as tuple_sensitive
from shoal.methods.tuples.sensitive import Coded, SensitiveCodes, is_ordered
from tests.reference.effort import tries

SCHEMA = pa.schema([("ill", pa.string()), ("score", pa.int64())])


def batch_of(rows):
    return pa.RecordBatch.from_arrays(
        [pa.array([f"ill {row}" for row in rows], pa.string()), pa.array(list(rows), pa.int64())], schema=SCHEMA
    )


def values_of(row):
    return f"ill {row}", row


@given(
    st.lists(
        st.tuples(st.sampled_from(["batch", "one", "take", "take one", "keep", "forget"]), st.randoms()), max_size=25
    )
)
@tries(60)
def test_rows_come_back_as_they_were_kept(steps):
    kept, held, row = CarriedColumns(SCHEMA), [], 0
    for what, random in steps:
        numbers = np.array(held, dtype=np.int64)
        if what == "batch":
            rows = range(row, row + random.randrange(4))
            row = max(row, rows.stop) + random.randrange(2)  # dead rows are not kept
            kept.add(np.array(rows, dtype=np.int64), batch_of(rows))
            held += rows
        elif what == "one":
            kept.add_one(row, values_of(row))
            held.append(row)
            row += 1
        elif what == "take":
            chosen = random.sample(held, random.randrange(len(held) + 1))
            assert kept.take(np.array(chosen, dtype=np.int64)).equals(batch_of(chosen))
        elif what == "take one" and held:
            gone = held.pop(random.randrange(len(held)))
            assert kept.take_one(gone) == values_of(gone)
        elif what == "keep":
            kept.keep_only(numbers)
        elif what == "forget":
            assert kept.forget_all_but(numbers).equals(batch_of(held))
    assert kept.take(np.array(held, dtype=np.int64)).equals(batch_of(held))


def test_rows_that_are_not_pending_are_dropped_once_there_are_many():
    kept = CarriedColumns(SCHEMA)
    for start in range(0, 10_000, 1000):
        rows = range(start, start + 1000)
        kept.add(np.array(rows), batch_of(rows))
        kept.keep_only(np.array([start, start + 999]))
        assert sum(len(rows) for rows, _ in kept._chunks) <= 4100 + 1000
    assert kept.take(np.array([9999, 9000])).equals(batch_of([9999, 9000]))


def test_nothing_to_keep():
    kept = CarriedColumns(pa.schema([]))
    assert not kept
    kept.add(np.array([1]), pa.RecordBatch.from_pylist([{}]))
    kept.add_one(2, ())
    assert kept.take(np.array([1, 2])).num_columns == 0
    kept.keep_only(np.array([], dtype=np.int64))
    assert kept.forget_all_but(np.array([1])).num_columns == 0


# ---- sensitive values


def test_values_are_numbered_as_they_come():
    codes = SensitiveCodes("ill", None)
    assert codes.code_all(["b", "a", None, "b", float("nan")]).tolist() == [0, 1, 2, 0, 2]
    assert (codes.values, codes.seen, len(codes)) == (["b", "a", None], ["b", "a", None], 3)
    assert Coded(pa.array(["a", None, "c"]), "ill").codes(codes).tolist() == [1, 2, 3]
    assert Coded(pa.array([], pa.string()), "ill").codes(codes).tolist() == []
    dictionary = pa.DictionaryArray.from_arrays(pa.array([1, None, 1]), pa.array(["z", "c"]))
    assert Coded(dictionary, "ill").codes(codes).tolist() == [3, 2, 3]
    assert codes.share(0) == 0.0


def test_nan_and_none_are_one_value():
    codes = SensitiveCodes("score", None)
    assert Coded(pa.array([1.5, None, float("nan"), 0.0, -0.0]), "score").codes(codes).tolist() == [0, 1, 1, 2, 2]
    mixed = SensitiveCodes("flag", None)
    assert mixed.code_all([True, 1, False, 0]).tolist() == [0, 1, 2, 3]


def test_the_order_of_values():
    codes = SensitiveCodes("score", None)
    codes.code_all([5, None, -1, 3])
    assert codes.order().tolist() == [1, 2, 3, 0]
    spans = SensitiveCodes("span", None)
    spans.code_all([timedelta(2), timedelta(0), None, timedelta(-1)])
    assert spans.order().tolist() == [2, 3, 1, 0]


def test_declared_values_come_first_however_they_were_written():
    one = SensitiveCodes("ill", {"gout": 1, "flu": 2.5})
    other = SensitiveCodes("ill", {"flu": 2.5, "gout": 1})
    assert one.values == other.values == ["flu", "gout"]
    assert [one.share(code) for code in range(2)] == [2.5, 1.0]
    one.code_all(["cold", "flu"])
    assert (one.seen, one.share(2)) == (["cold"], 0.0)


@pytest.mark.parametrize(
    ("declared", "kind", "values"),
    [
        ({"1": 1, "20": 2}, pa.int64(), {1: 1, 20: 2}),
        ({"1.5": 1, "2": 2}, pa.float64(), {1.5: 1, 2.0: 2}),
        ({1: 1, 2: 2}, pa.float64(), {1.0: 1, 2.0: 2}),
        ({"true": 1}, pa.bool_(), {True: 1}),
        ({"2020-01-02": 1}, pa.date32(), {date(2020, 1, 2): 1}),
        ({1: 1, "a": 2}, pa.string(), {"1": 1, "a": 2}),
        ({"a": 1}, pa.dictionary(pa.int32(), pa.string()), {"a": 1}),
        ({"a": 1}, pa.large_string(), {"a": 1}),
    ],
)
def test_declared_values_take_the_columns_type(declared, kind, values):
    codes = SensitiveCodes("s", declared)
    codes.set_type(kind, is_bound=True)
    assert dict(codes.declared) == values
    assert sorted(map(str, codes.values)) == sorted(map(str, values))
    assert [codes.share(code) for code in range(len(codes))] == [values[value] for value in codes.values]


def test_declared_values_that_are_not_of_the_columns_type():
    with pytest.raises(
        InputError, match="column 's': is int64, and values declared for it in reference are not"
    ) as caught:
        SensitiveCodes("s", {"secret": 1}).set_type(pa.int64(), is_bound=True)
    assert "secret" not in str(caught.value)


def test_too_many_values(monkeypatch):
    monkeypatch.setattr(tuple_sensitive, "MOST_VALUES", 3)
    codes = SensitiveCodes("s", None)
    codes.code_all([1, 2])
    codes.check_room([1, 2, 3, 3, None][:4])
    with pytest.raises(InputError, match="column 's': more than 3 different values"):
        codes.check_room([3, None])
    assert codes.values == [1, 2]


def test_which_columns_have_an_order():
    ordered = (pa.int8(), pa.float32(), pa.decimal128(4, 1), pa.dictionary(pa.int8(), pa.int64()))
    assert all(is_ordered(kind) for kind in ordered)
    others = (pa.string(), pa.bool_(), pa.dictionary(pa.int8(), pa.string()), pa.timestamp("s"), pa.duration("s"))
    assert not any(is_ordered(kind) for kind in others)
