"""The order of published rows: secret, the same again with the same key, and no trace of who arrived first."""

from __future__ import annotations

import math
import random
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

import shoal
from shoal import Castle, Fads, FadsVaried, Fast, IotAnonymization, KVarp, LeastLoss, Numeric, Schema
from shoal.kernels.siphash import absorb, begin_state
from shoal.kernels.tuples.publish_order import hash_next, order_events, rank_few, spread_out
from shoal.methods.text_keys import key_words
from tests.reference.effort import tries
from tests.reference.publish_order import order_key, published_order, splitmix64
from tests.reference.siphash import siphash128

METHODS = [Fads, FadsVaried, Fast, KVarp, IotAnonymization, Castle, LeastLoss]
KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
every_method = pytest.mark.parametrize("method", METHODS)
ways = pytest.mark.parametrize("timed", [False, True], ids=["counted", "timed"])


def stream(count=240, seed=1):
    draw = random.Random(seed)
    return pa.table(
        {
            "id": [f"p{draw.randrange(count)}" for _ in range(count)],
            "ts": pa.array([10**9 * (at // 3) for at in range(count)], pa.timestamp("ns")),
            "x": [draw.randrange(100) for _ in range(count)],
            "note": list(range(count)),
        }
    )


def make(method, *, timed=False, key=KEY, **given_):
    schema = Schema(person="id", time="ts", quasi=[Numeric("x", low=0, high=100)], carry=["note"])
    spans = {"deadline": "8s", "reuse": "2s"} if timed else {"deadline": 24, "reuse": 6}
    return method(schema, key=key, **{"k": 4, **spans, **given_})


def events_of(releases):
    """The decided rows, event by event."""
    shown = [note for release in releases for note in release.rows.column("note").to_pylist()]
    trace = [row for release in releases for row in release.trace.to_pylist()]
    assert [row["row"] for row in trace if row["verdict"] == "released"] == shown  # the trace is in the same order
    return [
        [row["row"] for row in rows]
        for release in releases  # a flush has the event number of the last record
        for _, rows in groupby(release.trace.to_pylist(), key=lambda row: row["event"])
    ]


def run(method, table, **given_):
    made = make(method, **given_)
    return [made.push_batch(table), made.flush()]


# ---- the kernel


@given(st.lists(st.tuples(st.integers(0, 2**62), st.integers(0, 4)), max_size=60), st.binary(min_size=16, max_size=16))
@tries(60)
def test_the_kernel_orders_each_event_as_the_reference_does(pairs, key):
    pairs = sorted({row: (row, event) for row, event in pairs}.values(), key=lambda pair: pair[1])
    rows, events = (np.array([pair[at] for pair in pairs], dtype=np.int64) for at in (0, 1))
    order = np.empty((2, len(rows)), dtype=np.int64)
    order_events(key_words(key), rows, events, np.empty_like(order), order)
    sets = [[row for row, _ in group] for _, group in groupby(pairs, key=lambda pair: pair[1])]
    assert rows[order[0]].tolist() == [row for event in sets for row in published_order(event, key)]


@pytest.mark.parametrize("size", [1, 2, 3, 127, 128, 129, 400])
def test_events_of_any_size(size):
    rows = np.array(random.Random(size).sample(range(10**6), 3 * size), dtype=np.int64)
    order = np.empty((2, len(rows)), dtype=np.int64)
    order_events(key_words(KEY), rows, np.repeat(np.arange(3), size), np.empty_like(order), order)
    sets = np.split(rows, 3)
    assert rows[order[0]].tolist() == [row for event in sets for row in published_order(event.tolist(), KEY[:16])]


@njit
def ranked(keys, order):
    rank_few(keys, order, 0, len(keys))


@njit
def hashed(key, first, row):
    v0, v1, v2, v3 = begin_state(key[0], key[1])
    v0, v1, v2, v3 = absorb(v0, v1, v2, v3, first)
    return hash_next(v0, v1, v2, v3, row), spread_out(row)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=20))
@tries(30)
def test_equal_keys_keep_their_order(keys):
    """Hashes are hardly ever equal; rank_few must not lose a row if they are."""
    order = np.full(len(keys), -1, dtype=np.int64)
    ranked(np.array(keys, dtype=np.int64), order)
    assert order.tolist() == sorted(range(len(keys)), key=lambda at: keys[at])


@given(st.binary(min_size=16, max_size=16), st.integers(0, 2**64 - 1), st.integers(0, 2**63 - 1))
@tries(30)
def test_the_hash_is_siphash_of_two_words(key, first, row):
    found, mixed = hashed(key_words(key), np.uint64(first), np.int64(row))
    assert int(found) == int.from_bytes(
        siphash128(key, first.to_bytes(8, "little") + row.to_bytes(8, "little"))[:8], "little"
    )
    assert int(mixed) == splitmix64(row)


# ---- the methods


@every_method
@ways
def test_rows_of_an_event_stand_in_the_reference_order(method, timed):
    events = events_of(run(method, stream(), timed=timed))
    for event in events[:: max(1, len(events) // 20)]:  # the reference is slow
        assert event == published_order(sorted(event), order_key(KEY))


@every_method
@ways
def test_the_first_row_is_the_oldest_no_more_often_than_chance(method, timed):
    shares, found = [], 0
    for seed in range(4):
        for event in events_of(run(method, stream(seed=seed), timed=timed)):
            if len(event) > 1:
                shares.append(1 / len(event))
                found += event[0] == min(event)
    spread = math.sqrt(sum(share * (1 - share) for share in shares))
    assert len(shares) > 15
    assert abs(found - sum(shares)) < 4 * spread


@every_method
def test_another_key_gives_another_order_of_the_same_events(method):
    one, other = (events_of(run(method, stream(), key=key)) for key in (KEY, OTHER))
    assert [sorted(event) for event in one] == [sorted(event) for event in other]
    assert one != other
    assert one == events_of(run(method, stream()))


@every_method
@ways
def test_batches_single_records_and_snapshots_do_not_change_the_order(method, timed):
    table = stream()
    whole = [row for release in run(method, table, timed=timed) for row in release.rows.to_pylist()]
    made, rows = make(method, timed=timed), []
    for start, stop in pairwise([0, 1, 90, 91, 150, 240]):
        rows += made.push_batch(table.slice(start, stop - start)).rows.to_pylist()
        made = shoal.restore(made.snapshot(), key=KEY)
    assert rows + made.flush().rows.to_pylist() == whole
    single, rows = make(method, timed=timed), []
    single.bind(table.schema)
    for record in table.to_pylist():
        rows += single.push(record)
    assert rows + single.flush().rows.to_pylist() == whole


def test_rows_at_the_root_are_shuffled_with_the_others():
    """Two people in one range form clusters; a third, far away and alone, is suppressed by the same arrival."""
    places = []
    for key in range(40):
        made = make(Fads, timed=True, key=bytes([key] * 32), k=2, suppressed="root", reuse="0s")
        table = pa.table(
            {
                "id": ["a", "b", "c", "z"],
                "ts": pa.array([0, 0, 10**9, 20 * 10**9], pa.timestamp("ns")),
                "x": [1, 2, 90, 50],
                "note": [0, 1, 2, 3],
            }
        )
        shown = made.push_batch(table).rows.to_pylist()
        assert {row["note"] for row in shown} == {0, 1, 2}
        places.append([row["note"] for row in shown].index(2))
    assert set(places) == {0, 1, 2}


def test_flush_and_advance_are_one_event_each():
    made = make(Fads, timed=True)
    made.push_batch(stream(60))
    advanced, again = made.advance(24), make(Fads, timed=True)
    again.push_batch(stream(60))
    for release in (advanced, again.flush()):
        rows = release.trace.column("row").to_pylist()
        assert set(release.trace.column("event").to_pylist()) == {59}
        assert len(rows) > 5
        assert rows == published_order(sorted(rows), order_key(KEY))


def test_two_streams_under_one_key_do_not_share_an_order():
    """A pair of row numbers stands in one order in one event and, as often as not, in the other in another."""
    events = [published_order([7, 8, more], order_key(KEY)) for more in range(9, 40)]
    assert {event.index(7) < event.index(8) for event in events} == {True, False}
