"""z-anonymity from the outside: parameters, kinds of input, dead letters, time and ends."""

from __future__ import annotations

import datetime as dt
import math
from concurrent.futures import Future, ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from shoal import KTarget
from shoal.errors import InputError, PolicyError
from shoal.hierarchies import Hierarchy
from shoal.methods.release import Refusal
from shoal.methods.z import helper_thread
from shoal.methods.z.crowds import columns as attributes
from shoal.methods.z.crowds import values
from shoal.methods.z.z_anonymity import ZAnonymity
from tests.reference.effort import IS_COMPILED

KEY = bytes(range(16))
HOUR = 3600
TREE = Hierarchy.from_nested({"web": {"news": ["a", "b"], "shop": ["c"]}})


def make(**settings):
    given = {"z": 2, "window": "1h", "person": "user", "time": "ts", "attribute": "site", **settings}
    return ZAnonymity(**{"key": KEY, **given})


def event(ts, user, site, **more):
    return {"ts": ts, "user": user, "site": site, **more}


def push_all(z, events):
    return [row for one in events for row in z.push(one)]


ROWS = [
    event(0, "ann", "a"), event(1, "bob", "b"), event(2, "cat", "a"), event(2, "ann", "b"), event(3, "dan", "a"),
    event(4, None, "a"), event(5, "eve", None), event(6, "fay", "c"), event(7, "gus", "c"),
]  # fmt: skip


# ---- parameters


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"z": 0}, "^z: must be at least 1"),
        ({"z": 2.0}, "z: must be a whole number"),
        ({"z": True}, "z: must be a whole number"),
        ({"z": None}, "z: is missing; give the number of people that must share a value"),
        ({"z": 2**31}, "z: must be at most 2147483647"),
        ({"window": 0}, "window: must be longer than 0"),
        ({"window": "soon"}, "^window: not a duration"),
        ({"lateness": -1}, "lateness"),
        ({"max_gap": 0}, "max_gap: must be longer than 0"),
        ({"rotation": "0s"}, "rotation: must be longer than 0"),
        ({"person": ""}, "person: must be the name of a column"),
        ({"time": 5}, "time: must be the name of a column"),
        ({"carry": [""]}, "carry: must be the name of a column"),
        ({"carry": ["user"]}, "column 'user': has two roles"),
        ({"attribute": {}}, "attribute: names no column; name at least one"),
        ({"attribute": {"site": 5}}, r"attribute\.site: must be a table"),
        (
            {"attribute": {"site": {"zz": 5}}},
            r"attribute\.site\.zz: unknown key; did you mean \"z\"",
        ),
        ({"on_private": "hide"}, 'on_private: must be one of "drop", "blank", "generalize"'),
        ({"on_private": "generalize"}, "hierarchy: is missing; on_private = .generalize. needs one"),
        ({"hierarchy": TREE}, "hierarchy: is used only with on_private = .generalize."),
        ({"residual": "strict"}, "residual: is used only with on_private = .generalize."),
        ({"attribute": {"site": {"residual": "loose"}}}, "residual: is used only with on_private = .generalize."),
        ({"hierarchy": {"a": "b"}, "on_private": "generalize"}, "hierarchy: must be a shoal.Hierarchy"),
        ({"combine": "k"}, "k: is missing; give how many people must share what is released"),
        ({"k": 2}, 'combine: is missing; k goes with combine = "k"'),
        ({"combine": 5, "k": 2}, 'combine: must be "k"'),
        ({"combine": "k", "k": 1}, "k: must be at least 2"),
        ({"combine": "k", "k": True}, "k: must be a whole number"),
        ({"combine": "k", "k": 2.0}, "k: must be a whole number"),
    ],
)
def test_wrong_parameters(settings, problem):
    with pytest.raises(PolicyError, match=problem):
        make(**settings)


def test_all_problems_are_told_at_once():
    with pytest.raises(PolicyError) as caught:
        make(z=0, window="soon", lateness=-1, person="")
    assert len(caught.value.problems) == 4


def test_what_it_says_of_itself():
    z = make(lateness=5, carry="device", rotation="2h")
    assert z.columns == ("ts", "user", "site", "device")
    assert z.guarantee.max_delay_ns == 5 * 10**9
    assert z.guarantee.max_pending is None
    assert make().guarantee.max_pending == 0
    assert "at least 2 different people within the 1h up to it" in z.guarantee.statement
    assert z.guarantee.parameters["rotation_ns"] == 2 * HOUR * 10**9
    assert (z.live_pairs, z.pending) == (0, 0)
    z.push(event(0, "ann", "a", device="x"))
    z.flush()
    assert z.live_pairs == 1
    assert z.state_bytes > 0


# ---- the rule


def test_the_window_is_closed():
    z = make(window=10)
    assert push_all(z, [event(0, "ann", "a")]) == []
    (row,) = push_all(z, [event(10, "bob", "a")])
    assert row["site"] == "a"
    assert push_all(z, [event(np.datetime64(20_000_000_001, "ns"), "cat", "a")]) == []


def test_people_are_counted_never_events():
    z = make()
    assert push_all(z, [event(number, "ann", "a") for number in range(50)]) == []
    assert len(push_all(z, [event(50, "bob", "a"), event(51, "ann", "a")])) == 2


def test_equal_times_are_decided_by_arrival():
    z = make()
    assert [len(z.push(event(0, user, "a"))) for user in ("ann", "bob", "ann")] == [0, 1, 1]


def test_pseudonyms_change_with_the_epoch():
    z = make(z=1, rotation=10)
    names = [z.push(event(ts, "ann", "a"))[0]["user"] for ts in (0, 9, 10, 11)]
    assert names[0] == names[1] != names[2] == names[3]
    assert all(len(name) == 32 and set(name) <= set("0123456789abcdef") for name in names)


def test_a_table_of_columns_blanks_what_is_private():
    z = make(attribute={"site": {"z": 2}, "device": {"z": 3, "window": 10}})
    rows = push_all(
        z, [event(0, "ann", "a", device="x"), event(1, "bob", "a", device="x"), event(2, "cat", "b", device="x")]
    )
    assert [(row["site"], row["device"]) for row in rows] == [("a", None), (None, "x")]
    assert z.counts["suppressed"] == 1
    assert z.trace_schema.names[-2:] == ["z.site", "z.device"]


def test_blank_lets_every_usable_row_leave():
    z = make(on_private="blank")
    rows = push_all(z, ROWS)
    assert [row["site"] for row in rows] == [None, None, "a", "b", "a", None, None, "c"]
    assert z.counts["dead"] == 1


# ---- kinds of input


def table():
    return pa.Table.from_pylist(
        ROWS, schema=pa.schema([("ts", pa.int64()), ("user", pa.string()), ("site", pa.string())])
    )


def text(kind):
    return table().cast(pa.schema([("ts", pa.int64()), ("user", kind), ("site", kind)]))


def encoded():
    columns = [table()["ts"], table()["user"].dictionary_encode(), table()["site"].dictionary_encode()]
    return pa.table(columns, names=["ts", "user", "site"])


def chunked():
    return pa.concat_tables([table().slice(start, 2) for start in range(0, len(ROWS), 2)])


def dictionary_of_nulls():
    """Nulls among the values of a dictionary instead of among its indices."""
    column = encoded()["site"].combine_chunks()
    values = pa.concat_arrays([column.dictionary, pa.nulls(1, pa.string())])
    indices = column.indices.fill_null(len(values) - 1)
    made = pa.DictionaryArray.from_arrays(indices, values)
    return table().set_column(2, "site", made)


INPUTS = {
    "table": table,
    "chunks": chunked,
    "large_string": lambda: text(pa.large_string()),
    "string_view": lambda: text(pa.string_view()),
    "dictionary": encoded,
    "dictionary of nulls": dictionary_of_nulls,
    "pandas": lambda: pd.DataFrame(ROWS),
    "polars": lambda: pl.DataFrame(ROWS),
    "reader": lambda: table().to_reader(max_chunksize=4),
    "batch": lambda: table().combine_chunks().to_batches()[0],
    "sliced batch": lambda: pa.concat_tables([table(), table()]).combine_chunks().to_batches()[0].slice(0, len(ROWS)),
    "slice with an offset": lambda: pa.concat_tables([table(), table()]).combine_chunks().slice(len(ROWS)),
    "more columns": lambda: table().append_column("other", pa.array([{"x": [n]} for n in range(len(ROWS))])),
    "other order": lambda: table().select(["site", "ts", "user"]),
    "struct": lambda: StructArray(table()),
}  # fmt: skip


class StructArray:
    """Something that only speaks Arrow's array interface."""

    def __init__(self, data):
        self._batch = data.combine_chunks().to_batches()[0]

    def __arrow_c_array__(self, requested_schema=None):
        return self._batch.__arrow_c_array__(requested_schema)


@pytest.mark.parametrize("lateness", [0, 2])
@pytest.mark.parametrize("kind", INPUTS)
def test_every_kind_of_input_gives_the_same(kind, lateness):
    for settings in (
        {},
        {"hierarchy": Hierarchy.by_suffix(), "on_private": "generalize"},
        {"hierarchy": TREE, "on_private": "generalize"},
    ):
        expected, got = make(lateness=lateness, **settings), make(lateness=lateness, **settings)
        first, second = expected.push_batch(table()), got.push_batch(INPUTS[kind]())
        assert second.rows.to_pylist() == first.rows.to_pylist()
        assert second.trace.to_pylist() == first.trace.to_pylist()
        assert got.flush().rows.to_pylist() == expected.flush().rows.to_pylist()
        assert got.counts == expected.counts


@pytest.mark.parametrize("lateness", [0, 2])
def test_a_frame_of_polars_with_all_it_has(lateness):
    frame = pl.DataFrame(
        {
            "ts": [1, 2, 3], "user": ["ann", "bob", "cat"], "site": ["a", "a", "a"], "list": [["p"], None, []],
            "struct": [{"k": "v"}] * 3, "bytes": [b"1", None, b"3"],
            "pair": pl.Series([["a", "b"]] * 3, dtype=pl.Array(pl.String, 2)), "none": [None] * 3,
        }
    )  # fmt: skip
    site = pl.col("site")
    frame = frame.with_columns(site.cast(pl.Categorical).alias("kind"), site.cast(pl.Enum(["a"])).alias("enum"))
    carried = ["list", "struct", "bytes", "pair", "none", "enum"]
    for attribute in ("site", "kind"):
        z = make(attribute=attribute, carry=carried, lateness=lateness)
        rows = [*z.push_batch(frame).rows.to_pylist(), *z.flush().rows.to_pylist()]
        assert [row[attribute] for row in rows] == ["a", "a"]
        assert [{name: row[name] for name in carried} for row in rows] == frame.select(carried).to_dicts()[1:]


def test_numbers_and_truth_values_count_as_their_text():
    numbers = (
        table()
        .set_column(1, "user", pa.array(range(len(ROWS)), pa.int32()))
        .set_column(2, "site", pa.array([number % 2 == 0 for number in range(len(ROWS))]))
    )
    z, other = make(), make()
    release = z.push_batch(numbers)
    singles = [row for record in numbers.to_pylist() for row in other.push(record)]
    assert release.rows.to_pylist() == singles
    assert release.rows.schema.field("site").type == pa.bool_()
    same = make().push_batch(numbers.set_column(1, "user", numbers["user"].cast(pa.string())))
    assert same.rows["user"].to_pylist() == release.rows["user"].to_pylist()


def test_whole_numbers_can_wait_one_by_one():
    z, other = make(lateness=5), make(lateness=5)
    events = [event(ts, 7_000_000_000 + ts % 3, ts % 2) for ts in range(40)]
    rows = push_all(z, events) + z.flush().rows.to_pylist()
    batch = other.push_batch(pa.Table.from_pylist(events))
    assert rows == batch.rows.to_pylist() + other.flush().rows.to_pylist()
    assert len(rows) > 30


@pytest.mark.parametrize(
    "empty",
    [
        table().slice(0, 0),
        table().schema.empty_table(),
        pl.DataFrame(schema={"ts": pl.Int64, "user": pl.String, "site": pl.String}),
    ],
)
def test_an_empty_input_fixes_the_types_and_gives_nothing(empty):
    z = make()
    release = z.push_batch(empty)
    assert release.rows.num_rows == release.trace.num_rows == 0
    assert release.rows.schema == z.output_schema == make_bound().output_schema
    assert z.counts["pushed"] == 0


def make_bound():
    z = make()
    z.bind(table().schema)
    return z


def test_an_empty_frame_that_knows_no_types_fixes_none():
    z = make()
    z.push_batch(pa.table({"ts": pa.nulls(0), "user": pa.nulls(0), "site": pa.nulls(0)}))
    assert len(z.push_batch(table()).rows) > 0


@pytest.mark.parametrize("missing", ["ts", "user", "site"])
def test_a_missing_column_is_named(missing):
    for rows in (table(), table().slice(0, 0)):
        with pytest.raises(InputError, match=f"column '{missing}': is not among") as caught:
            make().push_batch(rows.rename_columns([n if n != missing else "elsewhere" for n in rows.column_names]))
        assert not any(word in str(caught.value) for word in ("ann", "elsewhere"))


@pytest.mark.parametrize(
    ("column", "kind", "saying"),
    [
        ("ts", pa.list_(pa.int64()), "is not a time type"),
        ("user", pa.float64(), "cannot be counted"),
        ("site", pa.binary(), "cannot be counted"),
    ],
)
def test_types_that_cannot_be_used(column, kind, saying):
    with pytest.raises(InputError, match=f"column '{column}': .*{saying}"):
        make().push_batch(
            table().schema.empty_table().set_column(table().schema.get_field_index(column), column, pa.array([], kind))
        )


def test_a_type_that_changes_on_the_way():
    z = make()
    z.push_batch(table())
    with pytest.raises(InputError, match="column 'site': was string and is now int64"):
        z.push_batch(table().set_column(2, "site", pa.array(range(len(ROWS)))))
    z.push_batch(encoded())
    z.push_batch(table().set_column(2, "site", table()["site"].cast(pa.large_string())))


def test_what_is_no_batch():
    with pytest.raises(InputError, match="not list"):
        make().push_batch([{"ts": 1}])
    with pytest.raises(InputError, match=r"push accepts one record, .*, not list"):
        make().push([{"ts": 1}])


# ---- dead letters


def reasons(release):
    return [row["reason"] for row in release.trace.to_pylist()]


@pytest.mark.parametrize("lateness", [0, 5])
def test_records_that_cannot_be_used(lateness):
    records = [
        event(None, "ann", "a"),
        event("1970", "ann", "a"),
        event("soon", "ann", "a"),
        event("1", "", "a"),
        event("2", None, "a"),
    ]
    schema = pa.schema([("ts", pa.string()), ("user", pa.string()), ("site", pa.string())])
    z = make(lateness=lateness)
    release = z.push_batch(pa.Table.from_pylist(records, schema=schema))
    dead = ["null-time", "bad-time", "null-person", "null-person"]
    assert [reason for reason in reasons(release) if reason] == dead
    single = make(lateness=lateness)
    for record in records:
        single.push(record)
    assert single.counts == z.counts


def test_reasons_are_explained():
    z = make(hierarchy=TREE, on_private="generalize")
    assert z.explain("late").column == "ts"
    assert z.explain("null-person") == Refusal("user", "missing person identifier; fill the column")
    assert z.explain("unknown-value.site").column == "site"


def test_values_the_hierarchy_does_not_know():
    z = make(hierarchy=TREE, on_private="generalize")
    release = z.push_batch(pa.Table.from_pylist([event(0, "ann", "a"), event(1, "bob", "zzz"), event(2, "cat", None)]))
    assert reasons(release) == [None, "unknown-value.site", None]
    z.push(event(3, "dan", "yyy"))
    assert z.counts["unknown-value.site"] == 2


def test_the_first_unknown_column_is_named_either_way():
    rules = {"hierarchy": TREE, "on_private": "generalize"}
    for push in ("push", "push_batch"):
        z = make(attribute={"site": rules, "device": rules})
        record = event(0, "ann", "zzz", device="zzz")
        z.push(record) if push == "push" else z.push_batch(pa.Table.from_pylist([record]))
        assert z.counts["unknown-value.site"] == 1
        assert "unknown-value.device" not in z.counts


@pytest.mark.parametrize("lateness", [0, 5])
def test_half_a_character_is_nobody_and_no_value(lateness):
    z = make(lateness=lateness)
    assert z.push(event(0, "ann\ud800", "a")) == []
    assert z.counts["null-person"] == 1
    assert z.push(event(0, "bob", "a")) == []
    assert z.push(event(0, "cat", "é")) == []
    if lateness:
        with pytest.raises(InputError, match="column 'site'") as caught:
            z.push(event(0, "dan", "secret\ud800"))
        assert "secret" not in str(caught.value)
    else:
        assert z.push(event(0, "dan", "secret\ud800")) == []
        assert z.counts["suppressed"] == 3


# ---- time


def test_late_without_lateness_and_with():
    events = [event(10, "ann", "a"), event(9, "bob", "a"), event(10, "cat", "a")]
    z = make()
    assert len(push_all(z, events)) == 1
    assert z.counts["late"] == 1
    z = make(lateness=1)
    assert push_all(z, events) == []
    assert [row["ts"] for row in z.flush().rows.to_pylist()] == [10, 10]
    assert "late" not in z.counts


def test_one_wrong_clock_does_not_kill_the_stream():
    z = make(max_gap="1d")
    events = [event(0, "ann", "a"), event(10**8, "bob", "a"), event(1, "cat", "a"), event(10**8, "bob", "a")]
    assert [row["ts"] for row in push_all(z, events)] == [1]
    assert z.counts["ahead"] == 2
    z.push(event(10**8, "dan", "a"))
    assert z.counts["ahead"] == 2
    z.push(event(2, "ann", "a"))
    assert z.counts["late"] == 1


@pytest.mark.parametrize("lateness", [0, 60])
def test_a_wrong_first_clock_is_forgotten(lateness):
    z = make(lateness=lateness, z=1)
    stream = [event(10**8, "ann", "a"), event(10**8 + 1, "ann", "b"), event(0, "bob", "a"), event(1, "cat", "a")]
    release = z.push_batch(pa.Table.from_pylist(stream))
    single = make(lateness=lateness, z=1)
    single.bind(pa.Table.from_pylist(stream).schema)
    assert push_all(single, stream) == release.rows.to_pylist()
    assert single.snapshot() == z.snapshot()
    assert z.counts["ahead" if lateness else "released"] == (2 if lateness else 4)


def test_time_before_1970_and_an_unusable_start():
    rows = [event(None, "ann", "a")] * 5 + [event(-100, "ann", "a"), event(-50, "bob", "a")]
    schema = pa.schema([("ts", pa.int64()), ("user", pa.string()), ("site", pa.string())])
    whole = make(lateness=10).push_batch(pa.Table.from_pylist(rows, schema=schema))
    assert whole.trace.to_pylist()[-1]["delay"] == 50 * 10**9


def test_advance_lets_what_waits_leave():
    z = make(lateness=10)
    push_all(z, [event(0, "ann", "a"), event(1, "bob", "a")])
    assert z.advance(10).trace.num_rows == 1
    assert z.pending == 1
    release = z.advance(dt.datetime(1970, 1, 1, 0, 0, 11))
    assert release.rows.column("ts").to_pylist() == [1]
    assert release.trace.to_pylist()[0]["delay"] == 10 * 10**9
    assert z.advance(5).trace.num_rows == 0
    z.push(event(0.5, "cat", "a"))
    assert z.counts["late"] == 1
    with pytest.raises(InputError, match="now: not a time"):
        z.advance("soon")


def test_advance_may_come_first():
    z = make()
    z.advance(100)
    z.push(event(99, "ann", "a"))
    assert z.counts["late"] == 1


def test_an_idle_stream_forgets():
    z = make(lateness=10, window=60)
    push_all(z, [event(ts, f"u{ts}", "a") for ts in range(30)])
    z.flush()
    assert z.live_pairs == 30
    z.advance(90)
    assert z.live_pairs == 10
    z.advance(200)
    assert z.live_pairs == 0


def test_advance_far_below_all_windows():
    z = make(window="140 w", lateness=0)
    z.advance(-(2**62) // 10**9 + 1)
    long = make(window=2**62 // 10**9, lateness=2**62 // 10**9)
    long.advance(-(2**62) // 10**9 + 1)
    assert long.live_pairs == 0


def test_after_a_flush_what_is_older_is_late():
    """Else it would be counted with people who came after it, and expire after them."""
    for push in ("push", "push_batch"):
        z = make(lateness=10)
        z.push_batch(pa.Table.from_pylist([event(100, "ann", "a")]))
        z.flush()
        older, equal = event(99, "bob", "a"), event(100, "cat", "a")
        for record in (older, equal):
            z.push(record) if push == "push" else z.push_batch(pa.Table.from_pylist([record]))
        assert z.counts["late"] == 1
        z.flush()
        assert z.counts["released"] == 1
        state = z.snapshot()
        z.flush()
        assert z.snapshot() == state


# ---- single records that wait


def test_a_record_that_waits_comes_back_unchanged():
    carried = [
        1, 2.5, 2**53, True, "x", None, dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC),
        pd.Timestamp(1_577_836_800_000_000_001), dt.date(2020, 1, 1), float("nan"), [1, 2], np.float32(0.1),
    ]  # fmt: skip
    for value in carried:
        z = make(z=1, lateness=5, carry=["note"])
        z.push(event(0, "ann", "a", note=value))
        z.snapshot()  # puts it into a column
        (row,) = z.push(event(10, "ann", "a", note=None))
        assert row["note"] == value or (isinstance(value, float) and math.isnan(value))
        assert isinstance(row["note"], bool) == isinstance(value, bool)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (1, "x"), ("x", 1), (True, 1), (1.5, True), (2.5, 2**53 + 1), (dt.date(2020, 1, 1), 5),
        (dt.datetime(2020, 1, 1), pd.Timestamp(1)), (dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)),
        ("x", "x\ud800"), ([1], [2.5]), ("x", Fraction(1, 3)),
    ],
)  # fmt: skip
def test_a_value_that_would_change_is_refused(first, second):
    z = make(lateness=5, carry=["note"])
    z.push(event(0, "ann", "a", note=first))
    before = z.snapshot()
    with pytest.raises(InputError, match="column 'note': a value is not") as caught:
        z.push(event(1, "bob", "a", note=second))
    assert z.snapshot() == before
    assert str(second) not in str(caught.value)


@pytest.mark.parametrize("value", [Fraction(1, 3), 2**70, object(), "\ud800", 2**53 + 1])
def test_a_first_value_no_column_holds_is_refused(value):
    z = make(lateness=5, carry=["note"])
    before = z.snapshot()
    with pytest.raises(InputError, match="column 'note'") as caught:
        z.push(event(0, "ann", "a", note=value))
    assert z.snapshot() == before
    assert str(value) not in str(caught.value)


def test_what_is_dead_fixes_no_type():
    z = make(lateness=5)
    z.push(event(None, None, None))
    z.push(event(2**60, "ann", 7))
    z.push(event(1, 7, 3))
    assert z.counts["dead"] == 2
    assert z.pending == 1


def test_batches_and_single_records_wait_together():
    z, other = make(z=1, lateness=5), make(z=1, lateness=5)
    events = [event(ts, "ann", str(ts)) for ts in (3, 1, 2, 5, 4, 9, 7, 8, 6, 20)]
    rows = z.push_batch(pa.Table.from_pylist(events[:3])).rows.to_pylist()
    rows += push_all(z, events[3:5])
    rows += z.push_batch(pa.Table.from_pylist(events[5:7])).rows.to_pylist()
    rows += push_all(z, events[7:])
    rows += z.flush().rows.to_pylist()
    whole = other.push_batch(pa.Table.from_pylist(events)).rows.to_pylist() + other.flush().rows.to_pylist()
    assert rows == whole
    assert [row["ts"] for row in rows] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 20]


# ---- size


class BusyPool:
    """Helpers that never get to their work: the caller does everything."""

    def submit(self, function, *args, **kwargs):
        return Future()


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"lateness": 5},
        {"hierarchy": Hierarchy.by_suffix(), "on_private": "generalize", "z": 7},
        {"on_private": "blank", "carry": ["n"]},
        {"combine": "k", "k": 2, "window": 10},
        {"target": KTarget(k=2, p=0.5), "z": None, "window": 10},
    ],
    ids=["plain", "late", "generalize", "blank", "combine", "target"],
)
def test_output_and_state_do_not_depend_on_pieces_and_threads(settings, threads, monkeypatch):
    events = [{**event(ts // 3, f"u{ts % 7}", f"s{ts % 4}.x"), "n": ts} for ts in range(200)]
    events[7:9] = [event(None, "u1", "s1.x") | {"n": 0}, event(1, None, "s1.x") | {"n": 0}]
    whole, sliced = make(**settings), make(**settings)
    expected = whole.push_batch(pa.Table.from_pylist(events))
    monkeypatch.setattr(attributes, "SLICE", 16)
    monkeypatch.setattr(helper_thread, "SMALLEST_PIECE", 16)
    monkeypatch.setattr(helper_thread, "LARGEST_PIECE", 32)
    monkeypatch.setattr(helper_thread, "helpers", lambda: threads - 1)
    with ThreadPoolExecutor(max(1, threads - 1)) as pool:
        monkeypatch.setattr(helper_thread, "_pool", lambda: BusyPool() if threads == 1 else pool)
        found = sliced.push_batch(pa.Table.from_pylist(events))
        assert found.rows.to_pylist() == expected.rows.to_pylist()
        assert found.trace.to_pylist() == expected.trace.to_pylist()
    assert found.rows.num_rows or settings.keys() & {"combine", "target"}
    assert sliced.snapshot() == whole.snapshot()


def test_helpers_work_ahead_of_the_caller_and_an_error_reaches_it(monkeypatch):
    monkeypatch.setattr(helper_thread, "helpers", lambda: 2)
    assert list(helper_thread.ahead(lambda number: 10 * number, range(9))) == list(range(0, 90, 10))
    with pytest.raises(ZeroDivisionError):
        list(helper_thread.ahead(lambda number: 1 // number, [1, 2, 0, 3]))
    assert helper_thread.piece_rows(10**6) == helper_thread.LARGEST_PIECE


def test_each_keeps_the_order_and_an_error_reaches_the_caller():
    numbers = range(9)
    for rows in (1, helper_thread.SMALLEST_PIECE + 1):
        assert helper_thread.each(lambda number: 10 * number, numbers, rows=rows) == [10 * number for number in numbers]
        with pytest.raises(ZeroDivisionError):
            helper_thread.each(lambda number: 1 // number, [1, 2, 0, 3], rows=rows)


@pytest.mark.parametrize("first", [1, 40])
def test_a_wrong_first_clock_is_found_in_any_piece(first, monkeypatch):
    wrong = [event(10**6 + number, "u0", "s0") for number in range(first)]
    events = [*wrong, *(event(ts, f"u{ts % 7}", f"s{ts % 4}") for ts in range(100))]
    whole, sliced = make(), make()
    expected = whole.push_batch(pa.Table.from_pylist(events))
    assert expected.trace.num_rows == first + 100
    monkeypatch.setattr(helper_thread, "SMALLEST_PIECE", 16)
    found = sliced.push_batch(pa.Table.from_pylist(events))
    assert found.rows.to_pylist() == expected.rows.to_pylist()
    assert found.trace.to_pylist() == expected.trace.to_pylist()
    assert sliced.snapshot() == whole.snapshot()


def test_single_records_give_memory_back(monkeypatch):
    monkeypatch.setattr(attributes, "SLICE", 50)
    z = make(window=10)
    push_all(z, [event(0, f"u{number}", f"s{number}") for number in range(1000 if IS_COMPILED else 300)])
    full = z.state_bytes
    push_all(z, [event(100 + number, "ann", "a") for number in range(60)])
    assert z.state_bytes < full / 2


def test_a_reader_of_paths_must_say_where_they_come_from():
    with pytest.raises(NotImplementedError):
        values.PathValues()._paths(None, slice(0), None)


@pytest.mark.compiled
def test_a_very_deep_hierarchy():
    depth = 40_000
    labels = [*(f"n{level}" for level in range(depth)), "other"]
    deep = Hierarchy.from_dict({"kind": "closed", "labels": labels, "parents": [-1, *range(depth - 1), 0]})
    z = make(hierarchy=deep, on_private="generalize")
    z.push(event(1, "ann", "other"))
    (row,) = z.push(event(2, "bob", f"n{depth - 1}"))
    assert row["site"] == "n0"


def test_a_release_shows_no_values():
    release = make(z=1).push_batch(table())
    assert repr(release) == f"<Release: {release.rows.num_rows} rows released, 1 suppressed, 1 refused>"
    assert release.trace is release.trace


def test_equal_keys_give_equal_output_and_other_keys_other_names():
    one, same, other = make(), make(), make(key=b"k" * 16)
    first, second, third = (z.push_batch(table()).rows for z in (one, same, other))
    assert first.equals(second)
    assert first["site"].to_pylist() == third["site"].to_pylist()
    assert not set(first["user"].to_pylist()) & set(third["user"].to_pylist())


def test_an_event_older_than_a_flush_is_late_and_no_wrong_clock():
    z = make(z=1, lateness="20h")
    z.push(event(100 * 3600, "a", "x"))
    assert z.flush().rows.num_rows == 1
    assert z.push(event(95 * 3600, "b", "x")) == []
    assert z.counts["late"] == 1
    assert z.push(event(101 * 3600, "b", "x")) == []
    assert z.flush().rows.num_rows == 1


SECRET_VALUES = pa.DictionaryArray.from_arrays(
    pa.array([0, 1, 2], pa.int8()), pa.array(["SECRET-1", "SECRET-2", "fine"])
)
HIDING = {
    "struct": pa.StructArray.from_arrays([SECRET_VALUES], ["inside"]),
    "list": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), SECRET_VALUES),
    "view": pa.array([["SECRET-1"], ["SECRET-2"], ["fine"]], pa.list_view(pa.string())),
    "run ends": pa.RunEndEncodedArray.from_arrays(
        pa.array([1, 2, 3], pa.int32()), pa.array(["SECRET-1", "SECRET-2", "f"])
    ),
    "map": pa.array([[("k", "SECRET-1")], [("k", "SECRET-2")], [("k", "f")]], pa.map_(pa.string(), pa.string())),
}


@pytest.mark.parametrize("kind", HIDING)
def test_types_that_take_other_rows_along_are_not_carried(kind):
    z = make(carry=("extra",))
    before = z.snapshot()
    batch = pa.table({"ts": [0, 1, 2], "user": ["a", "b", "c"], "site": ["x", "y", "y"], "extra": HIDING[kind]})
    with pytest.raises(InputError, match=r"'extra': .* cannot be carried"):
        z.push_batch(batch)
    assert z.snapshot() == before


def test_nothing_of_suppressed_rows_is_in_the_bytes_of_a_release():
    """Picked rows must be copies: a slice or a whole dictionary would take the values of other rows along."""
    values = ["SECRET-1", "SECRET-2", "fine"]
    columns = {
        "plain": pa.array(values),
        "coded": pa.array(values).dictionary_encode(),
        "lists": pa.array([[value] for value in values]),
        "structs": pa.array([{"inside": value} for value in values]),
    }
    z = make(z=2, carry=tuple(columns))
    batch = pa.table({"ts": [0, 1, 2], "user": ["a", "b", "c"], "site": ["SECRET-3", "y", "y"], **columns})
    rows = z.push_batch(batch).rows
    assert rows.num_rows == 1
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, rows.schema) as writer:
        writer.write_batch(rows)
    assert b"fine" in out.getvalue().to_pybytes()
    assert b"SECRET" not in out.getvalue().to_pybytes()


@pytest.mark.compiled
@pytest.mark.parametrize("side", ["suffix", "prefix"])
def test_large_batches_of_open_hierarchies_leave_as_small_ones_do(side):
    """Rows of one piece are written out in another thread while the next is decided: neither may disturb the other."""
    rng = np.random.default_rng(5)
    rows = 120_000
    parts = ["".join(rng.choice(list("abc"), 1 + n % 2)) for n in range(12)]
    joint = "." if side == "suffix" else "/"
    deep = [joint.join(rng.choice(parts, 1 + int(depth))) for depth in rng.integers(0, 9, 4000)]
    table = pa.table(
        {
            "ts": pa.array(np.arange(rows) // 50),
            "user": pa.array(rng.integers(0, 5000, rows)).cast(pa.string()),
            "site": pa.array(np.array(deep)[rng.zipf(1.3, rows) % 4000]),
        }
    )
    hierarchy = Hierarchy.from_separator(joint, side=side)
    settings = {"z": 30, "window": 200, "on_private": "generalize", "hierarchy": hierarchy}
    small = make(**settings)
    expected = pa.Table.from_batches([small.push_batch(table.slice(at, 10_000)).rows for at in range(0, rows, 10_000)])
    for _ in range(3):
        whole = make(**settings).push_batch(table.combine_chunks()).rows
        whole.validate(full=True)
        assert pa.Table.from_batches([whole]).equals(expected.combine_chunks())
