"""The tuple methods as seen from outside: types, reasons, time, snapshots, what is promised and measured."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import shoal
from shoal import Categorical, Fads, FadsVaried, Hierarchy, IotAnonymization, KVarp, Numeric, Schema
from shoal.errors import CheckpointError, InputError, ShoalError
from shoal.kernels import clock
from shoal.kernels.tuples.clock import move_by_all, move_clock
from shoal.methods.tuples import engine as tuple_engine
from shoal.methods.tuples import sensitive as tuple_sensitive
from tests.reference.clock import NaiveClock

KEY = bytes(range(32))
TREE = Hierarchy.from_nested({"*": {"north": ["a", "b"], "south": ["c", "7"]}})
AGE, TOWN = Numeric("age", low=0, high=100), Categorical("town", TREE)
METHODS = [Fads, KVarp, IotAnonymization, FadsVaried]
NUMBERS = pa.struct([("lo", pa.int64()), ("hi", pa.int64())])
FLOATS = pa.struct([("lo", pa.float64()), ("hi", pa.float64())])


def make(kind=Fads, *, quasi=(AGE, TOWN), time=None, sensitive=("ill",), carry=("note",), key=KEY, **given):
    schema = Schema(person="id", time=time, quasi=list(quasi), sensitive=list(sensitive), carry=list(carry))
    return kind(schema, key=key, **{"k": 2, "deadline": 2, "reuse": 5, **given})


def rows(*entries, first=0, **more):
    """(person, age, town) each."""
    people, ages, towns = zip(*entries, strict=True)
    count = len(entries)
    columns = {
        "id": pa.array(people, pa.string()), "age": pa.array(ages, pa.int64()), "town": pa.array(towns, pa.string()),
        "ill": [f"ill {first + number}" for number in range(count)],
        "note": pa.array(range(first, first + count), pa.int64()),
    }  # fmt: skip
    return pa.table({**columns, **more})


SOME = rows(("u", 20, "a"), ("v", 30, "b"), ("w", 40, "c"), ("x", 50, None))


def span(low, high):
    return {"lo": low, "hi": high}


# ---- columns and types


def test_schemas_before_and_after_anything_is_seen():
    made = make(Fads, time="ts", carry=["note", "ts"])
    assert made.columns == ("id", "ts", "age", "town", "ill", "note")
    assert made.input_schema.field("age").type == pa.float64()
    assert made.output_schema.names == ["age", "town", "ill", "note", "ts"]
    assert made.output_schema.field("age").type == FLOATS
    made = make()
    made.bind(SOME.schema)
    assert made.output_schema == pa.schema(
        [("age", NUMBERS), ("town", pa.string()), ("ill", pa.string()), ("note", pa.int64())]
    )
    columns = ["row", "verdict", "reason", "group", "delay", "k", "reused", "carriers", "event"]
    assert made.trace_schema.names == columns
    assert make(t=0.5).trace_schema.names[-1] == "reference"
    assert "reference" not in make(t=0.5, reference={"ill": {"x": 1}}).trace_schema.names
    assert made.push_batch(SOME.slice(0, 0)).rows.schema == made.output_schema


def test_an_empty_batch_without_types_binds_nothing():
    made = make()
    made.push_batch(pa.table({name: pa.nulls(0) for name in SOME.schema.names}))
    assert made.push_batch(SOME).rows.num_rows == 2
    assert made.input_schema.field("age").type == pa.int64()


@pytest.mark.parametrize(
    ("name", "column", "saying"),
    [
        ("id", pa.array([1.5] * 4), "column 'id': cannot name people"),
        ("ts", pa.array([[1]] * 4), "column 'ts': no time"),
        ("age", pa.array(["1"] * 4), "column 'age': string is not a number"),
        ("town", pa.array([1.5] * 4), "column 'town': double has no labels"),
        ("note", pa.array([[("a", 1)]] * 4, pa.map_(pa.string(), pa.int64())), "column 'note': .* cannot be published"),
    ],
)
def test_columns_of_types_that_cannot_be_used(name, column, saying):
    made = make(time="ts", deadline="2s", reuse="2s")
    before = made.snapshot()
    data = SOME.append_column("ts", pa.array([1, 2, 3, 4]))
    at = data.schema.get_field_index(name)
    with pytest.raises(InputError, match=saying):
        made.push_batch(data.set_column(at, name, column))
    assert made.snapshot() == before
    made.push_batch(data)


def test_a_column_that_changes_its_type_is_refused():
    made = make()
    made.push_batch(SOME)
    before = made.snapshot()
    with pytest.raises(InputError, match="column 'age': was int64 and is now double; cast it to double before"):
        made.push_batch(SOME.set_column(1, "age", SOME["age"].cast(pa.float64())))
    assert made.snapshot() == before


def recast_some(**kinds):
    table = SOME
    for name, kind in kinds.items():
        table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(kind))
    return table


def test_texts_are_one_type_and_floats_hold_whole_numbers():
    """As pandas and polars send them, a part with missing values after one without."""
    first, straight = recast_some(age=pa.float64()), make()
    expected = [straight.push_batch(first).rows, straight.push_batch(first).rows, straight.flush().rows]
    for town in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.large_string())):
        made = make()
        rows = [made.push_batch(first).rows, made.push_batch(recast_some(id=pa.large_string(), town=town)).rows]
        assert [*rows, made.flush().rows] == expected


def test_a_whole_number_that_no_float_holds_is_refused():
    made = make(carry=["note"])
    data = SOME.set_column(SOME.schema.get_field_index("note"), "note", pa.array([0.5] * len(SOME)))
    made.push_batch(data)
    before = made.snapshot()
    with pytest.raises(InputError, match="column 'note': a value does not fit double; give the whole") as caught:
        made.push_batch(data.set_column(data.schema.get_field_index("note"), "note", pa.array([2**53 + 1] * len(SOME))))
    assert str(2**53 + 1) not in str(caught.value)
    assert made.snapshot() == before


def test_anything_that_speaks_arrow():
    expected = make().push_batch(SOME)
    frames = [SOME.to_pandas(), pl.from_arrow(SOME), pa.RecordBatchReader.from_batches(SOME.schema, SOME.to_batches())]
    frames[0]["age"] = pd.array(SOME["age"].to_pylist(), dtype="Int64")
    for frame in frames:
        release = make().push_batch(frame)
        assert release.rows.to_pylist() == expected.rows.to_pylist()
        assert release.trace.to_pylist() == expected.trace.to_pylist()
    with pytest.raises(InputError, match="push_batch accepts Arrow batches"):
        make().push_batch([{"id": "a"}])
    assert "rows" in repr(expected)


def test_a_large_batch_is_decided_piece_by_piece():
    expected = make().push_batch(SOME)
    with mock.patch.object(tuple_engine, "CHUNK_ROWS", 1):
        release = make().push_batch(SOME)
    assert release.rows.equals(expected.rows)
    assert release.trace.to_pylist() == expected.trace.to_pylist()


def test_people_are_told_apart_by_text():
    ages = {"age": [1, 2, 3], "town": ["a"] * 3, "ill": ["-"] * 3, "note": [0] * 3}
    numbers = make().push_batch(pa.table({"id": [7, 7, 8], **ages}))
    texts = make().push_batch(pa.table({"id": ["7", "7", "8"], **ages}))
    assert numbers.trace.to_pylist() == texts.trace.to_pylist()
    assert sorted(row["row"] for row in texts.trace.to_pylist()) == [0, 2]


@pytest.mark.parametrize("ills", [pa.array([["gout"], ["flu"]]), pa.array([{"name": "gout"}, {"name": "flu"}])])
def test_lists_and_structs_have_no_diversity(ills):
    given = rows(("u", 20, "a"), ("v", 30, "b"), ill=ills)
    with pytest.raises(InputError, match="column 'ill': lists and structs have no diversity; give plain values"):
        make(l=2).push_batch(given)
    make().bind(given.schema)  # without a promise about them they leave as they are


# ---- single records

RECORD = {"id": "u", "age": 20, "town": "a", "ill": "flu", "note": 1}


def test_single_records_fix_the_types():
    made = make()
    assert made.push(RECORD) == []
    assert made.input_schema.field("age").type == pa.float64()  # it may have a fraction later on
    made.push({**RECORD, "id": "v", "age": 20.5})
    shown = made.push({**RECORD, "id": "w", "age": 90.0})
    assert shown == [{"age": span(20.0, 20.5), "town": "a", "ill": "flu", "note": 1}] * 2


def test_single_records_with_labels_that_are_whole_numbers():
    made = make(deadline=1)
    made.push({**RECORD, "town": 7})
    assert [row["town"] for row in made.push({**RECORD, "id": "v", "town": 7})] == ["7", "7"]


def test_single_records_without_values_at_first():
    made = make(deadline=1, missing="covered", min_carriers=1)
    assert made.push({"id": "u", "age": None, "ill": None}) == []
    assert made.push({"id": "v", "age": 3, "town": "a"})[0]["age"] == span(3.0, 3.0)


@pytest.mark.parametrize(
    ("record", "saying"),
    [
        ([1, 2], "push accepts one record, a mapping of columns to values, not list"),
        (SOME, "push accepts one record, .*, not Table; for tables and frames use push_batch"),
        (None, "not NoneType"),
        ({"ID": "u", "age": 20}, "column 'id': the record has no such key"),
        ({"id": "u", "Age": 20}, "column 'age': the record has no such key, nor that of another quasi-identifier"),
        ({}, "column 'id'"),
    ],
)
def test_what_is_no_record_of_the_schema(record, saying):
    made = make()
    before = made.snapshot()
    with pytest.raises(InputError, match=saying):
        made.push(record)
    assert made.snapshot() == before
    assert made.counts["pushed"] == 0


@pytest.mark.parametrize(
    "change",
    [{"age": "20"}, {"age": True}, {"town": 1.5}, {"id": 3.5}, {"ill": {"x"}}, {"note": "text"}, {"age": 1j}],
)
def test_single_records_that_do_not_fit(change):
    made = make()
    made.bind(SOME.schema)
    before = made.snapshot()
    with pytest.raises(InputError, match=f"column '{next(iter(change))}'"):
        made.push({**RECORD, **change})
    assert made.snapshot() == before


@pytest.mark.parametrize("change", [{"age": "x"}, {"town": 1.5}, {"ill": {"x"}}])
def test_first_records_that_do_not_fit(change):
    made = make()
    before = made.snapshot()
    with pytest.raises(InputError, match=f"column '{next(iter(change))}'"):
        made.push({**RECORD, **change})
    assert made.snapshot() == before


def test_single_records_and_batches_in_turn():
    mixed, plain_ = make(deadline=3), make(deadline=3)
    data = pa.concat_tables([SOME, rows(("y", 60, "a"), ("z", 61, "b"), ("u", 20, "c"), first=4)])
    expected = plain_.push_batch(data).rows.to_pylist() + plain_.flush().rows.to_pylist()
    mixed.bind(data.schema)
    found = []
    for number, record in enumerate(data.to_pylist()):
        if number % 2:
            found += mixed.push(record)
        else:
            found += mixed.push_batch(data.slice(number, 1)).rows.to_pylist()
    assert found + mixed.flush().rows.to_pylist() == expected


# ---- what cannot be used


def test_reasons_are_counted_and_explained():
    made = make(time="ts", deadline="10s", reuse="5s", max_gap="1h")
    data = rows(
        (None, 1, "a"), ("", 1, "a"), ("u", 1, "a"), ("u", 1, "a"), ("u", 101, "x"), ("u", 1, "north"), ("u", 1, "a"),
        ("v", 1, "a"),
        ts=pa.array(["1", "1", None, "noon", "1", "1", "1", "4000"]),
    )  # fmt: skip
    trace = made.push_batch(data).trace.to_pylist()
    reasons = [row["reason"] for row in trace]
    assert reasons == ["null-person", "null-person", "null-time", "bad-time", "outside:age", "unknown:town", "ahead"]
    assert [row["row"] for row in trace] == [0, 1, 2, 3, 4, 5, 7]
    assert all(row["verdict"] == "dead" and row["delay"] == 0 for row in trace)
    assert all(row[name] is None for row in trace for name in ("group", "reused", "carriers"))
    assert made.counts == {
        "pushed": 8, "released": 0, "suppressed": 0, "dead": 7, "pending": 1, "null-person": 2, "null-time": 1,
        "bad-time": 1, "ahead": 1, "outside:age": 1, "unknown:town": 1,
    }  # fmt: skip
    single = make(time="ts", deadline="10s", reuse="5s", max_gap="1h")
    single.bind(data.schema)
    assert [single.push(record) for record in data.to_pylist()] == [[]] * 8
    assert single.counts == made.counts
    assert single.snapshot() == made.snapshot()


@pytest.mark.parametrize(
    ("reason", "column", "word"),
    [
        ("null-person", "id", "person"), ("null-time", "ts", "time"), ("bad-time", "ts", "1824"),
        ("ahead", "ts", "max_gap"), ("outside:age", "age", "clamp"), ("unknown:town", "town", "hierarchy"),
    ],
)  # fmt: skip
def test_explanations(reason, column, word):
    refusal = make(time="ts").explain(reason)
    assert refusal.column == column
    assert word in refusal.sentence


def test_clamped_values_are_counted_where_they_are_used():
    made = make(quasi=[Numeric("age", low=25, high=45, outside="clamp"), TOWN])
    data = rows(("u", 20, "a"), ("v", 30, "b"), (None, 99, "c"), ("w", 46, "c"))
    shown = made.push_batch(data).rows.to_pylist()
    assert [row["age"] for row in shown] == [span(25, 30)] * 2
    assert made.metrics["clamped"] == 2
    single = make(quasi=[Numeric("age", low=25, high=45, outside="clamp"), TOWN])
    single.bind(data.schema)
    for record in data.to_pylist():
        single.push(record)
    assert single.metrics == made.metrics


# ---- refused batches change nothing


def test_too_many_sensitive_values():
    made = make(l=2)
    made.push_batch(SOME)
    before = made.snapshot()
    more = rows(*[(f"p{number}", 1, "a") for number in range(5)], first=10)
    with mock.patch.object(tuple_sensitive, "MOST_VALUES", 6):
        with pytest.raises(InputError, match="column 'ill': more than 6 different values"):
            made.push_batch(more)
        assert made.snapshot() == before
        with pytest.raises(InputError, match="column 'ill': more than 6 different values"):
            made.push_batch(pa.concat_tables([more.slice(0, 2), more.slice(2)]))  # the first part alone has room
        assert made.snapshot() == before
        records = more.to_pylist()
        made.push(records[0])
        made.push(records[1])
        before = made.snapshot()
        with pytest.raises(InputError, match="column 'ill': more than 6 different values"):
            made.push(records[2])
        assert made.snapshot() == before


def test_declared_values_of_another_type():
    made = make(t=0.5, reference={"ill": {"flu": 1}})
    before = made.snapshot()
    numbers = SOME.set_column(3, "ill", pa.array([1, 2, 3, 4]))
    with pytest.raises(InputError, match="column 'ill': is int64"):
        made.push_batch(numbers)
    assert made.snapshot() == before
    with pytest.raises(InputError, match="column 'ill': is int64"):
        made.push({**RECORD, "ill": 3})
    assert made.snapshot() == before
    made.push_batch(SOME)  # nothing is bound to what was refused


# ---- time


def timed(*entries, **given):
    """(person, age, seconds) each."""
    people, ages, seconds = zip(*entries, strict=True)
    made = make(quasi=[AGE], time="ts", sensitive=[], carry=[], **{"deadline": "10s", "reuse": "5s", **given})
    return made, pa.table({"id": people, "age": ages, "ts": seconds})


def test_what_is_due_leaves_when_time_passes():
    made, data = timed(("u", 10, 100), ("v", 20, 103), ("w", 90, 104))
    assert made.push_batch(data).rows.num_rows == 0
    assert made.advance(109.9).rows.num_rows == 0
    release = made.advance(110)
    assert release.rows.to_pylist() == [{"age": span(10, 20)}] * 2
    assert sorted(release.trace.column("delay").to_pylist()) == [7 * 10**9, 10 * 10**9]
    assert made.advance(50).trace.num_rows == 0  # time does not go back
    assert made.advance(datetime(1970, 1, 1, 0, 1, 54, tzinfo=UTC)).trace.to_pylist()[0]["verdict"] == "suppressed"
    assert made.metrics["max_delay"] == 10.0
    with pytest.raises(InputError, match="now: not a time"):
        made.advance("soon")


def test_the_clock_never_goes_back():
    made, data = timed(("u", 10, 100), ("v", 20, 50), ("w", 90, 105))
    made.push_batch(data)
    release = made.advance(110)  # v came at 100 by the stream's clock
    assert release.trace.column("delay").to_pylist() == [10 * 10**9] * 2


def test_time_may_pass_before_anything_comes():
    made, data = timed(("u", 10, 100), ("v", 20, 101))
    assert made.advance(500).trace.num_rows == 0
    made.push_batch(data)
    assert made.advance(509).trace.num_rows == 0
    assert made.advance(510).trace.column("delay").to_pylist() == [10 * 10**9] * 2
    early, data = timed(("u", 10, -100), ("v", 20, -95))
    early.advance(-200)
    early.push_batch(data)
    assert sorted(early.advance(-90).trace.column("delay").to_pylist()) == [5 * 10**9, 10 * 10**9]


def test_counts_do_not_care_for_time():
    made = make(quasi=[AGE], sensitive=[], carry=[])
    made.push_batch(pa.table({"id": ["u", "v"], "age": [1, 2]}))
    assert made.advance("2030-01-01").trace.num_rows == 0
    assert made.pending == 2
    with pytest.raises(InputError, match="now: not a time"):
        made.advance(None)


def test_one_wrong_clock_is_not_believed_and_a_wrong_start_is_left():
    made, data = timed(("u", 10, 10**6), ("v", 20, 100), ("w", 30, 101), ("v", 5, 10**6), max_gap="1h")
    trace = made.push_batch(data).trace.to_pylist()
    assert [(row["row"], row["reason"]) for row in trace] == [(3, "ahead")]
    release = made.advance(110)  # u, too, counts from the right start
    assert release.trace.column("delay").to_pylist() == [10 * 10**9] * 2
    assert sorted(release.trace.column("row").to_pylist()) == [0, 1]


@pytest.mark.parametrize("seed", range(5))
def test_the_clock_of_tuples_is_that_of_its_twin(seed):
    random = np.random.default_rng(seed)
    array, naive = np.zeros(clock.CLOCK, dtype=np.int64), NaiveClock(lateness=0, max_gap=50)
    persons = np.stack([random.integers(0, 4, 300), np.zeros(300, dtype=np.int64)], axis=1)
    times = np.cumsum(random.choice([0, 1, 7, 51, -51, 130, -130, 40], 300)).astype(np.int64)
    codes, newest = np.zeros(300, dtype=np.int8), np.zeros(300, dtype=np.int64)
    one = array.copy()
    move_by_all(array, persons, times, 50, codes, newest)
    names = {clock.TAKEN: "taken", clock.RESTART: "restart", clock.AHEAD: "ahead"}
    for number in range(300):
        said = naive.admit(int(persons[number, 0]), int(times[number]))
        assert names[int(codes[number])] == said.replace("late", "taken")
        assert newest[number] == naive.newest
        assert move_clock(one, persons[number, 0], persons[number, 1], times[number], 50) == codes[number]
    assert np.array_equal(one, array)


def test_time_may_be_a_quasi_identifier_and_leave():
    when = Numeric("ts", low="1970-01-01", high="1970-01-02", grid="1min")
    made = make(quasi=[when], time="ts", sensitive=[], carry=[], deadline="10s", reuse="5s")
    made.push_batch(pa.table({"id": ["u", "v"], "ts": pa.array([61, 65], pa.timestamp("s"))}))
    (first, _) = made.flush().rows.to_pylist()
    begin = datetime(1970, 1, 1, tzinfo=UTC)
    assert first == {"ts": span(begin + timedelta(minutes=1), begin + timedelta(minutes=2))}


# ---- what leaves


@pytest.mark.parametrize("kind", METHODS)
def test_suppressed_rows_leave_at_the_root(kind):
    made = make(kind, suppressed="root", k=5)
    release = made.push_batch(SOME)
    root = {"age": span(0, 100), "town": "*"}
    expected = [{**root, "ill": f"ill {row}", "note": row} for row in range(4)]
    shown = release.rows.to_pylist() + made.flush().rows.to_pylist()
    assert sorted(shown, key=itemgetter("note")) == expected
    assert made.counts["suppressed"] == 4
    assert made.metrics["loss"] == made.metrics["loss_all"] == 1.0
    single = make(kind, suppressed="root", k=5)
    single.bind(SOME.schema)
    found = [row for record in SOME.to_pylist() for row in single.push(record)]
    assert found + single.flush().rows.to_pylist() == shown


def test_released_and_suppressed_rows_in_one_decision_order():
    made = make(suppressed="root", reuse=0, k=2, deadline=1, missing="covered")
    data = rows(("u", 20, "a"), ("v", 30, "b"), ("w", 40, "c"), ("w", 41, "c"), ("x", None, "7"), ("x", None, "7"))
    release = made.push_batch(data)
    shown = [(row["note"], row["town"]) for row in release.rows.to_pylist()]
    assert sorted(shown[:2]) == [(0, "north"), (1, "north")]
    assert shown[2] == (2, "*")
    assert sorted(shown[3:]) == [(3, "south"), (4, "south")]
    verdicts = [row["verdict"] for row in release.trace.to_pylist()]
    assert verdicts == ["released", "released", "suppressed", "released", "released"]


def test_the_trace_tells_what_clusters_were_held_against():
    made = make(quasi=[AGE], sensitive=["ill", "score"], carry=[], t=0.9, reference=3, deadline=3)
    data = pa.table(
        {"id": list("uvwxyz"), "age": [1, 2, 3, 4, 5, 6], "ill": ["a", None, "a", "b", "b", "b"],
         "score": [1.0, 2.0, math.nan, None, 2.0, 2.0]}
    )  # fmt: skip
    trace = made.push_batch(data).trace.to_pylist()
    assert sorted(row["row"] for row in trace) == [0, 1, 2, 3]
    said = {(one["column"], one["value"]): one["count"] for one in trace[0]["reference"]}
    assert said == {("ill", "a"): 1, ("ill", "b"): 1, ("ill", None): 1, ("score", "2.0"): 1, ("score", None): 2}
    assert trace[1]["reference"] is None
    assert {row["k"] for row in trace} == {2}


# ---- promises and measures


def test_promises():
    covered = make(k=5, missing="covered").guarantee
    assert covered.method == "fads"
    assert "at least 5 different people" in covered.statement
    assert "at least 3 of them" in covered.statement
    assert (covered.max_delay_ns, covered.max_pending, covered.max_delay_arrivals) == (None, 2, 2)
    assert covered.parameters["k"] == 5
    assert "none for what it does not" in make().guarantee.statement
    assert "all of them with a value for what is shown" in make(missing="hidden").guarantee.statement
    assert "this is not k-anonymity" in make(missing="paper").guarantee.statement
    shown = make(missing="paper", l=3).guarantee.statement
    assert shown.endswith("each class of equal rows, with at least 3 different known sensitive values, or none")
    diverse = make(l=3, entropy_l=2.5, t=0.25).guarantee.statement
    for part in ("at least 3 different known sensitive values", "at least log 2.5", "within 0.25 of the reference"):
        assert part in diverse
    timed_ = make(time="ts", deadline="3s", reuse="1s").guarantee
    assert (timed_.max_delay_ns, timed_.max_pending, timed_.max_delay_arrivals) == (3 * 10**9, None, None)
    late = make(FadsVaried).guarantee
    assert (late.max_delay_ns, late.max_pending, late.max_delay_arrivals) == (None, None, None)


def test_measures_of_nothing():
    made = make()
    assert set(made.metrics.values()) == {0}
    assert made.flush().trace.num_rows == 0
    assert made.state_bytes > 0
    assert made.pending == 0


def test_long_delays_do_not_make_numbers_of_nothing():
    """(1 + alpha) to the power of a day of seconds has no float."""
    made, data = timed(
        ("u", 10, 0), ("v", 10, 1), ("w", 10, 2), ("x", 90, 3), deadline="24h", reuse="1h", max_gap="99d"
    )
    made.push_batch(data)
    made.advance(10**6)
    assert not any(math.isnan(value) for value in made.metrics.values())
    late = make(FadsVaried, quasi=[AGE], time="ts", sensitive=[], carry=[], deadline="1s", reuse="0s", late_penalty=1.0)
    late.push_batch(pa.table({"id": ["u"], "age": [10], "ts": [0]}))
    late.push_batch(pa.table({"id": ["v"], "age": [10], "ts": [5000]}))
    assert late.counts["released"] == 2
    assert late.metrics["loss"] == 0.0


# ---- snapshots


def test_a_snapshot_is_of_one_method_one_key_and_one_set_of_parameters():
    made = make()
    made.push_batch(SOME)
    state = made.snapshot()
    for other in (make(KVarp), make(k=3), make(deadline=3), make(quasi=[TOWN, AGE]), make(missing="paper")):
        with pytest.raises(CheckpointError, match="of another method or of other parameters"):
            other.restore(state)
    with pytest.raises(ShoalError, match="another key"):
        make(key=bytes(32)).restore(state)
    with pytest.raises(ShoalError, match="another key"):
        shoal.restore(state, key=bytes(32))
    with pytest.raises(ShoalError, match="its end is lost"):
        make().restore(state[:-1])
    assert type(shoal.restore(state, key=KEY)) is Fads


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"t": 0.9, "reference": {"ill": {"ill 3": 2, "ill 0": 1, "else": 0.5}}},
        {"t": 0.9, "reference": 3, "l": 2},
    ],
)
def test_going_on_from_a_snapshot(kind, given):
    data = pa.concat_tables([SOME, rows(("y", 60, "a"), ("z", 61, "b"), ("u", 20, None), ("v", 21, "a"), first=4)])
    straight = make(kind, deadline=4, **given)
    expected = [straight.push_batch(data.slice(at, 2)).rows.to_pylist() for at in range(0, 8, 2)]
    expected.append(straight.flush().rows.to_pylist())
    for again in (
        lambda state: shoal.restore(state, key=KEY),
        lambda state: make(kind, deadline=4, **given).restore(state),
    ):
        made, found = make(kind, deadline=4, **given), []
        for at in range(0, 8, 2):
            made = again(made.snapshot())
            found.append(made.push_batch(data.slice(at, 2)).rows.to_pylist())
        made = again(made.snapshot())
        assert [*found, made.flush().rows.to_pylist()] == expected
        assert made.metrics == straight.metrics


def test_declared_values_keep_their_numbers_in_whoever_is_restored():
    def scores():
        return make(t=0.9, reference={"ill": {"1e1": 1, "12": 2, "2": 0.5}})

    data = SOME.set_column(3, "ill", pa.array([12.0, 10.0, 2.0, 12.0]))
    made = scores()
    made.push_batch(data.slice(0, 1))
    state = made.snapshot()
    expected = [made.push_batch(data.slice(1)).trace.to_pylist(), made.snapshot()]
    for other in (made, scores(), shoal.restore(state, key=KEY)):
        other.restore(state)
        assert [other.push_batch(data.slice(1)).trace.to_pylist(), other.snapshot()] == expected
        assert other._engine._reader.codes[0].values == made._engine._reader.codes[0].values


@pytest.mark.parametrize("reference", [{"flu": 1}, {1: 1, 2: 2}, {1.5: 1}, {True: 1}])
def test_a_snapshot_before_anything_came(reference):
    made = make(t=0.5, reference={"ill": reference})
    again = shoal.restore(made.snapshot(), key=KEY)
    assert again.snapshot() == made.snapshot()
    assert again.metrics == made.metrics


def test_more_sensitive_values_than_there_was_room_for():
    """Snapshots are alike however the values came."""
    count = 70
    data = rows(*[(f"p{number}", number % 100, "a") for number in range(count)])
    whole, pieces = make(l=2, reuse=50), make(l=2, reuse=50)
    whole.push_batch(data)
    for at in range(count):
        pieces.push_batch(data.slice(at, 1))
    assert whole.snapshot() == pieces.snapshot()


def test_single_records_that_wait_are_in_the_snapshot():
    made = make(deadline=5, missing="covered")
    made.bind(SOME.schema)
    for record in SOME.to_pylist():
        made.push(record)
    again = shoal.restore(made.snapshot(), key=KEY)
    rest = [[*one.push({**RECORD, "id": "q"}), *one.flush().rows.to_pylist()] for one in (made, again)]
    assert rest[0] == rest[1]
    assert {row["note"] for row in rest[0]} >= {0, 1, 3}
