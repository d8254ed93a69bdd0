"""Clusters whose rows were decided at different times are found, also where nobody knows what time it was."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.auditor import audit
from shoal.testing.driving import batches_of
from tests.auditor.tuples_naive import SECOND, Run, records
from tests.laws.tuple_cases import BEGIN, TUPLE_CASES, WRONG_STARTS

MINUTE = 60 * SECOND
TIMED = [case for case in [*TUPLE_CASES, *WRONG_STARTS] if case.time]


@pytest.fixture(params=[False, True], ids=["counted", "timed"])
def run(request):
    if request.param:
        return Run(records(120, people=50, missing=0.2), is_timed=True, deadline=2 * MINUTE, reuse=MINUTE)
    return Run(records(120, people=50, missing=0.2))


def places_of_a_cluster(run):
    """Where the entries of a cluster stand that leave before another row does."""
    for entry in run.trace:
        places = [at for at, other in enumerate(run.trace) if other["group"] == entry["group"] and not other["reused"]]
        if entry["verdict"] == "released" and not entry["reused"] and places[-1] + 1 < len(run.trace):
            return places
    raise AssertionError("no such cluster")


def move(run, place, to):
    """Let a row leave at another place, and say so in the trace; nothing is suppressed in these streams."""
    assert len(run.release) == len(run.trace)
    for kept in (run.release, run.trace):
        kept.insert(to, kept.pop(place))


def split_rows(run, **given):
    return next((found.rows for found in run.audit(**given).violations if found.code == "split-cluster"), ())


@pytest.mark.parametrize("truth", [True, False])
def test_a_row_that_left_after_its_cluster(run, truth):
    places = places_of_a_cluster(run)
    move(run, places[-1], places[-1] + 1)
    assert list(split_rows(run, truth=truth)) == [*places[:-1], places[-1] + 1]


@pytest.mark.parametrize("truth", [True, False])
def test_rows_that_did_not_leave_in_order_of_arrival(run, truth):
    places = places_of_a_cluster(run)
    move(run, places[-1], places[0])
    assert list(split_rows(run, truth=truth)) == places


@pytest.mark.parametrize("truth", [True, False])
def test_a_later_row_that_waited_longer(run, truth):
    first, *_, last = places_of_a_cluster(run)
    run.trace[last]["delay"] = run.trace[last - 1]["delay"] + 1
    assert first in split_rows(run, truth=truth)
    run.trace[last]["delay"] -= 1
    assert split_rows(run, truth=truth) == ()


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
