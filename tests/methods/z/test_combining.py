"""z-anonymity that watches combinations, from the outside: when rows leave, what is declared, flushes, wrong clocks."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.errors import CheckpointError, InputError
from shoal.methods.z.z_anonymity import ZAnonymity

KEY = bytes(range(16))
SECOND = 10**9


def make(**settings):
    given = {"z": 1, "window": 10, "person": "user", "time": "ts", "attribute": "site", "combine": "k", "k": 2}
    return ZAnonymity(**{"key": KEY, **given, **settings})


def event(ts, user, site, **more):
    return {"ts": ts, "user": user, "site": site, **more}


def push_all(method, *events):
    return [(row["ts"], row["site"]) for one in events for row in method.push(event(*one))]


def left(release):
    return [(row["ts"], row["site"]) for row in release.rows.to_pylist()]


def test_rows_leave_at_the_end_of_their_epoch_in_order():
    method = make()
    assert push_all(method, (0, "ann", "x"), (3, "bob", "x"), (9.5, "ann", "x")) == []
    assert method.pending == 3
    assert push_all(method, (10, "cat", "x")) == [(0, "x"), (3, "x"), (9.5, "x")]
    assert method.counts == {"pushed": 4, "released": 3, "suppressed": 0, "dead": 0, "pending": 1}


def test_what_makes_somebody_stand_out_goes():
    method = make()
    push_all(method, (0, "ann", "x"), (1, "ann", "rare"), (2, "bob", "x"), (3, "cat", "y"))
    assert push_all(method, (10, "ann", "x")) == [(0, "x"), (2, "x")]
    assert method.counts["suppressed"] == 2


def test_time_may_pass_without_events():
    method = make(lateness=2)
    push_all(method, (0, "ann", "x"), (3, "bob", "x"))
    assert left(method.advance(np.datetime64(12 * SECOND - 1, "ns"))) == []
    release = method.advance(np.datetime64(12 * SECOND, "ns"))
    assert left(release) == [(0, "x"), (3, "x")]
    assert release.trace.column("delay").to_pylist() == [12 * SECOND, 9 * SECOND]
    assert release.trace.column("group").to_pylist() == [0, 0]


def test_what_is_declared():
    promised = make(lateness=2, rotation=30, k=3).guarantee
    assert promised.max_delay_ns == 32 * SECOND
    assert promised.max_pending is None
    assert "in an epoch of 30s" in promised.statement
    assert "at least 3 different people" in promised.statement
    assert promised.parameters["k"] == 3
    plain = make(combine=None, k=None).guarantee
    assert (plain.max_delay_ns, plain.max_pending) == (0, 0)
    assert "k" not in plain.parameters


@pytest.mark.parametrize("is_restored", [False, True], ids=["the same", "restored"])
def test_what_comes_after_a_flush_counts_but_never_leaves(is_restored):
    method = make(z=2)
    push_all(method, (0, "ann", "x"), (1, "bob", "x"), (2, "ann", "x"))
    assert left(method.flush()) == [(1, "x"), (2, "x")]
    if is_restored:
        method = shoal.restore(method.snapshot(), key=KEY)
    assert push_all(method, (3, "cat", "x"), (4, "cat", "y"), (5, "bob", "y"), (11, "cat", "y"), (12, "bob", "y")) == []
    assert method.pending == 2  # the last two, whose values passed by what was shown before and after the flush
    assert left(method.flush()) == [(11, "y"), (12, "y")]
    assert method.counts["released"] == 4


def test_a_flush_with_nothing_held_closes_no_epoch():
    method = make()
    method.flush()
    push_all(method, (0, "ann", "x"), (1, "bob", "x"))
    assert left(method.flush()) == [(0, "x"), (1, "x")]


def test_an_epoch_longer_than_all_time():
    method, start = make(rotation=4_600_000_000), 4_600_000_000
    push_all(method, (start, "ann", "x"), (start + 1, "bob", "x"))
    assert left(method.flush()) == [(start, "x"), (start + 1, "x")]
    assert push_all(method, (start + 2, "ann", "x"), (start + 3, "bob", "x")) == []
    assert method.pending == 0


def test_a_first_clock_that_was_wrong():
    day = 86_400
    method = make()
    push_all(method, (5 * day, "odd", "x"), (5 * day + 1, "odd", "x"), (0, "ann", "x"), (1, "bob", "x"))
    assert method.counts["ahead"] == 2
    assert method.pending == 2
    assert push_all(method, (10, "ann", "x")) == [(0, "x"), (1, "x")]


def test_a_first_clock_that_was_wrong_and_flushed():
    """Only one person was seen, so no set was published: every epoch is open again."""
    method = make()
    push_all(method, (500_000, "odd", "x"))
    assert left(method.flush()) == []
    push_all(method, (0, "ann", "x"), (1, "bob", "x"))
    assert push_all(method, (10, "ann", "x")) == [(0, "x"), (1, "x")]


def test_blank_rows_stay_and_say_nothing():
    method = make(z=2, on_private="blank")
    push_all(method, (0, "ann", "x"), (1, "bob", "x"), (2, "cat", "x"), (3, "cat", "y"), (4, "dan", "y"))
    rows = left(method.flush())
    assert rows == [(0, None), (1, "x"), (2, "x"), (3, None), (4, None)]


def test_columns_are_one_set():
    method = make(attribute={"site": {}, "device": {}})
    events = [(0, "ann", "x", "tv"), (1, "bob", "x", "tv"), (2, "cat", "x", "pc"), (3, "dan", "y", "tv")]
    for ts, user, site, device in events:
        method.push(event(ts, user, site, device=device))
    rows = [(row["site"], row["device"]) for row in method.flush().rows.to_pylist()]
    assert rows == [("x", "tv"), ("x", "tv")]
    assert method.counts["suppressed"] == 2


def test_values_that_went_are_not_hidden_under_nulls():
    method = make(attribute={"site": {}, "device": {}})
    rows = [event(0, "ann", "x", device="rare-one"), event(1, "bob", "x", device="rare-two")]
    method.push_batch(pa.Table.from_pylist(rows))
    batch = method.flush().rows
    assert batch.column("device").null_count == 2
    assert not any(b"rare" in bytes(buffer) for column in batch.columns for buffer in column.buffers() if buffer)


def test_a_column_without_any_value():
    method = make(attribute={"site": {}, "device": {}})
    table = pa.table({"ts": [0, 1], "user": ["ann", "bob"], "site": ["x", "x"], "device": pa.nulls(2)})
    method.push_batch(table)
    assert left(method.flush()) == [(0, "x"), (1, "x")]


def test_a_snapshot_of_another_k_is_refused():
    with pytest.raises(CheckpointError):
        make(k=3).restore(make().snapshot())
    with pytest.raises(CheckpointError):
        make(combine=None, k=None).restore(make().snapshot())


def test_records_that_wait_fit_one_type():
    method = make()
    method.push(event(0, "ann", "x"))
    with pytest.raises(InputError, match="column 'site': a value is not string"):
        method.push(event(1, "bob", 5))
    assert method.counts["pushed"] == 1


def test_the_trace_says_at_which_level_values_passed():
    method = make(z=2, attribute={"site": {}, "device": {}})
    table = [event(0, "ann", "x", device="tv"), event(1, "bob", "x", device="pc"), event(2, "cat", "y", device="pc")]
    first = method.push_batch(pa.Table.from_pylist(table)).trace
    assert first.select(["row", "group", "level.site", "level.device"]).to_pylist() == [
        {"row": 0, "group": None, "level.site": -1, "level.device": -1}
    ]
    last = method.flush().trace
    assert last.select(["row", "group", "level.site", "level.device"]).to_pylist() == [
        {"row": 1, "group": 0, "level.site": 0, "level.device": -1},
        {"row": 2, "group": 0, "level.site": -1, "level.device": 0},
    ]


def test_a_record_that_does_not_fit_is_refused_and_changes_nothing():
    method = make(carry=["since"])
    method.push(event(0, "ann", "x", since=datetime(2026, 3, 2)))
    with pytest.raises(InputError, match="since"):
        method.push(event(1, "bob", "x", since=np.int64(1)))
    assert method.counts["pushed"] == method.pending == 1
