"""Decisions are judged as sets: a row moved to another event is convicted, another order within an event is not."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from shoal.auditor import audit
from shoal.auditor.tuples.order_checks import log_chance
from shoal.methods.tuples import publisher as tuple_publisher
from shoal.testing.driving import batches_of
from tests.auditor.tuples.naive import SECOND, Run, records
from tests.laws.tuple_cases import BEGIN, TUPLE_CASES, WRONG_STARTS, people, tuple_case

MINUTE = 60 * SECOND
TIMED = [case for case in [*TUPLE_CASES, *WRONG_STARTS] if case.time]


@pytest.fixture(params=[False, True], ids=["counted", "timed"])
def run(request):
    if request.param:
        return Run(records(120, people=50, missing=0.2), is_timed=True, deadline=2 * MINUTE, reuse=MINUTE)
    return Run(records(120, people=50, missing=0.2))


def places_of_a_cluster(run):
    """The places of the entries of a cluster that is published before another row."""
    for entry in run.trace:
        places = [at for at, other in enumerate(run.trace) if other["group"] == entry["group"] and not other["reused"]]
        if entry["verdict"] == "released" and not entry["reused"] and places[-1] + 1 < len(run.trace):
            return places
    raise AssertionError("no such cluster")


def move(run, place, to):
    """Publish a row at another place, and record it in the trace; nothing is suppressed in these streams."""
    assert len(run.release) == len(run.trace)
    for kept in (run.release, run.trace):
        kept.insert(to, kept.pop(place))


def split_rows(run, **given):
    return next((found.rows for found in run.audit(**given).violations if found.code == "split-cluster"), ())


@pytest.mark.parametrize("truth", [True, False])
def test_a_row_published_after_its_cluster(run, truth):
    places = places_of_a_cluster(run)
    move(run, places[-1], places[-1] + 1)
    assert list(split_rows(run, truth=truth)) == [*places[:-1], places[-1] + 1]


@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_the_order_within_an_event_means_nothing(run, truth, seed):
    draw = random.Random(seed)
    assert len(run.release) == len(run.trace)
    order = sorted(range(len(run.trace)), key=lambda at: (run.trace[at]["event"], draw.random()))
    assert any(at != place for place, at in enumerate(order))
    run.release, run.trace = [run.release[at] for at in order], [run.trace[at] for at in order]
    report = run.audit(truth=truth)
    assert report.findings == (), report.text()


def test_a_trace_that_does_not_name_events_is_read_by_its_delays(run):
    for entry in run.trace:
        del entry["event"]
    assert run.audit().findings == ()
    places = places_of_a_cluster(run)
    move(run, places[-1], places[-1] + 1)
    codes = {found.code for found in run.audit().findings}
    assert codes & {"split-cluster", "clock-unclear"}
    sentences = run.audit(truth=False).not_checked
    assert any("published together" in one for one in sentences) == (run.promised["stream"].get("time") is not None)


@pytest.mark.parametrize("truth", [True, False])
def test_a_row_that_claims_another_event(run, truth):
    """The row is moved to the next event, and its event and delay are changed as that event's are."""
    places = places_of_a_cluster(run)
    after = run.trace[places[-1] + 1]
    moved = run.trace[places[-1]]
    moved["delay"] += 1
    moved["event"] = after["event"]
    move(run, places[-1], places[-1] + 1)
    assert set(places[:-1]) < set(split_rows(run, truth=truth))


@pytest.mark.parametrize("truth", [True, False])
def test_a_reused_row_in_the_event_before(run, truth):
    at = next(place for place, entry in enumerate(run.trace) if entry["reused"])
    before = max(entry["event"] for entry in run.trace if entry["event"] < run.trace[at]["event"])
    to = next(place for place, entry in enumerate(run.trace) if entry["event"] == before)
    move(run, at, to)
    codes = {found.code for found in run.audit(truth=truth).violations}
    assert "decision-order" in codes


@pytest.mark.parametrize("value", [None, -1, 0, 10_000])
@pytest.mark.parametrize("truth", [True, False])
def test_an_event_that_cannot_be(run, truth, value):
    place = next(at for at, entry in enumerate(run.trace) if entry["row"] > 50)
    run.trace[place]["event"] = value
    codes = {found.code for found in run.audit(truth=truth).violations}
    assert codes & {"trace-event", "split-cluster", "decision-order"}
    if truth or value != 10_000:
        assert "trace-event" in codes


def test_events_that_contradict_the_delays():
    run = Run(records(120, people=50))
    for entry in run.trace:
        entry["event"] = min(entry["event"] + 1, 119)
    assert set(run.codes()) == {"trace-delay"}


@pytest.mark.parametrize("truth", [True, False])
def test_a_later_row_that_waited_longer(run, truth):
    places = places_of_a_cluster(run)
    *_, before, last = sorted(places, key=lambda place: run.trace[place]["row"])
    run.trace[last]["delay"] = run.trace[before]["delay"] + 1
    assert places[0] in split_rows(run, truth=truth)
    run.trace[last]["delay"] -= 1
    assert split_rows(run, truth=truth) == ()


# ---- a publisher that does not shuffle


def codes_of(run, **given):
    return {found.code for found in run.audit(**given).findings}


@pytest.mark.parametrize("k", [3, 10, 40])
@pytest.mark.parametrize("truth", [True, False])
def test_rows_in_order_of_arrival_are_warned_of(k, truth):
    truth_rows = records(90 + 9 * k)
    run = Run(truth_rows, k=k, deadline=4 * k, shuffles=False, groups=True)
    assert "in-arrival-order" in codes_of(run, truth=truth)
    assert "in-arrival-order" not in codes_of(Run(truth_rows, k=k, deadline=4 * k, groups=True), truth=truth)


def test_a_few_clusters_in_order_prove_nothing():
    """Six clusters of three begin with the earliest by chance once in 729 times."""
    run = Run(records(18), k=3, deadline=6, shuffles=False, groups=True)
    assert "in-arrival-order" not in codes_of(run)


@pytest.mark.parametrize(("sizes", "found", "least"), [([2] * 40, 40, 33), ([50] * 9, 9, 6), ([3, 2, 2], 3, 4)])
def test_the_bound_is_at_least_the_probability(sizes, found, least):
    """Against the exact distribution of the number of clusters that begin with their earliest row."""
    exact = [1.0]
    for size in sizes:
        share = 1 / size
        exact = [a * (1 - share) + b * share for a, b in zip([*exact, 0.0], [0.0, *exact], strict=True)]
    of_size = Counter(sizes)
    shares, times = 1 / np.array(list(of_size), float), np.array(list(of_size.values()), float)
    for many in range(len(sizes) + 1):
        chance = sum(exact[many:])
        assert math.exp(log_chance(shares, times, many)) >= chance * (1 - 1e-9)
    firing = [many for many in range(found + 1) if log_chance(shares, times, many) < math.log(1e-10)]
    assert min(firing, default=found + 1) >= least


# ---- time


@pytest.mark.parametrize("case", TIMED, ids=lambda case: case.name)
def test_time_that_is_moved_on_without_records_splits_nothing(case):
    anonymizer, releases = case.make(), []
    for number, batch in enumerate(batches_of(case.stream, 7)):
        releases.append(anonymizer.push_batch(batch))
        if number % 3 == 1:
            releases.append(anonymizer.advance(BEGIN + 30 * (number + 2)))
    releases.append(anonymizer.flush())
    release, trace = (pa.Table.from_batches([getattr(made, name) for made in releases]) for name in ("rows", "trace"))
    report = audit(release, case.stream, trace, case.policy)
    assert report.violations == (), report.text()
    assert "clock-unclear" in {found.code for found in report.warnings}


@pytest.mark.parametrize("case", [case for case in TUPLE_CASES if not case.time], ids=lambda case: case.name)
def test_a_method_that_forgets_to_shuffle_is_found(case, monkeypatch):
    """Many short streams, one after the other, as one release would be too short to prove anything."""

    def by_event(decided, *_):
        return replace(decided, out=decided.out[np.argsort(decided.at, kind="stable")])

    monkeypatch.setattr(tuple_publisher, "in_secret_order", by_event)
    anonymizer = case.make()
    repeated = pa.concat_tables([case.stream] * 6)
    releases = [anonymizer.push_batch(batch) for batch in batches_of(repeated, 50)]
    releases.append(anonymizer.flush())
    release, trace = (pa.Table.from_batches([getattr(made, name) for made in releases]) for name in ("rows", "trace"))
    codes = {found.code for found in audit(release, repeated, trace, case.policy).warnings}
    assert "in-arrival-order" in codes


@pytest.mark.parametrize("seed", [1, 22])
def test_one_event_may_publish_rows_that_arrived_far_apart(seed):
    """A record after a long silence sets off several decisions at once, whose rows are shuffled together."""
    case = tuple_case("fast", "gaps", {"deadline": "40s", "reuse": "30s", "l": 2}, people(90, seed=seed), flat=False)
    method = case.make()
    releases = [method.push_batch(case.stream), method.flush()]
    rows, trace = (pa.Table.from_batches([getattr(one, name) for one in releases]) for name in ("rows", "trace"))
    found = audit(rows, case.stream, trace, case.policy)
    assert found.ok
    assert not {"late-by-event-time", "clock-unclear"} & {finding.code for finding in found.findings}
