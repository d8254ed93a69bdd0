"""Every method, in every configuration, keeps every law."""

from __future__ import annotations

import pyarrow as pa
import pytest

from shoal.auditor import audit
from shoal.methods.registry import methods_of
from shoal.testing import driving, laws, promise_laws
from tests.laws.cases import PEOPLE, Z_CASES
from tests.laws.flexible_cases import FLEXIBLE_CASES
from tests.laws.tuple_cases import PAPER_CASES, TUPLE_CASES, TUPLE_METHODS, WRONG_STARTS
from tests.reference.effort import IS_COMPILED, IS_EXHAUSTIVE, some_by_default

JUDGED = [*Z_CASES, *TUPLE_CASES, *FLEXIBLE_CASES]
CASES = [*JUDGED, *PAPER_CASES, *WRONG_STARTS]
FEW = [
    "z-drop",
    "z-closed",
    "z-suffix",
    "z-late",
    "z-late-table",
    "z-combine-trees",
    "z-target-late",
    "k-varp-declared",
    "k-varp-paper",
    "fads-wrong-start",
    "flexible-k-compared",
]
FEW += [f"{method}-timed" for method in TUPLE_METHODS]
SHORT = [name for name in FEW if name != "z-target-late"]
"""Its stream is six times as long: by default its batches and snapshots are tried, all laws in test-all."""
ODD_TYPES = (
    "z-drop",
    "z-late",
    "z-closed",
    "z-combine-trees",
    "z-target",
    "fads-t",
    "castle-plain",
    "k-varp-declared",
    "flexible-k-plain",
)
"""The cases whose columns get values of unusual types: one or more of each reader of records."""


def every(cases):
    chosen = [case for case in cases if IS_COMPILED or case.name in FEW]
    return pytest.mark.parametrize("case", chosen, ids=lambda case: case.name)


def few(cases, *, names=FEW):
    """For costly laws: the default run tries one or two cases of every method, the exhaustive run all."""
    chosen = some_by_default(
        [case for case in cases if IS_COMPILED or case.name in FEW], lambda case: case.name in names
    )
    return pytest.mark.parametrize("case", chosen, ids=lambda case: case.name)


def test_every_method_has_cases():
    assert {case.method for case in CASES} == set(methods_of("z", "tuples", "flexible"))


@few(CASES)
def test_batching_is_invisible(case):
    laws.batching_is_invisible(case.make, case.stream)


@every([case for case in JUDGED if case.name in ODD_TYPES])
def test_records_are_refused_like_batches(case):
    laws.records_are_refused_like_batches(case.make, case.stream)


@every([case for case in JUDGED if case.name in ODD_TYPES])
def test_missing_values_are_batched_like_records(case):
    laws.missing_values_are_batched_like_records(case.make, case.stream)


@every(CASES)
def test_everything_is_accounted_for(case):
    laws.everything_is_accounted_for(case.make, case.stream)


@few(CASES)
def test_snapshots_are_invisible(case):
    laws.snapshots_are_invisible(case.make, case.stream)


@every(CASES)
def test_refusals_change_nothing(case):
    laws.refusals_change_nothing(case.make, case.stream)


@pytest.mark.compiled
def test_the_output_is_the_same_in_another_process():
    chosen = [case for case in CASES if IS_EXHAUSTIVE or case.name in FEW]
    cases = [(case.make, case.stream) for case in chosen]
    elsewhere = driving.digests_elsewhere(cases)
    here = [driving.digest(make, stream) for make, stream in cases]
    names = [case.name for case in chosen]
    assert dict(zip(names, here, strict=True)) == dict(zip(names, elsewhere, strict=True))


@pytest.mark.compiled
@pytest.mark.exhaustive  # all cases share a process above
def test_is_same_in_another_process():
    laws.is_same_in_another_process(CASES[0].make, CASES[0].stream)


@every(CASES)
def test_flush_leaves_nothing(case):
    laws.flush_leaves_nothing(case.make, case.stream)


@few([case for case in CASES if case.time], names=SHORT)
def test_delay_is_bounded(case):
    promise_laws.delay_is_bounded(case.make, case.stream, time=case.time, by_clock=case.by_clock)


@few(TUPLE_CASES)
def test_arrivals_bound_the_delay(case):
    promise_laws.arrivals_bound_the_delay(case.make, case.stream)


@every(TUPLE_CASES)
def test_only_one_method_has_no_deadline(case):
    promised = case.make().guarantee
    bounds = (promised.max_delay_ns, promised.max_delay_arrivals)
    assert (bounds == (None, None)) == (case.method == "fads-varied")
    assert promised.max_pending == promised.max_delay_arrivals


@few(CASES, names=SHORT)
def test_pending_is_bounded(case):
    promise_laws.pending_is_bounded(case.make, case.stream)


@few([case for case in CASES if case.steady])
def test_inputs_are_unchanged_if_nothing_is_refused(case):
    laws.inputs_are_left_alone(case.make, case.steady(0))


@pytest.mark.compiled
@few([case for case in CASES if case.steady])
def test_memory_is_flat(case):
    promise_laws.memory_is_flat(case.make, case.steady)


@few(CASES, names=SHORT)
def test_inputs_are_left_alone(case):
    laws.inputs_are_left_alone(case.make, case.stream)


@few(CASES, names=SHORT)
def test_output_is_as_promised(case):
    persons = {str(person) for person in case.stream[case.person].to_pylist() if person}
    promise_laws.output_is_as_promised(case.make, case.stream, persons=persons)


@every(CASES)
def test_errors_tell_no_values(case):
    secrets = {str(value) for name in case.secret for value in case.stream[name].to_pylist() if value}
    promise_laws.errors_tell_no_values(case.make, case.stream, secrets=secrets | set(PEOPLE), odd=case.odd())


@every(JUDGED)
def test_auditor_finds_nothing(case):
    promise_laws.auditor_finds_nothing(case.make, case.stream, policy=case.policy)


@every(WRONG_STARTS)
def test_the_auditor_only_warns_of_a_clock_that_started_over(case):
    with pytest.raises(driving.LawBroken, match=r"^the auditor found: clock-unclear(, late-by-event-time)?$"):
        promise_laws.auditor_finds_nothing(case.make, case.stream, policy=case.policy)


@every(PAPER_CASES)
def test_the_auditor_is_not_content_with_the_papers(case):
    with pytest.raises(driving.LawBroken, match="the auditor found"):
        promise_laws.auditor_finds_nothing(case.make, case.stream, policy=case.policy)


@every(FLEXIBLE_CASES)
def test_a_flush_before_the_window_is_full_ends_what_is_found_out(case):
    """What is sparse is known from then on, and the auditor finds out the same."""
    anonymizer = case.make()
    releases = []
    for start in range(0, case.stream.num_rows, 13):
        releases += [anonymizer.push_batch(case.stream.slice(start, 13)), anonymizer.flush()]
    rows = pa.Table.from_batches([release.rows for release in releases])
    trace = pa.Table.from_batches([release.trace for release in releases])
    report = audit(rows, truth=case.stream, trace=trace, policy=case.policy)
    assert report.violations == ()
