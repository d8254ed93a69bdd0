"""A delay that is wrong by a nanosecond switches no check off; time moved on without records is still acquitted."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from shoal import Fast, Numeric, Schema
from shoal.auditor import audit
from shoal.auditor.tuples.clock import Delays, infer_clock, published_late
from shoal.testing.driving import batches_of
from tests.auditor.tuples.naive import RELEASE, SECOND, TRACE, TRUTH, Run, policy, records, table
from tests.laws.tuple_cases import BEGIN, TUPLE_CASES, WRONG_STARTS
from tests.reference.effort import some_by_default

MINUTE = 60 * SECOND
TIMED = [case for case in [*TUPLE_CASES, *WRONG_STARTS] if case.time]


@pytest.fixture
def run():
    return Run(records(150, people=60, missing=0.2), is_timed=True, deadline=2 * MINUTE, reuse=MINUTE)


def blur(run, place, by):
    """Change one delay a little, as a forger would who wants the clock to be unclear."""
    run.trace[place]["delay"] += by


def a_later_member(run, begin):
    """The place of an entry that was published with a new cluster and arrived after the cluster's first."""
    for at in range(begin, len(run.trace)):
        if run.trace[at]["verdict"] == "released" and not run.trace[at]["reused"] and run.trace[at]["delay"] < MINUTE:
            return at
    raise AssertionError("no such entry")


BLURS = pytest.mark.parametrize("by", [-1, 1])


@BLURS
def test_the_clock_is_unclear_and_nothing_else(run, by):
    blur(run, a_later_member(run, 5), by)
    report = run.audit()
    assert {found.code for found in report.warnings} == {"clock-unclear"}
    assert not any("times are unclear" in sentence for sentence in report.not_checked)


@BLURS
@pytest.mark.parametrize("begin", [0, 40, 100])
def test_reuse_after_its_age(run, by, begin):
    run.promised["anonymize"]["reuse"] = "20s"
    expected = {found.code: found.count for found in run.audit().violations}
    assert set(expected) == {"stale-reuse", "below-k-in-history"}
    blur(run, a_later_member(run, begin), by)
    found = {found.code: found.count for found in run.audit().violations}
    assert found["stale-reuse"] >= expected["stale-reuse"] - 2
    assert found["below-k-in-history"] >= expected["below-k-in-history"] - 2


@BLURS
def test_a_lost_record(run, by):
    place = next(at for at, entry in enumerate(run.trace) if entry.get("reused"))
    del run.trace[place]
    del run.release[place]
    assert "lost" in run.codes()
    blur(run, a_later_member(run, 60), by)
    assert "lost" in run.codes()


@BLURS
def test_a_record_lost_at_the_flush(by):
    truth = records(150, people=60, missing=0.2)
    truth[-1]["ts"] += 3  # nothing is due then
    run = Run(truth, is_timed=True, deadline=2 * MINUTE, reuse=MINUTE)
    place = max(at for at, entry in enumerate(run.trace) if entry.get("group") is not None)
    assert run.trace.pop(place)["delay"] < MINUTE
    run.release.pop()
    assert "lost" in run.codes()
    blur(run, a_later_member(run, 5), by)
    assert "lost" in run.codes()


@BLURS
def test_a_wrong_reference_of_t(by):
    run = Run(records(150), is_timed=True, deadline=2 * MINUTE, reuse=MINUTE, t=0.5, reference=40)
    entry = next(entry for entry in run.trace[60:] if entry.get("reference"))
    entry["reference"][0]["count"] += 1
    entry["reference"][1]["count"] -= 1
    assert set(run.codes()) == {"wrong-reference"}
    blur(run, a_later_member(run, 5), by)
    assert "wrong-reference" in run.codes()


def test_a_later_arrival_that_waited_longer_is_explained_by_no_clock(run):
    entry = run.trace[a_later_member(run, 5)]
    first = next(other for other in run.trace if other.get("group") == entry["group"])
    entry["delay"] = first["delay"] + 1
    assert "trace-delay" in run.codes()


@pytest.mark.parametrize("case", TIMED, ids=lambda case: case.name)
@pytest.mark.parametrize("seed", some_by_default(range(3), {1}))
def test_time_moved_on_without_records_is_acquitted(case, seed):
    draw = random.Random(seed)
    anonymizer, releases, now = case.make(), [], BEGIN
    for batch in batches_of(case.stream, draw.choice([1, 3, 7])):
        releases.append(anonymizer.push_batch(batch))
        times = [time.timestamp() for time in batch.column("ts").to_pylist() if time is not None]
        now = max([now, *(int(time) for time in times if abs(time - BEGIN) < 86_400)])
        if draw.random() < (0.1, 0.5, 1)[seed]:
            releases.append(anonymizer.advance(now + draw.randrange((60, 15, 4)[seed])))
    releases.append(anonymizer.flush())
    release, trace = (pa.Table.from_batches([getattr(made, name) for made in releases]) for name in ("rows", "trace"))
    report = audit(release, case.stream, trace, case.policy)
    assert report.violations == (), report.text()


def true_times(draw, count, deadline):
    """A stream whose clock was moved on now and then: event clock, true clock, and delays of its decisions."""
    event, clock, ahead = np.zeros(count, np.int64), np.zeros(count, np.int64), 0
    now = 0
    for at in range(count):
        now += draw.choice([0, 1, 5, 9])
        if draw.random() < 0.1:
            ahead = max(ahead, now) + draw.randrange(30)
        event[at], clock[at] = now, max(now, ahead)
    held, entries, decision = [], [], 0
    for at in range(count):
        while held and clock[held[0]] + deadline <= clock[at]:
            moment = clock[held[0]] + deadline
            some = [held[0], *draw.sample(held[1:], min(len(held) - 1, draw.randrange(3)))]
            entries += [(row, decision, moment - clock[row], at) for row in sorted(some)]
            held = [row for row in held if row not in some]
            decision += 1
        held.append(at)
    return event, clock, Delays(*(np.array(column, np.int64) for column in zip(*entries, strict=True)))


@pytest.mark.parametrize("has_events", [True, False])
@pytest.mark.parametrize("seed", range(40))
def test_bounds_hold_the_truth(seed, has_events):
    event, clock, delays = true_times(random.Random(seed), 120, 20)
    assert not len(published_late(clock, 0, delays))
    if not has_events:
        delays = replace(delays, event=None)
    bounds = infer_clock(event, 0, delays)
    decided = clock[delays.row] + delays.delay
    assert (bounds.arrived[0] <= clock).all()
    assert (bounds.decided[0] <= decided).all()
    assert delays.impossible == 0
    assert (bounds.decided[1] >= decided).all()
    last = delays.row.max() + 1  # nothing can show that the clock was ahead after that
    assert (bounds.arrived[1] >= clock)[:last].all()


def test_only_a_suppressed_record_shows_that_time_was_moved_on():
    """Time is moved on to 30 after the first record, so the second one, of 12, waits from then on: until 50, not 32."""
    truth = [{**row, "ts": when} for row, when in zip(records(6), (10, 12, 45, 48, 52, 55), strict=True)]
    trace = [
        {"row": row, "verdict": "suppressed", "k": 3, "delay": 20 * SECOND, "event": event}
        for row, event in ((0, 2), (1, 4))
    ]
    promised = policy(time="ts", deadline="20s", reuse="20s")
    report = audit(table([], RELEASE), table(truth, TRUTH), table(trace, TRACE), promised)
    assert report.violations == (), report.text()
    assert [found.code for found in report.warnings] == ["clock-unclear"]


def test_a_late_record_after_the_last_cluster_that_fixes_the_clock():
    """The cluster agrees with event times; then time is moved on to 50, so record 4, of 30, waits until 70, not 50."""
    times = (1, 3, 5, 25, 30, 55, 72)
    truth = [{**row, "age": 5, "tree": "ash", "ts": when} for row, when in zip(records(7), times, strict=True)]
    shown = {"age": {"lo": 5, "hi": 5}, "tree": "ash"}
    release = [{**shown, "ill": row["ill"], "shop": row["shop"]} for row in truth[:3]]
    formed = {"verdict": "released", "group": 0, "k": 3, "reused": False, "carriers": [3, 3], "event": 3}
    trace = [{**formed, "row": row, "delay": (21 - times[row]) * SECOND} for row in range(3)]
    trace += [
        {"row": row, "verdict": "suppressed", "k": 3, "delay": 20 * SECOND, "event": event}
        for row, event in ((3, 3), (4, 6))
    ]
    promised = policy(time="ts", deadline="20s", reuse="20s")
    report = audit(table(release, RELEASE), table(truth, TRUTH), table(trace, TRACE), promised)
    assert report.violations == (), report.text()
    assert "clock-unclear" in {found.code for found in report.warnings}


def test_events_later_than_the_delays_allow(run):
    for entry in run.trace:
        entry["event"] = len(run.truth) - 1
    assert "trace-event" in run.codes()


def test_rows_of_one_round_are_published_in_any_order():
    """A round of FAST may span a gap in time: rows from before and after it are one event, in a secret order."""
    draw, count = np.random.default_rng(14), 120
    seconds = np.cumsum(draw.choice([0, 1, 2, 60], count, p=[0.4, 0.3, 0.2, 0.1]))
    truth = pa.table(
        {
            "id": [f"p{one}" for one in draw.integers(0, 30, count)],
            "x": draw.integers(0, 10, count),
            "t": pa.array(1_700_000_000 + seconds, pa.timestamp("s", "UTC")),
        }
    )
    rules = {"k": 3, "deadline": "10s", "reuse": "5s", "threads": 2, "round": 4}
    made = Fast(Schema(person="id", time="t", quasi=[Numeric("x", 0, 10)]), **rules, key=bytes(16))
    releases = [made.push_batch(truth), made.flush()]
    quasi = {"x": {"kind": "numeric", "low": 0, "high": 10}}
    promised = {"stream": {"person": "id", "time": "t"}, "anonymize": {"method": "fast", "quasi": quasi, **rules}}
    report = audit(releases, truth=truth, trace=releases, policy=promised)
    assert report.findings == (), report.text()
