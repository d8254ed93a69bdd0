"""A first clock that was wrong: what was decided under it stays decided, and the auditor follows the restart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import shoal
from shoal.methods.z.z_anonymity import ZAnonymity
from shoal.testing.strategies import SECOND
from tests.methods.z.driving import GAP, KEY, LATENESS, as_batch
from tests.methods.z.test_combine_twin import codes_of
from tests.reference.effort import tries

ROTATION = 7 * SECOND
COMBINED = {"combine": "k", "k": 2}
PROMISES = {
    "z = 1": {"z": 1},
    "z = 2": {"z": 2},
    "combined, z = 1": {"z": 1, **COMBINED},
    "combined, z = 2": {"z": 2, **COMBINED},
    "target": {"target": {"k": 2, "p": 0.9, "start": 2}},
}
STEPS = st.sampled_from([0, 1, 3 * SECOND, 8 * SECOND, GAP, GAP + 1])


def as_records(events):
    return [{"ts": ts, "user": user, "site": "a.news", "device": "a"} for ts, user in events]


@st.composite
def first_clocks(draw):
    """One person's clock runs ahead; another person's record is about max_gap older; then others."""
    now, events = 0, []
    for step in draw(st.lists(STEPS, min_size=1, max_size=3)):
        events.append((now, "cat"))
        now += step
    now = draw(st.sampled_from([events[-1][0] - GAP - 1, events[-1][0] - GAP, -1, -GAP - 1]))
    for step, user in draw(st.lists(st.tuples(STEPS, st.sampled_from(["ann", "bob", "cat"])), min_size=1, max_size=4)):
        events.append((now, user))
        now += draw(st.sampled_from([step, step, -GAP - 1]))
    return as_records(events)


def make(promise, on_private, lateness):
    given = {"attribute": "site", "window": "10s", "on_private": on_private, **promise}
    target = {"target": shoal.KTarget(**given["target"])} if "target" in given else {}
    method = ZAnonymity(
        **{**given, **target}, person="user", time="ts", lateness=lateness / SECOND, max_gap=GAP / SECOND,
        rotation=ROTATION / SECOND, key=KEY,
    )  # fmt: skip
    method.bind(as_batch([]).schema)
    return method, given


@pytest.mark.parametrize("lateness", [0, LATENESS], ids=["at once", "late"])
@pytest.mark.parametrize("on_private", ["drop", "blank"])
@pytest.mark.parametrize("promise", PROMISES)
@given(first_clocks(), st.none() | st.integers(1, 6))
@example(as_records([(0, "cat"), (GAP, "cat"), (-1, "ann"), (-1, "ann")]), None)
@example(as_records([(0, "cat"), (GAP, "cat"), (-1, "ann"), (-1, "ann")]), 1)
@example(as_records([(0, "cat"), (GAP, "cat"), (-1, "ann"), (0, "bob"), (1, "ann"), (GAP, "cat")]), None)
@example(as_records([(0, "cat"), (GAP, "cat"), (-1, "ann"), (-GAP - 2, "bob"), (-GAP, "cat")]), None)
@tries(4)
def test_the_auditor_finds_nothing(promise, on_private, lateness, records, flush_after):
    method, given = make(PROMISES[promise], on_private, lateness)
    cut = len(records) if flush_after is None else flush_after
    releases = []
    for part in (records[:cut], records[cut:]):
        releases += [method.push_batch(as_batch(part)), method.flush()] if part else []
    # a target is no promise; a flush leaves no mark in the trace: after it, more is late
    allowed = {"target-missed", *(["dead-without-cause"] if lateness else [])}
    assert codes_of(releases, records, given, lateness, ROTATION) <= allowed


def test_blank_rows_published_under_it_leave_their_epoch_open():
    """They are part of no set, so sets published later in the epoch are shared by k people all the same."""
    events = [(0, "cat"), (GAP, "cat"), (-1, "ann"), (0, "ann"), (1, "cat"), (8 * SECOND, "bob")]
    batched, _ = make(PROMISES["combined, z = 1"], "blank", 0)
    rows = batched.push_batch(as_batch(as_records(events))).rows.to_pylist()
    assert [(row["ts"].value, row["site"]) for row in rows] == [(0, None), (-1, None), (0, "a.news"), (1, "a.news")]
    single, _ = make(PROMISES["combined, z = 1"], "blank", 0)
    pushed = []
    for record in as_records(events):
        pushed += single.push({**record, "ts": np.datetime64(record["ts"], "ns")})
        single = shoal.restore(single.snapshot(), key=KEY)
    assert [(row["user"], row["site"]) for row in pushed] == [(row["user"], row["site"]) for row in rows]
    assert single.counts == batched.counts
    assert batched.counts["ahead"] == 1


@pytest.mark.parametrize("promise", ["z = 2", "combined, z = 2"])
def test_blank_rows_do_not_confirm_it(promise):
    """Or the first person whose clock is far ahead would make everyone else late."""
    year = 365 * 86_400 * SECOND
    method, _ = make(PROMISES[promise], "blank", 0)
    ahead = [(year, "odd"), (year + 50 * SECOND, "odd")]
    assert method.push_batch(as_batch(as_records(ahead))).rows.num_rows
    method.push_batch(as_batch(as_records([(0, "ann"), (1, "bob"), (8 * SECOND, "ann")])))
    assert "late" not in method.counts
    assert method.counts["pushed"] - method.counts["dead"] == 4 + (promise == "z = 2")
